//! The parameters of DualPI2.

use core::ops::RangeInclusive;

use crate::time::Duration;

/// The parameters of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Config {
    /// The target delay of C. 100 µs to 10 s. Default: 15 ms.
    pub target: Duration,
    /// Interval between updates of p′. 1 ms to 10 s; less is treated as 1 ms. Default: 16 ms.
    pub update: Duration,
    /// Gain of the deviation from the target, α, in hertz. Range: [`DualPi2Config::ALPHA`]. Default: 0.16, as in
    /// Linux. RFC 9332 (A.1) uses `0.1·update/RTT_max²`, which is 0.16 for 16 ms and 100 ms, and 0.15 for its own 15
    /// ms.
    pub alpha: f64,
    /// Gain of the change of the delay, β, in hertz. Range: [`DualPi2Config::BETA`]. Default: 3.2, as in Linux. RFC
    /// 9332 uses `0.3/RTT_max`, which is 3 for 100 ms.
    pub beta: f64,
    /// Coupling factor k: the marking probability of L divided by √p_C. Range: [`DualPi2Config::COUPLING`]. Default:
    /// 2, which gives flows with equal round-trip times equal rates.
    pub coupling: f64,
    /// Native marking of L by sojourn time. Default: a ramp from 800 µs to 1.2 ms.
    pub low_latency: LowLatency,
    /// Native marking applies only if at least this many packets still wait in L. Default: 1.
    pub least: u64,
    /// Native marking applies only to packets that found at least this many in L when they arrived (Linux's
    /// `min_qlen_step`). Default: 0.
    pub least_on_arrival: u64,
    /// Send packets with ECT(0) through L as well. Default: false.
    pub any_ect: bool,
    /// Do not drop ECN-capable packets on overload: limit p′ to 1/k. Default: false.
    pub overflow: bool,
    /// Drop and mark by p_C and p_CL on arrival instead of on departure. Default: false.
    pub on_arrival: bool,
    /// How the queues share the link. Default: weighted, 15 for L and 1 for C.
    pub sharing: Sharing,
}

/// The native marking of L.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LowLatency {
    /// Mark every packet whose sojourn time is this or more.
    Step(Duration),
    /// Mark every packet while more than this many wait behind it.
    Backlog(u64),
    /// Mark with a probability that rises linearly with the sojourn time.
    Ramp {
        /// No marks up to this sojourn time.
        from: Duration,
        /// Mark every packet from this sojourn time on. Not less than `from`.
        to: Duration,
    },
}

/// How the two queues share the link while both are backlogged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// In proportion, by bytes. A queue with a share of 0 is served only while the other is empty; at most one of the
    /// shares is 0.
    Weighted {
        /// The share of L.
        low: u16,
        /// The share of C.
        classic: u16,
    },
    /// Serve the queue whose first packet has waited longer, after adding this to L's waiting time. The authors'
    /// first code for Linux used twice the target.
    TimeShifted(Duration),
}

impl DualPi2Config {
    /// Range of α. The minimum ensures that p′ changes in all states, so that updates can be caught up in bounded
    /// time.
    pub const ALPHA: RangeInclusive<f64> = 0.01..=100.0;
    /// Range of β.
    pub const BETA: RangeInclusive<f64> = 0.0..=1000.0;
    /// Range of k.
    pub const COUPLING: RangeInclusive<f64> = 0.01..=100.0;
}

impl Default for DualPi2Config {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            coupling: 2.0,
            low_latency: LowLatency::Ramp {
                from: Duration::from_micros(800),
                to: Duration::from_micros(1_200),
            },
            least: 1,
            least_on_arrival: 0,
            any_ect: false,
            overflow: false,
            on_arrival: false,
            sharing: Sharing::Weighted { low: 15, classic: 1 },
        }
    }
}

impl LowLatency {
    /// The marking probability after this sojourn time, while so many packets wait behind this one.
    pub fn probability(self, sojourn: Duration, behind: u64) -> f64 {
        match self {
            Self::Step(from) => f64::from(u8::from(sojourn >= from)),
            Self::Backlog(most) => f64::from(u8::from(behind > most)),
            Self::Ramp { to, .. } if sojourn >= to => 1.0,
            Self::Ramp { from, .. } if sojourn <= from => 0.0,
            Self::Ramp { from, to } => (sojourn - from).seconds() / (to - from).seconds(),
        }
    }
}
