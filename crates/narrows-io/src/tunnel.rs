//! Tunnels: frames of one link, carried to another machine and back.
//!
//! Each frame is one UDP datagram in VXLAN's format (RFC 7348): eight bytes of header with the number of the link as
//! network identifier, then the frame. The socket is connected, so the kernel drops what comes from any other address
//! or port; datagrams with another identifier are dropped here. Datagrams are never fragmented.
//!
//! The three reserved bytes after the flags, zero in RFC 7348, have the number of the datagram: gaps are what was lost
//! on the way or for lack of buffer space.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{self, sockopt};

use crate::frame::{Frame, FramePool};
use crate::packet_socket::{BATCH, PacketStatistics, ReceiveBatch, Received, Sent};
use crate::udp::never_fragment;

/// Bytes of VXLAN's header.
const HEADER: usize = 8;
/// Its flags: the identifier is valid.
const VALID: u8 = 0x08;
/// The size of the buffers in bytes: some thousands of frames.
const BUFFER: usize = 8 << 20;
/// Numbers of datagrams are below this.
const NUMBERS: u32 = 1 << 24;
/// How often sending is repeated after errors of earlier datagrams.
const MOST_TRIES: usize = 4;
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
    identifier: [u8; 3],
    /// The number of the next datagram.
    next: u32,
    came: Came,
    statistics: PacketStatistics,
}

/// The numbers of the datagrams that came.
#[derive(Debug, Default)]
struct Came {
    /// The next one; `None` before the first.
    next: Option<u32>,
    /// Those that are missing so far.
    missing: u64,
}

impl Came {
    fn note(&mut self, number: u32) {
        let Some(next) = self.next else {
            self.next = Some((number + 1) % NUMBERS);
            return;
        };
        let ahead = number.wrapping_sub(next) % NUMBERS;
        if ahead < NUMBERS / 2 {
            self.missing += u64::from(ahead);
            self.next = Some((number + 1) % NUMBERS);
        } else {
            // It was overtaken.
            self.missing = self.missing.saturating_sub(1);
        }
    }
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
        Ok(Self {
            socket,
            identifier: [a, b, c],
            next: 0,
            came: Came::default(),
            statistics: PacketStatistics::default(),
        })
    }

    /// Receives pending frames, as [`CableEnd::receive`](crate::cable_end::CableEnd::receive).
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        pool: &mut FramePool,
        into: &mut Vec<Received>,
    ) -> Result<usize, TunnelError> {
        let count = loop {
            match batch.fill(self.socket.as_fd(), false) {
                Ok(count) => break count,
                Err(errno) if of_earlier(errno) || errno == Errno::EMSGSIZE => {}
                Err(errno) => {
                    let (from, to) = self.ends();
                    return Err(TunnelError { step: "read from", from, to, cause: errno.into() });
                }
            }
        };
        if count == 0 {
            return Ok(0);
        }
        let offset = batch.offset();
        for slot in 0..count {
            let (head, tail, stamp) = batch.contents(slot);
            self.statistics.arrived += 1;
            let Some(([VALID, number @ .., a, b, c, 0], head)) = head.split_first_chunk::<HEADER>() else {
                self.statistics.dropped += 1;
                continue;
            };
            if [*a, *b, *c] != self.identifier {
                self.statistics.dropped += 1;
                continue;
            }
            let [x, y, z] = *number;
            self.came.note(u32::from_be_bytes([0, x, y, z]));
            into.push(Received {
                frame: pool.joined(&[head, tail]),
                stamp: stamp.map(|wall| offset.reading(wall)),
                original_length: head.len() + tail.len(),
                partial_checksum: false,
                interface: None,
            });
        }
        Ok(count)
    }

    /// Sends frames in order until all are sent or one is not accepted. Never blocks.
    pub fn send<F: AsMut<Frame>>(&mut self, frames: &mut [F]) -> Sent {
        let (mut count, mut tries) = (0, 0);
        while count < frames.len() {
            let end = frames.len().min(count + BATCH);
            match self.send_batch(&mut frames[count..end]) {
                Ok(sent) => {
                    count += sent;
                    self.next = (self.next + sent as u32) % NUMBERS;
                    tries = 0;
                }
                Err(errno) if of_earlier(errno) && tries < MOST_TRIES => tries += 1,
                Err(errno) => return Sent { count, stopped: Some(errno.into()) },
            }
        }
        Sent { count, stopped: None }
    }

    /// One system call: at least one frame was sent, or the error is about the first, or about an earlier one.
    #[expect(unsafe_code, reason = "a system call that no crate wraps without allocating")]
    fn send_batch<F: AsMut<Frame>>(&self, frames: &mut [F]) -> Result<usize, Errno> {
        // SAFETY: both are plain integers and pointers, for which all zeros is a value.
        let (mut pieces, mut messages): ([[libc::iovec; 2]; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut headers = [[0; HEADER]; BATCH];
        let mut filled = 0;
        let rooms = headers.iter_mut().zip(&mut pieces).zip(&mut messages);
        for ((number, frame), ((header, piece), message)) in (self.next..).zip(frames).zip(rooms) {
            let [_, x, y, z] = number.to_be_bytes();
            let [a, b, c] = self.identifier;
            *header = [VALID, x, y, z, a, b, c, 0];
            let frame: &Frame = frame.as_mut();
            // The kernel only reads through these pointers.
            *piece = [
                libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: HEADER },
                libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() },
            ];
            message.msg_hdr.msg_iov = piece.as_mut_ptr();
            message.msg_hdr.msg_iovlen = 2;
            filled += 1;
        }
        // SAFETY: the first `filled` messages point at two pieces each, which point at live bytes of the lengths given: a
        // header above, and a frame, which is borrowed.
        let result = unsafe {
            libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), filled, libc::MSG_DONTWAIT as _)
        };
        Errno::result(result).map(|count| count as usize)
    }

    /// Frames that arrived and frames dropped since the end was opened. Among the latter are those that the other end
    /// sent and that did not arrive, between the first and the last that did.
    pub fn statistics(&self) -> PacketStatistics {
        PacketStatistics { dropped: self.statistics.dropped + self.came.missing, ..self.statistics }
    }

    fn ends(&self) -> (String, String) {
        let name = |address: io::Result<SocketAddr>| address.map_or_else(|_| "?".into(), |a| a.to_string());
        (name(self.socket.local_addr()), name(self.socket.peer_addr()))
    }
}

