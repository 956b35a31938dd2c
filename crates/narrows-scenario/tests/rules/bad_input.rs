//! Links with rules that are wrong.

use narrows_scenario::Scenario;

#[track_caller]
fn fails(lines: &str, expected: &[&str]) {
    let text =
        format!("[hosts.client]\n[hosts.server]\n[links.net]\nbetween = [\"client\", \"server\"]\n{lines}\n");
    let error = Scenario::parse(&text, "net.toml").expect_err("it is wrong").to_string();
    for expected in expected {
        assert!(error.contains(expected), "{expected}\nis not in\n{error}");
    }
}

const PIPE: &str = "rules = []\n[links.net.pipes.5]\n";
const QUEUE: &str = "rules = []\npipes.5 = { rate = \"1mbit\" }\n[links.net.queues.10]\n";

#[test]
fn keys() {
    fails(
        "rules = []\nrate = \"1mbit\"",
        &[
            "`rate` with `rules`: a link with rules has no wire of its own",
            "net.toml:6:1",
            "[links.NAME.pipes.1] with rate = …",
        ],
    );
    fails("rules = []\nup = { rate = \"1mbit\" }", &["rules tell the directions apart"]);
    fails("rules = []\nshared = true", &["a pipe is one medium"]);
    fails("rule = []", &["unknown key `rule`", "did you mean `rules`?"]);
    fails("rules = []\none_pass = true", &["unknown key `one_pass`", "did you mean `one-pass`?"]);
    fails("pipes.1 = { rate = \"1mbit\" }", &["`rules` is missing"]);
    fails("rules = \"100 deny ip from any to any\"", &["expected a list of rules", "in `links.net.rules`"]);
    fails("rules = [7]", &["found `7`, expected a list of rules"]);
    fails("rules = []\none-pass = 1", &["found `1`, expected `true` or `false`"]);
    fails("rules = []\ninterface = \"\"", &["expected the name of an interface"]);
    fails("rules = []\ndisabled-sets = [31]", &["a set from 0 to 30", "set 31 is always enabled"]);
    fails("rules = []\npipes.01 = {}", &["`01` is not the number of a pipe", "from 1 to 65534"]);
    fails("rules = []\npipes.fast = {}", &["`fast` is not the number of a pipe"]);
    fails("rules = []\npipes = 7", &["found `7`, expected a table of tables"]);
}

#[test]
fn rules() {
    fails(
        "rules = [\"100 pipe 7 out\"]",
        &[
            "rule 100 leads to pipe 7, which does not exist",
            "write it: [links.NAME.pipes.7]",
            "net.toml:5:10",
            "in `links.net.rules`",
        ],
    );
    fails(
        "rules = [\"queue 7 out\"]\npipes.5 = {}\nqueues.8.pipe = 5",
        &["rule 100 leads to queue 7, which does not exist", "queues: `8`"],
    );
    // The place is that of the word.
    fails(
        "rules = [\n  \"100 pipe 1 out\",\n  \"200 permitt ip from any to any\",\n]\npipes.1 = {}",
        &["`permitt`", "net.toml:7:8"],
    );
    fails("rules = [\"300 skipto 200 ip from any to any\"]", &["300", "200"]);
    fails("rules = [\"1000 allow out\", \"skipto 1050 in\"]", &["rule 1100 skips to 1050"]);
    fails("rules = [\"100 pipe tablearg out\"]", &["looks up nothing"]);
    fails("tables.1 = [\"10.0.0.0/33 5\"]\nrules = []", &["found `10.0.0.0/33 5`, expected an address"]);
    fails("tables.1 = [\"10.0.0.0/8 -5\"]\nrules = []", &["found `10.0.0.0/8 -5`"]);
    fails(
        "tables.1 = [\"10.0.0.0/8 5\", \"10.0.0.0/8 7\"]\nrules = []",
        &["`10.0.0.0/8 7` is in the table twice", "its value was 5 before", "in `links.net.tables.1`"],
    );
    fails("tables.\"a b\" = []\nrules = []", &["`a b` cannot be the name of a table"]);
}

#[test]
fn pipes() {
    let pipe = |lines: &str, expected: &[&str]| fails(&format!("{PIPE}{lines}"), expected);
    pipe("rat = \"1mbit\"", &["unknown key `rat`", "did you mean `rate`?", "in `links.net.pipes.5`"]);
    pipe("rate = 7", &["in `links.net.pipes.5.rate`"]);
    pipe("mask = {}", &["an empty mask: all packets would be one flow"]);
    pipe("mask = { src-ip = 0, queue = false }", &["an empty mask"]);
    pipe(
        "mask = { src-ip = \"0xffffffff00\" }",
        &[
            "the mask `0xffffffff00` is wider than an IPv4 address, which has 32 bits",
            "one digit too many",
            "in `links.net.pipes.5.mask.src-ip`",
        ],
    );
    pipe("mask = { dst-port = 65536 }", &["wider than a port, which has 16 bits"]);
    pipe("mask = { src-ip6 = \"0x1ffffffffffffffffffffffffffffffff\" }", &["which has 128 bits"]);
    pipe("mask = { src-ip = \"/8\" }", &["expected the bits of an IPv4 address", "write the bits"]);
    pipe("mask = { src-ip = \"-1\" }", &["found `-1`, expected the bits"]);
    pipe("mask = { source = 7 }", &["unknown key `source`"]);
    pipe("mask = \"some\"", &["found `some`, expected \"all\", or a table"]);
    pipe("most = 7", &["`most` without a mask"]);
    pipe("mask = \"all\"\nmost = 0", &["a number of links from 1 to 1048576"]);
    pipe("idle = \"0ms\"", &["in `links.net.pipes.5.idle`"]);
    pipe(
        "mask = \"all\"\ndelay = { feed = \"radio\" }",
        &["the feed `radio` in a pipe with a mask", "in `links.net.pipes.5.delay`"],
    );
    pipe(
        "jitter = \"1ms\"\ndelay = { normal = { mean = \"5ms\", sd = \"1ms\" } }",
        &["in `links.net.pipes.5.jitter`"],
    );
    pipe("scheduler = { type = \"prio\", quantum = \"500 bytes\" }", &["`prio` has no quantum"]);
    pipe("netem = \"delay 10ms\"\ndelay = \"20ms\"", &["`delay` with `netem`"]);
}

