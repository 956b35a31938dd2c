//! `narrows interop`: the simulator's part in quic-interop-runner.

use std::ffi::OsString;
use std::net::{ToSocketAddrs, UdpSocket};
use std::time::Duration;

use clap::Parser;
use narrows_live::route::{self, Rebind, Rebinding, RouteOptions, TranslationOptions};
use narrows_live::run_record::RunKind;
use narrows_scenario::interop::{Interop, InteropRebinding};

use crate::args::{Inline, Interop as InteropArgs};
use crate::inline::{conclude, options};
use crate::output::{Failure, print, say};

/// Of the probes that wait for the server: as of `wait-for-it-quic -t 10s`.
const PROBES: u32 = 20;
const BETWEEN_PROBES: Duration = Duration::from_millis(500);
/// Where the client is seen before the first rebinding, and the hosts of its networks that it moves to.
const CLIENT: [(&str, &[u8]); 2] =
    [("193.167.0.", &[100, 101, 102, 103]), ("fd00:cafe:cafe::", &[100, 101, 102, 103])];

/// The files that the runner reads, of the client's side and the server's.
const TRACES: [&str; 2] = ["trace_node_left.pcap", "trace_node_right.pcap"];

/// The options of an inline run, with their defaults.
#[derive(Debug, Parser)]
struct Defaults {
    #[command(flatten)]
    inline: Inline,
}

pub(crate) fn interop(args: &InteropArgs) -> Result<u8, Failure> {
    let text = args.scenario.clone().or_else(|| std::env::var("SCENARIO").ok()).ok_or_else(|| {
        Failure::Other("no scenario: give it as one argument, or in the environment variable SCENARIO".into())
    })?;
    let translated = Interop::translate(&text).map_err(|error| Failure::Other(error.to_string()))?;
    let scenario = translated.scenario()?;
    if args.check {
        print(&explained(&translated, &scenario.explain().to_string()))?;
        return Ok(0);
    }
    let inline = inline(args)?;
    if let Some(server) = std::env::var("WAITFORSERVER").ok().filter(|server| !server.is_empty()) {
        wait_for(&server)?;
    }
    let options = RouteOptions {
        interfaces: [args.left.clone(), args.right.clone()],
        namespace: args.netns.clone(),
        translation: translated.rebinding.map(translation).transpose()?,
        ready: Some(args.ready_port),
        sniffed: args.logs.as_ref().map(|folder| TRACES.map(|name| folder.join(name))),
        inline: options(RunKind::Route, &inline)?,
    };
    let outcome = route::route(scenario, &options)?;
    let status = conclude(&outcome, &inline, "router", "restart the router when it is back")?;
    // SIGTERM is how containers are stopped.
    Ok(if status == 128 + 15 { 0 } else { status })
}

/// The scenario file, the files it names, and what comes of it.
fn explained(translated: &Interop, explanation: &str) -> String {
    let mut text = translated.text.clone();
    for (name, contents) in &translated.files {
        text.push_str(&format!("\n# {name}:\n"));
        text.extend(contents.lines().map(|line| format!("#   {line}\n")));
    }
    if let Some(InteropRebinding { first, every, address }) = translated.rebinding {
        let what = if address { "address" } else { "port" };
        let every = every.map(|every| format!("/{every}")).unwrap_or_default();
        text.push_str(&format!(
            "\n# The router translates addresses: --nat --rebind {what}={first}{every}\n"
        ));
    }
    format!("{text}\n{explanation}")
}

fn inline(args: &InteropArgs) -> Result<Inline, Failure> {
    let mut words: Vec<OsString> = vec!["narrows".into()];
    let files = [("--capture", &args.capture), ("--json", &args.json)];
    for (flag, file) in files {
        if let Some(file) = file {
            words.extend([flag.into(), file.into()]);
        }
    }
    if let Some(duration) = &args.duration {
        words.extend(["--duration".into(), duration.into()]);
    }
    let parsed = Defaults::try_parse_from(words).map_err(|error| Failure::Other(error.to_string()))?;
    Ok(parsed.inline)
}

/// The client keeps its address until the first rebinding, as in `rebind-error-model.cc`.
fn translation(asked: InteropRebinding) -> Result<TranslationOptions, Failure> {
    let hosts = if asked.address { usize::MAX } else { 1 };
    let addresses = CLIENT.into_iter().flat_map(|(network, all)| {
        all.iter().take(hosts).map(move |host| format!("{network}{host}").parse())
    });
    let pool =
        addresses.collect::<Result<_, _>>().map_err(|_| Failure::Other("a malformed address".into()))?;
    let what = if asked.address { Rebind::Address } else { Rebind::Port };
    let rebindings = vec![Rebinding { what, after: asked.first, every: asked.every }];
    Ok(TranslationOptions { pool, rebindings })
}

/// Waits until a QUIC server answers a version that nobody speaks with Version Negotiation (RFC 9000, section 6).
fn wait_for(server: &str) -> Result<(), Failure> {
    let failed = |why: String| Failure::Other(format!("WAITFORSERVER={server}: {why}"));
    let mut probe = [0; 1207];
    probe[..5].copy_from_slice(b"\xc0WAIT");
    let address = server
        .to_socket_addrs()
        .map_err(|error| failure_of(server, &error))?
        .next()
        .ok_or_else(|| failed("the name has no address".into()))?;
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).map_err(|error| failure_of(server, &error))?;
    socket.set_read_timeout(Some(BETWEEN_PROBES)).map_err(|error| failure_of(server, &error))?;
    let mut answer = [0; 1500];
    for _ in 0..PROBES {
        // Without a route or a neighbour yet, the next one may get there.
        let _ = socket.send_to(&probe, address);
        match socket.recv(&mut answer) {
            Ok(length) if length >= 5 && answer[1..5] == [0; 4] => {
                say(format_args!("narrows: {server} answers"));
                return Ok(());
            }
            Ok(_) | Err(_) => {}
        }
    }
    Err(failed("no QUIC server answered within 10 s".into()))
}

fn failure_of(server: &str, error: &std::io::Error) -> Failure {
    Failure::Other(format!("WAITFORSERVER={server}: {error}"))
}
