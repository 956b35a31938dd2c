//! A run of ping: probes with numbers, some of them answered.

use narrows_core::{Duration, Time};

use crate::units::LONGEST_NANOS;

/// Numbers of probes have 16 bits on the wire.
const WRAP: u64 = 1 << 16;

/// How far apart probes are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interval {
    Usual,
    /// By `-i`.
    Asked(Duration),
    /// By the time of the summary.
    Summed(Duration),
}

/// An answered probe.
struct Probe {
    number: u64,
    /// The round trip in nanoseconds.
    trip: Option<u64>,
    /// When the answer came, on the log's clock in nanoseconds.
    stamp: Option<u64>,
    /// When it was sent, on the trace's.
    at: Time,
}

/// A run.
pub(super) struct Run<'a> {
    pub(super) target: Option<&'a str>,
    /// Who answered first.
    pub(super) from: Option<&'a str>,
    /// In order of their numbers, which go on where those on the wire begin again.
    probes: Vec<Probe>,
    first: Option<u64>,
    /// The number of the last probe sent.
    last: Option<u64>,
    asked: Option<Duration>,
    summed: Option<Duration>,
    ended: bool,
    /// Times on the trace's clock, once it is placed.
    start: Time,
    step: u64,
}

impl<'a> Run<'a> {
    pub(super) const fn new(target: Option<&'a str>, first: Option<u64>, asked: Option<Duration>) -> Self {
        Self {
            target,
            from: None,
            probes: Vec::new(),
            first,
            last: None,
            asked,
            summed: None,
            ended: false,
            start: Time::ZERO,
            step: 0,
        }
    }

    /// Whether a probe with this number belongs to another run: this one has its summary, or that number long since.
    pub(super) fn is_behind(&self, sequence: Option<u64>) -> bool {
        // A first answer may be late by a few.
        const LATE: u64 = 10;
        let is_answered = |number: u64| self.probes.iter().take(2).any(|probe| probe.number == number);
        let is_again = |sequence: u64| {
            let is_long =
                |last: u64| last < WRAP / 2 && last > sequence + if is_answered(sequence) { 0 } else { LATE };
            sequence <= 1 && self.last.is_some_and(is_long)
        };
        self.ended || sequence.is_some_and(is_again)
    }

    /// The number of a probe in the run.
    fn number(&self, sequence: Option<u64>) -> u64 {
        let Some(last) = self.last else { return sequence.or(self.first).unwrap_or(1) };
        let Some(sequence) = sequence.map(|sequence| sequence % WRAP) else { return last + 1 };
        let number = last - last % WRAP + sequence;
        match number {
            number if number + WRAP / 2 < last => number + WRAP,
            number if number > last + WRAP / 2 && number >= WRAP => number - WRAP,
            number => number,
        }
    }

    /// Adds an answer; `false` if the probe has one.
    pub(super) fn answer(&mut self, sequence: Option<u64>, trip: Option<u64>, stamp: Option<u64>) -> bool {
        let number = self.number(sequence);
        let at = self.probes.partition_point(|probe| probe.number < number);
        if self.probes.get(at).is_some_and(|probe| probe.number == number) {
            return false;
        }
        self.sent(number);
        self.probes.insert(at, Probe { number, trip, stamp, at: Time::ZERO });
        true
    }

    pub(super) fn miss(&mut self, sequence: Option<u64>) {
        let number = self.number(sequence);
        self.sent(number);
    }

    fn sent(&mut self, number: u64) {
        self.first = Some(self.first.map_or(number, |first| first.min(number)));
        self.last = Some(self.last.map_or(number, |last| last.max(number)));
    }

    /// The summary: so many probes, and the time from the first to the last.
    pub(super) fn end(&mut self, sent: u64, lasts: Option<Duration>) {
        if sent == 0 {
            return;
        }
        self.ended = true;
        // A log without a header may lack the first probes.
        if self.target.is_some() || self.last.is_none() {
            let first = *self.first.get_or_insert(1);
            self.sent(first + sent - 1);
        }
        // Behind a lost one, ping waits.
        let answered = self.probes.last().filter(|probe| Some(probe.number) == self.last);
        let step = lasts
            .zip(answered)
            .filter(|_| sent > 1)
            .map(|(lasts, last)| lasts.nanos().saturating_sub(last.trip.unwrap_or(0)) / (sent - 1));
        self.summed = step.filter(|step| *step > 0).map(|step| match step {
            // It is a bit later each time than it is told to.
            980_000_000..1_100_000_000 => Duration::from_secs(1),
            step => Duration::from_nanos(step),
        });
    }

