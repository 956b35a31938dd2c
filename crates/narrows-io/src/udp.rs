//! UDP sockets with the kernel's receive timestamps, for probes that measure one-way delays.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::sys::socket::{self, ControlMessageOwned, MsgFlags, sockopt};

use crate::clock::{MonotonicTime, WallClockOffset};
use crate::namespace::Namespace;
use crate::socket_option::set_option;

/// The size of the receive buffer in bytes: some 10,000 small datagrams.
const BUFFER: usize = 8 << 20;

/// A received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its length, limited by the buffer.
    pub length: usize,
    /// When the kernel received it.
    pub stamp: Option<MonotonicTime>,
    /// DSCP and ECN of its IP header.
    pub traffic_class: Option<u8>,
}

/// A UDP socket inside a namespace.
#[derive(Debug)]
pub struct StampedUdp {
    socket: UdpSocket,
}

impl StampedUdp {
    /// Binds a socket in the namespace, on any free port if `port` is 0.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the address is in use or does not exist.
    pub fn bind(namespace: &Namespace, address: IpAddr, port: u16) -> io::Result<Self> {
        let socket = namespace.run(|| UdpSocket::bind((address, port))).map_err(io::Error::other)??;
        socket::setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        match address {
            IpAddr::V4(_) => socket::setsockopt(&socket, sockopt::IpRecvTos, &true)?,
            IpAddr::V6(_) => socket::setsockopt(&socket, sockopt::Ipv6RecvTClass, &true)?,
        }
        // So that a receiver waiting for a processor loses nothing; without privilege, as much as is allowed.
        if socket::setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
            socket::setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
        }
        Ok(Self { socket })
    }

    /// Its local address.
    ///
    /// # Errors
    /// If the system does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// From now on, receives only from that address.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn only_from(&self, peer: SocketAddr) -> io::Result<()> {
        self.socket.connect(peer)
    }

    /// Sets the DSCP (the upper six bits) and ECN field (RFC 3168) of what is sent from now on.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_traffic_class(&self, class: u8) -> io::Result<()> {
        match self.address()? {
            SocketAddr::V4(_) => socket::setsockopt(&self.socket, sockopt::Ipv4Tos, &class.into())?,
            SocketAddr::V6(_) => socket::setsockopt(&self.socket, sockopt::Ipv6TClass, &class.into())?,
        }
        Ok(())
    }

    /// Sends what follows without fragmentation: datagrams that are too large for the path are refused or lost.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn never_fragment(&self) -> io::Result<()> {
        never_fragment(&self.socket)
    }

    /// Sends one datagram to the peer of [`StampedUdp::only_from`].
    ///
    /// # Errors
    /// If the system refuses.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.send(bytes)
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.socket.send_to(bytes, to)
    }

    /// Receives one datagram. `None` if none arrived in time.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn receive(&self, bytes: &mut [u8], patience: Duration) -> io::Result<Option<Datagram>> {
        // Zero would mean "no limit".
        self.socket.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
        let mut control = nix::cmsg_space!(libc::timespec, libc::c_int);
        let mut pieces = [IoSliceMut::new(bytes)];
        let flags = MsgFlags::empty();
        let message = socket::recvmsg::<()>(self.socket.as_raw_fd(), &mut pieces, Some(&mut control), flags);
        let message = match message {
            Ok(message) => message,
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let mut datagram = Datagram { length: message.bytes, stamp: None, traffic_class: None };
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::ScmTimestampns(stamp) => {
                    let seconds = u64::try_from(stamp.tv_sec()).unwrap_or(0); // the wall clock is past 1970
                    let nanos = seconds * 1_000_000_000 + stamp.tv_nsec() as u64;
                    datagram.stamp = WallClockOffset::sample().monotonic(nanos);
                }
                ControlMessageOwned::Ipv4Tos(class) => datagram.traffic_class = Some(class),
                ControlMessageOwned::Ipv6TClass(class) => datagram.traffic_class = Some(class as u8), // 8 bits
                _ => {}
            }
        }
        Ok(Some(datagram))
    }
}

/// Sets the "don't fragment" flag of all that a UDP socket sends, and has the kernel refuse what exceeds the MTU that
/// it knows of the path (`IP_PMTUDISC_DO`).
pub(crate) fn never_fragment(socket: &UdpSocket) -> io::Result<()> {
    let descriptor = socket.as_fd().try_clone_to_owned()?;
    match socket.local_addr()? {
        SocketAddr::V4(_) => {
            set_option(&descriptor, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &libc::IP_PMTUDISC_DO)
        }
        SocketAddr::V6(_) => {
            set_option(&descriptor, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, &libc::IPV6_PMTUDISC_DO)
        }
    }
}
