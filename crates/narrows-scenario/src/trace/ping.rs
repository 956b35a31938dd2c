//! What ping prints on Linux (iputils, BusyBox), macOS and BSD, and on Windows in English.
//!
//! ```text
//! PING example.net (192.0.2.1) 56(84) bytes of data.
//! 64 bytes from 192.0.2.1: icmp_seq=1 ttl=54 time=13.2 ms
//! [1656622595.003106] 64 bytes from 192.0.2.1: icmp_seq=2 ttl=54 time=13.4 ms
//! Reply from 192.0.2.1: bytes=32 time=13ms TTL=54
//! Request timed out.
//! ```
//! Half of a round trip is the one-way delay, from the probe's start on. A missing number and a timeout are a loss; the
//! loss of each [`WINDOW`] probes is L, and each direction loses 1 − √(1 − L), as in `narrows probe`.
//!
//! Probes have the times in front of their answers (`-D`), or else equal distances: those of `-i` in a command line
//! of the log, or of the summary's time, or a second. Runs follow one another.

mod line;
mod run;

use narrows_core::{Duration, Probability, Time};

use self::line::Event;
use self::run::{Interval, Run};
use super::table;
use crate::problem::{Found, Problem};
use crate::source::Source;
use crate::trace::column::{filled, put};
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Column, Format, MOST_POINTS, Trace};
use crate::units::LONGEST_NANOS;

/// One of the first lines is one of ping's.
impl Format {
    /// What ping prints. Read only.
    pub const PING: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "ping",
    begins: |beginning| beginning.lines().any(|line| Event::of(line).is_some_and(|event| event.is_telling())),
    always: &[],
    extensions: &[],
    read,
    write: |_, _| Err(CannotWrite::ReadOnly { format: Format::PING, why: "it is the output of ping" }),
    has_opportunities: false,
    says_loop: false,
};

/// Probes whose losses are counted together.
const WINDOW: u64 = 10;

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let log = Log::of(source)?;
    let first = table::lines(source).next().ok_or_else(|| source.empty())?;
    if !log.runs.iter().any(Run::has_answer) {
        let problem = Problem::new("no line is an answer to ping").at(&source.span(first));
        return Err(problem.help(
            "such are `64 bytes from 192.0.2.1: icmp_seq=1 ttl=54 time=13.2 ms` and `Reply from 192.0.2.1: bytes=32 \
             time=13ms TTL=54`, in English",
        ));
    }
    if log.runs.iter().map(Run::count).sum::<u64>() > MOST_POINTS as u64 / 2 {
        let problem = Problem::new(format!("more than {} probes", MOST_POINTS / 2));
        return Err(problem.at(&source.span(first)));
    }
    log.into_trace().ok_or_else(|| Problem::new("the probes last too long").at(&source.span(first)))
}

/// The lines of a log.
#[derive(Default)]
struct Log<'a> {
    runs: Vec<Run<'a>>,
    /// Seconds between probes as a command line says.
    asked: Option<Duration>,
    duplicates: usize,
    /// Answers without a time, and those of `time<1ms`.
    untimed: usize,
    below: usize,
}

impl<'a> Log<'a> {
    fn of(source: &Source<'a>) -> Result<Self, Problem> {
        let mut log = Self::default();
        for line in source.lines() {
            let Some(event) = Event::of(line) else { continue };
            log.add(source, event)?;
        }
        Ok(log)
    }

    fn add(&mut self, source: &Source<'a>, event: Event<'a>) -> Result<(), Problem> {
        match event {
            Event::Command { interval } => {
                let nanos =
                    interval.map(|text| source.number(text, 9, LONGEST_NANOS, "an interval in seconds"));
                self.asked =
                    nanos.transpose()?.map(Duration::from_nanos).filter(|step| *step > Duration::ZERO);
            }
            Event::Start { target, first } => {
                same(source, self.runs.iter().rev().find_map(|run| run.target), target)?;
                self.runs.push(Run::new(Some(target), Some(first), self.asked));
            }
            Event::Answer { from, sequence, time, stamp, is_duplicate } => {
                if is_duplicate {
                    self.duplicates += 1;
                    return Ok(());
                }
                let sequence = sequence.map(|text| source.whole(text, MOST_NUMBER, NUMBER)).transpose()?;
                if self.runs.last().is_none_or(|run| run.is_behind(sequence)) {
                    same(source, self.runs.last().and_then(|run| run.from), from)?;
                    self.runs.push(Run::new(None, None, self.asked));
                }
                let Some(run) = self.runs.last_mut() else { return Ok(()) };
                if run.target.is_none() {
                    same(source, run.from, from)?;
                }
                run.from.get_or_insert(from);
                let trip = match time {
                    Some(time) => Some(time.nanos(source)?),
                    None => None,
                };
                self.untimed += usize::from(time.is_none());
                self.below += usize::from(time.is_some_and(|time| time.is_below));
                let stamp = stamp.and_then(line::instant);
                self.duplicates += usize::from(!run.answer(sequence, trip, stamp));
            }
            Event::Missing { sequence } => {
                let sequence = sequence.map(|text| source.whole(text, MOST_NUMBER, NUMBER)).transpose()?;
                if self.runs.is_empty() {
                    self.runs.push(Run::new(None, None, self.asked));
                }
                let Some(run) = self.runs.last_mut() else { return Ok(()) };
                run.miss(sequence);
            }
            Event::Summary { sent, millis } => {
                let most = MOST_POINTS as u64;
                let sent = source.whole(sent, most, "a number of probes")?;
                let millis = millis.map(|text| source.whole(text, LONGEST_NANOS / 1_000_000, "milliseconds"));
                let lasts = millis.transpose()?.map(Duration::from_millis);
                if let Some(run) = self.runs.last_mut() {
                    run.end(sent, lasts);
                }
            }
        }
        Ok(())
    }

