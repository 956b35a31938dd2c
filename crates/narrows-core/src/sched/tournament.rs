//! The minimum of many keys, one for each flow.
//!
//! A tournament tree: four flows play against each other, the winners of four such groups play again, and so on up to
//! one winner. A group is one cache line, so a hundred thousand flows need nine rounds. A changed key replays only
//! the rounds of its flow. The opponents in these rounds are known beforehand, so the processor fetches them all at
//! once and compares without branches. This makes the tree faster than a heap, where each step depends on the last
//! one. A flow's position in the tree never changes, so it need not be stored.

use alloc::vec::Vec;

use crate::sched::FlowId;

/// The keys of flows, and their minimum. Of equal keys, the one of the flow with the lower number is the minimum.
#[derive(Debug, Default)]
pub(super) struct Tournament {
    /// A four-ary tree. Node n is at position n + 3, so the four children of node n make up group n + 1, and their
    /// winner is at position (n + 1) + 2. The root is the last entry of group 0.
    groups: Vec<Group>,
    /// The position of flow 0.
    first_leaf: usize,
    leaves: usize,
}

/// Four entries that play against each other: a key in the upper 96 bits, a flow in the lower 32, or [`NOBODY`].
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Group([u128; 4]);

const NOBODY: u128 = u128::MAX;
const ROOT: usize = 3;

impl Tournament {
    /// Makes room for the keys of flows up to this one. Present keys are kept.
    #[inline]
    pub(super) fn make_room(&mut self, flow: FlowId) {
        if flow.number() as usize >= self.leaves {
            self.grow(flow.number() as usize + 1);
        }
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let leaves = needed.max(self.leaves + self.leaves / 8).max(4);
        let inner = (leaves - 1).div_ceil(3);
        let mut groups = alloc::vec![Group([NOBODY; 4]); (inner + leaves + ROOT).div_ceil(4)];
        for flow in 0..self.leaves {
            let (from, to) = (self.first_leaf + flow, inner + ROOT + flow);
            groups[to / 4].0[to % 4] = self.groups[from / 4].0[from % 4];
        }
        for node in (0..inner).rev() {
            let winner = groups[node + 1].0.into_iter().fold(NOBODY, u128::min);
            groups[(node + ROOT) / 4].0[(node + ROOT) % 4] = winner;
        }
        *self = Self { groups, first_leaf: inner + ROOT, leaves };
    }

    /// The minimum key and its flow.
    #[inline]
    pub(super) fn least(&self) -> Option<(u64, FlowId)> {
        let winner = self.groups.first()?.0[ROOT];
        (winner != NOBODY).then(|| ((winner >> 32) as u64, FlowId::new(winner as u32)))
    }

    /// Sets the key of a flow, for which there must be room.
    #[inline]
    pub(super) fn set(&mut self, flow: FlowId, key: u64) {
        self.replay(flow, u128::from(key) << 32 | u128::from(flow.number()));
    }

    /// Removes a flow's key, if it has one.
    #[inline]
    pub(super) fn clear(&mut self, flow: FlowId) {
        self.replay(flow, NOBODY);
    }

    #[inline]
    fn replay(&mut self, flow: FlowId, player: u128) {
        let (mut place, mut winner) = (self.first_leaf + flow.number() as usize, player);
        loop {
            let (group, slot) = (&mut self.groups[place / 4].0, place % 4);
            if group[slot] == winner {
                // Nothing changes from here on.
                return;
            }
            group[slot] = winner;
            if place == ROOT {
                return;
            }
            // The three others first: they do not depend on the previous rounds.
            let others = lesser(lesser(group[slot ^ 1], group[slot ^ 2]), group[slot ^ 3]);
            winner = lesser(winner, others);
            place = place / 4 + 2;
        }
    }

    /// Subtracts `amount` from each key. No key may be less than that.
    pub(super) fn shift(&mut self, amount: u64) {
        let players = self.groups.iter_mut().flat_map(|group| &mut group.0);
        players.filter(|player| **player != NOBODY).for_each(|player| *player -= u128::from(amount) << 32);
    }
}

/// The winner is as good as random, so a branch would be mispredicted half of the time.
#[inline]
fn lesser(one: u128, other: u128) -> u128 {
    let less = one < other;
    let upper = core::hint::select_unpredictable(less, (one >> 64) as u64, (other >> 64) as u64);
    let lower = core::hint::select_unpredictable(less, one as u64, other as u64);
    u128::from(upper) << 64 | u128::from(lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_least_is_that_of_a_sorted_set(
            steps in vec((prop_oneof![0u32..10, 0u32..300], proptest::option::of(0u64..20)), 1..400),
            by in 0u64..100,
        ) {
            let mut tournament = Tournament::default();
            let mut model = BTreeSet::new();
            for (flow, key) in steps {
                tournament.make_room(FlowId::new(flow));
                model.retain(|&(_, other)| other != flow);
                match key {
                    Some(key) => {
                        tournament.set(FlowId::new(flow), key + by);
                        model.insert((key + by, flow));
                    }
                    None => tournament.clear(FlowId::new(flow)),
                }
                let least = tournament.least().map(|(key, flow)| (key, flow.number()));
                prop_assert_eq!(least, model.first().copied());
            }
            tournament.shift(by);
            while let Some((key, flow)) = tournament.least() {
                tournament.clear(flow);
                prop_assert_eq!(Some((key + by, flow.number())), model.pop_first());
            }
            prop_assert!(model.is_empty());
        }
    }
}
