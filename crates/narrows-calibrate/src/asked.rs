//! What is measured: what packets go through, and what delay is asked for.

use narrows_core::model::quantile;
use narrows_scenario::Scenario;
use serde::Serialize;

use crate::CalibrateError;

/// What packets go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// A cable between the hosts.
    Cable,
    /// A forwarder that holds packets and does nothing else.
    Forwarder,
    /// A narrows.
    Narrows,
    /// A cable, and the kernel's usual queueing discipline at its near end.
    PfifoFast,
    /// The same with the kernel's network emulator.
    Netem,
}

/// The delay that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// So many nanoseconds.
    Constant(u64),
    /// Normal; packets may overtake one another.
    Reordering {
        /// In nanoseconds.
        mean: u64,
        /// In nanoseconds.
        sd: u64,
    },
    /// Normal and correlated over time, so that the order is kept.
    Ordered {
        /// In nanoseconds.
        mean: u64,
        /// In nanoseconds.
        sd: u64,
        /// Over which it is correlated, in nanoseconds.
        length: u64,
    },
}

impl Setting {
    /// The mean, in nanoseconds.
    pub const fn mean(self) -> u64 {
        match self {
            Self::Constant(mean) | Self::Reordering { mean, .. } | Self::Ordered { mean, .. } => mean,
        }
    }

    pub(crate) fn normal(self) -> Option<(f64, f64)> {
        match self {
            Self::Constant(_) => None,
            Self::Reordering { mean, sd } | Self::Ordered { mean, sd, .. } => Some((mean as f64, sd as f64)),
        }
    }

    /// A percentile of the delay asked for; of the ends of a distribution, those of 100,000 packets.
    pub(crate) fn quantile(self, percent: u32) -> f64 {
        match self.normal() {
            None => self.mean() as f64,
            Some((mean, sd)) => mean + sd * quantile((f64::from(percent) / 100.0).clamp(1e-5, 1.0 - 1e-5)),
        }
    }

    pub(crate) fn scenario(self) -> Result<Scenario, CalibrateError> {
        let delay = match self {
            Self::Constant(0) => String::new(),
            Self::Constant(delay) => format!("delay = \"{delay}ns\""),
            Self::Reordering { mean, sd } => {
                format!(
                    "delay = {{ normal = {{ mean = \"{mean}ns\", sd = \"{sd}ns\" }}, order = \"allow\" }}"
                )
            }
            Self::Ordered { mean, sd, length } => format!(
                "delay = {{ normal = {{ mean = \"{mean}ns\", sd = \"{sd}ns\" }}, correlation = \"{length}ns\" }}"
            ),
        };
        let text = format!(
            "[hosts.client]\n[hosts.server]\n[links.link]\nbetween = [\"client\", \"server\"]\n{delay}\n"
        );
        Ok(Scenario::parse(&text, "calibrate")?)
    }
}
