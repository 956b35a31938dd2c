//! Socket activation: a service manager listens on a network's behalf and starts it for its first client
//! (sd_listen_fds(3)).
//!
//! The manager's socket is `NAME.sock` in the run folder, beside the sockets of runs, whose names are numbers. A
//! network that is up serves both; its own socket, `NUMBER.sock`, is where clients look. A client that finds no run of
//! a name connects to `NAME.sock`, waits for a reply, and looks again.

use std::ffi::OsStr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

use narrows_io::child_lifetime::handed_down;
use narrows_io::own_folder::OwnFolder;
use narrows_io::unix_socket::stream_listener;

use super::SUFFIX;
use crate::run_name::RunName;

/// The environment variables of the protocol, and the number of the first descriptor.
const PROCESS: &str = "LISTEN_PID";
const COUNT: &str = "LISTEN_FDS";
const FIRST: i32 = 3;

/// Why a passed socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PassedSocketError {
    /// There are several.
    #[error(
        "{COUNT} is `{0}`: narrows takes one socket, on which clients of the control socket are expected"
    )]
    Count(String),
    /// It is not a socket that accepts connections.
    #[error(
        "descriptor {FIRST}, passed by {COUNT}, is not usable: {0}; expected a listening Unix stream socket"
    )]
    Unusable(io::Error),
    /// It has no name, so it is not known by which path clients would look for it.
    #[error("the network has no name: with a socket passed by {COUNT}, give --name NAME")]
    Nameless,
    /// It is elsewhere.
    #[error("the socket passed by {COUNT} is {}, where no client looks: expected {}", found.display(), expected.display())]
    Elsewhere {
        /// Its path.
        found: PathBuf,
        /// Where clients look.
        expected: PathBuf,
    },
}

/// The path of the socket by which a service manager starts a network.
pub fn activation_socket(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{SUFFIX}"))
}

/// Whether there is such a socket of this user. It is not connected to, because that would start the network.
pub(super) fn can_start(folder: &Path, name: &str) -> bool {
    let is_name = name.parse::<RunName>().is_ok();
    let own = OwnFolder::open(folder).ok().flatten();
    is_name && own.is_some_and(|own| own.has_own_socket(&format!("{name}{SUFFIX}")))
}

/// The socket that a service manager has passed to this process, if it has. Call it once.
///
/// # Errors
/// If it is not one on which clients find the network with this name.
pub fn passed_socket(
    folder: &Path,
    name: Option<&RunName>,
) -> Result<Option<UnixListener>, PassedSocketError> {
    let (for_whom, count) = (env::var_os(PROCESS), env::var_os(COUNT));
    if !is_for(process::id(), for_whom.as_deref()) {
        return Ok(None);
    }
    let Some(count) = count else { return Ok(None) };
    if count != "1" {
        return Err(PassedSocketError::Count(count.to_string_lossy().into_owned()));
    }
    let socket = handed_down(FIRST).map_err(PassedSocketError::Unusable)?;
    checked(stream_listener(socket).map_err(PassedSocketError::Unusable)?, folder, name).map(Some)
}

/// Whether the descriptors are for this process: a program that it starts inherits the variables.
fn is_for(process: u32, meant: Option<&OsStr>) -> bool {
    meant.and_then(OsStr::to_str).is_some_and(|meant| meant == process.to_string())
}

fn checked(
    listener: UnixListener,
    folder: &Path,
    name: Option<&RunName>,
) -> Result<UnixListener, PassedSocketError> {
    let name = name.ok_or(PassedSocketError::Nameless)?;
    let expected = activation_socket(folder, name.as_str());
    let address = listener.local_addr().map_err(PassedSocketError::Unusable)?;
    let found = address.as_pathname().unwrap_or(Path::new("(without a path)"));
    let is_same =
        |canonical: PathBuf| fs::canonicalize(&expected).is_ok_and(|expected| expected == canonical);
    if !fs::canonicalize(found).is_ok_and(is_same) {
        return Err(PassedSocketError::Elsewhere { found: found.into(), expected });
    }
    listener.set_nonblocking(true).map_err(PassedSocketError::Unusable)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    #[test]
    fn descriptors_of_another_process_are_left_alone() {
        assert!(is_for(17, Some(OsStr::new("17"))));
        assert!(!is_for(17, Some(OsStr::new("1"))) && !is_for(17, Some(OsStr::new(""))) && !is_for(17, None));
    }

    #[test]
    fn a_socket_where_clients_look_is_taken_and_no_other() {
        let folder = env::temp_dir().join(format!("narrows-passed-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let name: RunName = "lab".parse().unwrap();
        let bound = |name: &str| UnixListener::bind(folder.join(name)).unwrap();
        let said = |listener, name| checked(listener, &folder, name).unwrap_err().to_string();
        assert!(said(bound("other.sock"), Some(&name)).ends_with("/lab.sock"));
        assert!(said(bound("nameless.sock"), None).contains("--name NAME"));
        assert!(checked(bound("lab.sock"), &folder, Some(&name)).is_ok());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_does_not_accept_connections_is_refused() {
        let [datagram, end] =
            [OwnedFd::from(UnixDatagram::unbound().unwrap()), UnixStream::pair().unwrap().0.into()];
        let file = fs::File::open("/dev/null").unwrap().into();
        let inet = std::net::TcpListener::bind("127.0.0.1:0").unwrap().into();
        for (descriptor, why) in [
            (datagram, "it is not a stream socket"),
            (end, "it does not listen"),
            (file, "it is not a socket"),
            (inet, "it is not a Unix socket"),
        ] {
            assert_eq!(stream_listener(descriptor).unwrap_err().to_string(), why);
        }
    }
}
