//! The client's end of the control socket.

use std::env;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_io::own_folder::OwnFolderError;
use narrows_io::unix_socket::{Listener, connect_within, listener, peer_process};
use narrows_report::Now;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::activation::{activation_socket, can_start};
use super::runs::names;
use super::{
    Changed, Checked, CurrentScenario, ENVIRONMENT, Entrance, EventsSince, HostOfRun, PacketsSince, Reply,
    Request, Stale, Stats, Status, run_folder, sockets,
};
use crate::feeds::Place;
use crate::run_record::{HoldError, number};

/// The maximum time for a reply.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum time for a network to start.
const UNTIL_UP: Duration = Duration::from_secs(60);

/// The maximum time when querying several runs, where a single reply does not matter.
const IMPATIENCE: Duration = Duration::from_secs(1);

/// A run that can be queried.
#[derive(Clone, Debug)]
pub struct Client {
    path: PathBuf,
    known_files_only: bool,
}

impl Client {
    /// The run with this control socket.
    pub fn at(path: &Path) -> Self {
        Self { path: path.into(), known_files_only: false }
    }

    /// The same, for assignments from somebody who may read none of the run's files: they may name only those that the
    /// scenario uses already.
    #[must_use]
    pub fn with_known_files_only(mut self) -> Self {
        self.known_files_only = true;
        self
    }

    /// The run with this name or number, or the one that this process is inside of, or the only one.
    ///
    /// # Errors
    /// If there is none, or several and none is given.
    pub fn find(run: Option<&str>) -> Result<Self, ControlError> {
        find(&run_folder(), run).map(|path| Self::at(&path))
    }

    /// As [`Client::find`]; if no run has the given name but a service manager listens for it, that starts the run.
    ///
    /// # Errors
    /// If there is none, or it does not start.
    pub fn find_or_start(run: Option<&str>) -> Result<Self, ControlError> {
        let folder = run_folder();
        match (find(&folder, run), run) {
            (Err(ControlError::NoSuchRun { .. }), Some(name)) if can_start(&folder, name) => {
                start(&activation_socket(&folder, name), name)?;
                Self::find(run)
            }
            (found, _) => found.map(|path| Self::at(&path)),
        }
    }

    /// The path of the control socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes assignments, all at one instant; if a generation is given, only if it is still the run's.
    ///
    /// # Errors
    /// If the run does not reply or refuses.
    pub fn set(&self, assignments: Vec<String>, generation: Option<u64>) -> Result<Changed, ControlError> {
        self.ask(&Request::Set { assignments, generation, known_files_only: self.known_files_only })
    }

    /// Checks whether these assignments could be made now, and what would undo them. Nothing is changed.
    ///
    /// # Errors
    /// If the run does not reply or would refuse them.
    pub fn check(&self, assignments: Vec<String>) -> Result<Checked, ControlError> {
        self.ask(&Request::Check { assignments, known_files_only: self.known_files_only })
    }

    /// Executes ipfw commands at a link, or at the only one with rules. `file` is their name in errors.
    ///
    /// # Errors
    /// If the run does not reply or refuses.
    pub fn ipfw(
        &self,
        link: Option<String>,
        file: String,
        commands: String,
    ) -> Result<Changed, ControlError> {
        self.ask(&Request::Ipfw { link, file, commands, generation: None })
    }

    /// The sockets of feeds.
    ///
    /// # Errors
    /// If the run does not reply.
    pub fn feeds(&self) -> Result<Vec<Place>, ControlError> {
        self.ask(&Request::Feeds {})
    }

    /// The current configuration.
    ///
    /// # Errors
    /// If the run does not reply.
    pub fn scenario(&self) -> Result<CurrentScenario, ControlError> {
        self.ask(&Request::Scenario {})
    }

    /// The report so far.
    ///
    /// # Errors
    /// If the run does not reply.
    pub fn stats(&self) -> Result<Stats, ControlError> {
        self.ask(&Request::Stats {})
    }

    /// A short status, with a short timeout.
    ///
    /// # Errors
    /// If the run does not reply.
    pub fn status(&self) -> Result<Status, ControlError> {
        self.ask_within(&Request::Status {}, IMPATIENCE).map(|(status, _)| status)
    }

