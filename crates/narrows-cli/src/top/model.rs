//! `top`'s model of a run: current and recent figures of each direction, in order.
//!
//! A run reports its counters since its start. Current rates are the difference of two answers divided by
//! the time between them on the run's own clock, so they are correct at any query interval, in virtual time
//! as well.

use std::collections::{BTreeMap, VecDeque};

use narrows_live::control::{CurrentDirection, CurrentScenario, Stats};
use narrows_report::{ClassReport, Direction, Kind, Trust};

use super::graph::Graph;
use super::lateness::{Late, Ports, Released};

/// Maximum number of samples per direction: ten minutes at one per second.
const MOST_SAMPLES: usize = 600;
/// Maximum number of samples of all directions together, at 16 bytes each.
const MOST_SAMPLES_IN_ALL: usize = 1 << 20;
/// Minimum time between answers for rates. If they are closer, the figures stay, and only the settings are
/// updated.
const APART: u64 = 500_000_000;
/// Time span of the long-term rate.
const TEN_SECONDS: u64 = 10_000_000_000;

/// Identifies a direction: the engine's link, and its lane.
pub(super) type Key = (String, u8);

/// The figures of a direction at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// Output rate in bits per second.
    pub(super) bps: f32,
    /// Backlog in packets.
    pub(super) waiting: u32,
    /// Dropped packets per second.
    pub(super) drops: f32,
    /// p99 of lateness in nanoseconds.
    pub(super) late_ns: u32,
}

/// The current figures of a direction of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line {
    pub(super) key: Key,
    /// The link; for a shared medium also the host that sends.
    pub(super) name: String,
    pub(super) from: String,
    pub(super) to: String,
    /// Output rate in bits per second, from the network header on.
    pub(super) bps: u64,
    /// Output rate over ten seconds.
    pub(super) ten_seconds_bps: u64,
    /// Utilisation of the configured rate, including overhead; `None` if unlimited or from a trace.
    pub(super) utilisation: Option<f64>,
    pub(super) backlog_packets: u64,
    pub(super) backlog_bytes: u64,
    /// Dropped packets per second.
    pub(super) drops: u64,
    /// Recent drop reasons in packets per second, the main one first.
    pub(super) reasons: Vec<(String, u64)>,
    /// Drop reasons since the start of the run.
    pub(super) all_reasons: Vec<(String, u64)>,
    /// Lateness of packets at the port that the direction leads to; `None` if it leads to no port.
    pub(super) late: Option<Late>,
    pub(super) classes: Vec<Class>,
    /// The current settings.
    pub(super) settings: CurrentDirection,
    /// In a group, the run that it belongs to; empty otherwise.
    pub(super) run: String,
    /// Whether it is a link of a group that has no run, and so no figures.
    pub(super) is_unshaped: bool,
}

/// The current figures of a class of a direction's scheduler.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) weight: Option<u32>,
    /// Output rate in bits per second.
    pub(super) bps: u64,
    /// Recent share of the output of all classes.
    pub(super) share: f64,
    pub(super) backlog_packets: u64,
    /// Dropped packets per second.
    pub(super) drops: u64,
    pub(super) dropped_packets: u64,
}

/// The model of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    /// The directions, in the run's order.
    pub(super) lines: Vec<Line>,
    /// How far the run's figures can be trusted, and why.
    pub(super) trust: Option<(Trust, String)>,
    /// The report's clock.
    pub(super) kind: Option<Kind>,
    /// Instant of the last answer on the run's clock.
    pub(super) at_ns: u64,
    /// Generation of the settings.
    pub(super) generation: u64,
    /// Rate delivered to hosts in bits per second.
    pub(super) delivered_bps: u64,
    pub(super) inside_packets: u64,
    /// Recent lateness at all ports.
    pub(super) late: Option<Late>,
    /// The graph of a group, and the models of its runs by their names.
    pub(super) graph: Option<Graph>,
    pub(super) parts: BTreeMap<String, Self>,
    history: BTreeMap<Key, VecDeque<Sample>>,
    /// Number of answers, and the time between the last two.
    seen: u64,
    apart_ns: u64,
    before: Option<Counted>,
}

/// Counters of a run at an instant.
#[derive(Clone, Debug, Default)]
struct Counted {
    at_ns: u64,
    delivered_bytes: u64,
    directions: BTreeMap<Key, CountedDirection>,
    released: Released,
}

#[derive(Clone, Debug, Default)]
struct CountedDirection {
    bytes: u64,
    wire_bits: u64,
    dropped: u64,
    reasons: BTreeMap<String, u64>,
    /// Bytes sent and packets dropped of each class.
    classes: BTreeMap<String, (u64, u64)>,
}

