//! Puts frames into a transmit ring. The kernel is notified by a system call only if it asks for that.

use nix::errno::Errno;

use super::port::{MOST_PIECES, Port, TAG};
use super::socket::Descriptor;
use crate::frame::Frame;
use crate::packet_socket::{SendStop, Sent};

/// An Ethernet header.
const HEADER: usize = 14;

impl Port {
    /// Sends frames in order until all are sent or one is not accepted. Never blocks. The memory of a frame that is
    /// shared with this port is moved out; other frames are copied.
    pub fn send<F: AsRef<[u8]> + AsMut<Frame>>(&mut self, frames: &mut [F]) -> Sent {
        send(self, frames)
    }
}

fn send<F: AsRef<[u8]> + AsMut<Frame>>(port: &mut Port, frames: &mut [F]) -> Sent {
    port.reap();
    let mut count = 0;
    let mut retried = false;
    while count < frames.len() {
        match place(port, frames[count].as_mut()) {
            Ok(()) => count += 1,
            // The notification empties the ring.
            Err(SendStop::Full) if !retried => {
                retried = true;
                if let Err(stop) = port.push_out() {
                    return Sent { count, stopped: Some(stop) };
                }
                port.reap();
            }
            Err(stop) => {
                let stop = port.push_out().err().unwrap_or(stop);
                return Sent { count, stopped: Some(stop) };
            }
        }
    }
    match port.push_out() {
        // The frames are in the ring of an interface that accepts none: they count as sent, and the error is returned
        // with the next ones.
        Ok(()) | Err(_) => Sent { count, stopped: None },
    }
}

/// Puts one frame into the ring.
fn place(port: &mut Port, frame: &mut Frame) -> Result<(), SendStop> {
    if frame.len() < HEADER {
        return Err(SendStop::TooShort);
    }
    if is_too_long(port, frame) {
        port.refresh_mtu();
        if is_too_long(port, frame) {
            return Err(SendStop::TooLarge);
        }
    }
    let Port { umem, lent, spare, queues, .. } = port;
    let Some(socket) = queues.first_mut() else { return Err(SendStop::Down) };
    let ring = &mut socket.send;
    if ring.room(1) == 0 {
        return Err(SendStop::Full);
    }
    let length = frame.len() as u32;
    if let Some(chunk) = frame.take_chunk(umem) {
        let address = chunk.into_address();
        if let Some(index) = umem.index(address) {
            lent.lend(index);
        }
        ring.push(Descriptor { address, length, options: 0 });
        return Ok(());
    }
    let pieces = frame.len().div_ceil(umem.capacity());
    // With too little room for all pieces, the kernel would send only the first ones.
    if (ring.room(pieces as u32) as usize) < pieces {
        return Err(SendStop::Full);
    }
    if spare.len() < pieces {
        umem.take(pieces - spare.len(), 0, spare);
    }
    if spare.len() < pieces {
        return Err(SendStop::Full);
    }
    for (number, piece) in frame.chunks(umem.capacity()).enumerate() {
        let Some(index) = spare.pop() else { break };
        let address = umem.frame_address(index);
        copy(umem, address, piece);
        lent.lend(index);
        let options = if number + 1 < pieces { libc::XDP_PKT_CONTD } else { 0 };
        ring.push(Descriptor { address, length: piece.len() as u32, options });
    }
    Ok(())
}

#[expect(unsafe_code, reason = "a chunk is written by its address")]
fn copy(umem: &super::Umem, address: u64, piece: &[u8]) {
    let Some(memory) = umem.place(address, piece.len()) else { return };
    // SAFETY: the chunk was free, and is ours until it is lent; a frame elsewhere does not overlap with it.
    unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), memory.as_ptr(), piece.len()) };
}

/// Whether the interface would drop the frame silently.
fn is_too_long(port: &Port, frame: &[u8]) -> bool {
    let is_tagged = matches!(frame.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]));
    let most = port.mtu as usize + HEADER + if is_tagged { TAG } else { 0 };
    let pieces = if port.several_chunks { MOST_PIECES } else { 1 };
    frame.len() > most.min(port.umem.capacity() * pieces)
}

impl Port {
    /// Makes the kernel take what is in the ring, as far as it does.
    pub(super) fn push_out(&mut self) -> Result<(), SendStop> {
        let Some(socket) = self.queues.first_mut() else { return Ok(()) };
        socket.send.submit();
        loop {
            let before = socket.send.pending();
            if before == 0 || !socket.send.needs_wakeup() {
                return Ok(());
            }
            match socket.wake_sender() {
                // Each call takes some of them.
                Ok(()) | Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS | Errno::ENOMEM) => {}
                // The interface dropped one that it had accepted.
                Err(Errno::EBUSY) => self.refused += 1,
                Err(errno) => return Err(errno.into()),
            }
            if socket.send.pending() == before {
                return Ok(());
            }
        }
    }
}
