//! Reads a topology file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use narrows_live::group::Shape;
use narrows_scenario::{Fault, Files, ScenarioError, nearest};

use super::{Lab, LabEnd, LabLink};
use crate::labels::Wish;
use crate::link_block::{inside, map, wish};
use crate::yaml::{Node, fault};

/// The key of `vars` with the settings of a link.
const VARS: &str = "narrows";
/// What containers' names begin with by default, and the value of `prefix` that stands for the name of the lab.
const PREFIX: &str = "clab";
const LAB_NAME: &str = "__lab-name";
/// Kinds of nodes that are no containers, and first ends that are no nodes.
const NO_CONTAINERS: [&str; 3] = ["bridge", "ovs-bridge", "host"];
const OUTSIDE: [&str; 6] = ["host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy"];
const FILE: &str =
    "a topology file has maps such as: topology: { nodes: { a: { kind: linux } }, links: [ … ] }";
const EXAMPLE: &str =
    "give a link settings: - { endpoints: [\"a:eth1\", \"b:eth1\"], vars: { narrows: { delay: 20ms } } }";

pub(super) fn read(text: &str, file: &str, name: Option<&str>, files: Files) -> Result<Lab, ScenarioError> {
    let root = Node::document(text, file)?;
    let error = |faults: Vec<Fault>| ScenarioError::of_faults(file, text, faults);
    let topology = root.get("topology");
    let Some(nodes) = topology.and_then(|topology| topology.get("nodes")).filter(|all| all.map().is_some())
    else {
        let span = topology.map_or(0..0, |node| node.span.clone());
        return Err(error(vec![fault("no topology.nodes: this is not a topology file", &span, &[FILE])]));
    };
    let mut faults = Vec::new();
    let name = name.or_else(|| root.get("name").and_then(Node::text)).unwrap_or_default();
    if name.is_empty() {
        faults.push(fault("`name` is missing", &(0..0), &["write the name of the lab, as in: name: pair"]));
    }
    let prefix = match root.get("prefix").map(|prefix| prefix.text().unwrap_or_default()) {
        Some("") => String::new(),
        Some(LAB_NAME) => format!("{name}-"),
        prefix => format!("{}-{name}-", prefix.unwrap_or(PREFIX)),
    };
    let reader = Reader { topology, nodes, files: &files };
    let mut shape = Shape { group: name.into(), ..Shape::default() };
    shape.nodes.extend(nodes.map().unwrap_or_default().iter().map(|(key, _)| key.name.clone()));
    let links = reader.links(&mut shape.links, &mut faults);
    if links.is_empty() && faults.is_empty() {
        let span =
            topology.and_then(|topology| topology.get("links")).map_or(0..0, |links| links.span.clone());
        faults.push(fault(format!("no link has `vars.{VARS}`: there is nothing to do"), &span, &[EXAMPLE]));
    }
    faults.sort_by_key(|fault| fault.span.as_ref().map(|span| span.start));
    if !faults.is_empty() {
        return Err(error(faults));
    }
    let (folder, program) = (PathBuf::from("."), PathBuf::from("containerlab"));
    Ok(Lab { name: name.into(), prefix, folder, links, shape, program, files })
}

struct Reader<'a> {
    topology: Option<&'a Node>,
    nodes: &'a Node,
    files: &'a Files,
}

