use super::*;
use crate::aqm::harness::{Fate, Managed};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use proptest::prelude::*;

/// RFC 8289, section 5, in the order in which it is written there: one call dequeues and drops until a packet goes.
#[derive(Default)]
struct Model {
    packets: VecDeque<Stored>,
    bytes: u64,
    target: u64,
    interval: u64,
    maxpacket: u64,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    arrived: u64,
}

#[derive(Clone, Copy)]
struct Stored {
    number: u64,
    at: u64,
    length: u32,
    capable: bool,
}

impl Model {
    fn enqueue(&mut self, at: u64, length: u32, capable: bool) {
        self.packets.push_back(Stored { number: self.arrived, at, length, capable });
        self.bytes += u64::from(length);
        self.arrived += 1;
    }

    fn do_dequeue(&mut self, now: u64) -> (Option<Stored>, bool) {
        let Some(packet) = self.packets.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        self.bytes -= u64::from(packet.length);
        let mut ok_to_drop = false;
        if now - packet.at < self.target || self.bytes <= self.maxpacket {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.interval;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(packet), ok_to_drop)
    }

    fn control_law(&self, t: u64, count: u32) -> u64 {
        // The greatest gap with gap² · count ≤ interval², in whole numbers: no float, unlike the thing under test.
        let interval = u128::from(self.interval);
        let (mut low, mut high) = (0, interval + 1);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if middle * middle * u128::from(count) <= interval * interval {
                low = middle;
            } else {
                high = middle;
            }
        }
        t + low as u64
    }

    fn dequeue(&mut self, now: u64, ecn: bool) -> Vec<Fate> {
        let mut fates = Vec::new();
        let (mut packet, mut ok) = self.do_dequeue(now);
        let mut marked = false;
        if self.dropping {
            if !ok {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                let late = packet.expect("what may be dropped is there");
                self.count += 1;
                if ecn && late.capable {
                    marked = true;
                    self.drop_next = self.control_law(self.drop_next, self.count);
                    break;
                }
                fates.push(Fate::Dropped(late.number));
                (packet, ok) = self.do_dequeue(now);
                if ok {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok {
            let late = packet.expect("what may be dropped is there");
            if ecn && late.capable {
                marked = true;
            } else {
                fates.push(Fate::Dropped(late.number));
                (packet, _) = self.do_dequeue(now);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && (now as i64 - self.drop_next as i64) < 16 * self.interval as i64 {
                self.count = delta;
            }
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        fates.extend(packet.map(|packet| Fate::Sent(packet.number, marked)));
        fates
    }
}

/// One step: after so many microseconds, a packet of some length comes, or the wire is free.
#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive(u64, u32, bool),
    Depart(u64),
}

/// Stretches in which packets come faster than they go, and others in which they go faster.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let stretch = (1u32..10, 1u64..2_500, 10usize..300).prop_flat_map(|(arrivals, gap, steps)| {
        let arrive = (0..gap, 40u32..1600, any::<bool>()).prop_map(|(g, l, c)| Step::Arrive(g, l, c));
        let depart = (0..gap).prop_map(Step::Depart);
        proptest::collection::vec(prop_oneof![arrivals => arrive, 5 => depart], steps)
    });
    proptest::collection::vec(stretch, 1..10).prop_map(|stretches| stretches.concat())
}

/// Runs both; returns how many packets were dropped and how many marked.
fn compare(steps: &[Step], config: CodelConfig) -> (usize, usize) {
    let mut tested = Managed::new(Codel::new(config));
    let mut model = Model {
        target: config.target.nanos(),
        interval: config.interval.nanos(),
        maxpacket: config.longest.get(),
        ..Model::default()
    };
    let (mut now, mut dropped, mut marked, mut idle) = (0, 0, 0, false);
    for &step in steps {
        match step {
            Step::Arrive(gap, length, capable) => {
                now += gap * 1_000;
                tested.enqueue(Time::from_nanos(now), length, if capable { 2 } else { 0 });
                model.enqueue(now, length, capable);
            }
            Step::Depart(gap) => {
                now += gap * 1_000;
                let fates = tested.dequeue(Time::from_nanos(now));
                assert_eq!(fates, model.dequeue(now, config.ecn), "at {now}");
                idle = fates.is_empty();
                dropped += fates.iter().filter(|fate| matches!(fate, Fate::Dropped(_))).count();
                marked += fates.iter().filter(|fate| matches!(fate, Fate::Sent(_, true))).count();
            }
        }
        let codel = &tested.policy;
        assert_eq!(
            (codel.first_above.nanos(), codel.drop_next.nanos(), codel.after),
            (model.first_above_time, model.drop_next, After::Departure)
        );
        // The RFC ends dropping when it finds the queue empty. The policy is not asked then, and does so at the next
        // departure, before which it makes no difference.
        assert!(if idle { !model.dropping } else { codel.dropping == model.dropping });
        assert_eq!((codel.count, codel.last_count), (model.count, model.lastcount));
    }
    (dropped, marked)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Every verdict and every variable, after each step.
    #[test]
    fn it_is_the_pseudocode_of_the_rfc(steps in steps(), interval in 6u64..60, ecn in any::<bool>()) {
        let interval = Duration::from_millis(interval);
        compare(&steps, CodelConfig { interval, ecn, ..CodelConfig::default() });
    }
}

