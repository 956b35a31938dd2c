//! The links that packets have crossed, and when: see [`Passed`].
//!
//! Kept beside the packets' state, only in an engine that is asked to keep it. The memory of a row stays with its
//! slot, so in the long run nothing is allocated.

use alloc::vec::Vec;

use super::PacketRef;
use crate::id::LinkId;
use crate::time::{Duration, Time};

/// A link that a packet has passed, or that dropped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The link. For an instance of a link, the link that it was made of.
    pub link: LinkId,
    /// When the packet came to the link.
    pub entered: Time,
    /// How long it waited there for transmission.
    pub queued: Duration,
    /// When it left, or was dropped.
    pub left: Time,
}

/// Rows by slot.
#[derive(Debug, Default)]
pub(super) struct Trails {
    rows: Vec<Row>,
}

#[derive(Clone, Debug, Default)]
struct Row {
    passed: Vec<Passed>,
    /// Whether the packet is inside the last of these links. `queued` is then its queueing time before.
    is_inside: bool,
}

/// A longer row is freed with its packet. 32 entries are a kilobyte.
const KEPT: usize = 32;

impl Trails {
    /// A packet takes the slot.
    pub(super) fn begin(&mut self, packet: PacketRef) {
        let Some(row) = self.rows.get_mut(packet.0 as usize) else { return };
        row.is_inside = false;
        row.passed.clear();
        if row.passed.capacity() > KEPT {
            row.passed = Vec::new();
        }
    }

    /// The packet comes to a link, having waited for `queued` so far.
    pub(super) fn enter(&mut self, packet: PacketRef, link: LinkId, now: Time, queued: Duration) {
        let slot = packet.0 as usize;
        if slot >= self.rows.len() {
            self.rows.resize_with(slot + 1, Row::default);
        }
        let row = &mut self.rows[slot];
        row.passed.push(Passed { link, entered: now, queued, left: now });
        row.is_inside = true;
    }

    /// The packet leaves the link that it is in, if it is in one, having waited for `queued` in all.
    pub(super) fn leave(&mut self, packet: PacketRef, now: Time, queued: Duration) {
        let Some(row) = self.rows.get_mut(packet.0 as usize).filter(|row| row.is_inside) else { return };
        row.is_inside = false;
        if let Some(last) = row.passed.last_mut() {
            last.queued = Duration::from_nanos(queued.nanos().saturating_sub(last.queued.nanos()));
            last.left = now;
        }
    }

    pub(super) fn inherit(&mut self, packet: PacketRef, copy: PacketRef) {
        let Some(row) = self.rows.get(packet.0 as usize).cloned() else { return self.begin(copy) };
        let slot = copy.0 as usize;
        if slot >= self.rows.len() {
            self.rows.resize_with(slot + 1, Row::default);
        }
        self.rows[slot] = row;
    }

    pub(super) fn get(&self, packet: PacketRef) -> &[Passed] {
        self.rows.get(packet.0 as usize).map_or(&[], |row| &row.passed)
    }
}
