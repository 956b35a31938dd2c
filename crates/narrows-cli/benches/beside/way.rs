//! What lies between the two hosts of a measurement: narrows, a bare forwarder, the kernel, or only a cable.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs};

use narrows_io::address::IpPrefix;
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::process::spawn;
use narrows_io::route_socket::RouteSocket;
use narrows_io::sysctl::write_sysctl;
use serde_json::Value;

use crate::Outcome;

pub(crate) const NARROWS: &str = env!("CARGO_BIN_EXE_narrows");

/// What lies between the hosts.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// A veth pair from host to host.
    Cable,
    /// A namespace whose kernel routes; with TBF on the way to the server, these words of it.
    Router(Option<&'static str>),
    /// `narrows-io`'s example of that name, with these flags.
    Forwarder(&'static [&'static str]),
    /// `narrows run` with these flags.
    Narrows(Vec<String>),
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Done {
    /// What the client's command printed.
    pub(crate) output: String,
    /// The report of narrows; null of anything else.
    pub(crate) report: Value,
}

impl Done {
    /// A number of the report.
    pub(crate) fn number(&self, pointer: &str) -> f64 {
        number(&self.report, pointer)
    }

    /// The JSON that the client's command printed.
    pub(crate) fn json(&self) -> Outcome<Value> {
        let start = self.output.find('{').ok_or_else(|| format!("no result: {}", self.output.trim()))?;
        let mut values = serde_json::Deserializer::from_str(&self.output[start..]).into_iter();
        Ok(values.next().ok_or("no result")??)
    }
}

pub(crate) fn number(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

/// `narrows run` with these words.
pub(crate) fn narrows(flags: &str) -> Way {
    Way::Narrows(flags.split_whitespace().map(String::from).collect())
}

/// A name for a file that nobody else has.
pub(crate) fn scratch(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    env::temp_dir().join(format!("narrows-beside-{}-{number}-{name}", std::process::id()))
}

impl Way {
    /// Runs a command in the server's host and one in the client's, in which SERVER is the server's address. Ends when the
    /// client's has.
    pub(crate) fn run(&self, server: &str, client: &str) -> Outcome<Done> {
        match self {
            Self::Narrows(flags) => run_narrows(flags, server, client),
            Self::Forwarder(flags) => run_forwarder(flags, server, client),
            Self::Cable => run_kernel(None, server, client),
            Self::Router(tbf) => run_kernel(Some(*tbf), server, client),
        }
    }
}

fn run_narrows(flags: &[String], server: &str, client: &str) -> Outcome<Done> {
    let json = scratch("report.json");
    let mut command = Command::new(NARROWS);
    command.arg("run").args(flags).arg("--quiet").arg("--json").arg(&json).args(["--on", "server", server]);
    command.args(["--", "sh", "-c", &client.replace("SERVER", "$NARROWS_SERVER")]);
    let output = command.output()?;
    let report = fs::read(&json).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let _ = fs::remove_file(json);
    match report {
        Some(report) => Ok(Done { output: String::from_utf8_lossy(&output.stdout).into_owned(), report }),
        None => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

fn run_forwarder(flags: &[&str], server: &str, client: &str) -> Outcome<Done> {
    let path = Path::new(NARROWS).parent().unwrap_or(Path::new(".")).join("examples/forwarder");
    if !path.exists() {
        return Err("cargo build --release -p narrows-io --example forwarder makes it".into());
    }
    // Its server's command is no line for a shell.
    let mut command = Command::new(path);
    command.args(flags).args(["--server", server, "--", "sh", "-c"]);
    let output = command.arg(format!("sleep 0.5; {}", client.replace("SERVER", "10.99.0.2"))).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(Done { output: String::from_utf8_lossy(&output.stdout).into_owned(), report: Value::Null })
}

/// The two hosts, with or without a router between them. All of it ends with the function.
fn run_kernel(router: Option<Option<&str>>, server: &str, client: &str) -> Outcome<Done> {
    let (near, middle, far) = (Namespace::create()?, Namespace::create()?, Namespace::create()?);
    match router {
        None => cable(&near, "eth0", [10, 98, 2, 1], &far, "eth0", [10, 98, 2, 2])?,
        Some(tbf) => {
            cable(&near, "eth0", [10, 98, 1, 2], &middle, "client", [10, 98, 1, 1])?;
            cable(&far, "eth0", [10, 98, 2, 2], &middle, "server", [10, 98, 2, 1])?;
            write_sysctl(&middle, "net/ipv4/ip_forward", "1")?;
            RouteSocket::open(&near)?.add_default_route(Ipv4Addr::new(10, 98, 1, 1).into(), "eth0")?;
            RouteSocket::open(&far)?.add_default_route(Ipv4Addr::new(10, 98, 2, 1).into(), "eth0")?;
            if let Some(words) = tbf {
                let mut tc = Command::new("tc");
                tc.args("qdisc add dev server root tbf".split(' ')).args(words.split(' '));
                let output = middle.run(|| tc.output())??;
                if !output.status.success() {
                    return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
                }
            }
        }
    }
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {server}")]).stdin(Stdio::null()).stdout(Stdio::null());
    // Killed when it goes.
    let _serving = spawn(command, &far)?;
    let line = format!("sleep 0.5; {}", client.replace("SERVER", "10.98.2.2"));
    let output = near.run(|| Command::new("sh").args(["-c", &line]).output())??;
    Ok(Done { output: String::from_utf8_lossy(&output.stdout).into_owned(), report: Value::Null })
}

fn cable(
    near: &Namespace,
    near_name: &str,
    near_address: [u8; 4],
    far: &Namespace,
    far_name: &str,
    far_address: [u8; 4],
) -> Outcome<()> {
    let end = |namespace, name| VethEnd { namespace, name, mac: None };
    create_veth(&end(near, near_name), &end(far, far_name), 1500)?;
    for (namespace, name, address) in [(near, near_name, near_address), (far, far_name, far_address)] {
        let mut sockets = RouteSocket::open(namespace)?;
        sockets.set_up(name)?;
        sockets.add_address(name, IpPrefix::new(Ipv4Addr::from(address), 24))?;
    }
    Ok(RouteSocket::open(far)?.wait_for_carrier(far_name, Duration::from_secs(5))?)
}
