//! Finds containers by name: asks Docker and Podman, through a Unix socket, for a container's first process.
//!
//! Sends one HTTP/1.0 request to each of their sockets until one knows the container.

use std::env;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_io::unix_socket::connect_within;
use serde::Deserialize;

/// The environment variable with the socket, as for `docker` itself: `unix:///run/docker.sock`.
const DOCKER_HOST: &str = "DOCKER_HOST";
/// Their system-wide sockets.
const SOCKETS: [&str; 3] = ["/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock"];
/// Podman's socket for a user, in the user's runtime directory.
const OF_USER: &str = "podman/podman.sock";
/// The maximum time for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum length of an answer; one about a container takes about 10 kB.
const LONGEST_ANSWER: u64 = 4 << 20;

/// Why a container cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// No container engine answers.
    #[error(
        "no container engine answers, so container `{name}` cannot be found: {}; start Docker, or Podman's socket (systemctl start \
         podman.socket), name it by {DOCKER_HOST}, or give the container's first process with --pid", tried.join(", ")
    )]
    NoEngine {
        /// The container.
        name: String,
        /// The sockets tried, and their errors.
        tried: Vec<String>,
    },
    /// No engine knows it.
    #[error("no container `{name}`, says the engine at {}: `docker ps` or `podman ps` lists those that run", sockets.join(" and at "))]
    Unknown {
        /// The container.
        name: String,
        /// The sockets asked.
        sockets: Vec<String>,
    },
    /// It is not running.
    #[error("the container `{name}` is not running ({state}): start it first, as with: docker start {name}")]
    NotRunning {
        /// The container.
        name: String,
        /// Its state, in the engine's words.
        state: String,
    },
    /// Not a valid name.
    #[error("`{0}` is not a container's name: letters, digits, `_`, `.` and `-`")]
    NoName(String),
    /// An unexpected answer.
    #[error("the engine at {} does not say which process the container `{name}` began with: {answer}", socket.display())]
    Answer {
        /// The container.
        name: String,
        /// The socket.
        socket: PathBuf,
        /// The beginning of the answer.
        answer: String,
    },
}

/// The relevant part of an engine's answer.
#[derive(Debug, Deserialize)]
struct Container {
    #[serde(rename = "State")]
    state: State,
}

#[derive(Debug, Deserialize)]
struct State {
    #[serde(rename = "Status", default)]
    status: String,
    #[serde(rename = "Running", default)]
    running: bool,
    #[serde(rename = "Pid", default)]
    process: u32,
}

/// The process ID of a container's first process.
///
/// # Errors
/// If no engine answers, none knows the container, or it is not running.
pub fn process_of(name: &str) -> Result<u32, ContainerError> {
    ask(name, &engine_sockets())
}

/// The sockets at which container engines may listen, in the order in which they are asked.
pub fn engine_sockets() -> Vec<PathBuf> {
    if let Some(named) = env::var_os(DOCKER_HOST).filter(|named| !named.is_empty()) {
        let text = named.to_string_lossy();
        return vec![PathBuf::from(text.strip_prefix("unix://").unwrap_or(&text))];
    }
    let of_user = env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join(OF_USER));
    SOCKETS.iter().map(PathBuf::from).chain(of_user).collect()
}

fn ask(name: &str, sockets: &[PathBuf]) -> Result<u32, ContainerError> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    if name.is_empty() || !name.chars().all(is_letter) {
        return Err(ContainerError::NoName(name.to_owned()));
    }
    let (mut tried, mut strangers) = (Vec::new(), Vec::new());
    for socket in sockets {
        match get(socket, &format!("/containers/{name}/json")) {
            Err(cause) => tried.push(format!("{}: {cause}", socket.display())),
            Ok((404, _)) => strangers.push(socket.display().to_string()),
            Ok((status, body)) => return running(name, socket, status, &body),
        }
    }
    let name = name.to_owned();
    match strangers[..] {
        [] => Err(ContainerError::NoEngine { name, tried }),
        _ => Err(ContainerError::Unknown { name, sockets: strangers }),
    }
}

