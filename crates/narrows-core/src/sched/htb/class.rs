//! One class: its buckets, its mode, its position in the tree.

use super::{HtbClass, LEVELS, Mode, PRIORITIES, ShapedState};
use crate::sched::bucket::{self, Bucket};
use crate::sched::shaping::ShapingFault;
use crate::service::{Overhead, Work};
use crate::time::Time;
use crate::units::Bytes;

#[derive(Debug)]
pub(super) struct Class {
    /// Its index in the configuration.
    pub(super) place: u32,
    pub(super) parent: Option<u32>,
    pub(super) level: u8,
    pub(super) priority: u8,
    /// The priorities at which it or a descendant is backlogged, one bit each.
    pub(super) active: u8,
    /// Kept up to date while it or a descendant is backlogged.
    pub(super) mode: Mode,
    /// Its number among the leaves.
    pub(super) leaf: u32,
    /// Its number among its parent's children.
    pub(super) rank: u32,
    pub(super) children: u32,
    assured: Bucket,
    ceiling: Bucket,
    mpu: Bytes,
    overhead: Option<Overhead>,
    /// Bits per turn, and what is left of the turn at each level. A class in debt is skipped.
    quantum: i64,
    deficits: [i64; LEVELS],
    /// Its counters. The rest of the state is computed on request.
    pub(super) state: ShapedState,
}

/// The longest quantum that is distinguished from others, in bytes: 2³⁰.
const LONGEST_QUANTUM: u64 = 1 << 30;
/// Maximum number of turns for which a class may have to wait.
const TURNS: i64 = 64;

impl Class {
    /// Creates the class at this index. The classes before it exist; its parent counts it as a child.
    pub(super) fn new(config: &HtbClass, place: usize, made: &mut [Self]) -> Result<Self, ShapingFault> {
        let &HtbClass { parent, rate, ceil, burst, cburst, priority, quantum, mpu, overhead } = config;
        if usize::from(priority) >= PRIORITIES {
            let most = PRIORITIES as u8 - 1;
            return Err(ShapingFault::Priority { found: priority, least: 0, most });
        }
        if quantum == Bytes::new(0) {
            return Err(ShapingFault::NoQuantum);
        }
        let (assured, ceiling) = (Bucket::new(rate, burst)?, Bucket::new(ceil, cburst)?);
        let (mut level, mut rank) = (LEVELS as u8 - 1, 0);
        if let Some(parent) = parent {
            if parent >= place {
                return Err(ShapingFault::Parent { found: parent });
            }
            let parent = &mut made[parent];
            // A class at level 1 may have leaves below it, and one at level 0 may be a leaf; which one is not known
            // yet.
            level = parent.level.checked_sub(1).ok_or(ShapingFault::TooDeep { most: LEVELS })?;
            rank = parent.children;
            parent.children += 1;
        }
        let quantum = (quantum.get().min(LONGEST_QUANTUM) * 8) as i64;
        Ok(Self {
            place: place as u32,
            parent: parent.map(|parent| parent as u32),
            level,
            priority,
            active: 0,
            mode: Mode::MaySend,
            leaf: u32::MAX,
            rank,
            children: 0,
            assured,
            ceiling,
            mpu,
            overhead,
            quantum,
            deficits: [0; LEVELS],
            state: ShapedState::default(),
        })
    }

    /// It has no children: its level is 0, wherever it is.
    pub(super) const fn become_leaf(&mut self, leaf: u32) {
        (self.level, self.leaf) = (0, leaf);
    }

    pub(super) fn mode_at(&self, now: Time) -> Mode {
        if self.ceiling.tokens(now) < 0 {
            Mode::CannotSend
        } else if self.assured.tokens(now) < 0 {
            Mode::MayBorrow
        } else {
            Mode::MaySend
        }
    }

    /// When its mode differs from the recorded one, if nothing is charged until then.
    pub(super) fn next_change(&self) -> Option<Time> {
        match self.mode {
            Mode::MaySend => None,
            Mode::MayBorrow => Some(self.assured.when(0)),
            Mode::CannotSend => Some(self.ceiling.when(0)),
        }
    }

    /// Charges a packet of this class or a descendant, lent by a class at level `lender`.
    /// The cost of a packet. `links` is the overhead of the link.
    pub(super) fn cost(&self, length: u32, links: &Overhead) -> Work {
        bucket::cost(length, self.overhead.as_ref().unwrap_or(links), self.mpu)
    }

    pub(super) fn charge(&mut self, now: Time, lender: u8, cost: Work, length: u32) {
        if self.level >= lender {
            self.state.lent += u64::from(self.level == lender);
            self.assured.pay(now, cost);
        } else {
            self.state.borrowed += 1;
        }
        self.ceiling.pay(now, cost);
        self.state.sent.add(length);
    }

    /// Charges a packet to the turn of a leaf. Returns whether the turn is over.
    pub(super) fn spend(&mut self, lender: u8, cost: Work) -> bool {
        let deficit = &mut self.deficits[usize::from(lender)];
        // A packet is below 2³⁶ bits, and minimum costs beyond 2⁶² are equivalent.
        let bits = i64::try_from(cost.0 / 1_000_000_000).unwrap_or(i64::MAX / 2);
        *deficit = deficit.saturating_sub(bits);
        let over = *deficit < 0;
        if over {
            *deficit = (*deficit + self.quantum).max(-TURNS * self.quantum);
        }
        over
    }

    /// Whether a leaf may use its turn. If not, it owes less the next time.
    pub(super) fn takes_turn(&mut self, lender: u8) -> bool {
        let deficit = &mut self.deficits[usize::from(lender)];
        let takes = *deficit >= 0;
        if !takes {
            *deficit += self.quantum;
        }
        takes
    }

    pub(super) fn state(&self, now: Time) -> ShapedState {
        ShapedState {
            mode: self.mode_at(now),
            tokens: self.assured.span(now),
            ceil_tokens: self.ceiling.span(now),
            ..self.state
        }
    }
}
