//! Metrics of runs as OpenMetrics text, for Prometheus and compatible readers.
//!
//! Source: the OpenMetrics specification 1.0. Base units (seconds, bytes), counters with `_total`, families in the
//! order of [`FAMILIES`], each with HELP, TYPE and UNIT. The sum of the lateness histogram is computed from the
//! report's mean, which is rounded to a nanosecond: where the rounding would make the sum fall, the last value is
//! kept.
//!
//! ```
//! use narrows_web::metrics::{exposition, ServerCounts};
//! let text = exposition(&[], &ServerCounts::default());
//! assert!(text.ends_with("# EOF\n"));
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use narrows_live::control::{CurrentScenario, Stats};
use narrows_report::{Direction, HISTOGRAM_BOUNDS, Report};

/// The content type of this text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyKind {
    /// Only increases.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Information in labels.
    Info,
    /// One of several states.
    StateSet,
    /// Observations by size.
    Histogram,
}

impl FamilyKind {
    fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Info => "info",
            Self::StateSet => "stateset",
            Self::Histogram => "histogram",
        }
    }

    /// The suffix of sample names.
    fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Info => "_info",
            Self::Gauge | Self::StateSet | Self::Histogram => "",
        }
    }
}

/// A metric family: its name, type, unit and help text.
pub type Family = (&'static str, FamilyKind, &'static str, &'static str);

use FamilyKind::{Counter, Gauge, Histogram, Info, StateSet};

/// All families.
pub const FAMILIES: &[Family] = &[
    ("narrows_up", Gauge, "", "Whether the run answers on its control socket."),
    ("narrows_run", Info, "", "What the run is."),
    (
        "narrows_run_generation",
        Gauge,
        "",
        "Changes of the settings since the start, steps of the timeline included.",
    ),
    ("narrows_run_time_seconds", Gauge, "seconds", "Time on the clock of the run."),
    ("narrows_run_accuracy", StateSet, "", "How far the figures can be trusted."),
    ("narrows_in_packets", Counter, "packets", "Packets that entered the network."),
    ("narrows_duplicated_packets", Counter, "packets", "Packets that links made: duplicates and fragments."),
    ("narrows_delivered_packets", Counter, "packets", "Packets delivered at ports."),
    ("narrows_dropped_packets", Counter, "packets", "Packets dropped by links or refused at ports."),
    ("narrows_inside_packets", Gauge, "packets", "Packets inside the network."),
    (
        "narrows_host_lost_packets",
        Counter,
        "packets",
        "Packets that the host lost around the engine, by reason.",
    ),
    ("narrows_straggler_inputs", Counter, "", "Packets and changes that were handed in late."),
    (
        "narrows_release_lateness_seconds",
        Histogram,
        "seconds",
        "Actual minus scheduled instant of release, all ports.",
    ),
    ("narrows_link", Info, "", "The hosts at the ends of a direction of a link."),
    ("narrows_link_up", Gauge, "", "0 during an outage."),
    (
        "narrows_link_rate_bytes_per_second",
        Gauge,
        "bytes_per_second",
        "Configured rate; absent where unlimited or traced.",
    ),
    ("narrows_link_delay_seconds", Gauge, "seconds", "Configured mean one-way delay."),
    ("narrows_link_offered_packets", Counter, "packets", "Packets that arrived at the link."),
    ("narrows_link_offered_bytes", Counter, "bytes", "Their bytes from the network header on."),
    ("narrows_link_delivered_packets", Counter, "packets", "Packets that left the link."),
    ("narrows_link_delivered_bytes", Counter, "bytes", "Their bytes from the network header on."),
    ("narrows_link_dropped_packets", Counter, "packets", "Packets dropped, by reason."),
    ("narrows_link_dropped_bytes", Counter, "bytes", "Their bytes from the network header on."),
    ("narrows_link_marked_packets", Counter, "packets", "Packets marked with congestion experienced."),
    ("narrows_link_duplicated_packets", Counter, "packets", "Packets that the link made."),
    ("narrows_link_corrupted_packets", Counter, "packets", "Packets with a flipped bit."),
    ("narrows_link_reordered_packets", Counter, "packets", "Packets sent past the delay."),
    ("narrows_link_backlog_packets", Gauge, "packets", "Packets that wait in the queue."),
    ("narrows_link_backlog_bytes", Gauge, "bytes", "Their bytes from the network header on."),
    ("narrows_link_in_flight_packets", Gauge, "packets", "Packets that propagate."),
    ("narrows_class_arrived_packets", Counter, "packets", "Packets that came to the class."),
    ("narrows_class_arrived_bytes", Counter, "bytes", "Their bytes from the network header on."),
    ("narrows_class_sent_packets", Counter, "packets", "Packets of the class that went to the transmitter."),
    ("narrows_class_sent_bytes", Counter, "bytes", "Their bytes from the network header on."),
    ("narrows_class_dropped_packets", Counter, "packets", "Packets of the class that were dropped."),
    (
        "narrows_class_marked_packets",
        Counter,
        "packets",
        "Packets of the class marked with congestion experienced.",
    ),
    ("narrows_class_backlog_packets", Gauge, "packets", "Packets of the class that wait."),
    ("narrows_class_backlog_bytes", Gauge, "bytes", "Their bytes from the network header on."),
    ("narrows_web_connections", Counter, "", "Connections taken by this server."),
    (
        "narrows_web_refused_connections",
        Counter,
        "",
        "Connections closed at once because too many were open.",
    ),
    ("narrows_web_slow_readers", Counter, "", "Connections dropped because their client did not read."),
    ("narrows_web_refused_requests", Counter, "", "Requests refused for their token, Host or Origin."),
    ("narrows_web_otlp_exports", Counter, "", "Exports by OTLP that the collector accepted."),
    ("narrows_web_otlp_failed_exports", Counter, "", "Exports by OTLP that were given up."),
    ("narrows_web_otlp_rejected_points", Counter, "", "Data points that the collector rejected."),
];

/// The possible values of `narrows_run_accuracy`.
const ACCURACY: [&str; 4] = ["accurate", "mostly accurate", "not accurate", "exact"];

/// A run that was queried, and its answer.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Its name, or its number if it has no name.
    pub run: String,
    /// The answer; `None` if it did not answer.
    pub answer: Option<(Stats, CurrentScenario)>,
    /// The total lateness of all packets, which never decreases.
    pub late_ns: u64,
}

