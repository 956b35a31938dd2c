//! Packet sockets (`AF_PACKET`): every frame that comes out of one interface, every frame put into it.
//!
//! Receiving and sending go by batches (`recvmmsg`, `sendmmsg`), never block, and never lose silently: what
//! the kernel dropped for want of buffer is in [`PacketSocket::statistics`], what could not be sent is in
//! [`Sent`]. Stamps are the kernel's own, made when the frame entered the interface.
//!
//! `TPACKET_V3` rings are no alternative: their block timer delays forwarding.

mod guard;
mod receive;
mod send;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub(crate) use guard::Guard;
pub use receive::{ReceiveBatch, Received};
pub(crate) use send::Pieces;
pub use send::{SendStop, Sent};

use crate::link::InterfaceIndex;
use crate::namespace::{Namespace, NamespaceError};
use crate::offloaded::join::Headers;
use crate::route_socket::{NetlinkError, RouteSocket};
use crate::socket_option::{option, set_option};

/// Frames received or sent by one system call.
pub(crate) const BATCH: usize = 64;

/// Why a packet socket could not be had, or failed.
#[derive(Debug, thiserror::Error)]
pub enum PacketSocketError {
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The interface could not be found.
    #[error(transparent)]
    Interface(#[from] NetlinkError),
    /// This process may not open packet sockets.
    #[error(
        "not allowed to open a packet socket on `{interface}`: this needs the capability CAP_NET_RAW \
         in the namespace; run it as root"
    )]
    Permission {
        /// The interface's name.
        interface: String,
    },
    /// The kernel refused a step of it.
    #[error("cannot {step} the packet socket on `{interface}`: {cause}")]
    Refused {
        /// Which step.
        step: &'static str,
        /// The interface's name.
        interface: String,
        /// What the kernel said.
        cause: io::Error,
    },
    /// The interface was switched off or removed.
    #[error("the interface `{interface}` was switched off or removed")]
    Down {
        /// The interface's name.
        interface: String,
    },
}

impl PacketSocketError {
    fn new(step: &'static str, interface: &str, cause: io::Error) -> Self {
        let interface = interface.into();
        match cause.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission { interface },
            _ => Self::Refused { step, interface, cause },
        }
    }
}

/// What the socket has seen since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketStatistics {
    /// Frames that came to the socket, dropped ones included.
    pub arrived: u64,
    /// Frames dropped because the receive buffer was full, or because they could not be cut into packets.
    pub dropped: u64,
    /// Frames that the interface refused after it had taken them for sending.
    pub refused: u64,
}

/// Trains of segments that came to a socket which carries them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrainStatistics {
    /// How many came.
    pub came: u64,
    /// The packets that they were cut into.
    pub cut: u64,
}

/// How a packet socket is to be opened.
#[derive(Clone, Copy, Debug)]
pub struct PacketSocketOptions {
    /// The receive buffer asked for, in bytes; see [`PacketSocket::receive_buffer`] for what it came to.
    pub receive_buffer: usize,
    /// Whether sent frames pass the interface's own queueing discipline. Without, they go straight to the
    /// driver: on a veth pair there is nothing to pass, on a real interface its shaping is skipped. Trains of segments that
    /// the interface cannot cut are cut by the kernel with, and refused as if the interface were full without.
    pub through_qdisc: bool,
    /// What becomes of what senders left for hardware to do.
    pub offloads: Offloads,
}

/// What becomes of what senders left for hardware to do: checksums left open, and trains of segments in one piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offloads {
    /// Senders leave nothing: the interface has no offloads, and frames come and go as they are.
    #[default]
    None,
    /// It is done on receipt: checksums are made, and trains cut into packets. Needed where the other end of a cable cannot be
    /// told to do that.
    Finished,
    /// Trains are cut into packets, their checksums stay open, and what leaves as a train again is joined
    /// ([`PacketSocket::join`]).
    Carried,
    /// Nothing is done: frames come and go whole, each behind the 10 bytes of `struct virtio_net_hdr` that describe it.
    Whole,
}

impl Default for PacketSocketOptions {
    /// 32 MiB (the kernel doubles it): a small frame is accounted as 768 bytes, so this is 85,000 of them,
    /// or half a second at 180,000 a second.
    fn default() -> Self {
        Self { receive_buffer: 32 << 20, through_qdisc: false, offloads: Offloads::None }
    }
}

