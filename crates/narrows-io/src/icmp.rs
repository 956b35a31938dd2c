//! ICMP echo (RFC 792, RFC 4443): a question that every host answers, to measure round trips of a real path.
//!
//! A "ping socket" (`SOCK_DGRAM` with `IPPROTO_ICMP`) is tried first: it needs no privilege where
//! `net.ipv4.ping_group_range` includes the user's group. Else a raw socket, which needs `CAP_NET_RAW`. Answers are
//! stamped by the kernel, so that a reader that is late measures nothing of its own lateness.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{
    self, AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage,
    sockopt,
};

use crate::clock::{MonotonicTime, WallClockOffset, clock_monotonic};

/// Bytes of the ICMP header of an echo.
pub const HEADER: usize = 8;
/// Bytes that may follow it: with the headers of IPv6 and ICMP, a packet of 64 KiB at most.
pub const LONGEST: usize = 65_000;

/// A socket that sends echoes to one address and receives the answers from there.
#[derive(Debug)]
pub struct Echo {
    socket: OwnedFd,
    is_raw: bool,
    is_v6: bool,
    /// Which answers are ours; the kernel chooses it for a ping socket, and sorts by it.
    identifier: u16,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of the question.
    pub sequence: u16,
    /// When the kernel took it in.
    pub at: MonotonicTime,
}

impl Echo {
    /// A socket for echoes to this address; the port does not matter.
    ///
    /// # Errors
    /// When neither kind of socket is allowed, or there is no way to the address.
    pub fn open(to: SocketAddr) -> io::Result<Self> {
        let is_v6 = to.is_ipv6();
        let (family, protocol) = match is_v6 {
            false => (AddressFamily::Inet, SockProtocol::Icmp),
            true => (AddressFamily::Inet6, SockProtocol::IcmpV6),
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let (socket, is_raw) = match socket::socket(family, SockType::Datagram, flags, protocol) {
            Ok(socket) => (socket, false),
            Err(_) => (socket::socket(family, SockType::Raw, flags, protocol)?, true),
        };
        socket::setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        socket::connect(socket.as_raw_fd(), &SockaddrStorage::from(to))?;
        // Two programs of one host that measure at once have different numbers; two threads of one do not.
        let identifier = std::process::id() as u16;
        Ok(Self { socket, is_raw, is_v6, identifier })
    }

    /// Whether it is a raw socket, because a ping socket is not allowed here.
    pub fn is_raw(&self) -> bool {
        self.is_raw
    }

    /// Asks, with this many bytes after the header, at most [`LONGEST`]. Returns when it was sent.
    ///
    /// # Errors
    /// When the system refuses, such as for want of a route.
    pub fn ask(&self, sequence: u16, bytes: usize) -> io::Result<MonotonicTime> {
        let mut packet = vec![0; HEADER + bytes.min(LONGEST)];
        packet[0] = if self.is_v6 { 128 } else { 8 };
        packet[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        packet[6..8].copy_from_slice(&sequence.to_be_bytes());
        if !self.is_v6 {
            // A ping socket overwrites it, and ICMPv6's is the kernel's in any case.
            let sum = checksum(&packet);
            packet[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        let at = clock_monotonic();
        socket::send(self.socket.as_raw_fd(), &packet, MsgFlags::empty())?;
        Ok(at)
    }

    /// The next answer that is there. Packets that are none are passed over, and so are the errors of routers, which
    /// mean that a question is lost.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn answer(&self) -> io::Result<Option<Answer>> {
        loop {
            let mut bytes = [0; 128];
            let mut control = nix::cmsg_space!(libc::timespec);
            let mut pieces = [IoSliceMut::new(&mut bytes)];
            let fd = self.socket.as_raw_fd();
            let message = match socket::recvmsg::<()>(fd, &mut pieces, Some(&mut control), MsgFlags::empty())
            {
                Ok(message) => message,
                Err(nix::Error::EAGAIN) => return Ok(None),
                Err(
                    nix::Error::EINTR
                    | nix::Error::EHOSTUNREACH
                    | nix::Error::ENETUNREACH
                    | nix::Error::ECONNREFUSED
                    | nix::Error::EHOSTDOWN
                    | nix::Error::EPROTO
                    | nix::Error::EMSGSIZE
                    | nix::Error::EACCES
                    | nix::Error::EOPNOTSUPP
                    | nix::Error::ENOPROTOOPT,
                ) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let mut at = clock_monotonic();
            for control in message.cmsgs()? {
                if let ControlMessageOwned::ScmTimestampns(stamp) = control {
                    let seconds = u64::try_from(stamp.tv_sec()).unwrap_or(0); // the wall clock is past 1970
                    let nanos = seconds * 1_000_000_000 + stamp.tv_nsec() as u64;
                    at = WallClockOffset::sample().monotonic(nanos).unwrap_or(at);
                }
            }
            let length = message.bytes;
            if let Some(sequence) = self.sequence(&bytes[..length.min(bytes.len())]) {
                return Ok(Some(Answer { sequence, at }));
            }
        }
    }

    /// The number of the question that this packet answers, if it answers one of ours.
    fn sequence(&self, packet: &[u8]) -> Option<u16> {
        // A raw socket of IPv4 gives the IP header, too.
        let header = if self.is_raw && !self.is_v6 { usize::from(packet.first()? & 0x0f) * 4 } else { 0 };
        let echo = packet.get(header..header + HEADER)?;
        let is_answer = echo[0] == if self.is_v6 { 129 } else { 0 };
        let is_ours = !self.is_raw || echo[4..6] == self.identifier.to_be_bytes();
        (is_answer && is_ours).then(|| u16::from_be_bytes([echo[6], echo[7]]))
    }
}

impl AsFd for Echo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_rfc() {
        // The example of RFC 1071: the sum of these is 0xddf2.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[0xff]), !0xff00);
    }
}