impl CountedDirection {
    fn of(direction: &Direction) -> Self {
        let reasons = direction.drops.iter().map(|drop| (drop.reason.to_string(), drop.packets));
        let classes = direction.classes.iter();
        Self {
            bytes: direction.delivered.bytes,
            wire_bits: direction.wire_bits,
            dropped: direction.dropped_packets,
            reasons: reasons.collect(),
            classes: classes
                .map(|class| (class.name.clone(), (class.sent_bytes, class.dropped_packets)))
                .collect(),
        }
    }
}

impl Model {
    /// Processes an answer, with the settings at that time.
    pub(super) fn take(&mut self, stats: &Stats, settings: &CurrentScenario) {
        let report = &stats.report;
        // Another run with that name has started.
        if report.end_ns < self.at_ns {
            *self = Self::default();
        }
        let trust_is_new = self.trust.as_ref().map(|(_, line)| line.clone()) != Some(report.trust_line());
        if trust_is_new {
            self.trust = Some((report.trust(), report.trust_line()));
        }
        let present: BTreeMap<_, _> =
            settings.directions.iter().map(|one| ((one.link.as_str(), one.lane), one)).collect();
        self.generation = settings.generation;
        let is_first = self.before.is_none();
        if self.before.as_ref().is_some_and(|before| report.end_ns < before.at_ns + APART) {
            for line in &mut self.lines {
                let key = (line.key.0.as_str(), line.key.1);
                line.settings = present.get(&key).map_or_else(|| line.settings.clone(), |one| (*one).clone());
            }
            return;
        }
        let before = self.before.take().unwrap_or_default();
        let span = Span(report.end_ns.saturating_sub(before.at_ns));
        self.seen += 1;
        self.apart_ns = span.0;
        let counted = Counted {
            at_ns: report.end_ns,
            delivered_bytes: report.ports.iter().map(|port| port.delivered_bytes).sum(),
            directions: report.directions.iter().map(|one| (key(one), CountedDirection::of(one))).collect(),
            released: Released::of(report),
        };
        let ports = Ports::of(settings);
        let now = stats.now.as_ref().filter(|_| is_first);
        let lines = report.directions.iter().map(|direction| {
            let key = key(direction);
            let then = before.directions.get(&key);
            let settings = present.get(&(key.0.as_str(), key.1)).map(|one| (*one).clone());
            let late =
                ports.behind(direction).and_then(|port| counted.released.since(&before.released, port));
            let mut line = line(direction, then, settings, span, late);
            // The first answer has no predecessor; only the run's own rates are known.
            if let Some(now) =
                now.and_then(|now| now.links.iter().find(|now| (&now.link, now.lane) == (&key.0, key.1)))
            {
                (line.bps, line.drops) = (now.delivered.one_second_bps, now.dropped_packets);
                line.utilisation = utilisation(&line.settings, line.bps);
            }
            line
        });
        let mut lines: Vec<Line> = lines.collect();
        let most = (MOST_SAMPLES_IN_ALL / lines.len().max(1)).min(MOST_SAMPLES);
        for line in &mut lines {
            let history = self.history.entry(line.key.clone()).or_default();
            history.push_back(sample(line));
            while history.len() > most {
                history.pop_front();
            }
            line.ten_seconds_bps = mean_rate(history, span.0);
        }
        self.history.retain(|key, _| counted.directions.contains_key(key));
        self.delivered_bps = match now {
            Some(now) => now.delivered.one_second_bps,
            None => span.bits(counted.delivered_bytes.saturating_sub(before.delivered_bytes)),
        };
        self.late = counted.released.since_at_all(&before.released);
        (self.lines, self.at_ns, self.kind) = (lines, report.end_ns, Some(report.kind));
        self.inside_packets = report.conservation.inside_packets;
        self.before = Some(counted);
    }

    /// The recent figures, oldest first.
    pub(super) fn history(&self, key: &Key) -> impl ExactSizeIterator<Item = Sample> + '_ {
        static NONE: VecDeque<Sample> = VecDeque::new();
        self.history.get(key).unwrap_or(&NONE).iter().copied()
    }

    /// Number of answers.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// The time between the last two answers, on the run's clock.
    pub(super) fn apart_ns(&self) -> u64 {
        self.apart_ns
    }

    /// The line with this key.
    pub(super) fn line(&self, key: &Key) -> Option<&Line> {
        self.lines.iter().find(|line| line.key == *key)
    }
}

fn key(direction: &Direction) -> Key {
    (direction.link.clone(), direction.lane)
}

