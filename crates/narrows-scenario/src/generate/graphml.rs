//! Imports GraphML networks as published by the Internet Topology Zoo (Knight and others, "The Internet
//! Topology Zoo", IEEE JSAC 29(9), 2011).
//!
//! Each node becomes a router with a host. The delay of a link is that of light in fibre along the great
//! circle between its ends, [`METRES_PER_SECOND`]; real fibre routes are longer. The rate is
//! `LinkSpeedRaw`.

use std::collections::BTreeMap;

use narrows_core::Rate;
use roxmltree::{Document, Node};

use super::graph::{Graph, Role};
use crate::problem::{Problem, ScenarioError};

/// Speed of light in fibre: c over the group index 1.468 of single-mode fibre at 1550 nm (Corning SMF-28,
/// data sheet).
const METRES_PER_SECOND: f64 = 299_792_458.0 / 1.468;
/// Latitude and longitude, in degrees.
type Place = (f64, f64);

/// The mean radius of the Earth (IUGG 1980).
const EARTH: f64 = 6_371_008.8;

pub(super) fn read(text: &str, file: &str) -> Result<Graph, ScenarioError> {
    let failed = |title: String, line: u32| {
        let number = line.max(1) as usize;
        let shown = text.lines().nth(number - 1).unwrap_or_default();
        ScenarioError::new(file, text, vec![Problem::new(title).on_line(file, number, shown)])
    };
    let document = Document::parse(text).map_err(|error| {
        failed(format!("invalid GraphML: {}", without_place(&error.to_string())), error.pos().row)
    })?;
    let line = |node: Node<'_, '_>| document.text_pos_at(node.range().start).row;
    let root = document.root_element();
    if root.tag_name().name() != "graphml" {
        let found = root.tag_name().name();
        return Err(failed(format!("found <{found}>, expected <graphml>"), line(root)));
    }
    let named = |node: &Node<'_, '_>, name: &str| node.tag_name().name() == name;
    // The names of the data keys.
    let keys: BTreeMap<&str, &str> = root
        .children()
        .filter(|node| named(node, "key"))
        .filter_map(|node| Some((node.attribute("id")?, node.attribute("attr.name")?)))
        .collect();
    let data = |node: Node<'_, '_>, name: &str| {
        let is_it = |data: &Node<'_, '_>| {
            named(data, "data") && data.attribute("key").and_then(|key| keys.get(key)) == Some(&name)
        };
        node.children().find(is_it).and_then(|data| data.text().map(|text| text.trim().to_owned()))
    };
    let number =
        |node, name| data(node, name).and_then(|text| text.parse::<f64>().ok()).filter(|n| n.is_finite());
    let graph_node = root
        .children()
        .find(|node| named(node, "graph"))
        .ok_or_else(|| failed("there is no <graph>".into(), line(root)))?;

    let mut graph = Graph::default();
    let mut nodes: BTreeMap<&str, (usize, Option<Place>)> = BTreeMap::new();
    for node in graph_node.children().filter(|node| named(node, "node")) {
        let id = node.attribute("id").ok_or_else(|| failed("a node without an `id`".into(), line(node)))?;
        let label = data(node, "label").filter(|label| !label.is_empty() && label != "None");
        let place = number(node, "Latitude").zip(number(node, "Longitude"));
        let at = graph.node(label.as_deref().unwrap_or(id), Role::Site);
        if nodes.insert(id, (at, place)).is_some() {
            return Err(failed(format!("duplicate node `{id}`"), line(node)));
        }
    }
    let (mut loops, mut unplaced, mut no_speed) = (0, 0, 0);
    for edge in graph_node.children().filter(|node| named(node, "edge")) {
        let end = |name: &str| {
            let id = edge
                .attribute(name)
                .ok_or_else(|| failed(format!("an edge without a `{name}`"), line(edge)))?;
            nodes.get(id).ok_or_else(|| failed(format!("there is no node `{id}`"), line(edge)))
        };
        let ((a, from), (b, to)) = (end("source")?, end("target")?);
        if a == b {
            loops += 1;
            continue;
        }
        let mut keys = Vec::new();
        match number(edge, "LinkSpeedRaw").filter(|speed| (1.0..1e15).contains(speed)) {
            Some(speed) => keys.push(("rate", Rate::from_bits_per_second(speed as u64).to_string())),
            None => no_speed += 1,
        }
        match from.zip(*to) {
            Some((from, to)) => keys.push(("delay", delay(from, to))),
            None => unplaced += 1,
        }
        graph.link(*a, *b, keys);
    }
    if graph_node.children().any(|node| named(&node, "hyperedge")) {
        graph.remark("hyperedges were left out");
    }
    for (count, what) in [
        (loops, "from a node to itself were left out"),
        (unplaced, "have no coordinates at both ends: their delay is that of --delay"),
        (no_speed, "have no LinkSpeedRaw: their rate is that of --rate"),
    ] {
        if count > 0 {
            graph.remark(format!("{count} edges {what}"));
        }
    }
    Ok(graph)
}

/// An error of the XML parser without its position at the end.
fn without_place(text: &str) -> &str {
    text.rsplit_once(" at ").map_or(text, |(what, _)| what)
}

/// Delay along the great circle (haversine formula), to the microsecond.
fn delay(from: Place, to: Place) -> String {
    let ((a, east), (b, west)) = (from, to);
    let half = |degrees: f64| libm::sin(degrees.to_radians() / 2.0);
    let chord = half(b - a) * half(b - a)
        + libm::cos(a.to_radians()) * libm::cos(b.to_radians()) * half(west - east) * half(west - east);
    let metres = 2.0 * EARTH * libm::asin(libm::sqrt(chord.clamp(0.0, 1.0)));
    format!("{}us", libm::round(metres / METRES_PER_SECOND * 1e6) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_those_of_light_in_fibre() {
        // London to New York, 5,570 km along the great circle.
        let found = delay((51.5074, -0.1278), (40.7128, -74.0060));
        let micros: u64 = found.trim_end_matches("us").parse().unwrap();
        assert!((27_250..27_310).contains(&micros), "{found}");
        assert_eq!(delay((10.0, 20.0), (10.0, 20.0)), "0us");
        // A quarter of the way around.
        let quarter = delay((0.0, 0.0), (90.0, 0.0));
        assert_eq!(
            quarter,
            format!("{}us", (EARTH * std::f64::consts::FRAC_PI_2 / METRES_PER_SECOND * 1e6).round())
        );
    }
}
