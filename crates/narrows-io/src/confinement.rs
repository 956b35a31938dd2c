//! Confines threads that move bytes between open descriptors: no capabilities, and no system calls that open, start, connect
//! or change anything else.
//!
//! A filter of seccomp(2) with a list of what is allowed: all other calls fail with `EPERM`. It applies to the calling thread
//! and to threads that it starts. Whoever takes over such a thread by a hostile packet can still use what is open there. Landlock
//! would add nothing, since these threads open no files.
//!
//! A kernel without seccomp, or in which another filter forbids it, leaves the thread as it is: callers go on, and the report
//! says so.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::privileges;

/// What a thread works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Descriptors that are open.
    Descriptors,
    /// The same, new connections of the internet protocols, and threads for them.
    Connections,
}

/// Confines the calling thread to its work.
///
/// # Errors
/// If the kernel refuses part of it; then as much as possible has been done.
pub fn to(work: Work) -> io::Result<()> {
    let unprivileged = privileges::give_up();
    let filter = filter(work).map_err(io::Error::other)?;
    install(&filter)?;
    unprivileged
}

/// Data, memory, time, waiting, and the end.
const ALWAYS: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_fstat,
    libc::SYS_fcntl,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_membarrier,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getrusage,
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Older forms of the same, which only this architecture has.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait, libc::SYS_time];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// Threads for connections, and sockets for them.
const CONNECTIONS: &[c_long] =
    &[libc::SYS_connect, libc::SYS_bind, libc::SYS_clone, libc::SYS_clone3, libc::SYS_prctl];

fn filter(work: Work) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALWAYS.iter().chain(OLDER).map(|&call| (call, Vec::new())).collect();
    // Memory, but no code.
    let no_code = argument(2, SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64), 0)?;
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![SeccompRule::new(vec![no_code.clone()])?]);
    }
    // Sockets' interfaces have a name and an MTU, and new connections do not wait.
    let requests = [libc::SIOCGIFNAME as _, libc::SIOCGIFMTU as _, libc::FIONBIO as _]
        .map(|request| argument(1, SeccompCmpOp::Eq, request));
    rules.insert(libc::SYS_ioctl, alternatives(requests)?);
    if work == Work::Connections {
        rules.extend(CONNECTIONS.iter().map(|&call| (call, Vec::new())));
        let families =
            [libc::AF_INET, libc::AF_INET6].map(|family| argument(0, SeccompCmpOp::Eq, family as u64));
        rules.insert(libc::SYS_socket, alternatives(families)?);
    }
    let refusal = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, refusal, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?.try_into()
}

fn alternatives<const N: usize>(
    conditions: [Result<SeccompCondition, BackendError>; N],
) -> Result<Vec<SeccompRule>, BackendError> {
    conditions.into_iter().map(|condition| SeccompRule::new(vec![condition?])).collect()
}

fn argument(number: u8, op: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(number, SeccompCmpArgLen::Dword, op, value)
}

#[expect(unsafe_code, reason = "system calls that no crate wraps with this flag")]
fn install(filter: &BpfProgram) -> io::Result<()> {
    // Without CAP_SYS_ADMIN, a filter needs this; the thread starts no programs.
    nix::sys::prctl::set_no_new_privs()?;
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    // Before Linux 5.16, a filter would also turn off speculation past stores, which costs time with each packet.
    let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: the program points to `len` instructions laid out as of `linux/filter.h`, which the kernel copies.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    nix::errno::Errno::result(result)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::UnixStream;
    use std::process::Command;
    use std::thread;

    use super::*;

    /// In a confined thread; `None` if this kernel confines none.
    fn confined<T: Send + 'static>(work: Work, tried: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let thread = thread::spawn(move || {
            // A kernel that has seccomp says so.
            let has = fs::read_to_string("/proc/thread-self/status").unwrap().contains("\nSeccomp:");
            let done = to(work);
            assert!(done.is_ok() || !has, "{done:?}");
            done.ok().map(|()| tried())
        });
        thread.join().unwrap()
    }

    #[test]
    fn what_is_open_is_served_and_nothing_is_opened() {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut file = tempfile();
        let tried = confined(Work::Descriptors, move || {
            here.write_all(b"in").unwrap();
            file.write_all(b"to a file").unwrap();
            file.sync_all().unwrap();
            // Memory, and timers.
            assert_eq!(std::hint::black_box(vec![1_u8; 10 << 20]).len(), 10 << 20);
            thread::sleep(std::time::Duration::from_millis(1));
            [
                ("open", File::open("/proc/self/status").map(drop)),
                ("remove", fs::remove_file("/nowhere")),
                ("start", Command::new("/bin/true").spawn().map(drop)),
                ("connect", TcpStream::connect(address).map(drop)),
                ("socket", UdpSocket::bind("127.0.0.1:0").map(drop)),
                ("thread", thread::Builder::new().spawn(|| ()).map(drop)),
                ("code", map_code()),
                ("signal", nix::sys::signal::kill(nix::unistd::getpid(), None).map_err(Into::into)),
            ]
        });
        let mut read = [0; 2];
        there.read_exact(&mut read).unwrap();
        for (what, result) in tried.into_iter().flatten() {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::PermissionDenied, "{what}");
        }
        // Other threads of this process are as before.
        assert!(File::open("/proc/self/status").is_ok());
    }

    #[test]
    fn connections_are_those_of_the_internet() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let tried = confined(Work::Connections, move || {
            let thread = thread::spawn(move || TcpStream::connect(address).map(drop)).join().unwrap();
            (thread, UnixStream::pair().map(drop), File::open("/proc/self/status").map(drop))
        });
        if let Some((connection, pair, file)) = tried {
            connection.unwrap();
            assert_eq!(pair.unwrap_err().kind(), ErrorKind::PermissionDenied);
            assert_eq!(file.unwrap_err().kind(), ErrorKind::PermissionDenied);
        }
    }

    fn tempfile() -> File {
        let name = format!("narrows-confinement-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = File::create(&path).unwrap();
        fs::remove_file(path).unwrap();
        file
    }

    #[expect(unsafe_code, reason = "memory with code in it, which no safe function makes")]
    fn map_code() -> io::Result<()> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, which nothing uses.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), 1, access, flags, -1, 0) };
        if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
