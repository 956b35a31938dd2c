//! The time-aware shaper in tc's words.

use crate::hooks::said;
use crate::show::comes_back;
use crate::{fails, keys};

/// tc-taprio(8)'s example, but with a short queue in the class 0.
const SCRIPT: &str = "tc qdisc replace dev eth0 parent root handle 100 taprio num_tc 3 \
     map 2 2 1 0 2 2 2 2 2 2 2 2 2 2 2 2 queues 1@0 1@1 2@2 base-time 1528743495910289987 \
     sched-entry S 01 300000 sched-entry S 02 300000 sched-entry S 06 400000 clockid CLOCK_TAI\n\
     tc qdisc add dev eth0 parent 100:1 handle 1: pfifo limit 50\n";

#[test]
fn the_last_traffic_class_goes_first_and_gates_are_by_class() {
    let all = keys(SCRIPT);
    let scheduler = all.iter().find(|key| key.starts_with("link.up.scheduler")).unwrap();
    assert_eq!(
        scheduler,
        "link.up.scheduler={ type = \"taprio\", schedule = [ \
         { lasts = \"300us\", open = [\"100:1\"] }, { lasts = \"300us\", open = [\"100:2\"] }, \
         { lasts = \"400us\", open = [\"100:2\", \"100:3\"] } ], classes = [ \
         { name = \"100:3\" }, { name = \"100:2\" }, { name = \"100:1\", queue = \"50 packets\" } ], \
         filters = [ { match = { dscp = [2, 3, \"af11\", 11, \"af21\", 19, \"af31\", 27, \"af41\", 35, 42, 43, 50, 51, 58, 59], family = \"ipv4\" }, class = \"100:2\" } ], \
         default = \"100:3\" }"
    );
    let cut = keys(&SCRIPT.replace("base-time 1528743495910289987", "cycle-time 900000"));
    assert!(cut.iter().any(|key| key.contains("cycle = \"900us\"")), "{cut:?}");
}

#[test]
fn what_is_shown_is_the_same_again() {
    let tree = comes_back(&SCRIPT.replace("clockid", "cycle-time 1100000 clockid"), &[]);
    assert_eq!(
        tree.qdiscs[0].options,
        "num_tc 3 map 2 2 1 2 2 2 2 2 2 2 2 2 2 2 2 2 queues 1@0 1@1 1@2 base-time 0 cycle-time 1100000 \
         sched-entry S 01 300000 sched-entry S 02 300000 sched-entry S 06 400000 clockid CLOCK_TAI"
    );
}

/// Longer packets than a class takes are dropped; the kernel adds the link header to the number.
#[test]
fn packets_of_a_class_have_a_greatest_length() {
    let all = keys(&SCRIPT.replace("clockid", "max-sdu 0 500 1000 clockid"));
    let scheduler = all.iter().find(|key| key.starts_with("link.up.scheduler")).unwrap();
    let dscps =
        "dscp = [2, 3, \"af11\", 11, \"af21\", 19, \"af31\", 27, \"af41\", 35, 42, 43, 50, 51, 58, 59]";
    let filters = format!(
        "filters = [ {{ match = {{ {dscps}, length = \"501 bytes..\", family = \"ipv4\" }}, class = \"drop\" }}, \
         {{ match = {{ {dscps}, family = \"ipv4\" }}, class = \"100:2\" }}, \
         {{ match = {{ length = \"1001 bytes..\" }}, class = \"drop\" }} ], default = \"100:3\""
    );
    assert!(scheduler.contains(&filters), "{scheduler}\n{filters}");
}

