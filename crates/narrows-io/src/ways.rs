//! Which packet I/O backends this process may use: probes for `narrows doctor`. None changes anything.

use std::fs;
use std::io;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::bpf::{BpfError, Instruction, Program, ProgramKind, Register};

/// Whether this process may load BPF programs: tested with a temporary one that passes every packet.
///
/// # Errors
/// The kernel's error.
pub fn bpf() -> Result<(), BpfError> {
    let pass = [Instruction::mov(Register::R0, 0), Instruction::exit()];
    Program::load(ProgramKind::Classifier, "probe", &pass).map(drop)
}

/// Whether this process may open AF_XDP sockets.
///
/// # Errors
/// The kernel's error; a kernel built without them does not know the address family.
pub fn xdp_sockets() -> io::Result<()> {
    /// `AF_XDP` of `linux/socket.h`, for which nix has no name.
    const AF_XDP: i32 = 44;
    open_socket(AF_XDP)
}

/// Whether this process may open packet sockets in its namespace.
///
/// # Errors
/// The kernel's error.
pub fn packet_sockets() -> io::Result<()> {
    let kind = SockType::Raw;
    Ok(socket(AddressFamily::Packet, kind, SockFlag::SOCK_CLOEXEC, None).map(drop)?)
}

/// How many bytes this process may lock in memory; `None` if there is no limit. AF_XDP's shared memory counts, unless
/// the process has CAP_IPC_LOCK over the host.
///
/// # Errors
/// If the kernel does not report it.
pub fn lockable_memory() -> io::Result<Option<u64>> {
    let limits = fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    match line.and_then(|line| line.split_whitespace().next()) {
        Some("unlimited") => Ok(None),
        Some(bytes) => bytes.parse().map(Some).map_err(io::Error::other),
        None => Err(io::Error::other("no `Max locked memory` in /proc/self/limits")),
    }
}

/// Whether this process is in a user namespace other than the host's, as far as can be determined: one that maps all
/// users is the host's.
///
/// # Errors
/// If the kernel does not report it.
pub fn in_user_namespace() -> io::Result<bool> {
    let map = fs::read_to_string("/proc/self/uid_map")?;
    Ok(!map.split_whitespace().eq(["0", "0", "4294967295"]))
}

#[expect(unsafe_code, reason = "a family that nix has no name for")]
fn open_socket(family: i32) -> io::Result<()> {
    use std::os::fd::{FromRawFd, OwnedFd};
    // SAFETY: no pointers are passed.
    let result = unsafe { libc::socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    let descriptor = nix::errno::Errno::result(result)?;
    // SAFETY: the descriptor is fresh and nobody else's.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is tried agrees with what is said elsewhere: with every capability over the host, sockets open.
    #[test]
    fn this_host_answers() {
        lockable_memory().unwrap();
        let all = crate::host::Capabilities::effective().unwrap().all();
        assert_eq!(packet_sockets().is_ok(), crate::host::Capabilities::effective().unwrap().net_raw);
        if all && !in_user_namespace().unwrap() {
            bpf().unwrap();
        }
    }
}