    /// The present state of its links.
    ///
    /// # Errors
    /// If the run does not reply, or has too many links for it.
    pub fn now(&self) -> Result<Now, ControlError> {
        self.ask(&Request::Now {})
    }

    /// The events after the one with this number.
    ///
    /// # Errors
    /// If the run does not reply.
    pub fn events(&self, after: u64) -> Result<EventsSince, ControlError> {
        self.ask(&Request::Events { after })
    }

    /// The packets after the one with this number. Packets are recorded from the first call on, as long as there is
    /// another one every three seconds.
    ///
    /// # Errors
    /// If the run does not reply.
    pub fn packets(&self, after: u64) -> Result<PacketsSince, ControlError> {
        self.ask(&Request::Packets { after })
    }

    /// Its hosts.
    ///
    /// # Errors
    /// If the run does not reply.
    pub fn hosts(&self) -> Result<Vec<HostOfRun>, ControlError> {
        self.ask(&Request::Hosts {})
    }

    /// The entrance to a host, and the run's process ID, if it has one in this PID namespace.
    ///
    /// # Errors
    /// If the run does not reply, or has no such host.
    pub fn enter(&self, host: &str) -> Result<(Entrance, Option<u32>), ControlError> {
        self.ask_within(&Request::Enter { host: host.into() }, PATIENCE)
    }

    /// Ends the run.
    ///
    /// # Errors
    /// If the run does not reply.
    pub fn end(&self) -> Result<(), ControlError> {
        self.ask(&Request::End {})
    }

    /// The run's process ID; `None` if it is in another PID namespace and has none here.
    ///
    /// # Errors
    /// If nobody listens.
    pub fn process(&self) -> Result<Option<u32>, ControlError> {
        let stream = connect(&self.path, PATIENCE)?;
        Ok(peer_process(&stream).ok())
    }

    fn ask<T: DeserializeOwned>(&self, request: &Request) -> Result<T, ControlError> {
        self.ask_within(request, PATIENCE).map(|(answer, _)| answer)
    }

    fn ask_within<T: DeserializeOwned>(
        &self,
        request: &Request,
        patience: Duration,
    ) -> Result<(T, Option<u32>), ControlError> {
        let (answer, process) = ask(&self.path, request, patience)?;
        let unknown = |cause| ControlError::Broken { path: self.path.clone(), cause };
        let answer =
            serde_json::from_slice(answer.get().as_bytes()).map_err(|error| unknown(error.into()))?;
        Ok((answer, process))
    }
}

/// Connects to a service manager's socket, so that it starts the network, and waits until the network answers.
fn start(path: &Path, name: &str) -> Result<(), ControlError> {
    ask(path, &Request::Status {}, UNTIL_UP).map(drop).map_err(|cause| ControlError::NotStarted {
        name: name.into(),
        path: path.into(),
        cause: Box::new(cause),
    })
}

/// Finds the socket of the run: the one given, the one that this process is inside of, or the only one.
///
/// # Errors
/// If there is none, or several and none is given.
pub(super) fn find(folder: &Path, run: Option<&str>) -> Result<PathBuf, ControlError> {
    let alive: Vec<_> =
        sockets(folder)?.into_iter().filter(|(_, path)| listener(path) == Listener::There).collect();
    let names = names(folder)?;
    let called = |number: &u32| names.get(number).map(|name| name.as_str());
    let all = || {
        let words = |number: &u32| {
            called(number).map_or_else(|| number.to_string(), |name| format!("{name} ({number})"))
        };
        alive.iter().map(|(number, _)| words(number)).collect::<Vec<_>>()
    };
    if let Some(run) = run {
        let is_meant = |other: &u32| number(run) == Some(*other) || called(other) == Some(run);
        let found = alive.iter().find(|(other, _)| is_meant(other));
        return found
            .map(|(_, path)| path.clone())
            .ok_or_else(|| ControlError::NoSuchRun { run: run.into(), others: all() });
    }
    if let Some(path) = env::var_os(ENVIRONMENT) {
        return Ok(PathBuf::from(path));
    }
    match alive.as_slice() {
        [] => Err(ControlError::NoRun(folder.into())),
        [(_, path)] => Ok(path.clone()),
        _ => Err(ControlError::SeveralRuns(all())),
    }
}

