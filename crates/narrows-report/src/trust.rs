//! The accuracy verdict on a run: how late packets were, and what the host lost.

use crate::human::{count, packets, percent, run_span, span};
use crate::info::Kind;
use crate::report::Report;

/// A share of lost packets above this makes a run inaccurate.
const MANY: f64 = 0.001;
/// Without a requested bound, packets later than this count as late.
const LATE_NS: u64 = 1_000_000;

/// How accurate a run's figures are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// Nothing was late, lost or unaccounted for.
    Good,
    /// Some packets were late, or the host lost a few.
    Fair,
    /// A requested bound is broken, the p99 of lateness is above 1 ms, the host lost more than one packet in a
    /// thousand, packets are unaccounted for, or a link inside the kernel decided otherwise than the engine.
    Poor,
}

impl Report {
    /// How accurate the figures are.
    pub fn trust(&self) -> Trust {
        findings(self).into_iter().map(|(trust, _)| trust).max().unwrap_or(Trust::Good)
    }

    /// As words: `mostly accurate`.
    pub fn trust_word(&self) -> &'static str {
        match (self.trust(), self.kind) {
            (Trust::Good, Kind::Virtual | Kind::Replay | Kind::ExactVirtual) => "exact",
            (Trust::Good, Kind::Live) => "accurate",
            (Trust::Fair, _) => "mostly accurate",
            (Trust::Poor, _) => "not accurate",
        }
    }

    /// As a line: `accurate: p99 lateness 34 µs, max 212 µs`.
    pub fn trust_line(&self) -> String {
        let found = findings(self);
        let head = self.trust_word();
        let late = match (&self.lateness, self.kind) {
            (_, Kind::Virtual | Kind::Replay) => "each event has its exact instant".into(),
            (_, Kind::ExactVirtual) => "the clock is virtual, no packet is late".into(),
            (Some(late), Kind::Live) if late.quantiles.packets > 0 => {
                let (p99, max) = (span(late.quantiles.p99_ns), span(late.quantiles.max_ns));
                format!("p99 lateness {p99}, max {max}")
            }
            (_, Kind::Live) => "no packet was sent to a host".into(),
        };
        let mut worst_first = found;
        worst_first.sort_by_key(|(trust, _)| std::cmp::Reverse(*trust));
        let all = std::iter::once(late).chain(worst_first.into_iter().map(|(_, what)| what));
        format!("{head}: {}", all.collect::<Vec<_>>().join("; "))
    }
}

/// The findings that reduce the accuracy.
fn findings(report: &Report) -> Vec<(Trust, String)> {
    let mut found = Vec::new();
    if !report.conservation.violations.is_empty() {
        found.push((Trust::Poor, "packets do not add up".into()));
    }
    for direction in report.directions.iter().filter(|direction| direction.scheduler_failure.is_some()) {
        found.push((Trust::Poor, format!("the scheduler plugin of {} failed", direction.link)));
    }
    for broken in report.certificates.iter().filter(|certificate| !certificate.met) {
        let (name, bound) = (broken.quantile.name(), run_span(broken.bound_ns));
        found.push((Trust::Poor, format!("{name} exceeds its bound of {bound}")));
    }
    let of_kernel = report.host.as_ref().and_then(|host| host.kernel_verdicts).unwrap_or_default();
    if of_kernel.differing_packets > 0 {
        let differing = packets(of_kernel.differing_packets);
        found.push((Trust::Poor, format!("the kernel's verdict on {differing} was not the engine's")));
    }
    let losses = &report.losses;
    if losses.implausible_stamp_packets > 0 {
        let stamps = packets(losses.implausible_stamp_packets);
        found.push((Trust::Poor, format!("{stamps} had impossible receive timestamps")));
    }
    let handled = report.conservation.in_packets.saturating_add(losses.receive_ring_dropped_packets);
    let lost = [
        (losses.receive_ring_dropped_packets, "lost before they could be read (overload)"),
        (losses.send_failed_packets, "refused by the system when sent"),
    ];
    for (number, what) in lost.into_iter().filter(|(number, _)| *number > 0) {
        let share = number as f64 / handled.max(1) as f64;
        let trust = if share > MANY { Trust::Poor } else { Trust::Fair };
        found.push((trust, format!("{} ({}) {what}", packets(number), percent(share))));
    }
    if report.kind == Kind::Live {
        found.extend(late(report));
    }
    found
}

/// Late packets, where no bound was requested, and inputs taken late.
fn late(report: &Report) -> Option<(Trust, String)> {
    let usual = if report.certificates.is_empty() { &report.lateness_violations[..] } else { &[] };
    if let Some(violation) = usual.iter().find(|violation| violation.packets > 0) {
        let bound = run_span(violation.bound_ns);
        let what =
            format!("{} ({}) more than {bound} late", packets(violation.packets), percent(violation.share));
        let p99 = report.lateness.as_ref().map_or(0, |late| late.quantiles.p99_ns);
        return Some((if p99 > LATE_NS { Trust::Poor } else { Trust::Fair }, what));
    }
    let stragglers = report.straggler_lateness.filter(|late| late.max_ns > LATE_NS)?;
    let number = count(report.losses.straggler_inputs);
    Some((Trust::Fair, format!("{number} inputs read up to {} late", span(stragglers.max_ns))))
}
