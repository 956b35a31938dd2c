//! Takes frames from a receive ring and puts the same number of chunks into the fill ring, so that the kernel always
//! has the same number of them.

use std::sync::Arc;

use super::XdpError;
use super::port::Port;
use super::redirect::STAMP;
use super::socket::{Descriptor, Socket};
use crate::clock::MonotonicTime;
use crate::frame::{Frame, FramePool};
use crate::packet_socket::{ReceiveBatch, Received};
use crate::umem::{Chunk, Lent, Umem};

/// How often a receive call that found nothing checks whether the interface is still up.
const IDLE_CHECK: u32 = 256;
/// The maximum number of pieces of a frame.
const MOST_PIECES: usize = 64;

impl Port {
    /// Receives pending frames, at most [`ReceiveBatch::FRAMES`], and appends them to `into`; returns how many. Fewer
    /// than that means that nothing is left.
    ///
    /// # Errors
    /// If the interface is down or gone.
    pub fn receive(&mut self, pool: &mut FramePool, into: &mut Vec<Received>) -> Result<usize, XdpError> {
        self.reap();
        if self.has_unsent() {
            // Errors are returned below, or by the next send.
            let _ = self.push_out();
        }
        let mut count = 0;
        for queue in 0..self.queues.len() {
            if self.busy_poll {
                // "Nothing to do" is not an error.
                let _ = self.queues[queue].wake_receiver();
            }
            count += of_queue(self, queue, ReceiveBatch::FRAMES - count, pool, into);
        }
        self.received += count as u64;
        if count == 0 {
            self.idle += 1;
            if self.idle >= IDLE_CHECK {
                self.idle = 0;
                self.check()?;
            }
        }
        Ok(count)
    }
}

/// Receives at most `most` frames of one queue; returns how many.
fn of_queue(
    port: &mut Port,
    queue: usize,
    most: usize,
    pool: &mut FramePool,
    into: &mut Vec<Received>,
) -> usize {
    let Port { umem, clock, lent, spare, reserve, queues, .. } = port;
    let socket = &mut queues[queue];
    let available = socket.receive.available(most as u32);
    if available == 0 || most == 0 {
        return 0;
    }
    let wanted = most.min(available as usize);
    if spare.len() < wanted {
        umem.take(wanted - spare.len(), *reserve, spare);
    }
    let (mut frames, mut taken) = (0, 0);
    let before = into.len();
    while frames < most
        && let Some(pieces) = pieces(socket, taken)
    {
        let first = socket.receive.peek(taken);
        if let Some(only) = first.filter(|_| pieces == 1) {
            into.extend(whole(umem, lent, spare, socket, only, pool));
        } else {
            into.extend(joined(umem, lent, spare, socket, taken, pieces, pool));
        }
        taken += pieces;
        frames += 1;
    }
    for received in &mut into[before..] {
        received.stamp = received.stamp.map(|stamp| clock.on_ours(stamp));
    }
    socket.receive.release(taken);
    socket.fill.submit();
    if socket.fill.needs_wakeup() {
        // Errors of the interface are detected elsewhere.
        let _ = socket.wake_receiver();
    }
    frames
}

/// The number of pieces of the next frame; `None` if its end has not arrived.
fn pieces(socket: &Socket, from: u32) -> Option<u32> {
    let mut count = 0;
    loop {
        let piece = socket.receive.peek(from + count)?;
        count += 1;
        if !piece.is_continued() {
            return Some(count);
        }
    }
}

/// A frame in one chunk: it stays there if the kernel can have another chunk for it, otherwise it is copied. `None`
/// if the chunk was not lent to the kernel.
fn whole(
    umem: &Arc<Umem>,
    lent: &mut Lent,
    spare: &mut Vec<u32>,
    socket: &mut Socket,
    piece: Descriptor,
    pool: &mut FramePool,
) -> Option<Received> {
    let index = umem.index(piece.address).filter(|&index| lent.take_back(index))?;
    let stamp = take_stamp(umem, piece.address);
    let Some(chunk) = chunk(umem, piece) else {
        lend(umem, lent, spare, socket, index);
        return None;
    };
    let frame = match spare.pop() {
        Some(other) => {
            lend(umem, lent, spare, socket, other);
            Frame::from(chunk)
        }
        None => {
            let frame = pool.frame(&chunk);
            chunk.into_address();
            lend(umem, lent, spare, socket, index);
            frame
        }
    };
    Some(received(frame, stamp))
}

/// A frame in several chunks, copied from them.
fn joined(
    umem: &Arc<Umem>,
    lent: &mut Lent,
    spare: &mut Vec<u32>,
    socket: &mut Socket,
    from: u32,
    pieces: u32,
    pool: &mut FramePool,
) -> Option<Received> {
    let all = (0..pieces).filter_map(|ahead| socket.receive.peek(from + ahead));
    let mut stamp = None;
    let mut chunks: Vec<Chunk> = Vec::with_capacity(MOST_PIECES.min(pieces as usize));
    for piece in all {
        umem.index(piece.address).filter(|&index| lent.take_back(index))?;
        if chunks.is_empty() {
            stamp = take_stamp(umem, piece.address);
        }
        // The earlier ones are dropped with the frame, and become free.
        chunks.push(chunk(umem, piece)?);
    }
    let parts: Vec<&[u8]> = chunks.iter().map(|chunk| &**chunk).collect();
    let frame = pool.joined(&parts);
    for chunk in chunks {
        let address = chunk.into_address();
        if let Some(index) = umem.index(address) {
            lend(umem, lent, spare, socket, index);
        }
    }
    Some(received(frame, stamp))
}

fn received(frame: Frame, stamp: Option<MonotonicTime>) -> Received {
    let original_length = frame.len();
    Received { frame, stamp, original_length, partial_checksum: false, interface: None }
}

/// Lends the kernel a chunk to receive into.
fn lend(umem: &Umem, lent: &mut Lent, spare: &mut Vec<u32>, socket: &mut Socket, index: u32) {
    if socket.fill.push(umem.frame_address(index)) {
        lent.lend(index);
    } else {
        spare.push(index);
    }
}

#[expect(unsafe_code, reason = "the kernel gave the chunk back")]
fn chunk(umem: &Arc<Umem>, piece: Descriptor) -> Option<Chunk> {
    // SAFETY: it was lent to the kernel by this port and is so no longer: it is ours alone.
    unsafe { Chunk::new(umem, piece.address, piece.length) }
}

/// The timestamp before a frame, by the kernel's clock. It is cleared, so that a frame for which the program could
/// not write one has none.
#[expect(unsafe_code, reason = "metadata lies in front of the frame")]
fn take_stamp(umem: &Umem, address: u64) -> Option<MonotonicTime> {
    let chunk_start = address & !(umem.chunk_size() as u64 - 1);
    let at = address.checked_sub(STAMP as u64).filter(|&at| at >= chunk_start)?;
    let stamp = umem.place(at, STAMP)?.cast::<u64>();
    // SAFETY: the bytes are in the chunk of the frame, which the kernel has just given back; they need not be aligned.
    let nanoseconds = unsafe {
        let nanoseconds = stamp.read_unaligned();
        stamp.write_unaligned(0);
        nanoseconds
    };
    (nanoseconds > 0).then(|| MonotonicTime::from_nanos(nanoseconds))
}
