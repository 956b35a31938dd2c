//! Dynamic rules in a listing.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::packet::Protocol;
use crate::time::{Duration, Time};

use super::flow::Flow;
use super::{Shared, States};

/// A dynamic rule, as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateView {
    /// The number of the rule that made it.
    pub rule: u16,
    /// What it is.
    pub kind: StateKind,
    /// What the network layer is: [`Protocol::Ipv4`], IPv6 or [`Protocol::Other`].
    pub network: Protocol,
    /// IP protocol number.
    pub protocol: u8,
    /// Where the packet came from that made it. Of [`StateKind::Limit`], zero is what need not agree.
    pub source: [u8; 16],
    /// Its source port; 0 where the protocol has none.
    pub source_port: u16,
    /// Where it went.
    pub destination: [u8; 16],
    /// Its destination port.
    pub destination_port: u16,
    /// Packets that it matched, without the first one.
    pub packets: u64,
    /// Their bytes, from the network header on.
    pub bytes: u64,
    /// How long it will live if no packet comes; of [`StateKind::Limit`], zero.
    pub left: Duration,
}

/// What a dynamic rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// Of `keep-state`.
    State,
    /// Of `limit`.
    Limited,
    /// Not a flow, but so many that count together for a `limit`.
    Limit {
        /// At least one.
        flows: u32,
    },
}

impl States {
    /// Those that there are, oldest first; `number` gives the number of a rule that has made one.
    pub fn views(&self, now: Time, number: impl Fn(u32) -> u16) -> Vec<StateView> {
        let mut views = Vec::new();
        let mut flows = BTreeMap::new();
        for (_, state) in self.states.iter().filter(|(_, state)| state.end > now) {
            let kind = match state.share {
                None => StateKind::State,
                Some(share) => {
                    *flows.entry(share).or_default() += 1;
                    StateKind::Limited
                }
            };
            let left = state.end.since(now);
            let view = view(&state.flow, number(state.parent.rule), kind);
            views.push((state.nth, StateView { packets: state.packets, bytes: state.bytes, left, ..view }));
        }
        for (at, flows) in flows {
            let Shared { share, nth, .. } = &self.shares[at];
            views.push((*nth, view(&share.flow, number(share.rule), StateKind::Limit { flows })));
        }
        views.sort_unstable_by_key(|&(nth, _)| nth);
        views.into_iter().map(|(_, view)| view).collect()
    }
}

fn view(flow: &Flow, rule: u16, kind: StateKind) -> StateView {
    StateView {
        rule,
        kind,
        network: match flow.version {
            4 => Protocol::Ipv4,
            6 => Protocol::Ipv6,
            _ => Protocol::Other,
        },
        protocol: flow.protocol,
        source: flow.source.address.to_be_bytes(),
        source_port: flow.source.port,
        destination: flow.destination.address.to_be_bytes(),
        destination_port: flow.destination.port,
        packets: 0,
        bytes: 0,
        left: Duration::ZERO,
    }
}
