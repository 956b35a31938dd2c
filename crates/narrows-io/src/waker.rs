//! Wakes a thread that waits for descriptors, through an `eventfd`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::eventfd::{EfdFlags, EventFd};

/// Wakes a thread that waits for it to be readable. It stays readable until [`Waker::clear`], so a call before the
/// wait is not lost.
#[derive(Debug)]
pub struct Waker {
    descriptor: EventFd,
}

impl Waker {
    /// A waker that has not been called.
    ///
    /// # Errors
    /// If the kernel has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self { descriptor: EventFd::from_value_and_flags(0, flags)? })
    }

    /// Wakes the thread. One system call, which never waits; any number of calls count as one.
    pub fn wake(&self) {
        // Only refused after 2⁶⁴ − 2 calls without a clear: then it is readable anyway.
        let _ = self.descriptor.write(1);
    }

    /// Makes it unreadable again.
    pub fn clear(&self) {
        // Only refused if there was no call.
        let _ = self.descriptor.read();
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MonotonicTime;
    use crate::wait::{Waiting, wait};

    #[test]
    fn a_call_before_the_wait_counts_until_it_is_cleared() {
        let waker = Waker::new().unwrap();
        let look = || wait(&mut [Waiting::readable(&waker)], Some(MonotonicTime::default())).unwrap();
        assert_eq!(look(), 0);
        waker.wake();
        waker.wake();
        assert_eq!((look(), look()), (1, 1));
        waker.clear();
        waker.clear();
        assert_eq!(look(), 0);
    }

    #[test]
    fn another_thread_is_woken() {
        let waker = Waker::new().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(&mut [Waiting::readable(&waker)], None).unwrap());
            waker.wake();
            assert_eq!(waiting.join().unwrap(), 1);
        });
    }
}