/// Where `taprio` gives packets times to leave, `etf` is the queue in which they wait for them.
#[test]
fn etf_is_a_queue_behind_the_times_of_taprio() {
    let root = "tc qdisc replace dev eth0 parent root handle 100 taprio num_tc 2 map 1 0 queues 1@0 1@0 \
         base-time 1 sched-entry S 01 300000 sched-entry S 02 300000 flags 0x1 txtime-delay 200000 clockid CLOCK_TAI\n";
    let etf =
        "tc qdisc replace dev eth0 parent 100:1 etf skip_sock_check offload delta 200000 clockid CLOCK_TAI\n";
    let scheduler = |text: &str| keys(text).into_iter().find(|key| key.contains("scheduler")).unwrap();
    let one = scheduler(&format!("{root}{etf}"));
    assert!(one.contains("open = [\"100:1\"]") && one.contains("open = [\"100:2\"]"), "{one}");
    assert!(one.contains("{ name = \"100:1\", queue = \"1000000 packets\" }"), "{one}");
    let words = said(&format!("{root}{etf}"));
    for part in
        ["a plain queue here, whose gate opens by the schedule", "add that to the `delay` of the link"]
    {
        assert!(words.contains(part), "{words}");
    }
    let two = root.replace("1@0 1@0", "1@0 1@1");
    let both = format!("{two}{etf}{}", etf.replace("100:1", "100:2"));
    assert_eq!(scheduler(&both).matches("1000000 packets").count(), 2);
    fails(
        &format!("{two}{etf}"),
        "`taprio` with `flags 0x1` and without `etf` in 100:2: packets get times to leave, and nothing holds them until then",
        "tc qdisc replace dev eth0 parent root",
        &["parent 100:2 etf skip_sock_check"],
    );
    // Elsewhere there are no times.
    let no_times =
        "`etf`: packets on a link carry no transmit times (SO_TXTIME), and without one it drops them";
    let etf_at = |options: &str| format!("{root}tc qdisc add dev eth0 parent 100:1 etf {options}\n");
    for (text, title, at) in [
        ("tc qdisc add dev eth0 root etf clockid CLOCK_TAI delta 200000\n".to_owned(), no_times, "etf"),
        (
            format!("{root}{etf}").replace("flags 0x1", "flags 0x2").replace("1@0 1@0", "1@0 1@1"),
            no_times,
            "etf",
        ),
        (
            etf_at("clockid CLOCK_TAI"),
            "`etf` without `skip_sock_check`: it drops packets of sockets that give no times",
            "etf",
        ),
        (
            etf_at("deadline_mode"),
            "`deadline_mode` of `etf`: packets leave before their times",
            "deadline_mode",
        ),
        (etf_at("slot"), "`slot` is not an option of `etf`", "slot"),
    ] {
        fails(&text, title, at, &[]);
    }
}

#[test]
fn what_is_wrong_with_a_schedule() {
    let root = "tc qdisc add dev eth0 root handle 1: taprio ";
    let entry = "sched-entry S 1 1000";
    for (options, title, at) in [
        (entry, "`taprio` without `num_tc`", "taprio"),
        ("num_tc 2 map 0 1", "`taprio` without `sched-entry`", "taprio"),
        ("num_tc 2 map 0 2 sched-entry S 1 1", "the traffic class 2 is none of 2", "2 sched"),
        (
            "num_tc 2 queues 2@0 2@2 sched-entry S 1 1",
            "the traffic class 1 begins at another transmit queue than 1",
            "2@2",
        ),
        ("num_tc 2 sched-entry H 1 1", "found `H`, expected `S`, which sets the gates", "H"),
        (
            "num_tc 2 sched-entry S 0g 1",
            "found `0g`, expected the gates that are open, as a hexadecimal number",
            "0g",
        ),
        ("num_tc 2 sched-entry S 1 0", "found `0`, expected a number", "0"),
        ("num_tc 2 fp E P", "`fp` of `taprio`: frames are not interrupted here", "fp"),
        ("num_tc 2 flags 4", "found `4`, expected 0, 1 or 2", "4"),
        (
            "num_tc 2 sched-entry S 3 1000 flags 0x1",
            "`flags 0x1` of `taprio`, and the gates 3 open together: their packets leave as they come, not by priority",
            "taprio",
        ),
        ("num_tc 2 sched 1", "`sched` is not an option of `taprio`", "sched"),
    ] {
        fails(&format!("{root}{options}"), title, at, &[]);
    }
}
