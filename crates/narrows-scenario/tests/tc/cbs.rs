//! The credit-based shaper in tc's words.

use crate::show::comes_back;
use crate::{fails, keys};

/// tc-cbs(8)'s example of class A, in a class of `taprio`, and of class B at the root.
const IN_A_CLASS: &str = "tc qdisc add dev eth0 root handle 1: taprio num_tc 2 map 1 0 queues 1@0 1@1 base-time 0 \
     sched-entry S 3 1000000 clockid CLOCK_TAI\n\
     tc qdisc add dev eth0 parent 1:2 handle 2: cbs idleslope 98688 sendslope -901312 hicredit 153 locredit -1389 offload 1\n\
     tc qdisc add dev eth0 parent 2:1 handle 3: pfifo limit 50\n";
const ALONE: &str =
    "tc qdisc add dev eth0 root cbs locredit -1470 hicredit 30 sendslope -980000 idleslope 20000";

#[test]
fn slopes_are_kilobits_a_second_and_credits_bytes() {
    let alone = keys(ALONE);
    let expected = "link.up.scheduler={ type = \"cbs\", idle-slope = \"20mbit\", send-slope = \"980mbit\", hi-credit = \"30 bytes\", lo-credit = \"1470 bytes\" }";
    assert!(alone.iter().any(|key| key == expected), "{alone:?}");
    let inside = keys(IN_A_CLASS);
    let expected = "{ name = \"1:2\", scheduler = { type = \"cbs\", idle-slope = \"98.688mbit\", send-slope = \"901.312mbit\", hi-credit = \"153 bytes\", lo-credit = \"1389 bytes\", classes = [{ name = \"2:1\", queue = \"50 packets\" }] } }";
    assert!(inside.iter().any(|key| key.contains(expected)), "{inside:?}");
}

#[test]
fn what_is_shown_is_the_same_again() {
    let alone = comes_back(ALONE, &[]);
    assert_eq!(
        alone.qdiscs[0].options,
        "hicredit 30 locredit -1470 sendslope -980000 idleslope 20000 offload 0"
    );
    let inside = comes_back(IN_A_CLASS, &[]);
    assert_eq!(inside.qdiscs[1].kind, "cbs");
    assert_eq!(inside.qdiscs[2].parent.as_deref(), Some("2:1"));
}

#[test]
fn what_is_wrong_with_a_shaper() {
    for (options, title, at) in [
        ("", "`cbs` without `idleslope`", "cbs"),
        ("idleslope 20000", "`cbs` without `sendslope`", "cbs"),
        ("idleslope 20000 sendslope -980000", "`cbs` without `locredit`", "cbs"),
        ("idleslope 0", "found `0`, expected a number", "0"),
        ("idleslope 20000 sendslope 980000", "found `980000`, expected a number", "980000"),
        ("idleslope 20000 sendslope -980000 locredit 1470", "found `1470`, expected a number", "1470"),
        ("idleslope 20000 hicredit -30", "found `-30`, expected a number", "-30"),
        ("idle 20000", "`idle` is not an option of `cbs`", "idle"),
    ] {
        fails(&format!("tc qdisc add dev eth0 root {}", format!("cbs {options}").trim()), title, at, &[]);
    }
}
