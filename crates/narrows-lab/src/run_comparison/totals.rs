//! What two reports counted: each direction, each pair of ports, lateness.

use std::collections::BTreeSet;

use narrows_report::{Direction, Pair, Quantiles, Report};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{RunComparisonError, RunData, Unit, Values};

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Totals {
    pub(super) directions: Vec<Direct>,
    pub(super) pairs: Vec<Between>,
    /// Of release; none where both ran in virtual time.
    pub(super) lateness: Option<Rows>,
    /// Names of directions and pairs that only one run has.
    pub(super) only_a: Vec<String>,
    pub(super) only_b: Vec<String>,
}

/// A direction of both runs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Direct {
    pub(super) link: String,
    pub(super) lane: u8,
    pub(super) from: String,
    pub(super) to: String,
    #[serde(flatten)]
    pub(super) rows: Rows,
    pub(super) drops: Vec<Reason>,
}

/// Packets dropped for one reason.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Reason {
    pub(super) reason: String,
    #[serde(flatten)]
    pub(super) rows: Rows,
}

/// Packets from one port to another in both runs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Between {
    pub(super) from_port: String,
    pub(super) to_port: String,
    pub(super) delay: Rows,
}

/// Rows of a table, and keys of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows(pub(super) Vec<Row>);

/// A total of both runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    key: &'static str,
    pub(super) label: &'static str,
    pub(super) unit: Unit,
    pub(super) values: Values<f64>,
}

impl Row {
    fn new(key: &'static str, label: &'static str, unit: Unit, a: Option<f64>, b: Option<f64>) -> Self {
        let change = a.zip(b).map(|(a, b)| b - a);
        let change_share = a.zip(change).filter(|(a, _)| *a != 0.0).map(|(a, change)| change / a);
        Self { key, label, unit, values: Values { a, b, change, change_share } }
    }

    /// Whether neither run has anything to show.
    pub(super) fn is_empty(&self) -> bool {
        [self.values.a, self.values.b].into_iter().flatten().all(|value| value == 0.0)
    }

    pub(super) fn differs(&self) -> bool {
        self.values.a != self.values.b
    }
}

impl Serialize for Rows {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for Row { key, unit, values, .. } in &self.0 {
            // All but shares were whole numbers.
            let whole = |value: Option<f64>| value.map(|value| value as i64);
            match unit {
                Unit::Share => map.serialize_entry(key, values)?,
                _ => map.serialize_entry(
                    key,
                    &Values {
                        a: whole(values.a),
                        b: whole(values.b),
                        change: whole(values.change),
                        change_share: values.change_share,
                    },
                )?,
            }
        }
        map.end()
    }
}

impl Totals {
    pub(super) fn new(
        (a_run, a): (&RunData, &Report),
        (b_run, b): (&RunData, &Report),
    ) -> Result<Self, RunComparisonError> {
        let key = |direction: &Direction| (direction.link.clone(), direction.lane);
        let (directions, mut only_a, mut only_b) = matched(&a.directions, &b.directions, key, |direction| {
            direction_name(&direction.link, &direction.from, &direction.to)
        });
        if directions.is_empty() {
            let links = |report: &Report| {
                let names: BTreeSet<_> = report.directions.iter().map(|one| one.link.clone()).collect();
                names.into_iter().collect()
            };
            return Err(RunComparisonError::NoCommonLink {
                a: a_run.name.clone(),
                a_links: links(a),
                b: b_run.name.clone(),
                b_links: links(b),
            });
        }
        let key = |pair: &Pair| (pair.from_port.clone(), pair.to_port.clone());
        let (pairs, more_a, more_b) =
            matched(&a.pairs, &b.pairs, key, |pair| format!("packets {} → {}", pair.from_port, pair.to_port));
        only_a.extend(more_a);
        only_b.extend(more_b);
        let late = |report: &Report| report.lateness.as_ref().map(|late| late.quantiles);
        let (a_late, b_late) = (late(a), late(b));
        let lateness = (a_late.is_some() || b_late.is_some()).then(|| quantiles(a_late, b_late));
        let pairs = pairs.into_iter().map(|(a, b)| Between {
            from_port: a.from_port.clone(),
            to_port: a.to_port.clone(),
            delay: quantiles(Some(a.delay), Some(b.delay)),
        });
        let directions = directions.into_iter().map(|(a, b)| direction(a, b));
        Ok(Self { directions: directions.collect(), pairs: pairs.collect(), lateness, only_a, only_b })
    }

