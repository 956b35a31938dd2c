//! Joins two interfaces of a namespace through a veth pair, so that something can be put on the way in each direction.
//!
//! ```text
//! first ── its ingress ─▶ egress of link-up ═══ veth ═══ ingress of link-down ─▶ second        and the same from second to first
//! ```
//!
//! Classifiers redirect what arrives at the two interfaces into the pair, and what arrives at the pair's ends out through the
//! interfaces. What frames pass at the pair's ends (queueing disciplines, classifiers) is the caller's.
//!
//! Classifiers are links ([`crate::bpf::Link`]): with this value, or the process, the interfaces are apart again.

use std::time::Duration;

use crate::bpf::{BpfError, Direction, Link, Pins, Program};
use crate::detour::{DetourError, redirect, tcx};
use crate::link::{InterfaceIndex, VethEnd, create_numbered_veth};
use crate::namespace::Namespace;
use crate::route_socket::{NetlinkError, RouteSocket};
use crate::{offload, stack};

/// The names of the pair's ends, and the number of the first: what crosses from the first interface to the second is sent by the first.
const ENDS: [&str; 2] = ["link-up", "link-down"];
const FIRST: u32 = 1 << 21;
/// How long the pair may take to have carrier; normally microseconds.
const CARRIER: Duration = Duration::from_secs(5);

/// Two interfaces and the pair between them.
#[derive(Debug)]
pub struct Splice {
    wire: Namespace,
    numbers: [InterfaceIndex; 2],
    ends: [InterfaceIndex; 2],
    links: Vec<Link>,
}

impl Splice {
    /// Makes the pair in the namespace of the two interfaces, for frames of at most this MTU. Nothing crosses before
    /// [`Splice::join`].
    ///
    /// # Errors
    /// If an interface is missing, or there is a pair already.
    pub fn lay(wire: &Namespace, interfaces: [&str; 2], mtu: u32) -> Result<Self, DetourError> {
        let [up, down] = ENDS.map(|name| VethEnd { namespace: wire, name, mac: None });
        create_numbered_veth(&up, InterfaceIndex(FIRST), &down, mtu)?;
        for name in ENDS {
            offload::plain_packets(wire, name)?;
            stack::silence(wire, name)?;
        }
        let mut sockets = RouteSocket::open(wire)?;
        let [here, there] = interfaces;
        let numbers = [sockets.interface_index(here)?, sockets.interface_index(there)?];
        let ends = [sockets.interface_index(ENDS[0])?, sockets.interface_index(ENDS[1])?];
        Ok(Self { wire: wire.try_clone()?, numbers, ends, links: Vec::new() })
    }

    /// The names of the pair's ends. The first sends what arrives at the first interface.
    pub fn ends(&self) -> [&'static str; 2] {
        ENDS
    }

    /// Brings the pair up and lets frames cross. `arriving` is called first with what arrives at both ends of the pair.
    ///
    /// # Errors
    /// If the kernel has no TCX links, or a privilege is missing.
    pub fn join(&mut self, arriving: Option<&Program>) -> Result<(), DetourError> {
        let mut sockets = RouteSocket::open(&self.wire)?;
        for name in ENDS {
            sockets.set_up(name)?;
        }
        for name in ENDS {
            sockets.wait_for_carrier(name, CARRIER)?;
        }
        let ([here, there], [up, down]) = (self.numbers, self.ends);
        self.links = self.wire.run(|| -> Result<_, DetourError> {
            let ways = [(down, there), (up, here), (here, up), (there, down)];
            let into = |(from, to)| tcx("narrows_splice", &redirect(to, 0), from, Direction::Ingress);
            let mut links = ways.into_iter().map(into).collect::<Result<Vec<_>, _>>()?;
            // Of several classifiers at a place, the last that was put there comes first.
            if let Some(program) = arriving {
                for end in [up, down] {
                    links.push(Link::tcx(program, end, Direction::Ingress)?);
                }
            }
            Ok(links)
        })??;
        Ok(())
    }

    /// Leaves it in place when this value and the process end, by pins; the namespace must stay, too.
    ///
    /// # Errors
    /// If something cannot be pinned.
    pub fn keep(&self, pins: &Pins) -> Result<(), BpfError> {
        self.links
            .iter()
            .enumerate()
            .try_for_each(|(number, link)| pins.keep(link, &format!("splice{number}")))
    }

    /// Frames that the kernel has dropped on arrival at the two interfaces and the pair's ends.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn dropped(&self) -> Result<u64, NetlinkError> {
        RouteSocket::open(&self.wire)?.dropped_on_arrival(&[self.numbers, self.ends].concat())
    }

    /// Sets the MTU of the pair.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn widen(&mut self, mtu: u32) -> Result<(), NetlinkError> {
        let mut sockets = RouteSocket::open(&self.wire)?;
        ENDS.into_iter().try_for_each(|name| sockets.set_mtu(name, mtu))
    }
}
