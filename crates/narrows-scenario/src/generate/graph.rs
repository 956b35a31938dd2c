//! A graph of nodes and links imported from another tool, and its conversion to a scenario.

use std::collections::{BTreeMap, BTreeSet};

use super::{LinkValues, MOST_READ_HOSTS, MOST_READ_LINKS, Text, wrong};
use crate::problem::ScenarioError;

/// What a node becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Host,
    /// A switch; a router if switches form a ring, which has no spanning tree here.
    Switch,
    /// A router with its own host.
    Site,
    /// A host if it has one link, a router if it has several.
    ByLinks,
}

#[derive(Debug)]
struct Node {
    name: String,
    role: Role,
}

#[derive(Debug)]
struct Link {
    ends: [usize; 2],
    /// Keys of the link and their values.
    keys: Vec<(&'static str, String)>,
}

/// Keys of links that files may give.
pub(super) const KEYS: [&str; 6] = ["rate", "delay", "jitter", "loss", "queue", "mtu"];

#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    links: Vec<Link>,
    names: BTreeSet<String>,
    /// Content of the file that the scenario cannot express.
    pub(super) remarks: Vec<String>,
}

impl Graph {
    /// Adds a node under a valid name: characters other than a–z, A–Z, 0–9, `-` and `_` become `-`, and a
    /// second node with that name gets a number.
    pub(super) fn node(&mut self, label: &str, role: Role) -> usize {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let words: String = label.chars().map(plain).take(50).collect();
        let parts: Vec<_> = words.split('-').filter(|part| !part.is_empty()).collect();
        let base = if parts.is_empty() { "node".to_owned() } else { parts.join("-") };
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        let name = names.find(|name| !self.names.contains(name)).unwrap_or(base);
        self.names.insert(name.clone());
        self.nodes.push(Node { name, role });
        self.nodes.len() - 1
    }

    pub(super) fn link(&mut self, a: usize, b: usize, keys: Vec<(&'static str, String)>) {
        self.links.push(Link { ends: [a, b], keys });
    }

    pub(super) fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }

    /// The text of the scenario. `values` has the defaults for links.
    pub(super) fn text(&self, values: &LinkValues) -> Result<String, ScenarioError> {
        let mut ends = vec![0usize; self.nodes.len()];
        for link in &self.links {
            link.ends.into_iter().for_each(|end| ends[end] += 1);
        }
        let is_host = |at: usize| match self.nodes[at].role {
            Role::Host => true,
            Role::Switch | Role::Site => false,
            Role::ByLinks => ends[at] == 1,
        };
        let (hosts, routers): (Vec<_>, Vec<_>) =
            (0..self.nodes.len()).filter(|&at| ends[at] > 0).partition(|&at| is_host(at));
        // Traffic needs two hosts.
        let too_few = hosts.len() < 2;
        let with_host: Vec<_> =
            routers.iter().filter(|&&at| too_few || self.nodes[at].role == Role::Site).copied().collect();
        let count = hosts.len() + with_host.len();
        if count > MOST_READ_HOSTS || self.links.len() > MOST_READ_LINKS {
            let links = self.links.len();
            return Err(wrong(format!(
                "{count} hosts and {links} links: at most {MOST_READ_HOSTS} and {MOST_READ_LINKS}"
            )));
        }
        let added: BTreeMap<usize, String> =
            with_host.iter().map(|&at| (at, self.host_name(&self.nodes[at].name))).collect();
        let mut text = Text::new(values.seed);
        self.remarks.iter().for_each(|remark| text.remark(remark));
        let has_ring = self.has_ring_of_switches();
        if has_ring {
            text.remark("switches form a ring and are routers here: each link is a network of its own");
        }
        hosts.iter().for_each(|&at| text.host(&self.nodes[at].name));
        added.values().for_each(|name| text.host(name));
        for &at in &routers {
            match self.nodes[at].role {
                Role::Switch if !has_ring => text.switch(&self.nodes[at].name),
                _ => text.router(&self.nodes[at].name, values.multipath.as_deref()),
            }
        }
        for (number, link) in (1..).zip(&self.links) {
            let [a, b] = link.ends.map(|end| self.nodes[end].name.as_str());
            let given = |key: &str| link.keys.iter().find(|(name, _)| *name == key).map(|(_, value)| value);
            let keys = KEYS.map(|key| (key, given(key).or(values.of_link(key))));
            text.link(&format!("link-{number}"), a, b, keys);
        }
        for (number, (&at, host)) in (1..).zip(&added) {
            let own = [&values.edge_rate, &values.edge_delay, &values.edge_queue];
            let keys = ["rate", "delay", "queue"].into_iter().zip(own).map(|(key, own)| (key, own.as_ref()));
            text.link(&format!("edge-{number}"), host, &self.nodes[at].name, keys);
        }
        Ok(text.0)
    }

    /// Whether links between switches close a ring.
    fn has_ring_of_switches(&self) -> bool {
        let mut first: Vec<usize> = (0..self.nodes.len()).collect();
        let is_switch = |&end: &usize| self.nodes[end].role == Role::Switch;
        self.links.iter().filter(|link| link.ends.iter().all(is_switch)).any(|link| {
            let [a, b] = link.ends.map(|end| first[end]);
            first.iter_mut().filter(|first| **first == b).for_each(|first| *first = a);
            a == b
        })
    }

    /// A unique name for the host of a router.
    fn host_name(&self, router: &str) -> String {
        let mut names = (1..).map(|more: usize| format!("{}-{router}", "h".repeat(more)));
        names.find(|name| !self.names.contains(name)).unwrap_or_default()
    }
}
