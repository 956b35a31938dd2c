//! The delay line: packets in flight, each with its own due time.
//!
//! A packet that is due no earlier than all packets before it joins a plain list; with a constant delay or
//! with order kept, that is every packet. Only packets that overtake go into a heap, so only they pay for
//! one.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use crate::pool::{PacketList, PacketRef, Pool};
use crate::time::Time;

#[derive(Debug)]
pub(crate) struct DelayLine {
    /// The due time of each is in the packet, in [`PacketState::entered`](crate::PacketState::entered).
    row: PacketList,
    /// When the first and the last packet in the list are due.
    first: Time,
    last: Time,
    overtaking: BinaryHeap<Overtaking>,
    sequence: u32,
}

/// A packet in the heap as one number: from the top, due time, number of its entry, packet. Two such numbers
/// compare without a branch, which no processor could predict in a heap.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Overtaking(Reverse<u128>);

impl Default for DelayLine {
    fn default() -> Self {
        Self {
            row: PacketList::default(),
            first: Time::NEVER,
            last: Time::ZERO,
            overtaking: BinaryHeap::new(),
            sequence: 0,
        }
    }
}

impl DelayLine {
    pub(crate) fn len(&self) -> u64 {
        self.row.len() + self.overtaking.len() as u64
    }

    /// When the next packet leaves.
    #[inline]
    pub(crate) fn next_due(&self) -> Time {
        self.first.min(self.overtaking.peek().map_or(Time::NEVER, Overtaking::due))
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, due: Time, packet: PacketRef, pool: &mut Pool) {
        if self.row.is_empty() {
            self.first = due;
        } else if due < self.last {
            return self.overtake(due, packet);
        }
        self.last = due;
        self.row.push_due(due, packet, pool);
    }

    #[inline(never)]
    fn overtake(&mut self, due: Time, packet: PacketRef) {
        // Growing by a sixteenth instead of doubling keeps the memory per packet in flight within its bound.
        if self.overtaking.len() == self.overtaking.capacity() {
            self.overtaking.reserve_exact(self.overtaking.len() / 16 + 4);
        }
        if self.overtaking.is_empty() {
            self.sequence = 0;
        } else if self.sequence == u32::MAX {
            self.renumber();
        }
        self.overtaking.push(Overtaking::new(due, self.sequence, packet));
        self.sequence += 1;
    }

    /// Takes the packet that leaves next. Of packets due at the same time, the first to enter leaves first. A
    /// packet in the list entered before one in the heap, because the last packet of the list was due later
    /// when the heap took its own.
    #[inline(always)]
    pub(crate) fn pop(&mut self, pool: &mut Pool) -> Option<PacketRef> {
        if self.overtaking.peek().is_some_and(|overtaking| overtaking.due() < self.first) {
            return self.pop_overtaking();
        }
        let packet = self.row.pop_front(pool);
        self.first = self.row.front().map_or(Time::NEVER, |next| pool.get(next).entered);
        packet
    }

    #[inline(never)]
    fn pop_overtaking(&mut self) -> Option<PacketRef> {
        self.overtaking.pop().map(|o| o.packet())
    }

    /// Renumbers the packets in the heap from 0, in the same order.
    fn renumber(&mut self) {
        let mut all = core::mem::take(&mut self.overtaking).into_vec();
        all.sort_unstable_by_key(Overtaking::sequence);
        self.sequence = all.len() as u32;
        for (overtaking, number) in all.iter_mut().zip(0..) {
            *overtaking = Overtaking::new(overtaking.due(), number, overtaking.packet());
        }
        self.overtaking = all.into();
    }
}

impl Overtaking {
    /// Ordered by due time, then by entry.
    const fn new(due: Time, sequence: u32, packet: PacketRef) -> Self {
        Self(Reverse((due.nanos() as u128) << 64 | (sequence as u128) << 32 | packet.number() as u128))
    }

    const fn due(&self) -> Time {
        Time::from_nanos((self.0.0 >> 64) as u64)
    }

    const fn sequence(&self) -> u32 {
        (self.0.0 >> 32) as u32
    }

    const fn packet(&self) -> PacketRef {
        PacketRef::from_number(self.0.0 as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::PortId;
    use crate::packet::{FlowKey, Packet, PacketId};
    use crate::units::Bytes;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn packets(count: usize) -> (Pool, Vec<PacketRef>) {
        let mut pool = Pool::new(Bytes::new(1 << 20));
        let packet = Packet {
            length: 1,
            link_header: 0,
            network_header: 0,
            headers: Default::default(),
            key: FlowKey::default(),
            body: (),
        };
        let refs = (0..count)
            .map(|n| pool.insert(PacketId::new(PortId::new(0), n as u64), Time::ZERO, &packet))
            .collect();
        (pool, refs)
    }

    proptest! {
        /// Against a stable sort by due instant, with pushes and pops mixed and renumbering forced.
        #[test]
        fn packets_leave_by_due_instant_then_by_entry(
            dues in proptest::collection::vec(0u64..30, 1..100),
            pops in proptest::collection::vec(0usize..3, 100),
            near_wrap: bool,
        ) {
            let (mut pool, refs) = packets(dues.len());
            let mut line = DelayLine::default();
            let mut plain: Vec<(u64, PacketRef)> = Vec::new();
            let mut floor = 0;
            for (i, (&due, &packet)) in dues.iter().zip(&refs).enumerate() {
                if near_wrap && !line.overtaking.is_empty() {
                    line.sequence = line.sequence.max(u32::MAX - 1);
                }
                // A packet is never due before the one that left last.
                let due = due.max(floor);
                line.push(Time::from_nanos(due), packet, &mut pool);
                plain.push((due, packet));
                plain.sort_by_key(|&(due, _)| due);
                for _ in 0..pops[i % pops.len()] {
                    let first = plain.first().map_or(Time::NEVER, |p| Time::from_nanos(p.0));
                    prop_assert_eq!(line.next_due(), first);
                    let expected = (!plain.is_empty()).then(|| plain.remove(0));
                    floor = expected.map_or(floor, |p| p.0);
                    prop_assert_eq!(line.pop(&mut pool), expected.map(|p| p.1));
                }
                prop_assert_eq!(line.len(), plain.len() as u64);
            }
        }
    }
}
