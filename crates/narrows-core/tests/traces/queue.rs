//! What the queue is told of a wire and of a bound that follow a trace.

use std::sync::{Arc, Mutex};

use narrows_core::aqm::{Red, RedConfig, Thresholds};
use narrows_core::queue::{Backlog, Bound, Context, Dequeue, DropAt, Fifo, Queue, Wire};
use narrows_core::service::{ConstantRate, RateSteps, ServiceCurve};
use narrows_core::steps::{After, Steps};
use narrows_core::{Bytes, Change, Duration, LinkConfig, PacketList, PacketRef, Pool, Rate, Target, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::{link, run};

/// A FIFO that notes with which rate in mind and with which bound it was asked for each thing, and when.
#[derive(Debug)]
struct Watching {
    fifo: Fifo,
    rate: Rate,
    seen: Seen,
}

type Seen = Arc<Mutex<Vec<(Time, Rate, Bound)>>>;

impl Watching {
    fn note(&self, now: Time) {
        self.seen.lock().expect("no other thread").push((now, self.rate, self.fifo.bound()));
    }
}

impl Queue for Watching {
    fn enqueue(&mut self, now: Time, packet: PacketRef, context: &mut Context<'_>) {
        self.note(now);
        self.fifo.enqueue(now, packet, context);
    }

    fn dequeue(&mut self, now: Time, context: &mut Context<'_>) -> Dequeue {
        self.note(now);
        self.fifo.dequeue(now, context)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn set_bound(&mut self, bound: Bound) {
        self.fifo.set_bound(bound);
    }

    fn bound(&self) -> Bound {
        self.fifo.bound()
    }

    fn take_all(&mut self, pool: &mut Pool) -> PacketList {
        self.fifo.take_all(pool)
    }

    fn adopt(&mut self, now: Time, packets: PacketList, context: &mut Context<'_>) {
        self.fifo.adopt(now, packets, context);
    }

    fn set_wire(&mut self, _: Time, wire: Wire) {
        self.rate = wire.rate;
    }
}

/// RED's average falls while nothing waits by what the wire could have sent: by the rates that a trace has had meanwhile,
/// as if each had been set at its instant.
#[test]
fn red_knows_what_an_idle_wire_could_have_sent() {
    let rate = Rate::from_bits_per_second;
    let milli = |millis: u64| millis * 1_000_000;
    let managed = |service: Box<dyn ServiceCurve>| {
        let thresholds = Thresholds::Packets { min: 1, max: 4 };
        let red = RedConfig {
            weight: 0.1,
            ecn: false,
            typical_packet: Bytes::new(15_000),
            thresholds,
            ..RedConfig::default()
        };
        let queue = Fifo::managed(Bound::Packets(100), DropAt::Tail, Box::new(Red::new(red)));
        LinkConfig { queue: Box::new(queue), service, ..link(ConstantRate(Rate::DOWN)) }
    };
    // Forty packets bring the average up. Then comes a silence with these changes, and sixteen more.
    let told = |changes: &[(u64, Rate)]| {
        let fast = (Time::ZERO, rate(1_000_000));
        let points = changes.iter().map(|&(at, rate)| (Time::from_nanos(at), rate));
        let steps = Steps::new([fast].into_iter().chain(points).collect(), After::Hold).expect("a trace");
        let mut packets = vec![(0, 1500); 40];
        packets.extend([(milli(3_000), 1500); 16]);
        let traced = run(managed(Box::new(RateSteps::new(steps))), &packets, Vec::new());
        let set = |&(at, rate): &(u64, Rate)| {
            (at, Change::Service(Box::new(ConstantRate(rate)) as Box<dyn ServiceCurve>))
        };
        let changed =
            run(managed(Box::new(ConstantRate(fast.1))), &packets, changes.iter().map(set).collect());
        assert_eq!(traced, changed, "{changes:?}");
        traced.iter().skip(40).filter(|packet| packet.1).count()
    };
    let slow = rate(1_000);
    // Slow all the time, fast for the last 20 ms only, and the other way about.
    let by_turns: Vec<_> = (0..500)
        .map(|n| (milli(500) + n * milli(5), if n % 2 == 0 { Rate::DOWN } else { rate(1_200_000) }))
        .collect();
    let through = [
        told(&[(milli(500), slow)]),
        told(&[(milli(500), slow), (milli(2_980), rate(100_000_000))]),
        told(&[(milli(500), slow), (milli(600), rate(10_000_000)), (milli(2_980), slow)]),
        // More than anybody is told one by one.
        told(&by_turns),
    ];
    assert!(
        through[0] < through[1] && through[0] < through[2] && through[0] < through[3],
        "the average falls by the rate that there was: {through:?}"
    );
}

/// A silence of a century over a trace of two nanoseconds takes no century.
#[test]
fn a_long_silence_over_a_fast_trace_is_soon_caught_up_with() {
    let points = vec![
        (Time::ZERO, Rate::from_bits_per_second(8_000_000)),
        (Time::from_nanos(1), Rate::from_bits_per_second(24_000_000)),
    ];
    let steps = Steps::new(points, After::Loop(Duration::from_nanos(2))).expect("a trace");
    let century = 3_155_760_000_000_000_000;
    let left = run(link(RateSteps::new(steps)), &[(0, 1000), (century, 1000)], Vec::new());
    // 1000 bytes at 16 Mbit/s in the mean.
    assert_eq!(left, [(500_000, true), (century + 500_000, true)]);
}

fn watching(seen: &Seen) -> Box<Watching> {
    let fifo = Fifo::new(Bound::Packets(77), DropAt::Tail);
    Box::new(Watching { fifo, rate: Rate::DOWN, seen: Arc::clone(seen) })
}

fn steps<T: Clone + std::fmt::Debug>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Steps<T>> {
    (vec((1u64..2_000_000, of), 1..8), 1u64..2_000_000, any::<bool>()).prop_map(|(gaps, rest, loops)| {
        let mut at = 0;
        let mut points = Vec::new();
        for (gap, value) in gaps {
            points.push((Time::from_nanos(at), value));
            at += gap;
        }
        let after = if loops { After::Loop(Duration::from_nanos(at + rest)) } else { After::Hold };
        Steps::new(points, after).expect("they are in order")
    })
}

fn rate() -> impl Strategy<Value = Rate> {
    (2_000_000u64..900_000_000).prop_map(Rate::from_bits_per_second)
}

fn bound() -> impl Strategy<Value = Bound> {
    prop_oneof![(0u64..9).prop_map(Bound::Packets), (0u64..9_000).prop_map(|b| Bound::Bytes(Bytes::new(b)))]
}

proptest! {
    /// Whenever the queue is asked for anything it knows the rate and the bound of that instant, whatever was changed.
    #[test]
    fn the_queue_knows_the_rate_and_the_bound_of_the_instant(
        rates in vec(steps(rate()), 1..4),
        bounds in vec(steps(bound()), 1..4),
        gaps in vec(prop_oneof![Just(0u64), 1u64..500_000, 1u64..9_000_000], 1..80),
        changes in vec(1u64..9_000_000, 3),
        queue_at in 1u64..20_000_000,
    ) {
        let seen = Seen::default();
        let mut link = link(RateSteps::new(rates[0].clone()));
        (link.queue, link.bound_steps) = (watching(&seen), Some(bounds[0].clone()));
        let mut at = 0;
        let packets: Vec<_> = gaps.iter().map(|gap| { at += gap; (at, 1_000) }).collect();
        let mut all = vec![(queue_at, Change::Queue(watching(&seen)))];
        for (number, steps) in rates.iter().enumerate().skip(1) {
            let at = changes[..number].iter().sum();
            all.push((at, Change::Service(Box::new(RateSteps::new(steps.clone())))));
        }
        for (number, steps) in bounds.iter().enumerate().skip(1) {
            let at = changes[..number].iter().sum::<u64>() / 2;
            all.push((at, Change::BoundSteps(Some(steps.clone()))));
        }
        all.sort_by_key(|change| change.0);
        run(link, &packets, all);
        let current = |now: Time, count: usize, half: u64| {
            (1..count)
                .filter(|&number| changes[..number].iter().sum::<u64>() / half <= now.nanos())
                .max()
                .unwrap_or(0)
        };
        for &(now, rate, bound) in seen.lock().expect("no other thread").iter() {
            // At the instant of a change, what came before it saw what was before.
            let borders = (1..4).map(|number| changes[..number].iter().sum::<u64>());
            if borders.flat_map(|at| [at, at / 2]).any(|at| at == now.nanos()) {
                continue;
            }
            prop_assert_eq!(rate, rates[current(now, rates.len(), 1)].at(now), "at {}", now);
            prop_assert_eq!(bound, bounds[current(now, bounds.len(), 2)].at(now), "at {}", now);
        }
    }
}

/// Two packets fit, then none, not even one for an idle wire, then three, again and again. Nothing that waits is dropped
/// when the bound shrinks.
#[test]
fn a_bound_over_time_drops_by_the_bound_of_the_instant() {
    let milli = |n: u64| Time::from_nanos(n * 1_000_000);
    let points = [(0, 2), (10, 0), (20, 3)].map(|(at, packets)| (milli(at), Bound::Packets(packets)));
    let after = After::Loop(Duration::from_millis(30));
    let mut link: LinkConfig = LinkConfig::new("wire", Target::Port("b".into()));
    link.bound_steps = Some(Steps::new(points.to_vec(), after).expect("they are in order"));
    // 1,250 bytes take 1 ms.
    link.service = Box::new(narrows_core::service::ConstantRate(Rate::from_bits_per_second(10_000_000)));
    let burst = |at: u64| [(at, 1_250); 5];
    // 9.5 ms: three go, of which the last leaves at 12.5; 11 ms: one waits already, so none fits.
    let packets =
        [burst(500_000), burst(9_500_000), burst(11_000_000), burst(20_000_000), burst(40_000_000)].concat();
    let left = run(link, &packets, Vec::new());
    let went: Vec<_> = left.chunks(5).map(|burst| burst.iter().filter(|packet| packet.1).count()).collect();
    assert_eq!(went, [3, 3, 0, 4, 0]);
    assert_eq!(left[7], (12_500_000, true));
}
