//! The queue against a plain transcription of the kernel's: lists instead of trees and heaps, 128-bit integers, the loss
//! models as the kernel's branches, on the same random numbers.

use alloc::vec;
use alloc::vec::Vec;

use proptest::collection::vec as many;
use proptest::option;
use proptest::prelude::*;

use super::super::config::{Chance, Generation, Loss, Rate, Share, Slots, Table};
use super::*;
use crate::packet::FlowKey;
use crate::queue::Stand;

const SEED: Seed = Seed(4);

/// A packet of the model: its number, whether it is the twin, its length.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Skb {
    number: u64,
    twin: bool,
    length: u32,
    ecn: u8,
}

/// What became of packets, with the instant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Sent { at: u64, number: u64, twin: bool, marked: bool },
    Lost { at: u64, number: u64, twin: bool },
    Full { at: u64, number: u64, twin: bool },
}

struct Model {
    netem: Netem,
    now: i128,
    /// Each with when it is sent, in that order.
    tfifo: Vec<(i128, Skb)>,
    head: Vec<Skb>,
    counter: u32,
    last: [u32; 5],
    /// 1 to 4, or of Gilbert and Elliott 1 and 2.
    state: u8,
    slot_next: Option<i128>,
    packets_left: i128,
    bytes_left: i128,
    slots: u64,
    fates: Vec<Fate>,
}

const DELAY: usize = 0;
const LOSS: usize = 1;
const DUPLICATION: usize = 2;
const REORDER: usize = 3;
const CORRUPTION: usize = 4;

impl Model {
    fn new(netem: Netem, now: u64) -> Self {
        let lasts = Stream::new(SEED, "link", "netem correlations");
        let slot = netem.slots.as_ref().filter(|slots| match slots.gap {
            SlotGap::Between(least, most) => least.nanos() | most.nanos() != 0,
            SlotGap::Table { jitter, .. } => jitter.nanos() != 0,
        });
        let mut model = Self {
            slot_next: slot.map(|_| i128::from(now)),
            now: now.into(),
            tfifo: Vec::new(),
            head: Vec::new(),
            counter: 0,
            last: core::array::from_fn(|index| (lasts.nth(index as u64).bits() >> 32) as u32),
            state: 1,
            packets_left: 0,
            bytes_left: 0,
            slots: 0,
            fates: Vec::new(),
            netem,
        };
        model.fill_slot();
        model
    }

    fn draw(purpose: &str, skb: Skb) -> Draw {
        let duplication = Stream::new(SEED, "link", "netem duplication");
        let lineage = if skb.twin { duplication.lineage(0, 0, 0) } else { 0 };
        Stream::new(SEED, "link", purpose).draw(0, skb.number, 0, lineage)
    }

    fn random(purpose: &str, skb: Skb) -> u32 {
        (Self::draw(purpose, skb).bits() >> 32) as u32
    }

    fn crandom(&mut self, which: usize, rho: Share, value: u32) -> u32 {
        if rho.raw() == 0 {
            return value;
        }
        let (rho, scale) = (i128::from(rho.raw()) + 1, 1i128 << 32);
        let answer = (i128::from(value) * (scale - rho) + i128::from(self.last[which]) * rho) / scale;
        self.last[which] = answer as u32;
        answer as u32
    }

