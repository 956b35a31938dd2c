//! The report for people: configuration next to measurement, without lines that carry no information.

use std::fmt::{self, Display, Formatter};

use crate::class::{ClassDelayReport, ClassReport};
use crate::feed::FeedReport;
use crate::figures::Quantiles;
use crate::human::{bytes, count, packets, percent, rate, run_span, span, wrapped};
use crate::info::Kind;
use crate::probe::ProbeReport;
use crate::report::{Direction, Lateness, Report, Throughput};
use crate::shaped::ShapedClassReport;
use crate::{app, certified, flows, generated, host, router, rules_text, switch, trains};

/// The maximum number of rows of one kind; the JSON report has the rest.
const MOST_ROWS: usize = 24;
/// Up to this many directions, those without traffic are shown as well.
const FEW: usize = 4;

impl Report {
    /// The report for people, in lines of up to 100 columns unless names are long.
    pub fn text(&self) -> impl Display + '_ {
        Text(self)
    }
}

struct Text<'a>(&'a Report);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        head(report, f)?;
        rules_text::print(&report.rules, FEW, MOST_ROWS, f)?;
        directions(&report.directions, f)?;
        router::print(&report.routers, MOST_ROWS, f)?;
        switch::print(&report.switches, MOST_ROWS, f)?;
        feeds(report, f)?;
        delays(report, f)?;
        generated::print(&report.generated, MOST_ROWS, f)?;
        app::print(&report.applications, MOST_ROWS, f)?;
        probes(report, f)?;
        if let Some(late) = &report.lateness {
            lateness(late, report, f)?;
        }
        certified::print(report, f)?;
        if let Some(host) = &report.host {
            host::print(host, report.kind, f)?;
        }
        if let Some(trains) = &report.trains {
            trains::print(trains, f)?;
        }
        remarks(report, f)
    }
}

fn head(report: &Report, f: &mut Formatter<'_>) -> fmt::Result {
    let clock = match report.kind {
        Kind::Live => "live",
        Kind::ExactVirtual => "live in exact virtual time",
        Kind::Virtual => "virtual time",
        Kind::Replay => "replay in virtual time",
    };
    let length = run_span(report.end_ns.saturating_sub(report.start_ns));
    writeln!(f, "{}: {clock}, {length}, seed {}", report.title, report.seed)?;
    for trip in report.round_trips.iter().take(MOST_ROWS) {
        let asked = run_span(trip.round_trip_ns);
        writeln!(f, "round trip {} - {}: {asked} configured", trip.from, trip.to)?;
    }
    Ok(())
}

fn directions(all: &[Direction], f: &mut Formatter<'_>) -> fmt::Result {
    // One direction of a pipe often carries no traffic by design.
    let is_shown = |d: &&Direction| d.offered.packets > 0 || all.len() <= FEW && d.rules.is_none();
    let shown: Vec<_> = all.iter().filter(is_shown).collect();
    for direction in shown.iter().take(MOST_ROWS) {
        one_direction(direction, f)?;
    }
    if shown.len() > MOST_ROWS {
        writeln!(f, "\n{} more directions with traffic", shown.len() - MOST_ROWS)?;
    }
    let left_out = all.iter().filter(|d| !is_shown(d)).count();
    if left_out > 0 && all.len() > FEW {
        let plural = if left_out == 1 { "" } else { "s" };
        writeln!(f, "\n{left_out} direction{plural} without traffic")?;
    }
    Ok(())
}

