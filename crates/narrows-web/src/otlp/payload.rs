//! The message: `ExportMetricsServiceRequest` in JSON.

use std::collections::BTreeMap;
use std::fs;

use narrows_report::HISTOGRAM_BOUNDS;
use serde_json::{Value, json};

use crate::metrics::{FAMILIES, Family, FamilyKind, Labels, Samples, seconds};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u32 = 2;

/// When counters began, in nanoseconds since 1970.
#[derive(Debug)]
pub(super) struct Starts {
    pub(super) server: u64,
    /// By the runs' names.
    pub(super) runs: BTreeMap<String, u64>,
}

/// The message at `now`: a resource for each run, and one for the server.
pub(super) fn payload(samples: &Samples, starts: &Starts, now: u64) -> Value {
    let mut resources: BTreeMap<Option<&str>, Vec<Value>> = BTreeMap::new();
    for family in FAMILIES {
        let mut points: BTreeMap<Option<&str>, Vec<Value>> = BTreeMap::new();
        for (labels, value) in samples.values.get(family.0).into_iter().flatten() {
            let (run, labels) = of_run(labels);
            points.entry(run).or_default().push(point(family, labels, *value, starts.of(run), now));
        }
        if family.1 == FamilyKind::Histogram {
            for one in &samples.lateness {
                let run = Some(one.run.as_str());
                let bounds: Vec<f64> = HISTOGRAM_BOUNDS.iter().map(|bound| seconds(bound.nanos())).collect();
                let counts: Vec<String> = one.packets.iter().map(u64::to_string).collect();
                points.entry(run).or_default().push(json!({
                    "startTimeUnixNano": starts.of(run).to_string(),
                    "timeUnixNano": now.to_string(),
                    "count": one.packets.iter().sum::<u64>().to_string(),
                    "sum": seconds(one.sum_ns),
                    "bucketCounts": counts,
                    "explicitBounds": bounds,
                }));
            }
        }
        for (run, points) in points {
            resources.entry(run).or_default().push(metric(family, points));
        }
    }
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let resources: Vec<Value> =
        resources.into_iter().map(|(run, metrics)| resource(run, host.trim(), metrics)).collect();
    json!({ "resourceMetrics": resources })
}

impl Starts {
    fn of(&self, run: Option<&str>) -> u64 {
        run.and_then(|run| self.runs.get(run)).copied().unwrap_or(self.server)
    }
}

/// The run, which is the first label where there is one, and the other labels.
fn of_run(labels: &Labels) -> (Option<&str>, &[(&'static str, String)]) {
    match labels.split_first() {
        Some((("run", run), rest)) => (Some(run), rest),
        _ => (None, labels),
    }
}

fn resource(run: Option<&str>, host: &str, metrics: Vec<Value>) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let attributes = [
        ("service.name", Some("narrows")),
        ("service.version", Some(version)),
        ("service.instance.id", Some(run.unwrap_or("web"))),
        ("host.name", Some(host).filter(|host| !host.is_empty())),
        ("narrows.run", run),
    ];
    let attributes: Vec<Value> =
        attributes.into_iter().filter_map(|(key, value)| Some(attribute(key, value?))).collect();
    json!({
        "resource": { "attributes": attributes },
        "scopeMetrics": [{ "scope": { "name": "narrows-web", "version": version }, "metrics": metrics }],
    })
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn metric(family: &Family, points: Vec<Value>) -> Value {
    let (_, kind, _, help) = family;
    let (shape, data) = match kind {
        FamilyKind::Counter => {
            let data =
                json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true });
            ("sum", data)
        }
        FamilyKind::Histogram => {
            ("histogram", json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE }))
        }
        FamilyKind::Gauge | FamilyKind::Info | FamilyKind::StateSet => {
            ("gauge", json!({ "dataPoints": points }))
        }
    };
    json!({ "name": name(family), "unit": unit(family), "description": help, shape: data })
}

fn point(family: &Family, labels: &[(&'static str, String)], value: f64, start: u64, now: u64) -> Value {
    let attributes: Vec<Value> = labels.iter().map(|(name, value)| attribute(key(name), value)).collect();
    let mut point = json!({ "attributes": attributes, "timeUnixNano": now.to_string() });
    if family.1 == FamilyKind::Counter {
        point["startTimeUnixNano"] = start.to_string().into();
    }
    match family.2 {
        "seconds" | "bytes_per_second" => point["asDouble"] = value.into(),
        // Counts, exact up to 2^53.
        _ => point["asInt"] = (value as i64).to_string().into(),
    }
    point
}

/// The key of a label.
fn key(label: &'static str) -> &'static str {
    match label {
        // OpenMetrics wants a state set's label to be called like the family.
        "narrows_run_accuracy" => "state",
        other => other,
    }
}

/// `narrows.link.offered_packets` for `narrows_link_offered_packets`, `narrows.run.time` for `narrows_run_time_seconds`.
pub(super) fn name(&(family, kind, unit, _): &Family) -> String {
    let own = family.strip_prefix("narrows_").unwrap_or(family);
    let own = match unit {
        "seconds" | "bytes_per_second" => own.strip_suffix(unit).unwrap_or(own).trim_end_matches('_'),
        _ => own,
    };
    let info = if kind == FamilyKind::Info { ".info" } else { "" };
    match own.split_once('_') {
        Some((space @ ("run" | "link" | "class" | "web"), own)) => format!("narrows.{space}.{own}{info}"),
        _ => format!("narrows.{own}{info}"),
    }
}

fn unit(&(family, _, unit, _): &Family) -> &'static str {
    match (unit, family) {
        ("seconds", _) => "s",
        ("bytes", _) => "By",
        ("bytes_per_second", _) => "By/s",
        ("packets", _) => "{packet}",
        _ => "1",
    }
}