    fn loss_event(&mut self, skb: Skb) -> bool {
        let mut draw = Self::draw("netem loss", skb);
        let mut rnd = || (draw.bits() >> 32) as u32;
        match self.netem.loss {
            Loss::Random(Chance { share, correlation }) => {
                share.raw() != 0 && {
                    let value = rnd();
                    share.raw() >= self.crandom(LOSS, correlation, value)
                }
            }
            Loss::States { p13, p31, p32, p23, p14 } => {
                let (a1, a2, a3) = (p13.raw(), p31.raw(), p32.raw());
                let (a4, a5) = (p14.raw(), p23.raw());
                let rnd = rnd();
                if self.state == 1 {
                    if rnd < a4 {
                        self.state = 4;
                        return true;
                    } else if rnd < a1.wrapping_add(a4) {
                        self.state = 3;
                        return true;
                    }
                } else if self.state == 2 {
                    if rnd < a5 {
                        self.state = 3;
                        return true;
                    }
                } else if self.state == 3 {
                    if rnd < a3 {
                        self.state = 2;
                    } else if rnd < a2.wrapping_add(a3) {
                        self.state = 1;
                    } else {
                        return true;
                    }
                } else {
                    self.state = 1;
                }
                false
            }
            Loss::GilbertElliott { p, r, h, loss_in_good } => {
                if self.state == 1 {
                    if rnd() < p.raw() {
                        self.state = 2;
                    }
                    rnd() < loss_in_good.raw()
                } else {
                    if rnd() < r.raw() {
                        self.state = 1;
                    }
                    rnd() > h.raw()
                }
            }
        }
    }

    /// Half away from zero.
    fn table_delay(mu: i128, sigma: i128, rnd: u32, table: Option<&Table>) -> i128 {
        match table {
            None => i128::from(rnd) % (2 * sigma) + mu - sigma,
            Some(table) => {
                let t = i128::from(table.values()[rnd as usize % table.values().len()]);
                let part = (sigma % 8192) * t;
                let rounded = part.signum() * ((2 * part.abs() + 8192) / (2 * 8192));
                mu + (sigma / 8192) * t + rounded
            }
        }
    }

    fn enqueue(&mut self, mut skb: Skb, duplicate: bool) {
        let netem = self.netem.clone();
        let (at, number, twin) = (self.now as u64, skb.number, skb.twin);
        let mut count = 1;
        if duplicate && netem.duplication.share.raw() != 0 {
            let value = Self::random("netem duplication", skb);
            if netem.duplication.share.raw()
                >= self.crandom(DUPLICATION, netem.duplication.correlation, value)
            {
                count += 1;
            }
        }
        if self.loss_event(skb) {
            if netem.ecn && skb.ecn != 0 {
                skb.ecn = 3;
            } else {
                count -= 1;
            }
        }
        if count == 0 {
            return self.fates.push(Fate::Lost { at, number, twin });
        }
        if count > 1 && netem.generation == Generation::Linux5_10 {
            self.enqueue(Skb { twin: true, ..skb }, false);
        }
        if netem.corruption.share.raw() != 0 {
            let value = Self::random("netem corruption", skb);
            self.crandom(CORRUPTION, netem.corruption.correlation, value);
        }
        let qlen = self.tfifo.len() + self.head.len();
        let t_len = self.tfifo.len();
        if (if netem.generation == Generation::Linux6_13 { t_len } else { qlen }) >= netem.limit as usize {
            return self.fates.push(Fate::Full { at, number, twin });
        }
        if count > 1 && netem.generation != Generation::Linux5_10 {
            self.enqueue(Skb { twin: true, ..skb }, false);
        }
        if netem.gap == 0 || self.counter < netem.gap - 1 || {
            let value = Self::random("netem reorder", skb);
            netem.reorder.share.raw() < self.crandom(REORDER, netem.reorder.correlation, value)
        } {
            let mut delay = i128::from(netem.delay.nanos());
            let sigma = i128::from(netem.jitter.nanos()).min(i32::MAX.into());
            if sigma != 0 {
                let value = Self::random("netem delay", skb);
                let value = self.crandom(DELAY, netem.delay_correlation, value);
                delay = Self::table_delay(delay, sigma, value, netem.table.as_ref());
            }
            let mut now = self.now;
            if let Some(rate) = netem.rate {
                let mut last = self.tfifo.last().map(|&(due, _)| due);
                if !self.head.is_empty() {
                    last = last.max(Some(self.now));
                }
                if let Some(last) = last {
                    delay = (delay - (last - now)).max(0);
                    now = last;
                }
                let mut length = i128::from(skb.length) + i128::from(rate.packet_overhead);
                if rate.cell_size > 0 {
                    let cell = i128::from(rate.cell_size);
                    length = (length + cell - 1) / cell * (cell + i128::from(rate.cell_overhead));
                }
                delay += length * 1_000_000_000 / i128::from(rate.bytes_per_second);
            }
            self.counter += 1;
            let place = self.tfifo.partition_point(|&(due, _)| due <= now + delay);
            self.tfifo.insert(place, (now + delay, skb));
        } else {
            self.counter = 0;
            self.head.push(skb);
        }
    }

