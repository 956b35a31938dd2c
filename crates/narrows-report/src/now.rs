//! The present state of a run: rates over the last second and the last ten, backlog, current configuration.
//!
//! A rate is what left a link between two [`Snapshot`]s divided by the time between them, counted from the network
//! header on. Snapshots are taken once a second; in a run younger than the span, the rate is the one since the start.

use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};

use narrows_core::queue::Backlog;
use narrows_core::{Duration, Element, Engine, Tally, Time};
use serde::{Deserialize, Serialize};

use crate::human::{bytes, count, rate};
use crate::info::RunInfo;
use crate::part::Place;
use crate::series::LinkCounts;

/// The spans over which rates are measured.
const SPANS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];
/// How much earlier than requested a snapshot may be taken.
const SLACK: Duration = Duration::from_millis(100);
/// Snapshots closer together than this replace each other.
const APART: Duration = Duration::from_millis(500);

/// One engine's counters at an instant.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    at: Time,
    /// At the ports.
    delivered: Tally,
    links: Vec<LinkSnapshot>,
    /// The counters of each link, by name, if a series is kept.
    counts: Vec<(String, LinkCounts)>,
}

/// The counters of one lane of a link.
#[derive(Clone, Debug)]
struct LinkSnapshot {
    link: String,
    lane: usize,
    left: Tally,
    dropped: u64,
    backlog: Backlog,
}

impl Snapshot {
    /// A snapshot of an engine that owns the places for which `has` is true, and has been advanced to `at`.
    pub fn of<B>(engine: &Engine<B>, has: &dyn Fn(Place) -> bool, at: Time) -> Self {
        let mut delivered = Tally::default();
        for port in engine.ports().filter(|&port| has(Place::Port(port))) {
            let own = engine.port_counters(port).delivered;
            delivered.packets += own.packets;
            delivered.bytes += own.bytes;
        }
        let own = engine.links().filter(|&link| has(Place::Element(Element::Link(link))));
        let links = own.flat_map(|link| {
            let view = engine.view(link);
            let backlog = view.backlog();
            let lanes: Vec<_> =
                view.counters().iter().map(|lane| (lane.left, lane.dropped_in_all().packets)).collect();
            lanes.into_iter().enumerate().map(move |(lane, (left, dropped))| LinkSnapshot {
                link: view.name().to_owned(),
                lane,
                left,
                dropped,
                backlog,
            })
        });
        Self { at, delivered, links: links.collect(), counts: Vec::new() }
    }

    /// As [`Snapshot::of`], with the counters for a row of a series.
    pub fn with_counts<B>(engine: &Engine<B>, has: &dyn Fn(Place) -> bool, at: Time) -> Self {
        let own = engine.links().filter(|&link| has(Place::Element(Element::Link(link))));
        let counts = own.map(|link| {
            let view = engine.view(link);
            (view.name().to_owned(), LinkCounts::of(&view))
        });
        Self { counts: counts.collect(), ..Self::of(engine, has, at) }
    }

    /// When it was taken.
    pub fn at(&self) -> Time {
        self.at
    }

    /// Each link's counters; empty if they were not requested.
    pub fn take_counts(&mut self) -> Vec<(String, LinkCounts)> {
        std::mem::take(&mut self.counts)
    }

    fn lane(&self, link: &str, lane: usize) -> Option<&LinkSnapshot> {
        self.links.iter().find(|own| own.lane == lane && own.link == link)
    }
}

/// One engine's snapshots of the last ten seconds.
#[derive(Clone, Debug, Default)]
pub struct Recent(VecDeque<Snapshot>);

impl Recent {
    /// Adds a snapshot, which is later than those before.
    pub fn add(&mut self, snapshot: Snapshot) {
        let all = &mut self.0;
        // The state at the start.
        if all.is_empty() {
            all.push_back(Snapshot::default());
        }
        let count = all.len();
        if count > 2 && all[count - 1].at.since(all[count - 2].at) < APART {
            all.pop_back();
        }
        let oldest = snapshot.at.nanos().saturating_sub(SPANS[1].nanos() + SLACK.nanos());
        all.push_back(snapshot);
        // One snapshot at least that old is kept.
        while all.get(1).is_some_and(|second| second.at.nanos() <= oldest) {
            all.pop_front();
        }
    }

