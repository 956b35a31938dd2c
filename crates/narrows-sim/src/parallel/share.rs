//! One thread's share of a run.

use narrows_core::{Duration, Engine, LinkId, Time};
use narrows_scenario::EngineChange;
use narrows_traffic::{Body, Sources};

use super::meeting::{Wish, Word};
use super::{Division, Fates};
use crate::changes::{Changes, ScenarioChanges};
use crate::drive::{MOMENT, PATIENCE, RUSH};
use crate::error::SimError;
use crate::metered::Metered;
use crate::whole::Whole;

/// The most steps in a window: some ten milliseconds of work.
const STEPS: u64 = 16_384;
/// The most memory of packets that enter the network in a window: how much of it is inside is only known at its end.
const MEMORY: u64 = 8 << 20;

/// A packet between two shares.
pub(super) type Crossing = narrows_core::Crossing<Body>;

/// An engine for the whole network, and the sources at the ports of this share.
pub(super) struct Share {
    pub(super) network: Metered,
    pub(super) inputs: Sources,
    /// Events for the outputs, if they need any.
    pub(super) fates: Option<Fates>,
    pub(super) timed: Option<Timed>,
    /// Inputs are taken before this instant, and events handled up to it.
    last: Time,
    /// The inputs since an instant, while sources respond, and the most of them.
    rush: (Time, u64),
    most_rush: u64,
    /// The memory that packets took at the beginning of the window.
    memory: u64,
    /// The most that they took in windows before that lasted longer.
    memory_before: u64,
    /// When the window ends.
    end: Time,
    /// Instants with events, and inputs, in the window.
    steps: u64,
    /// When an event or an input came last.
    active: Time,
}

/// A packet that was to cross has copies here.
#[derive(Debug)]
pub(super) struct HasCopies;

/// The timeline, and what it must not change.
pub(super) struct Timed {
    pub(super) changes: ScenarioChanges,
    /// The number of changes made.
    pub(super) made: u64,
    /// By link: whether it is between two shares. Its delay is then this long or longer.
    pub(super) crosses: Vec<bool>,
    pub(super) least: Duration,
}

impl Share {
    pub(super) fn new(
        mut engine: Engine<Body>,
        inputs: Sources,
        away: impl IntoIterator<Item = LinkId>,
        last: Time,
    ) -> Self {
        engine.lead_away(away);
        let network = Metered::new(engine, inputs.len());
        Self {
            network,
            inputs,
            fates: None,
            timed: None,
            last,
            rush: (Time::ZERO, 0),
            memory: 0,
            memory_before: 0,
            end: Time::ZERO,
            steps: 0,
            most_rush: RUSH,
            active: Time::ZERO,
        }
    }

    /// When something happens next.
    pub(super) fn next(&mut self) -> Time {
        let event = self.network.engine.next_event().filter(|&at| at <= self.last);
        let input = self.inputs.peek().filter(|&at| at < self.last);
        let change = self.next_change().filter(|&at| at <= self.last);
        event.into_iter().chain(input).chain(change).min().unwrap_or(Time::NEVER)
    }

    fn next_change(&mut self) -> Option<Time> {
        self.timed.as_mut()?.changes.peek()
    }

    /// Runs up to an instant: events and inputs before it. If there are too many, the others come in the next window.
    pub(super) fn run(&mut self, end: Time) -> Result<(), SimError> {
        while self.steps < STEPS && self.network.memory_taken < MEMORY && self.step(end)? {}
        Ok(())
    }

    /// Handles what happens at one instant before `end`, or one input there. Returns whether there was something.
    pub(super) fn step(&mut self, end: Time) -> Result<bool, SimError> {
        let last = self.last;
        let is_due = |at: &Time| *at < end && *at <= last;
        let event = self.network.engine.next_event().filter(is_due).unwrap_or(Time::NEVER);
        let input = self.inputs.peek().filter(is_due).filter(|&at| at < last).unwrap_or(Time::NEVER);
        let change = self.next_change().filter(is_due).unwrap_or(Time::NEVER);
        let next = event.min(change).min(input);
        if next == Time::NEVER {
            return Ok(false);
        }
        self.steps += 1;
        if event.min(input) == next {
            self.active = next;
        }
        if event == next {
            self.poll(next)?;
        } else if change == next {
            self.change(next)?;
        } else {
            self.input(next)?;
        }
        if let Some(arrived) = &mut self.network.arrived
            && !arrived.is_empty()
        {
            arrived.drain(..).for_each(|arrived| self.inputs.arrive(arrived));
        }
        Ok(true)
    }

    /// Handles all events up to an instant.
    pub(super) fn poll(&mut self, now: Time) -> Result<(), SimError> {
        poll(&mut self.network, self.fates.as_mut(), now)
    }