    fn fill_slot(&mut self) {
        let Some(slots) = &self.netem.slots else { return };
        let most = |limit: u32| if limit == 0 { i32::MAX.into() } else { i128::from(limit) };
        (self.packets_left, self.bytes_left) = (most(slots.packets), most(slots.bytes));
    }

    fn get_slot_next(&mut self) {
        let Some(slots) = &self.netem.slots else { return };
        let rnd = (Stream::new(SEED, "link", "netem slots").nth(self.slots).bits() >> 32) as u32;
        self.slots += 1;
        let gap = match &slots.gap {
            SlotGap::Between(least, most) => {
                let (least, most) = (i128::from(least.nanos()), i128::from(most.nanos()));
                let product = (most - least) * i128::from(rnd);
                let kept = if self.netem.generation == Generation::Linux7_1 {
                    product
                } else {
                    // The low 64 bits, as a signed number.
                    (product + (1 << 63)).rem_euclid(1 << 64) - (1 << 63)
                };
                least + (kept >> 32)
            }
            SlotGap::Table { table, delay, jitter } => Self::table_delay(
                delay.nanos().into(),
                i128::from(jitter.nanos()).min(i32::MAX.into()),
                rnd,
                Some(table),
            ),
        };
        self.slot_next = Some(self.now + gap);
        self.fill_slot();
    }

    /// The next packet, or when to ask again.
    fn dequeue(&mut self) -> Result<Skb, Option<i128>> {
        if let Some(skb) = self.head.pop() {
            return Ok(skb);
        }
        let Some(&(due, skb)) = self.tfifo.first() else { return Err(None) };
        if self.slot_next.is_some_and(|next| next < due) {
            self.get_slot_next();
        }
        let opens = self.slot_next.unwrap_or(i128::MIN);
        if due > self.now || opens > self.now {
            return Err(Some(due.max(opens)));
        }
        self.tfifo.remove(0);
        if self.slot_next.is_some() {
            self.packets_left -= 1;
            self.bytes_left -= i128::from(skb.length);
            if self.packets_left <= 0 || self.bytes_left <= 0 {
                self.get_slot_next();
            }
        }
        Ok(skb)
    }

    /// The device takes all it can get; when to look again.
    fn drain(&mut self) -> Option<i128> {
        loop {
            match self.dequeue() {
                Ok(skb) => self.fates.push(Fate::Sent {
                    at: self.now as u64,
                    number: skb.number,
                    twin: skb.twin,
                    marked: skb.ecn == 3,
                }),
                Err(again) => return again,
            }
        }
    }

    fn run(mut self, arrivals: &[(u64, Skb)]) -> Vec<Fate> {
        let mut watchdog = None;
        for &(at, skb) in arrivals {
            while let Some(again) = watchdog.filter(|&again| again <= i128::from(at)) {
                self.now = again;
                watchdog = self.drain();
            }
            self.now = at.into();
            self.enqueue(skb, true);
            watchdog = self.drain();
        }
        while let Some(again) = watchdog {
            self.now = again;
            watchdog = self.drain();
        }
        self.fates
    }
}