fn one_direction(d: &Direction, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f, "\n{}, {} → {}", d.link, d.from, d.to)?;
    for (number, line) in wrapped(&d.asked).into_iter().enumerate() {
        writeln!(f, "  {:11}  {line}", if number == 0 { "asked" } else { "" })?;
    }
    if d.offered.packets == 0 {
        return writeln!(f, "  no traffic");
    }
    writeln!(f, "  offered    {}", tally(d.offered))?;
    writeln!(f, "  delivered  {}", tally(d.delivered))?;
    if d.dropped_packets > 0 {
        let reasons: Vec<_> = d.drops.iter().map(|r| format!("{} {}", r.reason, count(r.packets))).collect();
        let (dropped, share) = (packets(d.dropped_packets), percent(d.dropped_share));
        writeln!(f, "  dropped    {dropped:>20}{share:>12}   {}", reasons.join(", "))?;
    }
    if d.inside_packets > 0 {
        writeln!(f, "  inside     {:>20}   at the end of the run", packets(d.inside_packets))?;
    }
    let made: Vec<_> = [
        ("duplicated", d.duplicated_packets.saturating_sub(d.fragment_packets)),
        ("corrupted", d.corrupted_packets),
        ("marked", d.marked_packets),
        ("reordered", d.reordered_packets),
        ("delayed to keep order", d.delayed_to_keep_order_packets),
        ("fragmented", d.fragmented_packets),
        ("extra fragments", d.fragment_packets),
    ]
    .into_iter()
    .filter(|(_, number)| *number > 0)
    .map(|(what, number)| format!("{what} {}", count(number)))
    .collect();
    if !made.is_empty() {
        writeln!(f, "  changed      {}", made.join(", "))?;
    }
    wire(d, f)?;
    if let Some(flows) = &d.flows {
        flows::print("links for flows", flows, f)?;
    }
    if let Some(failure) = &d.scheduler_failure {
        writeln!(f, "  scheduler    plugin {failure}; since then packets are sent in order of arrival")?;
    }
    classes(&d.classes, f)?;
    shaped(&d.shaped, f)?;
    for class in d.classes.iter().take(MOST_ROWS) {
        if let Some(flows) = &class.flows {
            flows::print(&format!("queues for flows of {}", class.name), flows, f)?;
        }
    }
    Ok(())
}

fn tally(t: Throughput) -> String {
    let line = format!("{:>20}{:>12}", packets(t.packets), bytes(t.bytes));
    match t.rate_bps {
        Some(bps) => format!("{line}{:>15}", rate(bps)),
        None => line,
    }
}

/// The transmitter; nothing is shown for an unlimited one.
fn wire(d: &Direction, f: &mut Formatter<'_>) -> fmt::Result {
    let has_wires = d.utilisation_share.is_some() || d.per_flow && d.asked_rate_bps.is_some();
    let Some(bps) = d.wire_bps.filter(|_| has_wires) else { return Ok(()) };
    write!(f, "  on the wire  {}", rate(bps))?;
    if let Some(asked) = d.asked_rate_bps.filter(|&asked| asked > 0) {
        write!(f, " of {}{}", rate(asked), if d.per_flow { " each" } else { "" })?;
    }
    writeln!(f, "; counted: {}", d.overhead)?;
    let wait = d.queueing_mean_ns.filter(|&wait| wait > 0).map(span);
    let wait = wait.map(|wait| format!("mean wait {wait}"));
    let busy = d.utilisation_share.map(|busy| format!("{} of the time", percent(busy)));
    match (busy, wait) {
        (Some(busy), Some(wait)) => writeln!(f, "  busy         {busy}; {wait}"),
        (Some(busy), None) => writeln!(f, "  busy         {busy}"),
        (None, Some(wait)) => writeln!(f, "  queues       {wait}"),
        (None, None) => Ok(()),
    }
}