fn connect(path: &Path, patience: Duration) -> Result<UnixStream, ControlError> {
    connect_within(path, patience).map_err(|cause| match cause.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => ControlError::Nobody { path: path.into() },
        ErrorKind::WouldBlock => ControlError::Silent { path: path.into(), seconds: patience.as_secs() },
        _ => ControlError::Broken { path: path.into(), cause },
    })
}

/// The data of the reply to a request, and the process ID of the run.
fn ask(
    path: &Path,
    request: &Request,
    patience: Duration,
) -> Result<(Box<RawValue>, Option<u32>), ControlError> {
    let broken = |cause| ControlError::Broken { path: path.into(), cause };
    let mut stream = connect(path, patience)?;
    let process = peer_process(&stream).ok();
    let mut line = serde_json::to_string(request).map_err(|error| broken(error.into()))?;
    line.push('\n');
    let impatient =
        stream.set_read_timeout(Some(patience)).and_then(|()| stream.set_write_timeout(Some(patience)));
    impatient.map_err(broken)?;
    let broken = |cause: io::Error| match cause.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            ControlError::Silent { path: path.into(), seconds: patience.as_secs() }
        }
        _ => broken(cause),
    };
    match stream.write_all(line.as_bytes()) {
        // It may have sent the reason before closing.
        Err(cause) if matches!(cause.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
        result => result.map_err(broken)?,
    }
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(broken)?;
    match serde_json::from_slice(answer.as_bytes()).map_err(|error| broken(error.into()))? {
        Reply::Ok(data) => Ok((data, process)),
        Reply::Error(message) => Err(ControlError::Refused(message)),
        Reply::Stale(stale) => Err(ControlError::Stale(stale)),
    }
}

/// Why there is no control socket, or no reply.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The socket cannot be created.
    #[error("cannot make the control socket {}: {cause}", path.display())]
    Make {
        /// Its path.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// Another run has the name.
    #[error("{0}: choose another name, or end that run with narrows down")]
    Name(HoldError),
    /// The run folder belongs to another user.
    #[error(transparent)]
    Folder(#[from] OwnFolderError),
    /// Nobody listens there.
    #[error("no run answers at {}: it has ended (`narrows clean` removes what it left)", path.display())]
    Nobody {
        /// Its path.
        path: PathBuf,
    },
    /// The connection failed.
    #[error("the run at {} did not answer: {cause}", path.display())]
    Broken {
        /// Its path.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// The run listens but does not reply.
    #[error(
        "run {} does not answer within {} s: is it stopped? What was asked may still happen when it goes on. (Its control socket is {})",
        run_of(path),
        seconds,
        path.display()
    )]
    Silent {
        /// The socket's path.
        path: PathBuf,
        /// The time waited.
        seconds: u64,
    },
    /// The run refused.
    #[error("{0}")]
    Refused(String),
    /// The run has changed since.
    #[error("the run was changed in the meantime (generation {}): {}", .0.generation, or_none(&.0.changes))]
    Stale(Stale),
    /// A service manager listens for a network, which did not start.
    #[error("the network {name} did not start by its socket {}: {}; `systemctl status narrows@{name}.socket narrows@{name}` and `journalctl -u narrows@{name}` may say why", path.display(), unanswered(cause))]
    NotStarted {
        /// Its name.
        name: String,
        /// The path of the service manager's socket.
        path: PathBuf,
        /// What came instead of an answer.
        cause: Box<ControlError>,
    },
    /// There is no run.
    #[error("no run is active ({} holds no control socket)", .0.display())]
    NoRun(PathBuf),
    /// There are several runs.
    #[error("several runs are active: select one with --run: {}", .0.join(", "))]
    SeveralRuns(Vec<String>),
    /// There is no run with that name or number.
    #[error("no active run `{run}`; active: {}", or_none(others))]
    NoSuchRun {
        /// The given name or number.
        run: String,
        /// The runs in progress.
        others: Vec<String>,
    },
}

/// The run's number, as users know it.
fn run_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Why a socket has not answered, without its path.
fn unanswered(cause: &ControlError) -> String {
    match cause {
        ControlError::Nobody { .. } => "nobody listens there".into(),
        ControlError::Silent { seconds, .. } => format!("no answer within {seconds} s"),
        ControlError::Broken { .. } => "the connection was closed".into(),
        other => other.to_string(),
    }
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