/// The server's own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Connections accepted.
    pub connections: u64,
    /// Connections closed at once because too many were open.
    pub refused_connections: u64,
    /// Connections closed because the client did not read.
    pub slow_readers: u64,
    /// Requests without the right token, Host or Origin.
    pub refused_requests: u64,
    /// Counters of the export by OTLP, if there is one.
    pub otlp: Option<ExportCounts>,
}

/// Counters of an export by OTLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Exports that the collector accepted, in full or in part.
    pub exports: u64,
    /// Exports given up.
    pub failed: u64,
    /// Data points that the collector rejected from exports that it accepted.
    pub rejected_points: u64,
}

/// The names and values of a sample's labels.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// Samples of all families.
#[derive(Default)]
pub(crate) struct Samples {
    /// By family and labels.
    pub(crate) values: BTreeMap<&'static str, BTreeMap<Labels, f64>>,
    pub(crate) lateness: Vec<LatenessSample>,
}

/// The histogram of a run.
pub(crate) struct LatenessSample {
    pub(crate) run: String,
    /// Packets up to each of [`HISTOGRAM_BOUNDS`] and beyond the bound before; then those beyond the last bound.
    pub(crate) packets: Vec<u64>,
    pub(crate) sum_ns: u64,
}

impl Samples {
    /// Samples with the same labels, such as two classes of the same name, are added up.
    fn add(&mut self, family: &'static str, labels: &[(&'static str, &str)], value: f64) {
        let labels = labels.iter().map(|&(name, value)| (name, value.to_owned())).collect();
        *self.values.entry(family).or_default().entry(labels).or_default() += value;
    }

    fn count(&mut self, family: &'static str, labels: &[(&'static str, &str)], value: u64) {
        // Exact up to 2^53.
        self.add(family, labels, value as f64);
    }

    /// The samples of these runs and of the server.
    pub(crate) fn of(runs: &[Observed], server: &ServerCounts) -> Self {
        let mut samples = Self::default();
        for observed in runs {
            let run = ("run", observed.run.as_str());
            samples.add("narrows_up", &[run], f64::from(u8::from(observed.answer.is_some())));
            let Some((stats, settings)) = &observed.answer else { continue };
            of_run(&mut samples, run, stats);
            samples.lateness.extend(lateness(&observed.run, &stats.report, observed.late_ns));
            for direction in &stats.report.directions {
                of_link(&mut samples, run, direction);
            }
            for direction in &settings.directions {
                let (link, way) = place(&direction.link, direction.lane);
                let labels = [run, ("link", link), ("direction", way)];
                samples.count("narrows_link_up", &labels, u64::from(!direction.outage));
                if let Some(rate) = direction.rate_bps {
                    samples.add("narrows_link_rate_bytes_per_second", &labels, rate as f64 / 8.0);
                }
                if let Some(delay) = direction.delay_ns {
                    samples.add("narrows_link_delay_seconds", &labels, seconds(delay));
                }
            }
        }
        samples.count("narrows_web_connections", &[], server.connections);
        samples.count("narrows_web_refused_connections", &[], server.refused_connections);
        samples.count("narrows_web_slow_readers", &[], server.slow_readers);
        samples.count("narrows_web_refused_requests", &[], server.refused_requests);
        if let Some(sent) = &server.otlp {
            samples.count("narrows_web_otlp_exports", &[], sent.exports);
            samples.count("narrows_web_otlp_failed_exports", &[], sent.failed);
            samples.count("narrows_web_otlp_rejected_points", &[], sent.rejected_points);
        }
        samples
    }
}

