//! What a person reads whose queues or schedulers are wrong: title, place, path of keys, and what is allowed.

use narrows_scenario::{LinkFlags, Scenario};

/// A scenario whose link has these lines, the first of which is line 6.
fn with(lines: &str) -> String {
    format!("[hosts.client]\n[hosts.server]\n\n[links.access]\nbetween = [\"client\", \"server\"]\n{lines}\n")
}

/// One problem with this title, at this line and column, in this key of the link, that says all of these things.
#[track_caller]
fn fails(lines: &str, title: &str, place: &str, key: &str, says: &[&str]) {
    let error = Scenario::parse(&with(lines), "net.toml").expect_err("it is wrong");
    let text = error.to_string();
    assert_eq!(error.count(), 1, "{text}");
    assert_eq!(text.lines().next(), Some(format!("error: {title}").as_str()), "{text}");
    assert!(text.contains(&format!("--> net.toml:{place}\n")), "{text}");
    assert!(text.contains(&format!("in `links.access{key}`")), "{text}");
    for part in says {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

/// The same for a `drr` of these classes, which stand one to a line from line 7 on.
#[track_caller]
fn classes_fail(classes: &[&str], title: &str, place: &str, key: &str, says: &[&str]) {
    let lines = format!("scheduler = {{ type = \"drr\", classes = [\n{},\n] }}", classes.join(",\n"));
    fails(&lines, title, place, &format!(".scheduler.classes{key}"), says);
}

/// A first class with this condition.
#[track_caller]
fn match_fails(condition: &str, title: &str, column: usize, key: &str, says: &[&str]) {
    let class = format!("{{ name = \"x\", match = {condition} }}");
    let place = format!("7:{column}");
    classes_fail(&[&class, "{ name = \"rest\" }"], title, &place, &format!(".match{key}"), says);
}

#[test]
fn queues() {
    let allowed = "allowed: `fifo`, `red`, `gred`, `choke`, `codel`, `pie`, `sfb` or `dualpi2`";
    fails(
        "queue = \"codle\"",
        "`codle` is not a type of queue",
        "6:9",
        ".queue",
        &["did you mean `codel`?", allowed, "or a bound, like \"13 packets\" or \"64kB\""],
    );
    fails("queue = { type = \"blue\" }", "`blue` is not a type of queue", "6:18", ".queue.type", &[allowed]);
    fails(
        "queue = { target = \"5ms\" }",
        "unknown key `target`",
        "6:11",
        ".queue",
        &["allowed: `type`, `bound` or `drop`", "`target` requires the type `codel`, `pie` or `dualpi2`"],
    );
    fails(
        "queue = { type = \"red\", min = \"15 packets\", max = \"5 packets\" }",
        "`min`, 15 packets, is not below `max`, 5 packets",
        "6:31",
        ".queue",
        &["usual is a `max` of three times `min`"],
    );
    fails(
        "queue = { type = \"red\", min = \"5 packets\", max = \"5 packets\" }",
        "`min`, 5 packets, is not below `max`, 5 packets",
        "6:31",
        ".queue",
        &[],
    );
    fails(
        "queue = { type = \"gred\", min = \"5 packets\", max = \"9kB\" }",
        "`min` is 5 packets and `max` is 9000 bytes: one in packets, one in bytes",
        "6:51",
        ".queue",
        &["use the same unit for both"],
    );
    fails(
        "queue = { type = \"red\", probability = \"150%\" }",
        "`150%` is more than 100%",
        "6:39",
        ".queue.probability",
        &[],
    );
    fails(
        "queue = { type = \"red\", probability = \"0%\" }",
        "a probability of zero drops nothing between the thresholds",
        "6:39",
        ".queue",
        &[],
    );
    fails(
        "queue = { type = \"red\", weight = 0 }",
        "found `0`, expected a number from 0.000000001 to 1",
        "6:34",
        ".queue.weight",
        &[],
    );
    fails(
        "queue = { type = \"codel\", ce-threshold = \"5ms\", ce-match = \"1/3\" }",
        "found `1/3`, expected a value and a mask of one byte each, such as \"0x01/0x03\"",
        "6:60",
        ".queue.ce-match",
        &[],
    );
    fails(
        "queue = { type = \"codel\", target = 5 }",
        "`5` has no unit",
        "6:36",
        ".queue.target",
        &["write a time like \"10ms\""],
    );
    fails(
        "queue = { type = \"pie\", alpha = 500 }",
        "found `500`, expected a number from 0.001 to 100",
        "6:33",
        ".queue.alpha",
        &[],
    );
    fails(
        "queue = { type = \"pie\", update = \"1us\" }",
        "found `1us`, expected a time from 1ms to 10s",
        "6:34",
        ".queue.update",
        &[],
    );
    fails(
        "queue = { type = \"dualpi2\", step = \"1ms\", ramp = { from = \"1ms\", to = \"2ms\" } }",
        "both `step` and `ramp`",
        "6:43",
        ".queue",
        &["keep one of the two"],
    );
    fails(
        "queue = { type = \"dualpi2\", weights = { low = 1, classic = 9 }, shift = \"1ms\" }",
        "both `weights` and `shift`",
        "6:65",
        ".queue",
        &["keep one of the two"],
    );
    fails(
        "mtu = \"1400bytesbytes\"",
        "found `1400bytesbytes`, expected a number of bytes from 68 to 65535, such as 1400",
        "6:7",
        ".mtu",
        &[],
    );
    fails(
        "queue = { type = \"dualpi2\", ramp = { from = \"3ms\", to = \"2ms\" } }",
        "`from` is 3ms, above `to`, which is 2ms",
        "6:36",
        ".queue.ramp",
        &[],
    );
    fails(
        "queue = { type = \"gred\", gentle = false }",
        "unknown key `gentle`",
        "6:26",
        ".queue",
        &["`gentle` requires the type `red`"],
    );
}

#[test]
fn schedules_of_gates() {
    let of = |schedule: &str| {
        format!(
            "scheduler = {{ type = \"taprio\", classes = [{{ name = \"control\", match = {{ dscp = 46 }} }}, {{ name = \"rest\" }}]{schedule} }}"
        )
    };
    fails(&of(""), "`schedule` is missing", "6:13", ".scheduler", &["sched"]);
    fails(
        &of(", schedule = [{ lasts = \"1ms\", open = [\"contorl\"] }]"),
        "`taprio` does not take this: its schedule opens `contorl`, which is no class of it",
        "6:13",
        ".scheduler",
        &[],
    );
}

#[test]
fn schedulers() {
    fails(
        "scheduler = \"wrr\"",
        "`wrr` is not a scheduler",
        "6:13",
        ".scheduler",
        &["allowed: `fifo`, `prio`, `pfifo_fast`, `drr`, `ets`, `taprio`, `wf2q+`, `qfq`"],
    );
    fails(
        "scheduler = { type = \"fq-codel\" }",
        "`fq-codel` is not a scheduler",
        "6:22",
        ".scheduler.type",
        &["did you mean `fq_codel`?"],
    );
    fails(
        "scheduler = {}",
        "`type` is missing",
        "6:13",
        ".scheduler",
        &["say which scheduler: `fifo`, `prio`"],
    );
    fails(
        "scheduler = { type = \"sfq\", classes = [] }",
        "unknown key `classes`",
        "6:29",
        ".scheduler",
        &[
            "allowed: `type`, `bound`, `flows`, `by`, `quantum`, `drop`, `flow-limit` or `flow-queue`",
            "`classes` requires `fifo`, `prio`, `drr`",
        ],
    );
    fails("scheduler = \"prio\"", "`prio` has no classes", "6:13", ".scheduler", &["in order of priority"]);
    fails(
        "scheduler = { type = \"drr\", flows = 3, classes = [{ name = \"b\" }] }",
        "both classes and flows",
        "6:40",
        ".scheduler",
        &[],
    );
    fails(
        "scheduler = { type = \"drr\", flows = 65537 }",
        "found `65537`, expected a number of flows from 1 to 65536",
        "6:37",
        ".scheduler.flows",
        &[],
    );
    fails(
        "scheduler = { type = \"drr\", quantum = \"1 byte\" }",
        "found `1 byte`, expected a quantum from 256 to 1048576 bytes",
        "6:39",
        ".scheduler.quantum",
        &[],
    );
    fails(
        "scheduler = { type = \"sfq\", by = \"port\" }",
        "`port` is not a way to tell flows apart",
        "6:34",
        ".scheduler.by",
        &["allowed: `5-tuple`, `source`, `destination` or `addresses`"],
    );
    fails(
        "rate = \"1mbit\"\nscheduler = \"fq_codel\"\nqueue = \"codel\"",
        "`fq_codel` manages its own queues, but the link's queue is `codel`",
        "8:1",
        ".queue",
        &["remove the queue's type"],
    );
    fails(
        "rate = \"10mbit\"\nup.scheduler = \"dcf\"",
        "`dcf` does not support the link's rate, 10mbit",
        "7:4",
        ".up.scheduler",
        &["rate = \"1mbit\", \"2mbit\", \"5.5mbit\" or \"11mbit\""],
    );
    fails(
        "rate = \"11mbit\"\nscheduler = { type = \"dcf\", window-min = 32 }",
        "found `32`, expected one less than a power of two: 1, 3, 7, 15, 31, … 65535",
        "7:42",
        ".scheduler.window-min",
        &[],
    );
    fails(
        "shared = true\nscheduler = \"csma-cd\"",
        "`csma-cd` on a link without a rate",
        "7:1",
        ".scheduler",
        &["rate = \"10mbit\" or \"100mbit\""],
    );
    fails(
        "rate = \"10mbit\"\nscheduler = { type = \"csma-cd\", propagation = 65 }",
        "found `65`, expected a number of bits from 0 to 64",
        "7:47",
        ".scheduler.propagation",
        &[],
    );
    fails(
        "rate = \"11mbit\"\nscheduler = { type = \"dcf\", window-max = 15 }",
        "the minimum contention window, 31, is above the maximum, 15",
        "7:29",
        ".scheduler",
        &[],
    );
}

#[test]
fn stations() {
    let dcf = |class: &str| {
        format!(
            "rate = \"2mbit\"\nscheduler = {{ type = \"dcf\", classes = [\n{class},\n{{ name = \"rest\" }}] }}"
        )
    };
    let class = |keys: &str| dcf(&format!("{{ name = \"far\", match = {{ dscp = \"ef\" }}, {keys} }}"));
    fails(
        &class("hidden-from = \"resr\""),
        "there is no class `resr`",
        "8:56",
        ".scheduler.classes.hidden-from",
        &["did you mean `rest`?", "classes: `far` or `rest`"],
    );
    fails(
        &class("hidden-from = [\"rest\", \"far\"]"),
        "the station `far` is hidden from itself",
        "8:56",
        ".scheduler.classes.hidden-from",
        &["name the other stations"],
    );
    fails(
        &class("rate = \"54mbit\""),
        "found `54mbit`, expected a rate of 802.11b: \"1mbit\", \"2mbit\", \"5.5mbit\" or \"11mbit\"",
        "8:49",
        ".scheduler.classes.rate",
        &[],
    );
    fails(
        &class("rate = \"5.5mbit\""),
        "the station `far` of `dcf` is faster than the link: 5.5mbit, and the link's rate is 2mbit",
        "7:1",
        ".scheduler",
        &["the link's rate is that of its fastest station"],
    );
    classes_fail(
        &["{ name = \"far\", hidden-from = \"rest\" }"],
        "unknown key `hidden-from`",
        "7:17",
        "",
        &["`hidden-from` applies to classes of `dcf`"],
    );
}

#[test]
fn weights() {
    classes_fail(
        &["{ name = \"a\", weight = 0, match = { dscp = \"ef\" } }", "{ name = \"b\" }"],
        "found `0`, expected a weight from 1 to 4294967295",
        "7:24",
        ".weight",
        &[],
    );
    let qfq = |a: u64, b: u64| {
        format!(
            "scheduler = {{ type = \"qfq\", classes = [\n\
             {{ name = \"a\", weight = {a}, match = {{ dscp = \"ef\" }} }},\n{{ name = \"b\", weight = {b} }},\n] }}"
        )
    };
    // The words are the algorithm's own, the place is that of the weight.
    let error =
        Scenario::parse(&with(&qfq(4_294_967_295, 1)), "net.toml").expect_err("too great").to_string();
    assert!(
        error.starts_with("error: `qfq` does not take this: the weight is 4294967295, the maximum is "),
        "{error}"
    );
    assert!(error.contains("net.toml:7:24\n") && error.contains("scheduler.classes.weight"), "{error}");
    let most: u64 = error
        .lines()
        .next()
        .and_then(|line| line.rsplit(' ').next())
        .and_then(|n| n.parse().ok())
        .expect("a number");
    assert!(Scenario::parse(&with(&qfq(most, 1)), "net.toml").is_ok());
    assert!(Scenario::parse(&with(&qfq(most + 1, 1)), "net.toml").is_err());
    for (name, why) in [
        ("prio", "its classes are bands in order"),
        ("fifo", "it sends first in, first out"),
        ("dcf", "its classes are stations"),
        ("csma-cd", "its classes are stations"),
    ] {
        fails(
            &format!(
                "rate = \"1mbit\"\nscheduler = {{ type = \"{name}\", classes = [\n{{ name = \"a\", weight = 3 }}] }}"
            ),
            &format!("`{name}` does not use `weight`"),
            "8:15",
            ".scheduler.classes",
            &[why],
        );
    }
    classes_fail(
        &["{ name = \"a\", longest = \"300 bytes\" }"],
        "`drr` does not use `longest`",
        "7:15",
        "",
        &["only `qfq`, `gfq` and `kps` sort classes by their longest packets"],
    );
}

#[test]
fn quanta_of_classes() {
    classes_fail(
        &["{ name = \"a\", weight = 2, quantum = \"3000 bytes\" }"],
        "both `weight` and `quantum` in one class",
        "7:27",
        "",
        &["a turn is `weight` times the scheduler's quantum, or `quantum` bytes: use one of them"],
    );
    classes_fail(
        &["{ name = \"a\", quantum = \"0 bytes\" }"],
        "found `0 bytes`, expected a quantum from 1 byte to 1 GiB",
        "7:25",
        ".quantum",
        &[],
    );
    fails(
        "rate = \"1mbit\"\nscheduler = { type = \"qfq\", classes = [\n{ name = \"a\", quantum = \"3000 bytes\" }] }",
        "`qfq` does not use `quantum`",
        "8:15",
        ".scheduler.classes",
        &["only `drr` and `ets` give each class turns of so many bytes"],
    );
    fails(
        "rate = \"1mbit\"\nscheduler = { type = \"ets\", strict = 3, classes = [\n{ name = \"a\", match = { dscp = \"ef\" } }, { name = \"b\" }] }",
        "3 strict classes, and there are 2",
        "7:38",
        ".scheduler.strict",
        &[],
    );
    fails(
        "rate = \"1mbit\"\nscheduler = { type = \"ets\", strict = 1, classes = [\n{ name = \"a\", quantum = \"1kB\" }] }",
        "`quantum` in the class `a`, which is strict",
        "8:25",
        ".scheduler.classes.quantum",
        &["`strict = 1` serves the first classes before the others"],
    );
    fails(
        "scheduler = { type = \"fq\", weights = [65536, 65536] }",
        "found a list, expected three weights, such as [589824, 196608, 65536]",
        "6:38",
        ".scheduler.weights",
        &[],
    );
}

#[test]
fn classes_that_no_packet_gets_to() {
    classes_fail(
        &[
            "{ name = \"a\", match = { dscp = \"ef\" } }",
            "{ name = \"b\" }",
            "{ name = \"c\", match = { port = 1 } }",
        ],
        "no packet reaches the class `c`: `b` takes every packet",
        "9:10",
        "",
        &["it has no `match`", "it must be last"],
    );
    classes_fail(
        &["{ name = \"a\" }", "{ name = \"b\" }"],
        "no packet reaches the class `b`: `a` takes every packet",
        "8:10",
        "",
        &[],
    );
    let rest = "{ name = \"rest\" }";
    for (wide, narrow) in [
        ("{ protocol = \"udp\" }", "{ protocol = \"udp\", destination-port = 5060 }"),
        ("{ port = \"5000-6000\" }", "[{ source-port = 5060 }, { destination-port = [5061, 5062] }]"),
        ("{ source = \"10.0.0.0/8\" }", "{ source = [\"10.1.0.0/16\", \"10.2.3.4\"] }"),
        ("{ source = \"client\" }", "{ source = \"client\", length = \"..100 bytes\" }"),
        ("[{ dscp = \"ef\" }, { dscp = \"va\" }]", "[{ dscp = 44 }, { dscp = 46 }]"),
        ("{ length = \"..300 bytes\" }", "{ length = \"100..200 bytes\" }"),
    ] {
        classes_fail(
            &[
                &format!("{{ name = \"wide\", match = {wide} }}"),
                &format!("{{ name = \"narrow\", match = {narrow} }}"),
                rest,
            ],
            "no packet reaches the class `narrow`: `wide` takes them first",
            "8:28",
            "",
            &["this holds for each of them", "put the narrower one first"],
        );
    }
    // Not the other way round, and hosts are not taken for each other or for networks.
    for (first, second) in [
        ("{ protocol = \"udp\", destination-port = 5060 }", "{ protocol = \"udp\" }"),
        ("{ source = \"client\" }", "{ source = \"server\" }"),
        ("{ source = \"10.213.0.0/16\" }", "{ source = \"client\" }"),
        ("{ source = \"client\" }", "{ source = \"10.213.0.1\" }"),
        ("{ dscp = [\"ef\", \"va\"] }", "{ dscp = [\"va\", \"be\"] }"),
    ] {
        let lines = format!(
            "scheduler = {{ type = \"prio\", classes = [{{ name = \"a\", match = {first} }}, {{ name = \"b\", match = {second} }}, {rest}] }}"
        );
        Scenario::parse(&with(&lines), "net.toml").unwrap_or_else(|error| panic!("{error}"));
    }
    classes_fail(
        &["{ name = \"x\", match = { protocol = \"icmp\", port = 80 } }", rest],
        "no packet can be in the class `x`",
        "7:23",
        "",
        &["the parts of its `match` contradict each other"],
    );
}

#[test]
fn classes() {
    classes_fail(
        &["{ name = \"a\", match = { dscp = \"ef\" } }"],
        "unmatched packets have no class",
        "6:39",
        "",
        &["{ name = \"rest\" }", "default = \"drop\""],
    );
    fails(
        "scheduler = { type = \"drr\", default = \"drop\", classes = [{ name = \"all\" }] }",
        "there is nothing to drop: the class `all` takes every packet",
        "6:29",
        ".scheduler.default",
        &["it has no `match`"],
    );
    classes_fail(
        &["{ name = \"b\", match = { dscp = 3 } }", "{ name = \"b\" }"],
        "duplicate class `b`",
        "8:10",
        "",
        &["the other"],
    );
    classes_fail(&["{ weight = 3 }"], "`name` is missing", "7:1", "", &[]);
    classes_fail(
        &["{ name = \"my class\" }"],
        "`my class` cannot be the name of a class",
        "7:10",
        ".name",
        &["a name has 1 to 64"],
    );
    classes_fail(
        &["{ name = \"a\", queue = { type = \"red\", min = \"9 packets\", max = \"3 packets\" } }"],
        "`min`, 9 packets, is not below `max`, 3 packets",
        "7:45",
        ".queue",
        &[],
    );
    fails(
        "scheduler = { type = \"drr\", classes = [] }",
        "no classes",
        "6:39",
        ".scheduler.classes",
        &["write a list"],
    );
}

#[test]
fn conditions() {
    match_fails("{}", "found a table, expected a condition", 23, "", &["it must be last"]);
    match_fails("[]", "no packet can be in the class `x`", 23, "", &["this one is empty"]);
    match_fails("{ port = [] }", "an empty list, which matches no packet", 32, ".port", &["remove the key"]);
    match_fails("{ prot = \"udp\" }", "unknown key `prot`", 25, "", &["did you mean `protocol`?"]);
    match_fails(
        "{ protocol = \"upd\" }",
        "`upd` is not a protocol",
        36,
        ".protocol",
        &["allowed: `tcp`, `udp`", "or a number from 0 to 255"],
    );
    match_fails(
        "{ protocol = 256 }",
        "found `256`, expected a protocol from 0 to 255",
        36,
        ".protocol",
        &["`tcp`"],
    );
    match_fails(
        "{ dscp = \"af44\" }",
        "`af44` is not a code point",
        32,
        ".dscp",
        &["did you mean `af4", "or a number from 0 to 63"],
    );
    match_fails("{ dscp = [1, 64] }", "found `64`, expected a code point from 0 to 63", 36, ".dscp", &[]);
    match_fails("{ port = \"6100-6000\" }", "the range `6100-6000` is descending", 32, ".port", &[]);
    match_fails(
        "{ source-port = 65536 }",
        "found `65536`, expected a port from 0 to 65535, or a range such as \"6000-6100\"",
        39,
        ".source-port",
        &[],
    );
    match_fails("{ length = \"..300\" }", "`300` has no unit", 34, ".length", &["\"100..200 bytes\""]);
    match_fails(
        "{ length = \"300..200 bytes\" }",
        "the range `300..200 bytes` is descending",
        34,
        ".length",
        &[],
    );
    match_fails(
        "{ length = \"..19 bytes\" }",
        "no IP packet has `..19 bytes`",
        34,
        ".length",
        &["an IP packet has 20 to 65535 bytes"],
    );
    match_fails("{ length = \"65536 bytes..\" }", "no IP packet has `65536 bytes..`", 34, ".length", &[]);
    match_fails("{ length = \"..\" }", "found `..`, expected a range of lengths", 34, ".length", &[]);
    match_fails(
        "{ source = \"sevrer\" }",
        "`sevrer` is not a host, address or network",
        34,
        ".source",
        &["did you mean `server`?"],
    );
    match_fails(
        "{ destination = \"10.0.0.0/33\" }",
        "`33` is not a length of a prefix",
        39,
        ".destination",
        &["0 to 32"],
    );
    match_fails(
        "{ source = \"::/0\" }",
        "`::/0` includes IPv4 addresses",
        34,
        ".source",
        &["remove the key"],
    );
    match_fails(
        "{ from = \"up\" }",
        "`from` distinguishes the directions of a shared medium",
        32,
        ".from",
        &["give `up` or `down` its own scheduler"],
    );
}

#[test]
fn flags_and_assignments() {
    let flags = LinkFlags::default().with("rate", "10mbit").with("scheduler", "fqcodel/sfq");
    let error = Scenario::from_flags(&flags).expect_err("it is wrong").to_string();
    assert!(error.starts_with("error: `fqcodel` is not a scheduler\n --> command line:1:27\n"), "{error}");
    assert!(error.contains("in `--scheduler`") && error.contains("did you mean `fq_codel`?"), "{error}");

    let two = "rate = \"1mbit\"\nscheduler = { type = \"drr\", classes = [{ name = \"voip\", match = { dscp = \"ef\" } }, { name = \"rest\" }] }";
    let mut scenario = Scenario::parse(&with(two), "net.toml").unwrap_or_else(|error| panic!("{error}"));
    let before = scenario.clone();
    for (text, title, says) in [
        ("access.scheduler.vopi.weight=3", "there is no class `vopi`", "did you mean `voip`?"),
        ("access.scheduler.voip.weight=0", "found `0`, expected a weight from 1 to 4294967295", "set:1:30"),
        (
            "access.scheduler.voip.wieght=1",
            "unknown key `scheduler.voip.wieght`",
            "did you mean `scheduler.voip.weight`?",
        ),
        (
            "access.scheduler.quantm=1500B",
            "unknown key `scheduler.quantm`",
            "did you mean `scheduler.quantum`?",
        ),
        ("access.scheduler.target=5ms", "unknown key `target`", "`target` requires `fq_codel` or `fq_pie`"),
        ("access.scheduler.type=wrr", "`wrr` is not a scheduler", "allowed: `fifo`"),
        ("access.scheduler.voip.match={}", "found a table, expected a condition", "set:1:29"),
        ("access.queue.tarket=5ms", "unknown key `queue.tarket`", "did you mean `queue.target`?"),
        ("access.queue.type=codle", "`codle` is not a type of queue", "did you mean `codel`?"),
        ("access.queue.target=5ms", "unknown key `target`", "requires the type `codel`"),
        ("access.scheduler.voip.queue.bound=\"13\"", "`13` has no unit", "set:1:35"),
    ] {
        let error = scenario.assign(text).expect_err("it is wrong").to_string();
        assert!(error.starts_with(&format!("error: {title}\n")), "{text}\n{error}");
        assert!(error.contains(says), "{text}\n{error}");
        assert!(scenario == before, "{text}: a change that is wrong changes nothing");
    }
    scenario.assign("access.down.rate=3mbit").unwrap_or_else(|error| panic!("{error}"));
    let error =
        scenario.assign("access.down.scheduler=dcf").expect_err("802.11b has no such rate").to_string();
    assert!(error.starts_with("error: `dcf` does not support the link's rate, 3mbit\n"), "{error}");
    assert!(error.contains("in `access.down.scheduler`"), "{error}");
    scenario.assign("access.scheduler=fq_pie").unwrap_or_else(|error| panic!("{error}"));
    let error = scenario.assign("access.scheduler.voip.weight=3").expect_err("it has flows").to_string();
    assert!(error.starts_with("error: this `fq_pie` has no named classes"), "{error}");
    scenario.assign("access.scheduler=none").unwrap_or_else(|error| panic!("{error}"));
    let error = scenario.assign("access.scheduler.voip.weight=3").expect_err("it has none").to_string();
    assert!(error.starts_with("error: there is no scheduler to change a part of"), "{error}");
}

#[test]
fn abe() {
    let scheduler = |keys: &str| format!("scheduler = {{ type = \"abe\", {keys} }}");
    fails(
        &scheduler("green = \"efg\""),
        "`efg` is not a code point",
        "6:37",
        ".scheduler.green",
        &["did you mean `ef`?"],
    );
    fails(&scheduler("max-delay = \"-1ms\""), "`-1ms` is below zero", "6:41", ".scheduler.max-delay", &[]);
    fails(&scheduler("classes = []"), "unknown key `classes`", "6:29", ".scheduler", &["`max-delay`"]);
}

#[test]
fn cake() {
    let scheduler = |keys: &str| format!("scheduler = {{ type = \"cake\", {keys} }}");
    fails(
        &scheduler("bandwidth = \"down\""),
        "found `down`, expected a rate above zero, or \"unlimited\"",
        "6:42",
        ".scheduler.bandwidth",
        &[],
    );
    fails(
        &scheduler("tins = \"diffserv5\""),
        "`diffserv5` is not a division into tins",
        "6:37",
        ".scheduler.tins",
        &["did you mean `diffserv"],
    );
    fails(
        &scheduler("overhead = 257"),
        "found `257`, expected a number of bytes from -64 to 256",
        "6:41",
        ".scheduler.overhead",
        &["or \"raw\""],
    );
    fails(
        &scheduler("mpu = \"257 bytes\""),
        "found `257 bytes`, expected a length from 0 to 256 bytes",
        "6:36",
        ".scheduler.mpu",
        &[],
    );
    fails(&scheduler("flows = 3"), "unknown key `flows`", "6:30", ".scheduler", &[]);
}

#[test]
fn delay_lines_in_classes() {
    classes_fail(
        &[r#"{ name = "x", delay = { feed = "radio", ask = "2ms" } }"#],
        "`ask` in the delay of a class",
        "7:23",
        ".delay",
        &["only packets in the delay line of a link can wait for answers: leave it out"],
    );
    classes_fail(
        &[r#"{ name = "x", line-limit = "5 packets" }"#],
        "`line-limit` without `delay`",
        "7:28",
        ".line-limit",
        &["the bound of a queue is `queue`"],
    );
    classes_fail(
        &[r#"{ name = "x", queue = "5 packets", delay = "10ms" }"#],
        "both `queue` and `delay` in one class",
        "7:36",
        "",
        &["a class has a queue, an inner scheduler, netem or a delay line: use one of them"],
    );
    fails(
        r#"delay = { feed = "radio" }
scheduler = { type = "prio", classes = [{ name = "x", delay = { feed = "radio" } }] }"#,
        "the feed `radio` is used twice",
        "7:1",
        ".scheduler",
        &["give each feed of a link a unique name"],
    );
}
