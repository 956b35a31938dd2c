//! Receiving: a batch of frames per system call, with timestamps and VLAN tags.
//!
//! Each frame is received into two buffers, a head that holds any ordinary frame and a tail for the largest possible
//! ones (64 KiB), and then copied into a buffer of its own size. All heads together stay in the second-level cache;
//! only jumbo frames and super-packets touch the tails.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::{BATCH, Offloads, PacketSocket, PacketSocketError, TrainStatistics};
use crate::clock::{MonotonicTime, SteadyOffset, WallClockOffset};
use crate::frame::{Frame, FramePool};
use crate::link::InterfaceIndex;
use crate::offloaded::{Cut, Described, HEADER, TAG_AT, Whole};

/// Any frame of the usual MTU fits into the head.
const HEAD: usize = 2048;
/// The distance between heads, chosen so that their first lines are not in the same cache set.
const HEAD_STRIDE: usize = HEAD + 64;
/// With the head, more than the largest IP packet and its link headers.
const TAIL: usize = 1 << 16;
/// Room for the timestamp (32 bytes) and the auxiliary data (40 bytes) with their headers.
const CONTROL: usize = 16;

/// A frame, with the kernel's information about it.
#[derive(Debug)]
pub struct Received {
    /// Its bytes as on the wire, including a VLAN tag.
    pub frame: Frame,
    /// When the kernel received it from the interface; `None` if there was no timestamp. It may be implausible: a
    /// packet socket's timestamp is, if the wall clock was set in between.
    pub stamp: Option<MonotonicTime>,
    /// Its length on the wire; more than the frame's own if it was truncated, which only happens to frames above
    /// 67,584 bytes.
    pub original_length: usize,
    /// Whether its transport checksum was left to non-existent hardware: the sender's TX checksum offload is on.
    pub partial_checksum: bool,
    /// The interface that it came to, at a socket of several.
    pub interface: Option<InterfaceIndex>,
}

impl AsRef<[u8]> for Received {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

/// Receive buffers, reused for every batch; one can serve any number of sockets in turn.
#[derive(Debug)]
pub struct ReceiveBatch {
    headers: Vec<libc::mmsghdr>,
    pieces: Vec<[libc::iovec; 2]>,
    heads: Vec<u8>,
    tails: Vec<u8>,
    controls: Vec<[u64; CONTROL]>,
    /// Where frames came from, at a socket of several interfaces.
    sources: Vec<libc::sockaddr_ll>,
    cut: Cut,
    steady: Option<SteadyOffset>,
}

#[expect(unsafe_code, reason = "the system call's pointers")]
// SAFETY: the pointers inside point into vectors of the same value, which own their memory and move with it.
unsafe impl Send for ReceiveBatch {}

impl Default for ReceiveBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceiveBatch {
    /// The maximum number of frames per call.
    pub const FRAMES: usize = BATCH;

    /// Allocates the buffers: about 130 KiB in use, 4 MiB more if super-packets arrive.
    #[expect(unsafe_code, reason = "the system call's structures")]
    pub fn new() -> Self {
        // SAFETY: all are plain integers and pointers, for which all zeros is a value.
        let (header, piece, source) = unsafe { (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed()) };
        let mut batch = Self {
            headers: vec![header; BATCH],
            pieces: vec![piece; BATCH],
            heads: vec![0; BATCH * HEAD_STRIDE],
            tails: vec![0; BATCH * TAIL],
            controls: vec![[0; CONTROL]; BATCH],
            sources: vec![source; BATCH],
            cut: Cut::default(),
            steady: None,
        };
        batch.point();
        batch
    }

    /// Uses this offset to convert timestamps from now on, instead of a sample for each batch.
    pub fn convert_with(&mut self, steady: SteadyOffset) {
        self.steady = Some(steady);
    }

    /// The offset used to convert timestamps: readable when it must be sampled again.
    pub fn steady_offset(&self) -> Option<&SteadyOffset> {
        self.steady.as_ref()
    }

    /// Samples that offset again, because the wall clock was set.
    ///
    /// # Errors
    /// Those of [`SteadyOffset::sample_anew`].
    pub fn sample_offset_anew(&mut self) -> io::Result<()> {
        self.steady.as_mut().map_or(Ok(()), SteadyOffset::sample_anew)
    }

    /// Points each message at its buffers. None of the vectors ever grows, so this stays valid.
    fn point(&mut self) {
        for slot in 0..BATCH {
            let head = self.heads[slot * HEAD_STRIDE..].as_mut_ptr();
            let tail = self.tails[slot * TAIL..].as_mut_ptr();
            self.pieces[slot] = [
                libc::iovec { iov_base: head.cast(), iov_len: HEAD },
                libc::iovec { iov_base: tail.cast(), iov_len: TAIL },
            ];
            let header = &mut self.headers[slot].msg_hdr;
            header.msg_iov = self.pieces[slot..].as_mut_ptr().cast();
            header.msg_iovlen = 2;
            header.msg_control = self.controls[slot..].as_mut_ptr().cast();
        }
    }

