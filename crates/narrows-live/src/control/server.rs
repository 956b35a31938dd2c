//! The run's end of the control socket. It waits for no client: one that sends more than it may, or does not read its
//! answers, is cut off.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::{fs, process};

use narrows_io::own_folder::{OwnFolder, OwnFolderError, remove_if_empty};
use narrows_io::unix_socket::{Listener, listener};

use super::{ControlError, Reply, Request, socket_name};
use crate::run_record::{HeldRecord, RunId};

/// A request longer than this is refused.
const LONGEST_REQUEST: usize = 1 << 20;
/// A client that leaves more than this unread is cut off.
const LONGEST_BACKLOG: usize = 4 << 20;
/// More connections at once than this are refused.
const MOST_CLIENTS: usize = 32;

/// How often making the socket is tried.
const TRIES: usize = 10;

/// The run's end of it, with the record that says which run it is.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Connection>,
    /// There before the socket, and until it is gone.
    record: Option<HeldRecord>,
    id: RunId,
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    asked: Vec<u8>,
    answers: Vec<u8>,
    gone: bool,
}

impl ControlSocket {
    /// Makes the socket of this process in the run folder, which is made if need be, and the run's record beside it.
    ///
    /// # Errors
    /// When the folder or one of the two cannot be made.
    pub fn open(folder: &Path) -> Result<Self, ControlError> {
        let path = folder.join(socket_name(process::id()));
        // A run that ends removes the folder when it is empty, perhaps just now; `clean` removes a record that is not in place.
        for _ in 0..TRIES {
            match Self::open_at(folder, &path) {
                Err(cause) if cause.kind() == ErrorKind::NotFound => {}
                result => return result.map_err(|cause| ControlError::Make { path, cause }),
            }
        }
        Self::open_at(folder, &path).map_err(|cause| ControlError::Make { path, cause })
    }

    fn open_at(folder: &Path, path: &Path) -> io::Result<Self> {
        let own = OwnFolder::make(folder).map_err(OwnFolderError::into_io)?;
        let record = HeldRecord::write(own)?;
        // A killed run with our number may have left one.
        if listener(path) == Listener::Dead {
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let id = record.id();
        Ok(Self { listener, path: path.into(), clients: Vec::new(), record: Some(record), id })
    }

    /// The identifier of the run.
    pub fn run_id(&self) -> RunId {
        self.id
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptors to wait for, and whether for reading, for writing or both. A client that has hung up is always
    /// readable, and has nothing more to say.
    pub fn descriptors(&self) -> impl Iterator<Item = (BorrowedFd<'_>, bool, bool)> {
        let clients = self
            .clients
            .iter()
            .map(|client| (client.stream.as_fd(), !client.gone, !client.answers.is_empty()));
        std::iter::once((self.listener.as_fd(), true, false)).chain(clients)
    }

    /// Serves what clients ask, without waiting for any of them.
    pub fn serve(&mut self, mut handle: impl FnMut(Request) -> Reply) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() < MOST_CLIENTS && stream.set_nonblocking(true).is_ok() {
                self.clients.push(Connection { stream, asked: Vec::new(), answers: Vec::new(), gone: false });
            }
        }
        for client in &mut self.clients {
            client.read();
            while let Some(request) = client.next_request() {
                let reply = match request {
                    Ok(request) => handle(request),
                    Err(message) => Reply::Error(message),
                };
                client.answer(&reply);
            }
            client.write();
        }
        self.clients.retain(|client| !client.gone || !client.answers.is_empty());
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // Whoever removed it already did what this does.
        let _ = fs::remove_file(&self.path);
        drop(self.record.take());
        if let Some(folder) = self.path.parent() {
            remove_if_empty(folder);
        }
    }
}

