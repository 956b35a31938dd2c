//! Classes that take turns: `drr`, `qfq` and `ets`.

use crate::{fails, keys};

const DRR: &str = "tc qdisc add dev eth0 root handle 1: drr\n\
     tc class add dev eth0 parent 1: classid 1:10 drr quantum 3000\n\
     tc class add dev eth0 parent 1: classid 1:20 drr\n\
     tc qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 30\n\
     tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:10\n";

fn scheduler(script: &str) -> String {
    let all = keys(script);
    all.into_iter().find(|key| key.starts_with("link.up.scheduler")).expect("it is one")
}

/// The default is a frame of the default MTU, and there is no class for the rest.
#[test]
fn quanta_are_the_kernels_and_the_rest_is_dropped() {
    assert_eq!(
        scheduler(DRR),
        "link.up.scheduler={ type = \"drr\", classes = [ \
         { name = \"1:10\", quantum = \"3000 bytes\", queue = \"30 packets\" }, \
         { name = \"1:20\", quantum = \"1514 bytes\" } ], \
         filters = [ { match = { destination-port = 80, family = \"ipv4\" }, class = \"1:10\" } ], default = \"drop\" }"
    );
    let all = format!("{DRR}tc filter add dev eth0 parent 1: prio 2 matchall flowid 1:20\n");
    assert!(
        scheduler(&all)
            .contains("queue = \"30 packets\", match = { destination-port = 80, family = \"ipv4\" } }"),
        "{}",
        scheduler(&all)
    );
    assert!(!scheduler(&all).contains("drop"));
}

/// As in `drr_change_class`: a change without a quantum keeps it.
#[test]
fn a_change_sets_the_quantum_or_keeps_it() {
    let then = |more: &str| scheduler(&format!("{DRR}tc class change dev eth0 classid 1:10 drr {more}\n"));
    assert!(then("quantum 5kb").contains("quantum = \"5120 bytes\""));
    assert!(then("").contains("quantum = \"3000 bytes\""));
    fails(
        &format!("{DRR}tc qdisc change dev eth0 root drr\n"),
        "`drr` cannot be changed, nor can it in the kernel",
        "tc qdisc change",
        &[],
    );
}

#[test]
fn weights_of_qfq_are_the_kernels() {
    let qfq = |more: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: qfq\n\
             tc class add dev eth0 parent 1: classid 1:1 qfq weight 10 maxpkt 2000\n\
             tc class add dev eth0 parent 1: classid 1:2 qfq\n\
             tc filter add dev eth0 parent 1: prio 1 u32 match ip sport 1 0xffff flowid 1:1\n\
             tc filter add dev eth0 parent 1: prio 2 u32 match ip sport 2 0xffff flowid 1:2\n{more}"
        )
    };
    assert_eq!(
        scheduler(&qfq("")),
        "link.up.scheduler={ type = \"qfq\", classes = [ \
         { name = \"1:1\", weight = 10, longest = \"2000 bytes\", match = { source-port = 1, family = \"ipv4\" } }, \
         { name = \"1:2\", match = { source-port = 2, family = \"ipv4\" } } ], default = \"drop\" }"
    );
    // As in `qfq_change_class`: what is not given is the default again.
    let changed = scheduler(&qfq("tc class change dev eth0 classid 1:1 qfq maxpkt 600\n"));
    assert!(changed.contains("{ name = \"1:1\", longest = \"600 bytes\""), "{changed}");
    fails(
        &qfq("tc class add dev eth0 parent 1: classid 1:3 qfq weight 1025"),
        "found `1025`, expected a number",
        "1025",
        &[],
    );
    fails(
        &qfq("tc class add dev eth0 parent 1: classid 1:3 qfq maxpkt 511"),
        "found `511`, expected a length in bytes",
        "511",
        &[],
    );
}

