//! tc's language: what scripts come to, and what a person reads whose script is wrong.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cbs;
mod chains;
mod edits;
mod filters;
mod hardware;
mod hfsc;
mod hooks;
mod later;
mod listing;
mod managed;
mod marks;
mod namespaces;
mod network;
mod on_link;
mod scripts;
mod shared;
mod show;
mod stab;
mod taprio;
mod turns;

use std::path::Path;

use narrows_scenario::Scenario;
use narrows_scenario::tc::{Handle, Script};

fn keys(text: &str) -> Vec<String> {
    keys_of(text, false)
}

fn keys_of(text: &str, exact: bool) -> Vec<String> {
    let script = Script::parse(text, "x.sh").unwrap_or_else(|error| panic!("{error}"));
    let all = script.assignments(exact).unwrap_or_else(|error| panic!("{error}"));
    // It is right as a scenario, too.
    let scenario = script.scenario_text(exact).unwrap();
    Scenario::parse(&scenario, "tc").unwrap_or_else(|error| panic!("{error}\n{scenario}"));
    all.into_iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// One problem with this title that points at this word of the script, and says all of these things.
#[track_caller]
fn fails(text: &str, title: &str, at: &str, says: &[&str]) {
    let error =
        Script::parse(text, "x.sh").and_then(|script| script.assignments(false)).expect_err("it is wrong");
    let shown = error.to_string();
    assert_eq!(shown.lines().next(), Some(format!("error: {title}").as_str()), "{shown}");
    let place = text.rfind(at).expect("it stands there");
    let line = text[..place].matches('\n').count() + 1;
    let column = place - text[..place].rfind('\n').map_or(0, |end| end + 1) + 1;
    assert!(shown.contains(&format!("x.sh:{line}:{column}\n")), "{line}:{column}\n{shown}");
    for part in says {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
}

/// As below figure 4.10 of Moe's thesis, with the qdisc of `sch_delay` in place of NetEm.
#[test]
fn a_fed_delay_in_a_class_has_a_feed_of_its_own() {
    let script = "tc qdisc add dev eth0 root handle 1: prio bands 2 priomap 0 0 0 0 0 0 1 1 0 0 0 0 0 0 0 0\n\
                  tc qdisc add dev eth0 parent 1:1 handle 11: delay\n\
                  tc qdisc add dev eth0 parent 1:2 handle 12: tbf rate 1mbit burst 5kb limit 30kb\n\
                  tc qdisc add dev eth0 parent 12:1 handle 13: delay limit 50 reorder true";
    let all = keys(script).join("\n");
    for part in [
        "{ name = \"1:1\", delay = { feed = \"delay-1-1\", on-empty = \"zero\" }, line-limit = \"1000 packets\"",
        "classes = [{ name = \"12:1\", delay = { feed = \"delay-12-1\", on-empty = \"zero\", order = \"allow\" }, line-limit = \"50 packets\" }]",
    ] {
        assert!(all.contains(part), "{part}\n{all}");
    }
    let inside = format!("{script}\ntc qdisc add dev eth0 parent 13:1 handle 14: pfifo limit 5");
    fails(
        &inside,
        "a discipline in `delay` in a class",
        "tc qdisc add dev eth0 parent 13:1",
        &["put `delay` inside it instead"],
    );
}

#[test]
fn a_token_bucket_and_netem_become_one_link_in_either_order() {
    let bucket = "link.up.scheduler={ type = \"tbf\", rate = \"1mbit\", burst = \"1540 bytes\", bound = \"15400 bytes\" }";
    let expected = ["link.up.delay=\"100ms\"", "link.up.overhead=\"frame\"", bucket];
    let outer = "tc qdisc add dev eth0 root handle 1:0 tbf rate 1mbit \\  \n  burst 1540 limit 15400\ntc qdisc add dev eth0 parent 1:1 handle 10: netem delay 100ms";
    // Where netem is in the bucket, the bucket's own limit is of no effect: netem's is, which nobody said.
    let unbounded = bucket.replace(", bound = \"15400 bytes\"", "");
    let queue = "link.up.queue=\"1000 packets\"";
    assert_eq!(
        keys(outer),
        ["link.up.delay=\"100ms\"", queue, "link.up.overhead=\"frame\"", unbounded.as_str()]
    );
    let limited = keys(&outer.replace("delay 100ms", "delay 100ms limit 40"));
    assert_eq!(limited[1], "link.up.queue=\"40 packets\"");
    let inner = "tc qdisc add dev eth0 root handle 1: netem delay 100ms\ntc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 1mbit burst 1540 limit 15400\n";
    assert_eq!(keys(inner), expected);
    for text in [outer, inner] {
        let devices = Script::parse(text, "x.sh").unwrap().devices(false).unwrap();
        assert!(devices[0].egress.notes[0].contains("become one link with two queues"), "{devices:?}");
    }
    // What is to be said about a tree inside of it is said.
    let tree = "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 1540 limit 15400\n\
        tc qdisc add dev eth0 parent 1:1 handle 2: htb\ntc class add dev eth0 parent 2: classid 2:1 htb rate 1mbit\n";
    let devices = Script::parse(tree, "x.sh").unwrap().devices(false).unwrap();
    let notes = &devices[0].egress.notes;
    assert_eq!(notes[0], "`limit` of tbf has no effect, as in the kernel: its inner 2: bounds the backlog.");
    assert!(notes[1].contains("are not shaped, as in the kernel"), "{devices:?}");
    let fifo = "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 1540 latency 70ms\n\
        tc qdisc add dev eth0 parent 1:1 pfifo limit 100\n";
    assert_eq!(
        keys(fifo)[1],
        "link.up.scheduler={ type = \"tbf\", rate = \"1mbit\", burst = \"1540 bytes\", classes = [{ name = \"1:1\", queue = \"100 packets\" }] }"
    );
    // The one queue is kept where it is asked for.
    assert_eq!(
        keys_of(outer, true),
        [
            "link.up.overhead=\"frame\"",
            "link.up.scheduler={ type = \"tbf\", rate = \"1mbit\", burst = \"1540 bytes\", classes = [{ name = \"1:1\", netem = \"delay 100ms\" }] }",
        ]
    );
    assert_eq!(
        keys_of(inner, true),
        [
            "link.up.exact-netem=\"delay 100ms\"",
            "link.up.overhead=\"frame\"",
            "link.up.scheduler={ type = \"tbf\", rate = \"1mbit\", burst = \"1540 bytes\", bound = \"15400 bytes\" }",
        ]
    );
}

#[test]
fn what_a_packet_costs_a_bucket_is_the_links_overhead() {
    let tbf = |options: &str| {
        keys(&format!("tc qdisc add dev eth0 root tbf rate 1mbit burst 5kb latency 70ms {options}")).remove(0)
    };
    assert_eq!(tbf("overhead 4"), "link.up.overhead={ base = \"frame\", bytes = 4 }");
    assert_eq!(
        tbf("overhead -10 linklayer adsl"),
        "link.up.overhead={ base = \"frame\", bytes = -10, cells = \"atm\" }"
    );
    assert_eq!(tbf("linklayer ethernet overhead 0"), "link.up.overhead=\"frame\"");
    let inside = "tc qdisc add dev eth0 root handle 1: prio\n\
        tc qdisc add dev eth0 parent 1:1 tbf rate 1mbit burst 5kb latency 70ms overhead 4\n";
    let error = Script::parse(inside, "x.sh").unwrap().devices(false).unwrap_err().to_string();
    assert!(error.contains("`overhead` or `linklayer` of a tbf in a class"), "{error}");
}

/// Linux 6.12: `txqueuelen`, `SFQ_MAX_DEPTH`, `DEFAULT_CODEL_LIMIT` and the `init` functions of the others.
#[test]
fn limits_that_are_not_said_are_the_kernels_at_the_root_and_in_a_class() {
    for (discipline, limit) in [
        ("pfifo", "1000 packets"),
        ("bfifo", "1514000 bytes"),
        ("codel", "1000 packets"),
        ("pie", "1000 packets"),
        ("dualpi2", "10000 packets"),
        ("sfb", "1000 packets"),
        ("hhf", "1000 packets"),
        ("sfq", "127 packets"),
        ("fq_codel", "10240 packets"),
        ("fq_pie", "10240 packets"),
    ] {
        let root = keys(&format!("tc qdisc add dev eth0 root {discipline}")).join(" ");
        assert!(root.contains(&format!("\"{limit}\"")), "{discipline}: {root}");
        let class = keys(&format!(
            "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 parent 1:1 {discipline}"
        ));
        let scheduler = class.iter().find(|key| key.starts_with("link.up.scheduler=")).unwrap();
        assert!(scheduler.contains(&format!("\"{limit}\"")), "{discipline}: {scheduler}");
    }
    let bands = keys("tc qdisc add dev eth0 root pfifo_fast");
    assert_eq!(bands, ["link.up.queue=\"1000 packets\"", "link.up.scheduler=\"pfifo_fast\""]);
}

/// As the `change` functions of the kernel have it.
#[test]
fn a_change_keeps_what_it_does_not_name() {
    let then = |discipline: &str, verb: &str, change: &str| {
        keys(&format!("tc qdisc add dev eth0 root {discipline}\ntc qdisc {verb} dev eth0 root {change}\n"))
            .into_iter()
            .find(|key| key.contains("link.up.queue") || key.contains("link.up.scheduler"))
            .unwrap()
    };
    for verb in ["change", "replace"] {
        let fq = then("fq_codel limit 500 target 7ms", verb, "fq_codel target 9ms noecn");
        for part in ["bound = \"500 packets\"", "target = \"9ms\"", "ecn = false"] {
            assert!(fq.contains(part), "{fq}");
        }
        let codel = then("codel limit 500 ecn", verb, "codel target 9ms");
        assert!(codel.contains("bound = \"500 packets\"") && codel.contains("ecn = true"), "{codel}");
        let pie = then("pie limit 500 alpha 4", verb, "pie beta 8");
        assert!(pie.contains("500 packets") && pie.contains("alpha = 0.25, beta = 0.5"), "{pie}");
        let cake = then("cake bandwidth 9mbit docsis hosts", verb, "cake rtt 7ms raw unlimited diffserv4");
        for part in ["unlimited", "\"hosts\"", "\"7ms\"", "\"raw\"", "\"64 bytes\"", "\"diffserv4\""] {
            assert!(cake.contains(part), "{cake}");
        }
        // RED is told all of it each time.
        let red = "limit 200000 min 15000 max 45000 avpkt 1000";
        let red = then(&format!("red {red} probability 0.3 ecn"), verb, &format!("red {red}"));
        assert!(red.contains("probability = 0.02") && red.contains("ecn = false"), "{red}");
        assert_eq!(then("pfifo limit 5", verb, "pfifo limit 7"), "link.up.queue=\"7 packets\"");
        assert_eq!(then("pfifo limit 5", verb, "pfifo"), "link.up.queue=\"5 packets\"", "nothing is said");
    }
    fails(
        "tc qdisc add dev eth0 root fq_codel\ntc qdisc change dev eth0 root fq_codel flows 64\n",
        "the number of flows cannot be changed, nor can it in the kernel",
        "tc qdisc change",
        &["use `del`"],
    );
    let words = |change: &str| {
        let text = format!(
            "tc qdisc add dev eth0 root fq_codel limit 500\ntc qdisc change dev eth0 root fq_codel {change}\n"
        );
        Script::parse(&text, "x.sh").unwrap().explain().unwrap()[1].words[1].clone()
    };
    assert_eq!(words("target 9ms noecn"), "Sets `target = \"9ms\"`, `ecn = false`; all else stays.");
    assert_eq!(words(""), "No option is given: nothing changes.");
    // With another name it is another discipline.
    let anew = then("fq_codel limit 500", "replace", "handle 7: fq_codel");
    assert!(anew.contains("10240 packets"), "{anew}");
    fails(
        "tc qdisc add dev eth0 root sfq limit 60\ntc qdisc change dev eth0 root sfq quantum 3000\n",
        "`sfq` cannot be changed, nor can it in the kernel",
        "tc qdisc change",
        &["`del` removes it"],
    );
    fails(
        "tc qdisc add dev eth0 root handle 1: htb\ntc qdisc replace dev eth0 root handle 1: htb default 20\n",
        "`htb` cannot be changed, nor can it in the kernel",
        "tc qdisc replace",
        &["`del` removes it"],
    );
}

#[test]
fn what_is_passed_over_is_said() {
    let said = |text: &str| {
        let all = Script::parse(&format!("tc qdisc add dev eth0 root {text}\n"), "x.sh")
            .unwrap()
            .explain()
            .unwrap();
        all[0].words.join(" ")
    };
    for (text, word) in [
        ("sfq perturb 10", "`perturb`"),
        ("sfq flows 20", "`flows`"),
        ("fq_codel memory_limit 32Mb", "`memory_limit`"),
        ("fq_codel drop_batch 8", "`drop_batch`"),
        ("fq_pie memory_limit 32Mb", "`memory_limit`"),
        ("cake nat", "`nat`"),
        ("cake no-split-gso", "`no-split-gso`"),
    ] {
        assert!(said(text).contains(&format!("{word} has no effect")), "{}", said(text));
    }
}

/// tc says so, with an error that scripts pass over, and they go on.
#[test]
fn to_take_away_what_is_not_there_is_no_error() {
    let text = "tc qdisc del dev eth0 parent 1:1\ntc qdisc del dev eth0 root\ntc qdisc del dev eth0 ingress\n\
        tc qdisc add dev eth0 root pfifo limit 5\ntc qdisc del dev eth0 parent 7:1\n";
    assert_eq!(keys(text), ["link.up.queue=\"5 packets\""]);
    let all = Script::parse(text, "x.sh").unwrap().explain().unwrap();
    assert!(all[0].words.iter().any(|words| words.starts_with("There is nothing to delete")), "{all:?}");
}

#[test]
fn the_default_of_htb_is_a_number_alone() {
    fails(
        "tc qdisc add dev eth0 root handle 1: htb default 1:10\n",
        "found `1:10`, expected a class number without its discipline",
        "1:10",
        &["default 10"],
    );
}

/// Lines of published scripts.
#[test]
fn commands_and_words_are_those_of_a_shell() {
    let expected = keys(
        "tc qdisc add dev eth0 root handle 1: netem delay 10ms loss 2%\ntc qdisc add dev eth0 parent 1:1 tbf rate 1mbit burst 5kb latency 70ms",
    );
    assert_eq!(expected.len(), 4, "{expected:?}");
    for joint in
        ["&&", ";", " && \\\n", " ;\n", "2>/dev/null;", "> /dev/null 2>&1 &&", "|| true;", "|| exit 1\n"]
    {
        let text = format!(
            "tc qdisc del dev eth0 root || true; tc qdisc add dev \"eth0\" root handle '1:' netem delay 10ms loss \"2%\" {joint} tc qdisc add dev eth0 parent \"1:1\" tbf rate 1mbit burst 5kb latency 70ms"
        );
        assert_eq!(keys(&text), expected, "{joint}");
    }
    let class = keys(
        "tc qdisc add dev e root handle 1: prio\ntc filter add dev e parent 1: u32 match ip dst \"10.0.0.1/32\" flowid \"1:1\"\ntc -s qdisc show dev e | grep prio",
    );
    assert!(class.iter().any(|key| key.contains("10.0.0.1")), "{class:?}");
    for (text, title, at) in [
        (
            "setup || tc qdisc add dev e root sfq\n",
            "what depends on the success or failure of another command",
            "tc qdisc add dev e root sfq",
        ),
        ("tc qdisc add dev e root pfifo limit \"5\n", "a quote that is not closed", "\"5"),
        ("tc qdisc add dev \"$IF\" root pfifo\n", "`$IF` is a variable of a shell that is not set", "$IF"),
        ("tc qdisc add dev e root pfifo; reboot\n", "`reboot` is not a command of tc", "reboot"),
        ("cat x | tc -batch -\n", "a tc command that reads another command's output", "tc -batch -"),
    ] {
        fails(text, title, at, &[]);
    }
}

#[test]
fn a_mask_of_the_tos_byte_has_its_ecn_bits() {
    let classes = |options: &str| {
        keys(&format!(
            "tc qdisc add dev e root handle 1: prio\ntc filter add dev e parent 1: u32 match ip {options} flowid 1:1"
        ))
        .into_iter()
        .find(|key| key.contains("match"))
        .unwrap()
    };
    let exact = classes("tos 0x10 0xff");
    assert!(exact.contains("dscp = \"4\"") || exact.contains("dscp = 4"), "{exact}");
    assert!(exact.contains("ecn = \"not-ect\""), "{exact}");
    let point = classes("dsfield 0xb8 0xfc");
    assert!(point.contains("dscp = \"ef\"") && !point.contains("ecn"), "{point}");
    let marked = classes("tos 3 3");
    assert!(marked.contains("match = { ecn = \"ce\", family = \"ipv4\" }"), "{marked}");
    let capable = classes("tos 1 1");
    assert!(capable.contains("ecn = [\"ect1\", \"ce\"]"), "{capable}");
}

/// Figure 4.10 of the thesis on DBHPD: the numbers of classes are not those of their handles.
#[test]
fn code_points_go_to_the_class_of_that_number() {
    let text = "tc qdisc add dev eth3 root handle 8001: hpd dscp 46 class 1 dscp 10 class 2\n\
        tc class add dev eth3 parent 8001: classid 8001:8001 hpd num 1 ewma ewma limit 0 qlen 50 ddp 1 gamma 512 weight 512\n\
        tc class add dev eth3 parent 8001: classid 8001:8003 hpd num 3 default qlen 50 ddp 16 gamma 768 weight 256\n\
        tc class add dev eth3 parent 8001: classid 8001:8002 hpd num 2 qlen 50 ddp 4 gamma 256 weight 768\n";
    let scheduler = keys(text).into_iter().find(|key| key.contains("hpd")).unwrap();
    for (name, point) in [("8001:1", "ef"), ("8001:2", "af11")] {
        let class =
            scheduler.split("name = ").find(|class| class.starts_with(&format!("\"{name}\""))).unwrap();
        assert!(class.contains(&format!("match = {{ dscp = \"{point}\" }}")), "{scheduler}");
    }
    fails(
        &text.replace("dscp 10 class 2", "dscp 10 class 4"),
        "`dscp 10 class 4`: no class has the number 4",
        "tc qdisc",
        &["there is 1, 2, 3: `num` of a class says its number"],
    );
}

#[test]
fn token_buckets() {
    let tbf = |options: &str| keys(&format!("tc qdisc add dev eth0 root tbf {options}")).remove(1);
    assert_eq!(
        tbf("rate 0.5mbit burst 5kb latency 70ms peakrate 1mbit minburst 1540"),
        "link.up.scheduler={ type = \"tbf\", rate = \"500kbit\", burst = \"5120 bytes\", latency = \"70ms\", peakrate = \"1mbit\", mtu = \"1540 bytes\" }"
    );
    // Bare numbers: bits a second, bytes, microseconds.
    assert_eq!(
        tbf("rate 1000000 buffer 10000/8 latency 50000 mpu 64"),
        "link.up.scheduler={ type = \"tbf\", rate = \"1mbit\", burst = \"10000 bytes\", latency = \"50ms\", mpu = \"64 bytes\" }"
    );
}

#[test]
fn classes_found_by_filters_in_their_order() {
    let tree = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 1\n\
        tc class add dev eth0 parent 1:1 classid 1:20 htb rate 8mbit ceil 10mbit\n";
    let one =
        "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:10\n";
    let scheduler = keys(&format!("{tree}{one}")).remove(2);
    assert_eq!(
        scheduler,
        "link.up.scheduler={ type = \"htb\", classes = [ \
         { name = \"1:1\", rate = \"10mbit\", burst = \"1600 bytes\", cburst = \"1600 bytes\" }, \
         { name = \"1:10\", parent = \"1:1\", rate = \"2mbit\", ceil = \"10mbit\", priority = 1, burst = \"1600 bytes\", cburst = \"1600 bytes\", match = { destination-port = 80, family = \"ipv4\" } }, \
         { name = \"1:20\", parent = \"1:1\", rate = \"8mbit\", ceil = \"10mbit\", burst = \"1600 bytes\", cburst = \"1600 bytes\" } ] }"
    );
    // A filter for the default class that goes before: classes alone cannot say that.
    let before = "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip sport 22 0xffff flowid 1:20\n\
        tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff flowid 1:10\n";
    let scheduler = keys(&format!("{tree}{before}")).remove(2);
    let filters = "filters = [ { match = { source-port = 22, family = \"ipv4\" }, class = \"1:20\" }, { match = { protocol = \"tcp\", family = \"ipv4\" }, class = \"1:10\" } ], default = \"1:20\"";
    assert!(scheduler.contains(filters), "{scheduler}");
    // Priorities count, and not the order in the script; without one, the last filter goes first.
    let swapped = "tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff flowid 1:10\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip sport 22 0xffff flowid 1:20\n";
    assert_eq!(keys(&format!("{tree}{swapped}")), keys(&format!("{tree}{before}")));
    let bare = swapped.replace(" prio 2", "").replace(" prio 1", "");
    assert_eq!(keys(&format!("{tree}{bare}")), keys(&format!("{tree}{before}")));
}

/// As sch_htb, sch_prio and sch_hfsc of Linux 6.12 read a class `MAJOR:0`.
#[test]
fn a_filter_may_name_the_discipline_itself() {
    let filters = "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10\n\
        tc filter add dev eth0 parent 1:0 prio 9 u32 match ip dport 80 0xffff flowid 1:0\n";
    let tree = |root: &str, class: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: {root}\n\
             tc class add dev eth0 parent 1: est 1sec 4sec classid 1:1 {class} quantum 15\n\
             tc class add dev eth0 parent 1:1 classid 1:10 {class}\ntc class add dev eth0 parent 1:1 classid 1:11 {class}\n{filters}"
        )
    };
    let htb = keys(&tree("htb default 11", "htb rate 1mbit")).remove(2);
    for part in [
        "name = \"direct\", rate = \"100gbit\"",
        "destination-port = 80, family = \"ipv4\" }, class = \"direct\"",
        "default = \"1:11\"",
    ] {
        assert!(htb.contains(part), "{part}\n{htb}");
    }
    assert!(!htb.contains("quantum"), "an inner class has no turns: {htb}");
    let hfsc = keys(&tree("hfsc default 11", "hfsc ls rate 1mbit").replace(" quantum 15", "")).remove(2);
    assert!(!hfsc.contains("destination-port"), "as those that no filter takes: {hfsc}");
    let bands = "tc qdisc add dev eth0 root handle 1: prio\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff class 1:0\n";
    let prio = keys(bands).join("\n");
    assert!(
        prio.contains("destination-port = 80, family = \"ipv4\" }, class = \"1:2\""),
        "that of priority 0: {prio}"
    );
}

