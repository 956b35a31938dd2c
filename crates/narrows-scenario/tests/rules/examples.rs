//! The examples of the Dummynet papers, with the figures that their text gives. Those that are ipfw's come from the scripts
//! that stand in `scenarios/ipfw`, by way of the scenario that each equals.

use narrows_core::{FlowKey, Time};

use crate::bed::{Bed, at, from, instants, net, script, to};

/// The shares of packets that leave after so many milliseconds.
fn shares(bed: &mut Bed, sent: usize, delays: &[u64]) -> Vec<f64> {
    let left = bed.rest();
    assert_eq!(left.len(), sent, "all of them arrive");
    let share = |delay: &u64| {
        let count = left.iter().filter(|left| left.at.nanos() % 1_000_000_000 == delay * 1_000_000).count();
        count as f64 / sent as f64
    };
    let shares: Vec<f64> = delays.iter().map(share).collect();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "each has one of the delays: {shares:?}");
    shares
}

/// Within six standard deviations of a share of `sent`.
#[track_caller]
fn is_about(found: f64, expected: f64, sent: usize) {
    let sd = (expected * (1.0 - expected) / sent as f64).sqrt();
    assert!((found - expected).abs() < 6.0 * sd, "{found} is not about {expected}");
}

#[test]
fn a_split_by_probabilities_of_0_2_0_7_and_the_rest_is_20_56_and_24_percent() {
    let scenario = script("multipath");
    let mut bed = Bed::new(&scenario);
    let sent = 50_000;
    for _ in 0..sent {
        bed.send(Time::ZERO, "server", FlowKey { source_port: 80, ..from([10, 0, 0, 9]) }, 100);
    }
    let shares = shares(&mut bed, sent, &[10, 20, 30]);
    for (found, expected) in shares.iter().zip([0.2, 0.56, 0.24]) {
        is_about(*found, expected, sent);
    }
    // What no rule is about passes at once.
    bed.send(at(2_000_000), "server", from([10, 0, 0, 9]), 100);
    bed.send(at(2_000_000), "client", FlowKey { source_port: 80, ..from([10, 0, 0, 9]) }, 100);
    assert_eq!(instants(&bed.rest()), [2_000_000_000, 2_000_000_000]);
}

