//! The control socket: the one door to a run.
//!
//! A Unix stream socket, one per run, for its owner only, in the run folder (see [`run_folder`]). The protocol is one
//! JSON object a line: a [`Request`], answered by one [`Reply`], in order, any number of them on a connection.
//! `docs/control-socket.md` has examples. The packet loop serves it between packets and never waits for a client: one
//! that sends more than it may, or does not read its answers, is cut off.

mod in_force;

pub use in_force::{LinkInForce, PortInForce, ScenarioInForce};

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use narrows_io::own_folder::{OwnFolder, OwnFolderError, remove_if_empty};
use narrows_io::unix_socket::{Listener, connect_within, listener};
use serde::{Deserialize, Serialize};

use crate::run_record::{HeldRecord, RunId, number};

/// A request longer than this is refused.
const LONGEST_REQUEST: usize = 1 << 20;
/// A client that leaves more than this unread is cut off.
const LONGEST_BACKLOG: usize = 4 << 20;
/// More connections at once than this are refused.
const MOST_CLIENTS: usize = 32;

/// How long an answer may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// How often making the socket is tried.
const TRIES: usize = 10;

/// What the name of a control socket ends with.
const SUFFIX: &str = ".sock";

/// The variable by which programs inside a run find its control socket.
pub const ENVIRONMENT: &str = "NARROWS_CONTROL";

/// What may be asked of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Change links, all at one instant: `access.down.rate=2mbit`.
    Set {
        /// In order. If one is wrong, none is done.
        assignments: Vec<String>,
    },
    /// Do what commands of ipfw say, and answer with what they print.
    Ipfw {
        /// The link at which the rules are; nothing where only one has some.
        link: Option<String>,
        /// What the commands are called in errors.
        file: String,
        /// One a line. If one is wrong, none is done.
        commands: String,
    },
    /// Say where the sockets of feeds are.
    Feeds {},
    /// Say what is in force: the scenario with its present values.
    Scenario {},
    /// Report what has happened so far.
    Stats {},
}

/// What a run answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Done, with what was asked for: the report so far, or null.
    Ok(serde_json::Value),
    /// Not done, and why.
    Error(String),
}