#[test]
fn filters_of_inner_classes_hold_beside_those_that_lead_there() {
    let text = "tc qdisc add dev eth0 root handle 1: htb\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:20 htb rate 8mbit\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:1\n\
        tc filter add dev eth0 parent 1:1 protocol ip prio 1 u32 match ip dst 10.9.0.0/16 match ip dport 80 0xfff0 flowid 1:10\n\
        tc filter add dev eth0 parent 1:1 protocol ip prio 2 u32 match u32 0 0 flowid 1:20\n";
    let scheduler = keys(text).remove(2);
    for part in [
        "match = { destination = \"10.9.0.0/16\", destination-port = \"80-95\" }",
        "name = \"1:20\", parent = \"1:1\", rate = \"8mbit\", burst = \"1600 bytes\", cburst = \"1600 bytes\", match = { destination = \"10.0.0.0/8\" }",
        // What no filter takes goes unshaped.
        "{ name = \"direct\", rate = \"100gbit\"",
    ] {
        assert!(scheduler.contains(part), "{part}\n{scheduler}");
    }
}

#[test]
fn selectors() {
    let of = |selector: &str| {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: prio priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2\n\
             tc filter add dev eth0 parent 1: prio 1 {selector} flowid 1:1\n"
        );
        let all = keys(&text).remove(2);
        let start = all.find("match = ").unwrap_or_else(|| panic!("{all}")) + 8;
        all[start..start + all[start..].find(" }").unwrap() + 2].to_string()
    };
    for (selector, expected) in [
        ("u32 match ip src 10.0.0.1", "{ source = \"10.0.0.1\" }"),
        ("u32 match ip6 dst 2001:db8::/32", "{ destination = \"2001:db8::/32\" }"),
        (
            "u32 match ip protocol 17 0xff match ip sport 5000 0xfff8",
            "{ protocol = \"udp\", source-port = \"5000-5007\", family = \"ipv4\" }",
        ),
        ("u32 match ip tos 0x10 0xff", "{ dscp = 4, ecn = \"not-ect\", family = \"ipv4\" }"),
        ("u32 match ip tos 0x10 0xfc", "{ dscp = 4, family = \"ipv4\" }"),
        ("u32 match u8 0x06 0xff at 9", "{ protocol = \"tcp\", family = \"ipv4\" }"),
        ("u32 match u16 0x0000 0xffc0 at 2", "{ length = \"..63 bytes\", family = \"ipv4\" }"),
        ("u32 match u16 0x0050 0xffff at 22", "{ destination-port = 80, family = \"ipv4\" }"),
        ("u32 match u32 0x0a090000 0xffff0000 at 16", "{ destination = \"10.9.0.0/16\" }"),
        // Masks are hexadecimal, with 0x or without; values are as C has them.
        ("u32 match u32 0x0a090000 ffff0000 at 16", "{ destination = \"10.9.0.0/16\" }"),
        ("u32 match u16 80 ffff at 22", "{ destination-port = 80, family = \"ipv4\" }"),
        ("u32 match u16 0120 fff0 at 22", "{ destination-port = \"80-95\", family = \"ipv4\" }"),
        ("u32 match ip tos 0x10 ff", "{ dscp = 4, ecn = \"not-ect\", family = \"ipv4\" }"),
        // Conditions of one filter all hold, also where one is part of the other.
        (
            "u32 match ip src 10.0.0.0/8 match ip src 10.9.0.0/16 match ip dst 10.9.0.1 match ip dst 10.0.0.0/8",
            "{ source = \"10.9.0.0/16\", destination = \"10.9.0.1\" }",
        ),
        (
            "u32 match ip dport 80 0xfff0 match ip dport 84 0xfffc match ip sport 0 0x8000 match ip sport 5000 0xffff",
            "{ source-port = 5000, destination-port = \"84-87\", family = \"ipv4\" }",
        ),
        (
            "u32 match u16 0x0000 0xffc0 at 2 match u16 0x0020 0xffe0 at 2",
            "{ length = \"32..63 bytes\", family = \"ipv4\" }",
        ),
    ] {
        assert_eq!(of(selector), expected, "{selector}");
    }
}

