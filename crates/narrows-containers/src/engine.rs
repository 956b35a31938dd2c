//! A container engine: Docker, or Podman with its compatible interface, at a Unix socket.
//!
//! A request goes over a connection of its own, in HTTP/1.0: the answer then ends with the connection.

mod http;

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_io::unix_socket::{Listener, connect_within, listener};
use narrows_live::container::engine_sockets;
use serde::Deserialize;

use self::http::{Body, answer};
use crate::container::Container;
use crate::event::{Event, is_id};

/// The maximum time for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum length of an answer, and of an event.
const LONGEST_ANSWER: u64 = 64 << 20;
pub(crate) const LONGEST_EVENT: u64 = 1 << 20;
/// The environment variable with the socket.
const DOCKER_HOST: &str = "DOCKER_HOST";
/// `{"type":["container","network"]}`, for a URL.
const EVENTS: &str = "/events?filters=%7B%22type%22%3A%5B%22container%22%2C%22network%22%5D%7D";

/// Why an engine does not answer, or not as expected.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// It is elsewhere.
    #[error(
        "{what} is `{found}`: narrows attaches to containers of this host, through the engine's Unix socket; \
         unset it, or use --socket /var/run/docker.sock"
    )]
    Elsewhere {
        /// The flag or variable.
        what: &'static str,
        /// Its value.
        found: String,
    },
    /// No socket exists.
    #[error(
        "no container engine listens at {}: start Docker, or Podman's socket (systemctl start podman.socket), or name \
        another socket with --socket or {DOCKER_HOST}",
        one_of(tried)
    )]
    NoEngine {
        /// The sockets tried.
        tried: Vec<PathBuf>,
    },
    /// The connection failed.
    #[error("the engine at {}: {cause}{}", socket.display(), remedy(cause))]
    Broken {
        /// Its socket.
        socket: PathBuf,
        /// The error.
        cause: io::Error,
    },
    /// It refuses, or answers something else.
    #[error("the engine at {} answers {status} to {request}: {text}", socket.display())]
    Answer {
        /// Its socket.
        socket: PathBuf,
        /// The path of the request.
        request: String,
        /// The status.
        status: u16,
        /// The beginning of the answer, or what is wrong with it.
        text: String,
    },
}

fn one_of(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(" or ")
}

fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            ": its socket is for root and the group `docker`; run narrows as root"
        }
        _ => "",
    }
}

/// An engine.
#[derive(Clone, Debug)]
pub struct Engine {
    socket: PathBuf,
}

