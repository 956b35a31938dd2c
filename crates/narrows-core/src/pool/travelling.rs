//! Packets that move from one pool to another.

use alloc::vec::Vec;

use super::carried::Carried;
use super::{NONE, PacketRef, PacketState, Pool};
use crate::time::Time;

/// All that a pool keeps for a packet.
#[derive(Debug)]
pub(crate) struct Travelling {
    state: PacketState,
    flips: Vec<u32>,
    visits: Vec<(u32, u8)>,
    carried: Option<Carried>,
}

impl Travelling {
    /// When a packet in flight is due.
    pub(crate) const fn due(&self) -> Time {
        self.state.entered
    }
}

impl Pool {
    /// Takes a packet out. `None`, and it stays, if it is a copy or has copies: they share what is here.
    pub(crate) fn move_out(&mut self, packet: PacketRef) -> Option<Travelling> {
        let state = self.get(packet);
        if state.origin != packet.0 || state.uses() != 1 {
            return None;
        }
        let state = state.clone();
        self.inside -= 1;
        self.bytes -= state.frame_length();
        let flips = match state.flips {
            NONE => Vec::new(),
            at => {
                self.free_flips.push(at);
                core::mem::take(&mut self.flips[at as usize])
            }
        };
        let visits = self.visits.take(packet);
        let carried = self.carried.as_mut().map(|all| core::mem::take(&mut all[packet.0 as usize]));
        self.release(packet);
        Some(Travelling { state, flips, visits, carried })
    }

    /// Puts in a packet that was in another pool of the same kind.
    pub(crate) fn move_in(&mut self, packet: Travelling) -> PacketRef {
        let Travelling { state, flips, visits, carried } = packet;
        let slot = self.allocate();
        let at = match flips.is_empty() {
            true => NONE,
            false => {
                let at = self.take_flips();
                self.flips[at as usize] = flips;
                at
            }
        };
        self.inside += 1;
        self.bytes += state.frame_length();
        *self.get_mut(slot) = PacketState { next: NONE, origin: slot.0, flips: at, ..state };
        self.visits.put(slot, visits);
        if let Some(carried) = carried {
            self.carry(slot, |all, at, _| all[at] = carried);
        }
        slot
    }
}