#[test]
fn hybrid_proportional_delay() {
    let text = "tc qdisc add dev eth3 root handle 8001: hpd dscp 46 class 1\n\
        tc class add dev eth3 parent 8001: hpd num 2 default ewma ewmape limit 0 qlen 50 ddp 4 gamma 256 weight 768 restart 25 cycle 2000 properr 8\n\
        tc class add dev eth3 parent 8001: classid 8001:1 hpd num 1 ewma ewmar limit 5000 qlen 50 ddp 1 gamma 512 weight 512 restart 20 cycle 3000 properr 8\n";
    let text = &keys(text)[2];
    for part in [
        "{ name = \"8001:1\", ddp = 1, gamma = 512, g = 512, limit = \"5ms\", estimator = { type = \"ewma-r\", threshold = 20, cycle = \"3ms\" }, queue = \"50 packets\", match = { dscp = \"ef\" } }",
        "{ name = \"8001:2\", ddp = 4, gamma = 256, g = 768, estimator = { type = \"ewma-pe\", steps = 8, width = \"12.5%\" }, queue = \"50 packets\" } ]",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn changes_and_deletions() {
    let base = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
        tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n";
    let changed = keys(&format!("{base}tc class change dev eth0 parent 1: classid 1:10 htb rate 2mbit\n"));
    assert!(changed[2].contains("rate = \"2mbit\""), "{changed:?}");
    let replaced = keys(&format!("{base}tc qdisc replace dev eth0 root handle 1: pfifo limit 5\n"));
    assert_eq!(replaced, ["link.up.queue=\"5 packets\""]);
    assert_eq!(keys(&format!("{base}tc qdisc del dev eth0 root\n")), Vec::<String>::new());
    // A shell's own matters around a command are passed over, and so are comments.
    assert_eq!(
        keys(
            "#!/bin/sh\nsudo tc qdisc del dev eth0 root 2>/dev/null || true\n\n  /sbin/tc qdisc add dev eth0 root pfifo limit 7 # few\n"
        ),
        ["link.up.queue=\"7 packets\""]
    );
}

#[test]
fn ingress_polices_the_other_way() {
    let text = "tc qdisc add dev eth0 handle ffff: ingress\n\
        tc filter add dev eth0 parent ffff: protocol ip prio 50 u32 match ip src 0.0.0.0/0 police rate 10mbit burst 10k drop flowid :1\n";
    let policer = "link.down.policer={ match = { family = \"ipv4\" }, rate = \"10mbit\", burst = \"10240 bytes\", overhead = \"ip\"";
    assert_eq!(keys(text), [format!("{policer} }}")]);
    for (beyond, drops) in
        [("", true), ("conform-exceed reclassify", true), ("conform-exceed pipe/ok", false)]
    {
        let exceed = if drops { "" } else { ", exceed = \"pass\"" };
        assert_eq!(keys(&text.replace("drop", beyond)), [format!("{policer}{exceed} }}")], "{beyond}");
    }
    let clsact = "tc qdisc add dev eth0 clsact\n\
        tc filter add dev eth0 ingress protocol ip matchall action police rate 10mbit burst 10k conform-exceed drop\n";
    assert_eq!(keys(clsact), keys(text));
    // Packets that leave have their link header.
    for place in ["egress", "parent ffff:fff3"] {
        let outgoing = clsact.replace("ingress", place);
        let leaving = policer.replace("down", "up").replace("\"ip\"", "\"frame\"");
        assert_eq!(keys(&outgoing), [format!("{leaving} }}")]);
    }
    let some = keys(&text.replace("0.0.0.0/0", "10.0.0.0/8"));
    assert_eq!(some, [format!("{} }}", policer.replace("family = \"ipv4\"", "source = \"10.0.0.0/8\""))]);
    let all = keys(&text.replace("protocol ip", "protocol all").replace("ip src 0.0.0.0/0", "u32 0 0"));
    assert_eq!(all, [format!("{} }}", policer.replace("match = { family = \"ipv4\" }, ", ""))]);
}

/// As sqm-scripts and wondershaper write it.
const REDIRECTED: &str = "IFACE=eth0\nIFB=ifb4$IFACE\nTC='/sbin/tc'\nmodprobe ifb\nip link add name $IFB type ifb\n\
    ip link set dev $IFB up\n$TC qdisc add dev \"$IFACE\" root handle 1: pfifo limit 7\n\
    $TC qdisc add dev $IFACE handle ffff: ingress\n$TC qdisc add dev $IFB root tbf rate 5mbit burst 10k latency 50ms\n\
    $TC filter add dev $IFACE parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev $IFB\n";

#[test]
fn arriving_packets_pass_the_device_they_are_redirected_to() {
    assert_eq!(
        keys(REDIRECTED),
        [
            "link.up.queue=\"7 packets\"",
            "link.down.overhead=\"frame\"",
            "link.down.scheduler={ type = \"tbf\", rate = \"5mbit\", burst = \"10240 bytes\", latency = \"50ms\" }",
        ]
    );
    let said = Script::parse(REDIRECTED, "x.sh").unwrap().explain().unwrap();
    let lines: Vec<usize> = said.iter().map(|explained| explained.line).collect();
    assert_eq!(lines, [4, 5, 6, 7, 8, 9, 10]);
    assert!(said[0].words[0].starts_with("Not a command of tc: ignored."), "{said:?}");
    assert!(said[6].words[0].ends_with("go to ifb4eth0."), "{said:?}");
    let remarks = Script::parse(REDIRECTED, "x.sh").unwrap().devices(false).unwrap();
    assert!(remarks[0].ingress.notes[0].starts_with("Packets that arrive pass ifb4eth0 first"));
    // Without a discipline there they pass it.
    let bare = REDIRECTED.replace("$TC qdisc add dev $IFB root tbf rate 5mbit burst 10k latency 50ms\n", "");
    assert_eq!(keys(&bare), ["link.up.queue=\"7 packets\""]);
}

#[test]
fn redirections_that_a_link_cannot_have() {
    let some = REDIRECTED.replace("match u32 0 0", "match ip src 10.0.0.0/8")
        + "$TC filter add dev $IFACE parent ffff: protocol all prio 99 matchall action police rate 1mbit burst 10k\n";
    fails(
        &some,
        "a redirection of some arriving packets",
        "$TC filter add dev $IFACE parent ffff: protocol all prio 10",
        &["of a direction"],
    );
    let mirror = REDIRECTED.replace("egress redirect", "egress mirror");
    fails(
        &mirror,
        "copies of packets leave by ifb4eth0, which this script configures",
        "$TC filter",
        &["`mirror`"],
    );
    let nowhere = REDIRECTED.replace("redirect dev $IFB", "redirect");
    fails(&nowhere, "`mirred` without `dev`", "mirred", &["redirect dev ifb0"]);
    // Packets of `lo` meet both, one after the other.
    let twice = REDIRECTED.replace("pfifo limit 7", "tbf rate 1mbit burst 10k latency 50ms");
    let twice = twice.replace("eth0", "lo");
    let found = keys(&twice);
    assert!(found.iter().all(|key| key.starts_with("client.") || key.starts_with("server.")), "{found:?}");
}

#[test]
fn the_kernels_single_queue_has_no_filters_before_it() {
    let text = "tc qdisc add dev eth0 ingress\n\
        tc filter add dev eth0 ingress matchall action police rate 50mbit burst 64k drop\n\
        tc qdisc add dev eth1 root netem delay 3ms\n";
    let script = Script::parse(text, "x.sh").unwrap();
    script.scenario_text(false).unwrap();
    let error = script.scenario_text(true).unwrap_err().to_string();
    assert!(error.contains("link.down would have the kernel's single queue"), "{error}");
}

#[test]
fn devices_in_network_namespaces() {
    let text = "ip netns exec a tc qdisc add dev eth0 root pfifo limit 1\ntc -n b qdisc add dev eth0 root pfifo limit 2\n";
    assert_eq!(keys(text), ["link.up.queue=\"1 packet\"", "link.down.queue=\"2 packets\""]);
    let named = Script::parse(text, "x.sh").unwrap();
    assert_eq!(named.changed_devices(), ["a/eth0", "b/eth0"]);
    fails("ip netns exec a reboot\n", "`ip` is not a command of tc", "ip", &["narrows tc commands SCRIPT"]);
    fails("ifconfig eth0 down mtu 900\n", "`ifconfig` is not a command of tc", "ifconfig", &[]);
    for line in [
        "ip link set dev eth0 mtu 1500 down",
        "ip netns exec a make mtu 1500",
        "ip route add default mtu 1500 realm 3",
    ] {
        fails(&format!("{line}\n"), "`ip` is not a command of tc", "ip", &[]);
    }
    let limit = "tc qdisc add dev eth0 root pfifo limit 1\n";
    let again = format!(
        "ip link set dev eth0 down\nifconfig ifb0 down\n{limit}ip link set eth0 up\nip li set ifb0 up\n"
    );
    assert_eq!(keys(&again), ["link.up.queue=\"1 packet\""]);
    for late in ["", "sleep 1\nip link set eth0 up\n"] {
        let text = format!("{limit}ip link set dev eth0 down\n{late}");
        fails(
            &text,
            "`eth0` is taken down, and no packet passes it",
            "ip link set dev eth0 down",
            &["`outage`"],
        );
    }
    let ended = "tc qdisc add dev e root pfifo limit 1\nexit 0\ntc qdisc change dev e root pfifo limit 2\n";
    assert_eq!(keys(ended), ["link.up.queue=\"1 packet\""]);
    let error = Script::parse("tc -n\n", "x.sh").unwrap_err().to_string();
    assert!(error.contains("`-n` lacks the name of a network namespace"), "{error}");
}

#[test]
fn two_devices_are_two_ways_of_a_link() {
    let text = "tc qdisc add dev eth0 root pfifo limit 1\ntc qdisc add dev eth1 root pfifo limit 2\n";
    assert_eq!(keys(text), ["link.up.queue=\"1 packet\"", "link.down.queue=\"2 packets\""]);
    let named = "tc qdisc add dev server root pfifo limit 2\ntc qdisc add dev lan root pfifo limit 3\n";
    assert_eq!(keys(named), ["link.down.queue=\"2 packets\"", "link.up.queue=\"3 packets\""]);
}

#[test]
fn what_is_not_understood_is_said_with_its_place() {
    let root = "tc qdisc add dev eth0 root handle 1: htb default 10\n";
    let class = "tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n";
    for (text, title, at, says) in [
        (
            "tc qdisc add dev eth0 root tbf rate 1mbit burst 5kb\n",
            "`tbf` without `latency`",
            "tbf",
            &["or `limit`"][..],
        ),
        (
            "tc qdisc add dev eth0 root tbf rat 1mbit\n",
            "`rat` is not an option of `tbf`",
            "rat 1mbit",
            &["did you mean `rate`?"],
        ),
        (
            "tc qdisc add dev eth0 root tbf rate 1mbit burst 1000 latency 1ms peakrate 2mbit mtu 1500\n",
            "a burst of 1000 bytes is less than the peak rate's `mtu` of 1500 bytes",
            "burst",
            &["choose an `mtu` of that"],
        ),
        (
            "tc qdisc add dev eth0 root plug\n",
            "unknown queueing discipline `plug`",
            "plug",
            &["what does its work: the key `outage` of a link"],
        ),
        (
            "tc qdisc add dev eth0 root htbb\n",
            "unknown queueing discipline `htbb`",
            "htbb",
            &["did you mean `htb`?"],
        ),
        ("tc qdisc add root htb\n", "`dev` is missing", "qdisc", &["dev eth0"]),
        (
            "tc qdisc ad dev $DEV root htb\n",
            "`$DEV` is a variable of a shell that is not set",
            "$DEV",
            &["set it above, as in: DEV=VALUE"],
        ),
        ("tc clas add dev eth0\n", "the kind of the class is missing", "clas", &[]),
        ("tc klass add dev eth0\n", "`klass` is not understood", "klass", &["did you mean `class`?"]),
    ] {
        fails(text, title, at, says);
    }
    for (more, title, at, says) in [
        (
            "tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n",
            "the class 1:10 already exists",
            "tc class",
            &[][..],
        ),
        (
            "tc class add dev eth0 parent 1: classid 1:20 cbq rate 2mbit\n",
            "the discipline 1: does not have classes of this kind",
            "tc class",
            &[],
        ),
        (
            "tc class add dev eth0 parent 1:20 classid 1:20 htb rate 2mbit\n",
            "the class 1:20 is its own parent",
            "tc class",
            &[],
        ),
        (
            "tc class add dev eth0 parent 2: classid 2:20 htb rate 2mbit\n",
            "there is no discipline 2: at this device",
            "tc class",
            &["there is 1:"],
        ),
        (
            "tc qdisc add dev eth0 root handle 2: prio\n",
            "a discipline already exists there",
            "tc qdisc",
            &["use `replace`"],
        ),
        (
            "tc qdisc add dev eth0 parent 1:30 pfifo limit 4\n",
            "there is no class 1:30",
            "tc qdisc",
            &["there is `1:10`"],
        ),
        (
            "tc filter add dev eth0 parent 1: protocol ip matchall\n",
            "the filter names no class",
            "matchall",
            &[],
        ),
        (
            "tc filter add dev eth0 parent 1: protocol ip route fromif eth1 flowid 1:10\n",
            "a filter `route` without a realm",
            "route",
            &["routes have no realms here"],
        ),
        (
            "tc filter add dev eth0 parent 1: protocol ip tcindex flowid 1:10\n",
            "`tcindex` does not apply here",
            "tcindex",
            &["`match ip dsfield`"],
        ),
        (
            "tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 80 0xff00ff flowid 1:10\n",
            "`0xff00ff` is not a mask of 16 bits",
            "0xff00ff",
            &["hexadecimal"],
        ),
        (
            "tc filter add dev eth0 parent 1: protocol ip u32 match ip src 10.0.0.0/8 match ip src 11.0.0.1 flowid 1:10\n",
            "no packet matches: it contradicts an earlier match",
            "src 11",
            &[],
        ),
        (
            "tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 80 0x0055 flowid 1:10\n",
            "the mask 0x0055 stands for more than 256 ranges",
            "dport",
            &[],
        ),
    ] {
        fails(&format!("{root}{class}{more}"), title, at, says);
    }
    fails("tc qdisc add dev e root hpd\n", "`hpd` without a class", "tc qdisc", &["give it some"]);
    let hpd = "tc qdisc add dev e root handle 1: hpd\ntc class add dev e parent 1: hpd num 1 default\n";
    fails(
        &format!("{hpd}tc class add dev e parent 1: hpd num 2 gamma 1025\n"),
        "found `1025`, expected a number",
        "1025",
        &["in 1024ths"],
    );
    fails(
        &format!("{hpd}tc class add dev e parent 1: hpd num 33\n"),
        "found `33`, expected a number",
        "33",
        &["from 1 to 32"],
    );
    fails(
        &format!("{hpd}tc class add dev e parent 1: hpd num 2 ddp 0\n"),
        "found `0`, expected a number",
        "0\n",
        &[],
    );
    fails(
        &format!("{hpd}tc class del dev e classid 1:1\n"),
        "the class 1:1 is the default of its discipline",
        "tc class",
        &["make another class the default first"],
    );
    // Everything that is wrong is said at once.
    let error = Script::parse("tc qdisc add dev a root x\ntc qdisc add dev a root y\n", "x.sh").unwrap_err();
    assert_eq!(error.count(), 2);
}

#[test]
fn handles_are_hexadecimal() {
    assert_eq!(Handle { major: 0x8001, minor: 0xa }.to_string(), "8001:a");
    assert_eq!(Handle { major: 1, minor: 0 }.to_string(), "1:");
    // 1:0x1f and 1:1f are one class, and so are 1:, 1:0 and 1.
    let text = "tc qdisc add dev e root handle 1 htb default 0x1f\n\
        tc class add dev e parent 1:0 classid 1:1f htb rate 1mbit\n\
        tc class change dev e parent 1: classid 1:0x1F htb rate 2mbit\n";
    assert!(keys(text)[2].contains("{ name = \"1:1f\", rate = \"2mbit\", burst"), "{:?}", keys(text));
    fails("tc qdisc add dev e root handle 1x: htb\n", "`1x:` is not a handle", "1x:", &["in hexadecimal"]);
    fails("tc qdisc add dev e root handle 10000: htb\n", "`10000:` is not a handle", "10000:", &[]);
}

/// The examples, and every block of tc's commands in the documentation.
#[test]
fn examples_are_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut seen = 0;
    for entry in std::fs::read_dir(root.join("scenarios/tc")).unwrap() {
        let path = entry.unwrap().path();
        let script = Script::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let text = script.scenario_text(false).unwrap_or_else(|error| panic!("{error}"));
        Scenario::parse(&text, "x.toml").unwrap_or_else(|error| panic!("{}\n{error}", path.display()));
        assert!(!script.explain().unwrap().is_empty());
        seen += 1;
    }
    let page = std::fs::read_to_string(root.join("docs/tc.md")).unwrap();
    for block in page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        if block.lines().any(|line| line.starts_with("narrows")) {
            continue;
        }
        let script = Script::parse(block, "tc.md").unwrap_or_else(|error| panic!("{error}"));
        script.scenario_text(false).unwrap_or_else(|error| panic!("{error}"));
        seen += 1;
    }
    assert!(seen > 6, "only {seen}");
}