    fn last(&self) -> Option<&Snapshot> {
        self.0.back()
    }

    /// The snapshot taken this long before the last one, or the oldest.
    fn before(&self, span: Duration) -> Option<&Snapshot> {
        let then = (self.last()?.at.nanos() + SLACK.nanos()).checked_sub(span.nanos());
        let old = self.0.iter().rev().find(|old| then.is_some_and(|then| old.at.nanos() <= then));
        old.or(self.0.front())
    }
}

/// Rates in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentRates {
    /// Over the last second.
    pub one_second_bps: u64,
    /// Over the last ten seconds.
    pub ten_seconds_bps: u64,
}

/// The rate over the last second.
impl Display for RecentRates {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&rate(self.one_second_bps))
    }
}

/// The present state of a direction of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkNow {
    /// The engine's name of the link.
    pub link: String,
    /// The lane: 0, except for a shared medium.
    pub lane: u8,
    /// The host where packets come from.
    pub from: String,
    /// The host where they go.
    pub to: String,
    /// What left it.
    pub delivered: RecentRates,
    /// Packets that it dropped in the last second.
    pub dropped_packets: u64,
    /// The backlog of its queue, which both lanes of a shared medium share.
    #[serde(alias = "waiting_packets")]
    pub backlog_packets: u64,
    /// The same in bytes, from the network header on.
    #[serde(alias = "waiting_bytes")]
    pub backlog_bytes: u64,
    /// The current configuration, in one line.
    pub configured: String,
}

/// The present state of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// The rate delivered to hosts.
    pub delivered: RecentRates,
    /// Each direction of each link.
    pub links: Vec<LinkNow>,
}

impl Now {
    /// From the engines of a run, each of which has parts of the network; `info` describes the scenario as it is now.
    pub fn of<'a>(info: &RunInfo, engines: impl Iterator<Item = &'a Recent> + Clone) -> Self {
        let direction = |direction: &crate::DirectionInfo| {
            let lane = usize::from(direction.lane);
            let mut engines = engines.clone();
            let (recent, last) =
                engines.find_map(|recent| Some((recent, recent.last()?.lane(&direction.link, lane)?)))?;
            let left =
                |snapshot: &Snapshot| snapshot.lane(&direction.link, lane).map_or(0, |own| own.left.bytes);
            let dropped_before =
                recent.before(SPANS[0])?.lane(&direction.link, lane).map_or(0, |own| own.dropped);
            Some(LinkNow {
                link: direction.link.clone(),
                lane: direction.lane,
                from: direction.from.clone(),
                to: direction.to.clone(),
                delivered: rates(recent, left),
                dropped_packets: last.dropped.saturating_sub(dropped_before),
                backlog_packets: last.backlog.packets,
                backlog_bytes: last.backlog.bytes,
                configured: direction.asked.clone(),
            })
        };
        Self {
            delivered: Self::delivered(engines.clone()),
            links: info.directions.iter().filter_map(direction).collect(),
        }
    }

    /// The rate delivered to hosts, by the counters of a run's engines.
    pub fn delivered<'a>(engines: impl Iterator<Item = &'a Recent>) -> RecentRates {
        let mut sum = RecentRates::default();
        for recent in engines {
            let own = rates(recent, |snapshot| snapshot.delivered.bytes);
            sum.one_second_bps += own.one_second_bps;
            sum.ten_seconds_bps += own.ten_seconds_bps;
        }
        sum
    }

    /// As text for people, one line for each direction.
    pub fn text(&self) -> String {
        let head =
            ["link", "last second", "last 10 s", "waiting", "dropped/s", "configured"].map(String::from);
        let row = |link: &LinkNow| {
            let waiting = match link.backlog_packets {
                0 => "0".into(),
                packets => format!("{} ({})", count(packets), bytes(link.backlog_bytes)),
            };
            let name = if link.lane == 0 {
                link.link.clone()
            } else {
                format!("{} ({} → {})", link.link, link.from, link.to)
            };
            [
                name,
                rate(link.delivered.one_second_bps),
                rate(link.delivered.ten_seconds_bps),
                waiting,
                count(link.dropped_packets),
                link.configured.clone(),
            ]
        };
        let rows: Vec<_> = std::iter::once(head).chain(self.links.iter().map(row)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths = [0, 1, 2, 3, 4].map(width);
        let line = |[name, one, ten, waiting, dropped, configured]: &[String; 6]| {
            let [a, b, c, d, e] = widths;
            format!("{name:a$}  {one:>b$}  {ten:>c$}  {waiting:>d$}  {dropped:>e$}  {configured}\n")
        };
        rows.iter().map(line).collect()
    }
}

