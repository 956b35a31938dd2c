//! Correlated delays: neighbours are alike, while each delay by itself has exactly the requested
//! distribution.
//!
//! NetEm's `x' = (1 − ρ)·x + ρ·last` shrinks the variance and distorts the distribution. Here the correlation
//! is made in the normal domain, where sums stay normal, and each number is then transformed: z → Q(Φ(z)),
//! the Gaussian copula. Z is standard normal at every packet, including the first, so the delays have the
//! requested distribution.
//!
//! **Per packet**: Z_n = ρ·Z_(n−1) + √(1 − ρ²)·ε_n, AR(1). The rank correlation of neighbours (Spearman's) is
//! (6/π)·asin(ρ/2) for any continuous distribution, hence ρ = 2·sin(π·ρ_s/6).
//!
//! **In time**: Z(t) is the stationary Gaussian process of mean 0 and variance 1 with Matérn's covariance of
//! smoothness 3/2, k(τ) = (1 + λ·τ)·e^(−λ·τ) with λ = √3/ℓ (Rasmussen and Williams, Gaussian Processes for
//! Machine Learning, 2006, equation 4.17). It is Markov together with its slope; with V = Ż/λ and a = λ·τ the
//! exact transition over a gap τ is
//!
//! ```text
//! [Z'; V'] = e^−a·[1 + a, a; −a, 1 − a]·[Z; V] + N(0, Q)
//! Q₁₁ = 1 − e^−x·(1 + x + x²/2),  Q₁₂ = e^−x·x²/2,  Q₂₂ = 1 − e^−x·(1 − x + x²/2),  x = 2a
//! ```
//!
//! This follows from the stationary distribution, Z and V independent and standard normal, as Q = 1 − A·Aᵀ
//! (Hartikainen and Särkkä, "Kalman filtering and smoothing solutions to temporal Gaussian process regression
//! models", 2010, for the state space form). Q₁₁ is about x³/6, and this formula loses all its digits at
//! short gaps, so a series is used there.
//!
//! The process is differentiable, so packets stay in order as long as its slope does not fall below −1: see
//! [`Correlated::delayed_to_keep_order`]. Two packets at the same time (such as a duplicate and its original) have the
//! same delay.
//!
//! Example: normal with a standard deviation of 2 ms and ℓ = 20 ms. Packets 1 ms apart have normal numbers
//! with a correlation of k(1 ms) = 0.9965, and of 10⁹ closely spaced packets about 8 are delayed to keep
//! order.

mod delayed_to_keep_order;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use super::{DelayModel, Propagation};
use crate::model::autoregressive::{Autoregressive, standard_normal};
use crate::model::distribution::{Distribution, Transform, whole};
use crate::pool::PacketState;
use crate::random::Draw;
use crate::time::{Duration, Time};

/// Delays that are correlated from packet to packet, or in time: see the module's description.
///
/// The state advances once for each packet, with that packet's own random numbers.
#[derive(Clone, Debug)]
pub struct Correlated {
    process: Process,
    transform: Transform,
    mean: Duration,
}

#[derive(Clone, Debug)]
enum Process {
    PerPacket(Autoregressive),
    InTime(Box<Matern>),
}

impl Correlated {
    /// Delays with a rank correlation (Spearman's) of neighbouring packets from −1 to 1; `None` outside that
    /// range. At 1 all packets have the delay of the first; at −1 every second packet does.
    ///
    /// For a distribution with atoms the resulting correlation is a little nearer to zero, because ranks are
    /// tied.
    pub fn per_packet(distribution: Distribution, spearman: f64) -> Option<Self> {
        let process = Process::PerPacket(Autoregressive::new(spearman)?);
        Some(Self::new(&distribution, process))
    }

    /// Delays as a process in time with correlation length `length`; `None` if that is zero. At a distance of
    /// `length` the correlation of the normal numbers is 0.48, at twice that 0.14.
    pub fn in_time(distribution: Distribution, length: Duration) -> Option<Self> {
        let process = Process::InTime(Box::new(Matern::new(length)?));
        Some(Self::new(&distribution, process))
    }

    fn new(distribution: &Distribution, process: Process) -> Self {
        Self { process, transform: Transform::new(distribution), mean: whole(distribution.mean()) }
    }

    /// The delay of the next packet, which comes at `now`. Advances the state.
    #[inline]
    pub fn next(&mut self, now: Time, draw: &mut Draw) -> Duration {
        let z = match &mut self.process {
            Process::PerPacket(process) => process.advance(draw),
            Process::InTime(process) => process.advance(now, draw),
        };
        self.transform.at(z)
    }

    /// The share of packets, from 0 to 1, that will be delayed to keep order, if the delay is correlated in
    /// time. For closely spaced packets it is the share itself, otherwise an upper bound. A packet delayed to
    /// keep order has a longer delay than it drew, so this also bounds the distance between the resulting and
    /// the requested distribution (Kolmogorov–Smirnov distance). `None` for correlation per packet, where the
    /// share depends on the gaps.
    pub fn delayed_to_keep_order(&self) -> Option<f64> {
        match &self.process {
            Process::PerPacket(_) => None,
            Process::InTime(process) => Some(delayed_to_keep_order::share(&self.transform, process.lambda)),
        }
    }
}