    /// Makes the next changes of the timeline: also those in other shares, where they meet no packet.
    fn change(&mut self, at: Time) -> Result<(), SimError> {
        let Some(timed) = &mut self.timed else { return Ok(()) };
        let mut links = Vec::new();
        for change in timed.changes.take()? {
            // Rules may send packets elsewhere than before.
            let EngineChange::Link { link, .. } = &change else {
                return Err(SimError::Whole(Whole::Timeline));
            };
            let engine = &mut self.network.engine;
            links.extend(engine.link(link));
            if let Some(fates) = &mut self.fates {
                fates.change(at);
            }
            change.make(engine, at)?;
            poll(&mut self.network, self.fates.as_mut(), at)?;
        }
        timed.made += 1;
        let engine = &self.network.engine;
        let still_divides = |&link: &LinkId| {
            let crosses = timed.crosses[link.index() as usize];
            let is_long = engine.crossing_delay(link).is_some_and(|delay| delay >= timed.least);
            !engine.makes_copies(link) && (is_long || !crosses)
        };
        if links.iter().all(still_divides) { Ok(()) } else { Err(SimError::Whole(Whole::Timeline)) }
    }

    fn input(&mut self, at: Time) -> Result<(), SimError> {
        if self.network.arrived.is_some() {
            if at.since(self.rush.0) >= MOMENT {
                self.rush = (at, 0);
            }
            self.rush.1 += 1;
            if self.rush.1 > self.most_rush {
                return Err(SimError::Whole(Whole::Rush));
            }
        }
        if let Some(fates) = &mut self.fates
            && let Some(source) = self.inputs.next_source()
        {
            fates.input(at, source);
        }
        if let Some((at, port, packet)) = self.inputs.take()? {
            self.network.hand_in(at, port, packet, None);
        }
        Ok(())
    }

    /// Takes the packets that have begun to cross, for each of the other shares. Returns when the first of them arrives.
    pub(super) fn take_crossing(
        &mut self,
        division: &Division,
        to: &mut [Vec<Crossing>],
    ) -> Result<Time, HasCopies> {
        let mut first = Time::NEVER;
        let all_left = self.network.engine.take_crossing(|crossing| {
            first = first.min(crossing.due());
            to[division.beyond(crossing.link())].push(crossing);
        });
        if all_left { Ok(first) } else { Err(HasCopies) }
    }

    /// Takes over packets from another share.
    pub(super) fn take_over(&mut self, packets: impl Iterator<Item = Crossing>) {
        packets.for_each(|crossing| self.network.engine.take_over(crossing));
    }

    /// A window begins at `next` and ends before `end`. Where the one before ended later than that, because another share did not
    /// come to its end, what was inside here then may have been there at the instants that come there now.
    pub(super) fn begin_window(&mut self, next: Time, end: Time) {
        let most = self.memory + self.network.memory_taken;
        self.memory_before = if next < self.end { most.max(self.memory_before) } else { 0 };
        self.end = end;
        self.steps = 0;
        self.network.memory_taken = 0;
        self.memory = self.network.engine.memory_used();
    }

    /// What it says at a meeting after a window.
    pub(super) fn word(&self, next: Time, wish: Wish) -> Word {
        Word {
            next,
            active: self.active,
            // At no instant of the window have packets taken more.
            memory: self.memory_before.max(self.memory + self.network.memory_taken),
            steps: self.steps,
            events: self.fates.as_ref().map_or(0, Fates::len) as u64,
            wish,
        }
    }

    /// Whether a run on one thread would no longer wait for the next change, which is due before `end`: if sources respond, and
    /// `active` is when something else happened last.
    pub(super) fn pauses(&mut self, end: Time, active: Time) -> bool {
        let change = self.next_change().filter(|&at| at < end && at <= self.last);
        self.network.arrived.is_some() && change.is_some_and(|at| at > active + PATIENCE)
    }

    /// All of so many shares together stay within the limit on inputs in a moment if each does within its part. Moments begin at
    /// different instants in each: two of its own may be one of a single thread's.
    pub(super) fn divide_rush_by(&mut self, shares: usize) {
        self.most_rush = RUSH / (2 * shares as u64);
    }
}

fn poll(network: &mut Metered, fates: Option<&mut Fates>, now: Time) -> Result<(), SimError> {
    let Some(fates) = fates else {
        while network.event(now, |_| Ok(()))? {}
        return Ok(());
    };
    while network.event(now, |event| {
        fates.note(event);
        Ok(())
    })? {
        fates.at_turn(network.engine.turn());
    }
    Ok(())
}