fn rates(recent: &Recent, bytes: impl Fn(&Snapshot) -> u64) -> RecentRates {
    let over = |span| {
        let (Some(last), Some(before)) = (recent.last(), recent.before(span)) else { return 0 };
        let (grown, took) = (bytes(last).saturating_sub(bytes(before)), last.at.since(before.at).nanos());
        // No host has a rate beyond 64 bits.
        (u128::from(grown) * 8 * 1_000_000_000 / u128::from(took.max(1))) as u64
    };
    RecentRates { one_second_bps: over(SPANS[0]), ten_seconds_bps: over(SPANS[1]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(ms: u64, bytes: u64) -> Snapshot {
        let delivered = Tally { packets: 0, bytes };
        Snapshot { at: Time::from_nanos(ms * 1_000_000), delivered, ..Snapshot::default() }
    }

    fn of(snapshots: impl IntoIterator<Item = (u64, u64)>) -> (RecentRates, usize) {
        let mut recent = Recent::default();
        snapshots.into_iter().for_each(|(ms, bytes)| recent.add(snapshot(ms, bytes)));
        (Now::delivered(std::iter::once(&recent)), recent.0.len())
    }

    #[test]
    fn a_rate_is_what_left_by_the_time_that_it_took() {
        assert_eq!(of([]).0, RecentRates::default());
        // 1000 bytes in half a second, as there is no more of it.
        let (young, _) = of([(500, 1000)]);
        assert_eq!(young, RecentRates { one_second_bps: 16_000, ten_seconds_bps: 16_000 });
        // 100 bytes a second for 20 seconds, then 1000 in one.
        let steady = (1..=20).map(|second| (second * 1000, second * 100));
        let (rates, kept) = of(steady.chain([(21_000, 3000)]));
        assert_eq!(rates, RecentRates { one_second_bps: 8000, ten_seconds_bps: 1520 });
        assert!(kept <= 12, "{kept}");
    }

    #[test]
    fn looking_often_costs_no_memory_and_changes_no_rate() {
        let often = (1..=30_000).map(|ms| (ms, ms * 10));
        let (rates, kept) = of(often);
        let near = |bps: u64| (79_000..=81_000).contains(&bps);
        assert!(near(rates.one_second_bps) && near(rates.ten_seconds_bps), "{rates:?}");
        assert!(kept <= 30, "{kept}");
    }

    #[test]
    fn the_text_is_a_table() {
        let link = LinkNow {
            link: "access.up".into(),
            lane: 0,
            from: "a".into(),
            to: "b".into(),
            delivered: RecentRates { one_second_bps: 1_500_000, ten_seconds_bps: 20 },
            dropped_packets: 3,
            backlog_packets: 12,
            backlog_bytes: 18_000,
            configured: "2mbit, 10ms".into(),
        };
        let now = Now { links: vec![link], ..Now::default() };
        let wanted = "link        last second  last 10 s        waiting  dropped/s  configured\n\
                      access.up  1.500 Mbit/s   20 bit/s  12 (18.00 kB)          3  2mbit, 10ms\n";
        assert_eq!(now.text(), wanted);
    }
}
