//! The run's end of the control socket. It never waits for a client, and no client keeps it from other work: each
//! turn ([`ControlSocket::serve`]) accepts a limited number of connections, reads a limited number of bytes from
//! each, and answers one request of each. Further requests wait for the next turn. A client that does not read its
//! replies gets none until it does; its further requests stay in the kernel's buffer.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::{fs, process, thread};

use narrows_io::allocator::RemovedWhenFull;
use narrows_io::own_folder::remove_if_empty;
use narrows_io::unix_socket::{Listener, is_peer_as_privileged, listener, peer_process};

use super::reply_line::{PORTION, ReplyLine};
use super::{ControlError, Reply, Request, socket_name};
use crate::run_name::RunName;
use crate::run_record::{About, HeldRecord, HoldError, RunId};

/// The maximum length of a request, with its line feed.
const LONGEST_REQUEST: usize = 1 << 20;
/// The maximum white space before a request, including empty lines.
const MOST_BLANK: usize = 4 << 10;
/// A client with more unread data than this gets no further reply until it reads some.
const MOST_UNREAD: usize = 1 << 20;
/// The maximum number of concurrent connections.
const MOST_CLIENTS: usize = 32;
/// The maximum number of bytes read from a client in one turn.
const BYTES_A_TURN: usize = 16 << 10;

/// How often creating the socket is tried.
const TRIES: usize = 10;

/// The run's end of the control socket, with the record that describes the run.
#[derive(Debug)]
pub struct ControlSocket {
    /// Its own socket first, then one that a service manager has passed.
    listeners: Vec<UnixListener>,
    path: PathBuf,
    clients: Vec<Connection>,
    /// Created before the socket and removed after it.
    record: Option<HeldRecord>,
    id: RunId,
    name: RunName,
    _removed: RemovedWhenFull,
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process ID, if there is one in this PID namespace.
    pub process: Option<u32>,
    /// Whether files may be opened at its request, with the rights of this process: its user has made the socket
    /// reachable for others, if not.
    pub opens_files: bool,
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    from: Peer,
    asked: Vec<u8>,
    /// No line feed has been found up to here.
    searched: usize,
    /// White space since the last request.
    blank: usize,
    answers: VecDeque<u8>,
    /// Nothing more is read from it.
    ended: bool,
}

impl ControlSocket {
    /// Creates the socket of this process in the run folder, which is created if necessary, and the run's record with
    /// this description.
    ///
    /// # Errors
    /// If the folder, the socket or the record cannot be created, or another run has the name.
    pub fn open(folder: &Path, about: &About) -> Result<Self, ControlError> {
        let path = folder.join(socket_name(process::id()));
        let mut tries = 0;
        loop {
            // A run that ends removes the empty folder, perhaps just now; `clean` removes a record that is not
            // complete.
            tries += 1;
            match Self::open_at(folder, &path, about) {
                Err(HoldError::System(cause)) if cause.kind() == ErrorKind::NotFound && tries < TRIES => {}
                Err(HoldError::System(cause)) => {
                    remove_if_empty(folder);
                    return Err(ControlError::Make { path, cause });
                }
                Err(taken @ HoldError::Taken { .. }) => return Err(ControlError::Name(taken)),
                Ok(socket) => return Ok(socket),
            }
        }
    }

