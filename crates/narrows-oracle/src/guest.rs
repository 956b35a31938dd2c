//! What runs inside the guest: the kernel's disciplines and `narrows run`, one after the other, on cables of the same kind.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use narrows_io::address::IpPrefix;
use narrows_io::link::{MacAddress, VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::offload::plain_packets;
use narrows_io::process::spawn;
use narrows_io::route_socket::{NetlinkError, RouteSocket};
use narrows_io::stack::silence;
use narrows_io::sysctl::write_sysctl;

use crate::case::Case;
use crate::receiver::{Receiver, SILENCE, receive};
use crate::sender::send;
use crate::trace::Trace;
use crate::traffic::Ends;

/// The client's address, and the server's.
const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 213, 0, 1), Ipv4Addr::new(10, 213, 0, 2)];
const MACS: [MacAddress; 2] = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])];
const NAMES: [&str; 2] = ["near", "far"];

/// The two runs of a case.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Observed {
    /// Through the kernel's discipline.
    pub kernel: Trace,
    /// Through `narrows run`.
    pub live: Trace,
}

/// Why a case could not be run.
#[derive(Debug)]
pub struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Runs a case both ways. `narrows` is the program; files that it needs go to `folder`.
///
/// # Errors
/// When namespaces, cables, `tc`, `narrows` or the traffic fail.
pub fn observe(case: &Case, narrows: &Path, folder: &Path) -> Result<Observed, Failure> {
    Ok(Observed { kernel: kernel(case)?, live: live(case, narrows, folder)? })
}

/// What `tc` says where it, or the kernel, lacks the discipline that the case needs.
///
/// # Errors
/// When a namespace or `tc` cannot be had.
pub fn lack(case: &Case) -> Result<Option<String>, Failure> {
    let Some(discipline) = case.needs else { return Ok(None) };
    let mut command = Command::new("tc");
    // With an option: a `tc` that does not know the discipline can do without.
    command.args(["qdisc", "add", "dev", "lo", "root", discipline, "limit", "1000"]);
    let output = Namespace::create()?.run(|| command.output())??;
    let said = String::from_utf8_lossy(&output.stderr);
    Ok((!output.status.success()).then(|| said.lines().next().unwrap_or_default().to_owned()))
}

/// The addresses and ports of a case's datagrams that are not those of the cable.
fn ends(case: &Case) -> BTreeSet<Ends> {
    case.traffic.iter().map(|datagram| datagram.ends).filter(|ends| *ends != Ends::default()).collect()
}

/// Gives the two hosts the addresses of these ends, and the first one the way to the second.
fn answer(namespaces: &[Namespace; 2], ends: Ends) -> Result<(), Failure> {
    // Another flow may have the same address.
    let once = |done: Result<(), NetlinkError>| match done {
        Err(NetlinkError::Refused { cause, .. }) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    };
    let mut near = RouteSocket::open(&namespaces[0])?;
    if let Some(source) = ends.source {
        once(near.add_address(NAMES[0], IpPrefix::new(source, 32)))?;
    }
    if let Some(destination) = ends.destination {
        once(RouteSocket::open(&namespaces[1])?.add_address(NAMES[1], IpPrefix::new(destination, 32)))?;
        once(near.add_route(IpPrefix::new(destination, 32), None, NAMES[0]))?;
        once(near.add_neighbour(NAMES[0], destination.into(), MACS[1]))?;
    }
    Ok(())
}

