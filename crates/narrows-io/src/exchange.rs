//! Sends frames, waits, reads the clock and receives frames in one system call.
//!
//! The guest kernel that narrows builds can execute several system calls as one
//! (`crates/narrows-guest/src/kernel/edits/calls.rs`): there, a system call costs two process switches on the host
//! and is most of the cost of moving a packet. No other kernel has this call.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use crate::clock::{MonotonicTime, SteadyOffset};
use crate::frame::FramePool;
use crate::packet_socket::{BATCH, PacketSocket, Pieces, ReceiveBatch, Received};
use crate::wait::{Waiting, entries, timeout};

/// The number of the combined system call; its arguments are an array of [`Call`] and its length.
const NARROWS_CALLS: libc::c_long = 28279;

/// `struct narrows_call`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Call {
    number: libc::c_long,
    arguments: [usize; 6],
    /// If a call returns less than this, no further calls are made.
    least: libc::c_long,
    result: libc::c_long,
}

impl Call {
    fn new(number: libc::c_long, arguments: &[usize], least: libc::c_long) -> Self {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        Self { number, arguments: all, least, result: 0 }
    }
}

/// The buffers to send from and receive into, for several packet sockets.
#[derive(Debug)]
pub struct Exchange {
    calls: Vec<Call>,
    pieces: Vec<Pieces>,
    headers: Vec<libc::mmsghdr>,
    /// What has arrived, for each socket: a batch, and how much of it is filled and not taken yet.
    came: Vec<(ReceiveBatch, Option<usize>)>,
}

#[expect(unsafe_code, reason = "the system calls' pointers")]
// SAFETY: what they point at is used by one call only, which makes them anew.
unsafe impl Send for Exchange {}

/// The result of an exchange.
#[derive(Debug)]
pub struct Exchanged {
    /// How many frames each socket accepted.
    pub sent: Vec<usize>,
    /// How many descriptors are ready, and the clock reading; `None` if not all frames were accepted or the wait was
    /// interrupted: then nothing was waited for or received.
    pub waited: Option<(usize, MonotonicTime)>,
}

impl Exchange {
    /// The maximum number of frames per socket.
    pub const FRAMES: usize = BATCH;

