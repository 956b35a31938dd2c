//! One thread's share of a run.

use narrows_core::{Engine, LinkId, Time};
use narrows_traffic::{Body, Sources};

use super::{Division, Fates};
use crate::drive::{MOMENT, RUSH};
use crate::error::SimError;
use crate::metered::Metered;

/// A packet between two shares.
pub(super) type Crossing = narrows_core::Crossing<Body>;

/// An engine for the whole network, and the sources at the ports of this share.
pub(super) struct Share {
    pub(super) network: Metered,
    pub(super) inputs: Sources,
    /// Events for the outputs, if they need any.
    pub(super) fates: Option<Fates>,
    /// Inputs are taken before this instant, and events handled up to it.
    last: Time,
    /// The inputs since an instant, while sources respond.
    rush: (Time, u64),
    /// The memory that packets took at the beginning of the window.
    memory: u64,
}

/// A packet that was to cross has copies here.
#[derive(Debug)]
pub(super) struct HasCopies;

impl Share {
    pub(super) fn new(
        mut engine: Engine<Body>,
        inputs: Sources,
        away: impl IntoIterator<Item = LinkId>,
        last: Time,
    ) -> Self {
        away.into_iter().for_each(|link| engine.lead_away(link));
        let network = Metered::new(engine, inputs.len());
        Self { network, inputs, fates: None, last, rush: (Time::ZERO, 0), memory: 0 }
    }

    /// When something happens next.
    pub(super) fn next(&mut self) -> Time {
        let event = self.network.engine.next_event().filter(|&at| at <= self.last);
        let input = self.inputs.peek().filter(|&at| at < self.last);
        event.into_iter().chain(input).min().unwrap_or(Time::NEVER)
    }

    /// Runs up to an instant: events and inputs before it.
    pub(super) fn run(&mut self, end: Time) -> Result<(), SimError> {
        while self.step(end)? {}
        Ok(())
    }

    /// Handles what happens at one instant before `end`, or one input there. Returns whether there was something.
    pub(super) fn step(&mut self, end: Time) -> Result<bool, SimError> {
        let is_due = |at: &Time| *at < end && *at <= self.last;
        let event = self.network.engine.next_event().filter(is_due).unwrap_or(Time::NEVER);
        let input = self.inputs.peek().filter(is_due).filter(|&at| at < self.last).unwrap_or(Time::NEVER);
        let next = event.min(input);
        if next == Time::NEVER {
            return Ok(false);
        }
        if event == next {
            self.poll(next)?
        } else {
            self.input(next)?
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
        let Self { network, fates, .. } = self;
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

    fn input(&mut self, at: Time) -> Result<(), SimError> {
        if self.network.arrived.is_some() {
            if at.since(self.rush.0) >= MOMENT {
                self.rush = (at, 0);
            }
            self.rush.1 += 1;
            if self.rush.1 > RUSH {
                return Err(SimError::Rush { at, most: RUSH });
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

    /// A window begins.
    pub(super) fn begin_window(&mut self) {
        self.network.memory_taken = 0;
        self.memory = self.network.engine.memory_used();
    }

    /// A bound on the memory that packets have taken at any instant of the window.
    pub(super) fn most_memory(&self) -> u64 {
        self.memory + self.network.memory_taken
    }
}
