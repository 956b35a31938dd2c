//! Imports containerlab topology files (`*.clab.yml`): nodes and links. Images, kinds and configurations of
//! nodes are ignored.
//!
//! A node with one link becomes a host, one with several a router; a bridge becomes a switch. Keys of a
//! link under `vars: narrows:` are those of the scenario: `rate`, `delay`, `jitter`, `loss`, `queue`,
//! `mtu`.

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode, Yaml};

use super::graph::{Graph, KEYS, Role};
use crate::problem::{Problem, ScenarioError};

/// Link ends that are not nodes.
const OUTSIDE: [&str; 4] = ["host", "mgmt-net", "macvlan", "dummy"];

pub(super) fn read(text: &str, file: &str) -> Result<Graph, ScenarioError> {
    let failed = |title: String| ScenarioError::new(file, text, vec![Problem::new(title)]);
    let documents = Yaml::load_from_str(text).map_err(|error| {
        let number = error.marker().line().max(1);
        let shown = text.lines().nth(number - 1).unwrap_or_default();
        let problem = Problem::new(format!("invalid YAML: {}", error.info())).on_line(file, number, shown);
        ScenarioError::new(file, text, vec![problem])
    })?;
    let topology = documents
        .first()
        .and_then(|root| root.as_mapping_get("topology"))
        .ok_or_else(|| failed("there is no `topology`".into()))?;
    let described = topology
        .as_mapping_get("nodes")
        .and_then(Yaml::as_mapping)
        .ok_or_else(|| failed("`topology` has no `nodes`".into()))?;
    let mut graph = Graph::default();
    let mut nodes = BTreeMap::new();
    for (name, node) in described {
        let name = name.as_str().ok_or_else(|| failed("the name of a node is not a text".into()))?;
        let kind = node.as_mapping_get("kind").and_then(Yaml::as_str).unwrap_or_default();
        let role = if kind.contains("bridge") { Role::Switch } else { Role::ByLinks };
        nodes.insert(name, graph.node(name, role));
    }
    let links = topology.as_mapping_get("links").and_then(Yaml::as_vec).map_or(&[][..], Vec::as_slice);
    let mut left_out = 0;
    for (number, link) in (1..).zip(links) {
        let names: Vec<String> = ends(link);
        let [a, b] = &names[..] else {
            return Err(failed(format!("link {number}: {} endpoints, expected 2", names.len())));
        };
        if [a, b].iter().any(|name| OUTSIDE.contains(&name.as_str())) {
            left_out += 1;
            continue;
        }
        let node = |name: &String| {
            nodes
                .get(name.as_str())
                .copied()
                .ok_or_else(|| failed(format!("link {number}: there is no node `{name}`")))
        };
        let (a, b) = (node(a)?, node(b)?);
        if a == b {
            return Err(failed(format!("link {number}: both ends are the same node")));
        }
        let mut keys = Vec::new();
        let vars = link.as_mapping_get("vars").and_then(|vars| vars.as_mapping_get("narrows"));
        for key in KEYS {
            let given = vars.and_then(|vars| vars.as_mapping_get(key));
            let given = given.or_else(|| (key == "mtu").then(|| link.as_mapping_get("mtu")).flatten());
            if let Some(value) = given {
                let value =
                    value.as_str().map(str::to_owned).or_else(|| value.as_integer().map(|n| n.to_string()));
                keys.push((
                    key,
                    value.ok_or_else(|| failed(format!("link {number}: `{key}` is not a text")))?,
                ));
            }
        }
        if let Some(unknown) = vars
            .and_then(Yaml::as_mapping)
            .and_then(|vars| vars.keys().filter_map(Yaml::as_str).find(|name| !KEYS.contains(name)))
        {
            return Err(failed(format!(
                "link {number}: unknown key `{unknown}` in vars.narrows; allowed: {}",
                KEYS.join(", ")
            )));
        }
        graph.link(a, b, keys);
    }
    if left_out > 0 {
        graph.remark(format!("{left_out} links to the host or its networks were left out"));
    }
    graph.remark("images and configurations of nodes were left out: hosts and routers are narrows' own");
    Ok(graph)
}

/// The nodes of a link, in its short form (`\"a:eth1\"`) or its long one (`node: a`).
fn ends(link: &Yaml<'_>) -> Vec<String> {
    let list = link.as_mapping_get("endpoints").and_then(Yaml::as_vec).map_or(&[][..], Vec::as_slice);
    let single = link.as_mapping_get("endpoint");
    let node = |end: &Yaml<'_>| match end.as_str() {
        Some(text) => text.split(':').next().unwrap_or_default().to_owned(),
        None => end.as_mapping_get("node").and_then(Yaml::as_str).unwrap_or_default().to_owned(),
    };
    let kind = link.as_mapping_get("type").and_then(Yaml::as_str).unwrap_or_default();
    // Links with one end lead outside.
    let outside = (single.is_some() && OUTSIDE.contains(&kind)).then(|| kind.to_owned());
    list.iter().chain(single).map(node).chain(outside).collect()
}