impl DelayModel for Correlated {
    fn delay(&mut self, now: Time, _: &PacketState, draw: &mut Draw) -> Propagation {
        Propagation::After(self.next(now, draw))
    }

    fn mean(&self) -> Option<Duration> {
        Some(self.mean)
    }

    fn correlated(&self) -> Option<CorrelatedPlan> {
        let (Process::PerPacket(process), &Transform::Linear { mean, sd }) = (&self.process, &self.transform)
        else {
            return None;
        };
        let (correlation, innovation) = process.factors();
        Some(CorrelatedPlan { correlation, innovation, mean, sd })
    }
}

/// Normal delays, correlated from packet to packet, for those who compute them elsewhere:
/// `z = correlation·z + innovation·ε`, or ε for the first packet; then `mean + sd·z`, rounded to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorrelatedPlan {
    /// The factor of the last number.
    pub correlation: f64,
    /// The factor of the new one.
    pub innovation: f64,
    /// Nanoseconds.
    pub mean: f64,
    /// Nanoseconds.
    pub sd: f64,
}

impl CorrelatedPlan {
    /// ε of a packet with these draws.
    pub fn new_number(draw: &mut Draw) -> f64 {
        standard_normal(draw)
    }
}

#[derive(Clone, Debug)]
struct Matern {
    /// √3/ℓ, per nanosecond.
    lambda: f64,
    /// `None` before the first packet.
    state: Option<State>,
    /// The last transition used: gaps often repeat.
    transition: Transition,
}

#[derive(Clone, Copy, Debug)]
struct State {
    at: Time,
    z: f64,
    /// The slope over λ.
    v: f64,
}

/// For one gap: the matrix A and the factor L of Q = L·Lᵀ, which is lower triangular.
#[derive(Clone, Copy, Debug)]
struct Transition {
    gap: Duration,
    a: [[f64; 2]; 2],
    l: [f64; 3],
}

impl Matern {
    fn new(length: Duration) -> Option<Self> {
        const ROOT_OF_THREE: f64 = 1.732_050_807_568_877_2;
        let lambda = ROOT_OF_THREE / length.nanos() as f64;
        let transition = Transition::over(Duration::ZERO, lambda);
        (length > Duration::ZERO).then_some(Self { lambda, state: None, transition })
    }

    fn advance(&mut self, now: Time, draw: &mut Draw) -> f64 {
        let Some(State { at, z, v }) = self.state else {
            // The stationary distribution.
            let z = standard_normal(draw);
            let v = standard_normal(draw);
            self.state = Some(State { at: now, z, v });
            return z;
        };
        let gap = now.since(at);
        if gap == Duration::ZERO {
            return z;
        }
        if gap != self.transition.gap {
            self.transition = Transition::over(gap, self.lambda);
        }
        let Transition { a: [[zz, zv], [vz, vv]], l: [l11, l21, l22], .. } = self.transition;
        let (first, second) = (standard_normal(draw), standard_normal(draw));
        let next = zz * z + zv * v + l11 * first;
        let v = vz * z + vv * v + l21 * first + l22 * second;
        self.state = Some(State { at: now, z: next, v });
        next
    }
}

impl Transition {
    fn over(gap: Duration, lambda: f64) -> Self {
        let a = lambda * gap.nanos() as f64;
        let x = 2.0 * a;
        let decay = libm::exp(-a);
        let square = decay * decay;
        let q12 = square * x * x * 0.5;
        // R = e^x − 1 − x − x²/2, times e^−x.
        let rest = if x < 0.5 { square * remainder(x) } else { 1.0 - square * (1.0 + x + 0.5 * x * x) };
        // Q₁₁ = e^−x·R, and Q₂₂ = e^−x·(2·x + R).
        let (q11, q22) = (rest, 2.0 * x * square + rest);
        let l11 = libm::sqrt(q11);
        let l21 = if l11 > 0.0 { q12 / l11 } else { 0.0 };
        // At short gaps about x/2 of the 2·x of Q₂₂ is left: no harmful cancellation.
        let l22 = libm::sqrt((q22 - l21 * l21).max(0.0));
        let a = [[decay * (1.0 + a), decay * a], [-decay * a, decay * (1.0 - a)]];
        Self { gap, a, l: [l11, l21, l22] }
    }
}

/// e^x − 1 − x − x²/2 for x up to ½: x³·(1/3! + x/4! + x²/5! + …); after twelve terms the error is 10⁻¹⁷.
fn remainder(x: f64) -> f64 {
    const TERMS: [f64; 12] = {
        let (mut terms, mut n) = ([1.0 / 6.0; 12], 1);
        while n < 12 {
            terms[n] = terms[n - 1] / (n + 3) as f64;
            n += 1;
        }
        terms
    };
    x * x * x * TERMS.iter().rev().fold(0.0, |sum, term| sum * x + term)
}