fn running(name: &str, socket: &Path, status: u16, body: &[u8]) -> Result<u32, ContainerError> {
    let said = || {
        let text: String = String::from_utf8_lossy(body).chars().take(200).collect();
        let (name, socket) = (name.to_owned(), socket.to_owned());
        ContainerError::Answer { name, socket, answer: format!("{status} {text}") }
    };
    let container: Container = match status {
        200 => serde_json::from_slice(body).map_err(|_| said())?,
        _ => return Err(said()),
    };
    match container.state {
        State { running: true, process: process @ 1.., .. } => Ok(process),
        State { running: true, .. } => Err(said()),
        State { status, .. } => Err(ContainerError::NotRunning { name: name.to_owned(), state: status }),
    }
}

/// The status and the body of an answer.
fn get(socket: &Path, path: &str) -> io::Result<(u16, Vec<u8>)> {
    let mut stream = connect_within(socket, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // With HTTP/1.0, answers end with the connection, in one piece.
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    parse(&answer).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no answer of HTTP"))
}

fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    const BETWEEN: &[u8] = b"\r\n\r\n";
    let end = answer.windows(BETWEEN.len()).position(|window| window == BETWEEN)?;
    let head = str::from_utf8(&answer[..end]).ok()?;
    let mut words = head.lines().next()?.split_ascii_whitespace();
    let is_http = words.next()?.starts_with("HTTP/");
    let status = words.next()?.parse().ok()?;
    is_http.then(|| (status, answer[end + BETWEEN.len()..].to_vec()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;

    /// A socket where one request is answered by this.
    fn engine(answer: &'static str) -> PathBuf {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("narrows-engine-{}-{number}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 256];
            let length = stream.read(&mut request).unwrap();
            assert!(request[..length].starts_with(b"GET /containers/web-1/json HTTP/1.0\r\n"));
            stream.write_all(answer.as_bytes()).unwrap();
        });
        path
    }

    fn said(answers: &[&'static str]) -> Result<u32, String> {
        let sockets: Vec<_> = answers.iter().map(|answer| engine(answer)).collect();
        let found = ask("web-1", &sockets).map_err(|error| error.to_string());
        sockets.iter().for_each(|socket| std::fs::remove_file(socket).unwrap());
        found
    }

    const UNKNOWN: &str = "HTTP/1.0 404 Not Found\r\n\r\n{\"message\":\"No such container: web-1\"}";
    const RUNS: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"Id\":\"f0\",\"State\":\
                        {\"Status\":\"running\",\"Running\":true,\"Paused\":false,\"Pid\":4711,\"ExitCode\":0}}\n";

    #[test]
    fn the_first_engine_that_knows_it_is_believed() {
        assert_eq!(said(&[RUNS]), Ok(4711));
        assert_eq!(said(&[UNKNOWN, RUNS]), Ok(4711));
        let error = said(&[UNKNOWN, UNKNOWN]).unwrap_err();
        assert!(error.contains("no container `web-1`") && error.contains("docker ps"), "{error}");
    }

    #[test]
    fn what_does_not_run_or_is_no_answer_is_told() {
        let exited = "HTTP/1.0 200 OK\r\n\r\n{\"State\":{\"Status\":\"exited\",\"Running\":false,\"Pid\":0}}";
        let error = said(&[exited]).unwrap_err();
        assert!(error.contains("not running (exited)") && error.contains("docker start web-1"), "{error}");
        let error = said(&["HTTP/1.0 500 Oops\r\n\r\nno storage"]).unwrap_err();
        assert!(error.contains("500 no storage"), "{error}");
        let error = said(&["SSH-2.0-server\r\n"]).unwrap_err();
        assert!(
            error.contains("no container engine answers") && error.contains("no answer of HTTP"),
            "{error}"
        );
    }

    #[test]
    fn without_an_engine_it_says_where_it_looked_and_what_to_do() {
        let error = ask("web-1", &[PathBuf::from("/nowhere/docker.sock")]).unwrap_err().to_string();
        assert!(error.contains("/nowhere/docker.sock: No such file") && error.contains("--pid"), "{error}");
        let error = ask("../x", &[]).unwrap_err().to_string();
        assert!(error.contains("`../x` is not a container's name"), "{error}");
    }
}
