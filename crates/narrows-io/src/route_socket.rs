//! A handle on one namespace's interfaces, addresses and routes: route netlink, opened inside it.
//!
//! The operations themselves are in [`crate::link`], [`crate::address`] and [`crate::route`]. Each blocks until the
//! kernel has executed it (tens of microseconds; creating a veth pair some milliseconds).

use std::io;
use std::net::IpAddr;

use nix::sys::socket::SockProtocol;

use crate::namespace::{Namespace, NamespaceError};
use crate::netlink::{KernelRefusal, Message, Netlink, Request};

/// Why the kernel did not execute a request. The message is complete: what was tried, on what, and the remedy if
/// there is one.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// It already exists.
    #[error("cannot {action}: it exists already")]
    Exists {
        /// What was tried, on what.
        action: String,
    },
    /// The object of the operation does not exist.
    #[error("cannot {action}: there is no such interface or entry")]
    NotFound {
        /// What was tried, on what.
        action: String,
    },
    /// This process is not allowed to do it.
    #[error(
        "not allowed to {action}: this needs the capability CAP_NET_ADMIN in the namespace; run it as root"
    )]
    Permission {
        /// What was tried, on what.
        action: String,
    },
    /// A value that cannot be sent to the kernel.
    #[error("cannot {action}: {reason}")]
    Invalid {
        /// What was tried, on what.
        action: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The other end is down, or not connected.
    #[error("`{interface}` in {namespace} has no carrier: is its other end up?")]
    NoCarrier {
        /// The interface's name.
        interface: String,
        /// The namespace's label.
        namespace: String,
    },
    /// The kernel has an address, but does not yet take its packets.
    #[error("{address} in {namespace} receives no packets: the kernel did not finish to set it up")]
    NoLocalAddress {
        /// The address.
        address: IpAddr,
        /// The namespace's label.
        namespace: String,
    },
    /// The kernel refused for another reason.
    #[error("cannot {action}: {cause}{}", words(detail))]
    Refused {
        /// What was tried, on what.
        action: String,
        /// The kernel's error code.
        cause: io::Error,
        /// The kernel's message, if there is one.
        detail: Option<String>,
    },
    /// The namespace could not be entered to open the socket.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
}

fn words(detail: &Option<String>) -> String {
    detail.as_ref().map(|words| format!(" ({words})")).unwrap_or_default()
}

impl NetlinkError {
    pub(crate) fn new(action: impl Into<String>, refusal: KernelRefusal) -> Self {
        let action = action.into();
        match refusal.cause.raw_os_error() {
            Some(libc::EEXIST) => Self::Exists { action },
            Some(libc::ENODEV | libc::ENOENT | libc::ESRCH) => Self::NotFound { action },
            Some(libc::EPERM | libc::EACCES) => Self::Permission { action },
            _ => Self::Refused { action, cause: refusal.cause, detail: refusal.detail },
        }
    }
}

/// A route-netlink socket of one namespace. It keeps the namespace alive.
#[derive(Debug)]
pub struct RouteSocket {
    netlink: Netlink,
    label: String,
}

impl RouteSocket {
    /// Opens a socket in `namespace`.
    pub fn open(namespace: &Namespace) -> Result<Self, NetlinkError> {
        let netlink = namespace.run(|| Netlink::open(SockProtocol::NetlinkRoute))?.map_err(|cause| {
            NetlinkError::new(format!("open a route-netlink socket in {namespace}"), cause.into())
        })?;
        Ok(Self { netlink, label: namespace.label().into() })
    }

    /// The namespace's name in messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Executes one request; `action` describes it in errors.
    pub(crate) fn execute(
        &mut self,
        request: Request,
        action: impl FnOnce() -> String,
    ) -> Result<(), NetlinkError> {
        self.get(request, action).map(drop)
    }

    /// Requests one object; `action` describes it in errors.
    pub(crate) fn get(
        &mut self,
        request: Request,
        action: impl FnOnce() -> String,
    ) -> Result<Vec<Message>, NetlinkError> {
        self.netlink
            .execute(request)
            .map_err(|refusal| NetlinkError::new(format!("{} in {}", action(), self.label), refusal))
    }

    /// Lists all objects of a kind; `what` describes it in errors.
    pub(crate) fn list(&mut self, request: Request, what: &str) -> Result<Vec<Message>, NetlinkError> {
        self.netlink
            .dump(request)
            .map_err(|refusal| NetlinkError::new(format!("list the {what} of {}", self.label), refusal))
    }
}
