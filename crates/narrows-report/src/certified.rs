//! Text for people: lateness of packets, whether bounds on it were met, and when they were not.

use std::fmt::{self, Formatter};

use crate::certify::{Certificate, LatenessViolation};
use crate::host::WORTH_TELLING;
use crate::human::wrapped;
use crate::human::{count, packets, percent, run_span, span};
use crate::info::Kind;
use crate::report::{Lateness, Report};

/// How many intervals of a bound are shown; the JSON report has the rest.
const MOST_SHOWN: usize = 6;

/// `how many: up to 2 µs 12 %, 5 µs 80 %, …`.
pub(crate) fn histogram(late: &Lateness, f: &mut Formatter<'_>) -> fmt::Result {
    let all = late.quantiles.packets;
    let step = |step: &crate::report::Step| {
        let share = percent(crate::figures::share(step.packets, all));
        match step.up_to_ns {
            Some(bound) => format!("{} {share}", run_span(bound)),
            None => format!("more {share}"),
        }
    };
    let steps: Vec<_> = late.histogram.iter().map(step).collect();
    rows("up to", &steps.join(", "), f)
}

/// The bounds that were requested, and when they, or the default bound, were exceeded.
pub(crate) fn print(report: &Report, f: &mut Formatter<'_>) -> fmt::Result {
    for certificate in &report.certificates {
        writeln!(f, "  {}", certificate.sentence())?;
    }
    let real = matches!(report.kind, Kind::Live | Kind::ExactVirtual);
    if real && report.certificates.iter().any(|c| c.measured_ns.is_none() && c.met) {
        writeln!(f, "  no packet was released, so no bound could be violated")?;
    }
    report.lateness_violations.iter().try_for_each(|violation| intervals(violation, f))
}

impl Certificate {
    /// The bound and the result: `p99 at most 50 µs, VIOLATED: 922.9 µs; 12 packets (3.8 %) were later or lost`.
    pub fn sentence(&self) -> String {
        let Self { quantile, bound_ns, measured_ns, later_packets, later_share, met, .. } = self;
        let (name, bound, share) = (quantile.name(), run_span(*bound_ns), percent(*later_share));
        let verdict = if *met { "met" } else { "VIOLATED" };
        let measured = match measured_ns {
            Some(nanos) => format!(": {}", span(*nanos)),
            None if *later_packets == 0 => String::new(),
            None => ": unbounded, as the system lost packets".into(),
        };
        let later = match later_packets {
            0 => String::new(),
            1 => format!("; 1 packet ({share}) was later or lost"),
            _ => format!("; {} packets ({share}) were later or lost", count(*later_packets)),
        };
        let implausible = match self.implausible_stamp_packets {
            0 => String::new(),
            number => format!("; {} had impossible receive timestamps", packets(number)),
        };
        format!("{name} at most {bound}, {verdict}{measured}{later}{implausible}")
    }
}

fn intervals(violation: &LatenessViolation, f: &mut Formatter<'_>) -> fmt::Result {
    // Those with the most packets, in order of time.
    let mut shown: Vec<_> = violation.intervals.iter().collect();
    shown.sort_by_key(|interval| std::cmp::Reverse(interval.packets));
    shown.truncate(MOST_SHOWN);
    shown.sort_by_key(|interval| interval.start_ns);
    let each = shown.iter().map(|interval| {
        let (from, length) = (interval.start_ns, interval.end_ns.saturating_sub(interval.start_ns));
        let (packets, most) = (packets(interval.packets), span(interval.max_ns));
        let taken = [(interval.steal_ns, "CPU steal"), (interval.run_queue_wait_ns, "run-queue wait")];
        let taken = taken.into_iter().filter_map(|(nanos, what)| {
            let nanos = nanos.filter(|nanos| *nanos >= WORTH_TELLING)?;
            Some(format!("{} {what}", span(nanos)))
        });
        let taken: Vec<_> = taken.collect();
        let cause = if taken.is_empty() {
            String::new()
        } else {
            format!(" ({} around that time)", taken.join("; "))
        };
        format!("at {} for {} {packets} by up to {most}{cause}", span(from), span(length))
    });
    let mut text = each.collect::<Vec<_>>().join(", ");
    let more = violation.intervals.len() - shown.len();
    if more > 0 {
        text += &format!(", and {more} more times");
    }
    writeln!(f, "  later than {}, {}:", run_span(violation.bound_ns), packets(violation.packets))?;
    wrapped(&text).into_iter().try_for_each(|line| writeln!(f, "    {line}"))
}

/// A list under a heading, in lines of up to 100 columns.
fn rows(word: &str, list: &str, f: &mut Formatter<'_>) -> fmt::Result {
    for (number, line) in wrapped(list).into_iter().enumerate() {
        writeln!(f, "  {:8} {line}", if number == 0 { word } else { "" })?;
    }
    Ok(())
}
