use super::*;
use crate::packet::FlowKey;
use crate::queue::Stand;
use crate::random::{Seed, Stream};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

struct Bench {
    queue: Hhf,
    stand: Stand,
    now: Time,
}

impl Bench {
    fn new(config: HhfConfig) -> Self {
        Self { queue: Hhf::new(config), stand: Stand::new(Seed(4)), now: Time::ZERO }
    }

    /// A packet arrives. Returns how many are dropped.
    fn arrive(&mut self, flow: u16, length: u32) -> usize {
        let key = FlowKey { source_port: flow, ..FlowKey::default() };
        let packet = self.stand.insert(self.now, key, length);
        self.queue.enqueue(self.now, packet, &mut self.stand.context());
        let mut drops = 0;
        while let Some((packet, _)) = self.stand.dropped() {
            self.stand.remove(packet);
            drops += 1;
        }
        drops
    }

    /// The flow of the packet that is sent next.
    fn send(&mut self) -> Option<u16> {
        let Dequeue::Packet(packet) = self.queue.dequeue(self.now, &mut self.stand.context()) else {
            return None;
        };
        let flow = self.stand.pool().get(packet).key.source_port;
        self.stand.remove(packet);
        Some(flow)
    }

    fn waiting(&self) -> [u64; 2] {
        [self.queue.waiting[HEAVY].len(), self.queue.waiting[LIGHT].len()]
    }

    fn at(&mut self, milliseconds: u64) {
        self.now = Time::from_nanos(milliseconds * 1_000_000);
    }
}

/// A flow alone is heavy from the first packet on with which it has sent more than `admit` in an interval.
#[test]
fn a_flow_is_heavy_once_it_has_sent_more_than_is_admitted() {
    let config = HhfConfig { admit: Bytes::new(10_000), ..HhfConfig::default() };
    let mut bench = Bench::new(config);
    (0..10).for_each(|_| _ = bench.arrive(1, 1000));
    assert_eq!(bench.waiting(), [0, 10]);
    (0..3).for_each(|_| _ = bench.arrive(1, 1000));
    assert_eq!((bench.waiting(), bench.queue.found()), ([3, 10], 1));
    // At 10 packets in 40 ms and a little, it is not.
    let mut slow = Bench::new(config);
    for n in 0..1000 {
        slow.at(n * 5);
        slow.arrive(1, 1000);
    }
    assert_eq!(slow.waiting(), [0, 1000]);
}

#[test]
fn a_heavy_flow_is_forgotten_after_a_while() {
    let config = HhfConfig { admit: Bytes::new(2_000), ..HhfConfig::default() };
    let mut bench = Bench::new(config);
    (0..3).for_each(|_| _ = bench.arrive(1, 1000));
    assert_eq!(bench.waiting(), [1, 2]);
    bench.at(1_000);
    bench.arrive(1, 1000);
    assert_eq!(bench.waiting(), [2, 2]);
    bench.at(2_001);
    bench.arrive(1, 1000);
    assert_eq!(bench.waiting(), [2, 3]);
    // Its entry is used again.
    (0..2).for_each(|_| _ = bench.arrive(1, 1000));
    assert_eq!((bench.waiting(), bench.queue.found(), bench.queue.refused()), ([3, 4], 2, 0));
}

#[test]
fn so_many_flows_are_heavy_and_no_more() {
    let config = HhfConfig { admit: Bytes::new(1_000), heavy_limit: 3, ..HhfConfig::default() };
    let mut bench = Bench::new(config);
    for flow in 1..=5 {
        (0..2).for_each(|_| _ = bench.arrive(flow, 900));
    }
    assert_eq!((bench.waiting(), bench.queue.found(), bench.queue.refused()), ([3, 7], 3, 2));
}

