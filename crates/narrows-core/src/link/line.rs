//! The delay line: packets on their way, each due at its own instant.
//!
//! Packets that are due no earlier than all before them, which is every packet where the delay is constant or the order
//! is kept, stand in a plain row. Only a packet that overtakes goes into a heap, so that a heap's cost is paid only for
//! what a heap is needed for.

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Ordering;

use crate::pool::PacketRef;
use crate::time::Time;

#[derive(Debug, Default)]
pub(crate) struct DelayLine {
    row: VecDeque<(Time, PacketRef)>,
    overtaking: BinaryHeap<Overtaking>,
    sequence: u32,
}

/// Ordered so that the earliest due, and among equals the first to enter, is the greatest.
#[derive(Debug)]
struct Overtaking {
    due: Time,
    sequence: u32,
    packet: PacketRef,
}

impl DelayLine {
    pub(crate) fn len(&self) -> u64 {
        (self.row.len() + self.overtaking.len()) as u64
    }

    /// When the next packet leaves.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let row = self.row.front().map(|&(due, _)| due);
        let overtaking = self.overtaking.peek().map(|o| o.due);
        match (row, overtaking) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    pub(crate) fn push(&mut self, due: Time, packet: PacketRef) {
        // Growing by a quarter instead of doubling keeps the memory for a packet in flight within its bound.
        if self.row.back().is_none_or(|&(last, _)| last <= due) {
            if self.row.len() == self.row.capacity() {
                self.row.reserve_exact(self.row.len() / 4 + 4);
            }
            return self.row.push_back((due, packet));
        }
        if self.overtaking.len() == self.overtaking.capacity() {
            self.overtaking.reserve_exact(self.overtaking.len() / 4 + 4);
        }
        if self.overtaking.is_empty() {
            self.sequence = 0;
        } else if self.sequence == u32::MAX {
            self.renumber();
        }
        self.overtaking.push(Overtaking { due, sequence: self.sequence, packet });
        self.sequence += 1;
    }

    /// Takes the packet that leaves next. Of packets due at one instant, the first to enter leaves first: one in the row
    /// entered before one in the heap, because the row's last was due later when the heap took its own.
    pub(crate) fn pop(&mut self) -> Option<PacketRef> {
        let row_first = match (self.row.front(), self.overtaking.peek()) {
            (Some(&(due, _)), Some(overtaking)) => due <= overtaking.due,
            (row, _) => row.is_some(),
        };
        if row_first {
            self.row.pop_front().map(|(_, packet)| packet)
        } else {
            self.overtaking.pop().map(|o| o.packet)
        }
    }

    /// Gives the packets in the heap the numbers from 0 on, in the same order.
    fn renumber(&mut self) {
        let mut all = core::mem::take(&mut self.overtaking).into_vec();
        all.sort_unstable_by_key(|o| o.sequence);
        self.sequence = all.len() as u32;
        for (number, overtaking) in all.iter_mut().enumerate() {
            overtaking.sequence = number as u32;
        }
        self.overtaking = all.into();
    }
}

impl Ord for Overtaking {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.sequence).cmp(&(self.due, self.sequence))
    }
}

impl PartialOrd for Overtaking {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Overtaking {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Overtaking {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::PortId;
    use crate::packet::{FlowKey, Packet, PacketId};
    use crate::pool::Pool;
    use crate::units::Bytes;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn packets(count: usize) -> (Pool, Vec<PacketRef>) {
        let mut pool = Pool::new(Bytes::new(1 << 20));
        let packet =
            Packet { length: 1, link_header: 0, network_header: 0, key: FlowKey::default(), body: () };
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
            let (_, refs) = packets(dues.len());
            let mut line = DelayLine::default();
            let mut plain: Vec<(u64, PacketRef)> = Vec::new();
            let mut floor = 0;
            for (i, (&due, &packet)) in dues.iter().zip(&refs).enumerate() {
                if near_wrap && !line.overtaking.is_empty() {
                    line.sequence = line.sequence.max(u32::MAX - 1);
                }
                // A packet is never due before the one that left last.
                let due = due.max(floor);
                line.push(Time::from_nanos(due), packet);
                plain.push((due, packet));
                plain.sort_by_key(|&(due, _)| due);
                for _ in 0..pops[i % pops.len()] {
                    prop_assert_eq!(line.next_due(), plain.first().map(|p| Time::from_nanos(p.0)));
                    let expected = (!plain.is_empty()).then(|| plain.remove(0));
                    floor = expected.map_or(floor, |p| p.0);
                    prop_assert_eq!(line.pop(), expected.map(|p| p.1));
                }
                prop_assert_eq!(line.len(), plain.len() as u64);
            }
        }
    }
}
