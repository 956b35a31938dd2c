//! Child programs bound to this process: they end with it, and can inherit descriptors from it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::unistd::{getpid, getppid, setsid};

use crate::process::open_pidfd;

/// Makes `command` receive `signal` when the thread that starts it ends in whatever way, and start with no signals
/// blocked.
#[expect(unsafe_code, reason = "code between fork and exec")]
pub fn end_with_us(command: &mut Command, signal: Signal) {
    let parent = getpid();
    let bind = move || {
        prctl::set_pdeathsig(signal)?;
        let above = getppid();
        // In a new PID namespace, outside processes are not visible: their ID is 0.
        if above != parent && above.as_raw() != 0 {
            // The parent ended before the line above; the signal would never be sent.
            return Err(io::Error::from_raw_os_error(libc::EOWNERDEAD));
        }
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        Ok(())
    };
    // SAFETY: the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(bind) };
}

/// Makes `command` receive SIGTERM when the thread that starts it ends.
pub fn terminate_with_us(command: &mut Command) {
    end_with_us(command, Signal::SIGTERM);
}

/// Makes `command` start in its own session, so that no key at the terminal affects it.
#[expect(unsafe_code, reason = "code between fork and exec")]
pub fn without_terminal(command: &mut Command) {
    let leave = || {
        setsid()?;
        Ok(())
    };
    // SAFETY: the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(leave) };
}

/// Makes `command` inherit `descriptor`, under the number that is returned.
#[expect(unsafe_code, reason = "code between fork and exec")]
pub fn hand_down(command: &mut Command, descriptor: OwnedFd) -> i32 {
    let number = descriptor.as_raw_fd();
    let open = move || {
        // SAFETY: the closure owns the descriptor, so it is open whenever this runs.
        let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor.as_raw_fd()) };
        fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(())
    };
    // SAFETY: the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(open) };
    number
}

/// The descriptor inherited through [`hand_down`], by its number; programs that this program starts do not inherit
/// it.
///
/// # Errors
/// If there is no such descriptor. Call it once: nothing else may own the descriptor.
#[expect(unsafe_code, reason = "a descriptor by its number")]
pub fn handed_down(number: i32) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;

    if number <= libc::STDERR_FILENO {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: borrowed for one system call, which refuses a number that stands for nothing.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    // SAFETY: it is open, and nobody else's by the contract above.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Puts programs that this process starts from now on into a new PID namespace, in which the first one has ID 1: when
/// that one ends, all of them are killed.
///
/// # Errors
/// If this process lacks the capability (in its user namespace).
pub fn new_pid_namespace() -> io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWPID)?)
}

/// A descriptor that becomes readable when this child ends.
///
/// # Errors
/// If no descriptor is left.
pub fn end_of(child: &Child) -> io::Result<OwnedFd> {
    open_pidfd(child.id())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_descriptor_is_handed_down_by_its_number() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut command = Command::new("sh");
        let number = hand_down(&mut command, writer.into());
        command.args(["-c", &format!("echo here >&{number}")]);
        assert!(command.status().unwrap().success());
        drop(command);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "here\n");
    }

    #[test]
    fn a_bound_program_ends_with_the_thread_that_started_it() {
        let (mut reader, writer) = io::pipe().unwrap();
        let starts = move || {
            let mut command = Command::new("sleep");
            command.arg("1000").stdin(Stdio::null());
            hand_down(&mut command, writer.into());
            end_with_us(&mut command, Signal::SIGKILL);
            command.spawn().unwrap()
        };
        let mut child = std::thread::spawn(starts).join().unwrap();
        assert!(!child.wait().unwrap().success());
        assert_eq!(reader.read(&mut [0]).unwrap(), 0, "nobody holds the other end");
    }

    #[test]
    fn a_number_that_stands_for_nothing_is_refused() {
        assert!(handed_down(1 << 20).is_err());
        assert!(handed_down(1).is_err());
        let pipe = io::pipe().unwrap();
        let number = std::os::fd::IntoRawFd::into_raw_fd(OwnedFd::from(pipe.0));
        drop(File::from(handed_down(number).unwrap()));
    }
}
