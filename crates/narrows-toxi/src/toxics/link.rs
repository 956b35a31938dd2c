//! `link`: datagrams cross a link of the narrows engine. The attributes are the keys of a link in a scenario file,
//! with the same values, checks and errors.
//!
//! Each session has a link of its own, as each connection has toxics of its own. A datagram counts with the IP and UDP
//! headers that it has on a wire. Changed attributes change the running link: no datagram in it is lost.

use std::net::{IpAddr, SocketAddr};

use bytes::{Bytes, BytesMut};
use narrows_core::{Body, Bytes as Size, Engine, Event, FlowKey, Headers, Packet, PortId, Protocol, Seed};
use narrows_core::{Stream, Time, Verdict};
use narrows_scenario::{EngineChange, Files, Scenario};
use serde_json::{Map, Value};

use super::{Around, Toxic, Values};
use crate::piece::{End, Input, Item, Piece, Step};
use crate::stream::Way;

/// Bytes that may be inside the link of one session, counted as the engine counts them.
const MEMORY: Size = Size::new(16 << 20);
/// Datagrams that may wait for the link to take them.
const ROOM: usize = 1024;
/// The number of the protocol UDP.
const UDP: u8 = 17;
/// Bytes of a UDP header.
const UDP_HEADER: u32 = 8;
/// Steps of the engine for which a removed link is asked for the datagrams inside.
const MOST_STEPS: usize = 100_000;

/// The attributes of a toxic of this type.
#[derive(Debug)]
pub(crate) struct LinkSettings {
    /// As they were given.
    pub(crate) attributes: Map<String, Value>,
    scenario: Scenario,
    way: Way,
}

impl LinkSettings {
    /// Reads the attributes for one stream. No attribute may name a file: whoever reaches the API could read it.
    pub(crate) fn read(attributes: Map<String, Value>, way: Way) -> Result<Self, String> {
        let text = scenario_text(&attributes, way)?;
        let files = Files::given(std::iter::empty::<(&str, Vec<u8>)>());
        match Scenario::parse_with(&text, "attributes", files) {
            Ok(scenario) => Ok(Self { attributes, scenario, way }),
            Err(error) => Err(error.to_string().trim_end().trim_start_matches("error: ").to_owned()),
        }
    }
}

/// A scenario with these keys in one direction of its only link.
fn scenario_text(attributes: &Map<String, Value>, way: Way) -> Result<String, String> {
    let mut text =
        "[hosts.client]\n[hosts.server]\n[links.link]\nbetween = [\"client\", \"server\"]\n".to_owned();
    // A preset is for a whole link.
    if let Some(preset) = attributes.get("preset") {
        text += &format!("preset = {}\n", toml(preset)?);
    }
    text += &format!("[links.link.{}]\n", direction(way));
    for (key, value) in attributes.iter().filter(|(key, _)| *key != "preset") {
        text += &format!("{} = {}\n", toml_key(key), toml(value).map_err(|why| format!("{key}: {why}"))?);
    }
    Ok(text)
}

/// The direction of the scenario's link that a stream takes.
fn direction(way: Way) -> &'static str {
    match way {
        Way::Upstream => "up",
        Way::Downstream => "down",
    }
}

fn toml_key(key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if is_bare { key.into() } else { Value::from(key).to_string() }
}

/// A JSON value as TOML. Their strings are written alike.
fn toml(value: &Value) -> Result<String, String> {
    match value {
        Value::Null => Err("found null; leave the attribute out, or give its value".into()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value.to_string()),
        Value::Array(items) => {
            let items: Result<Vec<String>, String> = items.iter().map(toml).collect();
            Ok(format!("[{}]", items?.join(", ")))
        }
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| Ok(format!("{} = {}", toml_key(key), toml(value)?));
            let entries: Result<Vec<String>, String> = entries.iter().map(entry).collect();
            Ok(format!("{{ {} }}", entries?.join(", ")))
        }
    }
}

/// The link of one session.
#[derive(Debug)]
pub(crate) struct Link {
    engine: Engine<Bytes>,
    /// Time zero of the engine: a trace starts with the session.
    start: Time,
    /// Its settings, in step with the engine.
    scenario: Scenario,
    way: Way,
    entry: Option<PortId>,
    key: FlowKey,
    /// Bytes of the IP and UDP headers.
    headers: u32,
    /// Bytes inside the engine.
    inside: usize,
    /// The end of the stream, which follows the datagrams inside.
    end: Option<(Time, End)>,
}

impl Link {
    /// Its draws depend on the seed, the proxy, the toxic and the number of the session.
    pub(crate) fn new(settings: &LinkSettings, name: &str, start: Time, around: &Around) -> Option<Self> {
        let mut scenario = settings.scenario.clone();
        let stream = Stream::new(around.seed, &around.element(name), "link");
        scenario.seed = stream.nth(around.connection).bits();
        let mut config = scenario.network();
        config.seed = Seed(scenario.seed);
        config.memory = MEMORY;
        let engine = Engine::new(config).ok()?;
        let from = match settings.way {
            Way::Upstream => "client",
            Way::Downstream => "server",
        };
        let entry = scenario.ports().iter().find(|port| port.name.starts_with(from));
        let entry = entry.and_then(|port| engine.port(&port.name));
        let (key, headers) = around.datagrams.map_or((FlowKey::default(), UDP_HEADER), flow);
        Some(Self { engine, start, scenario, way: settings.way, entry, key, headers, inside: 0, end: None })
    }

