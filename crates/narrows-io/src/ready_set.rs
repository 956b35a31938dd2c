//! Many descriptors, and which of them can be read: `epoll`.
//!
//! Looking at each of n descriptors takes n system calls; the kernel's own list of those that are ready takes one, and
//! grows with what is ready alone. It costs the sender of each packet some 0.1 µs, which enters its descriptor into the
//! list, so that few descriptors are looked at one by one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// Descriptors, each with a number. One that is closed leaves by itself.
#[derive(Debug)]
pub struct ReadySet {
    epoll: Epoll,
    /// As many as there are descriptors, so that one call brings all that are ready.
    events: Vec<EpollEvent>,
}

impl ReadySet {
    /// An empty one.
    ///
    /// # Errors
    /// When the kernel has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?, events: Vec::new() })
    }

    /// Adds a descriptor under a number.
    ///
    /// # Errors
    /// When the kernel cannot watch it, or it is there already.
    pub fn add(&mut self, descriptor: &impl AsFd, number: usize) -> io::Result<()> {
        self.epoll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, number as u64))?;
        self.events.push(EpollEvent::empty());
        Ok(())
    }

    /// The numbers of those that can be read, or have failed, now. What is not read stays ready. Never waits, and
    /// allocates nothing.
    ///
    /// # Errors
    /// When the kernel refuses, which it has no reason for.
    pub fn ready(&mut self) -> io::Result<impl Iterator<Item = usize> + '_> {
        // The kernel refuses to tell of none.
        let count = match self.events.len() {
            0 => 0,
            _ => self.look()?,
        };
        Ok(self.events[..count].iter().map(|event| event.data() as usize))
    }

    fn look(&mut self) -> io::Result<usize> {
        match self.epoll.wait(&mut self.events, EpollTimeout::ZERO) {
            Ok(count) => Ok(count),
            Err(nix::Error::EINTR) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl AsFd for ReadySet {
    /// Readable when one of them is.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MonotonicTime;
    use crate::wait::{Waiting, wait};
    use crate::waker::Waker;

    #[test]
    fn those_that_are_ready_are_told_until_they_are_read() {
        let wakers: Vec<_> = (0..100).map(|_| Waker::new().unwrap()).collect();
        let mut set = ReadySet::new().unwrap();
        for (number, waker) in wakers.iter().enumerate() {
            set.add(waker, number).unwrap();
        }
        assert!(set.add(&wakers[0], 100).is_err(), "it is there already");
        assert_eq!(set.ready().unwrap().count(), 0);
        let is_ready = |set: &ReadySet| {
            wait(&mut [Waiting::readable(set)], Some(MonotonicTime::default())).unwrap() == 1
        };
        assert!(!is_ready(&set));
        for number in [7, 99, 0] {
            wakers[number].wake();
        }
        for _ in 0..2 {
            assert!(is_ready(&set));
            let mut found: Vec<_> = set.ready().unwrap().collect();
            found.sort_unstable();
            assert_eq!(found, [0, 7, 99]);
        }
        wakers[7].clear();
        assert_eq!(set.ready().unwrap().count(), 2);
        drop(wakers);
        assert_eq!(set.ready().unwrap().count(), 0);
    }
}
