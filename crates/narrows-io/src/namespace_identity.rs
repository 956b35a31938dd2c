//! Which network namespace something was written down about, so that it is never taken for another.
//!
//! The inode of a namespace goes to the next one when it is gone, and comes again after each start of the host. The kernel
//! also gives each network namespace a cookie (`SO_NETNS_COOKIE`, Linux 5.14), which comes once in a boot. So the boot and
//! the cookie are its identity. Where the kernel has no cookies, the boot and the inode stand for it, which takes a
//! namespace for one that went before it with the same number.

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::fstat;

use crate::host;
use crate::namespace::{Namespace, NamespaceError};
use crate::socket_option::option;

/// The lines that say it in a file.
const BOOT: &str = "boot ";
const COOKIE: &str = "cookie ";

/// A network namespace, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceIdentity {
    /// Its inode, which no other one has at the same time.
    pub inode: u64,
    /// The boot of the host in which it was; nothing where that was not written down.
    pub boot: Option<String>,
    /// Its cookie, which no other one has in that boot, if the kernel gives any.
    pub cookie: Option<u64>,
}

/// How one that was written down relates to one that exists now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// It is that one.
    Same,
    /// It was in a boot of the host that is over.
    EarlierBoot,
    /// That one has its inode, so it is gone.
    Succeeded,
    /// It is another one.
    Other,
    /// Nobody wrote down in which boot it was.
    Unknown,
}

impl NamespaceIdentity {
    /// The identity of this namespace.
    ///
    /// # Errors
    /// When the namespace cannot be entered, or the kernel does not say which boot this is.
    pub fn of(namespace: &Namespace) -> Result<Self, NamespaceError> {
        let refused =
            |cause: io::Error| NamespaceError::Refused { action: format!("identify {namespace}"), cause };
        let inode = fstat(namespace.as_fd()).map_err(|errno| refused(errno.into()))?.st_ino;
        let boot = Some(host::boot().map_err(refused)?);
        Ok(Self { inode, boot, cookie: namespace.run(cookie)? })
    }

    /// How this one, which was written down, relates to one that exists.
    pub(crate) fn compare(&self, existing: &Self) -> Relation {
        let cookies = (self.cookie, existing.cookie);
        match (&self.boot, self.inode == existing.inode, cookies) {
            (None, _, _) => Relation::Unknown,
            (boot, _, _) if *boot != existing.boot => Relation::EarlierBoot,
            (_, false, _) => Relation::Other,
            (_, true, (Some(own), Some(other))) if own != other => Relation::Succeeded,
            (_, true, _) => Relation::Same,
        }
    }

    /// The lines that say it, but for the inode.
    pub(crate) fn lines(&self) -> String {
        let boot = self.boot.iter().map(|boot| format!("{BOOT}{boot}\n"));
        boot.chain(self.cookie.iter().map(|cookie| format!("{COOKIE}{cookie}\n"))).collect()
    }

    /// Takes in a line, if it is one of those.
    pub(crate) fn read_line(&mut self, line: &str) -> bool {
        if let Some(boot) = line.strip_prefix(BOOT) {
            self.boot = Some(boot.to_owned());
            return true;
        }
        let Some(cookie) = line.strip_prefix(COOKIE).and_then(|cookie| cookie.parse().ok()) else {
            return false;
        };
        self.cookie = Some(cookie);
        true
    }
}

/// Of the calling thread's namespace.
fn cookie() -> Option<u64> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let probe = socket(AddressFamily::Unix, SockType::Datagram, flags, None).ok()?;
    option(&probe, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(inode: u64, boot: Option<&str>, cookie: Option<u64>) -> NamespaceIdentity {
        NamespaceIdentity { inode, boot: boot.map(str::to_owned), cookie }
    }

    #[test]
    fn an_inode_alone_is_no_identity() {
        let now = identity(7, Some("b"), Some(3));
        for (written, relation) in [
            (identity(7, Some("b"), Some(3)), Relation::Same),
            (identity(7, Some("b"), Some(2)), Relation::Succeeded),
            (identity(7, Some("a"), Some(3)), Relation::EarlierBoot),
            (identity(8, Some("b"), Some(2)), Relation::Other),
            (identity(7, Some("b"), None), Relation::Same),
            (identity(7, None, None), Relation::Unknown),
        ] {
            assert_eq!(written.compare(&now), relation, "{written:?}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = identity(7, Some("a-b"), Some(3));
        let mut read = identity(7, None, None);
        assert!(written.lines().lines().all(|line| read.read_line(line)));
        assert_eq!(read, written);
        for other in ["closed ingress", "cookie", "cookie x", "rx-gro"] {
            assert!(!read.read_line(other), "{other}");
        }
    }
}
