use super::*;
use crate::packet::FlowKey;
use crate::queue::Stand;
use crate::random::{Seed, Stream};
use bins::{BINS, LEVELS, fixed};

struct Bench {
    queue: Sfb,
    stand: Stand,
    now: Time,
}

impl Bench {
    fn new(config: SfbConfig) -> Self {
        Self::seeded(config, 3)
    }

    fn seeded(config: SfbConfig, seed: u64) -> Self {
        let queue = Sfb::new(config, Bound::Packets(1000));
        Self { queue, stand: Stand::new(Seed(seed)), now: Time::ZERO }
    }

    fn packet(&mut self, flow: u16, ecn: u8) -> PacketRef {
        let key = FlowKey { source_port: flow, traffic_class: ecn, ..FlowKey::default() };
        self.stand.insert(self.now, key, 1000)
    }

    /// The bins of a flow under the present function, or under the next.
    fn place(&mut self, flow: u16, set: usize) -> Place {
        let packet = self.packet(flow, 0);
        let context = self.stand.context();
        let place = self.queue.place(set, context.pool.get(packet), &context);
        self.stand.remove(packet);
        place
    }

    /// Sets p in all present bins of a flow.
    fn set(&mut self, flow: u16, chance: u32) {
        let place = self.place(flow, self.queue.active);
        self.queue.bins[self.queue.active].set(place, chance);
    }

    fn least(&mut self, flow: u16) -> u32 {
        let place = self.place(flow, self.queue.active);
        self.queue.bins[self.queue.active].least(place)
    }

    /// A packet of a flow arrives. Returns whether it stays, and whether it was marked.
    fn arrive(&mut self, flow: u16, ecn: u8) -> (bool, bool) {
        let packet = self.packet(flow, ecn);
        self.queue.enqueue(self.now, packet, &mut self.stand.context());
        let marked = self.stand.marked() > 0;
        let dropped = self.stand.dropped();
        dropped.inspect(|(packet, _)| self.stand.remove(*packet));
        (dropped.is_none(), marked)
    }

    fn send(&mut self) -> bool {
        let Dequeue::Packet(packet) = self.queue.dequeue(self.now, &mut self.stand.context()) else {
            return false;
        };
        self.stand.remove(packet);
        true
    }
}

/// The paper's formula: with bins of B flows at 1, so many of others are taken for one of these. Over 60 seeds.
#[test]
fn a_flow_is_mistaken_as_often_as_the_paper_says() {
    const SEEDS: u64 = 60;
    const FLOWS: u16 = 400;
    for bad in [8, 16, 32, 64] {
        let mut mistaken = 0;
        for seed in 0..SEEDS {
            let mut bench = Bench::seeded(SfbConfig::default(), seed);
            (0..bad).for_each(|flow| bench.set(flow, CERTAIN));
            mistaken += (bad..bad + FLOWS).filter(|&flow| bench.least(flow) == CERTAIN).count();
        }
        let share = mistaken as f64 / (SEEDS * u64::from(FLOWS)) as f64;
        let polluted = 1.0 - libm::pow(1.0 - 1.0 / BINS as f64, bad.into());
        let expected = libm::pow(polluted, LEVELS as f64);
        // Of a seed, how many bins are polluted varies: as measured, by less than this.
        assert!((share - expected).abs() < 0.15 * expected + 0.001, "{bad}: {share}, not {expected}");
    }
}

#[test]
fn probabilities_are_multiples_as_in_tc() {
    let SfbConfig { increment, decrement, .. } = SfbConfig::default();
    // tc's (65535 + 1000) / 2000 and (65535 + 10000) / 20000.
    assert_eq!((fixed(increment), fixed(decrement)), (33, 3));
    assert_eq!(fixed(Probability::ONE), 65_535);
}

/// Blue: p rises by `increment` for each arrival that finds `bin_target` packets, and falls where the bin is empty.
#[test]
fn p_rises_while_the_bin_is_long_and_falls_while_it_is_empty() {
    let mut bench = Bench::new(SfbConfig { bin_max: 1_000, ..SfbConfig::default() });
    (0..20).for_each(|_| assert_eq!(bench.arrive(1, 0), (true, false)));
    assert_eq!(bench.least(1), 0);
    (1..=100).for_each(|n| {
        bench.arrive(1, 0);
        assert_eq!(bench.least(1), 33 * n);
    });
    // Between the two, it stays.
    while bench.queue.backlog().packets > 10 {
        bench.send();
    }
    bench.arrive(1, 0);
    assert_eq!(bench.least(1), 3_300);
    while bench.send() {}
    bench.arrive(1, 0);
    bench.send();
    assert_eq!(bench.least(1), 3_297);
    // What left is not counted any more.
    let place = bench.place(1, 0);
    assert_eq!(bench.queue.bins[0].observe(place, &SfbConfig::default()).0, 0);
}

#[test]
fn a_bin_takes_no_more_than_its_most() {
    let mut bench = Bench::new(SfbConfig::default());
    let stay = (0..40).filter(|_| bench.arrive(1, 2).0).count();
    assert_eq!(stay, 25);
    // Another flow shares no more than a few of its bins.
    assert_eq!(bench.arrive(2, 2), (true, false));
}

