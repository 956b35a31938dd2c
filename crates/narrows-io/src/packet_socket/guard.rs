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
    /// The interface's name as it was known last, with a zero at its end.
    name: [libc::c_char; libc::IFNAMSIZ],
}

#[expect(unsafe_code, reason = "ioctls that no crate wraps")]
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
        let mut guard = Self { descriptor, index, name: [0; libc::IFNAMSIZ] };
        guard.follow_name();
        Ok(guard)
    }

    /// Whether the interface went down since the last call.
    pub(crate) fn is_down(&self) -> bool {
        option::<i32>(&self.descriptor, libc::SOL_SOCKET, libc::SO_ERROR).is_ok_and(|error| error != 0)
    }

    /// The interface's present MTU. If it is renamed, and another one gets its name, that one's, until
    /// [`Guard::follow_name`]: this is called for every batch of packets, and asks the kernel once.
    pub(crate) fn mtu(&mut self) -> Option<u32> {
        let of_name = |guard: &Self| guard.ask(libc::SIOCGIFMTU, |request| request.ifr_name = guard.name);
        let answer = of_name(self).or_else(|_| {
            self.follow_name();
            of_name(self)
        });
        // SAFETY: the kernel has set the MTU, which all members of the union have room for.
        answer.ok().map(|request| unsafe { request.ifr_ifru.ifru_mtu }.max(0) as u32)
    }

    /// The interface may have another name now.
    pub(crate) fn follow_name(&mut self) {
        let of_index = |request: &mut libc::ifreq| request.ifr_ifru.ifru_ifindex = self.index.0 as i32;
        // Without an interface, the next question for its MTU fails.
        if let Ok(request) = self.ask(libc::SIOCGIFNAME, of_index) {
            self.name = request.ifr_name;
        }
    }

    fn ask(&self, ioctl: libc::c_ulong, of: impl FnOnce(&mut libc::ifreq)) -> io::Result<libc::ifreq> {
        // SAFETY: ifreq is plain integers and pointers, for which all zeros is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        of(&mut request);
        // SAFETY: the request is live, and a name in it ends with a zero.
        let result = unsafe { libc::ioctl(self.descriptor.as_raw_fd(), ioctl as _, &raw mut request) };
        nix::errno::Errno::result(result)?;
        Ok(request)
    }
}

impl AsFd for Guard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
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
        let mut guard = Guard::open(&namespace, "one", index).unwrap();
        assert_eq!(guard.mtu(), Some(1500));
        for words in [&["link", "set", "one", "name", "other"], &["link", "set", "two", "name", "one"][..]] {
            let mut ip = Command::new("ip");
            ip.args(words);
            assert!(spawn(ip, &namespace).unwrap().wait().unwrap().success());
        }
        RouteSocket::open(&namespace).unwrap().set_mtu("other", 1400).unwrap();
        guard.follow_name();
        assert_eq!(guard.mtu(), Some(1400), "not that of the one that has its name now");
        RouteSocket::open(&namespace).unwrap().delete_interface("other").unwrap();
        assert_eq!(guard.mtu(), None);
    }
}
