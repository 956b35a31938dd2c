//! AF_XDP: receives frames from an interface's driver before the kernel creates packet buffers, in shared memory.
//!
//! ```text
//! driver ── program ──► receive ring ──► Frame ──► transmit ring ──► driver
//!    ▲     (redirects)                (in its chunk)                   │
//!    └────────────── fill ring ◄── free chunks ◄── completion ring ◄───┘
//! ```
//!
//! A [`Port`] has all queues of one interface; a [`Group`] of ports shares one memory (`umem`), so that a frame
//! received by one and sent by another is not copied by us. When few chunks are free, because many packets are in the
//! network, frames are copied into buffers and their chunks are returned at once: however many packets wait, there is
//! room for the next ones. Frames that the kernel still dropped are counted ([`Port::statistics`]).
//!
//! The redirect program (`redirect`) is assembled here and stamps each frame with the host's monotonic clock, which
//! `kernel_clock` converts to ours. It is detached when its descriptor is closed, so nothing is left on the
//! interface, however the process ends.
//!
//! Unlike with packet sockets, the kernel leaves frames with incomplete checksums and trains of segments as they are,
//! so [`crate::offload::plain_packets`] must be in effect at the other end of a cable.

mod kernel_clock;
mod port;
mod receive;
mod redirect;
pub mod rehearsal;
pub mod ring;
mod send;
mod socket;

use std::{io, sync};

pub use crate::umem::{Chunk, Umem};
pub use port::{Group, Port, PortOptions};

use crate::bpf::BpfError;
use crate::namespace::NamespaceError;
use crate::packet_socket::PacketSocketError;
use crate::route_socket::NetlinkError;

/// Whether this process's monotonic clock is the kernel's, by which BPF programs tell the time: it is, outside time namespaces.
///
/// # Errors
/// If BPF is not allowed, or the kernel does not run a program.
pub fn is_kernels_clock_ours() -> Result<bool, BpfError> {
    kernel_clock::KernelClock::compare().map(kernel_clock::KernelClock::is_ours)
}

/// Why an AF_XDP socket could not be opened, or failed.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The interface could not be found.
    #[error(transparent)]
    Interface(#[from] NetlinkError),
    /// The stand-by packet socket for the interface's state failed.
    #[error(transparent)]
    PacketSocket(#[from] PacketSocketError),
    /// The redirect program failed.
    #[error("AF_XDP on `{interface}`: {cause}")]
    Program {
        /// The interface's name.
        interface: String,
        /// The error.
        cause: BpfError,
    },
    /// This kernel has no AF_XDP.
    #[error("this kernel has no AF_XDP (CONFIG_XDP_SOCKETS): use the backend af_packet")]
    Unsupported,
    /// The shared memory may not be locked.
    #[error(
        "may not lock {mebibytes} MiB of memory for AF_XDP: raise the limit, as with `ulimit -l unlimited`, or use the backend \
         af_packet"
    )]
    LockedMemory {
        /// The requested size.
        mebibytes: u64,
    },
    /// Another socket uses a queue of the interface.
    #[error(
        "another AF_XDP socket has queue {queue} of `{interface}`: end the program that uses it, or use the backend af_packet"
    )]
    Busy {
        /// The interface's name.
        interface: String,
        /// The queue.
        queue: u32,
    },
    /// Frames may be longer than this kernel supports with AF_XDP.
    #[error(
        "the MTU of `{interface}` is {mtu}, and AF_XDP on this kernel takes at most {most}: lower it, as with `ip link set \
         {interface} mtu {most}`, or use the backend af_packet"
    )]
    TooLong {
        /// The interface's name.
        interface: String,
        /// Its MTU.
        mtu: u32,
        /// The maximum.
        most: usize,
    },
    /// The kernel refused a step.
    #[error("cannot {step} the AF_XDP socket on `{interface}`: {cause}")]
    Refused {
        /// The step.
        step: &'static str,
        /// The interface's name.
        interface: String,
        /// The kernel's error.
        cause: io::Error,
    },
    /// Trains were requested.
    #[error("af_xdp carries no trains of segments: leave out --trains, or use the backend af_packet")]
    Trains,
    /// Frames with incomplete checksums or trains may arrive.
    #[error(
        "what is at the other end of `{interface}` may leave checksums and segments to be done later, which af_xdp cannot do: \
         use the backend af_packet, which can"
    )]
    Unfinished {
        /// The interface's name.
        interface: String,
    },
    /// More ports than can share memory.
    #[error(
        "{ports} ends of cables are more than the {most} that can share the memory of AF_XDP, of which the kernel keeps a list \
         for each: use the backend af_packet"
    )]
    TooMany {
        /// The requested number.
        ports: usize,
        /// The maximum.
        most: usize,
    },
    /// The interface is down, or is no longer in its namespace.
    #[error("the interface `{interface}` was switched off, removed, or moved to another namespace")]
    Down {
        /// The interface's name.
        interface: String,
    },
}

impl XdpError {
    /// Whether the cause is a missing privilege that only root over the host has.
    pub fn is_of_privileges(&self) -> bool {
        matches!(self, Self::Program { cause: BpfError::Permission { .. }, .. })
    }
}
