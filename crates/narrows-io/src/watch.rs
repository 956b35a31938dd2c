//! Monitors interfaces and a process during a run.
//!
//! A [`Watch`] is a descriptor that becomes ready when something has happened, so that it can be waited for together
//! with packets and signals; the changes are then queried. The kernel reports every change of an interface on a
//! route-netlink socket, and the end of a process through a descriptor of it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

use crate::link::{self, Interface, InterfaceIndex};
use crate::namespace::Namespace;
use crate::netlink::messages;
use crate::process::open_pidfd;
use crate::route_socket::{NetlinkError, RouteSocket};
use crate::wait::{Waiting, wait};

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The interface was removed, or moved to another namespace, also if it has come back since: what was attached to
    /// it is gone.
    Vanished {
        /// Its name.
        interface: String,
    },
    /// It was taken down.
    Down {
        /// Its name.
        interface: String,
    },
    /// It was brought up again.
    Up {
        /// Its name.
        interface: String,
    },
    /// Its MTU has changed.
    Mtu {
        /// Its name.
        interface: String,
        /// The old MTU, in bytes without the Ethernet header.
        before: u32,
        /// The new MTU, in bytes without the Ethernet header.
        now: u32,
    },
    /// It has another name.
    Renamed {
        /// Its old name.
        interface: String,
        /// Its new name, by which later changes call it.
        now: String,
    },
    /// Its link address has changed.
    LinkAddress {
        /// Its name.
        interface: String,
    },
    /// The process has ended.
    Ended {
        /// Its process ID.
        process: u32,
    },
}

/// Monitors interfaces of one namespace, and optionally a process.
#[derive(Debug)]
pub struct Watch {
    namespace: Namespace,
    news: OwnedFd,
    interfaces: Vec<Interface>,
    process: Option<(u32, OwnedFd)>,
    /// Ready when one of the two is.
    either: Epoll,
}

/// Why something cannot be monitored.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The namespace, or its interfaces, cannot be accessed.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// There is no such process.
    #[error("no process {0} is running")]
    NoProcess(u32),
    /// The kernel refused.
    #[error("cannot {action}: {cause}")]
    Refused {
        /// What was tried.
        action: String,
        /// The kernel's error.
        cause: io::Error,
    },
}

impl Watch {
    /// Monitors these interfaces; changes are relative to their present description.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the kernel refuses.
    pub fn on(namespace: &Namespace, interfaces: &[Interface]) -> Result<Self, WatchError> {
        let refused = |cause: nix::Error| WatchError::Refused {
            action: format!("watch the interfaces of {namespace}"),
            cause: cause.into(),
        };
        let news = namespace.run(open_news).map_err(NetlinkError::from)?.map_err(refused)?;
        let either = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(refused)?;
        either.add(&news, EpollEvent::new(EpollFlags::EPOLLIN, 0)).map_err(refused)?;
        let namespace = namespace.try_clone().map_err(NetlinkError::from)?;
        Ok(Self { namespace, news, interfaces: interfaces.to_vec(), process: None, either })
    }

    /// Also monitors a process.
    ///
    /// # Errors
    /// If there is no process with that ID.
    pub fn and_process(mut self, process: u32) -> Result<Self, WatchError> {
        let refused = |cause| WatchError::Refused { action: format!("watch process {process}"), cause };
        let descriptor = open_pidfd(process).map_err(|cause| match cause.raw_os_error() {
            Some(libc::ESRCH) => WatchError::NoProcess(process),
            _ => refused(cause),
        })?;
        self.either
            .add(&descriptor, EpollEvent::new(EpollFlags::EPOLLIN, 1))
            .map_err(|errno| refused(errno.into()))?;
        self.process = Some((process, descriptor));
        Ok(self)
    }

