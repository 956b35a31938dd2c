//! Dynamic rules: created by `keep-state` and `limit`, looked up by `check-state` (ipfw(8), "STATEFUL FIREWALL").
//!
//! A state represents a flow in both directions: addresses, protocol, and ports if the protocol has them. Each packet
//! of the flow extends the state's life by a lifetime of its kind:
//!
//! | flow | lifetime |
//! |---|---|
//! | UDP | `udp` |
//! | TCP, a SYN seen from the first side only | `tcp_syn` |
//! | TCP, a SYN seen from both, and a FIN from one at most | `tcp_established` |
//! | TCP, a SYN and a FIN seen from both | `tcp_fin` |
//! | TCP in any other case: an RST was seen, or no SYN | `tcp_rst` |
//! | any other protocol | `other` |
//!
//! Differences from the reference (`ip_fw_dynamic.c`): time is exact, not in whole seconds. A state is dead from its
//! last instant on, independent of when it is looked up. TCP segments with an old acknowledgement count like others.
//! No keepalives are sent. The counter of a limit's flows does not count as a state, and exists while one of these
//! flows does.

mod config;
mod flow;
mod queue;
mod store;
#[cfg(test)]
mod tests;
mod view;

use alloc::vec::Vec;

use crate::packet::FlowKey;
use crate::time::Time;

use super::Keep;

use flow::{Flow, Share, Way};
use queue::{FIN, LIVES, Life, Links, Queue, RST, SYN, life_of};
use store::Store;

pub use config::StateConfig;
pub use view::{StateKind, StateView};

/// Why no dynamic rule could be created for a packet. The packet is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The maximum number is reached: [`StateConfig::most`].
    Full,
    /// The maximum of the rule's `limit` is reached.
    Limit,
}

/// How often no dynamic rule could be created, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedCounts {
    /// See [`Refused::Full`].
    pub full: u64,
    /// See [`Refused::Limit`].
    pub limit: u64,
}

/// The target of a state: "the action performed upon a match will be the same as in the parent rule" (ipfw(8)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parent {
    /// The rule that created it, by the owner's identifier.
    pub rule: u32,
    /// The table value that the rule had found then, for an action with `tablearg`. The reference forgets it, so
    /// later packets of a flow go to pipe 0, which does not exist.
    pub argument: u32,
}

/// The dynamic rules of a rule set. Instants passed in must never decrease.
#[derive(Clone, Debug)]
pub struct States {
    config: StateConfig,
    states: Store<State>,
    /// The number of flows for each limit.
    shares: Store<Shared>,
    queues: [Queue; LIVES],
    refused: RefusedCounts,
    /// The number of states and shares ever created.
    made: u64,
}

#[derive(Clone, Debug)]
struct State {
    /// As seen from the side of the packet that created it.
    flow: Flow,
    /// Its sequence number: the order of listings.
    nth: u64,
    parent: Parent,
    /// The limit that it counts toward.
    share: Option<u32>,
    /// It is dead from this instant on.
    end: Time,
    life: Life,
    /// TCP flags seen, forward and back.
    seen: [u8; 2],
    links: Links,
    packets: u64,
    bytes: u64,
}

#[derive(Clone, Debug)]
struct Shared {
    share: Share,
    nth: u64,
    flows: u32,
}

/// Number of dead states removed per packet: more than a packet creates.
const BURIED_AT_ONCE: u32 = 4;

impl States {
    /// Without dynamic rules.
    pub const fn new(config: StateConfig) -> Self {
        Self {
            config,
            states: Store::new(),
            shares: Store::new(),
            queues: [Queue::EMPTY; LIVES],
            refused: RefusedCounts { full: 0, limit: 0 },
            made: 0,
        }
    }

    /// Looks up the state of a packet's flow: its parent, and whether the packet goes the other way than the one that created the
    /// state. The packet is counted, and the state's lifetime restarts at `now`.
    pub fn lookup(&mut self, now: Time, key: &FlowKey, length: u32) -> Option<(Parent, bool)> {
        if self.states.is_empty() {
            return None;
        }
        let flow = Flow::of(key);
        self.bury(now, BURIED_AT_ONCE);
        let (at, way) = self.find(now, &flow)?;
        self.refresh(now, at, way, key.tcp_flags);
        let state = &mut self.states[at];
        state.packets += 1;
        state.bytes += u64::from(length);
        Some((state.parent, matches!(way, Way::Back)))
    }

