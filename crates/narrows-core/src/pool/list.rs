//! Lists of packets.

use alloc::vec::Vec;

use super::{NONE, PacketRef, Pool};
use crate::time::Time;

/// A list of packets linked through the pool: it needs no memory of its own, whatever its length.
#[derive(Debug)]
pub struct PacketList {
    head: u32,
    tail: u32,
    packets: u32,
    bytes: u64,
}

impl Default for PacketList {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, packets: 0, bytes: 0 }
    }
}

impl PacketList {
    /// These packets in order of the time at which they began to wait; ties keep the given order.
    pub(crate) fn by_arrival(mut packets: Vec<PacketRef>, pool: &mut Pool) -> Self {
        packets.sort_by_key(|&packet| pool.get(packet).entered);
        let mut list = Self::default();
        packets.into_iter().for_each(|packet| list.push_back(packet, pool));
        list
    }

    /// The number of packets.
    pub const fn len(&self) -> u64 {
        self.packets as u64
    }

    /// Whether the list is empty.
    pub const fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// The sum of the packets' lengths from the network header on.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first packet.
    pub const fn front(&self) -> Option<PacketRef> {
        if self.head == NONE { None } else { Some(PacketRef(self.head)) }
    }

    /// Appends a packet, which must not be in any other list.
    #[inline]
    pub fn push_back(&mut self, packet: PacketRef, pool: &mut Pool) {
        let entered = pool.get(packet).entered;
        self.push_due(entered, packet, pool);
    }

    /// As [`PacketList::push_back`], and sets [`PacketState::entered`](super::PacketState::entered).
    #[inline(always)]
    pub(crate) fn push_due(&mut self, due: Time, packet: PacketRef, pool: &mut Pool) {
        let state = pool.get_mut(packet);
        state.entered = due;
        state.next = NONE;
        self.bytes += u64::from(state.length);
        self.packets += 1;
        match self.tail {
            NONE => self.head = packet.0,
            tail => pool.get_mut(PacketRef(tail)).next = packet.0,
        }
        self.tail = packet.0;
    }

    /// Takes the first packet.
    #[inline]
    pub fn pop_front(&mut self, pool: &mut Pool) -> Option<PacketRef> {
        let packet = self.front()?;
        let state = pool.get(packet);
        self.bytes -= u64::from(state.length);
        self.packets -= 1;
        self.head = state.next;
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(packet)
    }
}