    /// Whether the runs counted the same.
    pub(super) fn is_same(&self) -> bool {
        let same = |rows: &Rows| !rows.0.iter().any(Row::differs);
        self.only_a.is_empty()
            && self.only_b.is_empty()
            && self
                .directions
                .iter()
                .all(|one| same(&one.rows) && one.drops.iter().all(|drop| same(&drop.rows)))
            && self.pairs.iter().all(|pair| same(&pair.delay))
            && self.lateness.as_ref().is_none_or(same)
    }
}

/// As a report has it.
pub(super) fn direction_name(link: &str, from: &str, to: &str) -> String {
    format!("{link}, {from} → {to}")
}

/// What both have, in the order of the first, and the names of what only one has.
fn matched<'a, T, K: Ord>(
    a: &'a [T],
    b: &'a [T],
    key: impl Fn(&T) -> K,
    name: impl Fn(&T) -> String,
) -> (Vec<(&'a T, &'a T)>, Vec<String>, Vec<String>) {
    let of =
        |all: &'a [T]| all.iter().map(|one| (key(one), one)).collect::<std::collections::BTreeMap<_, _>>();
    let (in_a, in_b) = (of(a), of(b));
    let both = a.iter().filter_map(|one| Some((one, *in_b.get(&key(one))?)));
    let only = |all: &[T], other: &std::collections::BTreeMap<K, &T>| {
        all.iter().filter(|one| !other.contains_key(&key(one))).map(&name).collect()
    };
    (both.collect(), only(a, &in_b), only(b, &in_a))
}

fn direction(a: &Direction, b: &Direction) -> Direct {
    let count = |of: fn(&Direction) -> u64| (Some(of(a) as f64), Some(of(b) as f64));
    let maybe = |of: fn(&Direction) -> Option<u64>| {
        (of(a).map(|value| value as f64), of(b).map(|value| value as f64))
    };
    let row = |key, label, unit, (a, b)| Row::new(key, label, unit, a, b);
    let rows = vec![
        row("offered_packets", "offered", Unit::Packets, count(|one| one.offered.packets)),
        row("delivered_packets", "delivered", Unit::Packets, count(|one| one.delivered.packets)),
        row("throughput_bps", "throughput", Unit::Rate, maybe(|one| one.delivered.rate_bps)),
        row("dropped_packets", "dropped", Unit::Packets, count(|one| one.dropped_packets)),
        row("dropped_share", "dropped, share", Unit::Share, (Some(a.dropped_share), Some(b.dropped_share))),
        row("marked_packets", "marked", Unit::Packets, count(|one| one.marked_packets)),
        row("queueing_mean_ns", "time in queue", Unit::Span, maybe(|one| one.queueing_mean_ns)),
        row("backlog_packets", "backlog at end", Unit::Packets, count(|one| one.backlog_packets)),
    ];
    let reasons: BTreeSet<&str> = a.drops.iter().chain(&b.drops).map(|drop| drop.reason.as_ref()).collect();
    let drops = reasons.into_iter().map(|reason| {
        let of = |one: &Direction| {
            one.drops.iter().find(|drop| drop.reason.as_ref() == reason).map_or(0, |drop| drop.packets)
        };
        let packets = Row::new("packets", "", Unit::Packets, Some(of(a) as f64), Some(of(b) as f64));
        Reason { reason: reason.to_owned(), rows: Rows(vec![packets]) }
    });
    Direct {
        link: a.link.clone(),
        lane: a.lane,
        from: a.from.clone(),
        to: a.to.clone(),
        rows: Rows(rows),
        drops: drops.collect(),
    }
}

fn quantiles(a: Option<Quantiles>, b: Option<Quantiles>) -> Rows {
    let row = |key, label, of: fn(&Quantiles) -> u64| {
        let value = |quantiles: &Option<Quantiles>| quantiles.as_ref().map(|all| of(all) as f64);
        Row::new(key, label, Unit::Span, value(&a), value(&b))
    };
    Rows(vec![
        row("p50_ns", "p50", |all| all.p50_ns),
        row("p99_ns", "p99", |all| all.p99_ns),
        row("max_ns", "max", |all| all.max_ns),
    ])
}
