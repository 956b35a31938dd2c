//! Packet sockets (`AF_PACKET`): receive every frame of an interface, and send frames on it.
//!
//! Receiving and sending work in batches (`recvmmsg`, `sendmmsg`), never block, and never lose frames silently:
//! frames dropped by the kernel for lack of buffer space are counted in [`PacketSocket::statistics`], frames that
//! could not be sent are in [`Sent`]. Timestamps are the kernel's, taken when the frame entered the interface.
//!
//! `TPACKET_V3` rings are not an alternative: their block timer delays forwarding.

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

/// The maximum number of frames received or sent by one system call.
pub(crate) const BATCH: usize = 64;

/// Why a packet socket could not be opened, or failed.
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
    /// The kernel refused a step.
    #[error("cannot {step} the packet socket on `{interface}`: {cause}")]
    Refused {
        /// The step.
        step: &'static str,
        /// The interface's name.
        interface: String,
        /// The kernel's error.
        cause: io::Error,
    },
    /// The interface is down, or is no longer in its namespace.
    #[error("the interface `{interface}` was switched off, removed, or moved to another namespace")]
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

/// Counters of the socket since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketStatistics {
    /// Frames that arrived at the socket, including dropped ones.
    pub arrived: u64,
    /// Frames dropped because the receive buffer was full, or because they could not be split into packets.
    pub dropped: u64,
    /// Frames that the interface dropped after accepting them for sending.
    pub refused: u64,
}

/// Counters of trains received by a socket that carries them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrainStatistics {
    /// Trains received.
    pub came: u64,
    /// The packets that they were split into.
    pub cut: u64,
}

/// Options of a packet socket.
#[derive(Clone, Copy, Debug)]
pub struct PacketSocketOptions {
    /// The requested receive buffer in bytes; [`PacketSocket::receive_buffer`] returns the actual size.
    pub receive_buffer: usize,
    /// Whether sent frames pass the interface's queueing discipline. If not, they go directly to the driver: on a
    /// veth pair there is no difference, on a real interface its shaping is bypassed. Trains that the interface
    /// cannot split are split by the kernel if they pass the queueing discipline, and otherwise rejected as if the
    /// interface were full.
    pub through_qdisc: bool,
    /// How offloaded work is handled.
    pub offloads: Offloads,
}

/// How to handle work that senders leave to hardware: incomplete checksums, and trains of segments as one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offloads {
    /// There is none: the interface has no offloads, and frames are passed as they are.
    #[default]
    None,
    /// It is done on receipt: checksums are completed, and trains split into packets. Needed if offloads at the other
    /// end of a cable cannot be disabled.
    Finished,
    /// Trains are split into packets, their checksums stay incomplete, and packets that can leave as a train are
    /// joined ([`PacketSocket::join`]).
    Carried,
    /// Nothing is done: frames are passed whole, each preceded by the 10 bytes of `struct virtio_net_hdr` that
    /// describe it.
    Whole,
}

impl Default for PacketSocketOptions {
    /// 32 MiB (the kernel doubles it): a small frame is accounted as 768 bytes, so this is 85,000 of them, or half a
    /// second at 180,000 a second.
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
    /// With any mode except `None`, frames are preceded by a header.
    offloads: Offloads,
    /// Frames that the header could not describe, such as trains in tunnels.
    undescribed: u64,
    /// Frames read so far.
    taken: u64,
    /// Buffers for the headers before the frames of one call, if trains are carried.
    headers: Vec<Headers>,
    /// Whether it is that of several interfaces.
    is_shared: bool,
}

impl PacketSocket {
    /// Opens a socket on `interface` of `namespace` with the default options.
    pub fn open(namespace: &Namespace, interface: &str) -> Result<Self, PacketSocketError> {
        Self::open_with(namespace, interface, PacketSocketOptions::default())
    }

    /// Opens a socket on all interfaces of `namespace`, also on those that do not exist yet. Received frames name theirs;
    /// frames are sent by [`PacketSocket::send_each`]. Where there are many interfaces, this takes a fraction of the time
    /// per packet: one system call serves packets of all of them.
    pub fn open_on_all(namespace: &Namespace, receive_buffer: usize) -> Result<Self, PacketSocketError> {
        let options = PacketSocketOptions { receive_buffer, ..PacketSocketOptions::default() };
        Self::open_at(namespace, "all interfaces", InterfaceIndex(0), options)
    }

    /// Opens a socket on `interface` of `namespace`. Frames are received from now on; the interface may still be
    /// down.
    pub fn open_with(
        namespace: &Namespace,
        interface: &str,
        options: PacketSocketOptions,
    ) -> Result<Self, PacketSocketError> {
        let index = RouteSocket::open(namespace)?.interface_index(interface)?;
        Self::open_at(namespace, interface, index, options)
    }

    fn open_at(
        namespace: &Namespace,
        interface: &str,
        index: InterfaceIndex,
        options: PacketSocketOptions,
    ) -> Result<Self, PacketSocketError> {
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
            taken: 0,
            headers: if carries { vec![Headers::EMPTY; BATCH] } else { Vec::new() },
            is_shared: index == InterfaceIndex(0),
        })
    }

    /// The interface's name at the time of opening.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// The interface's number.
    pub fn interface_index(&self) -> InterfaceIndex {
        self.index
    }

    /// The receive buffer in bytes, as the kernel accounts it (a small frame counts as 768, a full one as about
    /// 2,300). Without privilege over the host it is limited by `net.core.rmem_max`.
    pub fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }

    /// Frames that arrived and frames dropped since the socket was opened.
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

    /// How many frames wait to be read.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn unread(&mut self) -> Result<u64, PacketSocketError> {
        let PacketStatistics { arrived, dropped, .. } = self.statistics()?;
        Ok(arrived.saturating_sub(dropped + self.taken))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A socket that receives nothing yet: protocol 0. With `ETH_P_ALL` here, it would receive frames of every interface
/// until it is bound.
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
    if index != InterfaceIndex(0) {
        be_promiscuous(socket, index)?;
    }
    let size = i32::try_from(options.receive_buffer).unwrap_or(i32::MAX / 2);
    if set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &size).is_err() {
        set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &size)?;
    }
    let size: i32 = option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF)?;
    Ok(size.max(0) as usize)
}

/// Receives frames for any station, for as long as the socket is open.
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
