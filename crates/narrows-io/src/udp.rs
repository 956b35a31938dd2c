//! UDP sockets whose datagrams come with the kernel's receive stamp, for probes that measure one-way delays.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::sys::socket::{self, ControlMessageOwned, MsgFlags, sockopt};

use crate::clock::{MonotonicTime, WallClockOffset};
use crate::namespace::Namespace;

/// Bytes of the receive buffer: some 10,000 small datagrams.
const BUFFER: usize = 8 << 20;

/// A UDP socket inside a namespace.
#[derive(Debug)]
pub struct StampedUdp {
    socket: UdpSocket,
}

impl StampedUdp {
    /// Binds a socket in the namespace, on any free port if `port` is 0.
    ///
    /// # Errors
    /// When the namespace cannot be entered or the address is taken or not there.
    pub fn bind(namespace: &Namespace, address: IpAddr, port: u16) -> io::Result<Self> {
        let socket = namespace.run(|| UdpSocket::bind((address, port))).map_err(io::Error::other)??;
        socket::setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        // So that a receiver that has to wait for a processor loses nothing; without privilege, as much as is allowed.
        if socket::setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
            socket::setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
        }
        Ok(Self { socket })
    }

    /// Where it is bound.
    ///
    /// # Errors
    /// When the system cannot say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.socket.send_to(bytes, to)
    }

    /// Receives one datagram: its length, and when the kernel took it in. Nothing when none came in time.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn receive(
        &self,
        bytes: &mut [u8],
        patience: Duration,
    ) -> io::Result<Option<(usize, Option<MonotonicTime>)>> {
        // Zero would mean for ever.
        self.socket.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
        let mut control = nix::cmsg_space!(libc::timespec);
        let mut pieces = [IoSliceMut::new(bytes)];
        let flags = MsgFlags::empty();
        let message = socket::recvmsg::<()>(self.socket.as_raw_fd(), &mut pieces, Some(&mut control), flags);
        let message = match message {
            Ok(message) => message,
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let stamp = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(stamp) => {
                let nanos = u64::try_from(stamp.tv_sec()).ok()? * 1_000_000_000 + stamp.tv_nsec() as u64;
                WallClockOffset::sample().monotonic(nanos)
            }
            _ => None,
        });
        Ok(Some((message.bytes, stamp)))
    }
}
