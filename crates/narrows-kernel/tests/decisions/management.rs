//! Queue management drops the packets that the engine drops.

use super::agree;
use super::harness::Harness;

/// These keys, with gaps around these means: both decide the same, and drop at least this share by queue management.
fn drops(harness: &Harness, keys: &str, gaps: &[(u64, f64)]) {
    for &(gap, least) in gaps {
        let (verdicts, _) = agree(harness, keys, gap);
        let dropped = verdicts.iter().filter(|&&(verdict, _)| verdict == 8).count() as f64;
        let share = dropped / verdicts.len() as f64;
        assert!(share >= least, "{keys}, gap {gap}: {share}");
    }
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
    ] {
        let keys = format!("rate = \"10mbit\"\nqueue = {{ {queue}, bound = \"60 packets\" }}");
        drops(&harness, &keys, &[(600_000, 0.0), (450_000, 0.0), (380_000, 0.005), (200_000, 0.02)]);
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