    fn open_at(folder: &Path, path: &Path, about: &About) -> Result<Self, HoldError> {
        let record = HeldRecord::write(folder, about.clone())?;
        // A killed run with our process ID may have left one.
        if listener(path) == Listener::Dead {
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let (id, name) = (record.id(), record.name().clone());
        let removed = RemovedWhenFull::new(path);
        Ok(Self {
            listeners: vec![listener],
            path: path.into(),
            clients: Vec::new(),
            record: Some(record),
            id,
            name,
            _removed: removed,
        })
    }

    /// Also accepts connections at a socket that a service manager has passed, and that stays its own.
    pub fn listen_at(&mut self, passed: UnixListener) {
        self.listeners.push(passed);
    }

    /// The name of the run.
    pub fn name(&self) -> &RunName {
        &self.name
    }

    /// The identifier of the run.
    pub fn run_id(&self) -> RunId {
        self.id
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptors to poll, with interest in reading, in writing or both. A client that has hung up is always
    /// readable and sends nothing more.
    pub fn descriptors(&self) -> impl Iterator<Item = (BorrowedFd<'_>, bool, bool)> {
        let clients = self
            .clients
            .iter()
            .map(|client| (client.stream.as_fd(), client.is_to_be_read(), !client.answers.is_empty()));
        let listeners = self.listeners.iter().map(|listener| (listener.as_fd(), true, false));
        listeners.chain(clients)
    }

    /// Whether a request can be answered at once: then do not wait.
    pub fn has_requests(&self) -> bool {
        self.clients.iter().any(|client| client.has_request() && !client.is_behind())
    }

    /// Serves clients for one turn, without waiting for any. `handle` gets a request and who made it.
    pub fn serve(&mut self, mut handle: impl FnMut(Request, Peer) -> ReplyLine) {
        self.accept();
        for client in &mut self.clients {
            client.write();
            if client.is_to_be_read() {
                client.read();
            }
            if !client.is_behind()
                && let Some(request) = client.next_request()
            {
                client.answer(match request {
                    Ok(request) => handle(request, client.from),
                    Err(message) => Reply::Error(message).into(),
                });
                client.write();
            }
        }
        self.clients.retain(|client| !client.is_over());
    }

    /// Accepts new connections. A client for which there is no room gets an error.
    fn accept(&mut self) {
        let accepted = self.listeners.iter().flat_map(|listener| {
            std::iter::from_fn(|| listener.accept().ok()).map(|(stream, _)| stream).take(MOST_CLIENTS)
        });
        for stream in accepted {
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let mut client = Connection::new(stream);
            if self.clients.len() < MOST_CLIENTS {
                self.clients.push(client);
            } else {
                let why = format!(
                    "{MOST_CLIENTS} programs are connected to this run, the maximum: try again when one has left"
                );
                client.answer(Reply::Error(why).into());
                client.write();
            }
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // If somebody else has removed it, nothing is left to do.
        let _ = fs::remove_file(&self.path);
        drop(self.record.take());
        if let Some(folder) = self.path.parent() {
            remove_if_empty(folder);
        }
    }
}

impl Connection {
    fn new(stream: UnixStream) -> Self {
        let from = Peer { process: peer_process(&stream).ok(), opens_files: is_peer_as_privileged(&stream) };
        Self {
            stream,
            from,
            asked: Vec::new(),
            searched: 0,
            blank: 0,
            answers: VecDeque::new(),
            ended: false,
        }
    }

    /// Whether there is a complete line.
    fn has_request(&self) -> bool {
        self.searched < self.asked.len()
    }

    fn is_behind(&self) -> bool {
        self.answers.len() > MOST_UNREAD
    }

    fn is_to_be_read(&self) -> bool {
        !self.ended && !self.has_request() && !self.is_behind()
    }

    fn is_over(&self) -> bool {
        self.ended && !self.has_request() && self.answers.is_empty()
    }

    fn read(&mut self) {
        let mut buffer = [0; BYTES_A_TURN];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.ended = true,
            Ok(length) => {
                self.asked.extend_from_slice(&buffer[..length]);
                self.search();
            }
            // The next turn retries.
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(_) => self.cut_off(),
        }
    }

    /// Searches for the next line feed.
    fn search(&mut self) {
        let rest = self.asked.iter().skip(self.searched);
        self.searched += rest.take_while(|&&byte| byte != b'\n').count();
    }

    fn next_request(&mut self) -> Option<Result<Request, String>> {
        let blank = self.asked.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if blank > 0 {
            self.asked.drain(..blank);
            self.blank += blank;
            self.searched = self.searched.saturating_sub(blank);
            self.search();
        }
        if self.blank > MOST_BLANK {
            return Some(Err(self.refuse(&format!(
                "more than {MOST_BLANK} bytes of white space in front of a request, which is a line of JSON"
            ))));
        }
        if !self.has_request() {
            let is_too_long = self.asked.len() >= LONGEST_REQUEST;
            return is_too_long.then(|| Err(self.refuse(&too_long())));
        }
        let line: Vec<u8> = self.asked.drain(..=self.searched).collect();
        (self.searched, self.blank) = (0, 0);
        self.search();
        if line.len() > LONGEST_REQUEST {
            return Some(Err(self.refuse(&too_long())));
        }
        let expected = r#"{"command":"set","assignments":["access.down.rate=2mbit"]} or {"command":"stats"}"#;
        Some(
            serde_json::from_slice(&line)
                .map_err(|error| format!("not a request: {error}; expected {expected}")),
        )
    }

    /// The reply to a client from which nothing more is read.
    fn refuse(&mut self, why: &str) -> String {
        self.asked.clear();
        (self.searched, self.ended) = (0, true);
        why.into()
    }

    fn answer(&mut self, line: ReplyLine) {
        self.answers.extend(line.into_bytes());
        self.answers.push_back(b'\n');
    }

    fn write(&mut self) {
        while !self.answers.is_empty() {
            let (next, _) = self.answers.as_slices();
            match self.stream.write(&next[..next.len().min(PORTION)]) {
                Ok(length) => drop(self.answers.drain(..length)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.cut_off(),
            }
            if !self.answers.is_empty() {
                // Packet threads may have waited for this processor.
                thread::yield_now();
            }
        }
    }

    fn cut_off(&mut self) {
        self.asked.clear();
        self.answers.clear();
        (self.searched, self.ended) = (0, true);
    }
}

fn too_long() -> String {
    format!("a request has at most {LONGEST_REQUEST} bytes and ends with a line feed")
}

#[cfg(test)]
mod tests;
