//! Assembles a report from the parts of a run, each of which has its own engine and meter.

use narrows_core::{Element, Engine, PortCounters, PortId};

use crate::build::{self, lateness};
use crate::certify;
use crate::feed::{self, FeedReport, FeedWriters};
use crate::figures::quantiles;
use crate::info::RunInfo;
use crate::meter::Meter;
use crate::report::{Conservation, Direction, Losses, Pair, PortReport, Report, SCHEMA};
use crate::router::{self, RouterReport};
use crate::rules::{RuleCounts, RulesReport};
use crate::switch::{self, SwitchReport};
use crate::totals::Totals;

/// A part of the network that only one part of a run owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A port.
    Port(PortId),
    /// A link, a rule set, a router or a switch.
    Element(Element),
}

/// The report of one part of a run: on the ports, links, rules, routers and switches that it owns. Each entry has its index in
/// the whole network.
#[derive(Debug)]
pub struct Part {
    directions: Vec<(usize, Direction)>,
    rules: Vec<(usize, RulesReport)>,
    routers: Vec<(usize, RouterReport)>,
    switches: Vec<(usize, SwitchReport)>,
    pairs: Vec<((PortId, PortId), Pair)>,
    feeds: Vec<(usize, FeedReport)>,
    ports: Vec<(usize, PortReport)>,
    conservation: Conservation,
    stragglers: u64,
    totals: Totals,
}

/// An engine's counters at an instant, taken by the thread that owns the engine without formatting any text;
/// [`Part::of`] does that later, in another thread.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    directions: Vec<(usize, Direction)>,
    rules: Vec<(usize, RuleCounts)>,
    routers: Vec<(usize, RouterReport)>,
    switches: Vec<(usize, SwitchReport)>,
    feeds: Vec<(usize, FeedReport)>,
    ports: Vec<(usize, PortCounters)>,
    conservation: Conservation,
    stragglers: u64,
}

impl Counts {
    /// The counters of an engine that owns the places for which `has` is true. All parts of a run have engines for
    /// the same network and get the same `info`. Call it when [`Engine::poll`] has nothing more that is due.
    pub fn of<B>(info: &RunInfo, engine: &Engine<B>, has: &dyn Fn(Place) -> bool) -> Self {
        let now = info.span.1;
        let has_element = |element| has(Place::Element(element));
        let directions = info.directions.iter().enumerate().filter_map(|(place, direction)| {
            let link = engine.link(&direction.link)?;
            has_element(Element::Link(link))
                .then(|| build::direction(direction, engine, now))?
                .map(|d| (place, d))
        });
        let rules = engine.rules().enumerate().filter(|&(_, rules)| has_element(Element::Rules(rules)));
        let routers = router::routers(engine).into_iter().enumerate();
        let switches = switch::switches(engine).into_iter().enumerate();
        let feeds = engine.links().filter(|&link| has_element(Element::Link(link)));
        let ports = engine.ports().enumerate().filter(|&(_, port)| has(Place::Port(port)));
        Self {
            directions: directions.collect(),
            rules: rules.map(|(place, rules)| (place, RuleCounts::of(rules, engine, now))).collect(),
            routers: routers
                .zip(engine.routers())
                .filter_map(|(report, router)| has_element(Element::Router(router)).then_some(report))
                .collect(),
            switches: switches
                .zip(engine.switches())
                .filter_map(|(report, switch)| has_element(Element::Switch(switch)).then_some(report))
                .collect(),
            feeds: feeds
                .flat_map(|link| feed::of_link(link, engine).map(move |feed| (link.index() as usize, feed)))
                .collect(),
            ports: ports.map(|(place, port)| (place, engine.port_counters(port))).collect(),
            conservation: build::conservation(engine, now),
            stragglers: engine.stragglers(),
        }
    }
}

impl Part {
    /// The part of a run for an engine and a meter, owning the places for which `has` is true. Call it when
    /// [`Engine::poll`] has nothing more that is due, and all its events went through the meter.
    pub fn new<B>(info: &RunInfo, engine: &Engine<B>, meter: &Meter, has: &dyn Fn(Place) -> bool) -> Self {
        let names: Vec<String> = engine.ports().map(|port| engine.port_name(port).to_owned()).collect();
        Self::of(info, Counts::of(info, engine, has), meter, &names)
    }