/// The text for these runs.
pub fn exposition(runs: &[Observed], server: &ServerCounts) -> String {
    let samples = Samples::of(runs, server);
    let mut text = String::new();
    for (name, kind, unit, help) in FAMILIES {
        let of_family = samples.values.get(name);
        if of_family.is_none() && (*kind != Histogram || samples.lateness.is_empty()) {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# TYPE {name} {}", kind.word());
        if !unit.is_empty() {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(text, "# HELP {name} {}", escaped(help));
        if *kind == Histogram {
            samples.lateness.iter().for_each(|one| put_lateness(&mut text, one));
        }
        for (labels, value) in of_family.into_iter().flatten() {
            let _ = writeln!(text, "{name}{}{} {value}", kind.suffix(), written(labels));
        }
    }
    text + "# EOF\n"
}

fn of_run(samples: &mut Samples, run: (&'static str, &str), stats: &Stats) {
    let report = &stats.report;
    samples.add("narrows_run", &[run, ("title", &report.title)], 1.0);
    samples.count("narrows_run_generation", &[run], stats.generation);
    let time = report.end_ns.saturating_sub(report.start_ns);
    samples.add("narrows_run_time_seconds", &[run], seconds(time));
    for state in ACCURACY {
        let is_it = f64::from(u8::from(state == report.trust_word()));
        samples.add("narrows_run_accuracy", &[run, ("narrows_run_accuracy", state)], is_it);
    }
    let all = &report.conservation;
    samples.count("narrows_in_packets", &[run], all.in_packets);
    samples.count("narrows_duplicated_packets", &[run], all.duplicated_packets);
    samples.count("narrows_delivered_packets", &[run], all.delivered_packets);
    samples.count("narrows_dropped_packets", &[run], all.dropped_packets);
    samples.count("narrows_inside_packets", &[run], all.inside_packets);
    let losses = &report.losses;
    let mut lost = |reason, packets| {
        samples.count("narrows_host_lost_packets", &[run, ("reason", reason)], packets);
    };
    lost("receive_ring_dropped", losses.receive_ring_dropped_packets);
    lost("send_failed", losses.send_failed_packets);
    lost("refused", losses.refused_packets);
    samples.count("narrows_straggler_inputs", &[run], losses.straggler_inputs);
}

fn of_link(samples: &mut Samples, run: (&'static str, &str), own: &Direction) {
    let (link, way) = place(&own.link, own.lane);
    let labels = [run, ("link", link), ("direction", way)];
    samples.add(
        "narrows_link",
        &[labels[0], labels[1], labels[2], ("from", &own.from), ("to", &own.to)],
        1.0,
    );
    let mut count = |family, value| samples.count(family, &labels, value);
    count("narrows_link_offered_packets", own.offered.packets);
    count("narrows_link_offered_bytes", own.offered.bytes);
    count("narrows_link_delivered_packets", own.delivered.packets);
    count("narrows_link_delivered_bytes", own.delivered.bytes);
    count("narrows_link_marked_packets", own.marked_packets);
    count("narrows_link_duplicated_packets", own.duplicated_packets);
    count("narrows_link_corrupted_packets", own.corrupted_packets);
    count("narrows_link_reordered_packets", own.reordered_packets);
    count("narrows_link_backlog_packets", own.backlog_packets);
    count("narrows_link_backlog_bytes", own.backlog_bytes);
    count("narrows_link_in_flight_packets", own.in_flight_packets);
    for drop in &own.drops {
        let reason = drop.reason.to_string();
        let labels = [labels[0], labels[1], labels[2], ("reason", reason.as_str())];
        samples.count("narrows_link_dropped_packets", &labels, drop.packets);
        samples.count("narrows_link_dropped_bytes", &labels, drop.bytes);
    }
    for class in &own.classes {
        let labels = [labels[0], labels[1], labels[2], ("class", class.name.as_str())];
        let mut count = |family, value| samples.count(family, &labels, value);
        count("narrows_class_arrived_packets", class.arrived_packets);
        count("narrows_class_arrived_bytes", class.arrived_bytes);
        count("narrows_class_sent_packets", class.sent_packets);
        count("narrows_class_sent_bytes", class.sent_bytes);
        count("narrows_class_dropped_packets", class.dropped_packets);
        count("narrows_class_marked_packets", class.marked_packets);
        count("narrows_class_backlog_packets", class.backlog_packets);
        count("narrows_class_backlog_bytes", class.backlog_bytes);
    }
}

/// The histogram; always with all bounds, because a series must not come and go.
fn lateness(run: &str, report: &Report, sum_ns: u64) -> Option<LatenessSample> {
    let mut steps = report.lateness.as_ref()?.histogram.iter().peekable();
    let mut packets = Vec::with_capacity(HISTOGRAM_BOUNDS.len() + 1);
    for bound in &HISTOGRAM_BOUNDS {
        let mut within = 0;
        while let Some(step) = steps.next_if(|step| step.up_to_ns.is_some_and(|end| end <= bound.nanos())) {
            within += step.packets;
        }
        packets.push(within);
    }
    packets.push(steps.map(|step| step.packets).sum());
    Some(LatenessSample { run: run.to_owned(), packets, sum_ns })
}

fn put_lateness(text: &mut String, sample: &LatenessSample) {
    let labels = |le: Option<String>| {
        let run = ("run", sample.run.clone());
        written(&[run].into_iter().chain(le.map(|le| ("le", le))).collect::<Labels>())
    };
    let bounds = HISTOGRAM_BOUNDS.iter().map(|bound| seconds(bound.nanos()).to_string());
    let mut within = 0;
    for (le, packets) in bounds.chain(["+Inf".into()]).zip(&sample.packets) {
        within += packets;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "narrows_release_lateness_seconds_bucket{} {within}", labels(Some(le)));
    }
    let (run, sum) = (labels(None), seconds(sample.sum_ns));
    let _ = writeln!(text, "narrows_release_lateness_seconds_count{run} {within}");
    let _ = writeln!(text, "narrows_release_lateness_seconds_sum{run} {sum}");
}

/// The link and the direction of an engine's link: `access.up` is `access`, `up`. For a shared medium the lane is the
/// direction.
fn place(link: &str, lane: u8) -> (&str, &'static str) {
    match (link.strip_suffix(".up"), link.strip_suffix(".down"), lane) {
        (Some(link), _, _) => (link, "up"),
        (_, Some(link), _) => (link, "down"),
        (_, _, 0) => (link, "up"),
        _ => (link, "down"),
    }
}

pub(crate) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Formats labels, with braces.
fn written(labels: &Labels) -> String {
    let all: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(written(&vec![("run", "a\"b\\c\nd".into())]), "{run=\"a\\\"b\\\\c\\nd\"}");
        assert_eq!(written(&vec![]), "");
    }

    #[test]
    fn a_direction_is_told_from_its_link() {
        assert_eq!(place("access.up", 0), ("access", "up"));
        assert_eq!(place("a.b.down", 0), ("a.b", "down"));
        assert_eq!(place("air", 1), ("air", "down"));
    }

    #[test]
    fn names_of_families_end_with_their_units_and_stand_once() {
        for (number, (name, _, unit, help)) in FAMILIES.iter().enumerate() {
            assert!(unit.is_empty() || name.ends_with(&format!("_{unit}")), "{name}: {unit}");
            assert!(!name.ends_with("_total"), "{name}");
            assert!(help.ends_with('.'), "{name}");
            assert!(FAMILIES.iter().skip(number + 1).all(|(other, ..)| other != name), "{name} twice");
        }
    }

    #[test]
    fn what_is_not_known_is_no_zero() {
        let silent = Observed { run: "lab".into(), answer: None, late_ns: 0 };
        let text = exposition(&[silent], &ServerCounts::default());
        assert!(text.contains("narrows_up{run=\"lab\"} 0\n"), "{text}");
        assert!(!text.contains("narrows_in_packets"), "{text}");
    }

    /// Each expression of the dashboard is of metrics that are there.
    #[test]
    fn the_dashboard_names_metrics_that_there_are() {
        let dashboard = include_str!("../../../packaging/grafana/narrows.json");
        let _: serde_json::Value = serde_json::from_str(dashboard).unwrap();
        let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let mut found = 0;
        for (at, _) in dashboard.match_indices("narrows_") {
            let name = dashboard[at..].split(|letter| !is_of_name(letter)).next().unwrap();
            let known = FAMILIES.iter().any(|(family, kind, ..)| match kind {
                FamilyKind::Histogram => name == format!("{family}_bucket"),
                kind => name == format!("{family}{}", kind.suffix()),
            });
            assert!(known, "{name} is no metric");
            found += 1;
        }
        assert!(found > 10);
    }
}
