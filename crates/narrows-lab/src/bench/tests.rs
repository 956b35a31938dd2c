//! The load is the reference's, whatever is under it.

use std::collections::VecDeque;

use narrows_core::Time;

use super::plan::most_flows;
use super::*;
use crate::Algorithm;

/// Keeps packets in one queue, and remembers what it was asked for.
#[derive(Default)]
struct Watched {
    waiting: VecDeque<u32>,
    /// +1 for a packet that came and −1 for one that went, in order, with the flow.
    calls: Vec<(i8, u32)>,
    /// Drops each packet that comes when so many wait.
    bound: Option<usize>,
    drops: VecDeque<u32>,
}

impl Subject for Watched {
    fn enqueue(&mut self, _: Time, packet: u32, records: &mut Records) {
        self.calls.push((1, records.get(packet).flow));
        match self.bound {
            Some(bound) if self.waiting.len() == bound => self.drops.push_back(packet),
            _ => self.waiting.push_back(packet),
        }
    }

    fn dequeue(&mut self, _: Time, records: &mut Records) -> Option<u32> {
        let packet = self.waiting.pop_front()?;
        self.calls.push((-1, records.get(packet).flow));
        Some(packet)
    }

    fn dropped(&mut self) -> Option<u32> {
        self.drops.pop_front()
    }
}

fn workload(load: &str, qmin: &str, qmax: &str) -> Workload {
    let column = columns(load).unwrap().remove(0);
    Workload::new(&column, quantity(qmin).unwrap(), quantity(qmax).unwrap()).unwrap()
}

#[test]
fn each_iteration_is_one_packet_in_or_one_out_and_fill_and_drain_go_between_the_thresholds() {
    let workload = workload("1::3,8::2", "2n", "6n");
    let (mut harness, mut watched) = (Harness::new(&workload), Watched::default());
    let mut waiting = Vec::new();
    for iteration in 1..=200 {
        harness.iterate(&mut watched).unwrap();
        assert_eq!(watched.calls.len(), iteration);
        waiting.push(watched.waiting.len());
    }
    // 0 → 30, then 30 → 10 → 30 and so on.
    let expected: Vec<usize> =
        (1..=30).chain((0..).flat_map(|_| (10..30).rev().chain(11..=30))).take(200).collect();
    assert_eq!(waiting, expected);
}

#[test]
fn the_next_packet_is_for_a_flow_with_the_smallest_backlog() {
    let workload = workload("1::3,8::4", "1n", "9n");
    let (mut harness, mut watched) = (Harness::new(&workload), Watched::default());
    let mut backlogs = [0_i32; 7];
    for _ in 0..5000 {
        harness.iterate(&mut watched).unwrap();
        let (change, flow) = watched.calls[watched.calls.len() - 1];
        if change == 1 {
            let least = *backlogs.iter().min().unwrap();
            assert_eq!(backlogs[flow as usize], least);
        }
        backlogs[flow as usize] += i32::from(change);
        assert!(harness.load.backlogs().iter().map(|&level| level as i32).eq(backlogs));
        if harness.counts.waiting == workload.qmax() {
            assert_eq!(backlogs, [9; 7]);
        }
    }
}