    /// For this many sockets; `None` if the kernel does not have the call.
    #[expect(
        unsafe_code,
        reason = "a system call of narrows' own guest kernel, and structures of the kernel's"
    )]
    pub fn new(sockets: usize) -> Option<Self> {
        // SAFETY: no calls are to be made; any other kernel has no such call.
        let offered = unsafe { libc::syscall(NARROWS_CALLS, ptr::null_mut::<Call>(), 0_usize) };
        if offered != 0 {
            return None;
        }
        // SAFETY: both are plain integers and pointers, for which all zeros is a value.
        let (piece, header) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        Some(Self {
            calls: Vec::new(),
            pieces: vec![piece; sockets * BATCH],
            headers: vec![header; sockets * BATCH],
            came: (0..sockets).map(|_| (ReceiveBatch::new(), None)).collect(),
        })
    }

    /// Sends frames from each socket, at most [`Exchange::FRAMES`]; then waits as [`crate::wait::wait_from`] does;
    /// then reads the clock and receives from each socket, to be taken by [`Exchange::take`]. Ends early if a socket
    /// does not accept all frames.
    ///
    /// # Errors
    /// If the kernel refuses to wait.
    ///
    /// # Panics
    /// If there are more sockets than it was created for.
    #[expect(unsafe_code, reason = "a system call of narrows' own guest kernel")]
    pub fn exchange<F: AsRef<[u8]>>(
        &mut self,
        sockets: &[(&PacketSocket, &[F])],
        now: MonotonicTime,
        waiting: &mut [Waiting<'_>],
        deadline: Option<MonotonicTime>,
    ) -> io::Result<Exchanged> {
        assert!(sockets.len() <= self.came.len(), "an exchange is made for its sockets");
        let timeout = timeout(now, deadline);
        let mut clock = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let rooms = self.pieces.chunks_exact_mut(BATCH).zip(self.headers.chunks_exact_mut(BATCH));
        self.calls.clear();
        for (&(socket, frames), (pieces, headers)) in sockets.iter().zip(rooms) {
            let count = socket.point(frames, pieces, headers);
            if count > 0 {
                let arguments = [
                    socket.as_fd().as_raw_fd() as usize,
                    headers.as_mut_ptr() as usize,
                    count,
                    libc::MSG_DONTWAIT as usize,
                ];
                self.calls.push(Call::new(libc::SYS_sendmmsg, &arguments, count as _));
            }
        }
        let sends = self.calls.len();
        let descriptors = entries(waiting);
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        let arguments = [descriptors.as_mut_ptr() as usize, descriptors.len(), timeout as usize];
        self.calls.push(Call::new(libc::SYS_ppoll, &arguments, 0));
        let arguments = [libc::CLOCK_MONOTONIC as usize, &raw mut clock as usize];
        self.calls.push(Call::new(libc::SYS_clock_gettime, &arguments, 0));
        let receives = self.calls.len();
        for (&(socket, _), (batch, _)) in sockets.iter().zip(&mut self.came) {
            let slots = batch.slots();
            let arguments = [
                socket.as_fd().as_raw_fd() as usize,
                slots.as_mut_ptr() as usize,
                slots.len(),
                ReceiveBatch::FLAGS as usize,
            ];
            self.calls.push(Call::new(libc::SYS_recvmmsg, &arguments, libc::c_long::MIN));
        }
        // SAFETY: each call's pointers are to live memory of the lengths given, which nobody else has now: messages that point
        // at two pieces each, and those at bytes that are borrowed; entries to poll; a time-out, or null; a time-spec; slots
        // of batches, as `slots` says. Null is allowed for a signal mask, and for the time-out of receiving.
        let made = unsafe { libc::syscall(NARROWS_CALLS, self.calls.as_mut_ptr(), self.calls.len()) };
        let made = usize::try_from(made).map_err(|_| io::Error::last_os_error())?;
        let mut of_sends = self.calls[..sends.min(made)].iter().map(|call| call.result.max(0) as usize);
        let sent = sockets.iter().map(|(_, frames)| match frames.len() {
            0 => 0,
            _ => of_sends.next().unwrap_or(0),
        });
        let sent = sent.collect();
        if made < receives {
            return Ok(match self.calls[..made].get(sends).map(|call| -call.result) {
                Some(errno) if errno != libc::c_long::from(libc::EINTR) => {
                    return Err(io::Error::from_raw_os_error(errno as i32));
                }
                _ => Exchanged { sent, waited: None },
            });
        }
        let results = self.calls[receives..made].iter().map(|call| call.result);
        for ((_, came), result) in self.came.iter_mut().zip(results) {
            // A failed receive is retried later, and then returns its error.
            *came = usize::try_from(result).ok().filter(|&count| count > 0);
        }
        let now = clock.tv_sec as u64 * 1_000_000_000 + clock.tv_nsec as u64;
        let ready = self.calls[sends].result as usize;
        Ok(Exchanged { sent, waited: Some((ready, MonotonicTime::from_nanos(now))) })
    }

    /// Whether something has arrived at a socket, by its index, and was not taken.
    pub fn holds(&self, place: usize) -> bool {
        self.came.get(place).is_some_and(|(_, came)| came.is_some())
    }

    /// Takes what has arrived at a socket, by its index, as [`PacketSocket::receive`] would have returned it; returns
    /// how many frames.
    pub fn take(
        &mut self,
        place: usize,
        socket: &mut PacketSocket,
        steady: &SteadyOffset,
        pool: &mut FramePool,
        into: &mut Vec<Received>,
    ) -> Option<usize> {
        let (batch, came) = self.came.get_mut(place)?;
        let count = came.take()?;
        socket.take(batch, count, steady.offset(), pool, into);
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::time_is_virtual;

    #[test]
    fn no_other_kernel_offers_it() {
        assert!(time_is_virtual() || Exchange::new(2).is_none());
    }
}
