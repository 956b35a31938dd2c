//! A network that stays up until it is ended, and notification that it is up.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::time::Duration;

use crate::run_name::RunName;

/// The environment variable with a service manager's socket (sd_notify(3)).
const NOTIFY: &str = "NOTIFY_SOCKET";

/// How long a network stays up, and who is notified when it is up.
#[derive(Debug, Default)]
pub struct Stay {
    /// The maximum duration; by default until it is ended.
    pub ttl: Option<Duration>,
    /// Who waits for the network.
    pub ready: Ready,
    /// A socket on which a service manager has listened for the network's first client.
    pub passed: Option<UnixListener>,
    /// The network also ends once this is readable or closed at its other end.
    pub until: Option<OwnedFd>,
}

/// Who is notified when a network is up: the service manager, and whoever holds the other end of this file. It
/// receives the name, or is closed without data if the network never is up.
#[derive(Debug, Default)]
pub struct Ready(pub Option<File>);

impl Ready {
    /// Notifies them that the network is up.
    ///
    /// # Errors
    /// If the starter no longer listens.
    pub(crate) fn tell(&self, name: &RunName) -> io::Result<()> {
        // A missing service manager is no error.
        let _ = notify(&format!("READY=1\nSTATUS=the network {name} is up"));
        match &self.0 {
            Some(ready) => (&mut &*ready).write_all(format!("{name}\n").as_bytes()),
            None => Ok(()),
        }
    }

    /// Notifies the service manager that the network goes down.
    pub(crate) fn tell_end() {
        let _ = notify("STOPPING=1");
    }
}

/// Sends a datagram to the service manager, if there is one.
fn notify(what: &str) -> io::Result<()> {
    match env::var_os(NOTIFY) {
        Some(place) => notify_at(&place, what),
        None => Ok(()),
    }
}

fn notify_at(place: &OsStr, what: &str) -> io::Result<()> {
    let address = match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(place)?,
    };
    let socket = UnixDatagram::unbound()?;
    // Do not wait if it does not read.
    socket.set_nonblocking(true)?;
    socket.send_to_addr(what.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_manager_hears_of_it_by_path_or_abstract_name() {
        let name = format!("narrows-notify-{}", std::process::id());
        let path = env::temp_dir().join(&name);
        let by_path = UnixDatagram::bind(&path).unwrap();
        let by_name = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        notify_at(path.as_os_str(), "READY=1").unwrap();
        notify_at(OsStr::new(&format!("@{name}")), "READY=1").unwrap();
        for socket in [by_path, by_name] {
            let mut told = [0; 32];
            let length = socket.recv(&mut told).unwrap();
            assert_eq!(&told[..length], b"READY=1");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(notify_at(path.as_os_str(), "READY=1").is_err());
    }
}
