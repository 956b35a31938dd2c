//! Sleeping until a descriptor is ready or an instant is reached, and signals as descriptors.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::clock::{MonotonicTime, clock_monotonic};

/// A descriptor to wait for, and the result.
///
/// Created for each wait, on the stack, so that the sockets are not borrowed in between.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Waiting<'fd> {
    entry: libc::pollfd,
    descriptor: PhantomData<BorrowedFd<'fd>>,
}

impl<'fd> Waiting<'fd> {
    /// Waits until something can be read, or the other side is gone.
    pub fn readable(descriptor: &'fd impl AsFd) -> Self {
        Self::new(descriptor.as_fd(), libc::POLLIN)
    }

    /// Waits until something can be written.
    pub fn writable(descriptor: &'fd impl AsFd) -> Self {
        Self::new(descriptor.as_fd(), libc::POLLOUT)
    }

    /// Waits until the other side is gone.
    pub fn gone(descriptor: &'fd impl AsFd) -> Self {
        Self::new(descriptor.as_fd(), 0)
    }

    fn new(descriptor: BorrowedFd<'fd>, events: i16) -> Self {
        let entry = libc::pollfd { fd: descriptor.as_raw_fd(), events, revents: 0 };
        Self { entry, descriptor: PhantomData }
    }

    /// Whether the last [`wait`] found it ready. An error or hang-up counts: the next read or write returns it.
    pub fn is_ready(&self) -> bool {
        self.entry.revents != 0
    }
}

/// Sleeps until a descriptor is ready or `deadline` is reached (`None`: no limit; one in the past only polls).
/// Returns how many are ready: zero at the deadline, and also after a signal handler ran, so check the clock.
/// Allocates nothing.
pub fn wait(descriptors: &mut [Waiting<'_>], deadline: Option<MonotonicTime>) -> io::Result<usize> {
    let now = deadline.map_or(MonotonicTime::default(), |_| clock_monotonic());
    wait_from(now, descriptors, deadline)
}

/// The same for a caller that knows the present clock reading: it is not read again.
#[expect(unsafe_code, reason = "a system call")]
pub fn wait_from(
    now: MonotonicTime,
    descriptors: &mut [Waiting<'_>],
    deadline: Option<MonotonicTime>,
) -> io::Result<usize> {
    let timeout = timeout(now, deadline);
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let entries = entries(descriptors);
    // SAFETY: the slice is live and of the length given; the time-out is null or live; a null signal mask is allowed.
    let result = unsafe { libc::ppoll(entries.as_mut_ptr(), entries.len() as _, timeout, std::ptr::null()) };
    match nix::errno::Errno::result(result) {
        Ok(ready) => Ok(ready as usize),
        Err(nix::Error::EINTR) => Ok(0),
        Err(errno) => Err(errno.into()),
    }
}

/// The time left until a deadline.
pub(crate) fn timeout(now: MonotonicTime, deadline: Option<MonotonicTime>) -> Option<libc::timespec> {
    let left = deadline?.as_nanos().saturating_sub(now.as_nanos());
    Some(libc::timespec { tv_sec: (left / 1_000_000_000) as _, tv_nsec: (left % 1_000_000_000) as _ })
}

/// The entries for the kernel, with results cleared.
#[expect(unsafe_code, reason = "a slice of one type seen as one of another")]
pub(crate) fn entries<'a>(descriptors: &'a mut [Waiting<'_>]) -> &'a mut [libc::pollfd] {
    for descriptor in &mut *descriptors {
        descriptor.entry.revents = 0;
    }
    // SAFETY: `Waiting` is a transparent pollfd, and the slice is borrowed for as long as what is given.
    unsafe { std::slice::from_raw_parts_mut(descriptors.as_mut_ptr().cast(), descriptors.len()) }
}

/// The original timer slack of this process in nanoseconds; 0 while it is unchanged.
static USUAL_SLACK: AtomicU64 = AtomicU64::new(0);

/// Asks the kernel to wake the calling thread on time instead of up to 50 µs late. Threads started later inherit
/// this; programs started by [`crate::process::spawn`] get the process's original setting.
pub fn wake_on_time() -> io::Result<()> {
    let usual = nix::sys::prctl::get_timerslack()? as u64; // never negative
    nix::sys::prctl::set_timerslack(1)?;
    // The first call counts.
    let _ = USUAL_SLACK.compare_exchange(0, usual, Ordering::Relaxed, Ordering::Relaxed);
    Ok(())
}

/// Restores the process's original timer slack for the calling thread. Makes one system call, and allocates nothing.
pub(crate) fn wake_as_usual() -> io::Result<()> {
    match USUAL_SLACK.load(Ordering::Relaxed) {
        0 => Ok(()),
        usual => Ok(nix::sys::prctl::set_timerslack(usual)?),
    }
}

/// A signal that asked a program to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndSignal {
    /// The signal.
    pub signal: Signal,
    /// Whether it came from the terminal, which sends it to every foreground process, and not from a process.
    pub from_terminal: bool,
}

/// The signals that ask a program to end (`SIGINT`, `SIGTERM`, `SIGHUP`, `SIGQUIT`), read as events instead of taking
/// effect.
#[derive(Debug)]
pub struct EndSignals {
    descriptor: SignalFd,
}

impl EndSignals {
    /// Blocks these signals in the calling thread, and in threads started later, and makes them readable. Call it
    /// before other threads exist; otherwise those still receive them.
    pub fn catch() -> io::Result<Self> {
        let signals = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
        let signals: SigSet = signals.into_iter().collect();
        signals.thread_block()?;
        let descriptor = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Self { descriptor })
    }

    /// The next pending signal, if any.
    pub fn take(&mut self) -> io::Result<Option<EndSignal>> {
        let Some(taken) = self.descriptor.read_signal()? else { return Ok(None) };
        let signal = Signal::try_from(taken.ssi_signo as i32).ok();
        // A terminal that is gone only signals the first process of its session.
        let to_all = |signal| taken.ssi_code == libc::SI_KERNEL && signal != Signal::SIGHUP;
        Ok(signal.map(|signal| EndSignal { signal, from_terminal: to_all(signal) }))
    }
}

impl AsFd for EndSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
