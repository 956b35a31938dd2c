//! Frequencies and distributions against what was configured. Seeds are fixed, so a test that passes always does.

use narrows_core::model::cumulative;
use narrows_core::{Duration, Order, Probability, Protocol, Time};

use crate::drive::{Record, Run};
use crate::plan::{DelayPlan, LinkPlan, LossPlan, PacketPlan, Plan, ReorderPlan};

const PACKETS: u64 = 100_000;
const LENGTH: u32 = 1_000;
const GAP: Duration = Duration::from_micros(10);

/// Sends packets through a chain of links; every event, and the packets that the first link reordered.
fn send(seed: u64, links: Vec<LinkPlan>) -> (Vec<Record>, u64) {
    let mut run = Run::new(&Plan::chain(seed, links));
    for n in 0..PACKETS {
        let at = Time::from_nanos(n * GAP.nanos());
        run.poll(at, usize::MAX);
        run.hand_in(at, PacketPlan { port: 0, length: LENGTH, network: Protocol::Other });
    }
    run.poll(Time::from_nanos(1_000_000_000_000), usize::MAX);
    let first = run.engine.links().next().expect("there is one");
    let reordered = run.engine.view(first).counters()[0].reordered;
    (run.records, reordered)
}

fn chance(numerator: u64, denominator: u64) -> Probability {
    Probability::from_ratio(numerator, denominator).expect("at most one")
}

/// Within 4 standard errors, √(n·p·(1 − p)), of n·p.
fn assert_binomial(count: usize, trials: u64, p: Probability) {
    let (n, p) = (trials as f64, p.as_f64());
    let error = (n * p * (1.0 - p)).sqrt();
    assert!((count as f64 - n * p).abs() <= 4.0 * error, "{count} of {n} at {p}, standard error {error}");
}

/// The Kolmogorov-Smirnov distance of the samples from the distribution `cdf`, continuous above its least value.
fn distance(mut samples: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    let n = samples.len() as f64;
    let mut most: f64 = 0.0;
    for (place, &x) in samples.iter().enumerate() {
        // Just below x the samples before its first occurrence count, at x all up to its last.
        if samples.get(place + 1) != Some(&x) {
            most = most.max(((place + 1) as f64 / n - cdf(x)).abs());
        }
        if x > samples[0] && samples[place - 1] != x {
            most = most.max((place as f64 / n - cdf(x)).abs());
        }
    }
    most
}

/// What the distance of n samples exceeds in 1 % of all cases.
fn critical(samples: usize) -> f64 {
    1.63 / (samples as f64).sqrt()
}

fn assert_fits(samples: Vec<f64>, cdf: impl Fn(f64) -> f64) {
    let critical = critical(samples.len());
    let distance = distance(samples, cdf);
    assert!(distance < critical, "{distance} is not below {critical}");
}

#[test]
fn losses_have_their_frequency_wherever_they_are() {
    for p in [chance(1, 1_000), chance(1, 100), chance(3, 10)] {
        let loss = Some(LossPlan::Independent(p));
        for link in [
            LinkPlan { ingress_loss: loss, ..LinkPlan::new("l") },
            LinkPlan { wire_loss: loss, ..LinkPlan::new("l") },
        ] {
            let (records, _) = send(11, vec![link]);
            assert_binomial(records.iter().filter(|r| !r.delivered()).count(), PACKETS, p);
        }
    }
}

#[test]
fn losses_at_two_links_and_of_neighbours_are_independent() {
    let p = chance(1, 2);
    let loss = Some(LossPlan::Independent(p));
    let link = |name| LinkPlan { wire_loss: loss, ..LinkPlan::new(name) };
    let lost_at = |names: Vec<LinkPlan>| {
        let (records, _) = send(12, names);
        let mut lost = vec![false; PACKETS as usize];
        records.iter().for_each(|r| lost[r.body as usize] = !r.delivered());
        lost
    };
    let (a, b) = (lost_at(vec![link("a")]), lost_at(vec![link("b")]));
    let agree = a.iter().zip(&b).filter(|(a, b)| a == b).count();
    assert_binomial(agree, PACKETS, p);
    assert_binomial(a.windows(2).filter(|pair| pair[0] == pair[1]).count(), PACKETS - 1, p);
    // Loss and duplication of one packet at one link.
    let duplicating = LinkPlan { duplication: p, ..LinkPlan::new("a") };
    let mut copies = vec![0; PACKETS as usize];
    send(12, vec![duplicating]).0.iter().for_each(|r| copies[r.body as usize] += 1);
    let agree = a.iter().zip(&copies).filter(|&(&lost, &copies)| lost == (copies == 2)).count();
    assert_binomial(agree, PACKETS, p);
}

#[test]
fn duplicates_have_their_frequency_and_draw_their_own_delays() {
    let p = chance(1, 20);
    let span = 1_000_000;
    let delay = DelayPlan::Uniform(Duration::ZERO, Duration::from_nanos(span));
    let link = LinkPlan { duplication: p, delay, order: Order::Allow, ..LinkPlan::new("l") };
    let (records, _) = send(13, vec![link]);
    let mut delays = vec![[None; 2]; PACKETS as usize];
    records.iter().for_each(|r| delays[r.body as usize][usize::from(r.copy)] = Some(r.at));
    let gaps: Vec<u64> = delays
        .iter()
        .filter_map(|[one, twin]| one.zip(*twin))
        .map(|(one, twin)| one.nanos().abs_diff(twin.nanos()))
        .collect();
    assert_binomial(gaps.len(), PACKETS, p);
    // The distance of two independent uniform draws is below x with a probability of 2x − x².
    let gaps = gaps.iter().map(|&gap| gap as f64 / span as f64).collect();
    assert_fits(gaps, |x| 2.0 * x - x * x);
}

