//! Merges all sources into one sequence of packets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use narrows_core::source::Source;
use narrows_core::{Engine, FlowKey, Headers, Packet, PortId, Protocol, Seed, Time};
use narrows_report::{AppMeter, ApplicationInfo};
use narrows_scenario::{AimdConfig, Scenario, Traffic, TrafficSource};

use crate::aimd::{Aimd, Out};
use crate::apps::{App, Departure};
use crate::body::{Arrived, Body};
use crate::capture::CaptureFeed;
use crate::error::SourceError;
use crate::stations::Stations;
use crate::tcp::Buffers;

/// How sources send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceOptions {
    /// Packets of captures keep their bytes, and TCP segments their payload.
    pub keep_frames: bool,
    /// Threads read captures ahead, so that taking a packet never waits for the disk. A packet that is not ready in
    /// time is late.
    pub read_ahead: bool,
    /// Skip sources marked for virtual time only.
    pub live: bool,
}

/// A traffic source.
#[derive(Debug)]
pub struct Origin {
    name: String,
    /// Its index among the scenario's traffic.
    place: u32,
    /// Captures come first.
    rank: u8,
    port: PortId,
    /// The port at the other end.
    to: PortId,
    kind: Kind,
    stations: Stations,
}

#[derive(Debug)]
enum Kind {
    /// An open-loop generator: each packet is like the template, except for its length.
    Source { source: Source, template: Packet<()> },
    /// A sender that waits for acknowledgements; boxed because it is large.
    Aimd(Box<Aimd>),
    /// Clients and servers of an application.
    App(Box<App>),
    /// A capture file.
    Capture(CaptureFeed),
    /// A source that sends in another part of the run.
    Elsewhere,
}

/// All sources, merged in order of time. At the same instant, captures come before others, then the order is by name,
/// then the source's own.
#[derive(Debug)]
pub struct Sources {
    origins: Vec<Origin>,
    /// When to look at each source; its next packet is due then or later. An arrival may bring this forward, which
    /// leaves an outdated entry behind.
    heads: BinaryHeap<Reverse<(Time, u32)>>,
    /// The valid entry of each source.
    entries: Vec<Option<Time>>,
    /// Captures whose next packet is not ready yet.
    starved: Vec<u32>,
    /// Memory of all connections.
    buffers: Buffers,
}

impl Sources {
    /// The sources of a scenario that enter the network of `engine` at ports for which `has` is true.
    ///
    /// # Errors
    /// If a capture cannot be read.
    pub fn of<B>(
        scenario: &Scenario,
        engine: &Engine<B>,
        options: SourceOptions,
        has: impl Fn(PortId) -> bool,
    ) -> Result<Self, SourceError> {
        let mut all = Self::origins(scenario, engine, options, has)?;
        all.retain(|origin| !matches!(origin.kind, Kind::Elsewhere));
        Ok(Self::new(all))
    }

    /// As [`Sources::of`], for one of several parts of a run: all sources have the numbers that they have in the whole run,
    /// and those at other ports do nothing here.
    ///
    /// # Errors
    /// If a capture cannot be read.
    pub fn share<B>(
        scenario: &Scenario,
        engine: &Engine<B>,
        options: SourceOptions,
        has: impl Fn(PortId) -> bool,
    ) -> Result<Self, SourceError> {
        Ok(Self::new(Self::origins(scenario, engine, options, has)?))
    }

    fn origins<B>(
        scenario: &Scenario,
        engine: &Engine<B>,
        options: SourceOptions,
        has: impl Fn(PortId) -> bool,
    ) -> Result<Vec<Origin>, SourceError> {
        // A queue that compares acknowledgements needs what they say.
        let keep_captured = options.keep_frames || engine.looks_at_tcp_options();
        let port = |name: &str| engine.port(name).expect("the scenario made the ports of its traffic");
        let seed = Seed(scenario.seed);
        let all = scenario.traffic.iter().zip(0..).filter(|(traffic, _)| !(options.live && traffic.sim_only));
        let origins = all.map(|(traffic, place)| {
            let ports = (port(&traffic.from), port(&traffic.to));
            let (origin, stations) = match has(ports.0) {
                true => (
                    Origin::of(traffic, seed, ports, options, keep_captured)?,
                    stations(scenario, traffic, ports),
                ),
                false => (Origin::plain(&traffic.name, ports.0, Kind::Elsewhere), Stations::default()),
            };
            let rank = u8::from(!matches!(traffic.source, TrafficSource::Capture { .. }));
            Ok(Origin { place, rank, stations, ..origin })
        });
        origins.collect()
    }

    /// Merges these sources.
    pub fn new(mut origins: Vec<Origin>) -> Self {
        origins.sort_by(|a, b| (a.rank, &a.name).cmp(&(b.rank, &b.name)));
        let entries: Vec<_> = origins.iter().map(Origin::peek).collect();
        let heads = entries.iter().zip(0..).filter_map(|(&at, number)| Some(Reverse((at?, number))));
        Self { heads: heads.collect(), entries, origins, starved: Vec::new(), buffers: Buffers::default() }
    }

