//! Flows and hosts: their shares, and the advantage of sparse flows.

use narrows_core::sched::{CakeConfig, Isolation, TinMode};
use narrows_core::{Duration, FlowKey, Rate, Time};

use crate::link::{Arrival, constant, flow, mbit, merged, ms, run};

/// No queue management within the time of a test.
fn config(isolation: Isolation) -> CakeConfig {
    CakeConfig {
        bandwidth: mbit(10),
        isolation,
        tins: TinMode::BestEffort,
        rtt: Duration::from_secs(1000),
        ..CakeConfig::default()
    }
}

/// The share of each group of packets while all flows send 10 Mbit/s each, in percent, rounded.
fn shares(isolation: Isolation, flows: &[FlowKey], groups: &[&dyn Fn(&FlowKey) -> bool]) -> Vec<u64> {
    let each = |&key: &FlowKey| constant(key, 1000, mbit(10), Time::ZERO, ms(1_000));
    let arrivals = merged(flows.iter().map(each));
    let outcome = run(config(isolation), Rate::UNLIMITED, &arrivals);
    let span = [ms(200), ms(1_000)];
    let all = outcome.bytes(&arrivals, span, |_| true);
    groups.iter().map(|&group| (outcome.bytes(&arrivals, span, group) * 100 + all / 2) / all).collect()
}

/// One host with three flows to three others, and one with a single flow to the first of them.
fn four() -> [FlowKey; 4] {
    [flow(1, 11, 1), flow(1, 12, 2), flow(1, 13, 3), flow(2, 11, 4)]
}

#[test]
fn bandwidth_is_divided_as_isolation_says() {
    let each = |port: u16| move |key: &FlowKey| key.source_port == port;
    let (a, b, c, d) = (each(1), each(2), each(3), each(4));
    let groups: [&dyn Fn(&FlowKey) -> bool; 4] = [&a, &b, &c, &d];
    for (isolation, expected) in [
        (Isolation::Flows, [25, 25, 25, 25]),
        (Isolation::Hosts, [25, 25, 25, 25]),
        (Isolation::Source, [17, 17, 17, 50]),
        (Isolation::DualSource, [17, 17, 17, 50]),
        // Two hosts send to 11.
        (Isolation::Destination, [17, 33, 33, 17]),
        (Isolation::DualDestination, [17, 33, 33, 17]),
        // Turns of 1/3, 1/3, 1/3 and 1/2: the busier host of each counts.
        (Isolation::Triple, [22, 22, 22, 33]),
        (Isolation::None, [25, 25, 25, 25]),
    ] {
        let found = shares(isolation, &four(), &groups);
        // Packets of one queue come in the order in which the sources send.
        let slack = if matches!(isolation, Isolation::Source | Isolation::Destination) { 2 } else { 1 };
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.abs_diff(expected) <= slack, "{isolation:?}: {found} for {expected}");
        }
    }
}

/// A flow that sends less than its share waits for at most the packet on the wire and the new flows before it.
#[test]
fn a_sparse_flow_does_not_wait() {
    let bulk = (0..8).map(|port| constant(flow(1, 2, port), 1000, mbit(5), Time::ZERO, ms(1_000)));
    let sparse = constant(flow(1, 2, 99), 100, Rate::from_bits_per_second(80_000), ms(100), ms(1_000));
    let arrivals = merged(bulk.chain([sparse]));
    for isolation in [Isolation::Flows, Isolation::Triple] {
        let outcome = run(config(isolation), Rate::UNLIMITED, &arrivals);
        let of_sparse = outcome.sent.iter().filter(|sent| arrivals[sent.number].key.source_port == 99);
        let waits: Vec<u64> = of_sparse.map(|sent| sent.at.since(arrivals[sent.number].at).nanos()).collect();
        assert_eq!(waits.len(), 90);
        // A packet of 1000 bytes takes 800 µs.
        assert!(waits.iter().all(|wait| *wait <= 800_000), "{waits:?}");
    }
}

/// Order within a flow, and a queue of its own for each of hundreds of flows: none waits behind another's burst.
#[test]
fn flows_of_a_set_have_queues_of_their_own() {
    let flows = 300;
    let bursts = (0..flows).map(|port| vec![Arrival { at: ms(1), key: flow(1, 2, port), length: 1000 }; 4]);
    let arrivals = merged(bursts);
    let outcome = run(config(Isolation::Flows), Rate::UNLIMITED, &arrivals);
    let mut last = vec![None; usize::from(flows)];
    for sent in &outcome.sent {
        let of = &mut last[usize::from(arrivals[sent.number].key.source_port)];
        assert!(of.replace(sent.number).is_none_or(|before| before < sent.number));
    }
    // A quantum of 305 bytes: each flow sends one packet before any sends its second.
    let first: std::collections::BTreeSet<u16> =
        outcome.sent[..usize::from(flows)].iter().map(|sent| arrivals[sent.number].key.source_port).collect();
    assert!(first.len() >= 299, "{}", first.len());
}
