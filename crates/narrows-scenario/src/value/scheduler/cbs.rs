//! Credit-based shaper (CBS): `{ type = "cbs", idle-slope = "20mbit", send-slope = "980mbit", hi-credit = "30 bytes",
//! lo-credit = "1470 bytes" }`.

use narrows_core::sched::CbsConfig;
use narrows_core::{Bytes, Rate};

use super::own::OwnParameters;
use crate::keys::kind::Given;
use crate::keys::quantity::{FINITE_RATE, Size};
use crate::keys::{Keyed, Row, row};
use crate::problem::Problem;

/// Parameters of a credit-based shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cbs {
    /// The rate at which credit is earned; `UNLIMITED` if it is not given.
    pub(crate) idle_slope: Rate,
    /// The rate at which a transmission costs credit.
    pub(crate) send_slope: Option<Rate>,
    /// The maximum of credit.
    pub(crate) high: Bytes,
    /// The maximum of credit below zero.
    pub(crate) low: Option<Bytes>,
}

impl Default for Cbs {
    /// Has no idle slope, which is required.
    fn default() -> Self {
        Self { idle_slope: Rate::UNLIMITED, send_slope: None, high: Bytes::new(0), low: None }
    }
}

const CREDIT: Size = Size { low: 0, high: 1 << 32, expected: "a size up to 4 GiB" };

impl Keyed for Cbs {
    const ROWS: &'static [Row<Self>] = &[
        row!("idle-slope", idle_slope, FINITE_RATE, "Rate at which credit is earned: the share of the port.")
            .required(),
        row!("send-slope", send_slope, Given(FINITE_RATE), "Rate at which a transmission costs credit.")
            .default("the link's rate less `idle-slope`"),
        row!(
            "hi-credit",
            high,
            CREDIT,
            "Maximum of credit, which a packet earns that waits behind those of others."
        ),
        row!("lo-credit", low, Given(CREDIT), "Maximum of credit below zero, after a transmission.")
            .default("none"),
    ];
}

impl Cbs {
    pub(super) fn config(&self) -> CbsConfig {
        let Self { idle_slope, send_slope, high, low } = *self;
        CbsConfig { idle_slope, send_slope, high, low }
    }
}

impl OwnParameters for Cbs {
    fn effective(&self) -> String {
        let mut words = format!(", {}", self.idle_slope);
        if let Some(send) = self.send_slope {
            words += &format!(", a transmission costs {send}");
        }
        words += &format!(", credit at most {}", self.high);
        if let Some(low) = self.low {
            words += &format!(" and down to {low} below zero");
        }
        words
    }

    fn missing(&self) -> Option<Problem> {
        (self.idle_slope == Rate::UNLIMITED).then(|| {
            Problem::new("`cbs` has no idle slope")
                .help("write all of it: { type = \"cbs\", idle-slope = \"20mbit\" }")
        })
    }
}
