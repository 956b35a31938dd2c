//! Where packets go that come in without a flow.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::{End, ICMP, TCP, UDP};

/// Leads packets that come in without a flow to an inner host. What that host sends comes from the outer end.
///
/// `None` as an outer address stands for that of the translator. Several inner hosts take turns; what they send by themselves
/// comes from other ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// Ports of TCP or UDP.
    Ports {
        /// 6 for TCP, 17 for UDP.
        protocol: u8,
        /// The inner hosts, with the first port.
        inner: Vec<(Ipv4Addr, u16)>,
        /// The outer address.
        outer: Option<Ipv4Addr>,
        /// The first outer port.
        port: u16,
        /// How many ports follow one another, at least 1.
        count: u16,
        /// For whom.
        remote: Remote,
    },
    /// A whole address.
    Address {
        /// The inner hosts.
        inner: Vec<Ipv4Addr>,
        /// The outer address.
        outer: Option<Ipv4Addr>,
    },
    /// A protocol without ports.
    Protocol {
        /// The protocol.
        protocol: u8,
        /// The inner host.
        inner: Ipv4Addr,
        /// The outer address.
        outer: Option<Ipv4Addr>,
        /// For whom.
        remote: Option<Ipv4Addr>,
    },
}

/// The remote ends that ports are redirected for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// The address, if not all.
    pub address: Option<Ipv4Addr>,
    /// The port that belongs to the first outer port, if not all. The next belongs to the next, and so on.
    pub port: Option<u16>,
}

impl Remote {
    fn is(self, far: End, nth: u16) -> bool {
        self.address.is_none_or(|address| address == far.0)
            && self.port.is_none_or(|port| port.wrapping_add(nth) == far.1)
    }
}

/// The next of several.
fn next<T: Copy>(all: &[T], turn: &mut usize) -> Option<T> {
    let one = *all.get(*turn % all.len().max(1))?;
    *turn = (*turn + 1) % all.len();
    Some(one)
}

impl Redirect {
    /// Whether it leads nowhere.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Ports { inner, count, .. } => inner.is_empty() || *count == 0,
            Self::Address { inner, .. } => inner.is_empty(),
            Self::Protocol { .. } => false,
        }
    }

    /// The outer end for a packet from an inner one.
    pub(super) fn outer_end(&self, protocol: u8, near: End, far: End, own: Ipv4Addr) -> Option<End> {
        match self {
            Self::Ports { protocol: of, inner, outer, port, count, remote, .. } => inner
                .iter()
                .filter(|_| *of == protocol && inner.len() == 1)
                .filter(|(address, _)| *address == near.0)
                .map(|(_, first)| near.1.wrapping_sub(*first))
                .find(|&nth| nth < *count && remote.is(far, nth))
                .map(|nth| (outer.unwrap_or(own), port.wrapping_add(nth))),
            &Self::Protocol { protocol: of, inner, outer, remote } => {
                let is_it = of == protocol && inner == near.0 && remote.is_none_or(|one| one == far.0);
                (is_it && is_plain(protocol)).then(|| (outer.unwrap_or(own), 0))
            }
            Self::Address { .. } => None,
        }
    }

    /// The outer address of a whole inner one.
    pub(super) fn outer_address(&self, inner: Ipv4Addr, own: Ipv4Addr) -> Option<Ipv4Addr> {
        match self {
            Self::Address { inner: all, outer } => (all[..] == [inner]).then(|| outer.unwrap_or(own)),
            _ => None,
        }
    }

    /// The inner end for a packet to an outer one.
    pub(super) fn inner_end(
        &self,
        protocol: u8,
        near: End,
        far: End,
        own: Ipv4Addr,
        turn: &mut usize,
    ) -> Option<End> {
        match self {
            Self::Ports { protocol: of, inner, outer, port, count, remote } => {
                let nth = near.1.wrapping_sub(*port);
                let is_it = *of == protocol && outer.unwrap_or(own) == near.0 && nth < *count;
                if !is_it || !remote.is(far, nth) {
                    return None;
                }
                next(inner, turn).map(|(address, first)| (address, first.wrapping_add(nth)))
            }
            &Self::Protocol { protocol: of, inner, outer, remote } => {
                let is_it = of == protocol && outer.unwrap_or(own) == near.0;
                (is_it && is_plain(protocol) && remote.is_none_or(|one| one == far.0)).then_some((inner, 0))
            }
            Self::Address { .. } => None,
        }
    }

    /// The inner address for a packet to an outer one.
    pub(super) fn inner_address(&self, to: Ipv4Addr, own: Ipv4Addr, turn: &mut usize) -> Option<Ipv4Addr> {
        match self {
            Self::Address { inner, outer } if outer.unwrap_or(own) == to => next(inner, turn),
            _ => None,
        }
    }
}

const fn is_plain(protocol: u8) -> bool {
    !matches!(protocol, ICMP | TCP | UDP)
}
