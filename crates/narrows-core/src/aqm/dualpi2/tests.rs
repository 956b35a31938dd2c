use super::*;
use crate::queue::Stand;
use crate::random::Seed;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use proptest::prelude::*;

const NOT_CAPABLE: u8 = FlowKey::NOT_ECN_CAPABLE;
const CLASSIC: u8 = 2;
const LOW: u8 = FlowKey::ECT_1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Dropped(u64),
    Sent(u64, bool),
}

/// The queue, driven by itself.
struct Bench {
    queue: DualPi2,
    stand: Stand,
    /// The code points with which packets arrived, by number.
    arrived: Vec<u8>,
}

impl Bench {
    fn new(config: DualPi2Config, bound: Bound) -> Self {
        let mut queue = DualPi2::new(config, bound);
        queue.advance(Time::ZERO);
        Self { queue, stand: Stand::new(Seed(1)), arrived: Vec::new() }
    }

    fn enqueue(&mut self, now: u64, length: u32, ecn: u8) {
        let key = FlowKey { traffic_class: ecn, ..FlowKey::default() };
        let packet = self.stand.insert(Time::from_nanos(now), key, length);
        self.arrived.push(ecn);
        self.queue.enqueue(Time::from_nanos(now), packet, &mut self.stand.context());
    }

    fn take_drops(&mut self) -> Vec<Seen> {
        let mut drops = Vec::new();
        while let Some((packet, _)) = self.stand.dropped() {
            drops.push(Seen::Dropped(self.number(packet)));
            self.stand.remove(packet);
        }
        drops
    }

    fn dequeue(&mut self, now: u64) -> Vec<Seen> {
        let mut seen = self.take_drops();
        let answer = self.queue.dequeue(Time::from_nanos(now), &mut self.stand.context());
        seen.extend(self.take_drops());
        if let Dequeue::Packet(packet) = answer {
            let ecn = self.stand.pool().get(packet).key.ecn();
            let marked = ecn != self.arrived[self.number(packet) as usize];
            seen.push(Seen::Sent(self.number(packet), marked));
            self.stand.remove(packet);
        }
        seen
    }

    fn number(&self, packet: PacketRef) -> u64 {
        self.stand.pool().get(packet).id.number()
    }
}

/// RFC 9332, appendix A.2, with the range checks that it leaves out, and an update at each of its instants.
struct Model {
    config: DualPi2Config,
    limit: usize,
    lq: VecDeque<Stored>,
    cq: VecDeque<Stored>,
    lcount: f64,
    ccount: f64,
    /// Of the native marking, where p′ acts on arrival.
    ncount: f64,
    credit: i64,
    p: f64,
    prevq: f64,
    now: u64,
    next_update: u64,
    arrived: u64,
    overflowed: Vec<Seen>,
}

#[derive(Clone, Copy)]
struct Stored {
    number: u64,
    at: u64,
    length: u32,
    ecn: u8,
    /// Packets in its queue when it arrived.
    found: u64,
    /// Whether it was marked on arrival.
    marked: bool,
}

fn recur(count: &mut f64, likelihood: f64) -> bool {
    *count += likelihood;
    if *count > 1.0 {
        *count -= 1.0;
        return true;
    }
    false
}

impl Model {
    fn new(config: DualPi2Config, limit: usize) -> Self {
        Self {
            config,
            limit,
            lq: VecDeque::new(),
            cq: VecDeque::new(),
            lcount: 0.0,
            ccount: 0.0,
            ncount: 0.0,
            credit: 0,
            p: 0.0,
            prevq: 0.0,
            now: 0,
            next_update: config.update.nanos(),
            arrived: 0,
            overflowed: Vec::new(),
        }
    }

    fn run_to(&mut self, now: u64) {
        while self.next_update <= now {
            let time =
                |queue: &VecDeque<Stored>| queue.front().map_or(0, |first| self.next_update - first.at);
            let curq = time(&self.cq).max(time(&self.lq)) as f64 / 1e9;
            let target = self.config.target.nanos() as f64 / 1e9;
            let step = self.config.alpha * (curq - target) + self.config.beta * (curq - self.prevq);
            let most = if self.config.overflow { (1.0 / self.config.coupling).min(1.0) } else { 1.0 };
            self.p = (self.p + step).clamp(0.0, most);
            self.prevq = curq;
            self.next_update += self.config.update.nanos();
        }
        self.now = now;
    }