    /// The flags for filling the slots: the kernel returns what is pending, and reports the length of truncated
    /// frames.
    pub(crate) const FLAGS: libc::c_int = libc::MSG_DONTWAIT | libc::MSG_TRUNC;

    /// [`BATCH`] slots for `recvmmsg` to fill, each of which points at two pieces and a control buffer of the lengths
    /// given, all owned by `self`.
    pub(crate) fn slots(&mut self) -> &mut [libc::mmsghdr] {
        for header in &mut self.headers {
            header.msg_hdr.msg_controllen = size_of::<[u64; CONTROL]>() as _;
        }
        &mut self.headers
    }

    /// The same slots, with room for the interfaces that frames came to, or without.
    fn slots_with(&mut self, sources: bool) -> &mut [libc::mmsghdr] {
        for (header, source) in self.headers.iter_mut().zip(&mut self.sources) {
            let (place, room) = match sources {
                true => (std::ptr::from_mut(source).cast(), size_of::<libc::sockaddr_ll>()),
                false => (std::ptr::null_mut(), 0),
            };
            header.msg_hdr.msg_name = place;
            header.msg_hdr.msg_namelen = room as _;
        }
        self.slots()
    }

    /// Fills the slots from a socket; returns how many. With `sources`, also notes the interfaces.
    #[expect(unsafe_code, reason = "a system call that no crate wraps without allocating")]
    pub(crate) fn fill(&mut self, socket: BorrowedFd<'_>, sources: bool) -> Result<usize, nix::Error> {
        let slots = self.slots_with(sources);
        loop {
            // SAFETY: every slot points at live buffers, none of which is borrowed now; a null timeout is allowed.
            let result = unsafe {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    slots.as_mut_ptr(),
                    BATCH as u32,
                    Self::FLAGS as _,
                    std::ptr::null_mut(),
                )
            };
            match nix::errno::Errno::result(result) {
                Ok(count) => return Ok(count as usize),
                Err(nix::Error::EINTR) => {}
                Err(nix::Error::EAGAIN) => return Ok(0),
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Converts timestamps of what was read before.
    pub(crate) fn offset(&self) -> WallClockOffset {
        self.steady.as_ref().map_or_else(WallClockOffset::sample, SteadyOffset::offset)
    }

    /// The contents of one slot, in two pieces, and its timestamp by the wall clock in nanoseconds.
    pub(crate) fn contents(&self, slot: usize) -> (&[u8], &[u8], Option<u64>) {
        let length = self.headers[slot].msg_len as usize;
        let head = &self.heads[slot * HEAD_STRIDE..][..length.min(HEAD)];
        let tail = &self.tails[slot * TAIL..][..length.saturating_sub(HEAD).min(TAIL)];
        (head, tail, self.notes(slot).stamp)
    }

    /// Buffers for one frame of another receive method, in two pieces, and the splitter.
    pub(crate) fn room(&mut self) -> (&mut [u8], &mut [u8], &mut Cut) {
        (&mut self.heads[..HEAD], &mut self.tails[..TAIL], &mut self.cut)
    }

    /// Copies one slot out.
    fn take(&self, slot: usize, offset: WallClockOffset, pool: &mut FramePool) -> Received {
        let length = self.headers[slot].msg_len as usize;
        let head = &self.heads[slot * HEAD_STRIDE..][..length.min(HEAD)];
        let tail = &self.tails[slot * TAIL..][..length.saturating_sub(HEAD).min(TAIL)];
        let notes = self.notes(slot);
        let (frame, original_length) = match notes.vlan {
            Some(tag) if head.len() >= TAG_AT => {
                let (addresses, rest) = head.split_at(TAG_AT);
                (pool.joined(&[addresses, &tag, rest, tail]), length + tag.len())
            }
            _ => (pool.joined(&[head, tail]), length),
        };
        let stamp = notes.stamp.map(|wall| offset.reading(wall));
        let index = self.sources[slot].sll_ifindex;
        let interface = (self.headers[slot].msg_hdr.msg_namelen > 0).then_some(InterfaceIndex(index as u32));
        Received { frame, stamp, original_length, partial_checksum: notes.partial_checksum, interface }
    }

    /// Splits the contents of one slot, which follow a header that describes them, and passes on each packet.
    fn cut(
        &mut self,
        slot: usize,
        offset: WallClockOffset,
        offloads: Offloads,
        trains: &mut TrainStatistics,
        pool: &mut FramePool,
        into: &mut Vec<Received>,
    ) {
        let length = self.headers[slot].msg_len as usize;
        let notes = self.notes(slot);
        let head = &self.heads[slot * HEAD_STRIDE..][..length.min(HEAD)];
        let tail = &self.tails[slot * TAIL..][..length.saturating_sub(HEAD).min(TAIL)];
        let (header, head) = head.split_at(HEADER.min(head.len()));
        let missing = length.saturating_sub(HEAD + TAIL);
        let stamp = notes.stamp.map(|wall| offset.reading(wall));
        let tag: &[u8] = notes.vlan.as_ref().map_or(&[], |tag| tag);
        let described = Described::parse(header);
        let mut give = |mut frame: Frame| {
            if offloads == Offloads::Finished {
                frame.finish();
            }
            let original_length = frame.len() + missing;
            into.push(Received { frame, stamp, original_length, partial_checksum: false, interface: None });
        };
        if offloads == Offloads::Whole {
            let (addresses, rest) = head.split_at(TAG_AT.min(head.len()));
            let header = described.shifted(tag.len()).bytes();
            return give(pool.joined(&[&header, addresses, tag, rest, tail]));
        }
        if let Some(count) = self.cut.cut(Whole { described, head, tail, tag }, pool, give) {
            trains.came += 1;
            trains.cut += count as u64;
        }
    }

    /// Parses the control messages of one slot.
    #[expect(unsafe_code, reason = "control messages are walked by pointer")]
    fn notes(&self, slot: usize) -> Notes {
        let mut notes = Notes::default();
        let header = &raw const self.headers[slot].msg_hdr;
        // SAFETY: the kernel has filled this header; its control buffer is live and aligned, and the walk
        // stays within the length that the kernel set.
        let mut control = unsafe { libc::CMSG_FIRSTHDR(header) };
        while !control.is_null() {
            // SAFETY: the walk gave a control header inside the buffer; its data follows it, as long as
            // `cmsg_len` says, which the kernel sets to the structure's own size for these two kinds. Both are
            // plain integers; they are read without assuming alignment.
            unsafe {
                let data = libc::CMSG_DATA(control);
                match ((*control).cmsg_level, (*control).cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        notes.stamped(data.cast::<libc::timespec>().read_unaligned());
                    }
                    (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                        notes.described(data.cast::<libc::tpacket_auxdata>().read_unaligned());
                    }
                    _ => {}
                }
                control = libc::CMSG_NXTHDR(header, control);
            }
        }
        notes
    }
}

/// The control messages of a frame.
#[derive(Default)]
struct Notes {
    /// Wall-clock nanoseconds.
    stamp: Option<u64>,
    /// The four bytes of a tag that the kernel has removed from the frame.
    vlan: Option<[u8; 4]>,
    partial_checksum: bool,
}

impl Notes {
    fn stamped(&mut self, time: libc::timespec) {
        let seconds = u64::try_from(time.tv_sec).ok();
        self.stamp = seconds.map(|seconds| seconds * 1_000_000_000 + time.tv_nsec as u64);
    }