impl Engine {
    /// The engine at this socket, or at the one that the environment names, or at the first usual one where a
    /// process listens. `socket` is a path, or `unix://PATH`.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(socket: Option<&str>) -> Result<Self, EngineError> {
        let at = |what, text: &str| match (text.strip_prefix("unix://"), text.contains("://")) {
            (Some(path), _) => Ok(PathBuf::from(path)),
            (None, false) => Ok(PathBuf::from(text)),
            (None, true) => Err(EngineError::Elsewhere { what, found: text.into() }),
        };
        let named = env::var(DOCKER_HOST).ok().filter(|named| !named.is_empty());
        let tried = match (socket, named) {
            (Some(socket), _) => vec![at("--socket", socket)?],
            (None, Some(named)) => vec![at(DOCKER_HOST, &named)?],
            (None, None) => engine_sockets(),
        };
        let found = tried.iter().find(|path| listener(path) == Listener::There);
        match found {
            Some(socket) => Ok(Self { socket: socket.clone() }),
            None => Err(EngineError::NoEngine { tried }),
        }
    }

    /// Its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether it is Podman.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn is_podman(&self) -> Result<bool, EngineError> {
        let text = self.get("/version")?.unwrap_or_default();
        // Another engine may describe itself in another way.
        let version: Version = serde_json::from_slice(&text).unwrap_or_default();
        Ok(version.components.iter().any(|component| component.name == "Podman Engine"))
    }

    /// The IDs of all containers that run, or of those with this label.
    ///
    /// # Errors
    /// If the engine does not answer.
    pub fn running(&self, label: Option<(&str, &str)>) -> Result<Vec<String>, EngineError> {
        let filter = label.map(|(name, value)| serde_json::json!({ "label": [format!("{name}={value}")] }));
        let filter = filter.map(|filter| format!("?filters={}", escaped(&filter.to_string())));
        let request = format!("/containers/json{}", filter.unwrap_or_default());
        let text = self.get(&request)?.unwrap_or_default();
        let all: Vec<Listed> = serde_json::from_slice(&text)
            .map_err(|error| self.answered(&request, 200, &error.to_string()))?;
        Ok(all.into_iter().map(|listed| listed.id).filter(|id| is_id(id)).collect())
    }

    /// The container with this ID, unless it is gone.
    ///
    /// # Errors
    /// If the engine does not answer.
    pub fn container(&self, id: &str) -> Result<Option<Container>, EngineError> {
        let request = format!("/containers/{id}/json");
        let Some(text) = self.get(&request)? else { return Ok(None) };
        let container = Container::parse(&text);
        container.map(Some).map_err(|error| self.answered(&request, 200, &error.to_string()))
    }

    /// The container with this ID, if it is about to start in this network.
    ///
    /// # Errors
    /// If the engine does not answer.
    pub fn starting(&self, id: &str, network: &str) -> Result<Option<Container>, EngineError> {
        let filter = escaped(&serde_json::json!({ "id": [id] }).to_string());
        let list = self.get(&format!("/containers/json?all=1&filters={filter}"))?;
        let request = format!("/networks/{network}");
        let (Some(list), Some(network)) = (list, self.get(&request)?) else { return Ok(None) };
        let container = Container::parse_starting(id, &list, &network);
        container.map_err(|error| self.answered(&request, 200, &error.to_string()))
    }

    /// Its events from now on.
    ///
    /// # Errors
    /// If the engine does not answer.
    pub fn events(&self) -> Result<Events, EngineError> {
        let (status, mut body) = self.ask(EVENTS)?;
        if status != 200 {
            let mut text = Vec::new();
            // What can be read of it.
            let _ = body.by_ref().take(LONGEST_EVENT).read_to_end(&mut text);
            return Err(self.answered(EVENTS, status, &String::from_utf8_lossy(&text)));
        }
        body.source().get_ref().set_read_timeout(None).map_err(|cause| self.broken(cause))?;
        Ok(Events { engine: self.clone(), body: BufReader::new(body) })
    }

    /// The body of an answer; `None` if there is no such thing.
    fn get(&self, request: &str) -> Result<Option<Vec<u8>>, EngineError> {
        let (status, body) = self.ask(request)?;
        let mut text = Vec::new();
        body.take(LONGEST_ANSWER).read_to_end(&mut text).map_err(|cause| self.broken(cause))?;
        match status {
            200 => Ok(Some(text)),
            404 => Ok(None),
            _ => Err(self.answered(request, status, &String::from_utf8_lossy(&text))),
        }
    }

    fn ask(&self, request: &str) -> Result<(u16, Body<BufReader<UnixStream>>), EngineError> {
        let asked = || {
            let mut stream = connect_within(&self.socket, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            stream.write_all(format!("GET {request} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes())?;
            answer(BufReader::new(stream))
        };
        asked().map_err(|cause| self.broken(cause))
    }

    fn broken(&self, cause: io::Error) -> EngineError {
        EngineError::Broken { socket: self.socket.clone(), cause }
    }

    fn answered(&self, request: &str, status: u16, text: &str) -> EngineError {
        let text = text.trim().chars().take(200).collect();
        EngineError::Answer { socket: self.socket.clone(), request: request.into(), status, text }
    }
}

/// The status and the body of a whole answer.
///
/// # Errors
/// If it is not an answer of HTTP/1.
pub fn read_answer(bytes: &[u8]) -> io::Result<(u16, Vec<u8>)> {
    let (status, body) = answer(bytes)?;
    let mut text = Vec::new();
    body.take(LONGEST_ANSWER).read_to_end(&mut text)?;
    Ok((status, text))
}

/// Every byte but letters, digits and `-._~` as `%XX`.
fn escaped(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

/// What the engine consists of.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Version {
    components: Vec<Component>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Component {
    name: String,
}

#[derive(Deserialize)]
struct Listed {
    #[serde(rename = "Id")]
    id: String,
}

/// The events of an engine.
#[derive(Debug)]
pub struct Events {
    engine: Engine,
    body: BufReader<Body<BufReader<UnixStream>>>,
}

impl Events {
    /// Waits for the next event that matters; `None` when the engine has closed the connection, as it does when it
    /// ends.
    ///
    /// # Errors
    /// If the connection fails, or a line is not an event.
    pub fn next_event(&mut self) -> Result<Option<Event>, EngineError> {
        loop {
            let mut line = Vec::new();
            let read = self.body.by_ref().take(LONGEST_EVENT).read_until(b'\n', &mut line);
            read.map_err(|cause| self.engine.broken(cause))?;
            if !line.ends_with(b"\n") {
                return Ok(None);
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            match Event::parse(&line) {
                Ok(None) => {}
                Ok(Some(event)) => return Ok(Some(event)),
                Err(error) => return Err(self.engine.answered(EVENTS, 200, &error.to_string())),
            }
        }
    }
}