    fn enqueue(&mut self, now: u64, length: u32, ecn: u8) {
        self.run_to(now);
        let low = ecn % 2 == 1 || ecn == CLASSIC && self.config.any_ect;
        let found = if low { self.lq.len() } else { self.cq.len() } as u64;
        let mut packet = Stored { number: self.arrived, at: now, length, ecn, found, marked: false };
        self.arrived += 1;
        if self.lq.len() + self.cq.len() == self.limit {
            return self.overflowed.push(Seen::Dropped(packet.number));
        }
        if self.config.on_arrival {
            match self.verdict(low, ecn, 0.0) {
                None => return self.overflowed.push(Seen::Dropped(packet.number)),
                Some(marked) => packet.marked = marked,
            }
        }
        if low { &mut self.lq } else { &mut self.cq }.push_back(packet);
    }

    /// Whether p′ marks a packet; `None` where it drops it.
    fn verdict(&mut self, low: bool, ecn: u8, native: f64) -> Option<bool> {
        let p_cl = (self.config.coupling * self.p).min(1.0);
        let p_c = self.p * self.p;
        let p_cmax = (1.0 / (self.config.coupling * self.config.coupling)).min(1.0);
        if low && (p_cl < 1.0 || self.config.overflow) {
            return Some(recur(&mut self.lcount, if native > p_cl { native } else { p_cl }));
        }
        if low {
            return if recur(&mut self.lcount, p_c) { None } else { Some(recur(&mut self.lcount, p_cl)) };
        }
        if !recur(&mut self.ccount, p_c) {
            return Some(false);
        }
        if ecn == 0 || p_c >= p_cmax && !self.config.overflow { None } else { Some(true) }
    }

    /// Whether it is L's turn, and what a packet sent adds to the credit.
    fn scheduler_chooses_lq(&mut self) -> (bool, i64) {
        match (self.lq.front(), self.cq.front(), self.config.sharing) {
            (Some(l), Some(c), Sharing::Weighted { low, classic }) => {
                let to_lq = self.credit <= 0 && low > 0;
                let cost = match to_lq {
                    true => i64::from(l.length) * i64::from(classic),
                    false => -i64::from(c.length) * i64::from(low),
                };
                (to_lq, cost)
            }
            (Some(l), Some(c), Sharing::TimeShifted(shift)) => {
                (self.now - l.at + shift.nanos() >= self.now - c.at, 0)
            }
            (l, ..) => {
                self.credit = 0;
                (l.is_some(), 0)
            }
        }
    }

    fn dequeue(&mut self, now: u64) -> Vec<Seen> {
        self.run_to(now);
        let mut seen = core::mem::take(&mut self.overflowed);
        while self.lq.len() + self.cq.len() > 0 {
            let (to_lq, cost) = self.scheduler_chooses_lq();
            let packet = if to_lq { self.lq.pop_front() } else { self.cq.pop_front() }.unwrap();
            let behind = self.lq.len() as u64;
            let may = behind >= self.config.least && packet.found >= self.config.least_on_arrival;
            let native = if to_lq && may { self.laqm(now - packet.at, behind) } else { 0.0 };
            let verdict = match self.config.on_arrival {
                true => Some(to_lq && recur(&mut self.ncount, native) || packet.marked),
                false => self.verdict(to_lq, packet.ecn, native),
            };
            let Some(mut marked) = verdict else {
                seen.push(Seen::Dropped(packet.number));
                continue;
            };
            // A mark on what has one already changes nothing.
            marked &= packet.ecn != FlowKey::CONGESTION_EXPERIENCED;
            self.credit += cost;
            seen.push(Seen::Sent(packet.number, marked));
            return seen;
        }
        seen
    }