/// The time between two answers in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Span(u64);

impl Span {
    /// This number per second.
    fn rate(self, number: u128) -> u64 {
        let nanos = u128::from(self.0);
        (number * 1_000_000_000 + nanos / 2).checked_div(nanos).unwrap_or(0) as u64 // no host has a rate beyond 64 bits
    }

    fn bits(self, bytes: u64) -> u64 {
        self.rate(u128::from(bytes) * 8)
    }
}

fn line(
    direction: &Direction,
    then: Option<&CountedDirection>,
    settings: Option<CurrentDirection>,
    span: Span,
    late: Option<Late>,
) -> Line {
    let unknown = CountedDirection::default();
    let then = then.unwrap_or(&unknown);
    // A run of an older version does not report its settings.
    let settings = settings.unwrap_or_else(|| CurrentDirection {
        link: direction.link.clone(),
        lane: direction.lane,
        rate_bps: direction.asked_rate_bps,
        delay_ns: direction.asked_delay_ns,
        configured: direction.asked.clone(),
        ..CurrentDirection::default()
    });
    let mut reasons: Vec<(String, u64)> = direction
        .drops
        .iter()
        .map(|drop| {
            let before = then.reasons.get(&*drop.reason).copied().unwrap_or(0);
            (drop.reason.to_string(), span.rate(drop.packets.saturating_sub(before).into()))
        })
        .filter(|(_, packets)| *packets > 0)
        .collect();
    reasons.sort_by_key(|(_, packets)| std::cmp::Reverse(*packets));
    let wire_bps = span.rate(direction.wire_bits.saturating_sub(then.wire_bits).into());
    Line {
        key: key(direction),
        name: match direction.lane {
            0 => direction.link.clone(),
            _ => format!("{} ({} → {})", direction.link, direction.from, direction.to),
        },
        from: direction.from.clone(),
        to: direction.to.clone(),
        bps: span.bits(direction.delivered.bytes.saturating_sub(then.bytes)),
        ten_seconds_bps: 0,
        utilisation: if direction.per_flow { None } else { utilisation(&settings, wire_bps) },
        backlog_packets: direction.backlog_packets,
        backlog_bytes: direction.backlog_bytes,
        drops: span.rate(direction.dropped_packets.saturating_sub(then.dropped).into()),
        reasons,
        all_reasons: direction.drops.iter().map(|drop| (drop.reason.to_string(), drop.packets)).collect(),
        late,
        classes: classes(&direction.classes, then, span),
        settings,
        run: String::new(),
        is_unshaped: false,
    }
}

/// Utilisation of the rate. A link that is down has none.
fn utilisation(settings: &CurrentDirection, wire_bps: u64) -> Option<f64> {
    match settings.rate_bps? {
        0 => Some(0.0),
        rate => Some(wire_bps as f64 / rate as f64),
    }
}

fn classes(now: &[ClassReport], then: &CountedDirection, span: Span) -> Vec<Class> {
    let sent = |class: &ClassReport| {
        let (bytes, _) = then.classes.get(&class.name).copied().unwrap_or_default();
        // The counters of a replaced scheduler start at zero.
        class.sent_bytes.checked_sub(bytes).unwrap_or(class.sent_bytes)
    };
    let sum: u64 = now.iter().map(sent).sum();
    let class = |class: &ClassReport| {
        let (_, dropped) = then.classes.get(&class.name).copied().unwrap_or_default();
        Class {
            name: class.name.clone(),
            weight: class.weight,
            bps: span.bits(sent(class)),
            share: sent(class) as f64 / sum.max(1) as f64,
            backlog_packets: class.backlog_packets,
            drops: span.rate(class.dropped_packets.saturating_sub(dropped).into()),
            dropped_packets: class.dropped_packets,
        }
    };
    now.iter().map(class).collect()
}

fn sample(line: &Line) -> Sample {
    Sample {
        bps: line.bps as f32,
        waiting: u32::try_from(line.backlog_packets).unwrap_or(u32::MAX),
        drops: line.drops as f32,
        late_ns: line.late.map_or(0, |late| u32::try_from(late.p99_ns).unwrap_or(u32::MAX)),
    }
}

/// The mean over ten seconds of samples with this spacing.
fn mean_rate(history: &VecDeque<Sample>, apart: u64) -> u64 {
    let count = (TEN_SECONDS / apart.max(1)).clamp(1, MOST_SAMPLES as u64) as usize;
    let taken = history.len().min(count);
    let sum: f64 = history.iter().rev().take(taken).map(|sample| f64::from(sample.bps)).sum();
    (sum / taken.max(1) as f64) as u64
}
