//! Packets that are longer than the link's MTU.

use super::{Link, Mtu, MtuPolicy, visit};
use crate::counters::DropReason;
use crate::packet::{Fragment, Protocol};
use crate::pool::{PacketRef, Pool};
use crate::queue::Drops;
use crate::time::Time;

impl Link {
    pub(super) fn too_long(
        &mut self,
        now: Time,
        packet: PacketRef,
        mtu: Mtu,
        pool: &mut Pool,
        drops: &mut Drops,
    ) {
        let state = pool.get(packet);
        let header = u32::from(state.network_header);
        let room = mtu.bytes.saturating_sub(header) & !7;
        let end =
            state.fragment().map_or(0, |piece| u32::from(piece.offset)) + state.length.saturating_sub(header);
        match mtu.policy {
            MtuPolicy::BlackHole => drops.push(packet, DropReason::BlackHole),
            // No IPv4 packet is longer than 65,535 bytes, and the offsets of its fragments could not be
            // encoded.
            MtuPolicy::Fragment
                if state.key.network == Protocol::Ipv4 && header > 0 && room > 0 && end <= 0xffff =>
            {
                self.cut(now, packet, header, room, pool, drops);
            }
            _ => drops.push(packet, DropReason::TooLong),
        }
    }

    /// Cuts a packet into fragments of up to `room` bytes of payload, a multiple of 8, and queues them in
    /// order.
    fn cut(
        &mut self,
        now: Time,
        packet: PacketRef,
        header: u32,
        room: u32,
        pool: &mut Pool,
        drops: &mut Drops,
    ) {
        let state = pool.get(packet);
        let whole = state.fragment().unwrap_or(Fragment { offset: 0, more: false });
        let (payload, lane) = (state.length - header, usize::from(state.lane));
        let visit = visit(self.draws.cyclic, pool, packet);
        self.counters[lane].fragmented += 1;
        let place = |offset, more| Fragment { offset: whole.offset + offset as u16, more };
        let mut offset = 0;
        while payload - offset > room {
            // Up to 8,188 fragments of an IPv4 packet, so their numbers and offsets fit in 16 bits.
            let nth = (offset / room) as u16;
            let Some(piece) = pool.duplicate(packet, &self.streams.fragments, visit, nth) else { break };
            pool.cut(piece, offset, room, place(offset, true));
            self.counters[lane].duplicated.add(header);
            self.counters[lane].pieces += 1;
            self.enqueue_piece(now, piece, pool, drops);
            offset += room;
        }
        // The packet itself becomes the last fragment: the rest of its payload.
        let left = payload - offset;
        pool.cut(packet, offset, left, place(offset, whole.more));
        if left > room {
            // The packet has reached its limit of copies.
            return drops.push(packet, DropReason::Memory);
        }
        self.enqueue_piece(now, packet, pool, drops);
    }

    fn enqueue_piece(&mut self, now: Time, piece: PacketRef, pool: &mut Pool, drops: &mut Drops) {
        if pool.over_memory_cap() {
            return drops.push(piece, DropReason::Memory);
        }
        self.enqueue(now, piece, pool, drops);
    }
}
