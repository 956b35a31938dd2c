//! Correlation between delays: `"20ms"`, or `"25%"`.

use narrows_core::Duration;
use serde_json::json;

use crate::keys::Form;
use crate::keys::kind::{ByHand, text};
use crate::keys::schema;
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::units::{self, Share};
use crate::value::chance;
use crate::value::condition::Surroundings;

/// Correlation between the delays of packets. It does not change the distribution of the single delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correlation {
    /// Rank correlation (Spearman's) between consecutive packets, whatever the time between them.
    PerPacket(Share),
    /// Smooth over time, with about this correlation time.
    InTime(Duration),
}

pub(super) const CORRELATION: ByHand<Correlation> = ByHand {
    words: || "time, or probability below 100%".into(),
    schema: |definitions| json!({ "anyOf": [schema::time(definitions), schema::share(definitions)] }),
    read: |node, around| Correlation::read(node, around),
    write: |correlation| Some(text(correlation)),
};

impl Correlation {
    /// Reads `"20ms"` (correlation time) or `"25%"` (correlation between packets).
    fn read(node: &Node, around: Surroundings<'_>) -> Result<Self, Problem> {
        const HELP: &str = "write a time, such as \"20ms\", over which delays change, or the rank correlation of one packet and the next, such as \"25%\"";
        let is_share = match &node.value {
            Value::String(text) => text.trim().ends_with('%'),
            Value::Float(_) | Value::Integer(_) => true,
            _ => false,
        };
        if is_share {
            return chance::CORRELATION.read(node, around).map(Self::PerPacket).map_err(|p| p.help(HELP));
        }
        units::positive_time(node).map(Self::InTime).map_err(|p| p.help(HELP))
    }
}

/// As written in a file.
impl std::fmt::Display for Correlation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PerPacket(share) => share.fmt(f),
            Self::InTime(length) => length.fmt(f),
        }
    }
}
