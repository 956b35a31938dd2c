//! The packet inspector: recent packets and what happened to them, for clients.
//!
//! While clients ask, packet threads note packets as raw values (`data::inspection`). The director collects these a
//! few times a second, however many clients there are, puts them into words, and keeps the last ones. When nobody has
//! asked for [`LEASE`], packet threads note nothing any more.

mod words;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use narrows_core::{Duration, Element, FlowKey, Passed, PortId, Time, Verdict};
use narrows_frame::{Address, ElementNames, WallTime, transport};
use narrows_scenario::Scenario;

use super::requests::{Hurry, let_others_run};
use super::{Director, LoopError};
use crate::control::{LinkPassed, PacketCounts, PacketRecord, PacketsSince};
use crate::data::inspection::{FurtherLinks, Inspection, Noted};
use crate::data::orders::{Answer, Order};
use crate::seen::Seen;

/// How long packets are noted after a request.
const LEASE: Duration = Duration::from_secs(3);
/// The shortest interval between two collections.
const APART: Duration = Duration::from_millis(200);
/// The number of packets kept.
const MOST: usize = 1024;
/// So many packets are put into words before packet threads get a turn: some 20 µs of work.
const PORTION: u64 = 8;
/// The number of paths remembered.
const MOST_PATHS: usize = 1024;

/// What is known of the packets.
pub(super) struct Inspector {
    names: ElementNames,
    /// The hosts of the ports, by number; empty for a router's port.
    hosts: Vec<String>,
    kept: VecDeque<PacketRecord>,
    /// The number of the last packet.
    last: u64,
    counts: PacketCounts,
    /// Since when packets are noted; `None` while nobody asks.
    since: Option<Time>,
    /// When noting ends, unless somebody asks again.
    ends: Time,
    collected: Time,
    paths: BTreeMap<(PortId, [u8; 16]), Path>,
    /// The settings behind drops, by element and reason, while a collection is put into words.
    settings: BTreeMap<(Element, &'static str), Vec<String>>,
}

/// Where packets from a port to an address go.
#[derive(Clone, Debug, Default)]
struct Path {
    links: Vec<String>,
    to: String,
}

/// What is needed to put packets into words.
#[derive(Clone, Copy)]
struct Context<'a> {
    scenario: &'a Scenario,
    started: WallTime,
    /// Settings may differ from those that an earlier packet met.
    changed: Time,
}

impl Inspector {
    pub(super) fn new(names: ElementNames, scenario: &Scenario) -> Self {
        let hosts: BTreeMap<_, _> = scenario.ports().iter().map(|port| (&port.name, &port.host)).collect();
        let host = |port| hosts.get(port).map_or_else(String::new, |host| host.to_string());
        Self {
            hosts: names.ports().iter().map(host).collect(),
            names,
            kept: VecDeque::new(),
            last: 0,
            counts: PacketCounts::default(),
            since: None,
            ends: Time::ZERO,
            collected: Time::ZERO,
            paths: BTreeMap::new(),
            settings: BTreeMap::new(),
        }
    }

    /// When noting packets ends; never if none are noted.
    pub(super) fn ends(&self) -> Time {
        if self.since.is_some() { self.ends } else { Time::NEVER }
    }

    fn answer(&self, after: u64) -> PacketsSince<&PacketRecord> {
        let packets: Vec<_> = self.kept.iter().filter(|packet| packet.seen > after).collect();
        let missed = self.last.saturating_sub(after).saturating_sub(packets.len() as u64);
        let since_ns = self.since.unwrap_or(self.ends).nanos();
        PacketsSince { since_ns, packets, missed, counts: self.counts }
    }

    fn take(&mut self, inspection: &Inspection, context: Context<'_>) {
        let Inspection { dropped, delivered } = inspection;
        let all = |noted: &Noted| noted.packets.len() as u64 + noted.left_out;
        self.counts.dropped += all(dropped);
        self.counts.left_out_dropped += dropped.left_out;
        self.counts.delivered += all(delivered);
        self.counts.left_out_delivered += delivered.left_out;
        let mut packets: Vec<_> = dropped.iter().chain(delivered.iter()).collect();
        packets.sort_by_key(|(seen, _)| seen.at);
        self.settings.clear();
        for (seen, passed) in packets {
            self.last += 1;
            if self.kept.len() == MOST {
                self.kept.pop_front();
            }
            let record = self.record(seen, passed, context);
            self.kept.push_back(record);
            if self.last.is_multiple_of(PORTION) {
                let_others_run();
            }
        }
    }

