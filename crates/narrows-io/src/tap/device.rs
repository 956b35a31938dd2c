//! Creates the device.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::offloaded::HEADER;

/// Of `linux/if_tun.h`: `_IOW('T', 202, int)` and so on.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const TUNSETVNETHDRSZ: libc::c_ulong = 0x4004_54d8;
const IFF_TAP: i16 = 0x0002;
const IFF_NO_PI: i16 = 0x1000;
const IFF_VNET_HDR: i16 = 0x4000;
/// The interface must be a new one.
const IFF_TUN_EXCL: i16 = i16::MIN;
/// Offloads that we accept from the interface: checksums, TCP trains, and, if the kernel supports them (since 6.2),
/// UDP trains.
const OF_TCP: libc::c_ulong = 0x01 | 0x02 | 0x04 | 0x08;
const OF_UDP: libc::c_ulong = 0x20 | 0x40;

pub(super) fn open() -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(super::DEVICE)
}

/// Creates a device in the namespace of the calling thread. An error includes the step that failed.
pub(super) fn make(name: &str, trains: bool) -> Result<OwnedFd, (&'static str, io::Error)> {
    let file = open().map_err(|cause| ("open", cause))?;
    create(&file, name, trains).map_err(|cause| ("make", cause))?;
    if trains {
        set_up_trains(&file).map_err(|cause| ("take trains of segments from", cause))?;
    }
    Ok(file.into())
}

#[expect(unsafe_code, reason = "an ioctl that no crate wraps")]
fn create(file: &File, name: &str, trains: bool) -> io::Result<()> {
    // SAFETY: ifreq is plain integers and pointers, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *slot = byte as libc::c_char;
    }
    let header = if trains { IFF_VNET_HDR } else { 0 };
    request.ifr_ifru.ifru_flags = IFF_TAP | IFF_NO_PI | IFF_TUN_EXCL | header;
    // SAFETY: the request is a live ifreq, which is what this ioctl reads and writes.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &raw mut request) };
    nix::errno::Errno::result(result)?;
    Ok(())
}

#[expect(unsafe_code, reason = "ioctls that no crate wraps")]
fn set_up_trains(file: &File) -> io::Result<()> {
    let length = HEADER as libc::c_int;
    // SAFETY: the length is a live int, which is what this ioctl reads.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETVNETHDRSZ as _, &raw const length) };
    nix::errno::Errno::result(result)?;
    let set = |offloads: libc::c_ulong| {
        // SAFETY: this ioctl takes a number.
        nix::errno::Errno::result(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD as _, offloads) })
    };
    set(OF_TCP | OF_UDP).or_else(|_| set(OF_TCP))?;
    Ok(())
}
