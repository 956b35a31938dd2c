//! Identifies a recorded network namespace, so that it is never confused with another.
//!
//! The inode of a removed namespace is reused, also after a restart of the host. The kernel gives each network
//! namespace a cookie (`SO_NETNS_COOKIE`, Linux 5.14), unique within a boot. So boot and cookie are its identity. If
//! the kernel has no cookies, boot and inode are used, which cannot distinguish a namespace from an earlier one with
//! the same inode.

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::fstat;

use crate::host;
use crate::namespace::{Namespace, NamespaceError};
use crate::socket_option::option;

/// The lines of a record.
const BOOT: &str = "boot ";
const COOKIE: &str = "cookie ";

/// A network namespace, as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceIdentity {
    /// Its inode, unique among existing namespaces.
    pub inode: u64,
    /// The ID of its boot; `None` if not recorded.
    pub boot: Option<String>,
    /// Its cookie, unique in that boot, if the kernel has cookies.
    pub cookie: Option<u64>,
}

/// How a recorded namespace relates to an existing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// It is the same.
    Same,
    /// It was in an earlier boot.
    EarlierBoot,
    /// The existing one has its inode, so it is gone.
    Succeeded,
    /// It is a different one.
    Other,
    /// Its boot was not recorded.
    Unknown,
}

impl NamespaceIdentity {
    /// The identity of this namespace.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the kernel does not report the boot ID.
    pub fn of(namespace: &Namespace) -> Result<Self, NamespaceError> {
        let refused =
            |cause: io::Error| NamespaceError::Refused { action: format!("identify {namespace}"), cause };
        let inode = fstat(namespace.as_fd()).map_err(|errno| refused(errno.into()))?.st_ino;
        let boot = Some(host::boot().map_err(refused)?);
        Ok(Self { inode, boot, cookie: namespace.run(cookie)? })
    }

    /// How this recorded namespace relates to an existing one.
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

    /// The lines of the record, except the inode.
    pub(crate) fn lines(&self) -> String {
        let boot = self.boot.iter().map(|boot| format!("{BOOT}{boot}\n"));
        boot.chain(self.cookie.iter().map(|cookie| format!("{COOKIE}{cookie}\n"))).collect()
    }

    /// Parses a line, if it is one of those.
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

/// The cookie of the calling thread's namespace.
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
