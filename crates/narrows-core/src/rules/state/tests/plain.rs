//! Dynamic rules as plain as can be: a list that is searched from end to end.

use alloc::vec::Vec;

use crate::packet::{FlowKey, Protocol};
use crate::rules::{Keep, Parent, Refused, RefusedCounts, StateConfig, StateKind, StateView};
use crate::time::{Duration, Time};

pub(super) struct States {
    config: StateConfig,
    all: Vec<State>,
    pub(super) refused: RefusedCounts,
}

struct State {
    first: FlowKey,
    rule: Parent,
    keep: Keep,
    last: Time,
    /// The union of the flags of packets each way.
    there: u8,
    back: u8,
    packets: u64,
    bytes: u64,
}

/// Addresses, ports, protocol and version.
type Tuple = ([u8; 16], u16, [u8; 16], u16, u8, bool);

fn tuple(key: &FlowKey) -> Tuple {
    let ports = matches!(key.transport, 6 | 17);
    let port = |port| if ports { port } else { 0 };
    let v6 = key.network == Protocol::Ipv6;
    (key.source, port(key.source_port), key.destination, port(key.destination_port), key.transport, v6)
}

impl State {
    fn lifetime(&self, config: &StateConfig) -> Duration {
        let (syn, fin, rst) = (2, 1, 4);
        let both = |flag| self.there & flag != 0 && self.back & flag != 0;
        match self.first.transport {
            17 => config.udp,
            6 if self.there | self.back == syn && self.back == 0 => config.tcp_syn,
            6 if (self.there | self.back) & rst != 0 || !both(syn) => config.tcp_rst,
            6 if both(fin) => config.tcp_fin,
            6 => config.tcp_established,
            _ => config.other,
        }
    }
}

impl States {
    pub(super) fn new(config: StateConfig) -> Self {
        Self { config, all: Vec::new(), refused: RefusedCounts::default() }
    }

    fn seen(&mut self, now: Time, key: &FlowKey) -> Option<&mut State> {
        self.all.retain(|state| state.last + state.lifetime(&self.config) > now);
        let (source, source_port, destination, destination_port, protocol, v6) = tuple(key);
        let reverse = (destination, destination_port, source, source_port, protocol, v6);
        let state = self.all.iter_mut().find(|state| [tuple(key), reverse].contains(&tuple(&state.first)))?;
        let way = if tuple(&state.first) == tuple(key) { &mut state.there } else { &mut state.back };
        *way |= key.tcp_flags & 7;
        state.last = now;
        Some(state)
    }

    pub(super) fn lookup(&mut self, now: Time, key: &FlowKey, length: u32) -> Option<Parent> {
        let state = self.seen(now, key)?;
        state.packets += 1;
        state.bytes += u64::from(length);
        Some(state.rule)
    }

    pub(super) fn install(
        &mut self,
        now: Time,
        key: &FlowKey,
        rule: Parent,
        keep: Keep,
    ) -> Result<(), Refused> {
        if self.seen(now, key).is_some() {
            return Ok(());
        }
        if self.all.len() >= self.config.most as usize {
            self.refused.full += 1;
            return Err(Refused::Full);
        }
        if let Keep::Limit { most, .. } = keep {
            let together = |state: &&State| {
                matches!(state.keep, Keep::Limit { .. })
                    && state.rule.rule == rule.rule
                    && counting(&state.keep, &state.first) == counting(&keep, key)
            };
            if self.all.iter().filter(together).count() >= most as usize {
                self.refused.limit += 1;
                return Err(Refused::Limit);
            }
        }
        let state = State { first: *key, rule, keep, last: now, there: 0, back: 0, packets: 0, bytes: 0 };
        self.all.push(state);
        self.seen(now, key);
        Ok(())
    }

    pub(super) fn remove_of(&mut self, rule: u32) {
        self.all.retain(|state| state.rule.rule != rule);
    }

    pub(super) fn count(&self, now: Time) -> usize {
        self.all.iter().filter(|state| state.last + state.lifetime(&self.config) > now).count()
    }

    pub(super) fn views(&self, now: Time) -> Vec<StateView> {
        let living = self.all.iter().filter(|state| state.last + state.lifetime(&self.config) > now);
        let view = |state: &State| {
            let (source, source_port, destination, destination_port, protocol, _) = tuple(&state.first);
            StateView {
                rule: state.rule.rule as u16,
                kind: match state.keep {
                    Keep::State => StateKind::State,
                    Keep::Limit { .. } => StateKind::Limited,
                },
                network: state.first.network,
                protocol,
                source,
                source_port,
                destination,
                destination_port,
                packets: state.packets,
                bytes: state.bytes,
                left: (state.last + state.lifetime(&self.config)).since(now),
            }
        };
        living.map(view).collect()
    }
}

/// What counts of a flow for its limit.
fn counting(keep: &Keep, key: &FlowKey) -> Tuple {
    let (source, source_port, destination, destination_port, protocol, v6) = tuple(key);
    match keep {
        Keep::State => tuple(key),
        Keep::Limit { by, .. } => (
            if by.source { source } else { [0; 16] },
            if by.source_port { source_port } else { 0 },
            if by.destination { destination } else { [0; 16] },
            if by.destination_port { destination_port } else { 0 },
            protocol,
            v6,
        ),
    }
}
