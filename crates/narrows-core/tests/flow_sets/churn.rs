//! Flows join and leave while others wait all the time: those keep what they are promised.

use narrows_core::classify::FlowMask;
use narrows_core::sched::{Drr, FlowSet, FlowSets, Gfq, Kps, Qfq, Scheduler, Wf2q};
use narrows_core::{Bytes, Duration, Seed};

use crate::stand::{Run, SOURCES, key, set, source, weight};

/// The longest packet.
const L: f64 = 1500.0;
const WEIGHTS: [u32; 3] = [10, 1, 3];

/// By bytes over weight: the most by which the service of two flows that wait all the time may differ over any interval.
type Bound = fn(f64, f64, f64) -> f64;

/// Multiply with carry, by G. Marsaglia: enough to scatter.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = (self.0 & 0xffff_ffff) * 4_294_957_665 + (self.0 >> 32);
        (self.0 & 0xffff_ffff) % limit
    }
}

/// What is measured of a flow that waits all the time.
#[derive(Default)]
struct Spread {
    least: f64,
    most: f64,
    /// The most that it fell behind from any instant to a later one.
    fall: f64,
}

impl Spread {
    fn note(&mut self, value: f64) {
        (self.least, self.most) = (self.least.min(value), self.most.max(value));
        self.fall = self.fall.max(value - self.least);
    }
}

struct Found {
    /// Of the difference of the first two sets, in bytes over weight.
    difference: f64,
    /// How far the flow of each of the first two fell behind its share, by the weights of the flows that there were.
    lags: [f64; 2],
    /// Flows that were taken away meanwhile.
    expired: u64,
}

/// Two sets have a flow that waits all the time; the third has flows that send now and then, and are gone when they have been
/// idle for the time of `term` packets.
fn churn<S: Scheduler + 'static>(scheduler: S, seed: u64, sources: u64, term: u64) -> Found {
    let mut queue = FlowSets::new(scheduler, Duration::from_micros(term), Seed(seed), "link");
    let masks = [FlowMask::NONE, SOURCES, SOURCES];
    let sets: Vec<FlowSet> = masks.into_iter().zip(WEIGHTS).map(|(mask, of)| set(mask, weight(of))).collect();
    sets.into_iter().for_each(|set| queue.add_set(set).expect("the scheduler takes them"));
    let mut run = Run::new(queue);
    run.look_every = 50;
    let mut numbers = Numbers(seed + 1);
    let mut waiting = [0; 2];
    let (mut served, mut due) = ([0.0; 2], [0.0; 2]);
    let (mut difference, mut lags) = (Spread::default(), [Spread::default(), Spread::default()]);
    for _ in 0..3_000 {
        for (set, waiting) in (0..).zip(&mut waiting) {
            while *waiting < 2 {
                run.enqueue(key(set, 1), 40 + numbers.below(1_461) as u32);
                *waiting += 1;
            }
        }
        if numbers.below(3) == 0 {
            // A burst of one source, of those that have their time: others come back only much later.
            let active = 1 + sources / 8;
            let source = (run.now.nanos() / (20 * term * 1_000) * active + numbers.below(active)) % sources;
            for _ in 0..1 + numbers.below(4) {
                run.enqueue(key(2, source as u32), 40 + numbers.below(1_461) as u32);
            }
        }
        let counts = run.queue.flow_sets();
        let registered =
            |set: usize| (counts[set].made - counts[set].expired) as f64 * f64::from(WEIGHTS[set]);
        let sum: f64 = (0..3).map(registered).sum();
        let (packet, of) = run.send().expect("something waits");
        let length = f64::from(run.stand.pool().get(packet).length);
        for flow in 0..2 {
            due[flow] += length * f64::from(WEIGHTS[flow]) / sum;
        }
        if of.mark < 2 {
            assert_eq!(source(&of), 1);
            served[of.mark as usize] += length;
            waiting[of.mark as usize] -= 1;
        }
        difference.note(served[0] / f64::from(WEIGHTS[0]) - served[1] / f64::from(WEIGHTS[1]));
        for flow in 0..2 {
            lags[flow].note(due[flow] - served[flow]);
        }
        // A packet takes as long as its bytes.
        run.now = run.now + Duration::from_nanos(length as u64);
        run.stand.remove(packet);
    }
    Found {
        difference: difference.most - difference.least,
        lags: lags.map(|lag| lag.fall),
        expired: run.queue.flow_sets()[2].expired,
    }
}

/// Tries many patterns; the greatest difference and the greatest lag over L.
fn try_all<S: Scheduler + 'static>(scheduler: fn() -> S, bound: Bound) -> (f64, f64) {
    let (mut closest, mut lag, mut expired): (f64, f64, u64) = (0.0, 0.0, 0);
    let [a, b, _] = WEIGHTS.map(f64::from);
    for seed in 0..3 {
        for (sources, term) in [(1, 2), (8, 10), (40, 3), (40, 40), (300, 20)] {
            let found = churn(scheduler(), seed, sources, term);
            // The sum of weights is never less than that of the two.
            closest = closest.max(found.difference / bound(a, b, a + b));
            lag = lag.max(found.lags[0].max(found.lags[1]) / L);
            expired += found.expired;
        }
    }
    println!("closest to the bound: {closest:.2}; lag: {lag:.2} packets; {expired} flows expired");
    assert!(expired > 1_000, "{expired}: flows came and went");
    (closest, lag)
}

/// Starts of waiting flows lie between V − L/φ − L/Σφ and V + L/φ.
#[test]
fn wf2q_keeps_shares() {
    let (closest, lag) = try_all(Wf2q::default, |a, b, sum| 2.0 * (L / a + L / b + L / sum));
    assert!(closest <= 1.0, "{closest}");
    // Theorem 4, and one packet that the flow has not got yet.
    assert!(lag <= 2.0, "{lag}");
}

/// Between V − 3σ/2 − L/Σw and V + 3σ/2, σ being below 2L/w.
#[test]
fn qfq_keeps_shares() {
    let (closest, lag) = try_all(Qfq::default, |a, b, sum| 6.0 * (L / a + L / b) + 2.0 * L / sum);
    assert!(closest <= 1.0, "{closest}");
    // 3·φ·σ + 2·φ·L, as if nobody came or went: V need not halt for flows that leave, because they owe nothing.
    assert!(lag <= 6.0 + 2.0, "{lag}");
}

/// Between V − L/w − δ − L/Σw and V + L/w + δ, δ being below L/8w.
#[test]
fn gfq_keeps_shares() {
    let (closest, lag) = try_all(Gfq::default, |a, b, sum| 2.25 * (L / a + L / b) + 2.0 * L / sum);
    assert!(closest <= 1.0, "{closest}");
    assert!(lag <= 2.25 + 2.0, "{lag}");
}

/// Between V − 5δ − L/Σw and V + L/w + δ, δ being below L/2w.
#[test]
fn kps_keeps_shares() {
    let (closest, lag) = try_all(Kps::default, |a, b, sum| 4.0 * (L / a + L / b) + 2.0 * L / sum);
    assert!(closest <= 1.0, "{closest}");
    assert!(lag <= 4.0 + 2.0, "{lag}");
}

/// Turns of a quantum of L: what is left over from one turn to the next is below a packet.
#[test]
fn drr_keeps_shares() {
    let (closest, _) = try_all(|| Drr::new(Bytes::new(1500)), |a, b, _| L + L / a + L / b);
    assert!(closest <= 1.0, "{closest}");
}
