//! Tunnels: frames of one link, carried to another machine and back.
//!
//! Each frame is one UDP datagram in VXLAN's format (RFC 7348): eight bytes of header with the number of the link as
//! network identifier, then the frame. The socket is connected, so the kernel drops what comes from any other address
//! or port; datagrams with another identifier are dropped here. Datagrams are never fragmented.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{self, ControlMessageOwned, MsgFlags, sockopt};
use nix::sys::uio::writev;

use crate::clock::WallClockOffset;
use crate::frame::{Frame, FramePool};
use crate::packet_socket::{PacketStatistics, ReceiveBatch, Received, Sent};
use crate::udp::never_fragment;

/// Bytes of VXLAN's header.
const HEADER: usize = 8;
/// Its flags: the identifier is valid.
const VALID: u8 = 0x08;
/// The size of the buffers in bytes: some thousands of frames.
const BUFFER: usize = 8 << 20;
/// The largest datagram.
const LONGEST: usize = 65_535;
/// The largest network identifier.
pub const MOST_IDENTIFIER: u32 = (1 << 24) - 1;
/// What a frame's Ethernet header, the tunnel's header, and UDP add to a packet; the outer IP header is not included.
pub const OVERHEAD: usize = 14 + HEADER + 8;

/// A tunnel cannot be opened or used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} the tunnel {from} – {to}: {cause}")]
pub struct TunnelError {
    step: &'static str,
    from: String,
    to: String,
    cause: io::Error,
}

/// One end of a tunnel.
#[derive(Debug)]
pub struct Tunnel {
    socket: UdpSocket,
    header: [u8; HEADER],
    statistics: PacketStatistics,
    buffer: Vec<u8>,
    /// Of the frames just read.
    stamps: Vec<Option<u64>>,
}

