//! Which comes first: packets in a delay line, events at one instant, inputs that come late.

use narrows_core::queue::{Bound, DropAt};
use narrows_core::sched::Overload;
use narrows_core::{Duration, LinkSettings, Order, Probability, Protocol, Rate, Target, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::drive::{END, Run, Step, run};
use crate::plan::{
    ChangePlan, DelayPlan, Input, Limits, LinkPlan, LossPlan, PacketPlan, Plan, QueuePlan, ServicePlan, What,
};
use crate::random::scheduler;

fn packet(port: usize) -> PacketPlan {
    PacketPlan { port, length: 100, network: Protocol::Other }
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn jitter() -> impl Strategy<Value = DelayPlan> {
    (0u64..10_000_000, 0u64..10_000_000).prop_flat_map(|(a, b)| {
        let (a, b) = (Duration::from_nanos(a.min(b)), Duration::from_nanos(a.max(b)));
        prop_oneof![
            Just(DelayPlan::Uniform(a, b)),
            Just(DelayPlan::Normal(b, a)),
            Just(DelayPlan::InTurn(a, b)),
            Just(DelayPlan::Constant(a)),
        ]
    })
}

proptest! {
    /// Whatever the delay is changed to on the way, and however the order was before.
    #[test]
    fn no_packet_overtakes_where_order_is_kept(
        delays in vec(jitter(), 1..4),
        gaps in vec(0u64..3_000_000, 1..100),
        asked_from in 0usize..50,
    ) {
        let order = if asked_from == 0 { Order::Keep } else { Order::Allow };
        let plan = Plan::chain(3, vec![LinkPlan { order, delay: delays[0], ..LinkPlan::new("l") }]);
        let mut run = Run::new(&plan);
        let mut now = Time::ZERO;
        for (n, &gap) in gaps.iter().enumerate() {
            now = now + Duration::from_nanos(gap);
            if n == asked_from {
                run.input(&Input { at: now, what: What::Change(0, ChangePlan::Settings(LinkSettings::default())) });
            }
            if n % 10 == 9 {
                let delay = ChangePlan::Delay(delays[n / 10 % delays.len()]);
                run.input(&Input { at: now, what: What::Change(0, delay) });
            }
            run.hand_in(now, packet(0));
        }
        run.poll(END, usize::MAX);
        let left: Vec<u64> = run.records.iter().filter(|r| r.delivered()).map(|r| r.body).collect();
        for (place, &number) in left.iter().enumerate() {
            if number >= asked_from as u64 {
                prop_assert!(left[place..].iter().all(|&after| after >= number), "{:?}", left);
            }
        }
    }

    /// Packets in flight keep their instants, those that wait stay, whatever is put in place of what.
    #[test]
    fn a_change_of_kind_loses_no_packet(
        changes in vec((0u64..2_000_000, kind()), 1..30),
        gaps in vec(0u64..400_000, 1..100),
    ) {
        let mut inputs = Vec::new();
        let mut now = 0;
        for gap in gaps {
            now += gap;
            inputs.push(Input { at: at(now), what: What::Packet(packet(0)) });
        }
        now = 0;
        for (gap, change) in changes {
            now += gap;
            inputs.push(Input { at: at(now), what: What::Change(0, change) });
        }
        inputs.sort_by_key(|input| input.at);
        let rate = ServicePlan::Rate(Rate::from_bits_per_second(4_000_000));
        let delay = DelayPlan::Constant(Duration::from_millis(2));
        let queue = QueuePlan::Fifo(Bound::Packets(100), DropAt::Tail);
        let plan = Plan::chain(1, vec![LinkPlan { service: rate, delay, queue, ..LinkPlan::new("l") }]);
        inputs.extend(crate::drive::flush(&plan, at(1_000_000_000)));
        let records = run(&plan, &inputs, &[Step::Wait]);
        let packets = inputs.iter().filter(|input| matches!(input.what, What::Packet(_))).count();
        prop_assert!(records.iter().all(|r| r.delivered()), "{:?}", records);
        prop_assert_eq!(records.len(), packets);
    }
}

/// Queues that are never full, and models that lose nothing by themselves.
fn kind() -> impl Strategy<Value = ChangePlan> {
    let bound = Bound::Packets(100);
    let (never, period) = (Duration::MAX, Duration::from_micros(30));
    let nothing = LossPlan::Independent(Probability::ZERO);
    let delay = jitter().prop_filter("it loses packets itself", |d| !matches!(d, DelayPlan::InTurn(..)));
    prop_oneof![
        Just(ChangePlan::Queue(QueuePlan::Fifo(bound, DropAt::Head))),
        Just(ChangePlan::Queue(QueuePlan::Gate { bound, period, patience: never })),
        scheduler().prop_map(move |scheduler| {
            let (overload, limits) = (Overload::Arriving, Limits::None);
            ChangePlan::Queue(QueuePlan::Classes { scheduler, bound, overload, limits })
        }),
        (0u64..3_000_000_000)
            .prop_map(|rate| ChangePlan::Service(ServicePlan::Rate(Rate::from_bits_per_second(rate)))),
        Just(ChangePlan::Service(ServicePlan::Rate(Rate::UNLIMITED))),
        Just(ChangePlan::IngressLoss(Some(nothing))),
        Just(ChangePlan::WireLoss(Some(nothing))),
        delay.prop_map(ChangePlan::Delay),
    ]
}

#[test]
fn a_smaller_bound_drops_nothing_that_waits() {
    for drop_at in [DropAt::Tail, DropAt::Head] {
        let service = ServicePlan::Rate(Rate::from_bits_per_second(800_000)); // 1 ms a packet
        let queue = QueuePlan::Fifo(Bound::Packets(100), drop_at);
        let plan = Plan::chain(1, vec![LinkPlan { service, queue, ..LinkPlan::new("l") }]);
        let mut run = Run::new(&plan);
        (0..50).for_each(|_| run.hand_in(Time::ZERO, packet(0)));
        for bound in [Bound::Packets(0), Bound::Packets(3)] {
            run.input(&Input { at: at(1), what: What::Change(0, ChangePlan::QueueBound(bound)) });
        }
        let queue = QueuePlan::Fifo(Bound::Packets(1), drop_at);
        run.input(&Input { at: at(1), what: What::Change(0, ChangePlan::Queue(queue)) });
        run.poll(END, usize::MAX);
        let left: Vec<_> = run.records.iter().map(|r| (r.delivered(), r.at.nanos() / 1_000_000)).collect();
        assert_eq!(left, (1..=50).map(|ms| (true, ms)).collect::<Vec<_>>());
    }
}

#[test]
fn packets_in_flight_keep_their_instants() {
    let delay = |ms| DelayPlan::Constant(Duration::from_millis(ms));
    let plan = Plan::chain(1, vec![LinkPlan { delay: delay(50), order: Order::Allow, ..LinkPlan::new("l") }]);
    let mut run = Run::new(&plan);
    run.hand_in(Time::ZERO, packet(0));
    run.input(&Input { at: at(1), what: What::Change(0, ChangePlan::Delay(delay(10))) });
    run.hand_in(at(2), packet(0));
    run.poll(END, usize::MAX);
    let left: Vec<_> = run.records.iter().map(|r| (r.body, r.at.nanos())).collect();
    assert_eq!(left, [(1, 10_000_002), (0, 50_000_000)]);
}

/// Three links in a star around one port, all of whose packets are due at 1 ms: first by the name of the link, then
/// in the order of the log, whatever the order in the configuration.
#[test]
fn events_at_one_instant_are_ordered_by_the_names_of_elements_then_by_the_log() {
    let delay = DelayPlan::Constant(Duration::from_millis(1));
    let links = ["x", "b", "m"].map(|name| LinkPlan { delay, ..LinkPlan::new(name) }).to_vec();
    let mut plan = Plan::chain(1, links);
    plan.links.iter_mut().for_each(|link| link.lanes = vec![Target::Port("z".into())]);
    plan.ports = ["x", "b", "m"]
        .map(|name| (format!("in.{name}"), Target::Link { name: name.into(), lane: 0 }))
        .to_vec();
    plan.ports.push(("z".into(), Target::Port("z".into())));
    let inputs: Vec<_> =
        [0, 1, 2, 1, 0].map(|port| Input { at: Time::ZERO, what: What::Packet(packet(port)) }).to_vec();
    for steps in [[Step::Exactly], [Step::Wait], [Step::Late]] {
        let records = run(&plan, &inputs, &steps);
        let order: Vec<_> = records.iter().map(|r| r.body).collect();
        // Packets 1 and 3 through `b`, 2 through `m`, 0 and 4 through `x`.
        assert_eq!(order, [1, 3, 2, 0, 4]);
        assert!(records.iter().all(|r| r.at == at(1_000_000)));
    }
}

/// An input at t finds all events up to t done, those at t included: the packet that leaves the wire at 10 ms has made
/// room in a queue of none.
#[test]
fn events_at_the_instant_of_an_input_come_first() {
    let service = ServicePlan::Rate(Rate::from_bits_per_second(80_000)); // 10 ms a packet
    let queue = QueuePlan::Fifo(Bound::Packets(1), DropAt::Tail);
    let plan = Plan::chain(1, vec![LinkPlan { service, queue, ..LinkPlan::new("l") }]);
    let mut run = Run::new(&plan);
    (0..3).for_each(|_| run.hand_in(Time::ZERO, packet(0)));
    run.hand_in(at(10_000_000), packet(0));
    run.hand_in(at(19_999_999), packet(0));
    run.poll(END, usize::MAX);
    let verdicts: Vec<_> = run.records.iter().map(|r| (r.body, r.delivered())).collect();
    assert_eq!(verdicts, [(2, false), (0, true), (4, false), (1, true), (3, true)]);
}

/// A packet that comes with an instant that has passed is taken as if it came now, after everything up to now, and
/// counted; it does not matter whether what was due now had been polled for.
#[test]
fn stragglers_come_now_and_are_counted() {
    for poll_first in [false, true] {
        let service = ServicePlan::Rate(Rate::from_bits_per_second(80_000)); // 10 ms a packet
        let links = vec![LinkPlan::new("a"), LinkPlan { service, ..LinkPlan::new("b") }];
        let mut plan = Plan::chain(1, links);
        plan.ports.push(("late".into(), Target::Link { name: "b".into(), lane: 0 }));
        let mut run = Run::new(&plan);
        run.hand_in(at(50), packet(0));
        if poll_first {
            run.poll(at(50), usize::MAX);
        }
        // At 50 ns the first packet reaches `b` through `a`, which takes no time; this one goes straight to `b`.
        run.hand_in(at(20), packet(2));
        run.input(&Input { at: at(30), what: What::Change(0, ChangePlan::Corruption(Probability::ZERO)) });
        assert_eq!(run.engine.stragglers(), 2);
        run.poll(END, usize::MAX);
        let left: Vec<_> = run.records.iter().map(|r| (r.body, r.arrival, r.at)).collect();
        assert_eq!(left, [(0, at(50), at(10_000_050)), (1, at(50), at(20_000_050))]);
    }
}

/// Packets a millisecond apart whose delays are 5 ms and nothing by turns: every second one would overtake the one before
/// it, is held back instead, and leaves with it.
#[test]
fn what_is_held_back_to_keep_order_is_counted() {
    let mut run = Run::new(&Plan::chain(3, vec![LinkPlan::new("l")]));
    for n in 0..100 {
        let now = at(n * 1_000_000);
        let delay = DelayPlan::Constant(Duration::from_millis(if n % 2 == 0 { 5 } else { 0 }));
        run.input(&Input { at: now, what: What::Change(0, ChangePlan::Delay(delay)) });
        run.hand_in(now, packet(0));
    }
    run.poll(END, usize::MAX);
    let left: Vec<u64> = run.records.iter().map(|record| record.at.nanos()).collect();
    assert!(
        left.chunks(2).enumerate().all(|(n, pair)| *pair == [n as u64 * 2_000_000 + 5_000_000; 2]),
        "{left:?}"
    );
    let link = run.engine.links().next().expect("there is one");
    assert_eq!(run.engine.view(link).counters()[0].delayed_to_keep_order, 50);
}
