//! The API answers as a real Toxiproxy server did: status, content type and body of each request in a file.
//!
//! `scripts/toxiproxy-answers` recorded the file from Toxiproxy 2.12. Not compared are the words in which Go reports
//! what it found in a body, ports, and Toxiproxy's choice of all interfaces where no listen address is given.

use serde::Deserialize;
use serde_json::Value;

use crate::common::Api;

/// A request, and the answer to it.
#[derive(Deserialize)]
struct Recorded {
    request: String,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    status: u16,
    #[serde(rename = "type")]
    kind: Option<String>,
    answer: Value,
}

#[test]
fn the_api_answers_as_toxiproxy_does() {
    let recorded: Vec<Recorded> = serde_json::from_str(include_str!("answers.json")).unwrap();
    assert!(recorded.len() > 100);
    let api = Api::new();
    for Recorded { request, headers, body, status, kind, answer } in recorded {
        let headers: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let given = api.ask_with(&request, &headers, &body);
        let what = format!("{request} {body}: {}", given.body);
        assert_eq!(given.status, status, "{what}");
        assert_eq!(given.kind, kind, "{what}");
        assert_eq!(normal(&given.body), without_ports(answer), "{what}");
    }
}

/// A body as `scripts/toxiproxy-answers` writes it.
fn normal(text: &str) -> Value {
    let value = serde_json::from_str(text).unwrap_or(Value::from(text));
    let mut value = without_ports(value);
    if let Some(error) = value["error"].as_str().map(String::from) {
        if error.starts_with("bad request body: ") {
            value["error"] = "bad request body".into();
        } else if value["status"] == 500 {
            value["error"] = error.rsplit(": ").next().unwrap_or_default().into();
        }
    }
    value
}

/// A value in which every address of this host has port 0.
fn without_ports(value: Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("127.0.0.1:") || text.starts_with("[::]:") => {
            "127.0.0.1:0".into()
        }
        Value::Array(items) => items.into_iter().map(without_ports).collect(),
        Value::Object(entries) => {
            entries.into_iter().map(|(key, value)| (key, without_ports(value))).collect()
        }
        other => other,
    }
}