#[test]
fn what_the_kernel_refuses_is_refused() {
    fails(
        "tc qdisc add dev eth0 root handle 1: drr\ntc class add dev eth0 parent 1: classid 1:1 drr quantum 0",
        "a quantum of zero, which sends nothing",
        "0",
        &[],
    );
    fails(
        &format!("{DRR}tc class add dev eth0 parent 1:20 classid 1:30 drr"),
        "`drr` has no classes within classes",
        "tc class add dev eth0 parent 1:20",
        &["put the class below the discipline, as in: parent 1:"],
    );
    fails(
        "tc qdisc add dev eth0 root handle 1: drr quantum 3000",
        "`quantum` is not an option of `drr`",
        "quantum",
        &[],
    );
    fails(
        &format!("{DRR}tc class add dev eth0 parent 1: classid 1:30 qfq"),
        "the discipline 1: does not have classes of this kind",
        "tc class add dev eth0 parent 1: classid 1:30",
        &[],
    );
}

/// From tc-ets(8): bands that are not said are counted, those without a quantum have a frame's, and priorities that are not
/// said go to the last band.
#[test]
fn bands_of_ets_are_the_kernels() {
    let ets = |options: &str| scheduler(&format!("tc qdisc add dev eth0 root handle 1: ets {options}\n"));
    assert_eq!(
        ets("strict 1 quanta 4500 3000"),
        "link.up.scheduler={ type = \"ets\", strict = 1, classes = [ { name = \"1:1\" }, \
         { name = \"1:2\", quantum = \"4500 bytes\" }, { name = \"1:3\", quantum = \"3000 bytes\" } ], \
         filters = [], default = \"1:3\" }"
    );
    let said = ets("bands 3 strict 1 quanta 4500 priomap 1 1 1 2 2 1 0 1");
    for part in ["\"1:2\", quantum = \"4500 bytes\"", "\"1:3\", quantum = \"1514 bytes\""] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(!ets("strict 3").contains("quantum"));
    let more = |command: &str| {
        scheduler(&format!(
            "tc qdisc add dev eth0 root handle 1: ets strict 1 quanta 4500 3000\ntc {command}\n"
        ))
    };
    assert!(more("class change dev eth0 classid 1:3 ets quantum 9000").contains("quantum = \"9000 bytes\""));
    let changed = more("qdisc change dev eth0 root ets strict 1 quanta 2000");
    assert_eq!((changed.matches("name").count(), changed.contains("2000 bytes")), (2, true));
    assert!(more("qdisc add dev eth0 parent 1:3 pfifo limit 7").contains("queue = \"7 packets\""));
    // What was in a band that is gone is gone.
    let again = more(
        "qdisc add dev eth0 parent 1:3 pfifo limit 7\ntc qdisc change dev eth0 root ets strict 2\n\
         tc qdisc change dev eth0 root ets strict 3",
    );
    assert!(!again.contains("7 packets"), "{again}");
}

#[test]
fn what_is_wrong_with_bands() {
    let root = "tc qdisc add dev eth0 root handle 1: ets ";
    for (options, title, at) in [
        (
            "bands 2 strict 1 quanta 1 2",
            "3 bands are needed for `strict` and `quanta`, and there are 2",
            "ets",
        ),
        ("priomap 0 0", "`ets` without `bands`", "ets"),
        ("bands 17", "found `17`, expected a number", "17"),
        ("strict 2 priomap 0 1 2", "the band 2 is none of 2", "2"),
        ("strict 2 quanta 0", "found `0`, expected a number", "0"),
        ("strict 1 quantum 3", "`quantum` is not an option of `ets`", "quantum"),
    ] {
        fails(&format!("{root}{options}"), title, at, &[]);
    }
    let whole = format!("{root}strict 1 quanta 4500 3000\n");
    for (command, title) in [
        ("tc class add dev eth0 parent 1: classid 1:2 ets quantum 3000", "the class 1:2 already exists"),
        (
            "tc class change dev eth0 classid 1:1 ets quantum 3000",
            "the band 1:1 is strict and has no quantum",
        ),
        ("tc class change dev eth0 classid 1:4 ets quantum 3000", "there is no class 1:4"),
        ("tc qdisc add dev eth0 parent 1:4 pfifo", "there is no class 1:4"),
    ] {
        fails(&format!("{whole}{command}"), title, command, &[]);
    }
}