/// Why there is no control socket, or no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The socket could not be made.
    #[error("cannot make the control socket {}: {cause}", path.display())]
    Make {
        /// Where.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The run folder is not ours.
    #[error(transparent)]
    Folder(#[from] OwnFolderError),
    /// Nobody listens there.
    #[error("no run answers at {}: it has ended (`narrows clean` removes what it left)", path.display())]
    Nobody {
        /// Where.
        path: PathBuf,
    },
    /// The connection broke.
    #[error("the run at {} did not answer: {cause}", path.display())]
    Broken {
        /// Where.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// It listens but says nothing.
    #[error("the run at {} does not answer: is it stopped?", path.display())]
    Silent {
        /// Where.
        path: PathBuf,
    },
    /// The run refused.
    #[error("{0}")]
    Refused(String),
    /// There is no run to talk to.
    #[error("no run is going on ({} holds no control socket)", .0.display())]
    NoRun(PathBuf),
    /// There are several.
    #[error("several runs are going on: say which with --run, one of {}", .0.join(", "))]
    SeveralRuns(Vec<String>),
    /// There is no run of that number.
    #[error("no run `{run}` is going on; going on: {}", or_none(others))]
    NoSuchRun {
        /// As asked for.
        run: String,
        /// Those that are going on.
        others: Vec<String>,
    },
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// The folder of control sockets: `/run/narrows` for root, else `narrows` in the user's runtime folder, else a folder
/// of the user's own in the folder for temporary files; inside a run, that of the run, if it is ours. To be asked before
/// a user namespace is entered.
pub fn run_folder() -> PathBuf {
    let user = narrows_io::host::user();
    let owned_by_us =
        |folder: &Path| fs::metadata(folder).is_ok_and(|data| data.is_dir() && data.uid() == user);
    // Inside a run of an ordinary user, that user seems to be root.
    let outer = env::var_os(ENVIRONMENT).map(PathBuf::from);
    if let Some(folder) = outer.as_deref().and_then(Path::parent).filter(|folder| owned_by_us(folder)) {
        return folder.into();
    }
    if user == 0 && owned_by_us(Path::new("/run")) {
        return PathBuf::from("/run/narrows");
    }
    match env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if owned_by_us(Path::new(&folder)) => Path::new(&folder).join("narrows"),
        _ => env::temp_dir().join(format!("narrows-{user}")),
    }
}

/// The control sockets in the run folder, by the number of the run, which is that of its process.
///
/// # Errors
/// When the folder is not this user's, or cannot be read.
pub fn sockets(folder: &Path) -> Result<Vec<(u32, PathBuf)>, OwnFolderError> {
    let Some(folder) = OwnFolder::open(folder)? else { return Ok(Vec::new()) };
    let names = folder.names()?.into_iter().filter(|name| folder.has_own_socket(name));
    let run = |name: &str| number(name.strip_suffix(SUFFIX)?);
    let mut found: Vec<_> = names.filter_map(|name| Some((run(&name)?, folder.path().join(name)))).collect();
    found.sort();
    Ok(found)
}

/// What the control socket of a run is called in the run folder.
pub fn socket_name(run: u32) -> String {
    format!("{run}{SUFFIX}")
}

/// Finds the socket of the run that is meant: the one named, the one that we are inside of, or the only one.
///
/// # Errors
/// When there is none, or several and none is named.
pub fn find(folder: &Path, run: Option<&str>) -> Result<PathBuf, ControlError> {
    let alive: Vec<_> =
        sockets(folder)?.into_iter().filter(|(_, path)| listener(path) == Listener::There).collect();
    let names = || alive.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>();
    if let Some(run) = run {
        let found = alive.iter().find(|(name, _)| number(run) == Some(*name));
        return found
            .map(|(_, path)| path.clone())
            .ok_or_else(|| ControlError::NoSuchRun { run: run.into(), others: names() });
    }
    if let Some(path) = env::var_os(ENVIRONMENT) {
        return Ok(PathBuf::from(path));
    }
    match alive.as_slice() {
        [] => Err(ControlError::NoRun(folder.into())),
        [(_, path)] => Ok(path.clone()),
        _ => Err(ControlError::SeveralRuns(names())),
    }
}

/// Asks a run, and waits for the answer.
///
/// # Errors
/// When nobody answers, or the answer is a refusal.
pub fn ask(path: &Path, request: &Request) -> Result<serde_json::Value, ControlError> {
    let broken = |cause| ControlError::Broken { path: path.into(), cause };
    let mut stream = connect_within(path, PATIENCE).map_err(|cause| match cause.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => ControlError::Nobody { path: path.into() },
        ErrorKind::WouldBlock => ControlError::Silent { path: path.into() },
        _ => broken(cause),
    })?;
    let mut line = serde_json::to_string(request).map_err(|error| broken(error.into()))?;
    line.push('\n');
    let impatient =
        stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    impatient.map_err(broken)?;
    let broken = |cause: io::Error| match cause.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => ControlError::Silent { path: path.into() },
        _ => broken(cause),
    };
    stream.write_all(line.as_bytes()).map_err(broken)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(broken)?;
    match serde_json::from_str(&answer).map_err(|error| broken(error.into()))? {
        Reply::Ok(value) => Ok(value),
        Reply::Error(message) => Err(ControlError::Refused(message)),
    }
}

/// The run's end of it, with the record that says which run it is.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
    /// There before the socket, and until it is gone.
    record: Option<HeldRecord>,
    id: RunId,
}

#[derive(Debug)]
struct Client {
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
                self.clients.push(Client { stream, asked: Vec::new(), answers: Vec::new(), gone: false });
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

impl Client {
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
                    Request::Set { assignments } => Reply::Error(format!("no: {}", assignments.join(" "))),
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