/// Nothing points into the text of the scenario that a script comes to: that is not the user's.
#[test]
fn problems_point_into_the_script() {
    let twice = "tc qdisc add dev e root handle 1: netem delay 10ms\ntc qdisc add dev e parent 1:1 handle 2: netem delay 5ms";
    let help = "set it in one of the two";
    fails(twice, "`netem` in another `netem` or `delay`: both mean the link's `delay`", "tc qdisc", &[help]);
    let bands = "tc qdisc add dev e root prio priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 0 2";
    fails(bands, "`priomap` has 18 numbers", "2", &["16 are allowed"]);
    let many = "tc qdisc add dev e root netem delay 1ms rate 1mbit; tc qdisc add dev e parent 1:1 handle 2: netem rate 2mbit";
    let error = Script::parse(many, "x.sh").and_then(|script| script.assignments(true));
    let shown = error.expect_err("it is wrong").to_string();
    assert!(!shown.contains("what it comes to"), "{shown}");
}

/// tc's probability of 1 is not one percent: it overflows to 0, and the kernel takes what tc's logarithm says, 30,000 / 2^15.
#[test]
fn a_probability_of_one_is_what_the_kernel_makes_of_it() {
    let text =
        "tc qdisc add dev e root red limit 60000 min 15000 max 45000 avpkt 1000 burst 25 probability 1";
    let script = Script::parse(text, "x.sh").unwrap();
    assert!(script.scenario_text(false).unwrap().contains("probability = 0.915527344"));
    assert!(script.devices(false).is_ok());
}

