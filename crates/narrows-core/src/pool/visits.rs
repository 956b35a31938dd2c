//! How often packets came to elements that they may visit again.
//!
//! Each packet has a short row of entries, ending with the element it visited last, which is the one looked
//! up again and again. The memory of a row stays with its slot, so in the long run nothing is allocated.

use alloc::vec::Vec;

use super::PacketRef;

/// Elements and counts, by slot. Empty in a network without cycles.
#[derive(Debug, Default)]
pub(super) struct Visits {
    rows: Vec<Vec<(u32, u8)>>,
}

/// A longer row is freed with its packet. 64 entries are half a kilobyte.
const KEPT: usize = 64;

impl Visits {
    #[inline]
    pub(super) fn count(&mut self, packet: PacketRef, element: u32) {
        let slot = packet.0 as usize;
        if slot >= self.rows.len() {
            self.rows.resize_with(slot + 1, Vec::new);
        }
        let row = &mut self.rows[slot];
        match row.iter().position(|&(visited, _)| visited == element) {
            Some(at) => {
                let (_, count) = row.remove(at);
                // A packet's visits to links and rules are limited to 255 in total, those to routers by its
                // hop limit.
                row.push((element, count.saturating_add(1)));
            }
            None => row.push((element, 1)),
        }
    }

    /// How many visits came before the latest one.
    #[inline]
    pub(super) fn earlier(&self, packet: PacketRef, element: u32) -> u8 {
        let mut row = self.rows.get(packet.0 as usize).into_iter().flatten().rev();
        row.find(|&&(visited, _)| visited == element).map_or(0, |&(_, count)| count - 1)
    }

    pub(super) fn inherit(&mut self, packet: PacketRef, copy: PacketRef) {
        let Some(row) = self.rows.get(packet.0 as usize).filter(|row| !row.is_empty()) else { return };
        let row = row.clone();
        self.put(copy, row);
    }

    /// Takes a packet's row away, for another pool.
    pub(super) fn take(&mut self, packet: PacketRef) -> Vec<(u32, u8)> {
        self.rows.get_mut(packet.0 as usize).map_or(Vec::new(), core::mem::take)
    }

    /// Puts in the row of a packet that was in another pool.
    pub(super) fn put(&mut self, packet: PacketRef, row: Vec<(u32, u8)>) {
        let slot = packet.0 as usize;
        if row.is_empty() {
            return;
        }
        if slot >= self.rows.len() {
            self.rows.resize_with(slot + 1, Vec::new);
        }
        self.rows[slot] = row;
    }

    #[inline]
    pub(super) fn forget(&mut self, packet: PacketRef) {
        if let Some(row) = self.rows.get_mut(packet.0 as usize) {
            row.clear();
            if row.capacity() > KEPT {
                *row = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_agree_with_a_map(steps in proptest::collection::vec((0u8..4, 0u32..4, 0u32..90), 1..300)) {
            let mut visits = Visits::default();
            let mut plain: BTreeMap<(u32, u32), u8> = BTreeMap::new();
            for (kind, slot, element) in steps {
                let packet = PacketRef(slot);
                match kind {
                    0 => {
                        let copy = 4 + slot;
                        visits.forget(PacketRef(copy));
                        visits.inherit(packet, PacketRef(copy));
                        plain.retain(|&(at, _), _| at != copy);
                        let own: Vec<_> = plain.iter().filter(|((at, _), _)| *at == slot).collect();
                        let own: Vec<_> = own.iter().map(|((_, to), count)| ((copy, *to), **count)).collect();
                        plain.extend(own);
                    }
                    1 if element < 9 => {
                        visits.forget(packet);
                        plain.retain(|&(at, _), _| at != slot);
                    }
                    _ => {
                        visits.count(packet, element);
                        *plain.entry((slot, element)).or_default() += 1;
                    }
                }
                for slot in 0..8 {
                    let expected = plain.get(&(slot, element)).map_or(0, |count| count - 1);
                    prop_assert_eq!(visits.earlier(PacketRef(slot), element), expected);
                }
            }
        }
    }
}
