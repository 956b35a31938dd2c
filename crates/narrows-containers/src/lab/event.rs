//! Events of `containerlab events --format json`, one JSON object a line.
//!
//! Source: containerlab, `core/events/types.go`, `stream.go` and `netlink.go`. An event has neither a process nor a
//! namespace. It names its lab in the attribute `containerlab` (a label) if it is about a container, and in `lab` if
//! it is about an interface.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::LAB;
use crate::event::{Event, Happening, is_id};

/// Parses a line. `None` for an event that does not matter, or one of another lab.
///
/// # Errors
/// If the line is not an event.
pub fn parse(line: &[u8], lab: &str) -> Result<Option<Event>, serde_json::Error> {
    let Line { kind, action, container, attributes } = serde_json::from_slice(line)?;
    let attributes = attributes.unwrap_or_default();
    let (label, happening) = match (kind.as_str(), action.as_str()) {
        // A container that ran when the program started is told with its state.
        ("container", "start" | "restart" | "unpause" | "running") => (LAB, Happening::Started),
        ("container", "die" | "stop" | "destroy" | "exited") => (LAB, Happening::Ended),
        // After its start, a node gets its interfaces one by one.
        ("interface", "create" | "update" | "snapshot") => ("lab", Happening::Connected),
        _ => return Ok(None),
    };
    let is_ours = attributes.get(label).is_some_and(|of| of == lab);
    Ok((is_ours && is_id(&container)).then_some(Event { happening, container, network: None }))
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    action: String,
    #[serde(rename = "actor_full_id", default)]
    container: String,
    #[serde(default)]
    attributes: Option<BTreeMap<String, String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, action: &str, attributes: &str) -> String {
        format!(
            r#"{{"timestamp":"2024-07-01T11:02:56.1Z","type":"{kind}","action":"{action}","actor_id":"5d0b5a9ad3f1",
            "actor_name":"clab-frr-r1","actor_full_id":"5d0b5a9ad3f1c0","attributes":{{"name":"clab-frr-r1",{attributes}}}}}"#
        )
    }

    fn read(kind: &str, action: &str, attributes: &str) -> Option<(Happening, String)> {
        let read = parse(line(kind, action, attributes).as_bytes(), "frr").unwrap();
        read.map(|event| (event.happening, event.container))
    }

    #[test]
    fn the_events_of_a_lab_are_read() {
        let (of_container, of_interface) = (r#""containerlab":"frr""#, r#""ifname":"eth1","lab":"frr""#);
        let id = || "5d0b5a9ad3f1c0".to_owned();
        assert_eq!(read("container", "start", of_container), Some((Happening::Started, id())));
        assert_eq!(read("container", "running", of_container), Some((Happening::Started, id())));
        assert_eq!(read("container", "die", of_container), Some((Happening::Ended, id())));
        assert_eq!(read("interface", "create", of_interface), Some((Happening::Connected, id())));
        for (kind, action) in [("interface", "delete"), ("interface", "stats"), ("container", "kill")] {
            assert_eq!(read(kind, action, of_interface), None);
        }
    }

    #[test]
    fn the_recorded_restart_of_a_node_is_read() {
        // Of containerlab 0.79: its interfaces wait elsewhere, it ends, starts, and gets them back.
        let recorded = include_str!("restart.jsonl").lines();
        let read = recorded.filter_map(|line| parse(line.as_bytes(), "tri").unwrap());
        let mut seen = Vec::new();
        for event in read {
            assert_eq!(event.container, "bf1e22707b81bc69");
            seen.push(event.happening);
        }
        let (connected, ended, started) = (Happening::Connected, Happening::Ended, Happening::Started);
        let mut expected = vec![connected; 2];
        expected.extend([ended, ended, started]);
        expected.extend([connected; 5]);
        assert_eq!(seen, expected);
    }

    #[test]
    fn other_labs_are_not_meant_and_odd_lines_are_errors() {
        assert_eq!(read("container", "start", r#""containerlab":"other""#), None);
        assert_eq!(read("interface", "create", r#""containerlab":"frr","lab":"other""#), None);
        assert!(parse(b"INFO Parsing", "frr").is_err());
        assert!(parse(br#"{"type":3}"#, "frr").is_err());
        let bare = br#"{"type":"container","action":"start","actor_full_id":"a/../b","attributes":null}"#;
        assert_eq!(parse(bare, "frr").unwrap(), None);
    }
}