/// Two lines for each feed: its packets, and its writers if something went wrong with them.
fn feeds(report: &Report, f: &mut Formatter<'_>) -> fmt::Result {
    let all = &report.feeds;
    if all.is_empty() {
        return Ok(());
    }
    let width = all.iter().map(|feed| feed_label(feed).chars().count()).max().unwrap_or(0).max(16);
    let values =
        if all.iter().any(|feed| feed.answer_timeout_ns.is_some()) { "values, answers" } else { "values" };
    writeln!(
        f,
        "\n{:<width$}{values:>16}{:>12}{:>10}  without a value",
        "feeds",
        "underruns",
        "share",
        width = width + 2
    )?;
    for feed in all.iter().take(MOST_ROWS) {
        write!(f, "  {:<width$}{:>16}", feed_label(feed), count(feed.used_values))?;
        write!(f, "{:>12}{:>10}", count(feed.underruns_packets), percent(feed.underruns_share))?;
        writeln!(f, "  {}", feed.on_empty)?;
        let writers = feed.writers.clone().unwrap_or_default();
        let more: Vec<_> = [
            ("packets dropped by −1", feed.lost_packets),
            ("clamped to an hour", feed.clamped_values),
            ("refused", feed.refused_values),
            ("discarded", feed.discarded_values),
            ("unused", feed.waiting_values),
            ("late answers", feed.late_values),
            ("unanswered questions", writers.unanswered),
            ("writers", if writers.writers > 1 { writers.writers } else { 0 }),
            ("writers refused", writers.refused_writers),
            ("writers disconnected for malformed data", writers.malformed_writers),
            ("truncated values", writers.truncated_values),
        ]
        .into_iter()
        .filter(|(_, number)| *number > 0)
        .map(|(what, number)| format!("{what} {}", count(number)))
        .collect();
        if !more.is_empty() {
            writeln!(f, "    {}", more.join(", "))?;
        }
        if feed.writers.as_ref().is_some_and(|writers| writers.writers == 0) {
            writeln!(f, "    no writer connected")?;
        }
    }
    if all.len() > MOST_ROWS {
        writeln!(f, "  {} more feeds", all.len() - MOST_ROWS)?;
    }
    if report.kind == Kind::Virtual {
        writeln!(f, "  feeds have no writers in virtual time; replay a recorded run to use its values")?;
    }
    Ok(())
}

fn feed_label(feed: &FeedReport) -> String {
    format!("{}/{}", feed.link, feed.feed)
}

type Count = fn(&ClassReport) -> u64;

/// One row for each class of the scheduler, in the order of the classes; if there are more than [`MOST_ROWS`], only
/// those with traffic. Columns that are zero for all are omitted.
fn classes(all: &[ClassReport], f: &mut Formatter<'_>) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    let shown: Vec<_> = all
        .iter()
        .filter(|class| class.arrived_packets > 0 || all.len() <= MOST_ROWS && class.queue != Some(0))
        .take(MOST_ROWS)
        .collect();
    let label = |class: &ClassReport| match class.weight {
        Some(weight) => format!("{} ({weight})", class.name),
        None => class.name.clone(),
    };
    let width = shown.iter().map(|class| label(class).chars().count()).max().unwrap_or(0).max(16);
    let weighted = shown.iter().any(|class| class.weight.is_some());
    let counts: [(&str, Count); 4] = [
        ("dropped", |class| class.dropped_packets),
        ("ack drops", |class| class.redundant_acks),
        ("marked", |class| class.marked_packets),
        ("backlog", |class| class.backlog_packets),
    ];
    let counts: Vec<_> =
        counts.into_iter().filter(|(_, of)| shown.iter().any(|class| of(class) > 0)).collect();
    let title = if weighted { "classes (weight)" } else { "classes" };
    write!(f, "  {title:<width$}{:>12}{:>10}", "sent", "of bytes", width = width + 2)?;
    counts.iter().try_for_each(|(head, _)| write!(f, "{head:>10}"))?;
    writeln!(f, "{:>13}{:>10}", "wait, mean", "max")?;
    for class in &shown {
        write!(f, "    {:<width$}", label(class))?;
        write!(f, "{:>12}{:>10}", count(class.sent_packets), percent(class.sent_share))?;
        counts.iter().try_for_each(|(_, of)| write!(f, "{:>10}", count(of(class))))?;
        let wait = |nanos: Option<u64>| nanos.map_or("-".into(), span);
        writeln!(f, "{:>13}{:>10}", wait(class.queueing_mean_ns), wait(class.queueing_max_ns))?;
    }
    if shown.iter().any(|class| class.delay.is_some()) {
        writeln!(
            f,
            "  {:<width$}{:>10}{:>10}{:>12}",
            "delays",
            "average",
            "hold",
            "over limit",
            width = width + 2
        )?;
    }
    for class in &shown {
        if let Some(ClassDelayReport { average_ns, hold_ns, over_limit }) = class.delay {
            write!(f, "    {:<width$}{:>10}{:>10}", label(class), span(average_ns), span(hold_ns))?;
            writeln!(f, "{:>12}", count(over_limit))?;
        }
    }
    let more = all.iter().filter(|class| class.queue != Some(0)).count().saturating_sub(shown.len());
    if more > 0 {
        writeln!(f, "    {more} more classes")?;
    }
    Ok(())
}

