//! Receiving and sending frames.

use std::io::{IoSlice, IoSliceMut};

use nix::errno::Errno;
use nix::sys::uio::{readv, writev};

use super::{LINK_HEADERS, Tap, TapError};
use crate::frame::{Frame, FramePool};
use crate::offloaded::join::MOST;
use crate::offloaded::{Described, HEADER, Whole};
use crate::packet_socket::{ReceiveBatch, Received, SendStop, Sent};

impl Tap {
    /// Receives pending frames, at most [`ReceiveBatch::FRAMES`] frames of the kernel's, and appends them to `into`;
    /// returns how many there were. They have no timestamp.
    ///
    /// # Errors
    /// If the interface is gone, or the kernel refuses.
    pub fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        pool: &mut FramePool,
        into: &mut Vec<Received>,
    ) -> Result<usize, TapError> {
        for count in 0..ReceiveBatch::FRAMES {
            let (head, tail, cut) = batch.room();
            let length = match readv(&self.descriptor, &mut [IoSliceMut::new(head), IoSliceMut::new(tail)]) {
                Ok(length) => length,
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(count),
                Err(Errno::EBADFD | Errno::EIO | Errno::ENODEV) => {
                    return Err(TapError::Gone { interface: self.interface.clone() });
                }
                Err(errno) => {
                    let (interface, cause) = (self.interface.clone(), errno.into());
                    return Err(TapError::Refused { step: "read from", interface, cause });
                }
            };
            self.statistics.arrived += 1;
            let (head, tail) = (&head[..length.min(head.len())], &tail[..length.saturating_sub(head.len())]);
            let mut give = |frame: Frame| {
                let original_length = frame.len();
                into.push(Received {
                    frame,
                    stamp: None,
                    original_length,
                    partial_checksum: false,
                    interface: None,
                });
            };
            let Some((trains, _)) = &mut self.trains else {
                give(pool.joined(&[head, tail]));
                continue;
            };
            let (header, head) = head.split_at(HEADER.min(head.len()));
            let whole = Whole { described: Described::parse(header), head, tail, tag: &[] };
            if let Some(packets) = cut.cut(whole, pool, give) {
                trains.came += 1;
                trains.cut += packets as u64;
            }
        }
        Ok(ReceiveBatch::FRAMES)
    }

    /// Sends frames in order until all are sent or one is not accepted. Never blocks.
    pub fn send<F: AsMut<Frame>>(&mut self, frames: &mut [F]) -> Sent {
        let mut count = 0;
        while count < frames.len() {
            match self.send_one(&mut frames[count..]) {
                Ok(sent) => count += sent,
                Err(stop) => return Sent { count, stopped: Some(stop) },
            }
        }
        Sent { count, stopped: None }
    }

    /// Sends the first frame, and those joined to it; returns how many.
    fn send_one<F: AsMut<Frame>>(&mut self, frames: &mut [F]) -> Result<usize, SendStop> {
        let Some((_, headers)) = &mut self.trains else {
            let frame = frames[0].as_mut();
            check_length(frame, self.mtu)?;
            write(&self.descriptor, &[IoSlice::new(frame)])?;
            return Ok(1);
        };
        let joined = frames[1..].iter_mut().take(MOST - 1);
        let count = 1 + joined.map_while(|next| next.as_mut().open.joins.then_some(())).count();
        frames[..count].iter_mut().try_for_each(|frame| check_length(frame.as_mut(), self.mtu))?;
        let from = headers.of(&mut frames[..count]);
        let mut pieces = [IoSlice::new(&[]); MOST + 1];
        pieces[0] = IoSlice::new(headers.get());
        for (piece, frame) in pieces[1..].iter_mut().zip(&mut frames[..count]) {
            *piece = IoSlice::new(&frame.as_mut()[from..]);
        }
        write(&self.descriptor, &pieces[..1 + count])?;
        Ok(count)
    }
}

/// A TAP device accepts frames of any length; a cable does not.
fn check_length(frame: &Frame, mtu: usize) -> Result<(), SendStop> {
    if frame.len() > mtu + LINK_HEADERS { Err(SendStop::TooLarge) } else { Ok(()) }
}

fn write(descriptor: &std::os::fd::OwnedFd, pieces: &[IoSlice<'_>]) -> Result<(), SendStop> {
    loop {
        match writev(descriptor, pieces) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(Errno::EIO | Errno::EBADFD) => return Err(SendStop::Down),
            Err(errno) => return Err(errno.into()),
        }
    }
}
