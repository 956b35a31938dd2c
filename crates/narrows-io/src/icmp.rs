//! ICMP echo (RFC 792, RFC 4443), to measure round-trip times of a real path.
//!
//! A "ping socket" (`SOCK_DGRAM` with `IPPROTO_ICMP`) is tried first: it needs no privilege if
//! `net.ipv4.ping_group_range` includes the user's group. Otherwise a raw socket is used, which needs `CAP_NET_RAW`.
//! The kernel timestamps the replies, so the reader's lateness is not measured.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{
    self, AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage,
    sockopt,
};

use crate::clock::{MonotonicTime, WallClockOffset, clock_monotonic};

/// The length of an echo's ICMP header.
pub const HEADER: usize = 8;
/// The maximum length after it: with the IPv6 and ICMP headers, a packet of at most 64 KiB.
pub const LONGEST: usize = 65_000;

/// A socket that sends echo requests to one address and receives its replies.
#[derive(Debug)]
pub struct Echo {
    socket: OwnedFd,
    is_raw: bool,
    is_v6: bool,
    /// Identifies our replies; for a ping socket the kernel chooses it and filters by it.
    identifier: u16,
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The sequence number of the request.
    pub sequence: u16,
    /// When the kernel received it.
    pub at: MonotonicTime,
}

impl Echo {
    /// A socket for echo requests to this address; the port is ignored.
    ///
    /// # Errors
    /// If neither kind of socket is allowed, or there is no route to the address.
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
        // Two programs that measure at the same time have different identifiers; two threads of one program do not.
        let identifier = std::process::id() as u16;
        Ok(Self { socket, is_raw, is_v6, identifier })
    }

    /// Whether it is a raw socket, because a ping socket is not allowed.
    pub fn is_raw(&self) -> bool {
        self.is_raw
    }

    /// Sends a request with this many bytes after the header, at most [`LONGEST`]. Returns the send time.
    ///
    /// # Errors
    /// If the system refuses, for example because there is no route.
    pub fn ask(&self, sequence: u16, bytes: usize) -> io::Result<MonotonicTime> {
        let mut packet = vec![0; HEADER + bytes.min(LONGEST)];
        packet[0] = if self.is_v6 { 128 } else { 8 };
        packet[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        packet[6..8].copy_from_slice(&sequence.to_be_bytes());
        if !self.is_v6 {
            // A ping socket overwrites it, and for ICMPv6 the kernel always computes it.
            let sum = checksum(&packet);
            packet[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        let at = clock_monotonic();
        socket::send(self.socket.as_raw_fd(), &packet, MsgFlags::empty())?;
        Ok(at)
    }

    /// The next pending reply. Other packets are skipped, and so are ICMP errors of routers, which mean that a
    /// request was lost.
    ///
    /// # Errors
    /// If the system refuses.
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

    /// The sequence number of the request that this packet answers, if it is one of ours.
    fn sequence(&self, packet: &[u8]) -> Option<u16> {
        // A raw IPv4 socket includes the IP header.
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