/// One row for each class of a shaper, indented by depth.
fn shaped(all: &[ShapedClassReport], f: &mut Formatter<'_>) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    let label = |class: &ShapedClassReport| format!("{}{}", "  ".repeat(class.depth), class.name);
    let width = all.iter().map(|class| label(class).chars().count()).max().unwrap_or(0).max(16);
    writeln!(
        f,
        "  {:<width$}{:>12}{:>10}{:>10}{:>12}{:>13}",
        "shaped",
        "sent",
        "own rate",
        "borrowed",
        "over limit",
        "at the end",
        width = width + 2
    )?;
    for class in all.iter().take(MOST_ROWS) {
        let counts = [class.lent_packets, class.borrowed_packets];
        write!(f, "    {:<width$}{:>12}", label(class), count(class.sent_packets))?;
        counts.iter().try_for_each(|packets| write!(f, "{:>10}", count(*packets)))?;
        writeln!(f, "{:>12}{:>13}", count(class.over_limit), class.mode)?;
    }
    if all.len() > MOST_ROWS {
        writeln!(f, "    {} more classes", all.len() - MOST_ROWS)?;
    }
    Ok(())
}

/// One row for each pair of ports, under a common head.
fn delays(report: &Report, f: &mut Formatter<'_>) -> fmt::Result {
    if report.pairs.is_empty() {
        return Ok(());
    }
    let label = |from: &str, to: &str| format!("{} → {}", short(report, from), short(report, to));
    let rows: Vec<_> = report
        .pairs
        .iter()
        .take(MOST_ROWS)
        .map(|pair| (label(&pair.from_port, &pair.to_port), pair))
        .collect();
    let width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0).max(16);
    writeln!(f)?;
    columns_head("one-way delay", width, f)?;
    for (label, pair) in &rows {
        columns(label, width, &pair.delay, f)?;
    }
    if rows.iter().any(|(_, pair)| pair.queueing.max_ns > 0) {
        writeln!(f, "of which queueing")?;
        for (label, pair) in rows.iter().filter(|(_, pair)| pair.queueing.max_ns > 0) {
            columns(label, width, &pair.queueing, f)?;
        }
    }
    if report.pairs.len() > MOST_ROWS {
        writeln!(f, "  {} more pairs of ports", report.pairs.len() - MOST_ROWS)?;
    }
    Ok(())
}

/// One row for each direction in which probes were sent.
fn probes(report: &Report, f: &mut Formatter<'_>) -> fmt::Result {
    if report.probes.is_empty() {
        return Ok(());
    }
    let label = |probe: &ProbeReport| format!("{} → {}", probe.from, probe.to);
    let width = report.probes.iter().map(|p| label(p).chars().count()).max().unwrap_or(0).max(16);
    writeln!(f)?;
    columns_head("probes, one way", width, f)?;
    for probe in report.probes.iter().take(MOST_ROWS) {
        columns(&label(probe), width, &probe.delay, f)?;
        let dscp = if probe.dscp > 0 { format!(", DSCP {}", probe.dscp) } else { String::new() };
        let (sent, length, port) = (count(probe.sent_packets), probe.length_bytes, probe.port);
        write!(f, "    {sent} sent ({length} bytes{dscp}, port {port})")?;
        let seen = [
            ("marked", probe.marked_packets),
            ("duplicated", probe.duplicate_packets),
            ("reordered", probe.reordered_packets),
        ];
        for (what, number) in seen.into_iter().filter(|(_, number)| *number > 0) {
            write!(f, ", {} {what}", count(number))?;
        }
        writeln!(f, ", {} lost ({})", count(probe.lost_packets), percent(probe.lost_share))?;
        match probe.overhead_ns {
            Some(over) if over >= 0 => {
                writeln!(f, "    p50 is {} above the configured delay", span(over as u64))?
            }
            Some(under) => {
                writeln!(f, "    p50 is {} below the configured delay", span(under.unsigned_abs()))?
            }
            None => {}
        }
    }
    Ok(())
}

