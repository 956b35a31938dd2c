//! The time-aware shaper in tc's words.

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
        ("num_tc 2 max-sdu 200", "`max-sdu` of `taprio`", "max-sdu"),
        ("num_tc 2 sched 1", "`sched` is not an option of `taprio`", "sched"),
    ] {
        fails(&format!("{root}{options}"), title, at, &[]);
    }
}