    fn record(&mut self, seen: &Seen, passed: &[Passed], context: Context<'_>) -> PacketRecord {
        let (key, scenario) = (&seen.key, context.scenario);
        let port = seen.id.port();
        let path = self.path(port, key, scenario).clone();
        let names = &self.names;
        let host = |port: PortId| self.hosts.get(usize::from(port.index())).cloned().unwrap_or_default();
        let mut record = PacketRecord {
            seen: self.last,
            port: names.port(port).into(),
            number: seen.id.number(),
            copy: seen.copy,
            feed: seen
                .traffic
                .and_then(|place| scenario.traffic.get(place as usize))
                .map_or_else(String::new, |traffic| traffic.name.clone()),
            protocol: transport(key).into_owned(),
            source: Address::source(key).to_string(),
            source_port: key.source_port,
            destination: Address::destination(key).to_string(),
            destination_port: key.destination_port,
            traffic_class: key.traffic_class,
            arrival_ns: seen.arrival.nanos(),
            length_bytes: seen.length,
            queueing_ns: seen.queued.nanos(),
            departure_ns: seen.at.nanos(),
            wall_ns: (context.started + seen.at.since(Time::ZERO)).nanos(),
            from: host(port),
            to: path.to,
            path: path.links,
            links: passed.iter().map(|passed| self.passed(passed)).collect(),
            marked: key.ecn() == FlowKey::CONGESTION_EXPERIENCED,
            fragment: seen.is_fragment,
            corrupted: seen.is_corrupted,
            ..PacketRecord::default()
        };
        let met = record.links.iter().map(|passed| passed.link.clone()).collect::<Vec<_>>();
        match seen.verdict {
            Verdict::Delivered(to) => {
                record.verdict = "delivered".into();
                record.place = names.port(to).into();
                record.to = host(to);
                record.text = words::delivered(&record);
            }
            Verdict::Dropped { at, reason } => {
                record.verdict = "dropped".into();
                record.place = at.map_or_else(String::new, |at| names.element(at).to_owned());
                record.reason = reason.name().into();
                record.path = up_to(record.path, &record.place, at);
                let is_current = seen.at >= context.changed;
                if is_current && let Some(link @ Element::Link(_)) = at {
                    let find = || words::settings(scenario, &record.place, reason);
                    record.settings = self.settings.entry((link, reason.name())).or_insert_with(find).clone();
                }
                record.text = words::dropped(&record, reason, is_current);
            }
        }
        // Of a packet that was inside before, only the last links are known.
        if passed.first().is_some_and(|first| first.entered == seen.arrival) {
            record.path = met;
        }
        record
    }

    fn passed(&self, passed: &Passed) -> LinkPassed {
        LinkPassed {
            link: self.names.element(Element::Link(passed.link)).into(),
            entered_ns: passed.entered.nanos(),
            queueing_ns: passed.queued.nanos(),
            left_ns: passed.left.nanos(),
        }
    }

    fn path(&mut self, port: PortId, key: &FlowKey, scenario: &Scenario) -> &Path {
        let wanted = (port, key.destination);
        if self.paths.len() >= MOST_PATHS && !self.paths.contains_key(&wanted) {
            self.paths.clear();
        }
        let names = &self.names;
        self.paths.entry(wanted).or_insert_with(|| {
            let from = scenario.ports().iter().find(|other| other.name == names.port(port));
            let destination: IpAddr = Ipv6Addr::from(key.destination).to_canonical();
            let way = from.and_then(|from| scenario.only_way_to(from, destination));
            way.map_or_else(Path::default, |(links, to)| Path {
                links,
                to: to.map_or_else(String::new, |port| port.host.clone()),
            })
        })
    }
}

/// The part of a path up to the element where a packet was dropped: a pipe `net.1` is behind the rules `net`, and a
/// router or switch is between links, of which it is not known how many were crossed.
fn up_to(mut path: Vec<String>, place: &str, at: Option<Element>) -> Vec<String> {
    let is_place = |link: &String| {
        link == place || place.strip_prefix(link.as_str()).is_some_and(|rest| rest.starts_with('.'))
    };
    match path.iter().position(is_place) {
        Some(last) if !matches!(at, Some(Element::Router(_) | Element::Switch(_))) => {
            path.truncate(last);
            path.push(place.into());
        }
        _ => path.clear(),
    }
    path
}

impl Director {
    /// The packets after a given one, as of now or a moment ago. The first request makes packet threads note them.
    pub(super) fn packets(
        &mut self,
        after: u64,
        hurry: Hurry<'_>,
    ) -> Result<PacketsSince<&PacketRecord>, LoopError> {
        self.hear()?;
        let now = self.advance();
        let inspector = &mut self.inspector;
        inspector.ends = now + LEASE;
        let is_on = inspector.since.is_some();
        if self.is_halted || is_on && now.since(inspector.collected) < APART {
            return Ok(self.inspector.answer(after));
        }
        inspector.collected = now;
        if !is_on {
            inspector.since = Some(now);
            inspector.counts = PacketCounts::default();
        }
        self.note_packets(true);
        let mut missing = self.pool.len();
        self.gather(hurry, |director, number, answer| {
            missing = missing.saturating_sub(usize::from(matches!(answer, Answer::Inspected(..))));
            director.take(number, answer)?;
            Ok(missing == 0)
        })?;
        Ok(self.inspector.answer(after))
    }

    /// Lets packet threads note packets, or not, from now on; they return those noted so far.
    fn note_packets(&self, on: bool) {
        let known_links = self.inspector.names.links().len();
        self.pool.tell(|_| Order::Inspect { room: on.then(|| Box::new(Inspection::new())), known_links });
        self.pool.call();
    }

    /// Ends noting packets if nobody has asked for them lately.
    pub(super) fn keep_inspecting(&mut self) {
        if self.clock.now() >= self.inspector.ends() {
            self.note_packets(false);
            self.inspector.since = None;
            self.inspector.kept.clear();
        }
    }

    /// Takes the packets that a packet thread has noted, and the names of links that were added.
    pub(super) fn inspected(&mut self, inspection: Option<Box<Inspection>>, links: FurtherLinks) {
        self.inspector.names.add_links(links.after, links.names);
        let Some(inspection) = inspection.filter(|_| self.inspector.since.is_some()) else { return };
        let scenario = self.plan.scenario();
        let context = Context { scenario, started: self.clock.started(), changed: self.plan.changed_at() };
        self.inspector.take(&inspection, context);
    }
}