/// The host of a port that is its host's only one; otherwise its full name.
pub(crate) fn short<'a>(report: &Report, port: &'a str) -> &'a str {
    let host = |name: &'a str| name.split_once('.').map_or(name, |(host, _)| host);
    let own = host(port);
    let ports = report.ports.iter().filter(|p| p.name.split_once('.').is_some_and(|(h, _)| h == own));
    if ports.count() == 1 { own } else { port }
}

fn columns_head(title: &str, width: usize, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{title:<width$}", width = width + 2)?;
    for head in ["min", "p50", "p90", "p99", "p99.9", "max", "mean"] {
        write!(f, "{head:>10}")?;
    }
    writeln!(f)
}

fn columns(label: &str, width: usize, q: &Quantiles, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "  {label:<width$}")?;
    for nanos in [q.min_ns, q.p50_ns, q.p90_ns, q.p99_ns, q.p999_ns, q.max_ns, q.mean_ns] {
        write!(f, "{:>10}", span(nanos))?;
    }
    writeln!(f)
}

fn lateness(late: &Lateness, report: &Report, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f)?;
    columns_head("lateness", 16, f)?;
    columns("of release", 16, &late.quantiles, f)?;
    if let Some(sent) = &report.sent_lateness {
        columns("until sent", 16, sent, f)?;
    }
    if let Some(input) = &report.input_lateness {
        columns("of hand-in", 16, input, f)?;
    }
    let beyond: Vec<_> = late
        .later_than
        .iter()
        .filter(|s| s.share > 0.0)
        .map(|s| format!("{} by more than {}", percent(s.share), run_span(s.bound_ns)))
        .collect();
    if !beyond.is_empty() {
        writeln!(f, "  released late: {}", beyond.join(", "))?;
    }
    certified::histogram(late, f)
}

/// Inputs handed in after their instant had passed: they were taken slightly later than they arrived.
fn stragglers(report: &Report) -> Option<String> {
    let number = report.losses.straggler_inputs;
    let by = match &report.straggler_lateness {
        Some(late) => format!(": p50 {}, max {}", span(late.p50_ns), span(late.max_ns)),
        None => String::new(),
    };
    let inputs = match number {
        1 => "1 input was late".to_owned(),
        _ => format!("{} inputs were late", count(number)),
    };
    (number > 0).then(|| format!("{inputs}{by}"))
}

/// Problems and notes.
fn remarks(report: &Report, f: &mut Formatter<'_>) -> fmt::Result {
    let losses = report.losses;
    let wrong = [
        (
            losses.implausible_stamp_packets,
            "packets had impossible receive timestamps and count as arriving when read: no bound on \
             lateness is kept",
        ),
        (
            losses.receive_ring_dropped_packets,
            "packets lost by the system before they could be read (receive overload)",
        ),
        (losses.send_failed_packets, "packets refused by the system on sending"),
        (losses.refused_packets, "packets refused at the memory cap of the network"),
    ];
    let wrong = wrong.into_iter().filter(|(number, _)| *number > 0);
    let mut lines: Vec<_> = wrong.map(|(number, what)| format!("{} {what}", count(number))).collect();
    lines.extend(stragglers(report));
    lines.extend(report.feeds.iter().filter(|feed| feed.clamped_values > 0).take(MOST_ROWS).map(|feed| {
        let (feed, number) = (feed_label(feed), count(feed.clamped_values));
        format!(
            "{feed}: {number} of the values were longer than an hour and count as one: is the unit right?"
        )
    }));
    lines.extend(report.conservation.violations.iter().map(|v| format!("packets do not add up: {v}")));
    lines.extend(report.capture.as_ref().map(crate::CaptureReport::sentence));
    lines.extend(report.notes.iter().cloned());
    if !lines.is_empty() {
        writeln!(f)?;
    }
    lines.iter().try_for_each(|line| writeln!(f, "{line}"))
}
