//! The toxics of one stream of a connection, as a chain: bytes go in, later ones come out.
//!
//! ```text
//! source → stage (input, toxic) → stage (input, toxic) → outlet → destination
//! ```
//!
//! A chain knows no clock and no socket: the time is an argument. Every piece carries the time at which it was
//! *scheduled* to reach where it is, so a late [`Chain::poll`] moves no later time. A stage has room for a bounded
//! number of pieces; without room it takes nothing, and the source is read no further.

use std::collections::BTreeSet;
use std::sync::Arc;

use narrows_core::Time;

use crate::piece::{End, Input, Item, Piece, Step};
use crate::toxic::{Restarted, ToxicInUse};
use crate::toxics::{Around, Toxic};

/// Datagrams that may wait before the first toxic.
const MOST_DATAGRAMS: usize = 1024;

/// What leaves a chain.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Out {
    Piece(Piece),
    End(End),
}

#[derive(Debug)]
struct Stage {
    of: Arc<ToxicInUse>,
    toxic: Box<dyn Toxic>,
    input: Input,
    /// It has handed on the end of the stream.
    has_ended: bool,
}

impl Stage {
    fn new(of: Arc<ToxicInUse>, now: Time, around: &Around) -> Self {
        Self { toxic: of.start(now, around), of, input: Input::default(), has_ended: false }
    }

    fn has_room(&self) -> bool {
        !self.has_ended && self.input.len() < self.toxic.room()
    }
}

/// The toxics of one stream of a connection.
#[derive(Debug)]
pub(crate) struct Chain {
    around: Around,
    stages: Vec<Stage>,
    outlet: Input,
    /// Nothing more is read: the end of the stream has left some stage.
    is_closing: bool,
}

impl Chain {
    /// The chain of a new connection.
    pub(crate) fn new(toxics: &[Arc<ToxicInUse>], now: Time, around: Around) -> Self {
        let stages = toxics.iter().map(|of| Stage::new(of.clone(), now, &around)).collect();
        Self { around, stages, outlet: Input::default(), is_closing: false }
    }

    /// Whether it takes another piece.
    pub(crate) fn has_room(&self) -> bool {
        !self.is_closing
            && match self.stages.first() {
                Some(stage) => stage.has_room(),
                None => self.outlet.is_empty(),
            }
    }

    /// Takes what was read from the source.
    pub(crate) fn push(&mut self, item: Item) {
        self.is_closing |= matches!(item, Item::End(..));
        self.into(0).push(item);
    }

    /// Bytes inside.
    pub(crate) fn held(&self) -> usize {
        let stages: usize = self.stages.iter().map(|stage| stage.input.held() + stage.toxic.held()).sum();
        stages + self.outlet.held()
    }

    /// Takes a datagram. Without room it is lost: nothing can slow its sender.
    pub(crate) fn push_datagram(&mut self, piece: Piece) {
        let waiting = self.stages.first().map_or(self.outlet.len(), |stage| stage.input.len());
        if !self.is_closing && waiting < MOST_DATAGRAMS {
            self.into(0).push(Item::Piece(piece));
        }
    }

    /// Takes what has left the last toxic.
    pub(crate) fn take(&mut self) -> Option<Out> {
        match self.outlet.pop()? {
            Item::Piece(piece) => Some(Out::Piece(piece)),
            Item::End(_, end) => Some(Out::End(end)),
        }
    }

    /// Moves everything on that is due, and says when more will be.
    ///
    /// Time without a result means that nothing is due before more comes in.
    pub(crate) fn advance(&mut self, now: Time) -> Option<Time> {
        loop {
            let (mut has_moved, mut wake) = (false, None);
            for index in (0..self.stages.len()).rev() {
                let has_room = match self.stages.get(index + 1) {
                    Some(next) => next.has_room() || next.has_ended,
                    None => self.outlet.is_empty(),
                };
                let stage = &mut self.stages[index];
                if stage.has_ended {
                    stage.input.clear();
                }
                if !has_room || stage.has_ended {
                    continue;
                }
                match stage.toxic.step(now, &mut stage.input) {
                    Step::Pass(piece) => self.into(index + 1).push(Item::Piece(piece)),
                    Step::End(at, end) => {
                        stage.has_ended = true;
                        stage.input.clear();
                        self.is_closing = true;
                        self.into(index + 1).push(Item::End(at, end));
                    }
                    Step::Wait(at) => {
                        wake = wake.into_iter().chain(at).min();
                        continue;
                    }
                }
                has_moved = true;
            }
            if !has_moved {
                return wake;
            }
        }
    }

    /// The input of a stage, or the outlet behind the last one.
    fn into(&mut self, index: usize) -> &mut Input {
        match self.stages.get_mut(index) {
            Some(stage) => &mut stage.input,
            None => &mut self.outlet,
        }
    }

    /// Takes over changes of the toxics: removes, changes and appends stages.
    pub(crate) fn adopt(&mut self, toxics: &[Arc<ToxicInUse>], now: Time) {
        let kept: BTreeSet<u64> = toxics.iter().map(|toxic| toxic.id).collect();
        while let Some(index) = self.stages.iter().position(|stage| !kept.contains(&stage.of.id)) {
            self.remove(index, now);
        }
        for (index, of) in toxics.iter().enumerate() {
            match self.stages.get(index) {
                None => self.stages.push(Stage::new(of.clone(), now, &self.around)),
                Some(stage) if stage.of.change != of.change => self.change(index, of.clone(), now),
                Some(_) => {}
            }
        }
    }

    /// Removes a toxic. What waits in it goes on at once.
    fn remove(&mut self, index: usize, now: Time) {
        let mut stage = self.stages.remove(index);
        if stage.has_ended {
            return;
        }
        let removed = stage.toxic.remove(now);
        if let Some(end) = removed.end {
            self.is_closing = true;
            self.into(index).push(Item::End(now, end));
            return;
        }
        for item in removed.items {
            self.into(index).push(arriving(item, now));
        }
        while let Some(item) = stage.input.pop() {
            self.into(index).push(arriving(item, now));
        }
    }

    /// Gives a toxic new settings. If it is replaced, what it was about to hand on leaves at once.
    fn change(&mut self, index: usize, of: Arc<ToxicInUse>, now: Time) {
        let stage = &mut self.stages[index];
        let restarted = of.restart(&stage.of, now, &self.around, &mut *stage.toxic);
        stage.of = of;
        let Restarted::Replaced(toxic, released) = restarted else { return };
        stage.toxic = toxic;
        if stage.has_ended {
            return;
        }
        for item in released {
            self.into(index + 1).push(arriving(item, now));
        }
    }
}

/// The item, which leaves a toxic now, earlier than was planned.
fn arriving(item: Item, now: Time) -> Item {
    match item {
        Item::Piece(piece) => Item::Piece(Piece { at: now, ..piece }),
        Item::End(_, end) => Item::End(now, end),
    }
}

#[cfg(test)]
mod tests;