#[test]
fn flipped_bits_have_their_frequency_and_lie_anywhere() {
    let p = chance(3, 10);
    let (records, _) = send(14, vec![LinkPlan { corruption: p, ..LinkPlan::new("l") }]);
    let flips: Vec<u32> = records.iter().flat_map(|r| r.flips.clone()).collect();
    assert_binomial(flips.len(), PACKETS, p);
    assert!(records.iter().all(|r| r.flips.len() <= 1));
    let bits = f64::from(8 * LENGTH);
    // Bit k is the (k + 1)th of 8,000 that are equally likely.
    assert_fits(flips.iter().map(|&bit| f64::from(bit + 1)).collect(), |x| x / bits);
}

/// Whether the delays of packets that may overtake have this distribution, for 8 seeds. One in a hundred seeds misses by
/// chance (of 150 that were tried, two did), two or more of 8 do so with a probability of 0.3 %.
fn assert_delays_fit(delay: DelayPlan, cdf: impl Fn(f64) -> f64) {
    let misses = |seed: &u64| {
        let (records, _) = send(*seed, vec![LinkPlan { delay, order: Order::Allow, ..LinkPlan::new("l") }]);
        assert_eq!(records.len() as u64, PACKETS);
        let delays = records.iter().map(|r| r.at.since(r.arrival).nanos() as f64).collect();
        distance(delays, &cdf) >= critical(PACKETS as usize)
    };
    let missed: Vec<_> = (100..108).filter(misses).collect();
    assert!(missed.len() <= 1, "{delay:?} with seeds {missed:?}");
}

#[test]
fn uniform_delays_fit() {
    for (low, high) in [(0, 1_000_000), (20_000_000, 30_000_000)] {
        let delay = DelayPlan::Uniform(Duration::from_nanos(low), Duration::from_nanos(high));
        let (low, width) = (low as f64, (high - low) as f64 + 1.0);
        assert_delays_fit(delay, |x| (x + 1.0 - low) / width);
    }
}

/// The second is clamped: a third of a standard deviation above zero, with 37 % of the draws at zero.
#[test]
fn normal_delays_fit() {
    for (mean, sd) in [(10_000_000, 2_000_000), (1_000_000, 3_000_000)] {
        let delay = DelayPlan::Normal(Duration::from_nanos(mean), Duration::from_nanos(sd));
        let (mean, sd) = (mean as f64, sd as f64);
        // A delay of x ns stands for all draws up to x + 1/2 ns.
        assert_delays_fit(delay, |x| cumulative((x + 0.5 - mean) / sd));
    }
}

#[test]
fn delays_of_neighbours_are_uncorrelated() {
    let delay = DelayPlan::Normal(Duration::from_millis(100), Duration::from_millis(10));
    let (records, _) = send(19, vec![LinkPlan { delay, order: Order::Allow, ..LinkPlan::new("l") }]);
    let mut z = vec![0.0; PACKETS as usize];
    records.iter().for_each(|r| z[r.body as usize] = (r.at.since(r.arrival).nanos() as f64 - 1e8) / 1e7);
    // The standard error of a correlation of n independent pairs is 1/√n.
    let n = (PACKETS - 1) as f64;
    let correlation = z.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / n;
    assert!(correlation.abs() < 4.0 / n.sqrt(), "{correlation}");
}

/// After `gap − 1` packets that never skip the delay come some that do with probability p: cycles of
/// μ = gap − 1 + 1/p packets with a variance of σ² = (1 − p)/p². In n packets there are n/μ of them, with a standard
/// error of √(n·σ²/μ³) (renewal theory), and what a cycle cut short at the end makes: less than one.
#[test]
fn packets_skip_the_delay_as_often_as_gap_and_probability_say() {
    for (gap, p) in [(1, chance(1, 4)), (5, chance(1, 2)), (10, chance(1, 50)), (10, Probability::ONE)] {
        let delay = DelayPlan::Constant(Duration::from_millis(1));
        let reorder = Some(ReorderPlan { gap, probability: p });
        let (records, counted) = send(20, vec![LinkPlan { delay, reorder, ..LinkPlan::new("l") }]);
        let mut skipped: Vec<u64> = records.iter().filter(|r| r.at == r.arrival).map(|r| r.body).collect();
        skipped.sort_unstable();
        assert_eq!(skipped.len() as u64, counted);
        assert!(skipped.windows(2).all(|pair| pair[1] - pair[0] >= u64::from(gap)));

        let (n, p) = (PACKETS as f64, p.as_f64());
        let (mean, variance) = (f64::from(gap) - 1.0 + 1.0 / p, (1.0 - p) / (p * p));
        let error = (n * variance / (mean * mean * mean)).sqrt();
        let off = (skipped.len() as f64 - n / mean).abs();
        assert!(off <= 4.0 * error + 1.0, "{} of {n}, expected {} ± {error}", skipped.len(), n / mean);
    }
}
