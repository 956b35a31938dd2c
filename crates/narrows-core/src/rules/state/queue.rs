//! States by expiry: one queue for each lifetime.

use super::State;
use super::store::Store;

/// The number of lifetimes.
pub(super) const LIVES: usize = 6;

/// The lifetime of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Life {
    TcpSyn,
    TcpEstablished,
    TcpFin,
    TcpRst,
    Udp,
    Other,
}

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;

/// The lifetime of a state, by protocol and, for TCP, the flags seen forward and back.
pub(super) const fn life_of(protocol: u8, seen: [u8; 2]) -> Life {
    const BOTH: u8 = SYN | FIN;
    match (protocol, seen) {
        (6, [SYN, 0]) => Life::TcpSyn,
        (6, [SYN, SYN] | [BOTH, SYN] | [SYN, BOTH]) => Life::TcpEstablished,
        (6, [BOTH, BOTH]) => Life::TcpFin,
        (6, _) => Life::TcpRst,
        (17, _) => Life::Udp,
        _ => Life::Other,
    }
}

/// A state's neighbours in its queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Links {
    before: Option<u32>,
    behind: Option<u32>,
}

/// States of one lifetime in the order in which they were last seen, and so in the order of expiry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    first: Option<u32>,
    last: Option<u32>,
}

impl Queue {
    pub(super) const EMPTY: Self = Self { first: None, last: None };

    pub(super) const fn first(&self) -> Option<u32> {
        self.first
    }

    pub(super) fn push(&mut self, at: u32, states: &mut Store<State>) {
        states[at].links = Links { before: self.last, behind: None };
        match self.last.replace(at) {
            Some(last) => states[last].links.behind = Some(at),
            None => self.first = Some(at),
        }
    }

    pub(super) fn remove(&mut self, at: u32, states: &mut Store<State>) {
        let Links { before, behind } = states[at].links;
        match before {
            Some(before) => states[before].links.behind = behind,
            None => self.first = behind,
        }
        match behind {
            Some(behind) => states[behind].links.before = before,
            None => self.last = before,
        }
    }
}