/// The same of the queue itself.
fn run(netem: Netem, start: u64, arrivals: &[(u64, Skb)]) -> Vec<Fate> {
    let mut stand = Stand::new(SEED);
    let mut queue = SingleQueue::new(Box::new(netem), Time::from_nanos(start), SEED, "link", 0);
    let mut fates = Vec::new();
    let mut watchdog = None;
    let mut take = |at: Time, queue: &mut SingleQueue, stand: &mut Stand| {
        while let Some((packet, reason)) = stand.dropped() {
            let state = stand.pool().get(packet);
            let (at, number, twin) = (at.nanos(), state.id.number(), state.copy > 0);
            fates.push(match reason {
                DropReason::IngressLoss => Fate::Lost { at, number, twin },
                DropReason::QueueFull => Fate::Full { at, number, twin },
                other => panic!("{other:?}"),
            });
        }
        loop {
            match queue.dequeue(at, &mut stand.context()) {
                Dequeue::Packet(packet) => {
                    let state = stand.pool().get(packet);
                    fates.push(Fate::Sent {
                        at: at.nanos(),
                        number: state.id.number(),
                        twin: state.copy > 0,
                        marked: state.key.traffic_class == 3,
                    });
                }
                Dequeue::NotBefore(again) => {
                    assert!(again > at, "it would be asked for ever");
                    return Some(again);
                }
                Dequeue::Ended(..) => panic!("the link transmits"),
                Dequeue::Empty => return None,
            }
        }
    };
    for &(at, skb) in arrivals {
        let at = Time::from_nanos(at);
        while let Some(again) = watchdog.filter(|&again| again <= at) {
            watchdog = take(again, &mut queue, &mut stand);
        }
        let key = FlowKey { traffic_class: skb.ecn, ..FlowKey::default() };
        let packet = stand.insert(at, key, skb.length);
        queue.enqueue(at, packet, &mut stand.context());
        watchdog = take(at, &mut queue, &mut stand);
    }
    while let Some(again) = watchdog {
        watchdog = take(again, &mut queue, &mut stand);
    }
    assert_eq!(queue.backlog(), Backlog::default());
    fates
}

fn share() -> impl Strategy<Value = Share> {
    prop_oneof![
        2 => Just(Share::ZERO),
        4 => (0.0..60.0).prop_map(|percent| Share::from_percent(percent).unwrap()),
        1 => Just(Share::ONE),
        1 => any::<u32>().prop_map(Share::from_raw),
    ]
}

fn chance() -> impl Strategy<Value = Chance> {
    (share(), share()).prop_map(|(share, correlation)| Chance { share, correlation })
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(0u64), 1u64..100, 1_000u64..3_000_000].prop_map(Duration::from_nanos)
}

fn table() -> impl Strategy<Value = Table> {
    many(any::<i16>(), 1..30).prop_map(|values| Table::new(values).unwrap())
}

fn loss() -> impl Strategy<Value = Loss> {
    let states = [share(), share(), share(), share(), share()];
    prop_oneof![
        chance().prop_map(Loss::Random),
        states.prop_map(|[p13, p31, p32, p23, p14]| Loss::States { p13, p31, p32, p23, p14 }),
        [share(), share(), share(), share()].prop_map(|[p, r, h, loss_in_good]| Loss::GilbertElliott {
            p,
            r,
            h,
            loss_in_good
        }),
    ]
}

fn slots() -> impl Strategy<Value = Slots> {
    let wide = prop_oneof![9 => span(), 1 => (1u64..9_000_000_000).prop_map(Duration::from_nanos)];
    let between = (span(), wide).prop_map(|(a, b)| SlotGap::Between(a.min(b), a.max(b)));
    let drawn =
        (table(), span(), span()).prop_map(|(table, delay, jitter)| SlotGap::Table { table, delay, jitter });
    let gap = prop_oneof![between, drawn];
    (gap, 0u32..4, prop_oneof![Just(0), 1u32..4_000]).prop_map(|(gap, packets, bytes)| Slots {
        gap,
        packets,
        bytes,
    })
}