/// The same with one long overload, and that the comparison above is not about nothing.
#[test]
fn a_long_overload_drops_and_marks_as_the_pseudocode_does() {
    let step = |i: u64| match i % 11 {
        0 | 2 | 4 | 6 | 8 | 10 => Step::Arrive(100, 1000, i.is_multiple_of(3)),
        _ => Step::Depart(100),
    };
    let steps: Vec<_> = (0..20_000).map(step).chain((0..3_000).map(|_| Step::Depart(100))).collect();
    let config = CodelConfig { interval: Duration::from_millis(20), ..CodelConfig::default() };
    let (dropped, marked) = compare(&steps, config);
    assert!(dropped > 100 && marked > 100, "{dropped} {marked}");
}

/// Without relief the drops come at interval/√1, interval/√2, … after one another: worked out by hand.
#[test]
fn drops_follow_the_control_law() {
    let mut queue = Managed::new(Codel::new(CodelConfig { ecn: false, ..CodelConfig::default() }));
    (0..2_000).for_each(|_| _ = queue.enqueue(Time::ZERO, 1000, 0));
    let mut drops = Vec::new();
    for micros in (10_000..500_000).step_by(500) {
        let fates = queue.dequeue(Time::from_nanos(micros * 1_000));
        let dropped = fates.iter().any(|fate| matches!(fate, Fate::Dropped(_)));
        drops.extend(dropped.then_some(micros));
    }
    // First above the target at 10 ms, first drop at 110 ms; then + 100/√1, + 100/√2, … ms, each seen at the next 500 µs.
    let due = [110.0, 210.0, 280.711, 338.446, 388.446, 433.167, 473.992];
    let seen: Vec<u64> = due.iter().map(|ms: &f64| libm::ceil(ms * 2.0) as u64 * 500).collect();
    assert_eq!(drops, seen);
}

#[test]
fn a_queue_has_40_bytes_of_its_own() {
    assert_eq!(size_of::<Codel>(), 40);
}

/// A queue that was emptied by others than the policy begins anew: what comes then is not late yet.
#[test]
fn an_arrival_at_an_empty_queue_ends_dropping() {
    let mut codel = Codel::new(CodelConfig::default());
    (codel.dropping, codel.first_above) = (true, Time::from_nanos(5));
    let mut queue = Managed::new(codel);
    (0..10).for_each(|_| _ = queue.enqueue(Time::from_nanos(10), 1000, 0));
    let late = Time::ZERO + Duration::from_millis(50);
    assert_eq!(queue.dequeue(late), [Fate::Sent(0, false)]);
    assert_eq!(
        (queue.policy.dropping, queue.policy.first_above),
        (false, late + queue.policy.config.interval)
    );
}

/// Packets that have waited for more than 10 ms are marked, whatever the control law says, if they can be and are selected.
#[test]
fn late_packets_are_marked() {
    for (ce_match, expected) in [(None, [true, true, false]), (Some((1, 3)), [true, false, false])] {
        let config = CodelConfig {
            ce_threshold: Some(Duration::from_millis(10)),
            ce_match,
            ecn: false,
            ..CodelConfig::default()
        };
        let mut managed = Managed::new(Codel::new(config));
        for ecn in [1, 2, 0] {
            managed.enqueue(Time::ZERO, 1000, ecn);
            managed.enqueue(Time::ZERO, 1000, ecn);
        }
        for (pair, marked) in expected.into_iter().enumerate() {
            let number = 2 * pair as u64;
            let ten = Time::from_nanos(10_000_000);
            // The queue is emptied in pairs, of which the first has waited for no more than the threshold.
            if pair == 0 {
                assert_eq!(managed.dequeue(ten), [Fate::Sent(number, false)]);
            } else {
                managed.dequeue(Time::from_nanos(10_000_001));
            }
            assert_eq!(managed.dequeue(Time::from_nanos(10_000_001)), [Fate::Sent(number + 1, marked)]);
        }
    }
}

proptest! {
    /// The gap is the longest whole number of nanoseconds whose square, times the count, is at most that of the interval.
    #[test]
    fn gaps_are_exact(interval in 1_000_000u64..100_000_000_000, count in 1u32.., shift in 0u32..32, root in 1u32..65_536) {
        for count in [count, (count >> shift).max(1), root * root] {
            let square = |number: u64| u128::from(number) * u128::from(number);
            let found = gap(interval, count);
            prop_assert!(square(found) * u128::from(count) <= square(interval));
            prop_assert!(square(found + 1) * u128::from(count) > square(interval));
        }
    }
}
