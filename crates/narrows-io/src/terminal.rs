//! Terminals: raw mode that is reverted, window sizes, and pseudo-terminals.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::stat::Mode;
use nix::sys::termios::{OutputFlags, SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::setsid;

/// Settings of a terminal, to be restored.
#[derive(Clone, Debug)]
pub struct Settings(Termios);

impl Settings {
    /// The present settings.
    ///
    /// # Errors
    /// If it is not a terminal.
    pub fn of(terminal: &impl AsFd) -> io::Result<Self> {
        Ok(Self(tcgetattr(terminal)?))
    }

    /// Applies these settings to the terminal; works from the background, too.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn set(&self, terminal: &impl AsFd) -> io::Result<()> {
        // Otherwise a process in the background would be stopped.
        let background: SigSet = [Signal::SIGTTOU].into_iter().collect();
        let mut before = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&background), Some(&mut before))?;
        let set = tcsetattr(terminal, SetArg::TCSADRAIN, &self.0);
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
        Ok(set?)
    }

    /// The same in raw mode: every byte passes unchanged and at once, in both directions.
    pub fn raw(&self) -> Self {
        let mut raw = self.clone();
        cfmakeraw(&mut raw.0);
        raw
    }

    /// The same with output unchanged.
    pub fn plain_output(&self) -> Self {
        let mut plain = self.clone();
        plain.0.output_flags.remove(OutputFlags::OPOST);
        plain
    }
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSize {
    /// Lines of text.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl WindowSize {
    /// The present size.
    ///
    /// # Errors
    /// If it is not a terminal.
    #[expect(unsafe_code, reason = "a system call")]
    pub fn of(terminal: &impl AsFd) -> io::Result<Self> {
        let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the request fills the structure that it is given.
        let result = unsafe { libc::ioctl(terminal.as_fd().as_raw_fd(), libc::TIOCGWINSZ, &mut size) };
        nix::errno::Errno::result(result)?;
        Ok(Self { rows: size.ws_row, columns: size.ws_col })
    }

    /// Sets the size, which notifies the foreground programs.
    ///
    /// # Errors
    /// If it is not a terminal.
    #[expect(unsafe_code, reason = "a system call")]
    pub fn set(self, terminal: &impl AsFd) -> io::Result<()> {
        let size = libc::winsize { ws_row: self.rows, ws_col: self.columns, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the request reads the structure that it is given.
        let result = unsafe { libc::ioctl(terminal.as_fd().as_raw_fd(), libc::TIOCSWINSZ, &size) };
        nix::errno::Errno::result(result)?;
        Ok(())
    }
}

/// A pseudo-terminal: what is written to one side is input at the other.
#[derive(Debug)]
pub struct PseudoTerminal {
    /// The side of the terminal emulator.
    pub person: OwnedFd,
    /// The side of the programs.
    pub programs: OwnedFd,
}

impl PseudoTerminal {
    /// Creates one.
    ///
    /// # Errors
    /// If `/dev/ptmx` or `/dev/pts` is missing.
    pub fn open() -> io::Result<Self> {
        let person = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)?;
        grantpt(&person)?;
        unlockpt(&person)?;
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let programs = nix::fcntl::open(ptsname_r(&person)?.as_str(), flags, Mode::empty())?;
        Ok(Self { person: person.into(), programs })
    }
}

/// The foreground process group of a terminal.
///
/// # Errors
/// If it is not a terminal, or has none.
pub fn foreground(terminal: &impl AsFd) -> io::Result<u32> {
    Ok(nix::unistd::tcgetpgrp(terminal)?.as_raw() as u32) // never negative
}

/// Makes `command` start as the leader of its own session, with the terminal as its controlling one.
#[expect(unsafe_code, reason = "code between fork and exec")]
pub fn lead_session(command: &mut Command, terminal: OwnedFd) {
    let lead = move || {
        setsid()?;
        // SAFETY: no pointers are passed.
        let result = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) };
        nix::errno::Errno::result(result)?;
        Ok(())
    };
    // SAFETY: the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(lead) };
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn raw_bytes_pass_as_they_are_and_settings_come_back() {
        let pair = PseudoTerminal::open().unwrap();
        let before = Settings::of(&pair.programs).unwrap();
        before.raw().set(&pair.programs).unwrap();
        assert_ne!(Settings::of(&pair.programs).unwrap().0, before.0);
        File::from(pair.person.try_clone().unwrap()).write_all(b"\x03\r\n").unwrap();
        let mut got = [0; 3];
        File::from(pair.programs.try_clone().unwrap()).read_exact(&mut got).unwrap();
        assert_eq!(&got, b"\x03\r\n");
        before.set(&pair.programs).unwrap();
        assert_eq!(Settings::of(&pair.programs).unwrap().0, before.0);
    }

    #[test]
    fn window_sizes_reach_the_other_side() {
        let pair = PseudoTerminal::open().unwrap();
        WindowSize { rows: 33, columns: 99 }.set(&pair.person).unwrap();
        assert_eq!(WindowSize::of(&pair.programs).unwrap(), WindowSize { rows: 33, columns: 99 });
    }
}
