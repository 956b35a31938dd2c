//! A scenario across several machines: which node is where, and the part that one machine runs.
//!
//! It is cut only at links. Each machine has an engine of the whole network, so that names, addresses, routes and
//! random draws are the same as on one machine, but packets enter only the links that they are sent into there. The
//! sending machine owns the whole link: after it, a packet leaves by the port `tunnel:LINK`, and enters the other
//! machine's engine by the port of that name, behind the link.

use std::collections::BTreeMap;

use narrows_core::{Duration, NetworkConfig, PortConfig, Target};

use crate::direction::Direction;
use crate::link::{Link, Way};
use crate::problem::Problem;
use crate::value::{Delay, DelaySource};

/// The part of a scenario that one machine runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) machine: String,
    pub(crate) nodes: BTreeMap<String, String>,
}

impl Part {
    pub(crate) fn is_here(&self, node: &str) -> bool {
        self.nodes.get(node) == Some(&self.machine)
    }

    pub(crate) fn is_cut(&self, link: &Link) -> bool {
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
    format!("{TUNNEL}{link}")
}

/// The link of such a port.
pub fn tunnel_link(port: &str) -> Option<&str> {
    port.strip_prefix(TUNNEL)
}

const TUNNEL: &str = "tunnel:";

/// The delay of a direction that a tunnel's delay can be taken from; otherwise what prevents it.
pub(crate) fn plain_delay(direction: &Direction) -> Result<Duration, &'static str> {
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
