//! A program's end of the control socket.

use std::env;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_io::own_folder::OwnFolderError;
use narrows_io::unix_socket::{Listener, connect_within, listener, peer_process};
use narrows_report::Now;
use serde::de::DeserializeOwned;

use super::runs::names;
use super::{
    Changed, Checked, CurrentScenario, ENVIRONMENT, Entrance, EventsSince, HostOfRun, Reply, Request, Stale,
    Stats, Status, run_folder, sockets,
};
use crate::feeds::Place;
use crate::run_record::{HoldError, number};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long it may take where one of several does not matter.
const IMPATIENCE: Duration = Duration::from_secs(1);

/// A run that others can ask.
#[derive(Clone, Debug)]
pub struct Client {
    path: PathBuf,
}

impl Client {
    /// The run whose control socket this is.
    pub fn at(path: &Path) -> Self {
        Self { path: path.into() }
    }

    /// The run that is meant: the one of this name or number, the one that we are inside of, or the only one.
    ///
    /// # Errors
    /// When there is none, or several and none is named.
    pub fn find(run: Option<&str>) -> Result<Self, ControlError> {
        find(&run_folder(), run).map(|path| Self { path })
    }

    /// Where the control socket is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes assignments, all at one instant; where a generation is given, only if that is still the run's.
    ///
    /// # Errors
    /// When the run does not answer or refuses.
    pub fn set(&self, assignments: Vec<String>, generation: Option<u64>) -> Result<Changed, ControlError> {
        self.ask(&Request::Set { assignments, generation })
    }

    /// Whether these assignments could be made now, and what takes them back. Nothing is changed.
    ///
    /// # Errors
    /// When the run does not answer or would refuse them.
    pub fn check(&self, assignments: Vec<String>) -> Result<Checked, ControlError> {
        self.ask(&Request::Check { assignments })
    }

    /// Does what commands of ipfw say at a link, or at the only one that has rules. `file` is what errors call them.
    ///
    /// # Errors
    /// When the run does not answer or refuses.
    pub fn ipfw(
        &self,
        link: Option<String>,
        file: String,
        commands: String,
    ) -> Result<Changed, ControlError> {
        self.ask(&Request::Ipfw { link, file, commands, generation: None })
    }

    /// Where the sockets of feeds are.
    ///
    /// # Errors
    /// When the run does not answer.
    pub fn feeds(&self) -> Result<Vec<Place>, ControlError> {
        self.ask(&Request::Feeds {})
    }

    /// What is in force.
    ///
    /// # Errors
    /// When the run does not answer.
    pub fn scenario(&self) -> Result<CurrentScenario, ControlError> {
        self.ask(&Request::Scenario {})
    }

    /// What has happened so far.
    ///
    /// # Errors
    /// When the run does not answer.
    pub fn stats(&self) -> Result<Stats, ControlError> {
        self.ask(&Request::Stats {})
    }

    /// How things are. It is not waited for for long.
    ///
    /// # Errors
    /// When the run does not answer.
    pub fn status(&self) -> Result<Status, ControlError> {
        self.ask_within(&Request::Status {}, IMPATIENCE).map(|(status, _)| status)
    }

    /// What its links do at present.
    ///
    /// # Errors
    /// When the run does not answer, or has too many links for it.
    pub fn now(&self) -> Result<Now, ControlError> {
        self.ask(&Request::Now {})
    }

    /// What happened after the event of this number.
    ///
    /// # Errors
    /// When the run does not answer.
    pub fn events(&self, after: u64) -> Result<EventsSince, ControlError> {
        self.ask(&Request::Events { after })
    }

    /// Its hosts.
    ///
    /// # Errors
    /// When the run does not answer.
    pub fn hosts(&self) -> Result<Vec<HostOfRun>, ControlError> {
        self.ask(&Request::Hosts {})
    }

    /// The way into a host, and the number of the run's process, where it has one here.
    ///
    /// # Errors
    /// When the run does not answer, or has no such host.
    pub fn enter(&self, host: &str) -> Result<(Entrance, Option<u32>), ControlError> {
        self.ask_within(&Request::Enter { host: host.into() }, PATIENCE)
    }

    /// Asks it to end.
    ///
    /// # Errors
    /// When the run does not answer.
    pub fn end(&self) -> Result<(), ControlError> {
        self.ask(&Request::End {})
    }

    /// The number of the run's process; nothing where it has none here, as it is in another PID namespace.
    ///
    /// # Errors
    /// When nobody listens.
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
        let answer = serde_json::from_value(answer).map_err(|error| unknown(error.into()))?;
        Ok((answer, process))
    }
}

/// Finds the socket of the run that is meant: the one named, the one that we are inside of, or the only one.
///
/// # Errors
/// When there is none, or several and none is named.
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

/// The answer to a request, and the number of the process that gave it.
fn ask(
    path: &Path,
    request: &Request,
    patience: Duration,
) -> Result<(serde_json::Value, Option<u32>), ControlError> {
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
        // It may have said before why it takes nothing.
        Err(cause) if matches!(cause.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
        result => result.map_err(broken)?,
    }
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(broken)?;
    match serde_json::from_str(&answer).map_err(|error| broken(error.into()))? {
        Reply::Ok(value) => Ok((value, process)),
        Reply::Error(message) => Err(ControlError::Refused(message)),
        Reply::Stale(stale) => Err(ControlError::Stale(stale)),
    }
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
    /// The name is another run's.
    #[error("{0}: choose another name, or end that run with narrows down")]
    Name(HoldError),
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
    #[error(
        "run {} does not answer within {} s: is it stopped? (its control socket is {})",
        run_of(path),
        seconds,
        path.display()
    )]
    Silent {
        /// Where.
        path: PathBuf,
        /// For how long.
        seconds: u64,
    },
    /// The run refused.
    #[error("{0}")]
    Refused(String),
    /// The run has changed since.
    #[error("the run was changed in the meantime (generation {}): {}", .0.generation, or_none(&.0.changes))]
    Stale(Stale),
    /// There is no run to talk to.
    #[error("no run is active ({} holds no control socket)", .0.display())]
    NoRun(PathBuf),
    /// There are several.
    #[error("several runs are active: select one with --run: {}", .0.join(", "))]
    SeveralRuns(Vec<String>),
    /// There is no run of that name or number.
    #[error("no active run `{run}`; active: {}", or_none(others))]
    NoSuchRun {
        /// As asked for.
        run: String,
        /// Those that are going on.
        others: Vec<String>,
    },
}

/// The number by which a person knows it.
fn run_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
