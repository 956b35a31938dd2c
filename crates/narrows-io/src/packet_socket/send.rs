//! Sending: a batch of frames per system call.

use std::io;
use std::os::fd::AsRawFd;

use super::{BATCH, Offloads, PacketSocket, TrainStatistics};
use crate::frame::Frame;
use crate::link::InterfaceIndex;
use crate::offloaded::HEADER;
use crate::offloaded::join::{self, MOST};

/// A frame to be sent: its virtio header, and its bytes.
pub(crate) type Pieces = [libc::iovec; 2];

/// The result of a call of [`PacketSocket::send`].
#[derive(Debug)]
#[must_use = "frames beyond `count` were not sent"]
pub struct Sent {
    /// How many frames, counted from the first, the kernel accepted.
    pub count: usize,
    /// Why it accepted no more, if there were more.
    pub stopped: Option<SendStop>,
}

/// Why the frame after the last one sent was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SendStop {
    /// The socket's buffer or the interface's queue is full: retry later.
    #[error("the interface's queue is full")]
    Full,
    /// The frame exceeds the interface's MTU: it can never be sent.
    #[error("the frame is larger than the interface's MTU")]
    TooLarge,
    /// The frame is shorter than an Ethernet header: it can never be sent.
    #[error("the frame is shorter than its Ethernet header")]
    TooShort,
    /// The interface is down or gone.
    #[error("the interface is down")]
    Down,
    /// The kernel refused for another reason.
    #[error("{0}")]
    Refused(io::Error),
}

impl From<nix::Error> for SendStop {
    fn from(errno: nix::Error) -> Self {
        match errno {
            nix::Error::EAGAIN | nix::Error::ENOBUFS => Self::Full,
            nix::Error::EMSGSIZE => Self::TooLarge,
            nix::Error::EINVAL => Self::TooShort,
            nix::Error::ENETDOWN | nix::Error::ENXIO | nix::Error::ENODEV => Self::Down,
            other => Self::Refused(other.into()),
        }
    }
}

impl PacketSocket {
    /// Sends frames in order until all are sent or one is not accepted. Never blocks.
    pub fn send<F: AsRef<[u8]>>(&mut self, frames: &[F]) -> Sent {
        let mut count = 0;
        while count < frames.len() {
            let end = frames.len().min(count + BATCH);
            match self.send_batch(&frames[count..end], None) {
                Ok(sent) => count += sent,
                Err(nix::Error::EINTR) => {}
                Err(errno) => return Sent { count, stopped: Some(errno.into()) },
            }
        }
        Sent { count, stopped: None }
    }

    /// The same on a socket of all interfaces: each frame leaves by its own.
    pub fn send_each<F: AsRef<[u8]>>(
        &mut self,
        frames: &[F],
        interface: impl Fn(&F) -> InterfaceIndex,
    ) -> Sent {
        // SAFETY: plain integers, for which all zeros is a value.
        #[expect(unsafe_code, reason = "nix cannot make this address")]
        let mut ways: [libc::sockaddr_ll; BATCH] = unsafe { std::mem::zeroed() };
        let mut count = 0;
        while count < frames.len() {
            let end = frames.len().min(count + BATCH);
            for (way, frame) in ways.iter_mut().zip(&frames[count..end]) {
                way.sll_family = libc::AF_PACKET as u16;
                way.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
                way.sll_ifindex = interface(frame).0 as i32;
            }
            match self.send_batch(&frames[count..end], Some(&mut ways)) {
                Ok(sent) => count += sent,
                Err(nix::Error::EINTR) => {}
                Err(errno) => return Sent { count, stopped: Some(errno.into()) },
            }
        }
        Sent { count, stopped: None }
    }