fn netem() -> impl Strategy<Value = Netem> {
    let delay = (span(), span(), share(), option::of(table()));
    let rate = (1_000u64..5_000_000, -10i32..40, prop_oneof![Just(0u32), Just(48)], 0i32..6).prop_map(
        |(bytes_per_second, packet_overhead, cell_size, cell_overhead)| Rate {
            bytes_per_second,
            packet_overhead,
            cell_size,
            cell_overhead,
        },
    );
    let generation = prop_oneof![
        Just(Generation::Linux5_10),
        Just(Generation::Linux6_11),
        Just(Generation::Linux6_13),
        Just(Generation::Linux7_1)
    ];
    let chances = (loss().boxed(), any::<bool>(), chance(), chance(), chance(), 0u32..5);
    let rest = (option::of(rate), option::of(slots().boxed()), prop_oneof![0u32..10, Just(1000)]);
    (generation, delay, chances, rest).prop_map(
        |(
            generation,
            (delay, jitter, delay_correlation, table),
            (loss, ecn, duplication, corruption, reorder, gap),
            (rate, slots, limit),
        )| Netem {
            generation,
            limit,
            delay,
            jitter,
            delay_correlation,
            table,
            loss,
            ecn,
            duplication,
            corruption,
            reorder,
            gap,
            rate,
            slots,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_has_the_fate_that_the_kernel_gives_it(
        netem in netem(),
        start in 1u64..5_000_000,
        packets in many((prop_oneof![Just(0u64), 1u64..2_000_000], 20u32..1515, 0u8..4), 1..60),
    ) {
        let mut at = start;
        let arrivals: Vec<_> = (0..).zip(packets).map(|(number, (gap, length, ecn))| {
            at += gap;
            (at, Skb { number, twin: false, length, ecn })
        }).collect();
        prop_assert_eq!(run(netem.clone(), start, &arrivals), Model::new(netem, start).run(&arrivals));
    }
}

/// Numbers worked out by hand: a delay behind a rate is hidden in the time on the wire, and the limit counts all inside.
#[test]
fn the_single_queue_is_not_the_double_one() {
    let rate = Rate { bytes_per_second: 1_000_000, packet_overhead: 0, cell_size: 0, cell_overhead: 0 };
    let delay = Duration::from_millis(10);
    let netem = Netem { delay, rate: Some(rate), limit: 3, ..Netem::default() };
    let skb = |number| (0, Skb { number, twin: false, length: 1000, ecn: 0 });
    let arrivals = vec![skb(0), skb(1), skb(2), skb(3)];
    let sent = |at, number| Fate::Sent { at, number, twin: false, marked: false };
    // The first: 10 ms and 1 ms. The next one's delay of 10 ms is over by the time the first leaves.
    let expected = vec![
        Fate::Full { at: 0, number: 3, twin: false },
        sent(11_000_000, 0),
        sent(12_000_000, 1),
        sent(13_000_000, 2),
    ];
    assert_eq!(run(netem, 0, &arrivals), expected);
}

/// Until 6.10 a duplicate takes the last place, so that its packet is dropped; later both enter.
#[test]
fn where_there_is_one_place_a_duplicate_takes_it_or_shares_it() {
    let always = Chance { share: Share::ONE, correlation: Share::ZERO };
    let delay = Duration::from_millis(1);
    let netem = Netem { delay, duplication: always, limit: 1, ..Netem::default() };
    let arrivals = [(0, Skb { number: 0, twin: false, length: 100, ecn: 0 })];
    let sent = |twin| Fate::Sent { at: 1_000_000, number: 0, twin, marked: false };
    let old = Netem { generation: Generation::Linux5_10, ..netem.clone() };
    let full = Fate::Full { at: 0, number: 0, twin: false };
    assert_eq!(run(old, 0, &arrivals), [full, sent(true)]);
    let later = Netem { generation: Generation::Linux6_11, ..netem };
    assert_eq!(run(later, 0, &arrivals), [sent(true), sent(false)]);
}
