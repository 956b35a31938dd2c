//! Classes that take turns: `drr` and `qfq`.

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
         filters = [ { match = { destination-port = 80 }, class = \"1:10\" } ], default = \"drop\" }"
    );
    let all = format!("{DRR}tc filter add dev eth0 parent 1: prio 2 matchall flowid 1:20\n");
    assert!(scheduler(&all).contains("match = { destination-port = 80 }, queue"), "{}", scheduler(&all));
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
         { name = \"1:1\", weight = 10, longest = \"2000 bytes\", match = { source-port = 1 } }, \
         { name = \"1:2\", match = { source-port = 2 } } ], default = \"drop\" }"
    );
    // As in `qfq_change_class`: what is not given is the default again.
    let changed = scheduler(&qfq("tc class change dev eth0 classid 1:1 qfq maxpkt 600\n"));
    assert!(changed.contains("{ name = \"1:1\", longest = \"600 bytes\""), "{changed}");
    fails(
        &qfq("tc class add dev eth0 parent 1: classid 1:3 qfq weight 1025"),
        "found `1025`, expected a number from 1 to 1024",
        "1025",
        &[],
    );
    fails(
        &qfq("tc class add dev eth0 parent 1: classid 1:3 qfq maxpkt 511"),
        "found `511`, expected a length in bytes from 512 to 65536",
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
    fails("tc qdisc add dev eth0 root handle 1: drr", "`drr` without a class", "tc qdisc", &[]);
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