    /// The names of the sources, in order of their numbers.
    pub fn names(&self) -> Vec<String> {
        self.origins.iter().map(|origin| origin.name.clone()).collect()
    }

    /// How many sources there are.
    pub fn len(&self) -> usize {
        self.origins.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.origins.is_empty()
    }

    /// The index of a source among the scenario's traffic.
    pub fn place(&self, source: u32) -> u32 {
        self.origins[source as usize].place
    }

    /// Whether any source reacts to arrivals.
    pub fn respond(&self) -> bool {
        self.origins.iter().any(|origin| matches!(origin.kind, Kind::Aimd(_) | Kind::App(_)))
    }

    /// The counters of applications, each with its index among the scenario's traffic.
    pub fn applications(&self) -> impl Iterator<Item = (u32, &AppMeter)> {
        self.origins.iter().filter_map(|origin| match &origin.kind {
            Kind::App(app) => Some((origin.place, app.meter())),
            _ => None,
        })
    }

    /// Whether a capture has packets due that have not been read yet.
    pub fn is_starved(&self) -> bool {
        !self.starved.is_empty()
    }

    /// Checks for packets of captures that were not ready before.
    ///
    /// # Errors
    /// If a capture cannot be read.
    pub fn refill(&mut self) -> Result<(), SourceError> {
        for number in std::mem::take(&mut self.starved) {
            if let Kind::Capture(capture) = &mut self.origins[number as usize].kind {
                capture.advance()?;
            }
            self.expect(number);
        }
        Ok(())
    }

    /// Schedules a source whose next packet is now known.
    fn expect(&mut self, number: u32) {
        let origin = &self.origins[number as usize];
        if matches!(&origin.kind, Kind::Capture(capture) if capture.is_starved()) {
            self.starved.push(number);
        }
        let at = origin.peek();
        self.entries[number as usize] = at;
        self.heads.extend(at.map(|at| Reverse((at, number))));
    }

    /// Tells a source that its packet has arrived; its next packet may be due at once.
    pub fn arrive(&mut self, arrived: Arrived) {
        let number = arrived.source;
        let origin = &mut self.origins[number as usize];
        // A switch may have flooded it to others.
        if ![origin.port, origin.to].contains(&arrived.delivery.port) {
            return;
        }
        match &mut origin.kind {
            Kind::Aimd(aimd) => aimd.arrive(arrived),
            Kind::App(app) => app.arrive(arrived, &mut self.buffers),
            Kind::Source { .. } | Kind::Capture(_) | Kind::Elsewhere => return,
        }
        let entry = &mut self.entries[number as usize];
        if let Some(at) = origin.peek().filter(|&at| entry.is_none_or(|entry| at < entry)) {
            *entry = Some(at);
            self.heads.push(Reverse((at, number)));
        }
    }

    /// The instant of the next packet.
    pub fn peek(&mut self) -> Option<Time> {
        while let Some(mut head) = self.heads.peek_mut() {
            let Reverse((at, number)) = *head;
            let entry = &mut self.entries[number as usize];
            if *entry != Some(at) {
                PeekMut::pop(head);
                continue;
            }
            *entry = self.origins[number as usize].peek();
            match *entry {
                Some(actual) if actual == at => return Some(at),
                Some(actual) => *head = Reverse((actual, number)),
                None => drop(PeekMut::pop(head)),
            }
        }
        None
    }

    /// The number of the source whose instant was peeked at.
    pub fn next_source(&self) -> Option<u32> {
        self.heads.peek().map(|Reverse((_, number))| *number)
    }

    /// Takes the packet whose instant was peeked at; `None` if a timer expired and nothing is sent.
    ///
    /// # Errors
    /// If a capture cannot be read.
    pub fn take(&mut self) -> Result<Option<(Time, PortId, Packet<Body>)>, SourceError> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((at, number)) = *head;
        let origin = &mut self.origins[number as usize];
        let taken = origin.take(number, &mut self.buffers)?;
        let next = origin.peek();
        self.entries[number as usize] = next;
        match next {
            Some(next) => *head = Reverse((next, number)),
            None => {
                PeekMut::pop(head);
                if matches!(&origin.kind, Kind::Capture(capture) if capture.is_starved()) {
                    self.starved.push(number);
                }
            }
        }
        Ok(taken.map(|(port, packet)| (at, port, packet)))
    }
}

impl Origin {
    fn of(
        traffic: &Traffic,
        seed: Seed,
        (from, to): (PortId, PortId),
        options: SourceOptions,
        keep_captured: bool,
    ) -> Result<Self, SourceError> {
        let name = &traffic.name;
        let kind = match &traffic.source {
            TrafficSource::Generated { config, key } => {
                return Ok(Self::generated(name, from, Source::new(seed, name, config.clone()), *key));
            }
            TrafficSource::Aimd { config, key } => return Ok(Self::aimd(name, config, *key, (from, to))),
            TrafficSource::App { config, key } => {
                let config = (**config).clone();
                Kind::App(Box::new(App::new(config, *key, (from, to), seed, name, options.keep_frames)))
            }
            TrafficSource::Capture { file, start } => {
                Kind::Capture(CaptureFeed::open(file, *start, keep_captured, options.read_ahead)?)
            }
            _ => return Err(SourceError::Unknown(name.clone())),
        };
        Ok(Self { to, ..Self::plain(name, from, kind) })
    }