#[test]
fn probabilities_of_0_33_0_5_and_the_rest_are_thirds() {
    let mut bed =
        Bed::new(&net(r#"rules = ["100 prob 0.33 pipe 1 out", "110 prob 0.5 pipe 2 out", "120 pipe 3 out"]
        pipes = { 1 = { delay = "10ms" }, 2 = { delay = "20ms" }, 3 = { delay = "40ms" } }"#));
    let sent = 50_000;
    for _ in 0..sent {
        bed.send(Time::ZERO, "client", from([10, 0, 0, 2]), 100);
    }
    let shares = shares(&mut bed, sent, &[10, 20, 40]);
    for (found, expected) in shares.iter().zip([0.33, 0.335, 0.335]) {
        is_about(*found, expected, sent);
    }
}

#[test]
fn thirty_and_seventy_percent_over_100_and_20_milliseconds_are_out_of_order() {
    let mut bed = Bed::new(&script("reordering"));
    let sent = 20_000;
    for number in 0..sent {
        bed.send(at(1000 * number), "client", to([1, 2, 3, 4]), 100);
    }
    let left = bed.rest();
    let mut late = 0;
    for packet in &left {
        let delay = packet.at.nanos() - packet.number as u64 * 1_000_000;
        assert!([100_000_000, 20_000_000].contains(&delay), "{delay}");
        late += usize::from(delay == 100_000_000);
    }
    is_about(late as f64 / sent as f64, 0.3, sent as usize);
    // Packet n is late and the 79 that follow within 80 ms are not: each such pair is out of order.
    let overtaken = left.windows(2).filter(|pair| pair[0].number > pair[1].number).count();
    assert!(overtaken > 3000, "{overtaken}");
}

#[test]
fn a_pipe_for_each_direction() {
    let mut bed = Bed::new(&script("both-ways"));
    // 1000 bytes at 256 kbit/s are 31.25 ms, and at 4 Mbit/s 2 ms.
    bed.send(Time::ZERO, "client", to([1, 2, 3, 4]), 1000);
    bed.send(Time::ZERO, "server", from([1, 2, 3, 4]), 1000);
    bed.send(Time::ZERO, "client", from([1, 2, 3, 4]), 1000); // to nobody that a rule is about
    assert_eq!(instants(&bed.rest()), [0, 4_000_000, 43_250_000]);
}

#[test]
fn one_pipe_for_both_directions_is_a_shared_medium() {
    let mut bed = Bed::new(&script("shared-medium"));
    // 1250 bytes at 10 Mbit/s are 1 ms; both directions contend for it.
    let key = to([192, 168, 4, 7]);
    bed.send(Time::ZERO, "client", key, 1250);
    bed.send(Time::ZERO, "server", key, 1250);
    bed.send(Time::ZERO, "client", key, 1250);
    assert_eq!(instants(&bed.rest()), [1_000_000, 2_000_000, 3_000_000]);
    let view = bed.engine.view(bed.engine.link("net.24").unwrap());
    let delivered: Vec<u64> = view.counters().iter().map(|lane| lane.left.packets).collect();
    assert_eq!(delivered, [2, 1], "lane 0 is out, and 1 is in");
}

#[test]
fn a_pipe_of_its_own_for_each_low_byte_of_the_source() {
    let mut bed = Bed::new(&script("dynamic-pipes"));
    // 125 bytes at 1 Mbit/s are 1 ms. Ten senders, three packets each: every one has a megabit for itself.
    for _ in 0..3 {
        for sender in 1..=10 {
            bed.send(Time::ZERO, "client", from([10, sender, 0, sender]), 125);
        }
    }
    let left = instants(&bed.rest());
    let expected: Vec<u64> = [1_000_000, 2_000_000, 3_000_000].into_iter().flat_map(|at| [at; 10]).collect();
    assert_eq!(left, expected);
    // The low byte is what counts: these share one.
    bed.send(at(10_000), "client", from([10, 0, 0, 7]), 125);
    bed.send(at(10_000), "client", from([172, 16, 99, 7]), 125);
    assert_eq!(instants(&bed.rest()), [11_000_000, 12_000_000]);
    let view = bed.engine.view(bed.engine.link("net.4").unwrap());
    assert_eq!(view.instances(at(12_000)).len(), 10);
    // A second without a packet later, all are given up.
    bed.send(at(5_000_000), "client", from([10, 0, 0, 200]), 125);
    bed.rest();
    let view = bed.engine.view(bed.engine.link("net.4").unwrap());
    assert_eq!(view.instances(at(5_001_000)).len(), 1);
}

/// Bytes that leave by source while everybody has packets: 2 s of what `send` hands in at once.
fn bytes_by(bed: &mut Bed, keys: &[FlowKey], host: &str, packets: usize, until: Time) -> Vec<u64> {
    for _ in 0..packets {
        for key in keys {
            bed.send(Time::ZERO, host, *key, 1000);
        }
    }
    let mut bytes = vec![0; keys.len()];
    for left in bed.until(until) {
        if left.dropped.is_none() {
            bytes[left.number % keys.len()] += 1000;
        }
    }
    bytes
}

/// The script's queues hold 50 packets; here they hold what is sent.
fn unbounded(scenario: &mut narrows_scenario::Scenario, queues: &[u32]) {
    let texts: Vec<String> =
        queues.iter().map(|queue| format!("net.queue-{queue}.queue=100000 packets")).collect();
    scenario.set(&texts).unwrap();
}

#[test]
fn four_megabits_by_weights_of_20_and_10_for_each_source() {
    let mut scenario = script("weights");
    unbounded(&mut scenario, &[10, 8]);
    let mut bed = Bed::new(&scenario);
    // UDP has weight 20, and each of two sources of TCP has 10: a half, a quarter and a quarter of 4 Mbit/s.
    let tcp = |source| FlowKey { transport: 6, ..from(source) };
    let keys = [from([10, 9, 9, 9]), tcp([10, 8, 5, 1]), tcp([10, 8, 5, 2])];
    let bytes = bytes_by(&mut bed, &keys, "client", 3000, at(4_000_000));
    let rates: Vec<f64> = bytes.iter().map(|bytes| *bytes as f64 * 8.0 / 4.0).collect();
    for (rate, expected) in rates.iter().zip([2e6, 1e6, 1e6]) {
        // WF2Q+ is within a packet or two of the fluid system: 8000 bits in 4 s.
        assert!((rate - expected).abs() <= 3.0 * 8000.0 / 4.0, "{rates:?}");
    }
}

#[test]
fn a_queue_of_weight_10_beside_one_of_weight_1_for_each_destination() {
    let mut scenario = script("flowsets");
    unbounded(&mut scenario, &[1, 2]);
    let mut bed = Bed::new(&scenario);
    // 2 Mbit/s: 10 parts for luigi-pc, and one for each of five destinations of the others.
    let mut keys = vec![from([192, 0, 2, 10])];
    keys.extend((1..=5).map(|last| FlowKey { source: from([192, 0, 2, 77]).source, ..to([10, 0, 0, last]) }));
    let bytes = bytes_by(&mut bed, &keys, "client", 2000, at(6_000_000));
    let part = 2e6 / 15.0 * 6.0 / 8.0; // bytes of weight 1 in 6 s
    for (bytes, weight) in bytes.iter().zip([10.0, 1.0, 1.0, 1.0, 1.0, 1.0]) {
        assert!((*bytes as f64 - weight * part).abs() <= 3000.0, "{bytes} is not about {}", weight * part);
    }
    let view = bed.engine.view(bed.engine.link("net.5").unwrap());
    assert_eq!(view.masked_flows(at(6_000_000)).len(), 6);
}

#[test]
fn a_scheduler_for_each_subnet_of_24_bits() {
    let mut scenario = script("subnets");
    unbounded(&mut scenario, &[1, 2]);
    let mut bed = Bed::new(&scenario);
    // In each of two subnets ssh has weight 10 and the rest weight 1, and each has 10 Mbit/s for itself.
    let ssh = |source| FlowKey { transport: 6, source_port: 22, ..from(source) };
    let keys = [ssh([10, 1, 1, 1]), from([10, 1, 1, 2]), ssh([10, 1, 2, 1]), from([10, 1, 2, 2])];
    let bytes = bytes_by(&mut bed, &keys, "client", 3000, at(2_000_000));
    for subnet in bytes.chunks(2) {
        let whole = (subnet[0] + subnet[1]) as f64;
        assert!((whole - 10e6 / 8.0 * 2.0).abs() <= 2000.0, "{bytes:?}");
        // QFQ's bound is a few packets of a flow.
        assert!((subnet[0] as f64 - whole * 10.0 / 11.0).abs() <= 12_000.0, "{bytes:?}");
    }
    let view = bed.engine.view(bed.engine.link("net.5").unwrap());
    assert_eq!(view.instances(at(2_000_000)).len(), 2);
}

#[test]
fn a_thousand_bytes_through_a_megabit_and_50_milliseconds_take_58_milliseconds() {
    let mut bed = Bed::new(&net(r#"rules = ["pipe 1 ip from any to any"]
        pipes.1 = { rate = "1mbit", delay = "50ms" }"#));
    bed.send(Time::ZERO, "client", from([10, 0, 0, 2]), 1000);
    bed.send(Time::ZERO, "client", from([10, 0, 0, 2]), 500);
    bed.send(at(1), "server", from([10, 0, 0, 2]), 125);
    // T = (l + Q) / B + t_D
    assert_eq!(instants(&bed.rest()), [58_000_000, 62_000_000, 63_000_000]);
}

#[test]
fn two_pipes_in_series_to_the_nanosecond() {
    let mut bed = Bed::new(&net(r#"one-pass = false
        rules = ["100 pipe 1 out", "200 pipe 2 ip from any to any", "300 deny in"]
        pipes.1 = { rate = "3mbit", delay = "7ms", queue = "20 packets" }
        pipes.2 = { rate = "1mbit", delay = "11ms", queue = "20 packets" }"#));
    // 1000 bytes at 3 Mbit/s take 2,666,666.67 ns, and the n-th packet 8000 n / 3 of that; at 1 Mbit/s 8 ms.
    for _ in 0..4 {
        bed.send(Time::ZERO, "client", from([10, 0, 0, 2]), 1000);
    }
    let first = |n: u64| (n * 8_000_000_000u64).div_ceil(3000) + 7_000_000;
    let mut free = 0;
    let expected = (1..=4).map(|n| {
        free = first(n).max(free) + 8_000_000;
        free + 11_000_000
    });
    assert_eq!(instants(&bed.rest()), expected.collect::<Vec<_>>());
    // The other way: only pipe 2, and behind it the next rule.
    bed.send(at(1_000_000), "server", from([10, 0, 0, 2]), 1000);
    let left = bed.rest();
    assert_eq!(left[0].at, at(1_000_000 + 8000 + 11_000));
    assert_eq!(left[0].dropped, Some(narrows_core::DropReason::Denied));
}

#[test]
fn losses_by_rule() {
    let mut bed = Bed::new(&net(r#"rules = ["400 prob 0.05 deny src-ip 10.0.0.0/8"]"#));
    let sent = 20_000;
    for _ in 0..sent {
        bed.send(Time::ZERO, "client", from([10, 3, 2, 1]), 100);
        bed.send(Time::ZERO, "client", from([11, 3, 2, 1]), 100);
    }
    let left = bed.rest();
    let lost = left.iter().filter(|left| left.dropped.is_some());
    assert!(lost.clone().all(|left| left.number % 2 == 0), "others are none of the rule's");
    is_about(lost.count() as f64 / sent as f64, 0.05, sent);
}
