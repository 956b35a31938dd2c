//! Changes of the network, each to be made at a future instant.
//!
//! Timeline steps are sent some time before they are due. A requested change is sent to all packet threads for an
//! instant slightly ahead, and then [decided](Decision): if every thread received it before that instant, all make
//! it; if one reached the instant first, none does. Nobody waits: whoever is first decides.
//!
//! A requested change comes with the timeline steps that follow it, which replace those sent before: the effect of a
//! step depends on the configuration before it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use narrows_core::Time;
use narrows_scenario::{EngineChange, NamedFile};

use super::decision::Decision;

/// The changes at one instant.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) at: Time,
    pub(crate) changes: Vec<EngineChange>,
    pub(crate) logged: Arc<Logged>,
}

/// What the input log records of a step.
#[derive(Debug, Default)]
pub(crate) struct Logged {
    /// Files that it names and that are not in the log yet.
    pub(crate) files: Vec<NamedFile>,
    /// The change as text, for a replay.
    pub(crate) texts: Vec<String>,
}

/// Computes the steps that count from the first packet, once its arrival time is known.
pub(crate) type FirstPacket = Box<dyn FnOnce(Time) -> Vec<Step> + Send>;

/// A requested change.
pub(crate) struct Asked {
    pub(crate) step: Step,
    pub(crate) decision: Decision,
    /// The following steps known so far.
    pub(crate) then: VecDeque<Step>,
    /// Steps that count from the first packet, if it has not arrived yet.
    pub(crate) first: Option<FirstPacket>,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked")
            .field("step", &self.step)
            .field("decision", &self.decision)
            .finish_non_exhaustive()
    }
}

/// Pending changes.
#[derive(Default)]
pub(crate) struct Changes {
    /// In order of time.
    steps: VecDeque<Step>,
    /// In order of arrival, which is their order in time.
    asked: VecDeque<Asked>,
    first: Option<FirstPacket>,
    first_at: Option<Time>,
}

impl Changes {
    /// Adds steps that follow all those sent before.
    pub(crate) fn follow(&mut self, steps: Vec<Step>) {
        match self.asked.back_mut() {
            Some(asked) => asked.then.extend(steps),
            None => self.steps.extend(steps),
        }
    }

    /// Sets what to do when the first packet arrives.
    pub(crate) fn await_first_packet(&mut self, first: Option<FirstPacket>) {
        self.first = first;
    }

    pub(crate) fn ask(&mut self, asked: Asked) {
        self.asked.push_back(asked);
    }

    /// The instant of the next change.
    pub(crate) fn next(&self) -> Option<Time> {
        let asked = self.asked.front().map(|asked| asked.step.at);
        let step = self.steps.front().map(|step| step.at);
        [asked, step].into_iter().flatten().min()
    }

    /// The first packet arrived at this instant; returns whether it was awaited.
    pub(super) fn first_packet(&mut self, at: Time) -> bool {
        let Some(first) = self.first.take() else { return false };
        self.first_at = Some(at);
        // Steps computed without it are computed again.
        self.steps.retain(|step| step.at <= at);
        self.steps.extend(first(at));
        true
    }

    /// Takes the next step, up to an instant.
    pub(super) fn take(&mut self, until: Time) -> Option<Step> {
        loop {
            let step = self.steps.front().map(|step| step.at).filter(|&at| at <= until);
            let asked = self.asked.front().map(|asked| asked.step.at).filter(|&at| at <= until);
            match (step, asked) {
                (Some(step), Some(asked)) if step <= asked => return self.steps.pop_front(),
                (Some(_), None) => return self.steps.pop_front(),
                (_, Some(at)) => {
                    let asked = self.asked.pop_front()?;
                    if !asked.decision.give_up() {
                        continue;
                    }
                    self.steps = asked.then;
                    match (asked.first, self.first_at) {
                        (Some(first), Some(first_at)) => {
                            self.steps.extend(first(first_at).into_iter().filter(|step| step.at > at));
                        }
                        (first, _) => self.first = first,
                    }
                    return Some(asked.step);
                }
                (None, None) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(at: u64, text: &str) -> Step {
        let logged = Logged { files: Vec::new(), texts: vec![text.into()] };
        Step { at: Time::from_nanos(at), changes: Vec::new(), logged: Arc::new(logged) }
    }

    fn asked(at: u64, then: &[u64]) -> (Asked, Decision) {
        let decision = Decision::default();
        let then = then.iter().map(|&at| step(at, "after")).collect();
        (Asked { step: step(at, "asked"), decision: decision.clone(), then, first: None }, decision)
    }

    fn made(changes: &mut Changes, until: u64) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        while let Some(step) = changes.take(Time::from_nanos(until)) {
            all.push((step.at.nanos(), step.logged.texts.join(" ")));
        }
        all
    }

    #[test]
    fn a_change_that_all_were_told_of_in_time_takes_the_place_of_later_steps() {
        let mut changes = Changes::default();
        changes.follow([10, 20, 30].map(|at| step(at, "before")).into());
        let (change, decision) = asked(20, &[30]);
        changes.ask(change);
        changes.follow(vec![step(40, "after")]);
        assert_eq!(changes.next(), Some(Time::from_nanos(10)));
        assert!(decision.make());
        let expected = [(10, "before"), (20, "before"), (20, "asked"), (30, "after"), (40, "after")];
        assert_eq!(made(&mut changes, 100), expected.map(|(at, text)| (at, text.to_owned())));
    }

    #[test]
    fn a_change_that_came_too_late_for_one_is_made_by_none() {
        let mut changes = Changes::default();
        changes.follow(vec![step(10, "before"), step(30, "before")]);
        let (change, decision) = asked(20, &[30]);
        changes.ask(change);
        // It gets there before the director has told everybody.
        let expected = [(10, "before"), (30, "before")];
        assert_eq!(made(&mut changes, 100), expected.map(|(at, text)| (at, text.to_owned())));
        assert!(!decision.make(), "decided");
        // And one that is given up by the director is not made either.
        let (change, decision) = asked(120, &[]);
        changes.ask(change);
        assert!(!decision.give_up());
        assert_eq!(made(&mut changes, 200), []);
    }

    #[test]
    fn a_thread_that_lags_makes_several_changes_in_their_order() {
        let mut changes = Changes::default();
        changes.follow(vec![step(50, "before")]);
        for (at, then) in [(10, 50), (20, 60)] {
            let (change, decision) = asked(at, &[then]);
            changes.ask(change);
            assert!(decision.make());
        }
        let expected = [(10, "asked"), (20, "asked"), (60, "after")];
        assert_eq!(made(&mut changes, 100), expected.map(|(at, text)| (at, text.to_owned())));
    }

    #[test]
    fn steps_from_the_first_packet_follow_a_change_before_and_after_it() {
        let first = |text: &'static str| -> Option<FirstPacket> {
            Some(Box::new(move |at: Time| vec![step(at.nanos(), text), step(at.nanos() + 10, text)]))
        };
        let mut changes = Changes::default();
        changes.await_first_packet(first("old"));
        let (mut change, decision) = asked(100, &[]);
        change.first = first("new");
        changes.ask(change);
        assert!(decision.make());
        assert!(changes.first_packet(Time::from_nanos(95)));
        assert!(!changes.first_packet(Time::from_nanos(96)), "only once");
        let expected = [(95, "old"), (100, "asked"), (105, "new")];
        assert_eq!(made(&mut changes, 200), expected.map(|(at, text)| (at, text.to_owned())));
    }
}
