//! A bare forwarder between two namespaces: the baseline for everything the live loop adds.
//!
//! ```text
//! forwarder [--user] [--mtu N] [--backend af_packet|af_xdp|af_xdp-generic] [--trains] [--server "CMD"] -- CMD…
//! ```
//!
//! Makes two hosts, 10.99.0.1 (client) and 10.99.0.2 (server), joined by nothing but this program; starts the
//! server's command in one, CMD in the other, forwards until CMD ends, and says what it saw. `--user` works
//! in a user namespace, without root. `--trains` leaves segmentation offload on and passes trains of segments on whole,
//! without looking into them.

use std::error::Error;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::time::Duration;

use narrows_io::address::IpPrefix;
use narrows_io::bpf::XdpMode;
use narrows_io::cable_end::CableEnd;
use narrows_io::clock::{clock_monotonic, thread_processor_time};
use narrows_io::frame::{Frame, FramePool};
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::packet_socket::{
    Offloads, PacketSocket, PacketSocketOptions, ReceiveBatch, Received, SendStop,
};
use narrows_io::process::{Signal, adopt_descendants, end_descendants, spawn};
use narrows_io::route_socket::RouteSocket;
use narrows_io::user_namespace::{InnerUser, enter_user_namespace};
use narrows_io::wait::{Waiting, wait, wake_on_time};
use narrows_io::xdp::{Group, PortOptions};
use narrows_io::{offload, stack};

/// Frames handled before the other descriptors are looked at again.
const BUDGET: usize = 16;

struct Arguments {
    user: bool,
    mtu: u32,
    backend: String,
    trains: bool,
    server: Option<String>,
    command: Vec<String>,
}

/// One direction's counters.
#[derive(Default)]
struct Direction {
    received: u64,
    sent: u64,
    refused: u64,
    retried: u64,
    partial_checksums: u64,
    unstamped: u64,
    /// Nanoseconds from the kernel's stamp to our having the frame.
    ages: Vec<u32>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    if arguments.user {
        enter_user_namespace(InnerUser::Root)?;
    }
    wake_on_time()?;
    adopt_descendants()?;
    let wire = Namespace::create()?.labelled("the wire");
    let client = host(&wire, "client", 1, &arguments)?;
    let server = host(&wire, "server", 2, &arguments)?;
    let mut sockets = ends(&arguments, &wire)?;

    let server_program = match &arguments.server {
        Some(line) => Some(spawn(command(line.split_whitespace().map(String::from).collect())?, &server)?),
        None => None,
    };
    let mut program = spawn(command(arguments.command)?, &client)?;

    let mut directions = [Direction::default(), Direction::default()];
    let mut batch = ReceiveBatch::new();
    let mut pool = FramePool::default();
    let mut frames = Vec::with_capacity(ReceiveBatch::FRAMES);
    let (begin, used) = (clock_monotonic(), thread_processor_time());
    loop {
        let mut waiting =
            [Waiting::readable(&sockets[0]), Waiting::readable(&sockets[1]), Waiting::readable(&program)];
        wait(&mut waiting, None)?;
        if waiting[2].is_ready() {
            break;
        }
        for from in 0..2 {
            for _ in 0..BUDGET {
                let count = sockets[from].receive(&mut batch, &mut pool, &mut frames)?;
                if count == 0 {
                    break;
                }
                forward(&mut sockets[1 - from], &mut frames, &mut directions[from], &mut pool);
            }
        }
    }
    let used = thread_processor_time() - used;
    let seconds = (clock_monotonic().as_nanos() - begin.as_nanos()) as f64 / 1e9;
    println!("ended after {seconds:.1} s: {}", program.wait()?);
    let frames: u64 = directions.iter().map(|direction| direction.sent).sum();
    println!("{:.0} ns of processor time per frame", used as f64 / frames.max(1) as f64);
    for (name, (direction, socket)) in
        ["client to server", "server to client"].into_iter().zip(directions.iter_mut().zip(&mut sockets))
    {
        report(name, direction, socket)?;
    }
    for (name, host) in [("client", &client), ("server", &server)] {
        let statistics = RouteSocket::open(&wire)?.interface(name)?.statistics;
        println!(
            "at the {name}: {} frames dropped on the way in, {} datagrams dropped by full sockets",
            statistics.send_dropped,
            full_sockets(host)?
        );
    }
    drop(server_program);
    drop(program);
    end_descendants(Signal::SIGTERM, Duration::from_millis(200))?;
    Ok(())
}

/// Our ends of the two cables.
fn ends(arguments: &Arguments, wire: &Namespace) -> Result<[CableEnd; 2], Box<dyn Error>> {
    let mode = match arguments.backend.as_str() {
        "af_packet" => {
            let offloads = if arguments.trains { Offloads::Whole } else { Offloads::None };
            let options = PacketSocketOptions { offloads, ..PacketSocketOptions::default() };
            let open = |name| PacketSocket::open_with(wire, name, options).map(CableEnd::PacketSocket);
            return Ok([open("client")?, open("server")?]);
        }
        _ if arguments.trains => return Err("trains need --backend af_packet".into()),
        "af_xdp" => None,
        "af_xdp-generic" => Some(XdpMode::Generic),
        other => return Err(format!("unknown backend `{other}`").into()),
    };
    let mut group = Group::new(2, arguments.mtu, PortOptions { mode, ..PortOptions::default() });
    let ports = [group.open(wire, "client")?, group.open(wire, "server")?];
    eprintln!("AF_XDP in {} mode, zero copy: {}", ports[0].mode().name(), ports[0].is_zero_copy());
    Ok(ports.map(|port| CableEnd::Xdp(Box::new(port))))
}