    /// The changes since the last call. Never waits.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn changes(&mut self) -> Result<Vec<Change>, WatchError> {
        let mut changes = Vec::new();
        let mut left = Vec::new();
        if self.drain(&mut left)? {
            let mut now = RouteSocket::open(&self.namespace)?.interfaces()?;
            now.retain(|interface| !left.contains(&interface.index));
            self.interfaces.retain_mut(|interface| compare(interface, &now, &mut changes));
        }
        if let Some((process, descriptor)) = &self.process {
            let mut ready = [Waiting::readable(descriptor)];
            let look = Some(crate::clock::MonotonicTime::from_nanos(0));
            let action = || format!("watch process {process}");
            wait(&mut ready, look).map_err(|cause| WatchError::Refused { action: action(), cause })?;
            if ready[0].is_ready() {
                changes.push(Change::Ended { process: *process });
                // Reported once.
                self.process = None;
            }
        }
        Ok(changes)
    }

    /// Reads the kernel's messages; returns whether any of them is about a monitored interface, or messages were lost
    /// for lack of room. Appends the interfaces that left the namespace.
    fn drain(&self, left: &mut Vec<InterfaceIndex>) -> Result<bool, WatchError> {
        let mut buffer = vec![0; 1 << 16];
        let mut is_ours = false;
        loop {
            match recv(self.news.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(length) => {
                    for (index, has_left) in messages(&buffer[..length]).iter().filter_map(link::told) {
                        is_ours |= self.watches(index);
                        left.extend(has_left.then_some(index));
                    }
                }
                Err(nix::Error::EAGAIN) => return Ok(is_ours),
                Err(nix::Error::EINTR) => {}
                Err(nix::Error::ENOBUFS) => is_ours = true,
                Err(errno) => {
                    let action = format!("watch the interfaces of {}", self.namespace);
                    return Err(WatchError::Refused { action, cause: errno.into() });
                }
            }
        }
    }

    fn watches(&self, index: InterfaceIndex) -> bool {
        self.interfaces.iter().any(|interface| interface.index == index)
    }
}

impl AsFd for Watch {
    /// Readable when something has happened.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.either.0.as_fd()
    }
}

/// Compares an interface with its present state and updates it; returns whether it still exists.
fn compare(before: &mut Interface, all: &[Interface], changes: &mut Vec<Change>) -> bool {
    let mut interface = before.name.clone();
    let Some(now) = all.iter().find(|now| now.index == before.index) else {
        changes.push(Change::Vanished { interface });
        return false;
    };
    if now.name != interface {
        changes.push(Change::Renamed { interface, now: now.name.clone() });
        interface = now.name.clone();
    }
    if now.mac != before.mac {
        changes.push(Change::LinkAddress { interface: interface.clone() });
    }
    if now.mtu != before.mtu {
        changes.push(Change::Mtu { interface: interface.clone(), before: before.mtu, now: now.mtu });
    }
    match (before.up, now.up) {
        (true, false) => changes.push(Change::Down { interface }),
        (false, true) => changes.push(Change::Up { interface }),
        _ => {}
    }
    *before = now.clone();
    true
}

/// A socket on which the kernel reports changes of interfaces in the calling thread's namespace.
fn open_news() -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let news = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
    bind(news.as_raw_fd(), &NetlinkAddr::new(0, libc::RTMGRP_LINK as u32))?;
    Ok(news)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::MacAddress;

    fn interface(index: u32, mtu: u32, up: bool) -> Interface {
        Interface {
            index: InterfaceIndex(index),
            name: format!("eth{index}"),
            mac: None,
            mtu,
            up,
            running: up,
            loopback: false,
            ethernet: true,
            generic_xdp: false,
            master: None,
            statistics: Default::default(),
        }
    }

    #[test]
    fn changes_are_told_once_each() {
        let mut known = interface(3, 1500, true);
        let tell = |known: &mut Interface, now: &[Interface]| {
            let mut changes = Vec::new();
            let stays = compare(known, now, &mut changes);
            (stays, changes)
        };
        let name = || "eth3".to_owned();
        assert_eq!(tell(&mut known, &[interface(3, 1500, true)]), (true, vec![]));
        let both = vec![
            Change::Mtu { interface: name(), before: 1500, now: 9000 },
            Change::Down { interface: name() },
        ];
        assert_eq!(tell(&mut known, &[interface(3, 9000, false)]), (true, both));
        let wan = || "wan".to_owned();
        let renamed = Interface { name: wan(), mac: Some(MacAddress([2; 6])), ..interface(3, 9000, true) };
        let all = vec![
            Change::Renamed { interface: name(), now: wan() },
            Change::LinkAddress { interface: wan() },
            Change::Up { interface: wan() },
        ];
        assert_eq!(tell(&mut known, &[renamed]), (true, all));
        let gone = vec![Change::Vanished { interface: wan() }];
        assert_eq!(tell(&mut known, &[interface(4, 9000, true)]), (false, gone));
    }
}