    /// Open-loop packets that enter at `port`: Ethernet frames without header options.
    pub fn generated(name: &str, port: PortId, source: Source, key: FlowKey) -> Self {
        let network_header = match key.network {
            Protocol::Ipv4 | Protocol::Ipv4DontFragment => 20,
            Protocol::Ipv6 | Protocol::Other => 0,
        };
        let headers = Headers::plain(&key, 0);
        let template = Packet { length: 0, link_header: 14, network_header, key, headers, body: () };
        Self::plain(name, port, Kind::Source { source, template })
    }

    /// A sender that responds to congestion, at the first port, and its receiver at the second.
    pub fn aimd(name: &str, config: &AimdConfig, key: FlowKey, (from, to): (PortId, PortId)) -> Self {
        let kind = Kind::Aimd(Box::new(Aimd::new(config, key, from, to)));
        Self { to, ..Self::plain(name, from, kind) }
    }

    fn plain(name: &str, port: PortId, kind: Kind) -> Self {
        Self { name: name.into(), place: 0, rank: 1, port, to: port, kind, stations: Stations::default() }
    }

    fn peek(&self) -> Option<Time> {
        match &self.kind {
            Kind::Source { source, .. } => source.peek(),
            Kind::Aimd(aimd) => aimd.peek(),
            Kind::App(app) => app.peek(),
            Kind::Capture(capture) => capture.peek(),
            Kind::Elsewhere => None,
        }
    }

    /// Takes the packet that was peeked at, and the port where it enters.
    fn take(
        &mut self,
        source: u32,
        buffers: &mut Buffers,
    ) -> Result<Option<(PortId, Packet<Body>)>, SourceError> {
        let (port, number, packet, mut frame) = match &mut self.kind {
            Kind::Source { source, template } => {
                let (_, length) = source.take().expect("its instant was peeked at");
                let headers = Headers::plain(&template.key, length);
                (self.port, 0, Packet { length, headers, ..*template }, None)
            }
            Kind::Aimd(aimd) => {
                let (Out { port, number, .. }, packet) = aimd.take();
                (port, number, packet, None)
            }
            Kind::App(app) => {
                let Some(Departure { port, number, packet, .. }) = app.take(buffers) else { return Ok(None) };
                let Packet { length, link_header, network_header, key, headers, body: frame } = packet;
                let packet = Packet { length, link_header, network_header, key, headers, body: () };
                (port, number, packet, frame)
            }
            Kind::Capture(capture) => {
                let (packet, frame) = capture.take()?;
                (self.port, 0, packet, frame)
            }
            Kind::Elsewhere => return Ok(None),
        };
        let Packet { length, mut link_header, network_header, key, mut headers, .. } = packet;
        // The tag of a captured frame belongs to the network where it was captured.
        if self.stations.write(port, &key, &mut headers) && std::mem::take(&mut headers.vlan) != 0 {
            link_header = link_header.saturating_sub(TAG.len() as u8);
            if let Some(frame) = &mut frame {
                frame.bytes.drain(TAG);
            }
        }
        let body = Body { source, length, number, frame };
        Ok(Some((port, Packet { length, link_header, network_header, key, headers, body })))
    }
}

/// Where the VLAN tag of a frame is.
const TAG: std::ops::Range<usize> = 12..16;

/// The link addresses that packets of a scenario's source need.
fn stations(scenario: &Scenario, traffic: &Traffic, (from, to): (PortId, PortId)) -> Stations {
    let mut stations = Stations::default();
    if scenario.switches.is_empty() {
        return stations;
    }
    let port = |name: &str| scenario.ports().iter().find(|port| port.name == name);
    let (Some(here), Some(there)) = (port(&traffic.from), port(&traffic.to)) else { return stations };
    match &traffic.source {
        TrafficSource::Generated { key, .. } => {
            stations.add_flow(scenario, from, here, key.destination);
        }
        TrafficSource::Aimd { key, .. } | TrafficSource::App { key, .. } => {
            stations.add_flow(scenario, from, here, key.destination);
            stations.add_flow(scenario, to, there, key.source);
        }
        _ => stations.add_port(scenario, from, here),
    }
    stations
}

/// The descriptions of applications for the report, in order of their names, each with its index among the traffic.
pub fn application_infos(scenario: &Scenario) -> Vec<(u32, ApplicationInfo)> {
    let info = |(traffic, place): (&Traffic, u32)| match &traffic.source {
        TrafficSource::App { config, key } => Some((
            place,
            ApplicationInfo {
                name: traffic.name.clone(),
                kind: config.kind.name(),
                transport: if config.tcp.is_some() { "tcp" } else { "udp" },
                from: traffic.from.clone(),
                to: traffic.to.clone(),
                dscp: key.dscp(),
            },
        )),
        _ => None,
    };
    let mut all: Vec<_> = scenario.traffic.iter().zip(0..).filter_map(info).collect();
    all.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
    all
}
