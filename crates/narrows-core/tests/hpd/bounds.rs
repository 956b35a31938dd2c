//! Delay bounds: what is kept, by which reading and in which order.

use narrows_core::sched::{BoundOrder, BoundReading, FlowId, HpdClass, HpdConfig, Per1024};
use narrows_core::{Duration, PacketRef, Time};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::drive::{Arrival, PER_BYTE, Sent, classes, run, server, states};

const LONGEST: u32 = 1500;

fn arrivals(classes: u32) -> impl Strategy<Value = Vec<Arrival>> {
    // Bursts: most come at the instant of the one before.
    let gap = prop_oneof![3 => Just(0u64), 2 => 0u64..40_000, 1 => 0u64..400_000];
    vec((gap, 0..classes, 40u32..=LONGEST), 1..300)
}

fn plain(ddp: u32) -> HpdClass {
    HpdClass { ddp: ddp.try_into().expect("not 0"), ..HpdClass::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The bound, the class's own packets before it, and one packet; and by the reading that is the default, not even that
    /// unless one is on the wire when it comes.
    #[test]
    fn a_bounded_class_waits_no_longer_than_its_limit_its_own_burst_and_a_packet(
        arrivals in arrivals(4),
        limit in 0u64..200_000,
        bounded in 0u32..4,
        reading in select(vec![BoundReading::AboutToViolate, BoundReading::HasViolated]),
        bound_order in select(vec![BoundOrder::Reference, BoundOrder::EarliestDeadline]),
        g in 0u16..=1024,
    ) {
        let limit = Duration::from_nanos(limit);
        let settings = (0..4).map(|number| HpdClass {
            // Far behind all others, but for its bound.
            ddp: if number == bounded { 1000 } else { number + 1 }.try_into().expect("not 0"),
            g: Per1024::new(g).expect("at most 1024"),
            limit: (number == bounded).then_some(limit),
            ..HpdClass::default()
        });
        let config = HpdConfig { bound_order, bound_reading: reading, ..classes(settings.collect()) };
        let mut sent: Vec<Sent> = Vec::new();
        let mut over = 0;
        run(config, &arrivals, |server, packet| {
            sent.push(packet);
            over = states(server, packet.at)[bounded as usize].over_limit;
        });
        prop_assert_eq!(sent.len(), arrivals.len());
        let packet = Duration::from_nanos(u64::from(LONGEST) * PER_BYTE);
        let mut late = 0;
        for one in sent.iter().filter(|one| one.class == bounded) {
            // Those of its class that waited when it came.
            let before: u64 = sent
                .iter()
                .filter(|other| other.class == bounded && other.packet < one.packet && other.at >= one.came)
                .map(|other| u64::from(other.length) * PER_BYTE)
                .sum();
            let own = Duration::from_nanos(before);
            let most = match reading {
                BoundReading::AboutToViolate => limit.max(packet) + own,
                BoundReading::HasViolated => limit + packet + own,
            };
            let waited = one.at.since(one.came);
            prop_assert!(waited <= most, "{waited} with {own} of its own, {limit}");
            late += u64::from(waited > limit);
        }
        prop_assert!(over >= late, "who waited too long was served for that");
    }

    /// Where no bound can be kept, the classes have strict priority, the highest number first.
    #[test]
    fn bounds_that_cannot_be_kept_are_strict_priority(arrivals in arrivals(5)) {
        let settings = (1..=5).map(|ddp| HpdClass { limit: Some(Duration::ZERO), ..plain(ddp) });
        let mut left = arrivals.iter().scan(0, |at, &(gap, class, _)| {
            *at += gap;
            Some((Time::from_nanos(*at), class))
        }).collect::<Vec<_>>();
        let mut failed = None;
        run(classes(settings.collect()), &arrivals, |_, sent| {
            let waiting = left.iter().filter(|(came, _)| *came <= sent.at).map(|(_, class)| *class);
            if waiting.max() != Some(sent.class) {
                failed = Some(sent);
            }
            let own = left.iter().position(|&one| one == (sent.came, sent.class)).expect("it came");
            left.remove(own);
        });
        prop_assert_eq!(failed, None);
    }

    /// With the earliest deadline first, the head whose deadline is first goes before all others at stake.
    #[test]
    fn the_earliest_deadline_goes_first(
        arrivals in arrivals(4),
        limits in vec(0u64..60_000, 4),
    ) {
        let settings = limits.iter().map(|&limit| HpdClass { limit: Some(Duration::from_nanos(limit)), ..plain(1) });
        let config = HpdConfig {
            bound_order: BoundOrder::EarliestDeadline,
            bound_reading: BoundReading::HasViolated,
            ..classes(settings.collect())
        };
        let mut heads: Vec<Option<Time>> = vec![None; 4];
        let mut failed = None;
        run(config, &arrivals, |server, sent| {
            // Heads as they were when it was chosen: those of now, but for its own class.
            let holds = states(server, sent.at);
            for (number, head) in heads.iter_mut().enumerate() {
                let waits = server.flows().packets(FlowId::new(number as u32)) > 0;
                *head = waits.then(|| Time::from_nanos(sent.at.nanos() - holds[number].hold.nanos()));
            }
            let deadline = |number: usize, came: Time| came + Duration::from_nanos(limits[number]);
            let own = deadline(sent.class as usize, sent.came);
            let violated = |number: &usize| {
                heads[*number].is_some_and(|came| deadline(*number, came) < sent.at)
            };
            let others: Vec<usize> = (0..4).filter(|number| *number != sent.class as usize).filter(violated).collect();
            for number in others {
                let other = deadline(number, heads[number].expect("it waits"));
                if other < own || own >= sent.at {
                    failed = Some((sent, number));
                }
            }
        });
        prop_assert_eq!(failed, None);
    }
}

/// With packets of 12 µs and a limit of 30 µs: "about to violate" serves in time, "has violated" one packet late.
#[test]
fn the_two_readings_differ_by_a_packet() {
    for (reading, waited, over) in
        [(BoundReading::AboutToViolate, 24_000, 1), (BoundReading::HasViolated, 36_000, 1)]
    {
        let bounded = HpdClass { limit: Some(Duration::from_micros(30)), ..plain(1000) };
        let config = HpdConfig { bound_reading: reading, ..classes(vec![plain(1), bounded]) };
        let mut server = server(config);
        for _ in 0..10 {
            server.enqueue(Time::ZERO, FlowId::new(0), PacketRef::from_number(0), LONGEST);
        }
        server.enqueue(Time::ZERO, FlowId::new(1), PacketRef::from_number(1), LONGEST);
        let mut now = Time::ZERO;
        loop {
            let narrows_core::sched::Served::Packet(flow, waits) = server.dequeue(now) else {
                panic!("eleven packets wait")
            };
            if flow == FlowId::new(1) {
                break;
            }
            now = now + Duration::from_nanos(u64::from(waits.length) * PER_BYTE);
        }
        assert_eq!(now.nanos(), waited, "{reading:?}");
        assert_eq!(states(&server, now)[1].over_limit, over);
    }
}

/// Exactly at the limit is in time.
#[test]
fn a_limit_that_is_just_met_is_met() {
    for (limit, expected) in [(12_000, 0), (11_999, 1)] {
        let bounded = HpdClass { limit: Some(Duration::from_nanos(limit)), ..plain(1000) };
        let mut server = server(classes(vec![plain(1), bounded]));
        // The other one has waited longer.
        server.enqueue(Time::ZERO, FlowId::new(0), PacketRef::from_number(0), LONGEST);
        let now = Time::from_nanos(5);
        server.enqueue(now, FlowId::new(1), PacketRef::from_number(1), 40);
        let narrows_core::sched::Served::Packet(flow, _) = server.dequeue(now) else { panic!("two wait") };
        assert_eq!(flow.number(), expected, "{limit}");
    }
}
