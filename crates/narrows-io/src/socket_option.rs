//! Socket options that nix does not have.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Values of socket options: plain integers, valid for any bytes.
pub(crate) trait OptionValue: Sized {}
impl OptionValue for i32 {}
impl OptionValue for u32 {}
impl OptionValue for u64 {}
impl OptionValue for libc::packet_mreq {}
impl OptionValue for libc::tpacket_stats {}
impl OptionValue for libc::xdp_umem_reg_v1 {}
impl OptionValue for libc::xdp_mmap_offsets {}
impl OptionValue for libc::xdp_statistics {}

#[expect(unsafe_code, reason = "a system call")]
pub(crate) fn set_option(
    socket: &OwnedFd,
    level: i32,
    name: i32,
    value: &impl OptionValue,
) -> io::Result<()> {
    // SAFETY: the value is live and of the length given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of_val(value) as libc::socklen_t,
        )
    };
    nix::errno::Errno::result(result)?;
    Ok(())
}

#[expect(unsafe_code, reason = "a system call")]
pub(crate) fn option<T: OptionValue>(socket: &OwnedFd, level: i32, name: i32) -> io::Result<T> {
    // SAFETY: an OptionValue is plain integers, for which all zeros is a value.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is live, writable and of the length given; the kernel writes no more than that.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length)
    };
    nix::errno::Errno::result(result)?;
    Ok(value)
}
