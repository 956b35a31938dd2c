//! What moves along a chain: pieces of data and the end of a stream; what waits before a toxic, and what it does next.

use std::collections::VecDeque;

use bytes::Bytes;
use narrows_core::Time;

/// Bytes that were read at once, or a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// When it was read, or left the toxic before.
    pub(crate) at: Time,
    pub(crate) data: Bytes,
}

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The source has sent everything; the other stream goes on.
    Half,
    /// The connection is closed, both ways.
    Close,
    /// The connection is reset (RST), both ways.
    Reset,
}

/// What a stage holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Piece(Piece),
    End(Time, End),
}

/// What a toxic does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It hands this on.
    Pass(Piece),
    /// It ends the stream here; what it has not handed on is discarded.
    End(Time, End),
    /// Nothing before this time; without a time, nothing before more comes in.
    Wait(Option<Time>),
}

/// What waits before a toxic.
#[derive(Debug, Default)]
pub(crate) struct Input {
    items: VecDeque<Item>,
    held: usize,
}

impl Input {
    pub(crate) fn push(&mut self, item: Item) {
        self.held += size(&item);
        self.items.push_back(item);
    }

    pub(crate) fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.held -= size(&item);
        Some(item)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes of data.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    pub(crate) fn first(&self) -> Option<&Item> {
        self.items.front()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn size(item: &Item) -> usize {
    match item {
        Item::Piece(piece) => piece.data.len(),
        Item::End(..) => 0,
    }
}
