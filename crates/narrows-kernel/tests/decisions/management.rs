//! Queue management drops the packets that the engine drops.

use super::harness::Harness;
use super::{HAS_MARK, agree, arrivals};

/// These keys, with gaps around these means: both decide the same, and drop at least this share by queue management. Returns the
/// share of packets that leave with a mark and came without, in the last case.
fn drops(harness: &Harness, keys: &str, gaps: &[(u64, f64)]) -> f64 {
    let mut marked = 0.0;
    for &(gap, least) in gaps {
        let (verdicts, _) = agree(harness, keys, gap);
        let share = |count: usize| count as f64 / verdicts.len() as f64;
        let dropped = share(verdicts.iter().filter(|(verdict, ..)| *verdict == 8).count());
        assert!(dropped >= least, "{keys}, gap {gap}: {dropped}");
        let arrivals = arrivals(verdicts.len(), gap);
        let came = arrivals.iter().map(|arrival| arrival.frame[15] & 3 == 3);
        let both = verdicts.iter().zip(came);
        marked = share(both.filter(|((verdict, ..), came)| *verdict == 1 | HAS_MARK && !came).count());
    }
    marked
}

#[test]
fn of_one_queue() {
    let harness = Harness::new("managed");
    // At 10 Mbit/s a packet of these takes 0.61 ms, and one comes after 1.4 gaps.
    for queue in [
        "type = \"codel\", ecn = false, target = \"2ms\", interval = \"20ms\"",
        "type = \"codel\", ecn = false",
        "type = \"pie\", ecn = false",
        "type = \"pie\", ecn = false, burst = \"0ms\", target = \"3ms\", derandomize = true, cap-drop = true",
        "type = \"pie\", ecn = false, burst = \"20ms\", high-delay-boost = \"40ms\", byte-mode = true, update = \"5ms\"",
        "type = \"red\", ecn = false",
        "type = \"red\", ecn = false, gentle = true, min = \"5 packets\", max = \"20 packets\", weight = 0.1",
        "type = \"red\", ecn = false, min = \"5kB\", max = \"30kB\", weight = 0.02, probability = \"20%\"",
        "type = \"red\", ecn = false, min = \"5kB\", max = \"30kB\", weight = 0.02, probability = \"20%\", by-length = false",
    ] {
        let keys = format!("rate = \"10mbit\"\nqueue = {{ {queue}, bound = \"60 packets\" }}");
        drops(&harness, &keys, &[(600_000, 0.0), (450_000, 0.0), (380_000, 0.005), (200_000, 0.015)]);
    }
}

#[test]
fn of_the_classes_of_schedulers() {
    let harness = Harness::new("managed-classes");
    for scheduler in ["prio", "drr", "wf2q+"] {
        let classes = "{ name = \"one\", match = { dscp = 10 }, queue = { type = \"codel\", ecn = false, target = \"1ms\", interval = \"10ms\" } }, { name = \"two\", match = { dscp = [20, 21] }, queue = { type = \"pie\", ecn = false, burst = \"0ms\", target = \"4ms\" } }, { name = \"three\", queue = { type = \"red\", ecn = false } }";
        let keys = format!(
            "rate = \"10mbit\"\nqueue = \"80 packets\"\nscheduler = {{ type = \"{scheduler}\", classes = [{classes}] }}"
        );
        drops(&harness, &keys, &[(500_000, 0.0), (380_000, 0.005), (250_000, 0.05)]);
    }
}

#[test]
fn packets_that_can_be_marked_are_marked() {
    let harness = Harness::new("marked");
    for (queue, least) in [
        ("type = \"codel\", target = \"2ms\", interval = \"20ms\"", 0.005),
        ("type = \"codel\", ecn = false, ce-threshold = \"5ms\"", 0.2),
        ("type = \"codel\", ce-threshold = \"3ms\", ce-match = \"0x01/0x03\"", 0.1),
        ("type = \"pie\", burst = \"0ms\", target = \"3ms\", max-ecn-threshold = \"90%\"", 0.02),
        ("type = \"red\"", 0.1),
        ("type = \"red\", harddrop = true, gentle = true, max = \"12 packets\"", 0.02),
        ("type = \"red\", nodrop = true, bound = \"40 packets\"", 0.1),
    ] {
        let keys = format!("rate = \"10mbit\"\nqueue = {{ {queue} }}");
        let marked = drops(&harness, &keys, &[(500_000, 0.0), (400_000, 0.0)]);
        assert!(marked >= least, "{keys}: {marked}");
    }
}
