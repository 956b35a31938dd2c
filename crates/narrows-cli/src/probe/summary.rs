//! Summarises measurements in numbers and as a trace.

use std::fmt;
use std::path::Path;

use narrows_core::{Duration, Probability, Time};
use narrows_scenario::trace::{Column, Trace};
use serde::Serialize;

use super::measure::{Measurement, Outcome};
use super::trains::{Measured, shown};

/// How a round-trip time is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guess {
    /// Half of it is one way, and both directions have equal loss.
    Half,
    /// All of it is one way.
    Whole,
}

impl Guess {
    /// One-way delay.
    pub(super) const fn delay(self, round_trip: Duration) -> Duration {
        match self {
            Self::Half => Duration::from_nanos(round_trip.nanos() / 2),
            Self::Whole => round_trip,
        }
    }

    /// One-way loss for this round-trip loss.
    pub(super) fn loss(self, lost: f64) -> f64 {
        match self {
            Self::Half => 1.0 - (1.0 - lost).sqrt(),
            Self::Whole => lost,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Half => "each way has half of the round-trip time and equal loss",
            Self::Whole => "each way has the whole round-trip time and its loss",
        }
    }
}

/// Version of the JSON output.
const SCHEMA: u32 = 3;

/// Statistics of round-trip times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Summary {
    /// [`SCHEMA`].
    schema: u32,
    pub(super) address: String,
    /// `ping` or `raw`.
    pub(super) socket: &'static str,
    pub(super) asked: u64,
    pub(super) answered: u64,
    pub(super) lost: u64,
    /// Number of answers after the timeout; these probes are also lost.
    pub(super) late: u64,
    /// Number of probes without a result at the end.
    pub(super) open: u64,
    pub(super) min_ns: Option<u64>,
    pub(super) p50_ns: Option<u64>,
    pub(super) mean_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
    pub(super) max_ns: Option<u64>,
    /// The assumption for one-way values.
    pub(super) one_way: &'static str,
    /// Bottleneck rate, if measured.
    pub(super) rate: Option<Measured>,
}

/// Loss per window of this length, by window number.
pub(super) fn losses(outcomes: &[Outcome], window: Duration) -> Vec<(u64, f64)> {
    let mut windows: Vec<(u64, u64, u64)> = Vec::new();
    let mut sorted: Vec<&Outcome> = outcomes.iter().collect();
    sorted.sort_by_key(|outcome| outcome.sent);
    for outcome in sorted {
        let number = outcome.sent.nanos() / window.nanos();
        if windows.last().is_none_or(|last| last.0 != number) {
            windows.push((number, 0, 0));
        }
        let last = windows.last_mut().expect("it was put there");
        last.1 += 1;
        last.2 += u64::from(outcome.round_trip.is_none());
    }
    windows.into_iter().map(|(number, all, lost)| (number, lost as f64 / all as f64)).collect()
}

impl Measurement {
    pub(super) fn summary(&self, address: &str, guess: Guess) -> Summary {
        let mut trips: Vec<u64> =
            self.outcomes.iter().filter_map(|outcome| outcome.round_trip).map(Duration::nanos).collect();
        trips.sort_unstable();
        let answered = trips.len() as u64;
        let lost = self.outcomes.len() as u64 - answered;
        // The smallest value that this percentage does not exceed.
        let quantile = |percent: usize| trips.get((trips.len() * percent).div_ceil(100).max(1) - 1).copied();
        Summary {
            schema: SCHEMA,
            address: address.into(),
            socket: if self.is_raw() { "raw" } else { "ping" },
            asked: self.asked(),
            answered,
            lost,
            late: self.late,
            open: self.asked() - answered - lost,
            min_ns: trips.first().copied(),
            p50_ns: quantile(50),
            mean_ns: trips.iter().sum::<u64>().checked_div(answered),
            p99_ns: quantile(99),
            max_ns: trips.last().copied(),
            one_way: guess.words(),
            rate: None,
        }
    }

