//! A container engine of the tests' own: it answers as Docker does, and its containers are network namespaces with a
//! process each, on a bridge.
//!
//! ```text
//! container: eth0 ── hN ┐
//! container: eth0 ── hN ┴ bridge 10.77.0.254
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use narrows_io::namespace::Namespace;
use narrows_io::process::{Running, spawn};
use serde_json::{Value, json};

use crate::common::{Scratch, Started, narrows, start};

/// What the engine knows, and who listens to its events.
#[derive(Default)]
struct Known {
    containers: BTreeMap<String, Value>,
    listeners: Vec<UnixStream>,
    /// Connections are refused, as while the engine restarts.
    is_down: bool,
    /// It calls itself Podman.
    is_podman: bool,
}

/// The engine, its containers and the network between them.
pub(crate) struct Engine {
    pub(crate) folder: Scratch,
    bridge: Namespace,
    known: Arc<Mutex<Known>>,
    running: BTreeMap<String, InContainer>,
    count: u32,
    /// Events are not sent, or later.
    is_quiet: bool,
}

/// What a container consists of.
struct InContainer {
    namespace: Namespace,
    process: Option<Running>,
    address: String,
    /// The file of its namespace.
    file: PathBuf,
}

impl Engine {
    pub(crate) fn new() -> Self {
        let bridge = Namespace::create().unwrap();
        shell(
            &bridge,
            "ip link add br0 address 02:00:00:00:00:fe type bridge && ip addr add 10.77.0.254/24 dev br0 && ip link set br0 up",
        );
        let folder = Scratch::new();
        fs::create_dir(folder.file("netns")).unwrap();
        let (known, running) = (Arc::default(), BTreeMap::new());
        let engine = Self { folder, bridge, known, running, count: 0, is_quiet: false };
        engine.serve();
        engine
    }

    /// One that calls itself Podman.
    pub(crate) fn podman() -> Self {
        let engine = Self::new();
        engine.known.lock().unwrap().is_podman = true;
        engine
    }

    /// Does something that events do not tell.
    pub(crate) fn quietly(&mut self, what: impl FnOnce(&mut Self)) {
        self.is_quiet = true;
        what(self);
        self.is_quiet = false;
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.file("docker.sock")
    }

