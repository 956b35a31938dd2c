//! Connections to Unix sockets with a time limit.
//!
//! The kernel makes a connecting process wait until the other side has room for it, which may never happen if that
//! program is stopped.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockname, getsockopt, setsockopt, socket,
    sockopt,
};
use nix::sys::time::TimeVal;
use nix::unistd::Uid;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// A process listens there, or it may not be checked.
    There,
    /// A socket exists, but nobody listens any more.
    Dead,
    /// There is no socket.
    Missing,
}

/// Connects to a stream socket, waiting at most `patience`.
///
/// # Errors
/// The kernel's; `WouldBlock` if the other side had no room for that long.
pub fn connect_within(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let stream = stream(SockFlag::SOCK_CLOEXEC)?;
    let limit = TimeVal::new(patience.as_secs() as _, patience.subsec_micros().into());
    setsockopt(&stream, sockopt::SendTimeout, &limit)?;
    connect(stream.as_raw_fd(), &UnixAddr::new(path)?)?;
    // It also limits writing.
    setsockopt(&stream, sockopt::SendTimeout, &TimeVal::new(0, 0))?;
    Ok(stream.into())
}

/// The process at the other end of a connection, by its ID in our PID namespace.
///
/// # Errors
/// The kernel's.
pub fn peer_process(stream: &UnixStream) -> io::Result<u32> {
    let peer = getsockopt(stream, sockopt::PeerCredentials)?;
    // 0 for a process without an ID here: one in an enclosing PID namespace.
    u32::try_from(peer.pid())
        .ok()
        .filter(|process| *process > 0)
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Whether the other end of a connection has the rights of this process's user: it belongs to that user or to root.
pub fn is_peer_as_privileged(stream: &UnixStream) -> bool {
    getsockopt(stream, sockopt::PeerCredentials)
        .is_ok_and(|peer| peer.uid() == 0 || peer.uid() == Uid::effective().as_raw())
}

/// A listening Unix stream socket, from a descriptor that another program has passed.
///
/// # Errors
/// If it is something else: the error says what.
pub fn stream_listener(descriptor: OwnedFd) -> io::Result<UnixListener> {
    let wrong = |what: &str| Err(io::Error::other(what.to_owned()));
    let Ok(kind) = getsockopt(&descriptor, sockopt::SockType) else { return wrong("it is not a socket") };
    if kind != SockType::Stream {
        return wrong("it is not a stream socket");
    }
    if getsockname::<UnixAddr>(descriptor.as_raw_fd()).is_err() {
        return wrong("it is not a Unix socket");
    }
    if !getsockopt(&descriptor, sockopt::AcceptConn)? {
        return wrong("it does not listen");
    }
    Ok(descriptor.into())
}

/// Whether a process listens at this socket. Never waits.
pub fn listener(path: &Path) -> Listener {
    let asked = stream(SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK)
        .and_then(|stream| connect(stream.as_raw_fd(), &UnixAddr::new(path)?));
    match asked {
        Err(Errno::ECONNREFUSED) => Listener::Dead,
        Err(Errno::ENOENT) => Listener::Missing,
        // A listener without room at present (EAGAIN) does not count as dead either.
        _ => Listener::There,
    }
}

fn stream(flags: SockFlag) -> nix::Result<OwnedFd> {
    socket(AddressFamily::Unix, SockType::Stream, flags, None)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;

    use nix::sys::socket::{Backlog, listen};

    use super::*;

    #[test]
    fn a_listener_without_room_is_there_and_nobody_waits_for_it() {
        let path = std::env::temp_dir().join(format!("narrows-io-full-{}", std::process::id()));
        assert_eq!(listener(&path), Listener::Missing);
        let socket = UnixListener::bind(&path).unwrap();
        listen(&socket.as_fd(), Backlog::new(0).unwrap()).unwrap();
        // A backlog of none has room for one.
        let first = connect_within(&path, Duration::from_secs(60)).unwrap();
        assert_eq!(first.write_timeout().unwrap(), None, "the limit was for connecting");
        assert_eq!(listener(&path), Listener::There);
        let error = connect_within(&path, Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(socket);
        assert_eq!(listener(&path), Listener::Dead);
        fs::remove_file(&path).unwrap();
    }
}
