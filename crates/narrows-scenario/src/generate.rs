//! Generates scenarios of common topologies, and imports networks from files of other tools.
//!
//! The result is the text of a scenario, to be read, edited and run like any other. Packets take shortest
//! paths; shapes with several shortest paths spread flows over all of them (equal-cost multipath, ECMP).
//!
//! ```
//! use narrows_scenario::{NetworkPlan, NetworkShape, Scenario};
//!
//! let mut plan = NetworkPlan { hosts: Some(6), ..NetworkPlan::new(NetworkShape::Dumbbell) };
//! plan.values.rate = Some("10mbit".into());
//! let scenario = Scenario::parse(&plan.scenario()?, "dumbbell")?;
//! assert_eq!((scenario.hosts.len(), scenario.links.len()), (6, 7));
//! # Ok::<(), narrows_scenario::ScenarioError>(())
//! ```

mod containerlab;
mod csv;
mod graph;
mod graphml;
mod mininet;
mod shapes;

use crate::files::LONGEST_TEXT;
use crate::node::check_size;
use crate::problem::{Problem, ScenarioError};
use crate::scenario::Scenario;

/// Maximum number of hosts: a network has 65,535 ports.
const MOST_HOSTS: usize = 50_000;
/// Maximum number of links between routers.
const MOST_LINKS: usize = 200_000;
/// Maximum number of hosts of a network from a file.
const MOST_READ_HOSTS: usize = 10_000;
/// Maximum number of links of a network from a file.
const MOST_READ_LINKS: usize = 50_000;

/// How routers are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkShape {
    /// One router in the middle.
    Star,
    /// Routers in a row.
    Line,
    /// Routers in a ring.
    Ring,
    /// Every pair of routers connected.
    Mesh,
    /// Two routers with a bottleneck between them; hosts alternate between left and right.
    Dumbbell,
    /// Routers in rows and columns, each connected to its neighbours.
    Grid,
    /// Two layers: each leaf is connected to each spine, and hosts are at leaves.
    LeafSpine,
    /// Three layers of switches with k ports (Al-Fares, Loukissas, Vahdat 2008).
    FatTree,
    /// Routers at random positions, connected at random, with higher probability if near (Waxman 1988).
    Waxman,
}

/// Settings of links. For imported networks: defaults for what the file does not give.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkValues {
    /// Rate of links between routers; in a star, of links to hosts.
    pub rate: Option<String>,
    /// One-way delay of these links; in a Waxman network, the delay from corner to opposite corner.
    pub delay: Option<String>,
    /// Loss of these links.
    pub loss: Option<String>,
    /// Queue of these links.
    pub queue: Option<String>,
    /// Rate of links to hosts.
    pub edge_rate: Option<String>,
    /// Delay of links to hosts.
    pub edge_delay: Option<String>,
    /// Queue of links to hosts.
    pub edge_queue: Option<String>,
    /// Multipath mode of routers: `none`, `flow` or `packet`.
    pub multipath: Option<String>,
    /// Seed of the scenario, and of a Waxman network.
    pub seed: u64,
}

impl LinkValues {
    fn of_link(&self, key: &str) -> Option<&String> {
        let known =
            [("rate", &self.rate), ("delay", &self.delay), ("loss", &self.loss), ("queue", &self.queue)];
        known.into_iter().find(|(name, _)| *name == key).and_then(|(_, value)| value.as_ref())
    }

    /// Tries the settings on one link, so that each error is reported once.
    fn check(&self) -> Result<(), ScenarioError> {
        let values = [
            ("--rate", "rate", &self.rate),
            ("--delay", "delay", &self.delay),
            ("--loss", "loss", &self.loss),
            ("--queue", "queue", &self.queue),
            ("--edge-rate", "rate", &self.edge_rate),
            ("--edge-delay", "delay", &self.edge_delay),
            ("--edge-queue", "queue", &self.edge_queue),
        ];
        for (flag, key, value) in values {
            if let Some(value) = value {
                try_alone(key, value, flag)?;
            }
        }
        Ok(())
    }
}

/// Plan of a generated network.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkPlan {
    /// How routers are connected.
    pub shape: NetworkShape,
    /// Number of routers (line, ring, mesh, Waxman); columns and rows; leaves and spines; or ports of a fat
    /// tree's switches.
    pub size: Option<(usize, Option<usize>)>,
    /// Total number of hosts.
    pub hosts: Option<usize>,
    /// Settings of links.
    pub values: LinkValues,
}

impl NetworkPlan {
    /// A plan with all defaults.
    pub fn new(shape: NetworkShape) -> Self {
        Self { shape, size: None, hosts: None, values: LinkValues { seed: 1, ..LinkValues::default() } }
    }

