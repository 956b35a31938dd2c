//! A report put together from the parts of a run, each of which has an engine and a meter of its own.

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
use crate::totals::Totals;

/// Something in a network that only one part of a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A port.
    Port(PortId),
    /// A link, a set of rules or a router.
    Element(Element),
}

/// What one part of a run has to say: of the ports, links, rules and routers that it has. Entries stand with their places in
/// the whole.
#[derive(Debug)]
pub struct Part {
    directions: Vec<(usize, Direction)>,
    rules: Vec<(usize, RulesReport)>,
    routers: Vec<(usize, RouterReport)>,
    pairs: Vec<((PortId, PortId), Pair)>,
    feeds: Vec<(usize, FeedReport)>,
    ports: Vec<(usize, PortReport)>,
    conservation: Conservation,
    stragglers: u64,
    totals: Totals,
}

/// What an engine had counted at an instant: taken by the thread that has the engine, in which nothing is put into words;
/// [`Part::of`] does that, wherever there is time.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    directions: Vec<(usize, Direction)>,
    rules: Vec<(usize, RuleCounts)>,
    routers: Vec<(usize, RouterReport)>,
    feeds: Vec<(usize, FeedReport)>,
    ports: Vec<(usize, PortCounters)>,
    conservation: Conservation,
    stragglers: u64,
}

impl Counts {
    /// Of an engine that has what `has` says. All parts of a run have engines of the same network and are asked with the
    /// same `info`. To be asked for when [`Engine::poll`] has nothing more that is due.
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
        let feeds = engine.links().filter(|&link| has_element(Element::Link(link)));
        let ports = engine.ports().enumerate().filter(|&(_, port)| has(Place::Port(port)));
        Self {
            directions: directions.collect(),
            rules: rules.map(|(place, rules)| (place, RuleCounts::of(rules, engine, now))).collect(),
            routers: routers
                .zip(engine.routers())
                .filter_map(|(report, router)| has_element(Element::Router(router)).then_some(report))
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
    /// The part of a run that an engine and a meter stand for, and that has what `has` says. To be asked for when
    /// [`Engine::poll`] has nothing more that is due, and all that it gave went through the meter.
    pub fn new<B>(info: &RunInfo, engine: &Engine<B>, meter: &Meter, has: &dyn Fn(Place) -> bool) -> Self {
        let names: Vec<String> = engine.ports().map(|port| engine.port_name(port).to_owned()).collect();
        Self::of(info, Counts::of(info, engine, has), meter, &names)
    }

    /// The same of what the engine had counted; `ports` are the names of all ports, in the order of their numbers.
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
            pairs: build::pairs(meter, ports),
            feeds: counts.feeds,
            ports: counts.ports.into_iter().map(port).collect(),
            conservation: counts.conservation,
            stragglers: counts.stragglers,
            totals: Totals::of(meter),
        }
    }

    /// Takes what is known of those who wrote to a feed, if it is here.
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
    /// The report of a run as it stands. To be asked for when [`Engine::poll`] has nothing more that is due, and all
    /// that it gave went through the meter: otherwise packets are missing, and the report says so.
    pub fn new<B>(info: &RunInfo, engine: &Engine<B>, meter: &Meter) -> Self {
        Self::of_parts(info, Part::new(info, engine, meter, &|_| true), [])
    }

    /// The report of a run that goes on in several parts.
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
        }
    }
}

fn in_order<K: Ord + Copy, T>(mut entries: Vec<(K, T)>) -> Vec<T> {
    entries.sort_by_key(|&(place, _)| place);
    entries.into_iter().map(|(_, entry)| entry).collect()
}