    /// Number of probes sent.
    pub(super) fn count(&self) -> u64 {
        self.first.zip(self.last).map_or(0, |(first, last)| last - first + 1)
    }

    pub(super) fn has_answer(&self) -> bool {
        self.probes.iter().any(|probe| probe.trip.is_some())
    }

    /// Whether all answers have a time of the log.
    pub(super) fn is_stamped(&self) -> bool {
        self.probes.iter().all(|probe| probe.stamp.is_some())
    }

    pub(super) fn interval(&self) -> Interval {
        match (self.asked, self.summed) {
            (Some(asked), _) => Interval::Asked(asked),
            (None, Some(summed)) => Interval::Summed(summed),
            (None, None) => Interval::Usual,
        }
    }

    /// When the first probe was sent, on the log's clock.
    pub(super) fn origin(&self) -> Option<u64> {
        let first = self.probes.first()?;
        let ahead = self.stamped_step().saturating_mul(first.number - self.first?);
        Some(first.stamp?.saturating_sub(first.trip.unwrap_or(0)).saturating_sub(ahead))
    }

    /// Nanoseconds from probe to probe, by the times of the log.
    fn stamped_step(&self) -> u64 {
        let ends = self.probes.first().zip(self.probes.last());
        let ends = ends.filter(|(first, last)| last.number > first.number);
        let step = ends.and_then(|(first, last)| {
            Some(last.stamp?.saturating_sub(first.stamp?) / (last.number - first.number))
        });
        step.filter(|step| *step > 0).unwrap_or_else(|| self.interval().nanos())
    }

    /// Places the run at `now` or later, by the log's times if the trace begins at `origin` on that clock. Returns its
    /// end; `None` if that is too late.
    pub(super) fn place(&mut self, now: Time, origin: Option<u64>) -> Option<Time> {
        let (first, last) = self.first.zip(self.last)?;
        self.step = if origin.is_some() { self.stamped_step() } else { self.interval().nanos() };
        let start =
            origin.and_then(|origin| self.origin()?.checked_sub(origin)).map_or(now, Time::from_nanos);
        self.start = start.max(now);
        let mut at = self.start;
        for probe in &mut self.probes {
            let even = self.step.checked_mul(probe.number - first)?.checked_add(self.start.nanos())?;
            let stamped = origin
                .zip(probe.stamp)
                .map(|(origin, stamp)| stamp.saturating_sub(origin).saturating_sub(probe.trip.unwrap_or(0)));
            at = at.max(Time::from_nanos(stamped.unwrap_or(even)));
            probe.at = at;
        }
        let end = self.instant(last)?.nanos().checked_add(self.step)?;
        (end <= LONGEST_NANOS).then_some(Time::from_nanos(end))
    }

    /// When a probe was sent.
    fn instant(&self, number: u64) -> Option<Time> {
        let next = self.probes.partition_point(|probe| probe.number < number);
        let ahead = self.probes.get(next);
        if let Some(probe) = ahead.filter(|probe| probe.number == number) {
            return Some(probe.at);
        }
        let (at, from) = match next.checked_sub(1).map(|before| &self.probes[before]) {
            Some(before) => (before.at, before.number),
            None => (self.start, self.first?),
        };
        let time = Time::from_nanos(self.step.checked_mul(number - from)?.checked_add(at.nanos())?);
        Some(ahead.map_or(time, |ahead| ahead.at.min(time)))
    }

    /// The round trips in nanoseconds.
    pub(super) fn delays(&self) -> impl Iterator<Item = (Time, u64)> {
        self.probes.iter().filter_map(|probe| Some((probe.at, probe.trip?)))
    }

    /// The start of each so many probes, how many there are, and how many have no answer.
    pub(super) fn windows(&self, size: u64) -> impl Iterator<Item = (Time, u64, u64)> {
        let (first, last) = self.first.zip(self.last).unwrap_or((1, 0));
        (first..=last).step_by(size as usize).filter_map(move |start| {
            let end = (start + size).min(last + 1);
            let below = |number: u64| self.probes.partition_point(|probe| probe.number < number);
            let answered = (below(end) - below(start)) as u64;
            Some((self.instant(start)?, end - start, end - start - answered))
        })
    }
}

impl Interval {
    pub(super) const fn nanos(self) -> u64 {
        match self {
            Self::Usual => 1_000_000_000,
            Self::Asked(step) | Self::Summed(step) => step.nanos(),
        }
    }
}