    /// The text of the scenario.
    ///
    /// # Errors
    /// If the plan is impossible, or a setting is invalid.
    pub fn scenario(&self) -> Result<String, ScenarioError> {
        let values = &self.values;
        values.check()?;
        let core = self.core()?;
        let count = self.hosts.unwrap_or(core.hosts);
        limited("hosts", count, 1, MOST_HOSTS)?;
        let multipath = values.multipath.as_deref().or(core.spreads.then_some("flow"));
        let mut text = Text::new(values.seed);
        for host in 1..=count {
            text.host(&format!("h{host}"));
        }
        for router in &core.routers {
            text.router(router, multipath);
        }
        // A star has links to hosts only.
        let is_star = core.links.is_empty();
        let own = [&values.edge_rate, &values.edge_delay, &None, &values.edge_queue];
        let edge = ["rate", "delay", "loss", "queue"].into_iter().zip(own).map(|(key, own)| {
            let value = own.as_ref().or(values.of_link(key).filter(|_| is_star));
            (key, value)
        });
        for host in 1..=count {
            let router = &core.routers[core.edges[(host - 1) % core.edges.len()]];
            text.link(&format!("edge-{host}"), &format!("h{host}"), router, edge.clone());
        }
        for (a, b, delay) in &core.links {
            let (a, b) = (&core.routers[*a], &core.routers[*b]);
            let keys = ["rate", "delay", "loss", "queue"].map(|key| {
                let own = delay.as_ref().filter(|_| key == "delay");
                (key, own.or(values.of_link(key)))
            });
            text.link(&format!("{a}-{b}"), a, b, keys);
        }
        if text.0.len() as u64 > LONGEST_TEXT {
            return Err(wrong(format!(
                "the scenario has {} bytes: a file may have {LONGEST_TEXT}",
                text.0.len()
            )));
        }
        Scenario::parse(&text.0, "topology").map(|_| text.0)
    }
}

/// File format of a network to import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFormat {
    /// A list of links as CSV, with columns `a,b` and keys of a link.
    Csv,
    /// GraphML, as published by the Internet Topology Zoo.
    GraphMl,
    /// A containerlab topology file.
    Containerlab,
    /// A file of MiniEdit, Mininet's editor.
    Mininet,
}

impl NetworkFormat {
    /// The text of the scenario for a file. It starts with remarks on what is left out.
    ///
    /// # Errors
    /// If the file or a setting is invalid; errors have their place in the file.
    pub fn scenario(self, text: &str, file: &str, values: &LinkValues) -> Result<String, ScenarioError> {
        values.check()?;
        let marks = if self == Self::GraphMl { &b"<"[..] } else { b"\n,{" };
        check_size(text, marks).map_err(|problem| ScenarioError::new(file, text, vec![problem]))?;
        let graph = match self {
            Self::Csv => csv::read(text, file),
            Self::GraphMl => graphml::read(text, file),
            Self::Containerlab => containerlab::read(text, file),
            Self::Mininet => mininet::read(text, file),
        }?;
        let made = graph.text(values)?;
        Scenario::parse(&made, file).map(|_| made)
    }
}

/// Routers and the links between them.
struct Core {
    routers: Vec<String>,
    /// Links between routers, some with their own delay.
    links: Vec<(usize, usize, Option<String>)>,
    /// Routers with hosts, in the order in which they get them.
    edges: Vec<usize>,
    /// Default number of hosts.
    hosts: usize,
    /// Whether the shape has several shortest paths by design.
    spreads: bool,
}

/// Checks this setting alone on a link.
fn try_alone(key: &str, value: &str, file: &str) -> Result<(), ScenarioError> {
    let text = format!("[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n{key} = {value:?}\n");
    Scenario::parse(&text, file).map(drop)
}

fn limited(what: &str, number: usize, least: usize, most: usize) -> Result<usize, ScenarioError> {
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    let allowed =
        if least == most { format!("there is {least}") } else { format!("there may be {least} to {most}") };
    Err(wrong(format!("{number} {what}: {allowed}")))
}

fn wrong(title: String) -> ScenarioError {
    ScenarioError::new("topology", "", vec![Problem::new(title)])
}

/// The text of a scenario under construction.
struct Text(String);

impl Text {
    fn new(seed: u64) -> Self {
        Self(format!("seed = {seed}\n\n"))
    }

    fn remark(&mut self, text: &str) {
        self.0 += &format!("# {text}\n");
    }

    fn host(&mut self, name: &str) {
        self.0 += &format!("[hosts.{name}]\n");
    }

    fn router(&mut self, name: &str, multipath: Option<&str>) {
        self.0 += &format!("\n[routers.{name}]\n");
        if let Some(multipath) = multipath {
            self.0 += &format!("multipath = {multipath:?}\n");
        }
    }

    fn switch(&mut self, name: &str) {
        self.0 += &format!("\n[switches.{name}]\n");
    }

    fn link<'a>(
        &mut self,
        name: &str,
        a: &str,
        b: &str,
        keys: impl IntoIterator<Item = (&'a str, Option<&'a String>)>,
    ) {
        self.0 += &format!("\n[links.{name}]\nbetween = [{a:?}, {b:?}]\n");
        for (key, value) in keys {
            if let Some(value) = value {
                self.0 += &format!("{key} = {value:?}\n");
            }
        }
    }
}

#[cfg(test)]
mod tests;
