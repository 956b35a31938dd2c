//! What is dropped: by queue management, at the limit, and what `ingress` makes of it.

use narrows_core::queue::Bound;
use narrows_core::sched::{Cake, CakeConfig, TinMode};
use narrows_core::{Bytes, DropReason, FlowKey, Rate, Seed, Time};

use crate::link::{Arrival, Outcome, constant, flow, mbit, merged, ms, run, run_queue};

fn config() -> CakeConfig {
    CakeConfig { bandwidth: mbit(10), tins: TinMode::BestEffort, ..CakeConfig::default() }
}

/// A flow at twice the bandwidth is dropped ever more often, one within its share never, and marks replace drops.
#[test]
fn queue_management_is_for_those_that_fill_their_queues() {
    let greedy = constant(flow(1, 2, 1), 1000, mbit(20), Time::ZERO, ms(1_500));
    let modest = constant(flow(3, 4, 2), 1000, mbit(2), Time::ZERO, ms(1_500));
    let arrivals = merged([greedy, modest]);
    let outcome = run(config(), Rate::UNLIMITED, &arrivals);
    assert!(outcome.dropped.iter().all(|(number, reason)| {
        arrivals[*number].key.source_port == 1 && *reason == DropReason::QueueManagement
    }));
    // By the control law, from about the first packet to the last.
    let near_law = |signals: usize, outcome: &Outcome| {
        let lasted = outcome.sent.last().expect("some").at.seconds();
        let due = (1..).scan(0.0, |at, count| {
            *at += 0.1 / f64::from(count + 1).sqrt();
            Some(*at)
        });
        let expected = due.take_while(|at| *at < lasted).count();
        assert!(signals.abs_diff(expected) * 50 < expected, "{signals} for {expected}");
    };
    near_law(outcome.dropped.len(), &outcome);

    let ect = |arrival: &Arrival| Arrival { key: FlowKey { traffic_class: 2, ..arrival.key }, ..*arrival };
    let marked: Vec<Arrival> = arrivals.iter().map(ect).collect();
    let outcome = run(config(), Rate::UNLIMITED, &marked);
    assert_eq!(outcome.dropped.len(), 0);
    near_law(outcome.marked as usize, &outcome);
}

/// At the limit, the head of the longest queue goes; BLUE then drops what the limit need not.
#[test]
fn at_the_limit_the_longest_queue_pays() {
    let greedy = constant(flow(1, 2, 1), 1000, mbit(200), Time::ZERO, ms(1_000));
    let modest = constant(flow(3, 4, 2), 1000, mbit(2), Time::ZERO, ms(1_000));
    let arrivals = merged([greedy, modest]);
    let cake = Cake::new(config(), Bound::Bytes(Bytes::new(100_000)), Seed(1), "link");
    let outcome = run_queue(cake, Rate::UNLIMITED, &arrivals);
    assert!(outcome.dropped.iter().all(|(number, _)| arrivals[*number].key.source_port == 1));
    let full = outcome.dropped.iter().filter(|(_, reason)| *reason == DropReason::QueueFull).count();
    let managed = outcome.dropped.len() - full;
    assert!(full > 10_000 && managed > 1_000, "{full} {managed}");
}

/// With `ingress`, what is dropped has used the bandwidth, so that less is sent; not less than two thirds, by the second
/// clock.
#[test]
fn drops_are_charged_on_ingress() {
    let arrivals = constant(flow(1, 2, 1), 1000, mbit(30), Time::ZERO, ms(3_000));
    let sent = |ingress| {
        let cake =
            Cake::new(CakeConfig { ingress, ..config() }, Bound::Bytes(Bytes::new(100_000)), Seed(1), "link");
        let outcome = run_queue(cake, Rate::UNLIMITED, &arrivals);
        outcome.bytes(&arrivals, [ms(1_000), ms(3_000)], |_| true) * 8 / 2
    };
    let (egress, ingress) = (sent(false) as f64 / 1e9, sent(true) as f64 / 1e9);
    // In Mbit/s, of 10.
    assert!((egress - 0.01).abs() < 0.0001, "{egress}");
    assert!((ingress - 0.01 / 1.5).abs() < 0.0002, "{ingress}");
}
