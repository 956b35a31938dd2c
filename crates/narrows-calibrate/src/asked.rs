//! What is measured: the path, and the configured delay.

use narrows_core::model::quantile;
use narrows_scenario::Scenario;
use serde::Serialize;

use crate::CalibrateError;

/// The path of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// A plain cable between the hosts.
    Cable,
    /// A forwarder that only delays packets.
    Forwarder,
    /// narrows.
    Narrows,
    /// A cable with the kernel's default queueing discipline at its near end.
    PfifoFast,
    /// A cable with the kernel's network emulator.
    Netem,
}

/// The configured delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// Constant, in nanoseconds.
    Constant(u64),
    /// Normal; packets may be reordered.
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
        /// The correlation time, in nanoseconds.
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

    /// A percentile of the configured delay; for the ends of a distribution, those of 100,000 packets.
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
