//! Finds and ends processes by a mark in their environment.
//!
//! A process ID may be reused before it is used. So a descriptor of the process is opened before the process is
//! checked again and killed: the descriptor always refers to the same process.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::getpid;

use crate::process::{open_pidfd, processes};

/// An environment variable and its value.
#[derive(Clone, Copy, Debug)]
pub struct Mark<'a> {
    /// The variable.
    pub name: &'a str,
    /// Its value, which nobody has by chance.
    pub value: &'a str,
}

impl Mark<'_> {
    /// The processes that carry it, except our own.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn processes(&self) -> io::Result<Vec<u32>> {
        let own = getpid();
        let others = processes()?.filter(|process| *process != own).map(|process| process.as_raw() as u32);
        Ok(others.filter(|process| self.is_on(*process)).collect())
    }

    /// Kills the process if it carries the mark; returns whether it did.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn kill(&self, process: u32) -> io::Result<bool> {
        self.signal(process, Signal::SIGKILL)
    }

    /// Sends the process a signal if it carries the mark; returns whether it did.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn signal(&self, process: u32, signal: Signal) -> io::Result<bool> {
        let descriptor = match open_pidfd(process) {
            Err(cause) if cause.raw_os_error() == Some(libc::ESRCH) => return Ok(false),
            opened => opened?,
        };
        // Only now is it certain that the process checked is the one signalled: if it has ended, the signal has no
        // effect.
        if !self.is_on(process) {
            return Ok(false);
        }
        match send_signal(descriptor.as_fd(), signal) {
            Err(Errno::ESRCH) => Ok(false),
            sent => Ok(sent.map(|()| true)?),
        }
    }

    fn is_on(&self, process: u32) -> bool {
        let mark = format!("{}={}", self.name, self.value).into_bytes();
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark)
    }
}

#[expect(unsafe_code, reason = "a system call that no crate wraps")]
fn send_signal(process: BorrowedFd<'_>, signal: Signal) -> nix::Result<()> {
    let no_information = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open; a null pointer stands for the information that kill(2) would give.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            signal as libc::c_int,
            no_information,
            0,
        )
    };
    Errno::result(result).map(drop)
}