/// tc-tbf(8): what is longer than the bucket never goes. HTB: the ceiling is what counts.
#[test]
fn a_small_bucket_and_a_low_ceiling_are_as_in_the_kernel() {
    let text = "tc qdisc add dev eth0 root tbf rate 1mbit burst 1000 latency 10ms\n";
    assert_eq!(
        keys(text)[1],
        "link.up.scheduler={ type = \"tbf\", rate = \"1mbit\", burst = \"1000 bytes\", latency = \"10ms\", mtu = \"1000 bytes\" }"
    );
    let notes =
        |text: &str| Script::parse(text, "x.sh").unwrap().devices(false).unwrap()[0].egress.notes.clone();
    assert_eq!(
        notes(text),
        ["Frames of more than 1000 bytes are dropped, as in the kernel: they never fit into the bucket."]
    );
    assert!(notes(&text.replace("1000", "1514")).is_empty());
    let htb = "tc qdisc add dev eth0 root handle 1: htb default 1\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 2mbit ceil 1mbit\n";
    assert!(keys(htb).iter().any(|key| key.contains("rate = \"2mbit\", ceil = \"1mbit\"")));
    let explained = Script::parse(htb, "x.sh").unwrap().explain();
    assert!(
        format!("{explained:?}").contains("Up to 1mbit: `ceil` is below the rate of 2mbit"),
        "{explained:?}"
    );
}

