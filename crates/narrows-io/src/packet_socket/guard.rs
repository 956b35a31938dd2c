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
    index: InterfaceIndex,
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
        Ok(Self { descriptor, index })
    }

    /// Whether the interface went down since the last call.
    pub(crate) fn is_down(&self) -> bool {
        option::<i32>(&self.descriptor, libc::SOL_SOCKET, libc::SO_ERROR).is_ok_and(|error| error != 0)
    }

    /// The interface's present MTU, whatever its name is now.
    pub(crate) fn mtu(&self) -> Option<u32> {
        interface_mtu(&self.descriptor, self.index).ok()
    }
}

impl AsFd for Guard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[expect(unsafe_code, reason = "ioctls that no crate wraps")]
fn interface_mtu(socket: &OwnedFd, index: InterfaceIndex) -> io::Result<u32> {
    // SAFETY: ifreq is plain integers and pointers, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_ifru.ifru_ifindex = index.0 as i32;
    // The first writes the name that the second reads.
    for ioctl in [libc::SIOCGIFNAME, libc::SIOCGIFMTU] {
        // SAFETY: the request is live; the kernel ends the name in it with a zero.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), ioctl as _, &raw mut request) };
        nix::errno::Errno::result(result)?;
    }
    // SAFETY: the kernel has set the MTU, which all members of the union have room for.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as u32)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::link::{VethEnd, create_veth};
    use crate::process::spawn;
    use crate::route_socket::RouteSocket;

    #[test]
    #[ignore = "needs root, ip"]
    fn the_mtu_is_that_of_the_interface_by_any_name() {
        let namespace = Namespace::create().unwrap();
        let end = |name| VethEnd { namespace: &namespace, name, mac: None };
        create_veth(&end("one"), &end("two"), 1500).unwrap();
        let index = RouteSocket::open(&namespace).unwrap().interface_index("one").unwrap();
        let guard = Guard::open(&namespace, "one", index).unwrap();
        assert_eq!(guard.mtu(), Some(1500));
        for words in [&["link", "set", "one", "name", "other"], &["link", "set", "two", "name", "one"][..]] {
            let mut ip = Command::new("ip");
            ip.args(words);
            assert!(spawn(ip, &namespace).unwrap().wait().unwrap().success());
        }
        RouteSocket::open(&namespace).unwrap().set_mtu("other", 1400).unwrap();
        assert_eq!(guard.mtu(), Some(1400), "not that of the one that has its name now");
        RouteSocket::open(&namespace).unwrap().delete_interface("other").unwrap();
        assert_eq!(guard.mtu(), None);
    }
}
