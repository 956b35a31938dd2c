//! Receives the datagrams of a case, with the kernel's stamps.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg, setsockopt,
    sockopt,
};
use nix::sys::time::TimeVal;

use crate::trace::Came;
use crate::traffic::PORT;

const BUFFER: usize = 256 << 20;
/// A receiver that has heard nothing for so long has heard all; before the first it has more patience.
pub const SILENCE: Duration = Duration::from_secs(20);

/// A socket, and how many bytes of headers it hands out before a payload.
#[derive(Debug)]
pub struct Receiver {
    socket: OwnedFd,
    headers: usize,
}

impl Receiver {
    /// One for the port of all cases, in the namespace that the thread is in.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn of_port() -> io::Result<Self> {
        Self { socket: UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?.into(), headers: 0 }.ready()
    }

    /// One for every port, in the namespace that the thread is in.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn of_every_port() -> io::Result<Self> {
        let (family, protocol) = (AddressFamily::Inet, SockProtocol::Udp);
        let socket = nix::sys::socket::socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        // Of IPv4 without options, and of UDP.
        Self { socket, headers: 20 + 8 }.ready()
    }

    /// One for TCP segments, in the namespace that the thread is in.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn of_segments() -> io::Result<Self> {
        let (family, protocol) = (AddressFamily::Inet, SockProtocol::Tcp);
        let socket = nix::sys::socket::socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        // Of IPv4 without options, and the ports: the sequence number is that of the datagram.
        Self { socket, headers: 20 + 4 }.ready()
    }

    fn ready(self) -> io::Result<Self> {
        setsockopt(&self.socket, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(&self.socket, sockopt::IpRecvTos, &true)?;
        setsockopt(&self.socket, sockopt::RcvBufForce, &BUFFER)?;
        setsockopt(&self.socket, sockopt::ReceiveTimeout, &TimeVal::new(SILENCE.as_secs() as i64, 0))?;
        Ok(self)
    }
}

/// Receives until nothing has come for [`SILENCE`].
///
/// # Errors
/// When the system refuses, or a datagram has no stamp.
pub fn receive(receiver: &Receiver) -> io::Result<Vec<Came>> {
    let Receiver { socket, headers } = receiver;
    let mut came = Vec::new();
    let mut bytes = vec![0; 65536];
    loop {
        let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec, u32);
        let mut pieces = [IoSliceMut::new(&mut bytes)];
        let message = recvmsg::<()>(socket.as_raw_fd(), &mut pieces, Some(&mut control), MsgFlags::empty());
        let message = match message {
            Ok(message) => message,
            Err(nix::Error::EAGAIN) => return Ok(came),
            Err(nix::Error::EINTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        let (mut at, mut traffic_class) = (None, 0);
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::ScmTimestampns(stamp) => {
                    at = Some(stamp.tv_sec() as u64 * 1_000_000_000 + stamp.tv_nsec() as u64);
                }
                ControlMessageOwned::Ipv4Tos(class) => traffic_class = class,
                _ => {}
            }
        }
        let length = message.bytes;
        let at = at.ok_or_else(|| io::Error::other("a datagram came without a stamp"))?;
        let payload = bytes[..length].get(*headers..).unwrap_or_default();
        let Some(number) = payload.first_chunk().map(|number| u32::from_be_bytes(*number)) else {
            return Err(io::Error::other("a datagram came without a number"));
        };
        came.push(Came { number, at, traffic_class });
    }
}
