//! The flows of a translator, found from either side.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::{End, ICMP, TCP, UDP};
use crate::time::Time;

/// A flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    protocol: u8,
    pub(super) inner: End,
    pub(super) outer: End,
    far: End,
    /// It is dead from this instant on.
    end: Time,
    pub(super) tcp: Tcp,
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    In,
    Out,
}

/// A side of the translator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Inner,
    Outer,
}

/// What has been seen of a TCP connection, for each direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tcp {
    seen: [Seen; 2],
    phase: Phase,
}

/// The phases of a TCP connection, each with a lifetime of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Opening,
    /// Both sides have opened it.
    Open,
    /// One side has closed it.
    Closing,
    Closed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Seen {
    #[default]
    Nothing,
    Opened,
    Closed,
}

impl Tcp {
    /// A segment with these flags goes this way.
    pub(super) fn see(&mut self, way: Way, flags: u8) {
        const FIN: u8 = 1;
        const SYN: u8 = 2;
        const RST: u8 = 4;
        let (own, other) = match way {
            Way::In => (0, 1),
            Way::Out => (1, 0),
        };
        let new = match self.seen[own] {
            Seen::Nothing if flags & RST != 0 => Seen::Closed,
            Seen::Nothing if flags & SYN != 0 => Seen::Opened,
            Seen::Opened if flags & (FIN | RST) != 0 => Seen::Closed,
            _ => return,
        };
        self.phase = match (new, self.seen[other]) {
            (Seen::Closed, Seen::Opened) => Phase::Closing,
            (Seen::Closed, _) => Phase::Closed,
            (Seen::Opened, Seen::Opened) => Phase::Open,
            _ => self.phase,
        };
        self.seen[own] = new;
    }

    pub(super) const fn phase(self) -> Phase {
        self.phase
    }
}

impl Flow {
    pub(super) fn new(protocol: u8, inner: End, outer: End, far: End) -> Self {
        Self { protocol, inner, outer, far, end: Time::NEVER, tcp: Tcp::default() }
    }

    fn key(&self, side: Side) -> u128 {
        let near = match side {
            Side::Inner => self.inner,
            Side::Outer => self.outer,
        };
        pack(self.protocol, near, self.far)
    }
}

/// The protocol, the end on a side, and the remote end. Flows that differ in the remote end only are neighbours.
fn pack(protocol: u8, near: End, far: End) -> u128 {
    let end = |(address, port): End| u128::from(address.to_bits()) << 16 | u128::from(port);
    u128::from(protocol) << 96 | end(near) << 48 | end(far)
}

const NOWHERE: End = (Ipv4Addr::UNSPECIFIED, 0);

/// The flows, by both sides.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    slots: Vec<Option<Flow>>,
    free: Vec<usize>,
    by: [BTreeMap<u128, usize>; 2],
    /// In the order of their ends.
    ends: BTreeSet<(Time, usize)>,
    most: usize,
}

impl Flows {
    pub(super) fn new(most: u32) -> Self {
        let by = [BTreeMap::new(), BTreeMap::new()];
        Self { slots: Vec::new(), free: Vec::new(), by, ends: BTreeSet::new(), most: most as usize }
    }

    pub(super) fn set_most(&mut self, most: u32) {
        self.most = most as usize;
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.most as u32); // as it was given
    }

    /// The numbers of live flows: of ICMP, UDP, TCP and others.
    pub(super) fn live(&self, now: Time) -> [usize; 4] {
        let mut counts = [0; 4];
        for flow in self.slots.iter().flatten().filter(|flow| flow.end > now) {
            counts[match flow.protocol {
                ICMP => 0,
                UDP => 1,
                TCP => 2,
                _ => 3,
            }] += 1;
        }
        counts
    }

    pub(super) fn get(&self, at: usize) -> &Flow {
        self.slots[at].as_ref().expect("a slot that was found is taken")
    }

    pub(super) fn get_mut(&mut self, at: usize) -> &mut Flow {
        self.slots[at].as_mut().expect("a slot that was found is taken")
    }

    /// Sets when a flow ends.
    pub(super) fn set_end(&mut self, at: usize, end: Time) {
        let flow = self.get_mut(at);
        let before = core::mem::replace(&mut flow.end, end);
        self.ends.remove(&(before, at));
        self.ends.insert((end, at));
    }

    /// The live flow with this end on a side, and this remote end.
    pub(super) fn find(&mut self, now: Time, side: Side, protocol: u8, near: End, far: End) -> Option<usize> {
        let at = *self.by[side as usize].get(&pack(protocol, near, far))?;
        self.alive(now, at)
    }

    /// A live flow with this end on a side, whatever its remote end.
    pub(super) fn any(&mut self, now: Time, side: Side, protocol: u8, near: End) -> Option<&Flow> {
        let all = pack(protocol, near, NOWHERE)..=pack(protocol, near, (Ipv4Addr::BROADCAST, u16::MAX));
        loop {
            let (_, &at) = self.by[side as usize].range(all.clone()).next()?;
            if self.alive(now, at).is_some() {
                return Some(self.get(at));
            }
        }
    }

    /// Adds a flow, in place of one with the same ends. Returns its slot; `None` if there is no room.
    pub(super) fn insert(&mut self, now: Time, flow: Flow) -> Option<usize> {
        for side in [Side::Inner, Side::Outer] {
            if let Some(&same) = self.by[side as usize].get(&flow.key(side)) {
                self.remove(same);
            }
        }
        if self.slots.len() - self.free.len() >= self.most {
            self.bury(now, 1);
            if self.slots.len() - self.free.len() >= self.most {
                return None;
            }
        }
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[at] = Some(flow);
        self.ends.insert((flow.end, at));
        for side in [Side::Inner, Side::Outer] {
            self.by[side as usize].insert(flow.key(side), at);
        }
        Some(at)
    }

    /// Removes at most this many dead flows.
    pub(super) fn bury(&mut self, now: Time, most: usize) {
        for _ in 0..most {
            match self.ends.first() {
                Some(&(end, at)) if end <= now => self.remove(at),
                _ => return,
            }
        }
    }

    /// Removes a flow if it is dead.
    fn alive(&mut self, now: Time, at: usize) -> Option<usize> {
        let flow = self.slots[at].as_ref()?;
        if flow.end > now {
            return Some(at);
        }
        self.remove(at);
        None
    }

    fn remove(&mut self, at: usize) {
        let Some(flow) = self.slots[at].take() else { return };
        self.ends.remove(&(flow.end, at));
        for side in [Side::Inner, Side::Outer] {
            self.by[side as usize].remove(&flow.key(side));
        }
        self.free.push(at);
    }
}
