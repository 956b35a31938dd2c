use narrows_core::sched::{FlowConfig, FlowId, Hfsc, HfscClass, HfscCurve, Served, Server, ShapingFault};
use narrows_core::{Duration, PacketRef, Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::{Wire, leaves, mbit, near, seconds};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn linear(rate: u64) -> Option<HfscCurve> {
    Some(HfscCurve::linear(mbit(rate)))
}

fn curve(m1: u64, d: Duration, m2: u64) -> Option<HfscCurve> {
    Some(HfscCurve { m1: mbit(m1), d, m2: mbit(m2) })
}

const NONE: HfscClass = HfscClass { parent: None, rt: None, ls: None, ul: None };

fn hfsc(classes: &[HfscClass]) -> Hfsc {
    Hfsc::new(classes.to_vec()).expect("in range")
}

/// Rates of the leaves, in Mbit/s, over ten seconds after the first one, when some of them send all the time.
fn shares(classes: &[HfscClass], rate: u64, sending: &[usize]) -> Vec<f64> {
    let leaves = leaves(classes.iter().map(|class| class.parent)).len();
    let mut wire = Wire::new(hfsc(classes), leaves, mbit(rate));
    wire.saturate(seconds(11), sending, 1_000);
    (0..leaves).map(|leaf| wire.rate_of(leaf, seconds(1), seconds(11)) / 1e6).collect()
}

#[track_caller]
fn close(found: &[f64], expected: &[f64]) {
    for (&found, &expected) in found.iter().zip(expected) {
        if expected == 0.0 {
            assert_eq!(found, 0.0);
        } else {
            near(found, expected, 0.01);
        }
    }
}

/// Figure 1 of the paper: 45 Mbit/s for CMU (25) and U. Pitt (20); CMU has audio, video and data, U. Pitt two leaves.
fn campus() -> Vec<HfscClass> {
    let class = |parent, rate| HfscClass { parent, ls: linear(rate), ..NONE };
    let (cmu, pitt) = (class(None, 25), class(None, 20));
    vec![
        cmu,
        pitt,
        class(Some(0), 2),
        class(Some(0), 8),
        class(Some(0), 15),
        class(Some(1), 12),
        class(Some(1), 8),
    ]
}

/// Link sharing is by the curves of siblings, at every level; what a class leaves goes to its siblings first.
#[test]
fn the_link_is_shared_level_by_level() {
    let all = campus();
    close(&shares(&all, 45, &[0, 1, 2, 3, 4]), &[2.0, 8.0, 15.0, 12.0, 8.0]);
    // What audio and data leave is video's, and none of it U. Pitt's.
    close(&shares(&all, 45, &[1, 3, 4]), &[0.0, 25.0, 0.0, 12.0, 8.0]);
    // All of U. Pitt's rest is its first leaf's.
    close(&shares(&all, 45, &[0, 1, 2, 3]), &[2.0, 8.0, 15.0, 20.0, 0.0]);
    close(&shares(&all, 45, &[0, 2]), &[45.0 * 2.0 / 17.0, 0.0, 45.0 * 15.0 / 17.0, 0.0, 0.0]);
}

/// Guarantees are kept whatever the tree says; only the rest is shared.
#[test]
fn real_time_goes_before_the_tree() {
    let classes = [
        HfscClass { rt: linear(6), ..NONE },
        HfscClass { ls: linear(1), ..NONE },
        HfscClass { ls: linear(3), ..NONE },
    ];
    close(&shares(&classes, 10, &[0, 1, 2]), &[6.0, 1.0, 3.0]);
    // Without a share it has no more than that, even alone.
    close(&shares(&classes, 10, &[0]), &[6.0, 0.0, 0.0]);
    // A share counts the work of both criteria: 6 of 10 are more than its share of a tenth.
    let mut shared = classes;
    shared[0].ls = linear(1);
    shared[2].ls = linear(8);
    close(&shares(&shared, 10, &[0, 1, 2]), &[6.0, 4.0 / 9.0, 32.0 / 9.0]);
    close(&shares(&shared, 10, &[0]), &[10.0, 0.0, 0.0]);
}

/// An upper limit holds for link sharing, at a leaf and above it; siblings get the rest.
#[test]
fn upper_limits_hold_for_link_sharing_only() {
    let class = |parent, share, limit| HfscClass { parent, ls: linear(share), ul: limit, rt: None };
    let classes = [class(None, 5, linear(2)), class(None, 5, None)];
    close(&shares(&classes, 10, &[0, 1]), &[2.0, 8.0]);
    close(&shares(&classes, 10, &[0]), &[2.0, 0.0]);
    let tree =
        [class(None, 10, linear(4)), class(Some(0), 1, None), class(Some(0), 3, None), class(None, 1, None)];
    close(&shares(&tree, 10, &[0, 1, 2]), &[1.0, 3.0, 6.0]);
    close(&shares(&tree, 10, &[0, 1]), &[1.0, 3.0, 0.0]);
    let limited = [HfscClass { rt: linear(6), ..class(None, 1, linear(2)) }, class(None, 1, None)];
    close(&shares(&limited, 10, &[0, 1]), &[6.0, 4.0]);
}

/// After each idle second a class has the first piece of its limit again, and no more than that.
#[test]
fn a_limit_of_two_pieces_allows_a_burst() {
    let limited = HfscClass { ls: linear(1), ul: curve(8, ms(10), 1), ..NONE };
    let mut wire = Wire::new(hfsc(&[limited]), 1, Rate::UNLIMITED);
    for start in 0..3 {
        wire.now = seconds(start);
        (0..20).for_each(|_| wire.arrive(0, 1_000));
        let before = wire.sent.len();
        wire.run(seconds(start) + ms(500), |_| {});
        let since = |at: Time| at.since(seconds(start));
        let at: Vec<Duration> = wire.sent[before..].iter().map(|&(at, ..)| since(at)).collect();
        // 1 ms for a packet up to 10 ms, then 8 ms.
        let expected: Vec<Duration> =
            (0..20).map(|n| if n <= 10 { ms(n) } else { ms(10 + 8 * (n - 10)) }).collect();
        assert_eq!(at, expected);
    }
}

/// When a limit is left, virtual times have moved on: the class has its share from then on, and no arrears.
#[test]
fn a_class_that_did_not_fit_does_not_catch_up() {
    // At most 1 Mbit/s for 5 s, then its half.
    let late = HfscClass { ls: linear(5), ul: curve(1, Duration::from_secs(5), 100), ..NONE };
    let mut wire = Wire::new(hfsc(&[late, HfscClass { ls: linear(5), ..NONE }]), 2, mbit(10));
    wire.saturate(seconds(10), &[0, 1], 1_000);
    near(wire.rate_of(0, seconds(1), seconds(5)), 1e6, 0.01);
    near(wire.rate_of(0, seconds(5), seconds(10)), 5e6, 0.01);
    near(wire.rate_of(1, seconds(5), seconds(6)), 5e6, 0.01);
}

/// Section II of the paper, tc-hfsc(7): delay and rate are apart. At 1 Mbit/s, 400 kbit/s of voice in packets of 250
/// bytes, and data for the rest: a linear curve means a delay of 5 ms and a packet, a concave one less.
#[test]
fn a_concave_curve_gives_a_low_delay_at_a_low_rate() {
    let rate = Rate::from_bits_per_second;
    let worst = |voice: HfscCurve| {
        let data = HfscCurve { m1: rate(0), d: ms(4), m2: rate(600_000) };
        let class = |curve| HfscClass { rt: Some(curve), ls: Some(curve), ..NONE };
        let mut wire = Wire::new(hfsc(&[class(voice), class(data)]), 2, rate(1_000_000));
        let (mut next, mut worst, mut arrived) = (Time::ZERO, Duration::ZERO, Vec::new());
        while wire.now < seconds(10) {
            while next <= wire.now {
                arrived.push(next);
                wire.arrive(0, 250);
                next = next + ms(5);
            }
            while wire.waiting(1) < 3 {
                wire.arrive(1, 250);
            }
            wire.step(next);
            let sent = wire.sent.iter().filter(|&&(_, leaf, _)| leaf == 0).count();
            if let Some(&(at, 0, _)) = wire.sent.last() {
                worst = worst.max(at.since(arrived[sent - 1]) + ms(2));
            }
            wire.sent.retain(|&(_, leaf, _)| leaf == 0);
        }
        worst
    };
    let low = worst(HfscCurve { m1: rate(1_000_000), d: ms(2), m2: rate(400_000) });
    // Its deadline is 2 ms, and it may wait for one packet of 2 ms.
    assert!(low <= ms(4), "{low}");
    let linear = worst(HfscCurve::linear(rate(400_000)));
    assert!(linear > low && linear <= ms(7), "{linear}");
}

/// A class that was idle has its curve anew, concave or convex, but not more than once at a time.
#[test]
fn a_class_that_becomes_active_again_has_its_curve_anew() {
    // 5 packets at once, then one each 8 ms, in real time only.
    let burst = HfscClass { rt: curve(40, ms(1), 1), ..NONE };
    let mut wire = Wire::new(hfsc(&[burst]), 1, Rate::UNLIMITED);
    (0..7).for_each(|_| wire.arrive(0, 1_000));
    wire.run(seconds(1), |_| {});
    let at = |wire: &Wire<Hfsc>, from: usize| -> Vec<u64> {
        wire.sent[from..].iter().map(|&(at, ..)| at.nanos() / 1_000).collect()
    };
    assert_eq!(at(&wire, 0), [0, 200, 400, 600, 800, 1_000, 9_000]);
    // Idle for long: the whole burst again.
    wire.now = seconds(2);
    (0..6).for_each(|_| wire.arrive(0, 1_000));
    wire.run(seconds(2) + ms(10), |_| {});
    assert_eq!(at(&wire, 7), [0, 200, 400, 600, 800, 1_000].map(|micros| 2_000_000 + micros));
    // Idle for 4 ms of the 8 that the last one cost: the new curve meets the old one after one packet more.
    wire.now = seconds(2) + ms(13);
    (0..3).for_each(|_| wire.arrive(0, 1_000));
    wire.run(seconds(3), |_| {});
    // 12 ms after 2 s are 11 ms and 11 kbit beyond the burst's end; 3 kbit of them are free at once.
    let again = at(&wire, 13);
    assert_eq!(again[0], 2_013_000);
    assert!(again[1] > 2_013_000 && again[1] < 2_021_000, "{again:?}");
    assert_eq!(again[2], again[1] + 8_000);
}

/// A convex curve gives nothing at first. By real time alone it is served ahead, at its second slope.
#[test]
fn a_convex_curve_is_served_ahead_at_its_second_slope() {
    let convex = HfscClass { rt: curve(0, ms(10), 1), ..NONE };
    let mut wire = Wire::new(hfsc(&[convex]), 1, mbit(100));
    wire.saturate(seconds(1), &[0], 1_000);
    let at: Vec<u64> = wire.sent.iter().map(|&(at, ..)| at.nanos()).collect();
    assert!((0..).zip(&at).all(|(n, &at)| at == n * 8_000_000), "{at:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    let fault =
        |classes: &[HfscClass]| Hfsc::new(classes.to_vec()).err().map(|error| (error.class, error.fault));
    let good = HfscClass { ls: linear(1), ..NONE };
    assert_eq!(fault(&[]), Some((None, ShapingFault::NoClasses)));
    let below = |parent| HfscClass { parent: Some(parent), ..good };
    assert_eq!(fault(&[good, below(1)]), Some((Some(1), ShapingFault::Parent { found: 1 })));
    assert_eq!(fault(&[good, NONE]), Some((Some(1), ShapingFault::NoCurve)));
    let chain: Vec<HfscClass> =
        (0..17).map(|n: usize| HfscClass { parent: n.checked_sub(1), ..good }).collect();
    assert_eq!(fault(&chain[..16]), None);
    assert_eq!(fault(&chain), Some((Some(16), ShapingFault::TooDeep { most: Hfsc::DEPTH })));
    let limit = HfscClass { rt: linear(1), ul: linear(1), ..NONE };
    assert_eq!(fault(&[limit]), Some((Some(0), ShapingFault::LimitWithoutShare)));
    assert_eq!(
        fault(&[HfscClass { rt: curve(1, ms(1), 0), ..good }]),
        Some((Some(0), ShapingFault::CurveEnds))
    );
    assert_eq!(fault(&[HfscClass { rt: linear(1), ..NONE }, below(0)]), None, "it shares by its curve");
}

/// The inverse of a curve, exactly: the first time at which it has done so many bits.
fn inverse(curve: &HfscCurve, bits: u64) -> u64 {
    let bits = u128::from(bits) * 1_000_000_000;
    let first = u128::from(curve.m1.bits_per_second()) * u128::from(curve.d.nanos());
    if bits <= first {
        return bits.div_ceil(curve.m1.bits_per_second().into()) as u64;
    }
    curve.d.nanos() + (bits - first).div_ceil(curve.m2.bits_per_second().into()) as u64
}

#[derive(Debug)]
struct Leaf {
    curve: HfscCurve,
    shares: bool,
}

/// The work of a curve in this time, in billionths of a bit.
fn done(curve: &HfscCurve, time: Duration) -> u128 {
    let (first, second) = (time.min(curve.d), time.saturating_sub(curve.d));
    let of = |rate: Rate, time: Duration| u128::from(rate.bits_per_second()) * u128::from(time.nanos());
    of(curve.m1, first) + of(curve.m2, second)
}

/// Whether the minimum of a convex curve that began at `old` and the same from `new` on is not one of them: both are a time and
/// the work by then.
fn cross(curve: &HfscCurve, old: (u64, u64), new: (u64, u64)) -> bool {
    let work = |bits: u64| u128::from(bits) * 1_000_000_000;
    let since = Duration::from_nanos(new.0 - old.0);
    let (before, after) = (work(old.1) + done(curve, since), work(new.1));
    // Where the first piece of the new one ends, it is furthest behind.
    let gained = done(curve, since + curve.d) - done(curve, since) - done(curve, curve.d);
    before < after && after - before < gained
}

/// A link, and curves that add up to no more than its rate at any time.
fn admissible() -> impl Strategy<Value = (u64, Vec<Leaf>)> {
    let leaf = (0u64..2_000, 0u64..50, 1u64..2_000, any::<bool>());
    vec(leaf, 1..6).prop_map(|leaves| {
        let rate = |kbit| Rate::from_bits_per_second(kbit * 1_000);
        let curve =
            |&(m1, d, m2, _): &(u64, u64, u64, bool)| HfscCurve { m1: rate(m1), d: ms(d), m2: rate(m2) };
        // A sum of two-piece curves is below C·t if it is so at the end of each first piece, and by its last slope.
        let curves: Vec<HfscCurve> = leaves.iter().map(curve).collect();
        let slope = |at: Duration| -> u64 {
            let sum: u128 = curves.iter().map(|curve| done(curve, at)).sum();
            if at == Duration::ZERO { 0 } else { sum.div_ceil(at.nanos().into()) as u64 }
        };
        let last: u64 = curves.iter().map(|curve| curve.m2.bits_per_second()).sum();
        let at_first: u64 = curves
            .iter()
            .filter(|curve| curve.d > Duration::ZERO)
            .map(|curve| curve.m1.bits_per_second())
            .sum();
        let at_first = at_first
            + curves
                .iter()
                .filter(|curve| curve.d == Duration::ZERO)
                .map(|curve| curve.m2.bits_per_second())
                .sum::<u64>();
        let capacity = curves.iter().map(|curve| slope(curve.d)).max().unwrap_or(0).max(last).max(at_first);
        let leaves = leaves.iter().map(|leaf| Leaf { curve: curve(leaf), shares: leaf.3 }).collect();
        (capacity, leaves)
    })
}

const LONGEST: u32 = 1_500;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Theorem 1 of the paper: with curves that the link can keep, every packet is sent by its deadline and the time of
    /// one packet of maximum length, whatever link sharing does. The deadline here is that of the definition: over all
    /// starts a of backlogged periods, the greatest a + S⁻¹(w − w(a)), with all work. Where two convex curves of a leaf cross, the
    /// scheduler has only one of them, as Linux, and the theorem does not hold: such a case ends there.
    #[test]
    fn deadlines_are_missed_by_one_packet_at_most(
        (capacity, leaves) in admissible(),
        arrivals in vec((0usize..6, 1u32..=LONGEST, 0u64..6_000_000, 1u32..8), 1..400),
    ) {
        let class = |leaf: &Leaf| HfscClass {
            rt: Some(leaf.curve),
            ls: leaf.shares.then(|| HfscCurve::linear(mbit(1))),
            ..NONE
        };
        let mut server = Server::new(hfsc(&leaves.iter().map(class).collect::<Vec<_>>()));
        for _ in &leaves {
            server.join(FlowConfig::default()).expect("there are as many");
        }
        // Of each leaf: its work, and the starts of its backlogged periods with the work by then.
        let mut work = vec![0u64; leaves.len()];
        let mut starts: Vec<Vec<(u64, u64)>> = vec![Vec::new(); leaves.len()];
        let mut waiting = vec![0u32; leaves.len()];
        let time = |bits: u64| (u128::from(bits) * 1_000_000_000).div_ceil(capacity.into()) as u64;
        let slack = time(u64::from(LONGEST) * 8);
        let (mut free, mut at, mut rounding, mut pending) = (0u64, 0u64, 0u64, arrivals.into_iter());
        let mut next = pending.next();
        loop {
            // What arrives before the link is free.
            while let Some((leaf, length, wait, count)) = next && at + wait <= free {
                at += wait;
                let leaf = leaf % leaves.len();
                for _ in 0..count {
                    if waiting[leaf] == 0 {
                        let (curve, start) = (&leaves[leaf].curve, (at, work[leaf]));
                        // Of a leaf that shares, the work by its real-time curve alone, which decides, is not known here.
                        let may_cross = |&old: &(u64, u64)| leaves[leaf].shares || cross(curve, old, start);
                        if curve.m1 < curve.m2 && starts[leaf].iter().any(may_cross) {
                            return Ok(());
                        }
                        starts[leaf].push(start);
                    }
                    waiting[leaf] += 1;
                    server.enqueue(Time::from_nanos(at), FlowId::new(leaf as u32), PacketRef::from_number(0), length);
                }
                next = pending.next();
            }
            match server.dequeue(Time::from_nanos(free)) {
                Served::Packet(flow, packet) => {
                    let leaf = flow.number() as usize;
                    let bits = u64::from(packet.length) * 8;
                    work[leaf] += bits;
                    waiting[leaf] -= 1;
                    free += time(bits);
                    let deadline = starts[leaf].iter().map(|&(start, before)| start + inverse(&leaves[leaf].curve, work[leaf] - before)).max();
                    let deadline = deadline.expect("it was backlogged");
                    // The wire's own rounding, to whole nanoseconds, is one for each packet.
                    rounding += 1;
                    prop_assert!(free <= deadline + slack + rounding, "{free} is after {deadline} and {slack}");
                }
                Served::NotBefore(later) => match next {
                    Some((.., wait, _)) => free = later.nanos().min(at + wait).max(free + 1),
                    None => free = later.nanos(),
                },
                Served::Empty => match next {
                    Some((.., wait, _)) => free = (at + wait).max(free),
                    None => break,
                },
                Served::GivenUp(..) => prop_assert!(false, "it gives nothing up"),
            }
        }
    }

    /// Siblings with linear curves that wait all the time get work in proportion, within a packet each.
    #[test]
    fn backlogged_siblings_share_in_proportion(
        rates in vec(1u64..100, 2..6),
        lengths in vec(64u32..=LONGEST, 6),
    ) {
        let classes: Vec<HfscClass> = rates.iter().map(|&rate| HfscClass { ls: linear(rate), ..NONE }).collect();
        let mut wire = Wire::new(hfsc(&classes), rates.len(), mbit(100));
        let mut bytes = vec![0u64; rates.len()];
        for _ in 0..2_000 {
            for (leaf, &length) in lengths.iter().enumerate().take(rates.len()) {
                while wire.waiting(leaf) < 2 {
                    wire.arrive(leaf, length);
                }
            }
            wire.step(Time::NEVER);
            let &(_, leaf, length) = wire.sent.last().expect("all wait");
            bytes[leaf] += u64::from(length);
            for (one, other) in (0..rates.len()).flat_map(|one| (0..one).map(move |other| (one, other))) {
                let part = |leaf: usize| bytes[leaf] as f64 / rates[leaf] as f64;
                let allowed = |leaf: usize| f64::from(lengths[leaf]) / rates[leaf] as f64;
                let apart = (part(one) - part(other)).abs();
                prop_assert!(apart <= allowed(one) + allowed(other) + 1.0, "{apart}");
            }
        }
    }
}