impl Connection {
    fn read(&mut self) {
        let mut buffer = [0; 4096];
        while self.asked.len() < LONGEST_REQUEST {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    self.gone = true;
                    return;
                }
                Ok(length) => self.asked.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.cut_off(),
            }
        }
    }

    fn next_request(&mut self) -> Option<Result<Request, String>> {
        let Some(end) = self.asked.iter().position(|&byte| byte == b'\n') else {
            if self.asked.len() >= LONGEST_REQUEST {
                self.asked.clear();
                self.gone = true;
                return Some(Err(format!(
                    "a request has at most {LONGEST_REQUEST} bytes and ends with a line feed"
                )));
            }
            return None;
        };
        let line: Vec<u8> = self.asked.drain(..=end).collect();
        let expected = r#"{"command":"set","assignments":["access.down.rate=2mbit"]} or {"command":"stats"}"#;
        Some(
            serde_json::from_slice(&line)
                .map_err(|error| format!("not a request: {error}; expected {expected}")),
        )
    }

    fn answer(&mut self, reply: &Reply) {
        if serde_json::to_writer(&mut self.answers, reply).is_err() {
            return self.cut_off();
        }
        self.answers.push(b'\n');
    }

    fn write(&mut self) {
        while !self.answers.is_empty() {
            match self.stream.write(&self.answers) {
                Ok(length) => drop(self.answers.drain(..length)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return self.cut_off(),
            }
        }
        if self.answers.len() > LONGEST_BACKLOG {
            self.cut_off();
        }
    }

    fn cut_off(&mut self) {
        self.gone = true;
        self.answers.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::io::{BufRead, BufReader};

    use super::super::{client::find, sockets};
    use super::*;
    use serde_json::json;

    fn served(folder: &Path, exchange: impl FnOnce(UnixStream) + Send) {
        let mut socket = ControlSocket::open(folder).unwrap();
        let stream = UnixStream::connect(socket.path()).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                exchange(stream);
                done.store(true, std::sync::atomic::Ordering::Release);
            });
            while !done.load(std::sync::atomic::Ordering::Acquire) {
                socket.serve(|request| match request {
                    Request::Stats {} => Reply::Ok(json!({"packets": 3})),
                    Request::Set { assignments, .. } => {
                        Reply::Error(format!("no: {}", assignments.join(" ")))
                    }
                    other => Reply::Error(format!("not here: {other:?}")),
                });
                std::thread::yield_now();
            }
        });
    }

    fn folder(name: &str) -> PathBuf {
        env::temp_dir().join(format!("narrows-control-{}-{name}", process::id()))
    }

    #[test]
    fn requests_are_answered_in_order_and_the_socket_is_the_owners() {
        let folder = folder("order");
        served(&folder, |mut stream| {
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&folder.join(socket_name(process::id()))), 0o600);
            assert_eq!(mode(&folder), 0o700);
            stream.write_all(b"{\"command\":\"stats\"}\n{\"command\":\"set\",\"assign").unwrap();
            stream.write_all(b"ments\":[\"a.rate=1mbit\"]}\nnonsense\n").unwrap();
            let mut lines = BufReader::new(stream).lines();
            let mut next = || lines.next().unwrap().unwrap();
            assert_eq!(next(), r#"{"ok":{"packets":3}}"#);
            assert_eq!(next(), r#"{"error":"no: a.rate=1mbit"}"#);
            assert!(next().contains("not a request"));
        });
        assert!(!folder.exists(), "nothing is left");
    }

    #[test]
    fn an_endless_request_is_refused() {
        let folder = folder("endless");
        served(&folder, |mut stream| {
            let _ = stream.write_all(&vec![b'x'; 2 * LONGEST_REQUEST]);
            let mut answer = String::new();
            let _ = BufReader::new(&stream).read_line(&mut answer);
            assert!(answer.contains("at most"), "{answer}");
        });
    }

    #[test]
    fn a_killed_runs_socket_is_known_as_dead() {
        let folder = folder("dead");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("7.sock");
        for other in [".sock", "07.sock", "x.sock", "7.a.b.feed"] {
            drop(UnixListener::bind(folder.join(other)).unwrap());
        }
        fs::write(folder.join("8.sock"), "a file").unwrap();
        drop(UnixListener::bind(&path).unwrap());
        assert_eq!(sockets(&folder).unwrap(), [(7, path)]);
        assert!(matches!(find(&folder, Some("7")), Err(ControlError::NoSuchRun { .. })));
        fs::remove_dir_all(&folder).unwrap();
    }
}
