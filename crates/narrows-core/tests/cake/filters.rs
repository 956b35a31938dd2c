//! Filters choose tins, hosts and flows.

use narrows_core::classify::{Classifier, Condition};
use narrows_core::queue::Queue;
use narrows_core::sched::{Cake, CakeConfig, CakeTarget, Isolation, TinMode};
use narrows_core::{DropReason, Duration, Rate, Seed, Time};

use crate::link::{Arrival, Outcome, constant, flow, mbit, merged, ms, run_queue};

fn of_port(port: u16) -> Condition {
    Condition { source_ports: vec![port..=port], ..Condition::default() }
}

/// The filters send ports 1, 2, … to these targets; `None` drops them.
fn run(config: CakeConfig, targets: &[Option<CakeTarget>], arrivals: &[Arrival]) -> Outcome {
    let class = |at: usize| targets[at].map_or(Classifier::NO_CLASS, |_| at as u32 + 1);
    let rules = (0..targets.len()).map(|at| (of_port(at as u16 + 1), class(at))).collect();
    let all = [None].iter().chain(targets).map(|target| target.unwrap_or_default()).collect();
    let cake = Cake::new(config, config.limit(), Seed(1), "link")
        .with_filters(Classifier::Rules { rules, default: Some(0) }, all);
    assert_eq!(cake.classes().len(), config.tins.tins());
    run_queue(cake, Rate::UNLIMITED, arrivals)
}

fn config(isolation: Isolation) -> CakeConfig {
    CakeConfig {
        bandwidth: mbit(10),
        tins: TinMode::BestEffort,
        isolation,
        rtt: Duration::from_secs(1000),
        ..CakeConfig::default()
    }
}

/// The shares of ports 1 to 4 in percent, rounded, while all send 10 Mbit/s between hosts of their own.
fn shares(isolation: Isolation, targets: &[Option<CakeTarget>]) -> [u64; 4] {
    let each = |port: u16| {
        let hosts = port as u8;
        constant(flow(hosts, 100 + hosts, port), 1000, mbit(10), Time::ZERO, ms(1_000))
    };
    let arrivals = merged((1..5).map(each));
    let outcome = run(config(isolation), targets, &arrivals);
    let span = [ms(200), ms(1_000)];
    let all = outcome.bytes(&arrivals, span, |_| true);
    [1, 2, 3, 4].map(|port| {
        let own = outcome.bytes(&arrivals, span, |key| key.source_port == port);
        (own * 100 + all / 2) / all
    })
}

fn near(found: [u64; 4], expected: [u64; 4]) {
    let is_near = found.iter().zip(expected).all(|(one, other)| one.abs_diff(other) <= 2);
    assert!(is_near, "{found:?} for {expected:?}");
}

#[test]
fn flows_of_a_number_share_a_queue() {
    let flow = |number| Some(CakeTarget { flow: Some(number), ..CakeTarget::default() });
    near(shares(Isolation::Flows, &[]), [25, 25, 25, 25]);
    near(shares(Isolation::Flows, &[flow(7), flow(7), flow(7)]), [17, 17, 17, 50]);
    near(shares(Isolation::Flows, &[flow(7), flow(8), flow(7)]), [17, 33, 17, 33]);
}

#[test]
fn hosts_of_a_number_share_a_part() {
    let host = |number| Some(CakeTarget { host: Some(number), ..CakeTarget::default() });
    let targets = [host(1), host(1), host(1)];
    for isolation in [Isolation::DualSource, Isolation::DualDestination, Isolation::Triple, Isolation::Source]
    {
        near(shares(isolation, &targets), [17, 17, 17, 50]);
    }
    near(shares(Isolation::Flows, &targets), [25, 25, 25, 25]);
}

#[test]
fn tins_are_chosen_and_packets_dropped() {
    let config = CakeConfig { tins: TinMode::Diffserv3, ..config(Isolation::Flows) };
    let sent = |tin| {
        let target = CakeTarget { tin: Some(tin), ..CakeTarget::default() };
        let arrivals = merged([
            constant(flow(1, 2, 1), 1000, mbit(2), Time::ZERO, ms(1_000)),
            constant(flow(3, 4, 9), 1000, mbit(20), Time::ZERO, ms(1_000)),
        ]);
        let outcome = run(config, &[Some(target)], &arrivals);
        outcome.bytes(&arrivals, [ms(200), ms(1_000)], |key| key.source_port == 1) / 1000
    };
    // Bulk has a sixteenth beside best effort; voice gets what it sends up to a quarter; there is no tin 7.
    assert!((45..=75).contains(&sent(1)), "{}", sent(1));
    assert!((195..=205).contains(&sent(2)), "{}", sent(2));
    assert_eq!(sent(0), sent(7));

    let arrivals = merged([
        constant(flow(1, 2, 1), 1000, mbit(1), Time::ZERO, ms(100)),
        constant(flow(3, 4, 9), 1000, mbit(1), Time::ZERO, ms(100)),
    ]);
    let outcome = run(config, &[None], &arrivals);
    assert_eq!((outcome.dropped.len(), outcome.sent.len()), (13, 13));
    let is_dropped = |(number, reason): &(usize, DropReason)| {
        arrivals[*number].key.source_port == 1 && *reason == DropReason::NoClass
    };
    assert!(outcome.dropped.iter().all(is_dropped));
}
