//! AF_XDP: frames taken from an interface's driver before the kernel makes packets of them, in memory that we share.
//!
//! ```text
//! driver ── program ──► receive ring ──► Frame ──► transmit ring ──► driver
//!    ▲     (redirects)                (in its chunk)                   │
//!    └────────────── fill ring ◄── free chunks ◄── completion ring ◄───┘
//! ```
//!
//! A [`Port`] has all queues of one interface; a [`Group`] of ports shares one memory (`umem`), so that a frame that comes
//! in by one and goes out by another is not copied by us. When few chunks are free, because many packets are on their way
//! through the network, frames are copied into buffers instead and their chunks go straight back: however many packets
//! wait, there is room for the next ones. What the kernel dropped all the same is counted ([`Port::statistics`]).
//!
//! The redirect program (`redirect`) is assembled here and stamps each frame with the host's monotonic clock, which
//! `kernel_clock` puts onto ours. It is taken off with its descriptor, so nothing is left on the interface, however the
//! process ends.
//!
//! What the kernel does for packet sockets and not here: checksums left to hardware and trains of segments come as they are,
//! so [`crate::offload::plain_packets`] must hold at the other end of a cable.

mod kernel_clock;
mod port;
mod receive;
mod redirect;
pub mod rehearsal;
pub mod ring;
mod send;
mod socket;

use std::io;

pub use crate::umem::{Chunk, Umem};
pub use port::{Group, Port, PortOptions};

use crate::bpf::BpfError;
use crate::namespace::NamespaceError;
use crate::packet_socket::PacketSocketError;
use crate::route_socket::NetlinkError;

/// Why an AF_XDP socket could not be had, or failed.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The interface could not be found.
    #[error(transparent)]
    Interface(#[from] NetlinkError),
    /// The packet socket that stands by for the interface's state.
    #[error(transparent)]
    PacketSocket(#[from] PacketSocketError),
    /// The redirect program.
    #[error("AF_XDP on `{interface}`: {cause}")]
    Program {
        /// The interface's name.
        interface: String,
        /// What is wrong.
        cause: BpfError,
    },
    /// This kernel has no AF_XDP.
    #[error("this kernel has no AF_XDP (CONFIG_XDP_SOCKETS): use the backend af_packet")]
    Unsupported,
    /// Memory that the kernel is to use may not be locked.
    #[error(
        "may not lock {mebibytes} MiB of memory for AF_XDP: raise the limit, as with `ulimit -l unlimited`, or use the backend \
         af_packet"
    )]
    LockedMemory {
        /// How much was asked for.
        mebibytes: u64,
    },
    /// Another socket has a queue of the interface.
    #[error(
        "another AF_XDP socket has queue {queue} of `{interface}`: end the program that uses it, or use the backend af_packet"
    )]
    Busy {
        /// The interface's name.
        interface: String,
        /// Which queue.
        queue: u32,
    },
    /// Frames may be longer than this kernel passes through AF_XDP.
    #[error(
        "the MTU of `{interface}` is {mtu}, and AF_XDP on this kernel takes at most {most}: lower it, as with `ip link set \
         {interface} mtu {most}`, or use the backend af_packet"
    )]
    TooLong {
        /// The interface's name.
        interface: String,
        /// Its MTU.
        mtu: u32,
        /// The most that there may be.
        most: usize,
    },
    /// The kernel refused a step of it.
    #[error("cannot {step} the AF_XDP socket on `{interface}`: {cause}")]
    Refused {
        /// Which step.
        step: &'static str,
        /// The interface's name.
        interface: String,
        /// What the kernel said.
        cause: io::Error,
    },
    /// Trains were asked for.
    #[error("af_xdp carries no trains of segments: leave out --trains, or use the backend af_packet")]
    Trains,
    /// Frames may come that are not finished.
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
        /// As asked for.
        ports: usize,
        /// The most that there may be.
        most: usize,
    },
    /// The interface was switched off or removed.
    #[error("the interface `{interface}` was switched off or removed")]
    Down {
        /// The interface's name.
        interface: String,
    },
}

impl XdpError {
    /// Whether it is for lack of what only root over the host has.
    pub fn is_of_privileges(&self) -> bool {
        matches!(self, Self::Program { cause: BpfError::Permission { .. }, .. })
    }
}
