//! A stand-by packet socket: it receives nothing, keeps the interface promiscuous, and reports when it goes down.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{PacketSocketError, be_promiscuous, bind_to, unbound_socket};
use crate::link::InterfaceIndex;
use crate::namespace::Namespace;
use crate::socket_option::option;

/// A reserved type, so that no frame has it. Without a type the kernel would not report the interface's end.
const NO_FRAME: u16 = 0xffff;

/// Stands by for an interface whose frames are received by other means.
#[derive(Debug)]
pub(crate) struct Guard {
    descriptor: OwnedFd,
}

impl Guard {
    pub(crate) fn open(
        namespace: &Namespace,
        interface: &str,
        index: InterfaceIndex,
    ) -> Result<Self, PacketSocketError> {
        let refused = |step| move |cause| PacketSocketError::new(step, interface, cause);
        let descriptor = namespace.run(unbound_socket)?.map_err(refused("open"))?;
        be_promiscuous(&descriptor, index).map_err(refused("configure"))?;
        bind_to(&descriptor, index, NO_FRAME).map_err(refused("bind"))?;
        Ok(Self { descriptor })
    }

    /// Whether the interface went down since the last call.
    pub(crate) fn is_down(&self) -> bool {
        option::<i32>(&self.descriptor, libc::SOL_SOCKET, libc::SO_ERROR).is_ok_and(|error| error != 0)
    }

    /// The interface's present MTU.
    pub(crate) fn mtu(&self, interface: &str) -> Option<u32> {
        interface_mtu(&self.descriptor, interface).ok()
    }
}

impl AsFd for Guard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[expect(unsafe_code, reason = "an ioctl that no crate wraps")]
fn interface_mtu(socket: &OwnedFd, interface: &str) -> io::Result<u32> {
    // SAFETY: ifreq is plain integers and pointers, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(interface.bytes()) {
        *slot = byte as libc::c_char;
    }
    // SAFETY: the request is live, and the name in it ends with a zero.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    nix::errno::Errno::result(result)?;
    // SAFETY: the kernel has set the MTU, which all members of the union have room for.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as u32)
}
