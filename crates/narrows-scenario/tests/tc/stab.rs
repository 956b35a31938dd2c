//! Size tables. Expected values are those of tc's table and the kernel's lookup, computed by hand.

use narrows_scenario::tc::Script;

use crate::{fails, keys, keys_of};

fn overhead(stab: &str) -> String {
    let all = keys(&format!(
        "tc qdisc add dev eth0 root handle 1: stab {stab} tbf rate 1mbit burst 5kb latency 70ms\n"
    ));
    all.into_iter().find(|key| key.contains("overhead")).unwrap().replace("link.up.overhead=", "")
}

#[test]
fn it_is_the_overhead_of_the_link() {
    for (stab, expected) in [
        ("overhead 20 linklayer atm", "{ base = \"frame\", bytes = 20, cells = \"atm\" }"),
        (
            "linklayer adsl overhead -4 mpu 53",
            "{ base = \"frame\", bytes = -4, minimum = 53, cells = \"atm\" }",
        ),
        ("overhead 24", "{ base = \"frame\", bytes = 24 }"),
        ("linklayer ethernet", "\"frame\""),
        // 512 entries for 2047 bytes: steps of 4.
        (
            "overhead 24 mpu 84",
            "{ base = \"frame\", bytes = 24, minimum = 84, cells = { payload = 4, size = 4 } }",
        ),
        (
            "mtu 1500 tsize 128 mpu 64",
            "{ base = \"frame\", bytes = 0, minimum = 64, cells = { payload = 16, size = 16 } }",
        ),
        ("mpu 65 tsize 2048", "{ base = \"frame\", bytes = 0, minimum = 65 }"),
        ("mtu 2047 tsize 128 linklayer atm", "{ base = \"frame\", bytes = 0, cells = \"atm\" }"),
    ] {
        assert_eq!(overhead(stab), expected, "{stab}");
    }
}

#[test]
fn a_table_that_cannot_be_meant_exactly_is_refused() {
    let with = |stab: &str| {
        format!("tc qdisc add dev eth0 root stab {stab} tbf rate 1mbit burst 5kb latency 70ms\n")
    };
    for (stab, title, at, says) in [
        ("mtu 1500 tbf", "`stab` without `overhead`, `mpu` or `linklayer`", "stab", "linklayer atm"),
        ("mpu 65", "a size table in steps of 4 bytes, which do not divide `mpu`, 65", "mpu", "tsize 2048"),
        (
            "mtu 16000 linklayer atm",
            "a size table in steps of 32 bytes, which do not divide the 48 bytes of a cell",
            "mtu",
            "tsize 16001",
        ),
        (
            "mtu 65000 linklayer atm",
            "a size table up to 72398 bytes, which the kernel rounds",
            "mtu",
            "16 bits",
        ),
        ("overhead 4 linklayer dsl", "`dsl` is not a link layer", "dsl", "`atm`"),
    ] {
        fails(&with(stab), title, at, &[says]);
    }
    fails(
        "tc qdisc add dev eth0 root stab overhead 4 tbf rate 1mbit burst 5kb latency 70ms overhead 4\n",
        "both `stab` and an overhead of the discipline",
        "stab",
        &["leave out `overhead`"],
    );
    fails(
        "tc qdisc add dev eth0 root stab overhead 4 cake bandwidth 1mbit\n",
        "both `stab` and `cake`",
        "stab",
        &["overhead 20 atm"],
    );
    fails(
        "tc qdisc add dev eth0 root handle 1: htb default 1\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
         tc qdisc add dev eth0 parent 1:1 stab overhead 4 sfq\n",
        "`stab` of a discipline in 1:1",
        "tc qdisc",
        &["at the root"],
    );
}

/// In the kernel each class of `htb` counts by itself. What all count alike is the link's.
#[test]
fn what_a_packet_costs_classes_is_the_links_overhead() {
    let htb = |first: &str, second: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 1\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit {first}\n\
             tc class add dev eth0 parent 1: classid 1:2 htb rate 1mbit {second}\n"
        )
    };
    let all = keys(&htb("overhead 10 linklayer atm", "linklayer atm overhead 10"));
    assert!(
        all.contains(&"link.up.overhead={ base = \"frame\", bytes = 10, cells = \"atm\" }".into()),
        "{all:?}"
    );
    assert!(keys(&htb("overhead 0", "linklayer ethernet")).contains(&"link.up.overhead=\"frame\"".into()));
    let different = keys(&htb("overhead 10", ""));
    assert!(different.contains(&"link.up.overhead=\"frame\"".into()), "{different:?}");
    assert!(
        different[2].contains("overhead = { base = \"frame\", bytes = 10 } }, { name = \"1:2\""),
        "{different:?}"
    );
    fails(
        "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 parent 1:1 handle 2: htb\n\
         tc class add dev eth0 parent 2: classid 2:1 htb rate 1mbit overhead 4\n",
        "`overhead` or `linklayer` of classes inside another discipline",
        "tc qdisc add dev eth0 parent",
        &["of the root"],
    );
}

#[test]
fn it_counts_for_rates_wherever_they_are() {
    let netem = keys("tc qdisc add dev eth0 root handle 1: stab overhead 4 netem rate 1mbit\n");
    assert!(netem.contains(&"link.up.overhead={ base = \"frame\", bytes = 4 }".into()), "{netem:?}");
    let exact = keys_of(
        "tc qdisc add dev eth0 root handle 1: stab overhead 4 netem delay 1ms\ntc qdisc add dev eth0 parent 1: tbf rate 1mbit burst 5kb limit 5kb\n",
        true,
    );
    assert!(exact.contains(&"link.up.overhead={ base = \"frame\", bytes = 4 }".into()), "{exact:?}");
    // Nothing waits for a rate: the device's own is not changed by it.
    let fifo = "tc qdisc add dev eth0 root handle 1: stab overhead 4 sfq\n";
    assert!(keys(fifo).iter().all(|key| !key.contains("overhead")));
    let notes = &Script::parse(fifo, "x.sh").unwrap().devices(false).unwrap()[0].egress.notes;
    assert!(notes[0].starts_with("`stab` has no effect"), "{notes:?}");
    // A change that does not name it removes it, as in the kernel.
    let tbf = "tbf rate 1mbit burst 5kb limit 5kb";
    let changed = keys(&format!(
        "tc qdisc add dev eth0 root stab overhead 4 {tbf}\ntc qdisc change dev eth0 root {tbf}\n"
    ));
    assert!(changed.contains(&"link.up.overhead=\"frame\"".into()), "{changed:?}");
}
