//! Applies measured values to a link of a run.

use narrows_core::Duration;
use narrows_live::control::{Client, ControlError};

use super::measure::Outcome;
use super::summary::{Guess, losses};
use crate::output::Failure;

/// Minimum time between two changes of a run.
const PAUSE: Duration = Duration::from_millis(10);

/// Sets a link's delay at each answer and its loss after each window.
#[derive(Debug)]
pub(super) struct Drive {
    run: Client,
    /// The link as written before the key: `access` or `access.down`.
    link: String,
    guess: Guess,
    window: Duration,
    /// Number of the current window, its outcomes so far, and the time of the last delay change.
    number: u64,
    recent: Vec<Outcome>,
    set: Option<Duration>,
    ended: Option<ControlError>,
}

impl Drive {
    /// Finds the run, and checks that the link accepts values.
    pub(super) fn start(
        link: &str,
        run: Option<&str>,
        guess: Guess,
        window: Duration,
    ) -> Result<Self, Failure> {
        let drive = Self {
            run: Client::find_or_start(run)?,
            link: link.into(),
            guess,
            window,
            number: 0,
            recent: Vec::new(),
            set: None,
            ended: None,
        };
        // Reports a missing link before the measurement starts.
        drive.ask(vec![format!("{link}.loss=0%")])?;
        Ok(drive)
    }

    /// Processes an outcome. Returns `false` when the run is over.
    pub(super) fn take(&mut self, outcome: &Outcome) -> bool {
        let mut assignments = Vec::new();
        let number = outcome.known.nanos() / self.window.nanos();
        if number > self.number {
            // Grouped by when they became known, because losses are detected late.
            let shares = losses(&self.recent, Duration::MAX);
            if let Some((_, lost)) = shares.first() {
                assignments.push(format!("{}.loss={:.6}%", self.link, self.guess.loss(*lost) * 100.0));
            }
            self.number = number;
            self.recent.clear();
        }
        self.recent.push(*outcome);
        if let Some(round_trip) = outcome.round_trip
            && self.set.is_none_or(|set| outcome.known - set >= PAUSE)
        {
            self.set = Some(outcome.known);
            assignments.push(format!("{}.delay={}", self.link, self.guess.delay(round_trip)));
        }
        if assignments.is_empty() {
            return true;
        }
        self.ended = self.ask(assignments).err();
        self.ended.is_none()
    }

    /// Why the run stopped accepting values, if it did.
    pub(super) fn ended(&mut self) -> Option<ControlError> {
        self.ended.take()
    }

    fn ask(&self, assignments: Vec<String>) -> Result<(), ControlError> {
        self.run.set(assignments, None).map(|_| ())
    }
}
