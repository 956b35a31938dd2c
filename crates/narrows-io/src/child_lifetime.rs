//! Programs bound to this process: they end with it, and may get descriptors of it.

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

/// Has `command` get `signal` when the thread that starts it ends, however that ends; and start with no signal held back.
#[expect(unsafe_code, reason = "code between fork and exec")]
pub fn end_with_us(command: &mut Command, signal: Signal) {
    let parent = getpid();
    let bind = move || {
        prctl::set_pdeathsig(signal)?;
        let above = getppid();
        // From process numbers of its own nobody outside is seen: they are 0.
        if above != parent && above.as_raw() != 0 {
            // The parent ended before the line above; no signal would come any more.
            return Err(io::Error::from_raw_os_error(libc::EOWNERDEAD));
        }
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        Ok(())
    };
    // SAFETY: the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(bind) };
}

/// Has `command` get a SIGTERM when the thread that starts it ends.
pub fn terminate_with_us(command: &mut Command) {
    end_with_us(command, Signal::SIGTERM);
}

/// Has `command` start in a session of its own, so that no key at the terminal reaches it.
#[expect(unsafe_code, reason = "code between fork and exec")]
pub fn without_terminal(command: &mut Command) {
    let leave = || {
        setsid()?;
        Ok(())
    };
    // SAFETY: the closure makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(leave) };
}

/// Has `command` find `descriptor` open, by the number that is returned.
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

/// A descriptor that [`hand_down`] left open for this program, by its number; closed to programs that it starts itself.
///
/// # Errors
/// When there is no such descriptor. To be called once: nobody else may own it.
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

/// Has the programs that this process starts from here on live in process numbers of their own, of which the first one
/// started has number 1: when that ends, however, all of them end.
///
/// # Errors
/// When this process lacks the capability (in its user namespace).
pub fn new_pid_namespace() -> io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWPID)?)
}

/// A descriptor that becomes readable when this child ends.
///
/// # Errors
/// When descriptors have run out.
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
