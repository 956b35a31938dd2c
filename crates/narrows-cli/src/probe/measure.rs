//! Sends probes at scheduled instants and collects their outcomes.

use std::collections::VecDeque;
use std::io;

use narrows_core::Duration;
use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::icmp::Echo;
use narrows_io::process::Signal;
use narrows_io::wait::{EndSignals, Waiting, wait};

use super::trains::{self, Measured};

/// Schedule and format of probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Interval between probes.
    pub(super) interval: Duration,
    /// Total number of probes; `None` for unlimited.
    pub(super) count: Option<u64>,
    /// Payload size in bytes.
    pub(super) size: usize,
    /// Timeout after which a probe is lost.
    pub(super) timeout: Duration,
}

/// Outcome of a probe. Times count from the first probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// When it was sent.
    pub(super) sent: Duration,
    /// When the outcome was known.
    pub(super) known: Duration,
    /// Round-trip time; `None` if no answer came in time.
    pub(super) round_trip: Option<Duration>,
}

/// Maximum number of probes stored: enough for a day at 10 ms.
const MOST: usize = 10_000_000;

/// A measurement in progress, or completed.
#[derive(Debug)]
pub(super) struct Measurement {
    echo: Echo,
    plan: Plan,
    start: MonotonicTime,
    /// When the next probe is due.
    due: MonotonicTime,
    asked: u64,
    /// Unanswered probes in order: their numbers and send times.
    waiting: VecDeque<(u64, MonotonicTime)>,
    pub(super) outcomes: Vec<Outcome>,
    /// Answers after the timeout.
    pub(super) late: u64,
    /// The signal that ended the measurement early.
    pub(super) ended_by: Option<Signal>,
}

impl Measurement {
    pub(super) fn new(echo: Echo, plan: Plan) -> Self {
        let start = clock_monotonic();
        Self {
            echo,
            plan,
            start,
            due: start,
            asked: 0,
            waiting: VecDeque::new(),
            outcomes: Vec::new(),
            late: 0,
            ended_by: None,
        }
    }

    /// Whether the address answers.
    pub(super) fn is_answered(&self) -> bool {
        self.outcomes.iter().any(|outcome| outcome.round_trip.is_some())
    }

    /// Measures the bottleneck rate with this number of trains.
    pub(super) fn trains(&self, is_v6: bool, trains: u16) -> io::Result<Option<Measured>> {
        trains::measure(&self.echo, is_v6, trains, self.plan.timeout)
    }

    pub(super) const fn asked(&self) -> u64 {
        self.asked
    }

    pub(super) const fn interval(&self) -> Duration {
        self.plan.interval
    }

    pub(super) fn is_raw(&self) -> bool {
        self.echo.is_raw()
    }

    /// Measures until all probes are answered or lost, a signal asks for the end, or `each` returns
    /// `false`. Calls `each` with each outcome and a line of statistics so far.
    pub(super) fn run(&mut self, mut each: impl FnMut(&Outcome, &str) -> bool) -> io::Result<()> {
        let mut signals = EndSignals::catch()?;
        (self.start, self.due) = (clock_monotonic(), clock_monotonic());
        loop {
            let now = clock_monotonic();
            let mut news = Vec::new();
            self.answers(&mut news)?;
            self.give_up(now, &mut news);
            let next = self.ask(now, &mut news)?;
            for outcome in news {
                self.outcomes.push(outcome);
                let line = self.line();
                if !each(&outcome, &line) {
                    return Ok(());
                }
            }
            let deadline = self.waiting.front().map(|(_, sent)| later(*sent, self.plan.timeout));
            let Some(wake) = next.into_iter().chain(deadline).min() else { return Ok(()) };
            let mut descriptors = [Waiting::readable(&self.echo), Waiting::readable(&signals)];
            wait(&mut descriptors, Some(wake))?;
            if let Some(ended) = signals.take()? {
                self.ended_by = Some(ended.signal);
                return Ok(());
            }
        }
    }

    /// Sends due probes. Returns when the next one is due; `None` if there is none.
    fn ask(&mut self, now: MonotonicTime, news: &mut Vec<Outcome>) -> io::Result<Option<MonotonicTime>> {
        while self.plan.count.is_none_or(|count| self.asked < count) && self.outcomes.len() < MOST {
            if self.due > now {
                return Ok(Some(self.due));
            }
            self.due = later(self.due, self.plan.interval);
            if later(self.due, self.plan.interval) < now {
                // The host was suspended: do not send all missed probes at once.
                self.due = later(now, self.plan.interval);
            }
            let number = self.asked;
            self.asked += 1;
            match self.echo.ask(number as u16, self.plan.size) {
                Ok(sent) => {
                    if number == 0 {
                        self.start = sent;
                    }
                    self.waiting.push_back((number, sent));
                }
                // For the first probe, an error means that there is no route; later, it counts as a loss.
                Err(cause) if number == 0 => return Err(cause),
                Err(_) => news.push(self.outcome(now, now, None)),
            }
        }
        Ok(None)
    }

    /// Collects available answers.
    fn answers(&mut self, news: &mut Vec<Outcome>) -> io::Result<()> {
        while let Some(answer) = self.echo.answer()? {
            match self.waiting.iter().position(|(number, _)| *number as u16 == answer.sequence) {
                None => self.late += 1,
                Some(index) => {
                    let (_, sent) = self.waiting.remove(index).expect("it is there");
                    let took = Duration::from_nanos(answer.at.as_nanos().saturating_sub(sent.as_nanos()));
                    news.push(self.outcome(sent, answer.at, Some(took)));
                }
            }
        }
        Ok(())
    }

    /// Marks probes as lost after the timeout.
    fn give_up(&mut self, now: MonotonicTime, news: &mut Vec<Outcome>) {
        while let Some((_, sent)) = self.waiting.front().copied() {
            if later(sent, self.plan.timeout) > now {
                return;
            }
            self.waiting.pop_front();
            news.push(self.outcome(sent, now, None));
        }
    }

    fn outcome(&self, sent: MonotonicTime, known: MonotonicTime, round_trip: Option<Duration>) -> Outcome {
        let since =
            |at: MonotonicTime| Duration::from_nanos(at.as_nanos().saturating_sub(self.start.as_nanos()));
        Outcome { sent: since(sent), known: since(known), round_trip }
    }

    fn line(&self) -> String {
        let lost = self.outcomes.iter().filter(|outcome| outcome.round_trip.is_none()).count();
        let last = self.outcomes.iter().rev().find_map(|outcome| outcome.round_trip);
        let last = last.map_or("none yet".to_owned(), |last| format!("{:.3} ms", last.seconds() * 1e3));
        format!("{} asked, {lost} lost, last round trip {last}", self.asked)
    }
}

fn later(at: MonotonicTime, span: Duration) -> MonotonicTime {
    MonotonicTime::from_nanos(at.as_nanos().saturating_add(span.nanos()))
}
