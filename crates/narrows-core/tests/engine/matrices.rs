//! Links as Moe measured them, in virtual time: what is delivered, and when, in closed form.

use narrows_core::queue::{Bound, DropAt};
use narrows_core::source::{Arrivals, Lengths, Pace, Source, SourceConfig};
use narrows_core::{Duration, Protocol, Rate, Seed, Time};

use crate::drive::{END, Run};
use crate::plan::{DelayPlan, LinkPlan, PacketPlan, Plan, QueuePlan, ServicePlan};

const BILLION: u128 = 1_000_000_000;
/// 1,470 bytes of payload with 8 of UDP and 20 of IPv4.
const LENGTH: u32 = 1_498;
const BITS: u128 = LENGTH as u128 * 8;

fn link(rate: u64, delay_ms: u64, queue: u64) -> LinkPlan {
    LinkPlan {
        service: ServicePlan::Rate(Rate::from_bits_per_second(rate)),
        delay: DelayPlan::Constant(Duration::from_millis(delay_ms)),
        queue: QueuePlan::Fifo(Bound::Packets(queue), DropAt::Tail),
        ..LinkPlan::new("l")
    }
}

fn packet(port: usize, length: u32) -> PacketPlan {
    PacketPlan { port, length, network: Protocol::Ipv4 }
}

/// UDP at 120 % of the rate for 31 s. The wire is busy from the first packet on, so the k-th departure is at
/// ⌈k·bits/rate⌉ and the delay, and after the last arrival the queue is full with one more packet on the wire:
/// delivered are those sent by then, the queue, and one.
#[test]
fn overload_delivers_the_rate_and_the_queue() {
    let queues = [(500_000, [2, 3, 13]), (1_500_000, [2, 3, 13])];
    let queues = queues.into_iter().chain([(10_000_000, [2, 17, 84]), (100_000_000, [17, 167, 834])]);
    for (rate, bounds) in queues {
        for (delay_ms, queue) in [0, 10, 50].into_iter().zip(bounds) {
            let offered = rate / 10 * 12;
            let mut source = Source::new(
                Seed(1),
                "udp",
                SourceConfig {
                    arrivals: Arrivals::Constant(Pace::Bits(Rate::from_bits_per_second(offered))),
                    lengths: Lengths::Fixed(LENGTH),
                    start: Time::ZERO,
                    stop: Time::from_nanos(31_000_000_000),
                    packets: None,
                },
            );
            let mut run = Run::new(&Plan::chain(1, vec![link(rate, delay_ms, queue)]));
            let (mut last, mut count) = (0, 0);
            while let Some((at, length)) = source.take() {
                run.poll(at, usize::MAX);
                run.hand_in(at, packet(0, length));
                (last, count) = (at.nanos(), count + 1);
            }
            run.poll(END, usize::MAX);

            let (rate, offered) = (u128::from(rate), u128::from(offered));
            // The i-th packet comes at ⌈i·bits/offered⌉, from i = 0 on, before 31 s.
            let expected_count = (31 * BILLION - 1) * offered / (BITS * BILLION) + 1;
            assert_eq!(u128::from(last), ((expected_count - 1) * BITS * BILLION).div_ceil(offered));
            assert_eq!(count, expected_count);

            let sent_by_then = u128::from(last) * rate / (BITS * BILLION);
            let delivered: Vec<_> = run.records.iter().filter(|r| r.delivered()).collect();
            assert_eq!(delivered.len() as u128, sent_by_then + u128::from(queue) + 1, "{rate} {queue}");
            for (k, record) in (1..).zip(delivered) {
                let sent = (k * BITS * BILLION).div_ceil(rate) as u64;
                assert_eq!(record.at.nanos(), sent + delay_ms * 1_000_000);
            }
        }
    }
}

/// Pings of 84 bytes every 10 ms over 10 Mbit/s: they never queue, and each takes twice the propagation delay and the
/// 67.2 µs for which it is on each wire.
#[test]
fn pings_take_the_propagation_and_the_transmission() {
    for (round_trip_ms, queue) in [(20, 17), (100, 84), (400, 334)] {
        let mut plan = Plan::chain(1, vec![link(10_000_000, round_trip_ms / 2, queue)]);
        let mut back = plan.clone();
        back.links[0].name = "back".into();
        plan.links[0].lanes = vec![narrows_core::Target::Port("z".into())];
        back.links[0].lanes = vec![narrows_core::Target::Port("a".into())];
        plan.links.append(&mut back.links);
        plan.ports[1].1 = narrows_core::Target::Link { name: "back".into(), lane: 0 };
        let mut run = Run::new(&plan);
        let pings = 1_000u64;
        let mut asked = 0;
        let mut round_trips = Vec::new();
        while round_trips.len() < pings as usize {
            let ping_at = Time::from_nanos(asked * 10_000_000);
            let event_at = run.engine.next_event().unwrap_or(Time::NEVER);
            if asked < pings && ping_at <= event_at {
                run.hand_in(ping_at, packet(0, 84));
                asked += 1;
                continue;
            }
            run.poll(event_at, 1);
            let Some(record) = run.records.pop() else { continue };
            assert!(record.delivered());
            if record.id.port() == run.engine.port("a").expect("it was configured") {
                // The echo leaves at the instant at which the ping came.
                run.hand_in(record.at, packet(1, 84));
            } else {
                let asked_at = Time::from_nanos(record.id.number() * 10_000_000);
                round_trips.push(record.at.since(asked_at).nanos());
            }
        }
        assert_eq!(round_trips, vec![round_trip_ms * 1_000_000 + 2 * 67_200; pings as usize]);
    }
}

/// 1 Mbit/s, 100 ms, 10 packets: under overload the worst delay is 100 ms and the time of eleven packets, ten in the
/// queue and one on the wire. With 1,250 bytes a packet takes 10 ms.
#[test]
fn the_worst_delay_is_the_propagation_and_the_queue() {
    let worst_at_gap = |gap_nanos: u64, packets: u64| {
        let mut run = Run::new(&Plan::chain(1, vec![link(1_000_000, 100, 10)]));
        for n in 0..packets {
            run.hand_in(Time::from_nanos(n * gap_nanos), packet(0, 1_250));
        }
        run.poll(END, usize::MAX);
        let delays = run.records.iter().filter(|r| r.delivered()).map(|r| r.at.since(r.arrival));
        delays.max().expect("some are delivered")
    };
    let worst = Duration::from_millis(100 + 11 * 10);
    // Bursts meet it, a stream at ten times the rate too, because its packets come at ends of transmissions; one whose
    // packets come a little later than that stays below it by as much.
    assert_eq!(worst_at_gap(0, 1_000), worst);
    assert_eq!(worst_at_gap(1_000_000, 10_000), worst);
    assert!(worst_at_gap(1_000_001, 10_000) <= worst);
    assert!(worst_at_gap(1_000_001, 10_000) > worst - Duration::from_millis(1));
}
