//! Traffic that the scenario itself brings: generated packets without a body, or a capture that is played.

mod read;

use std::path::PathBuf;

use narrows_core::source::{Arrivals, Lengths, Pace, Period, SourceConfig};
use narrows_core::{FlowKey, Time};

pub(crate) use read::read;

/// Packets from one port to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Unique among the traffic; part of the key of its random draws.
    pub name: String,
    /// The port where it enters.
    pub from: String,
    /// The port where it gets.
    pub to: String,
    /// Where the packets come from.
    pub source: TrafficSource,
}

/// Where packets come from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TrafficSource {
    /// Made up.
    Generated {
        /// When packets come, and how long they are.
        config: SourceConfig,
        /// What tells their flow apart.
        key: FlowKey,
    },
    /// Played from a capture, with its gaps.
    Capture {
        /// The file, relative to the folder of the scenario's file.
        file: PathBuf,
        /// The instant of its first packet.
        start: Time,
    },
}

/// How many bits of IP packets a second come in the long run.
pub(crate) fn offered(config: &SourceConfig) -> f64 {
    let mean_length = match &config.lengths {
        Lengths::Fixed(length) => f64::from(*length),
        Lengths::Mix(mix) => {
            let total: u64 = mix.iter().map(|(_, weight)| weight).sum();
            let sum: f64 = mix.iter().map(|(length, weight)| f64::from(*length) * *weight as f64).sum();
            sum / total.max(1) as f64
        }
    };
    let at = |pace| match pace {
        Pace::Bits(rate) => rate.bits_per_second() as f64,
        Pace::Packets { count, per } => count as f64 * mean_length * 8.0 / per.seconds(),
    };
    match config.arrivals {
        Arrivals::Constant(pace) | Arrivals::Poisson(pace) => at(pace),
        Arrivals::OnOff { pace, on, off } => {
            let mean = |period| match period {
                Period::Fixed(mean) | Period::Exponential(mean) | Period::Pareto { mean, .. } => {
                    mean.seconds()
                }
            };
            at(pace) * mean(on) / (mean(on) + mean(off))
        }
    }
}