    fn serve(&self) {
        let listener = UnixListener::bind(self.socket()).unwrap();
        let known = self.known.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                if known.lock().unwrap().is_down {
                    return;
                }
                let known = known.clone();
                thread::spawn(move || answer(stream.unwrap(), &known));
            }
        });
    }

    /// As `systemctl stop docker`.
    pub(crate) fn stop(&self) {
        let mut known = self.known.lock().unwrap();
        known.is_down = true;
        for stream in std::mem::take(&mut known.listeners) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        drop(known);
        // The thread that accepts looks once more.
        let _ = UnixStream::connect(self.socket());
        fs::remove_file(self.socket()).unwrap();
    }

    /// As `systemctl start docker`.
    pub(crate) fn restart(&self) {
        self.known.lock().unwrap().is_down = false;
        self.serve();
    }

    /// Sends an event to everybody who listens.
    pub(crate) fn tell(&self, kind: &str, action: &str, id: &str) {
        if self.is_quiet {
            return;
        }
        let actor = match kind {
            "network" => {
                json!({ "ID": "net0", "Attributes": { "container": id, "name": "net0", "type": "bridge" } })
            }
            _ => json!({ "ID": id, "Attributes": { "image": "bb", "name": id } }),
        };
        let event = json!({ "Type": kind, "Action": action, "Actor": actor, "scope": "local", "time": 1, "timeNano": 1 });
        let line = format!("{event}\n");
        let mut known = self.known.lock().unwrap();
        // Over HTTP/1.1, as a proxy before the engine does.
        known.listeners.retain_mut(|stream| {
            stream.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes()).is_ok()
        });
    }

    /// Waits until somebody listens to events.
    pub(crate) fn until_heard(&self) {
        crate::common::eventually("somebody listens", || !self.known.lock().unwrap().listeners.is_empty());
    }

    /// A container with an interface that is down, in a namespace without a process yet; says that it has joined its
    /// network.
    pub(crate) fn create(&mut self, name: &str, labels: &[(&str, &str)]) {
        self.count += 1;
        let (number, address) = (self.count, format!("10.77.0.{}", self.count));
        let namespace = Namespace::create().unwrap();
        let path = self.folder.file("netns").join(format!("{name}-{number}"));
        symlink(self::path(&namespace), &path).unwrap();
        shell(
            &self.bridge,
            &format!(
                "ip link add h{number} type veth peer name c{number} && ip link set h{number} master br0 up"
            ),
        );
        // `ip link set netns` wants a process.
        let mut holder = Command::new("sleep");
        holder.arg("60").stdin(Stdio::null());
        let holder = spawn(holder, &namespace).unwrap();
        shell(&self.bridge, &format!("ip link set c{number} netns {}", holder.id()));
        shell(
            &namespace,
            &format!(
                "ip link set c{number} name eth0 && ip addr add {address}/24 dev eth0 && ip link set lo up"
            ),
        );
        let mac = inside(&namespace, "ip -o link show eth0 | sed 's/.*ether //; s/ .*//'");
        drop(holder);
        let labels: BTreeMap<_, _> = labels.iter().copied().collect();
        let container = json!({
            "Id": name, "Name": format!("/{name}"),
            "State": { "Status": "created", "Running": false, "Pid": 0 },
            "Config": { "Labels": labels }, "HostConfig": { "NetworkMode": "net0" },
            "NetworkSettings": { "SandboxKey": &path,
                "Networks": { "net0": { "IPAddress": address, "GlobalIPv6Address": "", "MacAddress": mac.trim() } } },
        });
        self.known.lock().unwrap().containers.insert(name.into(), container);
        self.running.insert(name.into(), InContainer { namespace, process: None, address, file: path });
        self.tell("network", "connect", name);
    }

    /// Brings its interface up.
    pub(crate) fn connect(&self, name: &str) {
        shell(&self.running[name].namespace, "ip link set eth0 up");
    }

    /// Starts its process; says so.
    pub(crate) fn start(&mut self, name: &str) {
        self.connect(name);
        let container = self.running.get_mut(name).unwrap();
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null()).stdout(Stdio::null());
        let process = spawn(command, &container.namespace).unwrap();
        let id = process.id();
        container.process = Some(process);
        let mut known = self.known.lock().unwrap();
        known.containers.get_mut(name).unwrap()["State"] =
            json!({ "Status": "running", "Running": true, "Pid": id });
        drop(known);
        // Podman makes the file first, and answers nothing until here: for who asks then, that is the same.
        fs::remove_file(&container.file).unwrap();
        symlink(path(&container.namespace), &container.file).unwrap();
        self.tell("container", "start", name);
    }

    /// As `docker run -d`.
    pub(crate) fn run(&mut self, name: &str, labels: &[(&str, &str)]) {
        self.create(name, labels);
        self.start(name);
    }

    /// As `docker stop`, and `docker rm`: process, interface and namespace are gone.
    pub(crate) fn end(&mut self, name: &str) {
        let container = self.running.remove(name).unwrap();
        self.known.lock().unwrap().containers.remove(name);
        shell(&container.namespace, "ip link del eth0");
        fs::remove_file(&container.file).unwrap();
        drop(container);
        self.tell("container", "die", name);
        self.tell("network", "disconnect", name);
    }

    /// The process of a container.
    pub(crate) fn process(&self, name: &str) -> u32 {
        self.running[name].process.as_ref().unwrap().id()
    }

    /// A datagram from one container to another, or to the bridge, and back; how long that took, if it came.
    pub(crate) fn echo(&self, from: &str, to: &str) -> Option<Duration> {
        round_trip(self.place(from), self.place(to))
    }

    fn place(&self, name: &str) -> (&Namespace, &str) {
        match self.running.get(name) {
            Some(container) => (&container.namespace, container.address.as_str()),
            None => (&self.bridge, "10.77.0.254"),
        }
    }

    /// `narrows` with its run folder in the test's.
    pub(crate) fn narrows<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = narrows(arguments);
        command.env("NARROWS_CONTROL", self.folder.file("none.sock")).env_remove("DOCKER_HOST");
        command
    }

    /// A watch that follows the engine.
    pub(crate) fn watch(&self, arguments: &[&str]) -> Started {
        let mut command = self.narrows(arguments.iter().copied());
        command.arg("--socket").arg(self.socket());
        let started = start(&mut command);
        self.until_heard();
        started
    }
}