impl Reader<'_> {
    /// The links with settings; the ends of all links are noted in `shape`.
    fn links(&self, shape: &mut Vec<[String; 2]>, faults: &mut Vec<Fault>) -> Vec<LabLink> {
        let Some(links) = self.topology.and_then(|topology| topology.get("links")) else { return Vec::new() };
        let Some(all) = links.list() else {
            let what = format!("{} instead of a list", links.kind());
            faults.push(inside(fault(what, &links.span, &[EXAMPLE]), "topology.links"));
            return Vec::new();
        };
        let mut seen = BTreeSet::new();
        let numbered = (1..).zip(all);
        let read = |(number, link)| {
            let ends = ends(link);
            shape.extend(ends.iter().map(|ends| ends.each_ref().map(|(end, _)| end.name())));
            self.link(number, link, ends, &mut seen, faults)
        };
        numbered.filter_map(read).collect()
    }

    /// A link with settings. Interfaces of all links are noted in `seen`.
    fn link(
        &self,
        number: usize,
        link: &Node,
        ends: Result<[(LabEnd, &Node); 2], Fault>,
        seen: &mut BTreeSet<LabEnd>,
        faults: &mut Vec<Fault>,
    ) -> Option<LabLink> {
        let path = format!("topology.links.{number}");
        let settings = link.get("vars").and_then(|vars| vars.get(VARS));
        for (end, node) in ends.iter().flatten() {
            let is_node = !OUTSIDE.contains(&end.node.as_str());
            if is_node && !seen.insert(end.clone()) {
                let what = format!("the interface `{}` is in two links", end.name());
                faults.push(inside(fault(what, &node.span, &["each interface belongs to one link"]), &path));
            }
        }
        let settings = settings?;
        let ends = match ends {
            Ok(ends) => ends,
            Err(error) => {
                faults.push(inside(error, &path));
                return None;
            }
        };
        let before = faults.len();
        let wrong = ends.iter().enumerate().filter_map(|(number, (end, node))| self.wrong(number, end, node));
        faults.extend(wrong.map(|fault| inside(fault, &path)));
        let path = format!("{path}.vars.{VARS}");
        let wish = wish(self.files, settings, &path, &["seed"], faults)?;
        if wish.keys.is_empty() && map(settings, &path, &mut Vec::new()).is_some() {
            let help = "write keys of a link, such as delay, rate, loss or preset";
            faults.push(inside(fault("no settings", &settings.span, &[help]), &path));
        }
        let [from, to] = ends.map(|(end, _)| end);
        (faults.len() == before).then(|| LabLink {
            wish: Wish {
                at: crate::labels::Pick { interface: Some(from.interface.clone()), network: None },
                ..wish
            },
            ends: [from, to],
        })
    }

    /// What is wrong with an end of a link with settings.
    fn wrong(&self, number: usize, end: &LabEnd, node: &Node) -> Option<Fault> {
        let first = || {
            fault(
                format!("the first end is `{}`, which is not a container", end.node),
                &node.span,
                &["a network is attached at the first end: exchange the ends, and `up` and `down`"],
            )
        };
        if self.nodes.get(&end.node).is_none() {
            return match OUTSIDE.contains(&end.node.as_str()) {
                true => (number == 0).then(first),
                false => Some(self.no_node(&end.node, node)),
            };
        }
        let is_container = !NO_CONTAINERS.contains(&self.kind(&end.node).as_str());
        (number == 0 && !is_container).then(first)
    }

    fn no_node(&self, name: &str, at: &Node) -> Fault {
        let known = || self.nodes.map().unwrap_or_default().iter().map(|(key, _)| key.name.as_str());
        let near = nearest(name, known()).map(|near| format!("did you mean `{near}`?"));
        let all = format!("nodes of this file: {}", known().collect::<Vec<_>>().join(", "));
        let help: Vec<_> = near.into_iter().chain([all]).collect();
        let help: Vec<&str> = help.iter().map(String::as_str).collect();
        fault(format!("no node `{name}`"), &at.span, &help)
    }

    /// The kind of a node: its own, or that of its group, or the default.
    fn kind(&self, name: &str) -> String {
        let own = self.nodes.get(name);
        let group = own.and_then(|own| own.get("group")).and_then(Node::text);
        let groups = self.topology.and_then(|topology| topology.get("groups"));
        let of_group = group.and_then(|group| groups?.get(group));
        let defaults = self.topology.and_then(|topology| topology.get("defaults"));
        let kinds =
            [own, of_group, defaults].into_iter().flatten().filter_map(|node| node.get("kind")?.text());
        kinds.map(str::to_lowercase).next().unwrap_or_default()
    }
}

/// The ends of a link in any of its notations, each with its place: a list of two, `NODE:INTERFACE` or maps; or one
/// `endpoint` of a link to the host, with the type of the link for the other.
fn ends(link: &Node) -> Result<[(LabEnd, &Node); 2], Fault> {
    const HELP: &str = "write: endpoints: [\"a:eth1\", \"b:eth1\"]";
    if let (Some(one), Some(kind)) = (link.get("endpoint"), link.get("type").and_then(Node::text)) {
        let far = LabEnd { node: kind.to_lowercase(), interface: String::new() };
        return Ok([(end(one)?, one), (far, link)]);
    }
    match link.get("endpoints").map(|all| (all.list(), all)) {
        Some((Some([from, to]), _)) => Ok([(end(from)?, from), (end(to)?, to)]),
        Some((Some(list), all)) => {
            Err(fault(format!("{} endpoints instead of two", list.len()), &all.span, &[HELP]))
        }
        Some((None, all)) => {
            Err(fault(format!("{} instead of two endpoints", all.kind()), &all.span, &[HELP]))
        }
        None => Err(fault("`endpoints` is missing", &link.span, &[HELP])),
    }
}

fn end(node: &Node) -> Result<LabEnd, Fault> {
    const HELP: &str = "write \"NODE:INTERFACE\", or { node: NODE, interface: INTERFACE }";
    let given: BTreeMap<&str, &str> = match (node.text(), node.map()) {
        (Some(text), _) => {
            let split = text.split_once(':');
            split
                .map(|(node, interface)| [("node", node), ("interface", interface)].into())
                .unwrap_or_default()
        }
        (None, Some(map)) => {
            map.iter().filter_map(|(key, value)| Some((key.name.as_str(), value.text()?))).collect()
        }
        (None, None) => BTreeMap::new(),
    };
    let part = |name: &str| given.get(name).filter(|part| !part.is_empty()).map(|part| (*part).to_owned());
    match (part("node"), part("interface")) {
        (Some(node), Some(interface)) => Ok(LabEnd { node, interface }),
        _ => Err(fault("not an endpoint", &node.span, &[HELP])),
    }
}
