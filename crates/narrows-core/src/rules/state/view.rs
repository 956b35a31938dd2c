//! Dynamic rules in a listing.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::packet::Protocol;
use crate::time::{Duration, Time};

use super::flow::Flow;
use super::{Shared, States};

/// A dynamic rule, as shown in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateView {
    /// The number of the parent rule.
    pub rule: u16,
    /// Its kind.
    pub kind: StateKind,
    /// The network layer: [`Protocol::Ipv4`], IPv6 or [`Protocol::Other`].
    pub network: Protocol,
    /// IP protocol number.
    pub protocol: u8,
    /// Source address of the packet that created it. For [`StateKind::Limit`], zero if flows need not agree in it.
    pub source: [u8; 16],
    /// Its source port; 0 if the protocol has none.
    pub source_port: u16,
    /// Destination address of that packet.
    pub destination: [u8; 16],
    /// Its destination port.
    pub destination_port: u16,
    /// Packets that it matched, without the first one.
    pub packets: u64,
    /// Their bytes, from the network header on.
    pub bytes: u64,
    /// Remaining lifetime if no packet arrives. Zero for [`StateKind::Limit`].
    pub left: Duration,
}

/// The kind of a dynamic rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// Created by `keep-state`.
    State,
    /// Created by `limit`.
    Limited,
    /// Not a flow, but the flows that count together toward a `limit`.
    Limit {
        /// The number of flows, at least one.
        flows: u32,
    },
}

impl States {
    /// The live dynamic rules, oldest first. `number` maps a parent to its rule number.
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