/// A packet socket on one interface.
#[derive(Debug)]
pub struct PacketSocket {
    descriptor: OwnedFd,
    interface: String,
    index: InterfaceIndex,
    receive_buffer: usize,
    statistics: PacketStatistics,
    trains: TrainStatistics,
    /// Unless nothing is left, frames come and go behind a header.
    offloads: Offloads,
    /// Frames that the kernel could not describe by it, tunnels in trains for one.
    undescribed: u64,
    /// Room for what goes before the frames of one call, where trains are carried.
    headers: Vec<Headers>,
}

impl PacketSocket {
    /// Opens a socket on `interface` of `namespace` with the default options.
    pub fn open(namespace: &Namespace, interface: &str) -> Result<Self, PacketSocketError> {
        Self::open_with(namespace, interface, PacketSocketOptions::default())
    }

    /// Opens a socket on `interface` of `namespace`. Frames are received from here on; the interface may
    /// still be down.
    pub fn open_with(
        namespace: &Namespace,
        interface: &str,
        options: PacketSocketOptions,
    ) -> Result<Self, PacketSocketError> {
        let index = RouteSocket::open(namespace)?.interface_index(interface)?;
        let refused = |step| move |cause| PacketSocketError::new(step, interface, cause);
        let descriptor = namespace.run(unbound_socket)?.map_err(refused("open"))?;
        let receive_buffer = configure(&descriptor, index, options).map_err(refused("configure"))?;
        bind_to(&descriptor, index, libc::ETH_P_ALL as u16).map_err(refused("bind"))?;
        let statistics = PacketStatistics::default();
        let carries = options.offloads == Offloads::Carried;
        Ok(Self {
            descriptor,
            interface: interface.into(),
            index,
            receive_buffer,
            statistics,
            trains: TrainStatistics::default(),
            offloads: options.offloads,
            undescribed: 0,
            headers: if carries { vec![Headers::EMPTY; BATCH] } else { Vec::new() },
        })
    }

    /// The interface's name when the socket was opened.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// The interface's number.
    pub fn interface_index(&self) -> InterfaceIndex {
        self.index
    }

    /// The receive buffer in bytes, as the kernel accounts it (a small frame counts as 768, a full one as
    /// about 2,300). Without privilege over the host it is held down by `net.core.rmem_max`.
    pub fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }

    /// What came and what was dropped since the socket was opened.
    pub fn statistics(&mut self) -> Result<PacketStatistics, PacketSocketError> {
        // Reading resets the kernel's counters, so they are summed here.
        let new = read_statistics(&self.descriptor).map_err(|cause| PacketSocketError::Refused {
            step: "read the statistics of",
            interface: self.interface.clone(),
            cause,
        })?;
        self.statistics.arrived += u64::from(new.tp_packets);
        self.statistics.dropped += u64::from(new.tp_drops) + std::mem::take(&mut self.undescribed);
        Ok(self.statistics)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A socket that receives nothing yet: protocol 0. With `ETH_P_ALL` here, frames of every interface would
/// come in until it is bound.
#[expect(unsafe_code, reason = "nix has no packet protocol 0")]
fn unbound_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers are passed.
    let descriptor = nix::errno::Errno::result(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: the descriptor is fresh and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Sets all options and returns the receive buffer's size.
fn configure(socket: &OwnedFd, index: InterfaceIndex, options: PacketSocketOptions) -> io::Result<usize> {
    set_option(socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
    set_option(socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1i32)?;
    if !options.through_qdisc {
        set_option(socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)?;
    }
    if options.offloads != Offloads::None {
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1i32)?;
    }
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)?;
    be_promiscuous(socket, index)?;
    let size = i32::try_from(options.receive_buffer).unwrap_or(i32::MAX / 2);
    if set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &size).is_err() {
        set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &size)?;
    }
    let size: i32 = option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF)?;
    Ok(size.max(0) as usize)
}

/// Takes frames for whatever station, for as long as the socket is open.
fn be_promiscuous(socket: &OwnedFd, index: InterfaceIndex) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: index.0 as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

#[expect(unsafe_code, reason = "nix cannot make this address")]
fn bind_to(socket: &OwnedFd, index: InterfaceIndex, protocol: u16) -> io::Result<()> {
    // SAFETY: sockaddr_ll is plain integers, for which all zeros is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index.0 as i32;
    // SAFETY: the address is a live sockaddr_ll of the length given.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    nix::errno::Errno::result(result)?;
    Ok(())
}

fn read_statistics(socket: &OwnedFd) -> io::Result<libc::tpacket_stats> {
    option(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS)
}