    /// One system call, to these interfaces if they are given: at least one frame was sent, or the error is about the
    /// first.
    #[expect(unsafe_code, reason = "a system call that no crate wraps without allocating")]
    fn send_batch<F: AsRef<[u8]>>(
        &self,
        frames: &[F],
        ways: Option<&mut [libc::sockaddr_ll; BATCH]>,
    ) -> Result<usize, nix::Error> {
        // SAFETY: both are plain integers and pointers, for which all zeros is a value.
        let (mut pieces, mut headers): ([Pieces; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let filled = self.point(frames, &mut pieces, &mut headers);
        for (header, way) in headers.iter_mut().zip(ways.into_iter().flatten()) {
            header.msg_hdr.msg_name = std::ptr::from_mut(way).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        }
        // SAFETY: the first `filled` headers point at two pieces each, which point at live bytes of the lengths given, and at
        // an address, if any.
        let result = unsafe {
            libc::sendmmsg(
                self.descriptor.as_raw_fd(),
                headers.as_mut_ptr(),
                filled as u32,
                libc::MSG_DONTWAIT as _,
            )
        };
        nix::errno::Errno::result(result).map(|count| count as usize)
    }

    /// Points headers at pieces and pieces at the first frames, as many as there is room for; returns how many.
    pub(crate) fn point<F: AsRef<[u8]>>(
        &self,
        frames: &[F],
        pieces: &mut [Pieces],
        headers: &mut [libc::mmsghdr],
    ) -> usize {
        /// Nothing is left to hardware.
        static FINISHED: [u8; HEADER] = [0; HEADER];
        let before = match self.offloads {
            Offloads::None | Offloads::Whole => 0,
            Offloads::Finished | Offloads::Carried => HEADER,
        };
        let rooms = pieces.iter_mut().zip(headers);
        let mut filled = 0;
        for (frame, (piece, header)) in frames.iter().zip(rooms) {
            let bytes = frame.as_ref();
            // The kernel only reads through these pointers.
            *piece = [
                libc::iovec { iov_base: FINISHED.as_ptr().cast_mut().cast(), iov_len: before },
                libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() },
            ];
            header.msg_hdr.msg_iov = piece.as_mut_ptr();
            header.msg_hdr.msg_iovlen = 2;
            filled += 1;
        }
        filled
    }

    /// With [`Offloads::Carried`], returns how many of the first frames to pass to one call of
    /// [`PacketSocket::send_joined`], and marks those that are joined to the frame before ([`Frame::was_joined`]).
    pub fn join<F: AsMut<Frame>>(&self, frames: &mut [F]) -> Option<usize> {
        self.carries_trains().then(|| join::join(frames))
    }

    /// With [`Offloads::Carried`], the counters of received trains.
    pub fn trains(&self) -> Option<TrainStatistics> {
        self.carries_trains().then_some(self.trains)
    }

    /// Whether it carries trains.
    pub fn carries_trains(&self) -> bool {
        self.offloads == Offloads::Carried
    }

    /// As [`PacketSocket::send`], for frames that may have incomplete checksums and marks from
    /// [`PacketSocket::join`].
    pub fn send_joined<F: AsRef<[u8]> + AsMut<Frame>>(&mut self, frames: &mut [F]) -> Sent {
        if !self.carries_trains() {
            return self.send(frames);
        }
        let mut count = 0;
        while count < frames.len() {
            match self.send_trains(&mut frames[count..]) {
                Ok(sent) => count += sent,
                Err(nix::Error::EINTR) => {}
                Err(errno) => return Sent { count, stopped: Some(errno.into()) },
            }
        }
        Sent { count, stopped: None }
    }

    /// One system call: at least one frame was sent, or the error is about the first, or the train that it starts.
    #[expect(unsafe_code, reason = "a system call that no crate wraps without allocating")]
    fn send_trains<F: AsMut<Frame>>(&mut self, frames: &mut [F]) -> Result<usize, nix::Error> {
        // SAFETY: both are plain integers and pointers, for which all zeros is a value.
        let (mut pieces, mut messages): ([libc::iovec; MOST + BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // The kernel only reads through these pointers.
        let piece =
            |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let (mut used, mut filled, mut ends) = (0, 0, [0; BATCH]);
        let mut taken = 0;
        while taken < frames.len() && filled < BATCH {
            let all = &mut frames[taken..];
            let joined = all[1..].iter_mut().take(MOST - 1);
            let count = 1 + joined.map_while(|next| next.as_mut().open.joins.then_some(())).count();
            if taken + count > MOST {
                break;
            }
            let headers = &mut self.headers[filled];
            let payload = headers.of(&mut all[..count]);
            pieces[used] = piece(headers.get());
            for (place, frame) in pieces[used + 1..].iter_mut().zip(&mut all[..count]) {
                *place = piece(&frame.as_mut()[payload..]);
            }
            let message = &mut messages[filled].msg_hdr;
            message.msg_iov = pieces[used..].as_mut_ptr();
            message.msg_iovlen = (1 + count) as _;
            used += 1 + count;
            taken += count;
            ends[filled] = taken;
            filled += 1;
        }
        // SAFETY: the first `filled` messages point at as many pieces as they say, which point at live bytes of the lengths
        // given: of `frames`, and of headers that are not touched before the next call.
        let result = unsafe {
            libc::sendmmsg(
                self.descriptor.as_raw_fd(),
                messages.as_mut_ptr(),
                filled as u32,
                libc::MSG_DONTWAIT as _,
            )
        };
        let sent = nix::errno::Errno::result(result)? as usize;
        Ok(ends[..sent].last().copied().unwrap_or(0))
    }
}
