//! Events of an engine (`GET /events`), one JSON object a line.

use serde::Deserialize;

/// An event that matters here, and its container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub happening: Happening,
    /// The ID of the container.
    pub container: String,
    /// The ID of the network that it has joined or left.
    pub network: Option<String>,
}

/// What happened to a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Its first process has started.
    Started,
    /// It has joined a network; engines also say so before they start the first process.
    Connected,
    /// It has left a network.
    Disconnected,
    /// It has ended.
    Ended,
}

impl Event {
    /// Parses a line. `None` for an event that does not matter.
    ///
    /// # Errors
    /// If the line is not an event.
    pub fn parse(line: &[u8]) -> Result<Option<Self>, serde_json::Error> {
        let Line { kind, action, actor } = serde_json::from_slice(line)?;
        let happening = match (kind.as_str(), action.as_str()) {
            // Podman says `restart` before the container ends, and Docker after `start`.
            ("container", "start") => Happening::Started,
            // As Podman calls it: it is in its networks, and its process has not started.
            ("container", "init") => Happening::Connected,
            ("container", "die" | "died" | "destroy" | "remove") => Happening::Ended,
            ("network", "connect") => Happening::Connected,
            ("network", "disconnect") => Happening::Disconnected,
            _ => return Ok(None),
        };
        let (container, network) = match kind.as_str() {
            "network" => (actor.attributes.container, Some(actor.id).filter(|id| is_id(id))),
            _ => (actor.id, None),
        };
        Ok(is_id(&container).then_some(Self { happening, container, network }))
    }
}

/// Whether this can be an ID in the path of a request.
pub(crate) fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "Type", default)]
    kind: String,
    #[serde(rename = "Action", default)]
    action: String,
    #[serde(rename = "Actor", default)]
    actor: Actor,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Actor {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "Attributes")]
    attributes: Attributes,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Attributes {
    container: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(Happening, String)> {
        Event::parse(line.as_bytes()).unwrap().map(|event| (event.happening, event.container))
    }

    #[test]
    fn the_events_of_a_restart_are_read() {
        let container = |action: &str| {
            format!(
                r#"{{"status":"{action}","id":"7d","from":"bb","Type":"container","Action":"{action}","Actor":{{"ID":"7d",
                "Attributes":{{"image":"bb","name":"web","exitCode":"137"}}}},"scope":"local","time":1,"timeNano":2}}"#
            )
        };
        assert_eq!(read(&container("die")), Some((Happening::Ended, "7d".into())));
        assert_eq!(read(&container("start")), Some((Happening::Started, "7d".into())));
        assert_eq!(read(&container("init")), Some((Happening::Connected, "7d".into())));
        for other in ["create", "kill", "stop", "restart", "exec_start: sh", "health_status: healthy"] {
            assert_eq!(read(&container(other)), None);
        }
        let joins = r#"{"Type":"network","Action":"connect","Actor":{"ID":"46","Attributes":{"container":"7d","name":"net1"}}}"#;
        assert_eq!(read(joins), Some((Happening::Connected, "7d".into())));
    }

    #[test]
    fn an_odd_line_is_an_error_and_an_odd_id_nothing() {
        assert!(Event::parse(b"{").is_err());
        assert!(Event::parse(br#"{"Type":3}"#).is_err());
        assert_eq!(read(r#"{"Type":"container","Action":"start","Actor":{"ID":"a b/../x"}}"#), None);
    }
}
