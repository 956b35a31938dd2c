//! `hfsc` in tc's words: its curves, what a change keeps, what the kernel does with the rest.

use narrows_scenario::tc::Script;

use crate::{fails, keys};

const ROOT: &str = "tc qdisc add dev eth0 root handle 1: hfsc default 20\n";

/// The scheduler of a script with these commands.
fn scheduler(commands: &str) -> String {
    let all = keys(&format!("{ROOT}{commands}"));
    all.into_iter().find(|line| line.contains("scheduler=")).expect("there is one")
}

/// tc-hfsc(8), and its two ways to write one curve.
#[test]
fn curves_become_keys() {
    let all = scheduler(
        "tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:10 hfsc rt umax 1500b dmax 53ms rate 400kbit ls rate 1mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:20 hfsc sc m1 5mbit d 10ms m2 1mbit ul m1 0bit d 0us m2 2Mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:30 hfsc sc d 10 m2 1mbit\n\
         tc qdisc add dev eth0 parent 1:20 handle 20: fq_codel\n\
         tc filter add dev eth0 parent 1: u32 match ip dport 80 0xffff flowid 1:10",
    );
    for part in [
        "{ name = \"1:1\", ls = \"10mbit\", ul = \"10mbit\" }",
        "rt = { umax = \"1500 bytes\", dmax = \"53ms\", rate = \"400kbit\" }, ls = \"1mbit\"",
        "sc = { m1 = \"5mbit\", d = \"10ms\", m2 = \"1mbit\" }, ul = \"2mbit\", scheduler = { type = \"fq_codel\", bound = \"10240 packets\" }",
        "sc = { d = \"10us\", m2 = \"1mbit\" }",
        "default = \"1:20\"",
    ] {
        assert!(all.contains(part), "{part}\n{all}");
    }
}

/// As in the kernel, a change keeps the curves that it does not name, and a change of the discipline its classes.
#[test]
fn a_change_keeps_what_it_does_not_name() {
    let all = scheduler(
        "tc class add dev eth0 parent 1: classid 1:20 hfsc sc m2 1mbit ul m2 2mbit\n\
         tc class add dev eth0 parent 1: classid 1:30 hfsc ls m2 1mbit\n\
         tc class change dev eth0 classid 1:20 hfsc rt m2 3mbit\n\
         tc qdisc change dev eth0 root handle 1: hfsc default 30",
    );
    assert!(all.contains("{ name = \"1:20\", rt = \"3mbit\", ls = \"1mbit\", ul = \"2mbit\""), "{all}");
    assert!(
        all.contains("default = \"1:30\"") || all.contains("{ name = \"1:30\", ls = \"1mbit\" }"),
        "{all}"
    );
}

/// No default, or one that is no leaf class: dropped.
#[test]
fn packets_of_no_class_are_dropped() {
    for root in ["hfsc", "hfsc default 7", "hfsc default 1"] {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: {root}\n\
             tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 1mbit\n\
             tc class add dev eth0 parent 1:1 classid 1:10 hfsc ls m2 1mbit\n\
             tc filter add dev eth0 parent 1: u32 match ip dport 80 0xffff flowid 1:10"
        );
        let all = keys(&text).join("\n");
        assert!(all.contains("default = \"drop\""), "{root}: {all}");
        let explained =
            Script::parse(&text, "x.sh").expect("it is right").devices(false).expect("it is right");
        let notes = explained[0].egress.notes.join("\n");
        assert!(notes.contains("unclassified packets are dropped"), "{root}: {notes}");
    }
}

#[test]
fn what_is_wrong() {
    let class = |curves: &str| format!("{ROOT}tc class add dev eth0 parent 1: classid 1:1 hfsc {curves}");
    fails(&class(""), "`hfsc` without `rt`, `ls` or `sc`", "hfsc", &["hfsc sc rate 1mbit"]);
    fails(
        &class("ul m2 1mbit"),
        "`ul` without `ls` or `sc`",
        "ul m2",
        &["an upper limit applies to link sharing"],
    );
    fails(
        &class("rt m1 1mbit d 1ms"),
        "the curve of `rt` has no `m2`, which ends it",
        "rt m1",
        &["in this order"],
    );
    fails(&class("rt d 1ms m1 1mbit m2 1mbit"), "`m1` is out of order in the curve of `rt`", "m1 1mbit", &[]);
    fails(&class("rt m1 1mbit m2 1mbit"), "`m1` without `d`", "m1 1mbit", &[]);
    fails(&class("rt umax 1500 rate 1mbit"), "`umax` without `dmax`", "umax", &[]);
    fails(&class("rt m1 1mbit d 1ms m2 0"), "a rate of zero passes nothing", "0", &[]);
    fails(&class("rt m2 1mbit rate 1mbit"), "`rate` is not an option of `hfsc`", "rate 1mbit", &[]);
    fails(
        &format!("{ROOT}tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit"),
        "the discipline 1: does not have classes of this kind",
        "tc class",
        &[],
    );
    fails("tc qdisc add dev eth0 root hfsc r2q 1", "`r2q` is not an option of `hfsc`", "r2q", &[]);
}
