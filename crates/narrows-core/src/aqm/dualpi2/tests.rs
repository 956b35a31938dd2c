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
}

impl Bench {
    fn new(config: DualPi2Config, bound: Bound) -> Self {
        let mut queue = DualPi2::new(config, bound);
        queue.advance(Time::ZERO);
        Self { queue, stand: Stand::new(Seed(1)) }
    }

    fn enqueue(&mut self, now: u64, length: u32, ecn: u8) {
        let key = FlowKey { traffic_class: ecn, ..FlowKey::default() };
        let packet = self.stand.insert(Time::from_nanos(now), key, length);
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
        let marked = self.stand.marked() > 0;
        if let Dequeue::Packet(packet) = answer {
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
            self.p = (self.p + step).clamp(0.0, 1.0);
            self.prevq = curq;
            self.next_update += self.config.update.nanos();
        }
        self.now = now;
    }

    fn enqueue(&mut self, now: u64, length: u32, ecn: u8) {
        self.run_to(now);
        let packet = Stored { number: self.arrived, at: now, length, ecn };
        self.arrived += 1;
        if self.lq.len() + self.cq.len() == self.limit {
            self.overflowed.push(Seen::Dropped(packet.number));
        } else if ecn % 2 == 1 {
            self.lq.push_back(packet);
        } else {
            self.cq.push_back(packet);
        }
    }

    /// Whether it is L's turn, and what a packet sent adds to the credit.
    fn scheduler_chooses_lq(&mut self) -> (bool, i64) {
        match (self.lq.front(), self.cq.front(), self.config.sharing) {
            (Some(l), Some(c), Sharing::Weighted { low, classic }) => {
                let to_lq = self.credit <= 0;
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
        let (p_cl, p_c) = ((self.config.coupling * self.p).min(1.0), self.p * self.p);
        let p_cmax = (1.0 / (self.config.coupling * self.config.coupling)).min(1.0);
        while self.lq.len() + self.cq.len() > 0 {
            let mut marked = false;
            let packet;
            let (to_lq, cost) = self.scheduler_chooses_lq();
            if to_lq {
                packet = self.lq.pop_front().unwrap();
                if p_cl < 1.0 {
                    let native = if self.lq.len() as u64 >= self.config.least {
                        self.laqm(now - packet.at)
                    } else {
                        0.0
                    };
                    marked = recur(&mut self.lcount, if native > p_cl { native } else { p_cl });
                } else {
                    if recur(&mut self.lcount, p_c) {
                        seen.push(Seen::Dropped(packet.number));
                        continue;
                    }
                    marked = recur(&mut self.lcount, p_cl);
                }
            } else {
                packet = self.cq.pop_front().unwrap();
                if recur(&mut self.ccount, p_c) {
                    if packet.ecn == 0 || p_c >= p_cmax {
                        seen.push(Seen::Dropped(packet.number));
                        continue;
                    }
                    marked = true;
                }
            }
            // A mark on what has one already changes nothing.
            marked &= packet.ecn != FlowKey::CONGESTION_EXPERIENCED;
            self.credit += cost;
            seen.push(Seen::Sent(packet.number, marked));
            return seen;
        }
        seen
    }

    fn laqm(&self, qdelay: u64) -> f64 {
        let (min, max) = match self.config.low_latency {
            LowLatency::Step(at) => (at.nanos(), at.nanos()),
            LowLatency::Ramp { from, to } => (from.nanos(), to.nanos()),
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
        assert_eq!((queue.low.sum, queue.classic.sum), (model.lcount, model.ccount));
        most = most.max(queue.base);
    }
    (dropped, marked, most)
}

fn sharing() -> impl Strategy<Value = Sharing> {
    prop_oneof![
        (1u16..20, 1u16..20).prop_map(|(low, classic)| Sharing::Weighted { low, classic }),
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
        step in any::<bool>(),
        coupling in prop_oneof![Just(0.5), (1u32..5).prop_map(f64::from)],
    ) {
        let mut config = DualPi2Config {
            update: Duration::from_millis(update),
            target: Duration::from_millis(target),
            coupling,
            sharing,
            ..DualPi2Config::default()
        };
        if step {
            config.low_latency = LowLatency::Step(Duration::from_millis(1));
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
        (bench.queue.base, bench.queue.classic.sum) = (base, 0.5);
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
