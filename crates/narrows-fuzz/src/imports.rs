//! Networks that other tools describe: lists of links, GraphML, files of containerlab and of Mininet's editor.

use narrows_containers::lab::{Lab, event};
use narrows_scenario::{Files, LinkValues, NetworkFormat, Scenario};

/// Longer texts take time and tell nothing more.
const LONGEST: usize = 1 << 14;

const FORMATS: [NetworkFormat; 4] =
    [NetworkFormat::Csv, NetworkFormat::GraphMl, NetworkFormat::Containerlab, NetworkFormat::Mininet];

/// A network in each format: what is read is a scenario.
///
/// # Panics
/// When it is none.
pub fn topology(bytes: &[u8]) {
    let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= LONGEST) else { return };
    for format in FORMATS {
        if let Ok(made) = format.scenario(text, "fuzz", &LinkValues::default()) {
            Scenario::parse_with(&made, "made.toml", Files::default())
                .unwrap_or_else(|error| panic!("{text}\nmade\n{made}\n{error}"));
        }
    }
}

/// A topology file of containerlab, whose links become runs; and its events, one a line.
pub fn lab(bytes: &[u8]) {
    let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= LONGEST) else { return };
    for line in text.lines().take(20) {
        if let Ok(Some(event)) = event::parse(line.as_bytes(), "tri") {
            assert!(!event.container.is_empty());
        }
    }
    if let Ok(lab) = Lab::parse_with(text, "fuzz.clab.yml", None, Files::given::<&str>([])) {
        // Keys may still contradict each other.
        let _ = lab.plans();
        for link in &lab.links {
            lab.membership(link);
            lab.title(link);
        }
    }
}

/// A network in each format.
pub fn topologies() -> Vec<Vec<u8>> {
    let all = [
        "a,b,rate,delay,loss\nparis,berlin,10mbit,9ms,1%\nberlin,wien,,4ms,\n",
        "a;b;distance_km\n\"x\";y;120\n",
        r#"<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
        <key attr.name="label" attr.type="string" for="node" id="d0"/><key attr.name="Latitude" attr.type="double" for="node" id="d1"/>
        <key attr.name="Longitude" attr.type="double" for="node" id="d2"/><key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d3"/>
        <graph edgedefault="undirected"><node id="0"><data key="d0">Bern</data><data key="d1">46.9</data><data key="d2">7.4</data></node>
        <node id="1"><data key="d0">Z&#252;rich</data><data key="d1">47.4</data><data key="d2">8.5</data></node>
        <edge source="0" target="1"><data key="d3">10000000.0</data></edge></graph></graphml>"#,
        r#"{"application":{"ipBase":"10.0.0.0/8"},"version":"2","hosts":[{"number":"1","opts":{"hostname":"h1","nodeNum":1}},
        {"number":"2","opts":{"hostname":"h2","nodeNum":2}}],"switches":[{"number":"1","opts":{"hostname":"s1","nodeNum":1}}],
        "controllers":[],"links":[{"src":"h1","dest":"s1","opts":{"bw":10,"delay":"5ms","loss":1,"max_queue_size":100}},
        {"src":"s1","dest":"h2","opts":{}}]}"#,
    ];
    all.map(|text| text.as_bytes().to_vec()).into_iter().chain(labs()).collect()
}

/// Labs, and an event.
pub fn labs() -> Vec<Vec<u8>> {
    let all = [
        "name: tri\ntopology:\n  kinds: { linux: { image: x } }\n  nodes: { a: { kind: linux }, b: { kind: linux }, br: { kind: bridge } }\n  \
         links:\n    - endpoints: [\"a:eth1\", \"b:eth1\"]\n      vars: { narrows: { rate: 10mbit, up: { delay: 20ms } } }\n    \
         - type: veth\n      mtu: 1500\n      endpoints: [ { node: a, interface: eth2 }, { node: br, interface: br1 } ]\n    \
         - { type: host, endpoint: { node: b, interface: eth3 }, host-interface: h3, vars: { narrows: { preset: dsl } } }\n",
        r#"{"timestamp":"2024-07-01T11:02:56.1Z","type":"interface","action":"create","actor_id":"5d0b5a9ad3f1","actor_name":"clab-tri-a",
        "actor_full_id":"5d0b5a9ad3f1c0","attributes":{"name":"clab-tri-a","ifname":"eth1","lab":"tri"}}"#,
    ];
    let one_line = |text: &str| if text.starts_with('{') { text.replace('\n', "") } else { text.to_owned() };
    all.map(|text| one_line(text).into_bytes()).into()
}

/// Words of all of them.
pub const WORDS: &[&str] = &[
    "a,b,rate\n",
    "<node id=\"",
    "<edge source=\"",
    "<data key=\"",
    "</graphml>",
    "<![CDATA[",
    "&#27;",
    "&amp;",
    "<!DOCTYPE x [<!ENTITY a \"b\">]>",
    "endpoints: ",
    "nodes: ",
    "links: ",
    "topology:\n",
    "vars: { narrows: { ",
    "\"opts\":{",
    "\"switches\":[",
    "\"bw\":",
    "type: macvlan",
    "<<: *a",
    "&a ",
    "1e999",
    "\u{1b}[31m",
    "\u{202e}",
];