/// In the kernel a bucket holds what a frame of its size counts at the rate: `tc qdisc show` of Linux 6.18 prints these bursts.
#[test]
fn buckets_count_the_overhead() {
    let of = |options: &str| {
        let text = format!("tc qdisc add dev eth0 root tbf limit 20000 rate 1mbit {options}\n");
        (keys(&text).join(" "), hooks::said(&text))
    };
    let (keys, said) = of("burst 1540 overhead 44");
    assert!(keys.contains("burst = \"1584 bytes\"") && !said.contains("dropped"), "{keys} {said}");
    let (keys, said) = of("burst 1500 linklayer atm");
    assert!(keys.contains("burst = \"1696 bytes\""), "{keys}");
    // As many cells as 1500 bytes take.
    assert!(
        said.contains("Frames of more than 1536 bytes") && said.contains("more than 1500 bytes"),
        "{said}"
    );
    // The bursts of a class do not: tc computes their times itself.
    let class = "tc qdisc add dev eth0 root handle 1: htb default 1\n\
                 tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit burst 1540 overhead 44\n";
    assert!(self::keys(class).join(" ").contains("burst = \"1540 bytes\""), "{:?}", self::keys(class));
    let text = "tc qdisc add dev eth0 root tbf rate 8mbit burst 2000 latency 10ms overhead 44\n";
    assert!(self::keys(text).join(" ").contains("bound = \"12000 bytes\""), "{:?}", self::keys(text));
}