/// Sends the datagrams through a cable whose ends have the disciplines.
///
/// # Errors
/// When namespaces, cables, `tc` or the traffic fail.
pub fn kernel(case: &Case) -> Result<Trace, Failure> {
    let namespaces = [Namespace::create()?, Namespace::create()?];
    let end = |at: usize| VethEnd { namespace: &namespaces[at], name: NAMES[at], mac: Some(MACS[at]) };
    create_veth(&end(0), &end(1), 1500)?;
    for at in 0..2 {
        let (namespace, name) = (&namespaces[at], NAMES[at]);
        silence(namespace, name)?;
        plain_packets(namespace, name)?;
        // Link-local questions of one end to another would be counted by the discipline.
        write_sysctl(namespace, "net/ipv4/conf/all/rp_filter", "0")?;
        let mut sockets = RouteSocket::open(namespace)?;
        sockets.add_address(name, IpPrefix::new(ENDS[at], 24))?;
        sockets.set_up(name)?;
        sockets.add_neighbour(name, ENDS[1 - at].into(), MACS[1 - at])?;
    }
    for ends in ends(case) {
        answer(&namespaces, ends)?;
    }
    let side = |line: &str| usize::from(line.contains("dev far"));
    let own = case.tc.iter().map(|line| side(line)).max().unwrap_or(0);
    let run = |line: &str, program: &str, at: usize| {
        let mut command = Command::new(program);
        command.args(line.split_whitespace());
        match spawn(command, &namespaces[at])?.wait()? {
            status if status.success() => Ok(()),
            status => Err(Failure(format!("{program} {line}: {status}"))),
        }
    };
    // What arrives can be sent through disciplines only by way of a device of this kind.
    if case.tc.iter().any(|line| line.contains("dev ifb0")) {
        run("link add ifb0 type ifb", "ip", own)?;
        run("link set ifb0 up", "ip", own)?;
    }
    for line in &case.tc {
        run(line, "tc", if line.contains("dev ifb0") { own } else { side(line) })?;
    }
    let hears = match ends(case).is_empty() {
        _ if case.is_tcp() => Receiver::of_segments,
        true => Receiver::of_port,
        false => Receiver::of_every_port,
    };
    let receiver = namespaces[1].run(hears)??;
    let receiver = thread::spawn(move || receive(&receiver));
    let sent = namespaces[0].run(|| send(&case.traffic, ENDS[1]))??;
    let mut came = receiver.join().map_err(|_| Failure("the receiver ended early".into()))??;
    // One for every port hears what is wrong by a bit, too.
    came.retain(|came| (came.number as usize) < sent.len());
    Ok(Trace { sent, came })
}

/// Sends the datagrams through `narrows run`.
fn live(case: &Case, narrows: &Path, folder: &Path) -> Result<Trace, Failure> {
    let file = |what: &str| folder.join(format!("{}.{what}", case.name));
    let scenario = file("toml");
    fs::write(&scenario, case.scenario()?)?;
    let own = std::env::current_exe()?;
    let own = own.to_str().ok_or_else(|| Failure("the path of this program is no text".into()))?;
    let (sent, came, log) = (file("sent"), file("came"), file("log"));
    let what = if case.is_tcp() { "segments" } else { "datagrams" };
    let receive = format!("exec {own} receive {what} {}", came.display());
    let status = Command::new(narrows)
        .args(["run", "--quiet", "--wait", "timer", "--on", "server", &receive])
        .arg("--record")
        .arg(&log)
        .arg(&scenario)
        .args(["--", own, "send", case.name])
        .arg(&sent)
        .status()?;
    if !status.success() {
        return Err(Failure(format!("narrows run: {status}")));
    }
    Ok(Trace { sent: read(&sent)?, came: read(&came)? })
}

/// Sends from where this process is to `NARROWS_SERVER`, and waits until the receiver has heard all.
///
/// # Errors
/// When the system refuses.
pub fn send_live(case: &Case, output: PathBuf) -> io::Result<()> {
    let server = std::env::var("NARROWS_SERVER").map_err(io::Error::other)?;
    let sent = send(&case.traffic, server.parse().map_err(io::Error::other)?)?;
    write(&output, &sent)?;
    thread::sleep(SILENCE + Duration::from_secs(5));
    Ok(())
}

/// Receives datagrams, or TCP segments, where this process is.
///
/// # Errors
/// When the system refuses.
pub fn receive_live(output: PathBuf, segments: bool) -> io::Result<()> {
    let receiver = if segments { Receiver::of_segments()? } else { Receiver::of_port()? };
    write(&output, &receive(&receiver)?)
}

fn write<T: serde::Serialize>(path: &Path, value: &T) -> io::Result<()> {
    fs::write(path, serde_json::to_vec(value)?)
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}
