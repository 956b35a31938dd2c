//! Imports topologies of Mininet's editor (MiniEdit, `.mn` files), which are JSON.
//!
//! A switch becomes a switch that learns, without OpenFlow; if switches form a ring, all become routers. Link
//! options are those of Mininet's `TCLink`: `bw` in Mbit/s, `delay` one way as a time, `jitter`, `loss` in
//! percent, `max_queue_size` in packets.

use std::collections::BTreeMap;

use serde_json::Value;

use super::graph::{Graph, Role};
use crate::problem::{Problem, ScenarioError};

pub(super) fn read(text: &str, file: &str) -> Result<Graph, ScenarioError> {
    let failed = |title: String| ScenarioError::new(file, text, vec![Problem::new(title)]);
    let root: Value = serde_json::from_str(text).map_err(|error| {
        let (number, title) = (error.line().max(1), error.to_string());
        let title = title.rsplit_once(" at line ").map_or(title.as_str(), |(what, _)| what);
        let shown = text.lines().nth(number - 1).unwrap_or_default();
        let problem = Problem::new(format!("invalid JSON: {title}")).on_line(file, number, shown);
        ScenarioError::new(file, text, vec![problem])
    })?;
    let list = |name: &str| root.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if list("links").is_empty() {
        return Err(failed("there is no list `links` of a MiniEdit file".into()));
    }
    let mut graph = Graph::default();
    let mut nodes = BTreeMap::new();
    for (section, role) in [("hosts", Role::Host), ("switches", Role::Switch)] {
        for (number, node) in (1..).zip(list(section)) {
            let name = node
                .pointer("/opts/hostname")
                .and_then(Value::as_str)
                .ok_or_else(|| failed(format!("{section} {number}: there is no opts.hostname")))?;
            if nodes.insert(name, graph.node(name, role)).is_some() {
                return Err(failed(format!("{section} {number}: duplicate name `{name}`")));
            }
        }
    }
    for (number, link) in (1..).zip(list("links")) {
        let end = |name: &str| {
            let of = link.get(name).and_then(Value::as_str).unwrap_or_default();
            nodes
                .get(of)
                .copied()
                .ok_or_else(|| failed(format!("links {number}: there is no host or switch `{of}` ({name})")))
        };
        let (a, b) = (end("src")?, end("dest")?);
        if a == b {
            return Err(failed(format!("links {number}: both ends are the same")));
        }
        let text_of = |name: &str| match link.pointer(&format!("/opts/{name}")) {
            Some(Value::String(text)) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let mut keys = Vec::new();
        for (name, key, unit) in [
            ("bw", "rate", "mbit"),
            ("delay", "delay", ""),
            ("jitter", "jitter", ""),
            ("loss", "loss", "%"),
            ("max_queue_size", "queue", " packets"),
        ] {
            if let Some(value) = text_of(name) {
                // tc reads a number without a unit as microseconds.
                let bare = matches!(key, "delay" | "jitter") && value.parse::<f64>().is_ok();
                keys.push((key, format!("{value}{}", if bare { "us" } else { unit })));
            }
        }
        graph.link(a, b, keys);
    }
    if !list("controllers").is_empty() {
        graph.remark("controllers were left out: switches learn, without OpenFlow");
    }
    Ok(graph)
}