    fn laqm(&self, qdelay: u64, behind: u64) -> f64 {
        let (min, max) = match self.config.low_latency {
            LowLatency::Step(at) => (at.nanos(), at.nanos()),
            LowLatency::Ramp { from, to } => (from.nanos(), to.nanos()),
            LowLatency::Backlog(most) => return if behind > most { 1.0 } else { 0.0 },
        };
        if qdelay >= max {
            1.0
        } else if qdelay > min {
            ((qdelay - min) as f64 / 1e9) / ((max - min) as f64 / 1e9)
        } else {
            0.0
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive(u64, u32, u8),
    Depart(u64),
    Silence(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let stretch = (1u32..12, 1u64..3_000, 10usize..500, 0u64..3_000_000, 0u8..4);
    let stretch = stretch.prop_flat_map(|(arrivals, gap, steps, silence, other)| {
        let ecn = prop_oneof![Just(other), 0u8..4];
        let arrive = (0..gap, 40u32..1600, ecn).prop_map(|(g, l, e)| Step::Arrive(g, l, e));
        let depart = (0..gap).prop_map(Step::Depart);
        let busy = proptest::collection::vec(prop_oneof![arrivals => arrive, 5 => depart], steps);
        busy.prop_map(move |mut steps| {
            steps.push(Step::Silence(silence));
            steps
        })
    });
    proptest::collection::vec(stretch, 1..8).prop_map(|stretches| stretches.concat())
}

/// Runs both; how many were dropped, how many marked, and the greatest p′.
fn compare(steps: &[Step], config: DualPi2Config) -> (usize, usize, f64) {
    let limit = 200;
    let mut tested = Bench::new(config, Bound::Packets(limit));
    let mut model = Model::new(config, limit as usize);
    let (mut now, mut dropped, mut marked, mut most) = (0, 0, 0, 0.0_f64);
    for &step in steps {
        match step {
            Step::Silence(gap) => {
                now += gap * 1_000;
                continue;
            }
            Step::Arrive(gap, length, ecn) => {
                now += gap * 1_000;
                tested.enqueue(now, length, ecn);
                model.enqueue(now, length, ecn);
            }
            Step::Depart(gap) => {
                now += gap * 1_000;
                let seen = tested.dequeue(now);
                assert_eq!(seen, model.dequeue(now), "at {now}");
                dropped += seen.iter().filter(|seen| matches!(seen, Seen::Dropped(_))).count();
                marked += seen.iter().filter(|seen| matches!(seen, Seen::Sent(_, true))).count();
            }
        }
        let queue = &tested.queue;
        assert_eq!(queue.base.to_bits(), model.p.to_bits(), "at {now}");
        assert_eq!((queue.old_delay.seconds(), queue.credit), (model.prevq, model.credit));
        assert_eq!((queue.low.sum.0, queue.classic.sum.0), (model.lcount, model.ccount));
        most = most.max(queue.base);
    }
    (dropped, marked, most)
}

fn sharing() -> impl Strategy<Value = Sharing> {
    prop_oneof![
        (0u16..20, 1u16..20).prop_map(|(low, classic)| Sharing::Weighted { low, classic }),
        Just(Sharing::Weighted { low: 1, classic: 0 }),
        (0u64..50).prop_map(|millis| Sharing::TimeShifted(Duration::from_millis(millis))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Every verdict and every variable to the last bit, though updates are made up for in leaps.
    #[test]
    fn it_is_the_pseudocode_of_the_rfc(
        steps in steps(),
        update in 1u64..20,
        target in 1u64..30,
        sharing in sharing(),
        step in 0u8..3,
        (any_ect, overflow, on_arrival) in any::<(bool, bool, bool)>(),
        least_on_arrival in 0u64..4,
        coupling in prop_oneof![Just(0.5), (1u32..5).prop_map(f64::from)],
    ) {
        let mut config = DualPi2Config {
            update: Duration::from_millis(update),
            target: Duration::from_millis(target),
            coupling,
            sharing,
            any_ect,
            overflow,
            on_arrival,
            least_on_arrival,
            ..DualPi2Config::default()
        };
        match step {
            0 => {}
            1 => config.low_latency = LowLatency::Step(Duration::from_millis(1)),
            _ => config.low_latency = LowLatency::Backlog(5),
        }
        compare(&steps, config);
    }
}

/// A long load beyond the wire, which overloads it in the end, then a stall until p′ is 1, then silence until it is 0.
#[test]
fn an_overload_goes_as_in_the_pseudocode() {
    let ecn = |i: u64| [LOW, NOT_CAPABLE, CLASSIC, FlowKey::CONGESTION_EXPERIENCED][(i % 4) as usize];
    let busy = |i: u64| if i % 5 < 3 { Step::Arrive(400, 1000, ecn(i / 5)) } else { Step::Depart(600) };
    let steps: Vec<_> = (0..20_000)
        .map(busy)
        .chain([Step::Silence(30_000_000)])
        .chain((0..2_000).map(busy))
        .chain((0..1_000).map(|_| Step::Depart(0)))
        .chain([Step::Silence(600_000_000)])
        .chain((0..2_000).map(busy))
        .collect();
    for coupling in [0.5, 1.0, 2.0] {
        let config = DualPi2Config { coupling, ..DualPi2Config::default() };
        let (dropped, marked, most) = compare(&steps, config);
        assert!(dropped > 1_000 && marked > 1_000 && most == 1.0, "{dropped} {marked} {most}");
    }
}

/// p_Cmax = min(1/k², 1): at p′ = 1 C drops what could be marked, even where k·p′ is only a half.
#[test]
fn with_a_weak_coupling_the_classic_queue_is_overloaded_when_its_own_probability_is_1() {
    let config = DualPi2Config { coupling: 0.5, ..DualPi2Config::default() };
    for (base, seen) in [(1.0, [1, 0]), (0.999, [0, 1])] {
        let mut bench = Bench::new(config, Bound::Packets(10));
        (bench.queue.base, bench.queue.classic.sum) = (base, Sum(0.5));
        bench.enqueue(0, 1000, CLASSIC);
        let fates = bench.dequeue(0);
        let dropped = fates.contains(&Seen::Dropped(0));
        let marked = fates.contains(&Seen::Sent(0, true));
        assert_eq!([dropped, marked].map(u8::from), seen, "{fates:?}");
    }
}

/// With p′ held still: out of n packets L marks k·p′·n and C drops (or marks) p′²·n, to within one, as nothing is drawn.
#[test]
fn marks_are_coupled_to_the_square_root_of_drops() {
    let packets = 10_000;
    for (base, overload) in
        [(0.05, false), (0.1, false), (0.3, false), (0.45, false), (0.6, true), (0.9, true)]
    {
        for classic in [NOT_CAPABLE, CLASSIC] {
            let mut bench = Bench::new(DualPi2Config::default(), Bound::Packets(10));
            bench.queue.base = base;
            let (mut counts, mut low_drops) = ([0; 4], 0);
            for number in 0..2 * packets {
                let low = number % 2 == 0;
                bench.enqueue(0, 1000, if low { LOW } else { classic });
                for seen in bench.dequeue(0) {
                    match (seen, low) {
                        (Seen::Sent(_, marked), true) => counts[0] += u32::from(marked),
                        (Seen::Sent(_, marked), false) => counts[1] += u32::from(marked),
                        (Seen::Dropped(_), true) => low_drops += 1,
                        (Seen::Dropped(_), false) => counts[2] += 1,
                    }
                }
            }
            let [low_marks, classic_marks, classic_drops, _] = counts;
            let near = |count: u32, share: f64| {
                let expected = share * f64::from(packets);
                assert!((f64::from(count) - expected).abs() <= 1.01, "p' {base}: {count}, not {expected}");
            };
            let square = base * base;
            if overload {
                near(low_drops, square);
                near(low_marks, 1.0 - square);
                near(classic_drops, square);
                assert_eq!(classic_marks, 0);
            } else {
                near(low_marks, 2.0 * base);
                assert_eq!(low_drops, 0);
                near(if classic == CLASSIC { classic_marks } else { classic_drops }, square);
                assert_eq!(if classic == CLASSIC { classic_drops } else { classic_marks }, 0);
            }
        }
    }
}

#[test]
fn what_was_missed_is_made_up_for_in_bounded_time() {
    let century = Duration::from_secs(100 * 365 * 86_400);
    for config in [
        DualPi2Config::default(),
        DualPi2Config {
            alpha: *DualPi2Config::ALPHA.start(),
            beta: 0.0,
            target: Duration::from_micros(100),
            update: Duration::from_millis(1),
            ..DualPi2Config::default()
        },
    ] {
        let mut queue = DualPi2 { base: 1.0, ..DualPi2::new(config, Bound::Packets(1)) };
        queue.advance(Time::ZERO);
        queue.advance(Time::ZERO + century);
        assert_eq!((queue.base, queue.old_delay), (0.0, Duration::ZERO));
        queue.classic.oldest = Some(Time::ZERO + century);
        queue.advance(Time::ZERO + century + century);
        assert_eq!(queue.base, 1.0);
        assert!(queue.old_delay > Duration::from_secs(100 * 365 * 86_400 - 1));
    }
}

/// Both queues always full: bytes go in proportion to the weights, whatever the lengths, to within a packet of each.
#[test]
fn weights_share_the_wire() {
    let config =
        DualPi2Config { sharing: Sharing::Weighted { low: 3, classic: 1 }, ..DualPi2Config::default() };
    let mut bench = Bench::new(config, Bound::Packets(10_000));
    for _ in 0..1_000 {
        bench.enqueue(0, 1500, LOW);
        bench.enqueue(0, 400, NOT_CAPABLE);
    }
    let (mut low, mut classic) = (0, 0);
    for _ in 0..1_000 {
        // Even numbers are L's.
        match bench.dequeue(0)[..] {
            [Seen::Sent(number, false)] if number % 2 == 0 => low += 1500,
            [Seen::Sent(_, false)] => classic += 400,
            ref other => panic!("{other:?}"),
        }
    }
    let lead: i64 = low - 3 * classic;
    assert!((-1200..=1500).contains(&lead), "{low} {classic}");
}

/// What is dropped has not used the wire: with a quarter of the classic queue's packets dropped, those that go have its share.
#[test]
fn what_is_dropped_takes_nothing_of_the_share() {
    let config =
        DualPi2Config { sharing: Sharing::Weighted { low: 1, classic: 1 }, ..DualPi2Config::default() };
    let mut bench = Bench::new(config, Bound::Packets(10_000));
    bench.queue.base = 0.499;
    bench.queue.updates = 0;
    for _ in 0..4_000 {
        bench.enqueue(0, 1000, LOW);
        bench.enqueue(0, 1000, NOT_CAPABLE);
    }
    let mut sent = [0u32; 2];
    for _ in 0..2_000 {
        for seen in bench.dequeue(0) {
            if let Seen::Sent(number, _) = seen {
                sent[(number % 2) as usize] += 1;
            }
        }
    }
    assert_eq!(sent, [1_000, 1_000]);
}

#[test]
fn a_queue_is_handed_over_in_order_of_arrival() {
    let mut bench = Bench::new(DualPi2Config::default(), Bound::Packets(100));
    for (at, ecn) in [(0, NOT_CAPABLE), (1, LOW), (1, NOT_CAPABLE), (1, LOW), (2, CLASSIC), (3, LOW)] {
        bench.enqueue(at, 1000, ecn);
    }
    let mut stand = bench.stand;
    let mut all = {
        let mut context = stand.context();
        let all = bench.queue.take_all(context.pool);
        assert_eq!(bench.queue.backlog(), Backlog::default());
        let mut next = DualPi2::new(DualPi2Config::default(), Bound::Packets(1));
        next.adopt(Time::from_nanos(4), all, &mut context);
        assert_eq!((next.backlog().packets, next.low.packets.len()), (6, 3));
        next.take_all(context.pool)
    };
    let mut order = Vec::new();
    while let Some(packet) = all.pop_front(stand.context().pool) {
        order.push(stand.pool().get(packet).id.number());
    }
    assert_eq!(order, [0, 1, 3, 2, 4, 5]);
}

/// Linux's `overflow`: p′ stops at 1/k, where L marks all it sends and C a quarter; nothing that can be marked is dropped.
#[test]
fn without_drops_on_overload_capable_packets_are_marked() {
    let config = DualPi2Config { overflow: true, ..DualPi2Config::default() };
    let mut bench = Bench::new(config, Bound::Packets(10));
    bench.queue.update(Duration::from_secs(100));
    assert_eq!(bench.queue.base, 0.5);
    let mut marked = [0; 2];
    for number in 0..2_000 {
        bench.enqueue(0, 1000, [LOW, CLASSIC][number % 2]);
        match bench.dequeue(0)[..] {
            [Seen::Sent(_, mark)] => marked[number % 2] += u32::from(mark),
            ref other => panic!("{other:?}"),
        }
    }
    // The sum is 1 with the first packet of L, and exceeds it with the next.
    assert_eq!(marked, [999, 249]);
}

/// Of ten packets that arrive at once, those that found three others are judged by the step, and of these those with more
/// than two behind them are marked.
#[test]
fn a_step_in_packets_counts_what_is_behind() {
    let step = DualPi2Config {
        low_latency: LowLatency::Backlog(2),
        least_on_arrival: 3,
        least: 0,
        ..DualPi2Config::default()
    };
    let mut bench = Bench::new(step, Bound::Packets(100));
    bench.queue.low.sum = Sum(0.5);
    (0..10).for_each(|_| bench.enqueue(0, 1000, LOW));
    let marked: Vec<u64> = (0..10)
        .filter_map(|_| match bench.dequeue(0)[..] {
            [Seen::Sent(number, true)] => Some(number),
            _ => None,
        })
        .collect();
    assert_eq!(marked, [3, 4, 5, 6]);
    assert!(bench.queue.found.is_empty());
}

/// A share of nothing: the one queue is served while the other is empty only.
#[test]
fn a_queue_without_a_share_waits_for_the_other() {
    for (low, classic, first) in [(100, 0, LOW), (0, 100, NOT_CAPABLE)] {
        let sharing = Sharing::Weighted { low, classic };
        let mut bench =
            Bench::new(DualPi2Config { sharing, ..DualPi2Config::default() }, Bound::Packets(100));
        (0..20).for_each(|number| bench.enqueue(0, 1000, [LOW, NOT_CAPABLE][number % 2]));
        for turn in 0..20 {
            let [Seen::Sent(number, _)] = bench.dequeue(0)[..] else { panic!("it sends one") };
            assert_eq!(bench.arrived[number as usize] == first, turn < 10);
        }
    }
}