#[test]
fn flows_of_one_backlog_take_turns() {
    let workload = workload("4", "0", "8");
    let mut watched = Watched::default();
    time(&workload, 8, &mut watched).unwrap();
    let flows: Vec<u32> = watched.calls.iter().map(|&(_, flow)| flow).collect();
    assert_eq!(flows, [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn records_are_used_again_the_last_one_first_and_never_two_at_once() {
    let workload = workload("3", "1n", "4n");
    let (mut harness, mut watched) = (Harness::new(&workload), Watched::default());
    for _ in 0..500 {
        harness.iterate(&mut watched).unwrap();
        let mut inside: Vec<u32> = watched.waiting.iter().copied().collect();
        inside.sort_unstable();
        inside.dedup();
        assert_eq!(inside.len(), watched.waiting.len(), "each packet once");
        assert!(inside.iter().all(|&packet| packet < 12), "no more records than qmax");
    }
}

#[test]
fn packets_have_the_length_of_their_flow_set() {
    let workload = workload("1:64:2,1:1500:1,1::1", "0", "8");
    let mut watched = Watched::default();
    let mut harness = Harness::new(&workload);
    for _ in 0..8 {
        harness.iterate(&mut watched).unwrap();
    }
    let lengths: Vec<u32> =
        watched.waiting.iter().map(|&packet| harness.load.records.get(packet).length).collect();
    assert_eq!(lengths, [64, 64, 1500, 1000, 64, 64, 1500, 1000]);
}

#[test]
fn what_is_dropped_is_counted_and_its_flow_gets_another() {
    let workload = workload("4", "1n", "5n");
    let mut watched = Watched { bound: Some(10), ..Watched::default() };
    // FILL never gets to qmax, so every packet from the eleventh on is dropped.
    let timing = time(&workload, 1000, &mut watched).unwrap();
    let expected = Counts { enqueued: 1000, dequeued: 0, dropped: 990, waiting: 10 };
    assert_eq!(timing.counts, expected);
}

#[test]
fn a_subject_that_serves_nothing_is_found_out() {
    struct Idle;
    impl Subject for Idle {
        fn enqueue(&mut self, _: Time, _: u32, _: &mut Records) {}
        fn dequeue(&mut self, _: Time, _: &mut Records) -> Option<u32> {
            None
        }
    }
    let workload = workload("4", "1n", "5n");
    assert_eq!(time(&workload, 1000, &mut Idle).unwrap_err(), Unserved { waiting: 20 });
}

#[test]
fn none_serves_in_the_order_of_arrival() {
    let workload = workload("mix", "1n", "2n");
    let (mut harness, mut chain) = (Harness::new(&workload), Chain::default());
    let mut watched = Watched::default();
    for _ in 0..300_000 {
        harness.iterate(&mut chain).unwrap();
    }
    let mut other = Harness::new(&workload);
    for _ in 0..300_000 {
        other.iterate(&mut watched).unwrap();
    }
    assert_eq!(harness.counts, other.counts);
    assert_eq!(harness.load.backlogs(), other.load.backlogs());
}

/// A packet that is served twice or never would upset the harness's own backlogs.
#[test]
fn every_algorithm_serves_every_packet_once() {
    for load in ["1", "2", "3", "1::20,2::4,8:64:2"] {
        let workload = workload(load, "0", "20n");
        let takes = |&&one: &&Algorithm| most_flows(one).is_none_or(|most| workload.flows() <= most);
        for &algorithm in BENCHED.iter().filter(takes) {
            let timing = run(algorithm, None, &workload, 20_000).unwrap();
            let Counts { enqueued, dequeued, dropped, waiting } = timing.counts;
            assert_eq!((enqueued, dropped), (20_000, 0), "{algorithm}");
            assert_eq!(enqueued, dequeued + waiting, "{algorithm}");
            // All algorithms fill and drain alike.
            let cycle = 20_000 % workload.qmax();
            assert_eq!(waiting, if cycle == 0 { workload.qmax() } else { cycle }, "{algorithm}");
        }
    }
}

#[test]
fn thresholds_out_of_order_and_loads_beyond_numbers_or_memory_are_refused() {
    let refused = |load: &str, qmin: &str, qmax: &str| {
        let column = columns(load).unwrap().remove(0);
        Workload::new(&column, quantity(qmin).unwrap(), quantity(qmax).unwrap()).unwrap_err()
    };
    assert_eq!(refused("8", "4n", "4n"), WorkloadError::Order { qmin: 32, qmax: 32 });
    assert_eq!(refused("8", "4n", "30"), WorkloadError::Order { qmin: 32, qmax: 30 });
    assert_eq!(
        refused("1", "0", "4096m"),
        WorkloadError::TooMany { what: "waiting packets", found: 1 << 32 }
    );
    assert_eq!(
        refused("1::2048m,1::1", "0", "1m"),
        WorkloadError::TooMany { what: "flows", found: (1 << 31) + 1 }
    );
    // 2³¹ flows take some 500 GiB.
    let beyond_memory =
        matches!(refused("2048m", "0", "1m"), WorkloadError::Memory { flows: 0x8000_0000, .. });
    assert!(beyond_memory || available_mebibytes().is_none_or(|available| available > 500 << 10));
}