    /// A time of the chain on the engine's clock.
    fn inner(&self, at: Time) -> Time {
        Time::ZERO + at.since(self.start)
    }

    /// A time of the engine on the chain's clock.
    fn outer(&self, at: Time) -> Time {
        self.start + at.since(Time::ZERO)
    }

    fn hand_in(&mut self, piece: Piece) {
        let Some(entry) = self.entry else { return };
        let length = u32::try_from(piece.data.len()).unwrap_or(u32::MAX).saturating_add(self.headers);
        let headers = Headers::plain(&self.key, length);
        let network_header = if self.key.network == Protocol::Ipv6 { 0 } else { 20 };
        self.inside += piece.data.len();
        let body = piece.data;
        let packet = Packet { length, link_header: 14, network_header, key: self.key, headers, body };
        self.engine.hand_in(self.inner(piece.at), entry, packet);
    }

    /// The next datagram that leaves the link by now, which is a time of the engine.
    fn leaving(&mut self, now: Time) -> Option<Piece> {
        let start = self.start;
        while let Some(event) = self.engine.poll(now) {
            let at = start + event.at.since(Time::ZERO);
            let data = delivered(&event, self.headers);
            if let Body::Last(body) = event.body {
                self.inside -= body.len();
            }
            if let Some(data) = data {
                return Some(Piece { at, data });
            }
        }
        None
    }
}

/// The payload of a delivered datagram; `None` if it was dropped, or arrives with a damaged header, which the
/// receiver's checksum would detect.
fn delivered(event: &Event<'_, Bytes>, headers: u32) -> Option<Bytes> {
    let Verdict::Delivered(_) = event.verdict else { return None };
    let body = event.body.get();
    if event.flips.is_empty() {
        return Some(body.clone());
    }
    let mut data = BytesMut::from(&body[..]);
    for flip in &event.flips {
        let bit = flip.checked_sub(headers * 8)?;
        if let Some(byte) = data.get_mut(bit as usize / 8) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }
    Some(data.freeze())
}

/// The flow of datagrams between two addresses, and the length of their headers.
fn flow([from, to]: [SocketAddr; 2]) -> (FlowKey, u32) {
    let octets = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    let (network, ip_header) = match to {
        SocketAddr::V4(_) => (Protocol::Ipv4DontFragment, 20),
        SocketAddr::V6(_) => (Protocol::Ipv6, 40),
    };
    let key = FlowKey {
        source: octets(from),
        destination: octets(to),
        source_port: from.port(),
        destination_port: to.port(),
        network,
        transport: UDP,
        ..FlowKey::default()
    };
    (key, ip_header + UDP_HEADER)
}

impl Toxic for Link {
    fn room(&self) -> usize {
        ROOM
    }

    fn held(&self) -> usize {
        self.inside
    }

    fn step(&mut self, now: Time, input: &mut Input) -> Step {
        while let Some(item) = input.pop() {
            match item {
                Item::Piece(piece) if self.end.is_none() => self.hand_in(piece),
                Item::Piece(_) => {}
                Item::End(at, end) => self.end = Some((at, end)),
            }
        }
        match (self.leaving(self.inner(now)), self.end) {
            (Some(piece), _) => Step::Pass(piece),
            (None, Some((at, end))) if self.engine.inside() == 0 => {
                Step::End(at.max(self.outer(self.engine.now())), end)
            }
            (None, _) => Step::Wait(self.engine.next_delivery().map(|at| self.outer(at))),
        }
    }

    fn adopt(&mut self, values: &Values, now: Time) -> bool {
        let Values::Link(settings) = values else { return false };
        let assignments = self.scenario.difference(&settings.scenario).assignments;
        let now = self.inner(now);
        let Ok(changes) = self.scenario.assign_at(now, &assignments) else { return false };
        // Both directions changed if they had the same value; only one of them carries datagrams.
        changes
            .into_iter()
            .all(|(link, change)| EngineChange::Link { link, change }.make(&mut self.engine, now).is_ok())
            && self.way == settings.way
    }

    fn release(&mut self, now: Time) -> Vec<Item> {
        let mut items = Vec::new();
        for _ in 0..MOST_STEPS {
            if let Some(piece) = self.leaving(self.engine.now().max(self.inner(now))) {
                items.push(Item::Piece(piece));
                continue;
            }
            // What the link would have delivered later leaves now.
            let Some(next) = self.engine.next_event().filter(|_| self.engine.inside() > 0) else { break };
            items.extend(self.leaving(next).map(Item::Piece));
        }
        items.extend(self.end.take().map(|(_, end)| Item::End(now, end)));
        items
    }
}