/// Of the two, light has twice the bytes of heavy while both have packets, and goes first after it was empty.
#[test]
fn shares_are_as_the_weight() {
    for weight in [1, 2, 5] {
        let config = HhfConfig { admit: Bytes::new(2_000), weight, ..HhfConfig::default() };
        let mut bench = Bench::new(config);
        (0..500).for_each(|_| _ = bench.arrive(1, 1_000));
        let mut sent = [0u32; 2];
        let mut flow = 100;
        for _ in 0..450 {
            // Many light flows, none of which sends much.
            while bench.waiting()[LIGHT] < 8 {
                flow += 1;
                bench.at(u64::from(flow) / 20);
                bench.arrive(flow, 1_000);
            }
            sent[usize::from(bench.send() != Some(1))] += 1;
        }
        let expected = 450.0 / (1.0 + f64::from(weight));
        assert!((f64::from(sent[0]) - expected).abs() <= 4.0, "{weight}: {sent:?}, not {expected}");
    }
    let mut bench = Bench::new(HhfConfig { admit: Bytes::new(500), ..HhfConfig::default() });
    (0..9).for_each(|_| _ = bench.arrive(1, 1_000));
    assert_eq!(bench.waiting(), [9, 0]);
    bench.send();
    bench.arrive(2, 400);
    assert_eq!(bench.send(), Some(2));
}

#[test]
fn heavy_flows_lose_their_oldest_packets() {
    let config = HhfConfig { admit: Bytes::new(3_000), bound: Bound::Packets(6), ..HhfConfig::default() };
    let mut bench = Bench::new(config);
    let drops: Vec<usize> = (0..8).map(|_| bench.arrive(1, 1_000)).collect();
    assert_eq!(drops, [0, 0, 0, 0, 0, 0, 1, 1]);
    assert_eq!(bench.waiting(), [3, 3]);
    let drops: Vec<usize> = (0..5).map(|n| bench.arrive(10 + n, 100)).collect();
    assert_eq!((drops, bench.waiting()), (Vec::from([1; 5]), [0, 6]));
    let [heavy, light] = bench.queue.counters;
    assert_eq!((heavy.dropped.packets, light.dropped.packets), (5, 2));
}

/// No flow that sends more than `admit` escapes. With flows of s bytes, C in all, b counters in each of d arrays and a threshold
/// T, a flow below it is mistaken with a probability of (C/(T·b)·T/(T − s))^d at most (Estan and Varghese, lemma 1).
#[test]
fn no_heavy_flow_escapes_and_others_are_mistaken_less_often_than_the_bound() {
    const MICE: u64 = 2_000;
    const ELEPHANTS: u64 = 20;
    const ADMIT: u64 = 20_000;
    let reset = Duration::from_secs(1000);
    let config = HhfConfig { admit: Bytes::new(ADMIT), reset, ..HhfConfig::default() };
    let stream = Stream::new(Seed(6), "hhf", "test");
    for (own, total) in [(3u64, 8_000u64), (5, 12_000), (8, 18_000)] {
        let (mut filter, mut sent, mut heavy) = (Filter::new(), BTreeMap::new(), BTreeSet::new());
        for n in 0..total {
            // Each of the mice sends `own` packets, and the rest is the elephants', in between.
            let flow = match n % (total / (MICE * own)).max(1) {
                0 if n < MICE * own => n % MICE,
                _ => MICE + stream.nth(n).below(ELEPHANTS),
            };
            let hash = crate::random::mix(flow) as u32;
            let is_heavy = filter.judge(Time::from_nanos(n), &config, hash, 1_000) == HEAVY;
            let sent = sent.entry(flow).or_insert(0);
            *sent += 1_000;
            assert!(is_heavy || *sent <= ADMIT, "{flow} escapes");
            is_heavy.then(|| heavy.insert(flow));
        }
        let mistaken = heavy.iter().filter(|flow| **flow < MICE).count() as f64 / MICE as f64;
        let strength = (ADMIT * filter::COUNTERS as u64) as f64 / (total * 1_000) as f64;
        let left = ADMIT as f64 / (ADMIT - own * 1_000) as f64;
        let bound = libm::pow(left / strength, filter::ARRAYS as f64);
        assert!(
            mistaken <= bound && heavy.len() as u64 >= ELEPHANTS,
            "{own}: {mistaken}, not {bound} at most"
        );
    }
}
