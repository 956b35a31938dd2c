//! A scenario across several machines: which node is where, and the part that one machine runs.
//!
//! It is cut only at links. Each machine has an engine of the whole network, so that names, addresses, routes and
//! random draws are the same as on one machine, but packets enter only the links that they are sent into there. The
//! sending machine owns the whole link: after it, a packet leaves by the port `tunnel:LINK`, and enters the other
//! machine's engine by the port of that name, behind the link.

mod placement;

use std::collections::BTreeMap;

use narrows_core::{Duration, NetworkConfig, PortConfig, Target};

pub use placement::{CutLink, Placement};

use crate::direction::Direction;
use crate::link::{Link, Medium, Way};
use crate::problem::{Problem, ScenarioError};
use crate::scenario::Scenario;
use crate::value::{Delay, DelaySource};

/// The part of a scenario that one machine runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    machine: String,
    nodes: BTreeMap<String, String>,
}

impl Part {
    fn is_here(&self, node: &str) -> bool {
        self.nodes.get(node) == Some(&self.machine)
    }

    fn is_cut(&self, link: &Link) -> bool {
        let [one, other] = link.between.each_ref().map(|node| self.nodes.get(node));
        one != other
    }

    /// Leads packets that leave a cut link to its tunnel, and those out of the tunnel to where the link leads.
    pub(crate) fn cut(&self, links: &[Link], config: &mut NetworkConfig) {
        for link in links.iter().filter(|link| self.is_cut(link)) {
            let sends = |way: &Way| self.is_here(link.ends(*way)[0]);
            let Some(out) = [Way::Up, Way::Down].into_iter().find(sends) else { continue };
            let back = if out == Way::Up { Way::Down } else { Way::Up };
            let port = tunnel_port(&link.name);
            let lanes = |config: &mut NetworkConfig, way, to: Option<&str>| {
                let name = link.core_name(way);
                let found = config.links.iter_mut().find(|link| link.name == name)?;
                let before = found.lanes.clone();
                if let Some(to) = to {
                    found.lanes = vec![Target::Port(to.into())];
                }
                before.into_iter().next()
            };
            lanes(config, out, Some(&port));
            if let Some(entry) = lanes(config, back, None) {
                config.ports.push(PortConfig { name: port, entry });
            }
        }
    }

    /// Checks that a change leaves the delay of a cut link alone: a part of it is the network between the machines.
    pub(crate) fn allows(&self, before: &Link, after: &Link) -> Result<(), Problem> {
        let of = |link: &Link| {
            [Way::Up, Way::Down].map(|way| {
                let direction = link.direction(way)?;
                Some((direction.delay.clone(), direction.jitter, direction.trace.is_some()))
            })
        };
        if !self.is_cut(before) || of(before) == of(after) {
            return Ok(());
        }
        let why = format!("the delay of `{}` is fixed during this run: it joins two machines", before.name);
        Err(Problem::new(why).help("a part of it is the measured delay of the network between them"))
    }
}

/// The engine's port at the end of a link to another machine.
pub fn tunnel_port(link: &str) -> String {
    format!("tunnel:{link}")
}

impl Scenario {
    /// Whether a node is on this machine.
    pub fn is_here(&self, node: &str) -> bool {
        self.part.as_ref().is_none_or(|part| part.is_here(node))
    }

    /// The links that join this machine to another one, as long as it has a part of the scenario only.
    pub fn cut_links(&self) -> Vec<&Link> {
        let Some(part) = &self.part else { return Vec::new() };
        let is_ours = |link: &&Link| part.is_cut(link) && link.between.iter().any(|node| part.is_here(node));
        self.links.iter().filter(is_ours).collect()
    }

    /// The machine that sends into this direction of a link: its owner.
    pub fn sends_here(&self, link: &str, way: Way) -> bool {
        self.links.iter().find(|other| other.name == link).is_none_or(|link| self.is_here(link.ends(way)[0]))
    }

    /// Keeps the part of one machine. `subtract` has, for cut links, the delay of the network between the machines,
    /// which is taken from the link's own.
    ///
    /// # Errors
    /// If the timeline changes the delay of a cut link.
    pub fn on_machine(
        &mut self,
        machine: &str,
        placement: &Placement,
        subtract: &BTreeMap<String, Duration>,
    ) -> Result<(), ScenarioError> {
        self.part = Some(Part { machine: machine.into(), nodes: placement.nodes.clone() });
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
            later.assign_at(event.at, &event.set)?;
        }
        Ok(())
    }
}

/// The delay of a direction that a tunnel's delay can be taken from; otherwise what prevents it.
fn plain_delay(direction: &Direction) -> Result<Duration, &'static str> {
    if direction.exact_netem.is_some() {
        return Err("uses NetEm's single queue");
    }
    if direction.trace.is_some() {
        return Err("follows a trace");
    }
    match &direction.delay {
        None => Ok(Duration::ZERO),
        Some(Delay { source: DelaySource::Constant(delay), .. }) => Ok(*delay),
        Some(_) => Err("has a delay that is not one constant"),
    }
}