#[test]
fn queues() {
    let queue = |lines: &str, expected: &[&str]| fails(&format!("{QUEUE}{lines}"), expected);
    queue("weight = 7", &["`pipe` is missing", "in `links.net.queues.10`"]);
    queue("pipe = 7", &["there is no pipe 7", "pipes: `5`", "in `links.net.queues.10.pipe`"]);
    queue("pipe = 0", &["the number of a pipe from 1 to 65534"]);
    queue("pipe = 5\nweight = 0", &["a weight from 1 to"]);
    queue("pipe = 5\npriority = 3", &["`wf2q+` does not use `priority`", "with `prio`"]);
    queue("pipe = 5\nlongest = \"300 bytes\"", &["`wf2q+` does not use `longest`"]);
    queue("pipe = 5\nqueue = \"dualpi2\"", &["`dualpi2` is the whole queue of a link"]);
    queue("pipe = 5\nloss = { wire = \"1%\" }", &["`wire` in a queue"]);
    queue("pipe = 5\nmost = 7", &["`most` without a mask"]);
    queue("pipe = 5\nmask = { queue = false }", &["an empty mask"]);
    let other = |scheduler: &str, lines: &str, expected: &[&str]| {
        fails(
            &format!("rules = []\npipes.5 = {{ {scheduler} }}\n[links.net.queues.10]\npipe = 5\n{lines}"),
            expected,
        );
    };
    other("scheduler = \"prio\"", "weight = 3", &["`prio` does not use `weight`", "net.toml:9:1"]);
    other(
        "scheduler = \"fq_codel\"",
        "weight = 3",
        &["`weight` in a queue whose pipe separates flows itself"],
    );
    // The sum of weights that QFQ can work with is that of the algorithm.
    other("scheduler = \"qfq\"", "weight = 4000000000", &["`qfq` of pipe 5 does not take this queue"]);
    other("exact-netem = \"delay 10ms\"", "", &["a queue of pipe 5, which is NetEm's single queue"]);
}

#[test]
fn me_is_at_the_first_end() {
    let text = "[hosts.a]\n[hosts.b]\n[junctions.m]\n[links.net]\nbetween = [\"m\", \"b\"]\nrules = [\"100 deny src-ip me\"]\n[links.far]\nbetween = [\"a\", \"m\"]\n";
    let error = Scenario::parse(text, "net.toml").expect_err("it is wrong").to_string();
    assert!(error.contains("rule 100 uses `me`, but `m` is a junction without addresses"), "{error}");
}

#[test]
fn assignments() {
    let lines =
        "rules = []\npipes.5 = { rate = \"1mbit\" }\npipes.6 = { mask = \"all\" }\nqueues.10.pipe = 5\n";
    let text = format!(
        "[hosts.client]\n[hosts.server]\n[links.net]\nbetween = [\"client\", \"server\"]\n{lines}[links.wire]\nbetween = [\"client\", \"server\"]\n"
    );
    let scenario = Scenario::parse(&text, "net.toml").unwrap();
    for (assignment, expected) in [
        ("net.rate=1mbit", "`net` is a link with rules, and has no `rate` of its own"),
        ("net.7.rate=1mbit", "there is no pipe 7"),
        ("net.queue-5.weight=1", "there is no queue 5"),
        ("net.5.rates=1mbit", "unknown key `rates`"),
        ("net.queue-10.rate=1mbit", "unknown key `rate`"),
        ("net.5.mask=all", "what makes links on first use cannot change while the pipe exists"),
        ("net.6.most=7", "how many links a mask makes, and for how long, cannot change"),
        (
            "net.5.scheduler=fq_codel",
            "whether queues share a pipe or it tells flows apart by itself cannot change",
        ),
        ("net.queue-10.pipe=6", "a queue cannot change its pipe while it exists"),
        ("net.queue-10.priority=6", "`wf2q+` does not use `priority`"),
        ("net.queue-10.queue.type=dualpi2", "`dualpi2` is the whole queue of a link"),
        ("net.6.delay={ feed = \"radio\" }", "the feed `radio` in a pipe with a mask"),
        ("wire.5.rate=1mbit", "`wire` has no pipes and queues"),
    ] {
        let mut changed = scenario.clone();
        let error = changed.assign(assignment).expect_err("it is wrong").to_string();
        assert!(error.contains(expected), "{assignment}: {expected}\nis not in\n{error}");
        assert_eq!(changed, scenario);
    }
}