impl Tunnel {
    /// Makes a bound socket one end of the tunnel to `peer`.
    ///
    /// # Errors
    /// If the system refuses, or the identifier exceeds [`MOST_IDENTIFIER`].
    pub fn open(socket: &UdpSocket, peer: SocketAddr, identifier: u32) -> Result<Self, TunnelError> {
        let from = socket.local_addr().map_or_else(|_| "?".into(), |address| address.to_string());
        let opened = |step: &'static str, cause: io::Error| TunnelError {
            step,
            from: from.clone(),
            to: peer.to_string(),
            cause,
        };
        if identifier > MOST_IDENTIFIER {
            return Err(opened("number", io::ErrorKind::InvalidInput.into()));
        }
        let socket = socket.try_clone().map_err(|cause| opened("open", cause))?;
        socket.connect(peer).map_err(|cause| opened("open", cause))?;
        let set_up = || -> io::Result<()> {
            never_fragment(&socket)?;
            socket.set_nonblocking(true)?;
            socket::setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
            // Without privilege, as much as is allowed.
            if socket::setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
                socket::setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
            }
            Ok(())
        };
        set_up().map_err(|cause| opened("set up", cause))?;
        let [_, a, b, c] = identifier.to_be_bytes();
        let header = [VALID, 0, 0, 0, a, b, c, 0];
        Ok(Self {
            socket,
            header,
            statistics: PacketStatistics::default(),
            buffer: vec![0; LONGEST],
            stamps: Vec::new(),
        })
    }

    /// Receives pending frames, as [`CableEnd::receive`](crate::cable_end::CableEnd::receive).
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn receive(&mut self, pool: &mut FramePool, into: &mut Vec<Received>) -> Result<usize, TunnelError> {
        let first = into.len();
        self.stamps.clear();
        let count = self.read(pool, into)?;
        // After the last of them: a timestamp later than the sample would not be believed.
        let offset = WallClockOffset::sample();
        for (received, stamp) in into[first..].iter_mut().zip(&self.stamps) {
            received.stamp = stamp.and_then(|nanoseconds| offset.monotonic(nanoseconds));
        }
        Ok(count)
    }

    /// Reads frames, and their timestamps by the wall clock in nanoseconds.
    fn read(&mut self, pool: &mut FramePool, into: &mut Vec<Received>) -> Result<usize, TunnelError> {
        let mut control = nix::cmsg_space!(libc::timespec);
        for count in 0..ReceiveBatch::FRAMES {
            let mut pieces = [IoSliceMut::new(&mut self.buffer)];
            let descriptor = self.socket.as_raw_fd();
            let message =
                socket::recvmsg::<()>(descriptor, &mut pieces, Some(&mut control), MsgFlags::empty());
            let message = match message {
                Ok(message) => message,
                // Nothing is there; or the other end is not open, which an ICMP message says. What was sent is lost,
                // as on any path.
                Err(Errno::EAGAIN) => return Ok(count),
                Err(
                    Errno::EINTR
                    | Errno::ECONNREFUSED
                    | Errno::EMSGSIZE
                    | Errno::EHOSTUNREACH
                    | Errno::ENETUNREACH,
                ) => continue,
                Err(errno) => {
                    let (from, to) = self.ends();
                    return Err(TunnelError { step: "read from", from, to, cause: errno.into() });
                }
            };
            let stamp = message.cmsgs().ok().and_then(|mut all| {
                all.find_map(|control| match control {
                    ControlMessageOwned::ScmTimestampns(stamp) => {
                        let seconds = u64::try_from(stamp.tv_sec()).ok()?;
                        Some(seconds * 1_000_000_000 + stamp.tv_nsec() as u64)
                    }
                    _ => None,
                })
            });
            let length = message.bytes;
            self.statistics.arrived += 1;
            let Some((header, frame)) = self.buffer[..length].split_at_checked(HEADER) else {
                self.statistics.dropped += 1;
                continue;
            };
            if header != self.header {
                self.statistics.dropped += 1;
                continue;
            }
            let original_length = frame.len();
            into.push(Received {
                frame: pool.joined(&[frame]),
                stamp: None,
                original_length,
                partial_checksum: false,
            });
            self.stamps.push(stamp);
        }
        Ok(ReceiveBatch::FRAMES)
    }

    /// Sends frames in order until all are sent or one is not accepted. Never blocks.
    pub fn send<F: AsMut<Frame>>(&mut self, frames: &mut [F]) -> Sent {
        for (count, frame) in frames.iter_mut().enumerate() {
            let frame: &Frame = frame.as_mut();
            loop {
                match writev(&self.socket, &[IoSlice::new(&self.header), IoSlice::new(frame)]) {
                    Ok(_) => break,
                    // The first is of an earlier datagram.
                    Err(Errno::ECONNREFUSED | Errno::EINTR) => {}
                    Err(errno) => return Sent { count, stopped: Some(errno.into()) },
                }
            }
        }
        Sent { count: frames.len(), stopped: None }
    }

    /// Frames that arrived and frames dropped since the end was opened.
    pub fn statistics(&self) -> PacketStatistics {
        self.statistics
    }

    fn ends(&self) -> (String, String) {
        let name = |address: io::Result<SocketAddr>| address.map_or_else(|_| "?".into(), |a| a.to_string());
        (name(self.socket.local_addr()), name(self.socket.peer_addr()))
    }
}

impl AsFd for Tunnel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_socket::SendStop;

    #[test]
    fn frames_of_the_peer_arrive_and_no_others() {
        let socket = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (one, other, stranger) = (socket(), socket(), socket());
        let [here, there] = [&one, &other].map(|socket| socket.local_addr().unwrap());
        let mut near = Tunnel::open(&one, there, 7).unwrap();
        let mut far = Tunnel::open(&other, here, 7).unwrap();
        let mut pool = FramePool::default();
        let mut frames = [pool.frame(&[1; 60]), pool.frame(&[2; 1514])];
        stranger.send_to(&[VALID, 0, 0, 0, 0, 0, 7, 0, 9, 9], there).unwrap();
        let sent = near.send(&mut frames);
        assert!(sent.count == 2 && sent.stopped.is_none());
        // Of the peer, but of another link.
        near.header[6] = 8;
        let _ = near.send(&mut [pool.frame(&[3; 60])]);
        let mut received = Vec::new();
        assert_eq!(far.receive(&mut pool, &mut received).unwrap(), 3);
        let lengths: Vec<usize> = received.iter().map(|one| one.frame.len()).collect();
        assert_eq!(lengths, [60, 1514]);
        assert!(received.iter().all(|one| one.stamp.is_some()));
        assert_eq!(far.statistics(), PacketStatistics { arrived: 3, dropped: 1, refused: 0 });
        // It would need fragments even on the loopback interface.
        let sent = near.send(&mut [pool.frame(&vec![4; 65_530])]);
        assert!(matches!(sent.stopped, Some(SendStop::TooLarge)), "{sent:?}");
    }
}