    /// The delays at the send times of probes, and the loss of each window. `None` without an answer.
    pub(super) fn trace(&self, address: &str, guess: Guess, window: Duration) -> Option<Trace> {
        let mut answered: Vec<(Duration, Duration)> =
            self.outcomes.iter().filter_map(|outcome| Some((outcome.sent, outcome.round_trip?))).collect();
        answered.sort_by_key(|(sent, _)| *sent);
        let mut delays: Column<Duration> = Vec::new();
        for (sent, round_trip) in answered {
            // The first answer's delay also applies before it.
            let at = if delays.is_empty() { Time::ZERO } else { Time::ZERO + sent };
            if delays.last().is_none_or(|last| last.0 < at) {
                delays.push((at, guess.delay(round_trip)));
            }
        }
        let mut losses: Column<Probability> = losses(&self.outcomes, window)
            .into_iter()
            .map(|(number, lost)| {
                let share = Probability::from_ratio(
                    (guess.loss(lost) * 1e18 + 0.5) as u64,
                    1_000_000_000_000_000_000,
                );
                (Time::from_nanos(number * window.nanos()), share.expect("it is a share"))
            })
            .collect();
        // Likewise if nothing is known of the first window.
        losses.first_mut()?.0 = Time::ZERO;
        let last = self.outcomes.iter().map(|outcome| outcome.sent).max()?;
        let remark = format!(
            "measured by echoes to {address}, one each {}; {}; losses over {window} each",
            self.interval(),
            guess.words()
        );
        Trace::measured(delays, losses, last + self.interval(), remark)
    }
}

impl Summary {
    /// A scenario of a link like the path, with delays and losses from this file.
    pub(super) fn scenario(&self, trace: &Path) -> String {
        let rate = match &self.rate {
            Some(rate) if rate.is_lower_bound => {
                format!("# The rate is {} or more, and therefore not limited.\n", shown(rate.p50_bps))
            }
            Some(rate) => format!("rate = \"{}bit\"\n", rate.p50_bps),
            None => String::new(),
        };
        let file = trace.file_name().unwrap_or_default().to_string_lossy();
        let address = &self.address;
        format!(
            "# A link like the path to {address}, as `narrows probe` measured it: {}.\n\
             [hosts.client]\n[hosts.server]\n\n[links.path]\nbetween = [\"client\", \"server\"]\n{rate}trace = {}\n",
            self.one_way,
            serde_json::json!(file) // a string of JSON is one of TOML
        )
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, asked, answered, lost, late, open, .. } = self;
        let known = (answered + lost).max(1);
        let share = *lost as f64 / known as f64 * 100.0;
        write!(f, "{address}: {asked} asked, {answered} answered, {lost} lost ({share:.2} %)")?;
        if *late > 0 {
            write!(f, ", {late} answered too late")?;
        }
        if *open > 0 {
            write!(f, ", {open} not known at the end")?;
        }
        writeln!(f)?;
        let show = |value: Option<u64>| {
            value.map_or("–".to_owned(), |value| format!("{:.3} ms", value as f64 / 1e6))
        };
        writeln!(
            f,
            "round trips: min {}, p50 {}, mean {}, p99 {}, max {}",
            show(self.min_ns),
            show(self.p50_ns),
            show(self.mean_ns),
            show(self.p99_ns),
            show(self.max_ns)
        )?;
        writeln!(f, "one way: {}", self.one_way)?;
        match &self.rate {
            Some(rate) => writeln!(f, "{rate}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_counted_by_window_and_shared_between_the_ways() {
        let outcome = |millis, answered: bool| Outcome {
            sent: Duration::from_millis(millis),
            known: Duration::from_millis(millis + 5),
            round_trip: answered.then_some(Duration::from_millis(5)),
        };
        // Known in another order than sent: what is lost is known last.
        let outcomes = [
            outcome(0, true),
            outcome(400, true),
            outcome(2_100, true),
            outcome(100, false),
            outcome(200, false),
        ];
        assert_eq!(losses(&outcomes, Duration::from_secs(1)), [(0, 0.5), (2, 0.0)]);
        let one = Guess::Half.loss(0.19);
        assert!((one - 0.1).abs() < 1e-12 && (1.0 - (1.0 - one) * (1.0 - one) - 0.19).abs() < 1e-12);
        assert_eq!((Guess::Whole.loss(0.19), Guess::Half.loss(1.0)), (0.19, 1.0));
        assert_eq!(Guess::Half.delay(Duration::from_millis(5)), Duration::from_micros(2_500));
    }
}