#[expect(clippy::disallowed_methods, reason = "a round trip by wall clock has a lower bound")]
fn now() -> Instant {
    Instant::now()
}

/// A datagram from one address to another, and back; how long that took, if it came.
pub(crate) fn round_trip(from: (&Namespace, &str), to: (&Namespace, &str)) -> Option<Duration> {
    let [inner, outer] = [from, to].map(|(namespace, address)| {
        let socket = namespace.run(|| UdpSocket::bind((address, 0)).unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        socket
    });
    let started = now();
    let mut buffer = [0; 16];
    inner.send_to(b"there", outer.local_addr().unwrap()).ok()?;
    let (_, from) = outer.recv_from(&mut buffer).ok()?;
    outer.send_to(b"back", from).ok()?;
    inner.recv_from(&mut buffer).ok()?;
    Some(started.elapsed())
}

/// The path by which another process gets into a namespace.
pub(crate) fn path(namespace: &Namespace) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd())
}

#[track_caller]
pub(crate) fn shell(namespace: &Namespace, line: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    assert!(spawn(command, namespace).unwrap().wait().unwrap().success(), "{line}");
}

pub(crate) fn inside(namespace: &Namespace, line: &str) -> String {
    let folder = Scratch::new();
    let said = folder.file("said");
    shell(namespace, &format!("{{ {line}; }} >'{}' 2>/dev/null", said.display()));
    fs::read_to_string(&said).unwrap()
}

/// Answers one request.
fn answer(mut stream: UnixStream, known: &Mutex<Known>) {
    let mut request = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    reader.read_line(&mut request).unwrap();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 || line.trim().is_empty() {
            break;
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut known = known.lock().unwrap();
    if path.starts_with("/events") {
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        known.listeners.push(stream);
        return;
    }
    if path.starts_with("/version") {
        let name = if known.is_podman { "Podman Engine" } else { "Engine" };
        let version = json!({ "Components": [{ "Name": name, "Version": "4.3.1" }] });
        let _ = stream.write_all(format!("HTTP/1.0 200 OK\r\n\r\n{version}\n").as_bytes());
        return;
    }
    if path.starts_with("/networks/net0") {
        let containers: serde_json::Map<_, _> = known
            .containers
            .iter()
            .map(|(id, container)| {
                let joined = &container["NetworkSettings"]["Networks"]["net0"];
                let address = format!("{}/24", joined["IPAddress"].as_str().unwrap());
                (id.clone(), json!({ "MacAddress": joined["MacAddress"], "IPv4Address": address }))
            })
            .collect();
        let network = json!({ "Name": "net0", "Id": "net0", "Containers": containers });
        let _ = stream.write_all(format!("HTTP/1.0 200 OK\r\n\r\n{network}\n").as_bytes());
        return;
    }
    // Docker does not describe a container that is starting.
    let is_described = |container: &&Value| container["State"]["Running"] == true;
    let body = match path.strip_prefix("/containers/").and_then(|rest| rest.strip_suffix("/json")) {
        Some(id) => known.containers.get(id).filter(is_described).map(Value::to_string),
        None => {
            // `label=com.docker.compose.project=shop`, escaped.
            let project = path.split("project%3D").nth(1).map(|rest| rest.split('%').next().unwrap());
            let of_project = |container: &&Value| {
                let labels = &container["Config"]["Labels"];
                project.is_none_or(|project| labels["com.docker.compose.project"] == project)
            };
            let is_meant = |container: &&Value| path.contains("all=1") || is_described(container);
            let all = known.containers.values().filter(is_meant).filter(of_project);
            let listed = |container: &Value| {
                let state = &container["State"]["Status"];
                json!({ "Id": container["Id"], "Names": [container["Name"]], "State": state,
                    "Labels": container["Config"]["Labels"] })
            };
            let ids: Vec<_> = all.map(listed).collect();
            Some(Value::Array(ids).to_string())
        }
    };
    let answer = match body {
        Some(body) => format!("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{body}\n"),
        None => "HTTP/1.0 404 Not Found\r\n\r\n{\"message\":\"No such container\"}\n".into(),
    };
    let _ = stream.write_all(answer.as_bytes());
}