    /// Creates a state for a packet's flow with this parent. If the flow already has a state, its lifetime restarts.
    ///
    /// # Errors
    /// If there are too many states. The refusal is counted.
    pub fn install(&mut self, now: Time, key: &FlowKey, parent: Parent, keep: Keep) -> Result<(), Refused> {
        let flow = Flow::of(key);
        self.bury(now, BURIED_AT_ONCE);
        if let Some((at, way)) = self.find(now, &flow) {
            self.refresh(now, at, way, key.tcp_flags);
            return Ok(());
        }
        if self.states.len() >= self.config.most as usize {
            self.bury(now, 1);
            if self.states.len() >= self.config.most as usize {
                self.refused.full += 1;
                return Err(Refused::Full);
            }
        }
        let share = match keep {
            Keep::State => None,
            Keep::Limit { most, by } => {
                let Some(share) = self.share(now, Share { rule: parent.rule, flow: flow.by(by) }, most)
                else {
                    self.refused.limit += 1;
                    return Err(Refused::Limit);
                };
                Some(share)
            }
        };
        let (nth, life) = (self.next(), Life::Other);
        let state = State {
            flow,
            nth,
            parent,
            share,
            end: now,
            life,
            seen: [0; 2],
            links: Links::default(),
            packets: 0,
            bytes: 0,
        };
        let at = self.states.insert(flow.hash(), state);
        self.queues[life as usize].push(at, &mut self.states);
        self.refresh(now, at, Way::Forward, key.tcp_flags);
        Ok(())
    }

    /// Removes all states created by these rules, which must be in ascending order.
    pub fn remove_of(&mut self, rules: &[u32]) {
        let is_of = |state: &State| rules.binary_search(&state.parent.rule).is_ok();
        let of_rule = self.states.iter().filter(|(_, state)| is_of(state));
        for at in of_rule.map(|(at, _)| at).collect::<Vec<_>>() {
            self.remove(at);
        }
    }

    /// The number of live states.
    pub fn count(&self, now: Time) -> usize {
        self.states.iter().filter(|(_, state)| state.end > now).count()
    }

    /// How often states were refused.
    pub const fn refused(&self) -> RefusedCounts {
        self.refused
    }

    /// The live state of a flow, and the packet's direction in it.
    fn find(&mut self, now: Time, flow: &Flow) -> Option<(u32, Way)> {
        let at = self.states.find(flow.hash(), |state| state.flow.way(flow).is_some())?;
        let state = &self.states[at];
        if state.end <= now {
            self.remove(at);
            return None;
        }
        state.flow.way(flow).map(|way| (at, way))
    }

    /// Restarts the lifetime at `now`, as determined by the flags seen.
    fn refresh(&mut self, now: Time, at: u32, way: Way, tcp_flags: u8) {
        let state = &mut self.states[at];
        state.seen[way as usize] |= tcp_flags & (FIN | SYN | RST);
        let (old, new) = (state.life, life_of(state.flow.protocol, state.seen));
        state.life = new;
        state.end = now + self.config.lifetime(new);
        self.queues[old as usize].remove(at, &mut self.states);
        self.queues[new as usize].push(at, &mut self.states);
    }

    /// Adds a flow to a limit, if possible.
    fn share(&mut self, now: Time, share: Share, most: u32) -> Option<u32> {
        let same = |shared: &Shared| shared.share == share;
        let mut found = self.shares.find(share.hash(), same);
        if found.is_some_and(|at| self.shares[at].flows >= most) {
            // Some of them may be dead.
            self.bury(now, u32::MAX);
            found = self.shares.find(share.hash(), same);
        }
        let at = match found {
            Some(at) => at,
            None if most == 0 => return None,
            None => {
                let nth = self.next();
                self.shares.insert(share.hash(), Shared { share, nth, flows: 0 })
            }
        };
        let shared = &mut self.shares[at];
        (shared.flows < most).then(|| {
            shared.flows += 1;
            at
        })
    }

    /// Removes at most this many dead states.
    fn bury(&mut self, now: Time, most: u32) {
        let mut left = most;
        for life in 0..LIVES {
            while let Some(first) = self.queues[life].first() {
                if left == 0 || self.states[first].end > now {
                    break;
                }
                self.remove(first);
                left -= 1;
            }
        }
    }

    fn remove(&mut self, at: u32) {
        let State { life, share, .. } = self.states[at];
        self.queues[life as usize].remove(at, &mut self.states);
        self.states.remove(at);
        if let Some(share) = share {
            self.shares[share].flows -= 1;
            if self.shares[share].flows == 0 {
                self.shares.remove(share);
            }
        }
    }

    fn next(&mut self) -> u64 {
        self.made += 1;
        self.made
    }
}