/// Whether an error is of a datagram sent earlier, to an end that is not open or cannot be reached, which an ICMP message
/// or the neighbour table says; or of an interrupted call. What was sent is lost, as on any path.
fn of_earlier(errno: Errno) -> bool {
    matches!(errno, Errno::EINTR | Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH)
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

    /// Two ends of one tunnel.
    fn pair() -> [Tunnel; 2] {
        let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let [one, other] = sockets.each_ref().map(|socket| socket.local_addr().unwrap());
        [Tunnel::open(&sockets[0], other, 7).unwrap(), Tunnel::open(&sockets[1], one, 7).unwrap()]
    }

    #[test]
    fn frames_of_the_peer_arrive_and_no_others() {
        let [mut near, mut far] = pair();
        let (mut pool, mut batch) = (FramePool::default(), ReceiveBatch::new());
        let mut frames = [pool.frame(&[1; 60]), pool.frame(&[2; 1514]), pool.frame(&[5; 9000])];
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        let there = far.socket.local_addr().unwrap();
        stranger.send_to(&[VALID, 0, 0, 0, 0, 0, 7, 0, 9, 9], there).unwrap();
        let sent = near.send(&mut frames);
        assert!(sent.count == 3 && sent.stopped.is_none());
        // Of the peer, but of another link.
        near.identifier[2] = 8;
        let _ = near.send(&mut [pool.frame(&[3; 60])]);
        let mut received = Vec::new();
        assert_eq!(far.receive(&mut batch, &mut pool, &mut received).unwrap(), 4);
        let frames: Vec<&[u8]> = received.iter().map(AsRef::as_ref).collect();
        assert_eq!(frames, [&[1; 60][..], &[2; 1514], &[5; 9000]]);
        assert!(received.iter().all(|one| one.stamp.is_some()));
        assert_eq!(far.statistics(), PacketStatistics { arrived: 4, dropped: 1, refused: 0 });
        // It would need fragments even on the loopback interface.
        let sent = near.send(&mut [pool.frame(&vec![4; 65_530])]);
        assert!(matches!(sent.stopped, Some(SendStop::TooLarge)), "{sent:?}");
    }

    #[test]
    fn more_frames_than_a_batch_arrive_in_order() {
        let [mut near, mut far] = pair();
        // The numbers begin again in between.
        near.next = NUMBERS - 100;
        let (mut pool, mut batch) = (FramePool::default(), ReceiveBatch::new());
        let mut frames: Vec<Frame> = (0..200).map(|number| pool.frame(&[number; 100])).collect();
        let sent = near.send(&mut frames);
        assert!(sent.count == 200 && sent.stopped.is_none());
        let mut received = Vec::new();
        while far.receive(&mut batch, &mut pool, &mut received).unwrap() > 0 {}
        assert!(received.iter().map(|one| one.frame[0]).eq(0..200));
        assert_eq!(far.statistics().dropped, 0);
        assert_eq!(near.next, 100);
    }

    #[test]
    fn what_is_missing_is_counted() {
        let mut came = Came::default();
        let mut missing_after = |number| {
            came.note(number);
            came.missing
        };
        assert_eq!([5, 6, 9, 10].map(&mut missing_after), [0, 0, 2, 2]);
        // Late, but there.
        assert_eq!([7, 11].map(&mut missing_after), [1, 1]);
        let mut came = Came { next: Some(NUMBERS - 2), missing: 0 };
        came.note(1);
        assert_eq!((came.missing, came.next), (3, Some(2)));
    }

    #[test]
    fn an_end_that_is_not_open_does_not_stop_it() {
        let [mut near, far] = pair();
        drop(far);
        let mut pool = FramePool::default();
        for _ in 0..5 {
            let mut frames: Vec<Frame> = (0..10).map(|number| pool.frame(&[number; 100])).collect();
            let sent = near.send(&mut frames);
            assert!(sent.stopped.is_none(), "{sent:?}");
        }
    }
}
