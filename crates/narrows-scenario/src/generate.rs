//! Scenarios of common topologies, and of networks in files of other tools.
//!
//! What comes out is the text of a scenario, to be read, changed and run like any other. Packets take shortest paths; shapes
//! with several of them spread over all by flow (equal-cost multipath).
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

use crate::problem::{Problem, ScenarioError};
use crate::scenario::Scenario;

/// More hosts than a machine has room for.
const MOST_HOSTS: usize = 10_000;
/// More links than that would take.
const MOST_LINKS: usize = 50_000;

/// How routers are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkShape {
    /// One router in the middle.
    Star,
    /// Routers in a row.
    Line,
    /// Routers in a circle.
    Ring,
    /// Each router joined with each other.
    Mesh,
    /// Two routers with a bottleneck between them; hosts left and right in turn.
    Dumbbell,
    /// Routers in rows and columns, each joined with its neighbours.
    Grid,
    /// Two layers: each leaf is joined with each spine, and hosts are at leaves.
    LeafSpine,
    /// Three layers of switches with k ports (Al-Fares, Loukissas, Vahdat 2008).
    FatTree,
    /// Routers at random places, joined at random, near ones more likely (Waxman 1988).
    Waxman,
}

/// Values of links. For networks from files: where the file has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkValues {
    /// The rate of links between routers; of a star, those of its hosts.
    pub rate: Option<String>,
    /// Their delay, one way; of a Waxman network, from one corner to the opposite one.
    pub delay: Option<String>,
    /// Their loss.
    pub loss: Option<String>,
    /// Their queue.
    pub queue: Option<String>,
    /// The rate of links to hosts.
    pub edge_rate: Option<String>,
    /// Their delay.
    pub edge_delay: Option<String>,
    /// How routers use several shortest paths: `none`, `flow` or `packet`.
    pub multipath: Option<String>,
    /// The seed of the scenario, and of a Waxman network.
    pub seed: u64,
}

impl LinkValues {
    fn of_link(&self, key: &str) -> Option<&String> {
        let known =
            [("rate", &self.rate), ("delay", &self.delay), ("loss", &self.loss), ("queue", &self.queue)];
        known.into_iter().find(|(name, _)| *name == key).and_then(|(_, value)| value.as_ref())
    }

    /// Values are tried on one link, so that what is wrong is said once.
    fn check(&self) -> Result<(), ScenarioError> {
        let values = [
            ("--rate", "rate", &self.rate),
            ("--delay", "delay", &self.delay),
            ("--loss", "loss", &self.loss),
            ("--queue", "queue", &self.queue),
            ("--edge-rate", "rate", &self.edge_rate),
            ("--edge-delay", "delay", &self.edge_delay),
        ];
        for (flag, key, value) in values {
            if let Some(value) = value {
                try_alone(key, value, flag)?;
            }
        }
        Ok(())
    }
}

/// What a scenario is to be made of.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkPlan {
    /// How routers are joined.
    pub shape: NetworkShape,
    /// How many routers (line, ring, mesh, Waxman); or columns and rows; leaves and spines; or the ports of a fat tree's
    /// switches.
    pub size: Option<(usize, Option<usize>)>,
    /// How many hosts in all.
    pub hosts: Option<usize>,
    /// The values of links.
    pub values: LinkValues,
}

impl NetworkPlan {
    /// With all defaults.
    pub fn new(shape: NetworkShape) -> Self {
        Self { shape, size: None, hosts: None, values: LinkValues { seed: 1, ..LinkValues::default() } }
    }

    /// The text of the scenario.
    ///
    /// # Errors
    /// When there is no such network, or a value is none.
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
        // The links of a star are those of its hosts.
        let is_star = core.links.is_empty();
        let edge_rate = values.edge_rate.as_ref().or(values.rate.as_ref().filter(|_| is_star));
        let edge_delay = values.edge_delay.as_ref().or(values.delay.as_ref().filter(|_| is_star));
        for host in 1..=count {
            let router = &core.routers[core.edges[(host - 1) % core.edges.len()]];
            let others = ["loss", "queue"].map(|key| (key, values.of_link(key).filter(|_| is_star)));
            let keys = [("rate", edge_rate), ("delay", edge_delay)].into_iter().chain(others);
            text.link(&format!("edge-{host}"), &format!("h{host}"), router, keys);
        }
        for (a, b, delay) in &core.links {
            let (a, b) = (&core.routers[*a], &core.routers[*b]);
            let keys = ["rate", "delay", "loss", "queue"].map(|key| {
                let own = delay.as_ref().filter(|_| key == "delay");
                (key, own.or(values.of_link(key)))
            });
            text.link(&format!("{a}-{b}"), a, b, keys);
        }
        Scenario::parse(&text.0, "topology").map(|_| text.0)
    }
}

/// A format that networks are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFormat {
    /// A list of links as CSV, with columns `a,b` and keys of a link.
    Csv,
    /// GraphML, as of the Internet Topology Zoo.
    GraphMl,
    /// A topology file of containerlab.
    Containerlab,
    /// A file of Mininet's editor, MiniEdit.
    Mininet,
}

impl NetworkFormat {
    /// The text of the scenario that a file becomes, which begins with remarks on what it leaves out.
    ///
    /// # Errors
    /// What is wrong with the file, with its place, or with a value.
    pub fn scenario(self, text: &str, file: &str, values: &LinkValues) -> Result<String, ScenarioError> {
        values.check()?;
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

/// Routers and what joins them.
struct Core {
    routers: Vec<String>,
    /// Links between them, some with a delay of their own.
    links: Vec<(usize, usize, Option<String>)>,
    /// Those that hosts are at, in the order in which they get them.
    edges: Vec<usize>,
    /// How many hosts there are if nothing is said.
    hosts: usize,
    /// There are several shortest paths by design.
    spreads: bool,
}

/// A link with this value alone.
fn try_alone(key: &str, value: &str, file: &str) -> Result<(), ScenarioError> {
    let text = format!("[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n{key} = {value:?}\n");
    Scenario::parse(&text, file).map(drop)
}

fn limited(what: &str, number: usize, least: usize, most: usize) -> Result<usize, ScenarioError> {
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(wrong(format!("{number} {what}: there may be {least} to {most}")))
}

fn wrong(title: String) -> ScenarioError {
    ScenarioError::new("topology", "", vec![Problem::new(title)])
}

/// A scenario that grows.
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
