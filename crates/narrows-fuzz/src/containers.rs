//! What container engines and compose files say.

use std::collections::BTreeMap;

use narrows_containers::cni::{Attachment, Config, ConfigList};
use narrows_containers::container::Container;
use narrows_containers::engine::read_answer;
use narrows_containers::event::Event;
use narrows_containers::labels::Wish;
use narrows_containers::plan::Plan;
use narrows_containers::project::Project;
use narrows_scenario::Files;

/// Longer texts take time and tell nothing more.
const LONGEST: usize = 1 << 14;

/// A compose file: what is accepted can be planned for every service.
///
/// # Panics
/// When what was accepted is no scenario.
pub fn compose(bytes: &[u8]) {
    let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= LONGEST) else { return };
    let files = Files::given::<&str>([]);
    let Ok(project) = Project::parse_with(text, "fuzz.yml", Some("fuzz"), files) else { return };
    // Timelines may still contradict links; that is an error, too.
    let _ = project.plans();
}

/// Answers of an engine: with their head, as a container, as an event; the labels of a container.
///
/// # Panics
/// When labels that were accepted are no scenario.
pub fn engine(bytes: &[u8]) {
    let body = read_answer(bytes).map_or_else(|_| bytes.to_vec(), |(_, body)| body);
    let _ = Event::parse(&body);
    let Ok(container) = Container::parse(&body) else { return };
    let files = Files::given::<&str>([]);
    if let Ok(Some(wish)) = Wish::of_labels("labels", &container.labels, &files) {
        Plan::of_labels(&wish, &files).unwrap_or_else(|error| panic!("accepted, but {error}"));
    }
}

/// What a container runtime gives a CNI plugin, as a configuration and as a chain: what is accepted can be planned, and
/// a chain is as before once the plugin has been added and removed.
///
/// # Panics
/// When that does not hold.
pub fn cni(bytes: &[u8]) {
    let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= LONGEST) else { return };
    if let Ok(config) = Config::read(text, "fuzz.conf") {
        let (container, interface) = ("f00d".into(), "eth0".into());
        let attachment =
            Attachment { container, interface, namespace: None, pod: Some("default/web".into()) };
        if let Ok(Some(wish)) = config.task(&attachment).map(|task| task.wish) {
            Plan::of_labels(&wish, &Files::given::<&str>([]))
                .unwrap_or_else(|error| panic!("accepted, but {error}"));
        }
    }
    let Ok(list) = ConfigList::read(text, "fuzz.conflist") else { return };
    let (Ok(None), Ok(with)) = (list.ours(), list.with(&[("delay".into(), "1ms".into())], true)) else {
        return;
    };
    let with =
        ConfigList::read(&with, "fuzz.conflist").unwrap_or_else(|error| panic!("written, but {error}"));
    assert_eq!(with.without().as_deref(), Some(text));
}

/// Configurations to begin with.
pub fn configurations() -> Vec<Vec<u8>> {
    let all = [
        r#"{"cniVersion":"1.1.0","name":"n","type":"narrows-cni","link":{"delay":"5ms","up":{"loss":"1%"},"seed":3},"fail":"closed",
        "runtimeConfig":{"io.kubernetes.cri.pod-annotations":{"narrows.rate":"1mbit"},"bandwidth":{"ingressRate":8000,"egressRate":0}},
        "prevResult":{"ips":[]},"cni.dev/valid-attachments":[{"containerID":"a","ifname":"eth0"}]}"#,
        "{\n  \"cniVersion\": \"0.3.1\", \"name\": \"cbr0\",\n  \"plugins\": [\n    { \"type\": \"flannel\" },\n\t{ \"type\": \"portmap\" }\n  ]\n}\n",
        r#"{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"bridge"},{"type":"narrows-cni","link":{"preset":"dsl"}}]}"#,
    ];
    all.map(|text| text.as_bytes().to_vec()).into()
}

/// Compose files to begin with.
pub fn compose_files() -> Vec<Vec<u8>> {
    let all = [
        include_str!("../../../examples/compose/compose.yaml"),
        "services: { a: {}, b: { labels: [narrows.delay=1ms, \"narrows.up.loss=1%\"] } }\nx-narrows:\n  defaults: &d { delay: 2ms }\n  \
         services: { a: { <<: *d, preset: dsl, network: x, direction: in, seed: 3 } }\n  links: { \"a <-> b\": { rate: 1mbit/2mbit }, \
         \"* -> a\": { loss: { gilbert-elliott: { p: 1%, r: 30% } } }, \"10.0.0.0/8 -> b\": { delay: 1ms } }\n  timeline: \
         [ { at: 1s, set: { a: { up: { delay: 5ms } }, \"a -> b\": { outage: true } } } ]\n",
    ];
    all.map(|text| text.as_bytes().to_vec()).into()
}

/// Answers to begin with.
pub fn answers() -> Vec<Vec<u8>> {
    let labels: BTreeMap<_, _> = [
        ("narrows.delay", "5ms/6ms"),
        ("narrows.down.queue.bound", "10 packets"),
        ("com.docker-tc.enabled", "1"),
        ("com.docker-tc.limit", "1mbps"),
    ]
    .into();
    let container = serde_json::json!({
        "Id": "f00d", "Name": "/web", "State": { "Running": true, "Pid": 4711 }, "Config": { "Labels": labels },
        "HostConfig": { "NetworkMode": "container:x" },
        "NetworkSettings": { "SandboxKey": "/run/x", "Networks": { "n": { "IPAddress": "10.0.0.1" }, "m": null } },
    })
    .to_string();
    let event =
        r#"{"Type":"network","Action":"connect","Actor":{"ID":"1","Attributes":{"container":"f00d"}}}"#;
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{container}\r\n0\r\n\r\n",
        container.len()
    );
    vec![
        chunked.into_bytes(),
        format!("HTTP/1.0 200 OK\r\n\r\n{event}\n").into_bytes(),
        container.into_bytes(),
    ]
}

/// Words of both.
pub const WORDS: &[&str] = &[
    "x-narrows:",
    "links:",
    "services:",
    "timeline:",
    "defaults:",
    " -> ",
    " <-> ",
    "*",
    "<<: ",
    "narrows.",
    "com.docker-tc.",
    "delay: ",
    "up: ",
    "preset: ",
    "\"Labels\":",
    "\"plugins\":",
    "\"runtimeConfig\":",
    "\"link\":",
    "\r\n\r\n",
    "ffffffffffffffff\r\n",
];
