//! `{ type = "codel", target = "5ms", interval = "100ms", ecn = true }` (RFC 8289).

use narrows_core::aqm::{self, Aqm, CodelConfig};
use narrows_core::{Bytes, Duration};

use super::{Maker, on_off};
use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::units;
use crate::value::inline::Inline;

/// What is given of CoDel; the rest is as the RFC has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codel {
    /// The sojourn that is good enough as a standing queue; 5 ms.
    pub target: Option<Duration>,
    /// For how long sojourns must have been above it; 100 ms.
    pub interval: Option<Duration>,
    /// The longest packet: with no more left waiting there is no standing queue; 1500 bytes.
    pub longest: Option<Bytes>,
    /// Whether packets are marked that can be; yes.
    pub ecn: Option<bool>,
}

const LONGEST: Duration = Duration::from_secs(100);

pub(crate) const KEYS: &[&str] = &["target", "interval", "longest", "ecn"];

impl Codel {
    /// Reads its keys from a table that may have others. `node` is pointed at when they do not go together.
    pub(crate) fn read(node: &Node, table: &Table) -> Result<Self, Problem> {
        let codel = Self {
            target: table
                .optional("target", |node| units::time_between(node, Duration::from_micros(1), LONGEST))?,
            interval: table
                .optional("interval", |node| units::time_between(node, Duration::from_millis(1), LONGEST))?,
            longest: table.optional("longest", units::packet_size)?,
            ecn: table.optional("ecn", Node::boolean)?,
        };
        let CodelConfig { target, interval, .. } = codel.config();
        if target >= interval {
            let keys = [table.key("target"), table.key("interval")];
            let place = keys.into_iter().flatten().next().map_or(&node.span, |key| &key.span);
            return Err(Problem::new(format!(
                "the target of {target} is not below the interval of {interval}"
            ))
            .at(place)
            .help("the interval is about the longest round trip, and the target 5 to 10 % of it"));
        }
        Ok(codel)
    }

    /// With all values in force.
    pub(crate) fn config(self) -> CodelConfig {
        let default = CodelConfig::default();
        CodelConfig {
            target: self.target.unwrap_or(default.target),
            interval: self.interval.unwrap_or(default.interval),
            longest: self.longest.unwrap_or(default.longest),
            ecn: self.ecn.unwrap_or(default.ecn),
        }
    }

    pub(super) fn maker(self) -> Maker {
        let policy = aqm::Codel::new(self.config());
        Box::new(move || Box::new(policy.clone()) as Box<dyn Aqm>)
    }

    pub(crate) fn write(self, table: &mut Inline) {
        table.quoted("target", self.target);
        table.quoted("interval", self.interval);
        table.quoted("longest", self.longest);
        table.plain("ecn", self.ecn);
    }

    pub(crate) fn words(self) -> String {
        let CodelConfig { target, interval, longest: _, ecn } = self.config();
        format!("CoDel, target {target}, interval {interval}, ECN {}", on_off(ecn))
    }
}