/// Marks up to one half, and drops beyond it with twice the rest: 40,000 arrivals each, within 4.5 standard errors.
#[test]
fn what_can_be_marked_is_dropped_beyond_one_half() {
    const ARRIVALS: u32 = 40_000;
    let still =
        SfbConfig { increment: Probability::ZERO, decrement: Probability::ZERO, ..SfbConfig::default() };
    for (p, ecn, marks, drops) in [
        (0.2, 2, 0.2, 0.0),
        (0.5, 2, 0.5, 0.0),
        (0.7, 2, 0.3, 0.4),
        (0.9, 2, 0.1, 0.8),
        (0.3, 0, 0.0, 0.3),
        (0.7, 0, 0.0, 0.7),
    ] {
        let mut bench = Bench::new(still);
        bench.set(1, (p * f64::from(CERTAIN)) as u32);
        let (mut marked, mut dropped) = (0, 0);
        for _ in 0..ARRIVALS {
            let (stays, mark) = bench.arrive(1, ecn);
            marked += u32::from(mark);
            dropped += u32::from(!stays);
            bench.send();
        }
        for (seen, share) in [(marked, marks), (dropped, drops)] {
            let expected = share * f64::from(ARRIVALS);
            let error = libm::sqrt(expected * (1.0 - share)) + 1.0;
            assert!((f64::from(seen) - expected).abs() < 4.5 * error, "{p}: {seen}, not {expected}");
        }
    }
}

/// A token bucket: at any rate of arrivals above it, `burst` packets and then `rate` a second.
#[test]
fn flows_that_do_not_respond_share_a_bucket() {
    for gap in [1, 3, 40] {
        let still =
            SfbConfig { increment: Probability::ZERO, decrement: Probability::ZERO, ..SfbConfig::default() };
        let mut bench = Bench::new(SfbConfig { rehash: None, ..still });
        bench.set(1, CERTAIN);
        bench.set(2, CERTAIN);
        let mut stay = 0;
        for n in 0..20_000u64 {
            bench.now = Time::from_nanos(n * gap * 1_000_000);
            stay += u64::from(bench.arrive(1 + (n % 2) as u16, 2).0);
            bench.send();
        }
        let seconds = 20_000 * gap / 1000;
        assert!((20 + 10 * seconds).abs_diff(stay) <= 1, "{gap}: {stay} in {seconds} s");
    }
}

/// A flow found under one function is known under the next at once, if there was time to warm up; other flows change bins.
#[test]
fn the_function_changes_and_flows_that_do_not_respond_stay_known() {
    for (warmup, known) in [(60, true), (0, false)] {
        let warmup = Duration::from_secs(warmup);
        let mut bench = Bench::new(SfbConfig { penalty_rate: 200, warmup, ..SfbConfig::default() });
        let second = |n: u64| Time::from_nanos(n * 1_000_000_000);
        bench.arrive(9, 2);
        bench.send();
        let (before, next) = (bench.place(1, 0), bench.place(1, 1));
        assert_ne!(before, next);
        // From here on it sends 250 packets a second, with a backlog that is long enough.
        bench.set(1, CERTAIN);
        for n in 0..250 * 59 {
            bench.now = Time::from_nanos(541_000_000_000 + n * 4_000_000);
            bench.arrive(1, 0);
            if bench.queue.backlog().packets > 22 {
                bench.send();
            }
        }
        assert_eq!(bench.queue.active, 0);
        bench.now = second(600);
        bench.arrive(9, 2);
        assert_eq!(bench.queue.active, 0, "not before the interval is over");
        bench.now = second(601);
        bench.arrive(9, 2);
        assert_eq!(bench.queue.active, 1);
        assert_eq!(bench.place(1, 1), next);
        assert_eq!(bench.least(1) == CERTAIN, known, "{}", bench.least(1));
        // Packets that waited leave the bins that they had joined.
        while bench.send() {}
        for set in [0, 1] {
            let place = bench.place(1, set);
            assert_eq!(bench.queue.bins[set].observe(place, &SfbConfig::default()).0, 0);
        }
        bench.now = second(1300);
        bench.arrive(9, 2);
        assert_eq!(bench.queue.active, 0);
        assert_ne!(bench.place(1, 0), before, "a third function");
    }
}

/// A flow without congestion control that sends one and a half times the link's rate, among 20 that send half of it together:
/// it loses what is too much, two thirds of its packets or a few more, and the others lose next to nothing.
#[test]
fn one_flow_is_limited_and_the_others_are_spared() {
    let increment = Probability::from_ratio(1, 200).expect("a probability");
    let mut bench = Bench::new(SfbConfig { increment, ..SfbConfig::default() });
    let mut lost = [0u32; 2];
    let mut sent = [0u32; 2];
    let stream = Stream::new(Seed(8), "sfb", "test");
    for n in 0..60_000u64 {
        // In units of the time of a packet on the link, a millisecond.
        bench.now = Time::from_nanos(n * 1_000_000);
        let mut draw = stream.nth(n);
        for at in 0..2 {
            if at == 0 || n % 2 == 0 {
                let counts = u32::from(n > 20_000);
                sent[0] += counts;
                lost[0] += counts * u32::from(!bench.arrive(1, 0).0);
            }
        }
        if draw.below(2) == 0 {
            let flow = 100 + draw.below(20) as u16;
            let counts = u32::from(n > 20_000);
            sent[1] += counts;
            lost[1] += counts * u32::from(!bench.arrive(flow, 0).0);
        }
        bench.send();
    }
    let share = |of: usize| f64::from(lost[of]) / f64::from(sent[of]);
    assert!((2.0 / 3.0 - 0.01..0.75).contains(&share(0)), "{}", share(0));
    assert!(share(1) < 0.01, "{}", share(1));
}