    /// `None` if it would last too long.
    fn into_trace(mut self) -> Option<Trace> {
        self.runs.retain(|run| run.count() > 0);
        let is_stamped = self.runs.iter().all(Run::is_stamped);
        let (mut delay, mut loss): (Column<Duration>, Column<Probability>) = Default::default();
        let mut now = Time::ZERO;
        let (mut count, mut lost) = (0, 0);
        let origin = self.runs.iter().find_map(Run::origin).filter(|_| is_stamped);
        for run in &mut self.runs {
            now = run.place(now, origin)?;
            for (at, trip) in run.delays() {
                // The first delay known applies before it.
                let at = if delay.is_empty() { Time::ZERO } else { at };
                let half = Duration::from_nanos(trip / 2);
                if delay.last().is_none_or(|last| last.1 != half || last.0 == at) {
                    put(&mut delay, at, half);
                }
            }
            for (at, all, missing) in run.windows(WINDOW) {
                (count, lost) = (count + all, lost + missing);
                let share = 1.0 - libm::sqrt(1.0 - missing as f64 / all as f64);
                // Below 2⁵³: exact.
                let parts = libm::rint(share * PARTS as f64) as u64;
                let share = Probability::from_ratio(parts.min(PARTS), PARTS)?;
                if loss.last().is_none_or(|last| last.1 != share || last.0 == at) {
                    put(&mut loss, at, share);
                }
            }
            if now.nanos() > LONGEST_NANOS {
                return None;
            }
        }
        let mut trace = Trace::new(Format::PING, now.since(Time::ZERO));
        trace.delay = filled(delay);
        if lost > 0 {
            trace.loss = filled(loss);
        }
        trace.remarks = self.remarks(is_stamped, count, lost);
        Some(trace)
    }

    fn remarks(&self, is_stamped: bool, count: u64, lost: u64) -> Vec<String> {
        let mut remarks = vec!["half of each round trip is the one-way delay".to_owned()];
        let intervals = || self.runs.iter().map(Run::interval);
        if !is_stamped {
            if intervals().any(|interval| matches!(interval, Interval::Usual)) {
                remarks.push("the log has no times: probes are taken to be 1 s apart, as is usual".into());
            }
            if let Some(Interval::Asked(step)) = intervals().find(|step| matches!(step, Interval::Asked(_))) {
                remarks.push(format!("probes are {step} apart, by the command's `-i`"));
            }
            let is_summed = |step: &Interval| matches!(step, Interval::Summed(_));
            if let Some(Interval::Summed(step)) = intervals().find(is_summed) {
                remarks.push(format!("probes are {step} apart, by the time in the summary"));
            }
        }
        if lost > 0 {
            remarks.push(format!(
                "{lost} of {count} probes have no answer: of each {WINDOW} probes, each direction loses its part of them"
            ));
        }
        if self.runs.len() > 1 && !is_stamped {
            remarks.push(format!("{} runs of the log follow one another", self.runs.len()));
        }
        for (count, what) in [
            (self.below, "answers below 1 ms count as 0.5 ms"),
            (self.untimed, "answers have no time: the delay before stays"),
            (self.duplicates, "answers are duplicates: left out"),
        ] {
            if count > 0 {
                remarks.push(format!("{count} {what}"));
            }
        }
        remarks
    }
}

/// Refuses another host than the one before.
fn same(source: &Source<'_>, before: Option<&str>, host: &str) -> Result<(), Problem> {
    let Some(other) = before.filter(|before| *before != host) else { return Ok(()) };
    let title = format!("the log pings several hosts: {} and {}", Found(other), Found(host));
    let problem = Problem::new(title).at(&source.span(host));
    Err(problem.help("keep the lines of one of them in a file of its own"))
}

const MOST_NUMBER: u64 = u32::MAX as u64;
const NUMBER: &str = "the number of a probe";

/// Parts of a probability.
const PARTS: u64 = 1 << 52;