    fn described(&mut self, data: libc::tpacket_auxdata) {
        /// The usual tag protocol, for kernels that do not report it.
        const VLAN: u16 = 0x8100;
        self.partial_checksum = data.tp_status & libc::TP_STATUS_CSUMNOTREADY != 0;
        if data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
            return;
        }
        let known = data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let [a, b] = if known { data.tp_vlan_tpid } else { VLAN }.to_be_bytes();
        let [c, d] = data.tp_vlan_tci.to_be_bytes();
        self.vlan = Some([a, b, c, d]);
    }
}

impl PacketSocket {
    /// Receives pending frames, at most [`ReceiveBatch::FRAMES`], and appends them to `into`; returns how many. Zero
    /// means that nothing is pending.
    pub fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        pool: &mut FramePool,
        into: &mut Vec<Received>,
    ) -> Result<usize, PacketSocketError> {
        let count = loop {
            match batch.fill(self.descriptor.as_fd(), self.is_shared) {
                Err(nix::Error::EINVAL) if self.offloads != Offloads::None => self.undescribed += 1,
                result => break result,
            }
        };
        let count = count.map_err(|errno| match errno {
            nix::Error::ENETDOWN => PacketSocketError::Down { interface: self.interface.clone() },
            _ => PacketSocketError::Refused {
                step: "receive from",
                interface: self.interface.clone(),
                cause: errno.into(),
            },
        })?;
        if count > 0 {
            self.take(batch, count, batch.offset(), pool, into);
        }
        Ok(count)
    }

    /// Takes the contents of the first slots of a batch, which this socket has filled.
    pub(crate) fn take(
        &mut self,
        batch: &mut ReceiveBatch,
        count: usize,
        offset: WallClockOffset,
        pool: &mut FramePool,
        into: &mut Vec<Received>,
    ) {
        self.taken += count as u64;
        match self.offloads {
            Offloads::None => into.extend((0..count).map(|slot| batch.take(slot, offset, pool))),
            offloads => (0..count).for_each(|slot| {
                batch.cut(slot, offset, offloads, &mut self.trains, pool, into);
            }),
        }
    }
}