/// A link has one transmit queue: what `mq` has in its first class is its discipline.
#[test]
fn the_first_queue_of_mq_is_the_links() {
    let mq = "tc qdisc add dev eth0 root handle 1: mq\n";
    let inside = format!(
        "{mq}tc qdisc add dev eth0 parent 1:1 handle 10: stab overhead 4 tbf rate 1mbit burst 5kb limit 9kb\n"
    );
    assert_eq!(
        keys(&inside),
        [
            "link.up.overhead={ base = \"frame\", bytes = 4 }",
            "link.up.scheduler={ type = \"tbf\", rate = \"1mbit\", burst = \"5120 bytes\", bound = \"9216 bytes\" }",
        ]
    );
    assert_eq!(keys(mq), ["link.up.queue=\"1000 packets\"", "link.up.scheduler=\"pfifo_fast\""]);
    let mqprio = "mqprio num_tc 3 map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 queues 1@0 1@1 2@2 hw 0";
    let mqprio = mq.replace("mq\n", &format!("{mqprio}\n"));
    assert_eq!(keys(&mqprio), keys(mq));
    let queue = "tc qdisc add dev eth0 parent 1:1 pfifo limit 9\n";
    assert_eq!(keys(&format!("{mqprio}{queue}")), ["link.up.queue=\"9 packets\""]);
    let alike = format!(
        "{inside}tc qdisc add dev eth0 parent 1:2 stab overhead 4 tbf rate 1mbit burst 5kb limit 9kb\n"
    );
    assert_eq!(keys(&alike), keys(&inside));
    assert_eq!(keys("tc qdisc add dev eth0 root multiq"), ["link.up.queue=\"1000 packets\""]);
    fails(
        &format!("{mq}tc qdisc add dev eth0 parent 1:2 sfq\n"),
        "there is no class 1:2: a link has one transmit queue",
        "tc qdisc",
        &["that of 1:1"],
    );
    fails(
        &format!("{mq}tc filter add dev eth0 parent 1: matchall flowid 1:1\n"),
        "a filter of `mq`: it would choose a transmit queue",
        "tc filter",
        &["in the discipline of 1:1"],
    );
    fails(
        "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 parent 1:1 mq\n",
        "`mq` in 1:1",
        "tc qdisc",
        &["for the root"],
    );
}