/// A host with one interface, whose other end lies on the wire under the host's name.
fn host(
    wire: &Namespace,
    name: &str,
    number: u8,
    arguments: &Arguments,
) -> Result<Namespace, Box<dyn Error>> {
    let namespace = Namespace::create()?.labelled(name);
    let far = VethEnd { namespace: &namespace, name: "eth0", mac: None };
    create_veth(&VethEnd { namespace: wire, name, mac: None }, &far, arguments.mtu)?;
    for (namespace, name) in [(&namespace, "eth0"), (wire, name)] {
        if arguments.trains {
            offload::trains(namespace, name)?;
        } else {
            offload::plain_packets(namespace, name)?;
        }
    }
    stack::silence(wire, name)?;
    stack::settle(&namespace, "eth0")?;
    let mut sockets = RouteSocket::open(&namespace)?;
    RouteSocket::open(wire)?.set_up(name)?;
    sockets.set_up("eth0")?;
    sockets.wait_for_carrier("eth0", Duration::from_secs(2))?;
    sockets.add_address("eth0", IpPrefix::new(Ipv4Addr::new(10, 99, 0, number), 24))?;
    sockets.add_address("eth0", IpPrefix::new(Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, number.into()), 64))?;
    Ok(namespace)
}

fn forward(to: &mut CableEnd, frames: &mut Vec<Received>, seen: &mut Direction, pool: &mut FramePool) {
    let now = clock_monotonic().as_nanos();
    seen.received += frames.len() as u64;
    let mut out: Vec<Frame> = Vec::with_capacity(frames.len());
    for received in frames.drain(..) {
        seen.partial_checksums += u64::from(received.partial_checksum);
        match received.stamp {
            Some(stamp) => {
                seen.ages.push(u32::try_from(now.saturating_sub(stamp.as_nanos())).unwrap_or(u32::MAX));
            }
            None => seen.unstamped += 1,
        }
        out.push(received.frame);
    }
    let mut at = 0;
    while at < out.len() {
        let sent = to.send(&mut out[at..]);
        at += sent.count;
        seen.sent += sent.count as u64;
        match sent.stopped {
            None => {}
            Some(SendStop::Full) => seen.retried += 1,
            Some(_) => {
                seen.refused += 1;
                at += 1;
            }
        }
    }
    out.into_iter().for_each(|frame| pool.recycle(frame));
}

fn report(name: &str, seen: &mut Direction, socket: &mut CableEnd) -> Result<(), Box<dyn Error>> {
    seen.ages.sort_unstable();
    let at = |share: f64| {
        let position = (seen.ages.len() as f64 * share) as usize;
        seen.ages
            .get(position.min(seen.ages.len().saturating_sub(1)))
            .map_or(0.0, |age| f64::from(*age) / 1e3)
    };
    println!(
        "{name}: received {} (dropped before us {}), sent {}, refused {}, retried {}, partial checksums {}, \
         unstamped {}; µs from stamp to us: median {:.1}, p99 {:.1}, max {:.1}",
        seen.received,
        socket.statistics()?.dropped,
        seen.sent,
        seen.refused,
        seen.retried,
        seen.partial_checksums,
        seen.unstamped,
        at(0.5),
        at(0.99),
        at(1.0),
    );
    Ok(())
}

/// `RcvbufErrors` of UDP: datagrams that arrived and that the program was too slow to read.
fn full_sockets(host: &Namespace) -> Result<u64, Box<dyn Error>> {
    let text = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))??;
    let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut pairs = names.split(' ').zip(values.split(' '));
    let found = pairs.find(|(name, _)| *name == "RcvbufErrors").ok_or("no RcvbufErrors in snmp")?;
    Ok(found.1.parse()?)
}

fn command(words: Vec<String>) -> Result<Command, Box<dyn Error>> {
    let (program, arguments) = words.split_first().ok_or("no command given")?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut parsed = Arguments {
        user: false,
        mtu: 1500,
        backend: "af_packet".into(),
        trains: false,
        server: None,
        command: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--user" => parsed.user = true,
            "--trains" => parsed.trains = true,
            "--mtu" => parsed.mtu = words.next().ok_or("--mtu needs a number")?.parse()?,
            "--backend" => parsed.backend = words.next().ok_or("--backend needs a name")?,
            "--server" => parsed.server = Some(words.next().ok_or("--server needs a command")?),
            "--" => parsed.command = words.by_ref().collect(),
            other => return Err(format!("unknown option `{other}`").into()),
        }
    }
    Ok(parsed)
}
