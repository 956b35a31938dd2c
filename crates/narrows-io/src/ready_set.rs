//! Many descriptors, and which of them are readable: `epoll`.
//!
//! Checking each of n descriptors takes n system calls; the kernel's own list of ready ones takes one, and its cost
//! depends only on the number that are ready. It costs the sender of each packet some 0.1 µs to enter its descriptor
//! into the list, so a few descriptors are checked individually.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// Descriptors, each with a number. Closing one removes it, once no other process has a copy: a child of a fork has
/// copies of all until it runs its program.
#[derive(Debug)]
pub struct ReadySet {
    epoll: Epoll,
    /// As many as there are descriptors, so that one call returns all that are ready.
    events: Vec<EpollEvent>,
}

impl ReadySet {
    /// An empty set.
    ///
    /// # Errors
    /// If the kernel has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?, events: Vec::new() })
    }

    /// Adds a descriptor with a number.
    ///
    /// # Errors
    /// If the kernel cannot watch it, or it is already in the set.
    pub fn add(&mut self, descriptor: &impl AsFd, number: usize) -> io::Result<()> {
        self.epoll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, number as u64))?;
        self.events.push(EpollEvent::empty());
        Ok(())
    }

    /// The numbers of those that are readable, or have failed, now. A descriptor stays ready until it is read. Never
    /// waits, and allocates nothing.
    ///
    /// # Errors
    /// If the kernel refuses, for which it has no reason.
    pub fn ready(&mut self) -> io::Result<impl Iterator<Item = usize> + '_> {
        // The kernel rejects an empty list.
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
    use std::thread;
    use std::time::Duration;

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
        // Other tests start programs meanwhile, which have copies for a moment.
        let closed = (0..10_000).any(|_| {
            thread::sleep(Duration::from_millis(1));
            set.ready().unwrap().count() == 0
        });
        assert!(closed);
    }
}
