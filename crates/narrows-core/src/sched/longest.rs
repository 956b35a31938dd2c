//! The flow with the most bytes.
//!
//! A heap records a flow's backlog each time that it grows, and nothing when it shrinks. So for each backlogged flow
//! there is an entry that is at least its backlog, in addition to older entries. The greatest entry identifies the
//! longest flow if it is still correct; otherwise it is corrected. The work per packet is logarithmic in the number
//! of waiting packets and does not depend on the number of flows. The number of entries is at most twice the number
//! of waiting packets plus a constant.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::sched::{FlowId, Flows};

/// Finds the flow with the most bytes.
#[derive(Debug)]
pub(super) struct Longest {
    notes: BinaryHeap<(u64, Reverse<FlowId>)>,
}

/// This many entries are always kept, so that a rebuild is worth it.
const FEW: usize = 64;

impl Longest {
    /// Looks at all flows, once.
    pub(super) fn of<F>(flows: &Flows<F>) -> Self {
        Self { notes: notes(flows.ids(), flows) }
    }

    /// A flow has got a packet.
    pub(super) fn grown<F>(&mut self, flow: FlowId, flows: &Flows<F>) {
        if self.notes.len() >= FEW + 2 * flows.waiting() as usize {
            let mut noted: Vec<FlowId> = self.notes.drain().map(|(_, Reverse(flow))| flow).collect();
            noted.sort_unstable();
            noted.dedup();
            self.notes = notes(noted.into_iter(), flows);
        }
        self.notes.push((flows.bytes(flow), Reverse(flow)));
    }

    /// The flow with the most bytes; the lowest number on a tie. `None` if no packet waits.
    pub(super) fn find<F>(&mut self, flows: &Flows<F>) -> Option<FlowId> {
        loop {
            let &note = self.notes.peek()?;
            let (said, Reverse(flow)) = note;
            let waits = flows.packets(flow) > 0;
            if waits && flows.bytes(flow) == said {
                return Some(flow);
            }
            // Remove all equal entries, otherwise they would multiply.
            while self.notes.peek() == Some(&note) {
                self.notes.pop();
            }
            if waits {
                self.notes.push((flows.bytes(flow), Reverse(flow)));
            }
        }
    }
}

fn notes<F>(ids: impl Iterator<Item = FlowId>, flows: &Flows<F>) -> BinaryHeap<(u64, Reverse<FlowId>)> {
    ids.filter(|&flow| flows.packets(flow) > 0).map(|flow| (flows.bytes(flow), Reverse(flow))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::PacketRef;
    use crate::sched::Waits;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        /// Bursts of arrivals and departures, so that notes go stale by the dozen; lengths that make ties, and zero.
        #[test]
        fn it_is_what_a_look_at_all_flows_finds(
            steps in vec((0u8..4, 0u32..12, prop_oneof![0u32..3, 0u32..1_500], 1usize..40), 1..200),
            since in 0usize..50,
        ) {
            let mut flows = Flows::default();
            let ids: Vec<FlowId> = (0..12).map(|_| flows.add(())).collect();
            let mut longest = None;
            for (number, (what, flow, length, times)) in steps.into_iter().enumerate() {
                let flow = ids[flow as usize];
                for _ in 0..times {
                    match what {
                        0..2 => {
                            flows.push(flow, Waits { packet: PacketRef::from_number(0), length });
                            if let Some(longest) = &mut longest {
                                Longest::grown(longest, flow, &flows);
                            }
                        }
                        _ => _ = flows.pop(flow),
                    }
                }
                if number < since || what == 3 {
                    continue;
                }
                let plain = ids.iter().copied().filter(|&flow| flows.packets(flow) > 0);
                let plain = plain.max_by_key(|&flow| (flows.bytes(flow), Reverse(flow)));
                let longest = longest.get_or_insert_with(|| Longest::of(&flows));
                prop_assert_eq!(longest.find(&flows), plain);
            }
        }
    }

    /// Notes are bounded by what waits, whatever has come and gone.
    #[test]
    fn notes_do_not_pile_up() {
        let mut flows = Flows::default();
        let ids: Vec<FlowId> = (0..1_000).map(|_| flows.add(())).collect();
        let mut longest = Longest::of(&flows);
        for round in 0..100_000 {
            let flow = ids[round * 7 % 1_000];
            flows.push(flow, Waits { packet: PacketRef::from_number(0), length: 100 });
            longest.grown(flow, &flows);
            if round >= 100 {
                flows.pop(ids[(round - 100) * 7 % 1_000]);
            }
            assert!(longest.notes.len() <= FEW + 2 * 101 + 1, "{round}");
        }
    }
}
