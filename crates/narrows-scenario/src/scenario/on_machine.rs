//! The part of a scenario that one of several machines runs.

use std::collections::BTreeMap;

use narrows_core::Duration;

use super::Scenario;
use crate::link::{Medium, Way};
use crate::part::Part;
use crate::problem::ScenarioError;
use crate::value::{Delay, DelaySource};

impl Scenario {
    /// Whether a node is on this machine.
    pub fn is_here(&self, node: &str) -> bool {
        self.part.as_ref().is_none_or(|part| part.is_here(node))
    }

    /// The machine that sends into this direction of a link: its owner.
    pub fn sends_here(&self, link: &str, way: Way) -> bool {
        self.links.iter().find(|other| other.name == link).is_none_or(|link| self.is_here(link.ends(way)[0]))
    }

    /// Keeps the part of one machine. `nodes` has the machine of each node; `subtract` has, for cut links, the delay of the network
    /// between the machines, which is taken from the link's own.
    ///
    /// # Errors
    /// If the timeline changes the delay of a cut link.
    pub fn on_machine(
        &mut self,
        machine: &str,
        nodes: &BTreeMap<String, String>,
        subtract: &BTreeMap<String, Duration>,
    ) -> Result<(), ScenarioError> {
        self.part = Some(Part { machine: machine.into(), nodes: nodes.clone() });
        for link in &mut self.links {
            let (Some(less), Medium::Duplex { up, down }) = (subtract.get(&link.name), &mut link.medium)
            else {
                continue;
            };
            for direction in [up, down] {
                if let Some(Delay { source: DelaySource::Constant(delay), .. }) = &mut direction.delay {
                    *delay = delay.saturating_sub(*less);
                }
            }
        }
        let mut later = self.clone();
        let mut timeline = self.timeline();
        // A timeline may repeat for ever; each of its steps comes at least once among these.
        for event in std::iter::from_fn(|| timeline.next()).take(self.timeline.len().saturating_mul(4)) {
            later.change_at(event.at, &event.changes)?;
        }
        Ok(())
    }
}