    /// As [`Part::new`], from the engine's counters; `ports` are the names of all ports, in order of their numbers.
    pub fn of(info: &RunInfo, counts: Counts, meter: &Meter, ports: &[String]) -> Self {
        let mut counts = counts;
        for (place, direction) in &mut counts.directions {
            if let Some(info) = info.directions.get(*place) {
                build::describe(direction, info);
            }
        }
        build::seen_by(meter, &mut counts.conservation);
        let rules = counts.rules.into_iter().map(|(place, rules)| (place, rules.report(&info.rules)));
        let port = |(place, counters)| (place, build::port(place, counters, meter, ports));
        Self {
            directions: counts.directions,
            rules: rules.collect(),
            routers: counts.routers,
            switches: counts.switches,
            pairs: build::pairs(meter, ports),
            feeds: counts.feeds,
            ports: counts.ports.into_iter().map(port).collect(),
            conservation: counts.conservation,
            stragglers: counts.stragglers,
            totals: Totals::of(meter),
        }
    }

    /// Adds information on the writers of a feed, if the feed is in this part.
    pub fn met(&mut self, writers: FeedWriters) {
        let same = |feed: &&mut FeedReport| feed.link == writers.link && feed.feed == writers.feed;
        if let Some(feed) = self.feeds.iter_mut().map(|(_, feed)| feed).find(same) {
            feed.met(writers);
        }
    }

    fn add(&mut self, other: Self) {
        self.directions.extend(other.directions);
        self.rules.extend(other.rules);
        self.routers.extend(other.routers);
        self.switches.extend(other.switches);
        self.pairs.extend(other.pairs);
        self.feeds.extend(other.feeds);
        self.ports.extend(other.ports);
        self.conservation.add(other.conservation);
        self.stragglers += other.stragglers;
        self.totals.add(&other.totals);
    }
}

impl Conservation {
    fn add(&mut self, other: Self) {
        self.in_packets += other.in_packets;
        self.duplicated_packets += other.duplicated_packets;
        self.delivered_packets += other.delivered_packets;
        self.dropped_packets += other.dropped_packets;
        self.inside_packets += other.inside_packets;
        self.violations.extend(other.violations);
    }
}

impl Report {
    /// The report of a run at this instant. Call it when [`Engine::poll`] has nothing more that is due, and all its
    /// events went through the meter: otherwise packets are missing, and the report says so.
    pub fn new<B>(info: &RunInfo, engine: &Engine<B>, meter: &Meter) -> Self {
        Self::of_parts(info, Part::new(info, engine, meter, &|_| true), [])
    }

    /// The report of a run that consists of several parts.
    pub fn of_parts(info: &RunInfo, first: Part, others: impl IntoIterator<Item = Part>) -> Self {
        let mut all = first;
        others.into_iter().for_each(|part| all.add(part));
        let ports = in_order(all.ports);
        let sum = |of: fn(&PortReport) -> u64| ports.iter().map(of).sum();
        let totals = &all.totals;
        Self {
            schema: SCHEMA,
            title: info.title.clone(),
            kind: info.kind,
            seed: info.seed.0,
            start_ns: info.span.0.nanos(),
            end_ns: info.span.1.nanos(),
            round_trips: info.round_trips.clone(),
            directions: in_order(all.directions),
            rules: in_order(all.rules),
            routers: in_order(all.routers),
            switches: in_order(all.switches),
            pairs: in_order(all.pairs),
            feeds: in_order(all.feeds),
            probes: Vec::new(),
            generated: Vec::new(),
            applications: Vec::new(),
            lateness: totals.lateness.as_ref().map(|spread| lateness(spread, &totals.later_than)),
            input_lateness: totals.input_lateness.as_ref().map(quantiles),
            sent_lateness: totals.sent.as_ref().map(quantiles),
            straggler_lateness: totals.stragglers.as_ref().map(quantiles),
            certificates: certify::certificates(totals),
            lateness_violations: certify::violations(totals),
            capture: None,
            host: None,
            trains: None,
            losses: Losses {
                straggler_inputs: all.stragglers,
                implausible_stamp_packets: totals.implausible_stamps,
                receive_ring_dropped_packets: sum(|p| p.receive_ring_dropped_packets),
                send_failed_packets: sum(|p| p.send_failed_packets),
                refused_packets: sum(|p| p.refused_packets),
            },
            conservation: all.conservation,
            ports,
            notes: info.notes.clone(),
            unwritten: Vec::new(),
        }
    }
}

fn in_order<K: Ord + Copy, T>(mut entries: Vec<(K, T)>) -> Vec<T> {
    entries.sort_by_key(|&(place, _)| place);
    entries.into_iter().map(|(_, entry)| entry).collect()
}
