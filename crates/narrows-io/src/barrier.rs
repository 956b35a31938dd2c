//! A barrier on an interface: blocks all frames except those that narrows itself sends there.
//!
//! It is a kernel classifier (`cls_bpf` on a `clsact` qdisc), so it stays when the process that created it ends in
//! whatever way; [`crate::saved_interface`] records it. Other classifiers of the interface see the frames that pass,
//! as before.

use std::os::fd::{AsFd, AsRawFd};

use crate::bpf::{Direction, Program};
use crate::link::InterfaceIndex;
use crate::netlink::{Message, Request, u32_at};
use crate::route_socket::{NetlinkError, RouteSocket};

/// `TC_H_CLSACT`, and its hooks.
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;
/// Before every other filter.
const PRIORITY: u32 = 1;
/// Identifies our filter: "nrw".
const HANDLE: u32 = 0x6e_7277;
/// `TCA_KIND` and `TCA_OPTIONS`.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
/// `TCA_BPF_FD`, `TCA_BPF_NAME`, `TCA_BPF_FLAGS`, and the flag for direct action: the program's return value is the
/// packet's verdict.
const BPF_DESCRIPTOR: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_FLAGS: u16 = 8;
const DIRECT_ACTION: u32 = 1;
/// Its name in `tc filter show`.
const NAME: &str = "narrows-closed";

impl RouteSocket {
    /// Whether the interface has a `clsact` qdisc, which holds filters for both directions.
    pub fn has_clsact(&mut self, interface: InterfaceIndex) -> Result<bool, NetlinkError> {
        let request = Request::new(libc::RTM_GETQDISC, 0).fixed(&header(interface, 0, 0, 0));
        let all = self.list(request, "queueing disciplines")?;
        let is_it =
            |message: &Message| is_of(message, interface) && kind(message).as_deref() == Some("clsact");
        Ok(all.iter().any(is_it))
    }

    /// Whether the interface has filters in a `clsact` qdisc, other than a barrier.
    pub fn has_filters(&mut self, interface: InterfaceIndex) -> Result<bool, NetlinkError> {
        if !self.has_clsact(interface)? {
            return Ok(false);
        }
        // A list has an entry without a handle for each preference.
        let is_other = |message: &Message| {
            message.payload.len() >= 20 && ![0, HANDLE].contains(&u32_at(&message.payload, 8))
        };
        for parent in [INGRESS, EGRESS] {
            let request = Request::new(libc::RTM_GETTFILTER, 0).fixed(&header(interface, 0, parent, 0));
            if self.list(request, "filters")?.iter().any(is_other) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds a `clsact` qdisc to the interface.
    ///
    /// # Errors
    /// If it already has one, or an `ingress` qdisc in its place.
    pub fn add_clsact(&mut self, interface: InterfaceIndex) -> Result<(), NetlinkError> {
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
        let request = Request::new(libc::RTM_NEWQDISC, flags)
            .fixed(&header(interface, CLSACT_HANDLE, CLSACT, 0))
            .string(KIND, "clsact");
        self.execute(request, || {
            format!(
                "put the discipline clsact on the interface with the number {} (`tc qdisc show` says whether an `ingress` \
                 is in its place)",
                interface.0
            )
        })
    }

    /// Removes the `clsact` qdisc, unless it holds filters by now. Succeeds if it is already gone.
    pub fn remove_clsact(&mut self, interface: InterfaceIndex) -> Result<(), NetlinkError> {
        for parent in [INGRESS, EGRESS] {
            let request = Request::new(libc::RTM_GETTFILTER, 0).fixed(&header(interface, 0, parent, 0));
            match self.list(request, "filters") {
                Ok(filters) if filters.is_empty() => {}
                Ok(_) => return Ok(()),
                Err(error) => return unless_gone(Err(error)),
            }
        }
        let request = Request::new(libc::RTM_DELQDISC, 0)
            .fixed(&header(interface, CLSACT_HANDLE, CLSACT, 0))
            .string(KIND, "clsact");
        let action = || format!("take clsact off the interface with the number {}", interface.0);
        unless_gone(self.execute(request, action))
    }

    /// Creates a barrier, or replaces the program of an existing one: the program decides what passes
    /// ([`crate::bpf::TCX_NEXT`]) and what does not ([`crate::bpf::TCX_DROP`]). Needs `clsact`.
    pub fn raise_barrier(
        &mut self,
        interface: InterfaceIndex,
        direction: Direction,
        program: &Program,
    ) -> Result<(), NetlinkError> {
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
        let request = filter(libc::RTM_NEWTFILTER, flags, interface, direction).nested(OPTIONS, |options| {
            options
                .u32(BPF_DESCRIPTOR, program.as_fd().as_raw_fd() as u32)
                .string(BPF_NAME, NAME)
                .u32(BPF_FLAGS, DIRECT_ACTION)
        });
        self.execute(request, || {
            format!(
                "raise a barrier across the interface with the number {} (a filter of kind bpf and preference {PRIORITY}; \
                 `tc filter show` says what is there)",
                interface.0
            )
        })
    }

    /// Removes a barrier. Succeeds if it is already gone.
    pub fn remove_barrier(
        &mut self,
        interface: InterfaceIndex,
        direction: Direction,
    ) -> Result<(), NetlinkError> {
        let request = filter(libc::RTM_DELTFILTER, 0, interface, direction);
        let action = || format!("take the barrier away from the interface with the number {}", interface.0);
        unless_gone(self.execute(request, action))
    }
}

fn unless_gone(result: Result<(), NetlinkError>) -> Result<(), NetlinkError> {
    match result {
        Err(NetlinkError::NotFound { .. }) => Ok(()),
        // A filter whose qdisc is gone.
        Err(NetlinkError::Refused { cause, .. }) if cause.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        result => result,
    }
}

/// The beginning of every request about our filter.
fn filter(request: u16, flags: u16, interface: InterfaceIndex, direction: Direction) -> Request {
    let parent = match direction {
        Direction::Ingress => INGRESS,
        Direction::Egress => EGRESS,
    };
    let every_protocol = u32::from((libc::ETH_P_ALL as u16).to_be());
    Request::new(request, flags)
        .fixed(&header(interface, HANDLE, parent, PRIORITY << 16 | every_protocol))
        .string(KIND, "bpf")
}

/// `struct tcmsg`.
fn header(interface: InterfaceIndex, handle: u32, parent: u32, info: u32) -> [u8; 20] {
    let mut bytes = [0; 20];
    for (at, value) in [(4, interface.0), (8, handle), (12, parent), (16, info)] {
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

fn is_of(message: &Message, interface: InterfaceIndex) -> bool {
    message.payload.len() >= 20 && u32_at(&message.payload, 4) == interface.0
}

fn kind(message: &Message) -> Option<String> {
    message.attributes(20).string(KIND)
}
