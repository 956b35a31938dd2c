//! What this program does inside of the hosts of a measurement: it is started there as the client's or the server's command.

use std::env;
use std::fs;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use narrows_frame::MacAddress;
use narrows_frame::craft::Udp;
use narrows_io::clock::clock_monotonic;
use narrows_io::namespace::Namespace;
use narrows_io::packet_socket::{PacketSocket, SendStop};
use narrows_io::route_socket::RouteSocket;

use crate::Outcome;

/// Frames handed to the kernel by one call, when they go as fast as they can.
const BATCH: usize = 64;
/// Ethernet, IPv4, UDP.
const HEADERS: usize = 14 + 20 + 8;
/// A station that no host has: the receiver's kernel counts such frames and leaves them alone.
const NOBODY: MacAddress = MacAddress([2, b'n', b'a', b'r', 0xff, 0xff]);
const SENDER: MacAddress = MacAddress([2, b'n', b'a', b'r', 0xff, 0xfe]);
/// Where nobody reads what arrives.
pub(crate) const DISCARD: u16 = 9;

/// The command by which the server's host is found and kept: `file` gets the number of its process.
pub(crate) fn stay(file: &Path) -> Outcome<String> {
    Ok(format!("{} --stay {}", env::current_exe()?.display(), file.display()))
}

/// The command that offers frames of `length` bytes, `rate` a second or, with 0, as many as it can, and prints how many were
/// sent and how many arrived at the host that stays.
pub(crate) fn offer(file: &Path, seconds: u32, rate: u32, length: usize) -> Outcome<String> {
    Ok(format!("{} --offer {} {seconds} {rate} {length}", env::current_exe()?.display(), file.display()))
}

/// The command that sends datagrams of `length` bytes of IP to the first `count` of [`crate::links::server`], `rate` a second in
/// all.
pub(crate) fn offer_links(count: u32, seconds: u32, rate: u32, length: usize) -> Outcome<String> {
    Ok(format!("{} --offer-links {count} {seconds} {rate} {length}", env::current_exe()?.display()))
}

pub(crate) fn is_meant(words: &[&str]) -> bool {
    matches!(words.first(), Some(&("--stay" | "--offer" | "--offer-links" | "--ask")))
}

pub(crate) fn run(words: &[&str]) -> Outcome<()> {
    match words {
        ["--stay", file] => stay_here(Path::new(file)),
        ["--offer", file, seconds, rate, length] => {
            offer_frames(Path::new(file), seconds.parse()?, rate.parse()?, length.parse()?)
        }
        ["--offer-links", count, seconds, rate, length] => {
            send_to_links(count.parse()?, seconds.parse()?, rate.parse()?, length.parse()?)
        }
        ["--ask", pause, seconds, requests @ ..] => crate::control::ask(pause, seconds, requests),
        _ => Err(format!("not understood: {words:?}").into()),
    }
}

fn stay_here(file: &Path) -> Outcome<()> {
    // Datagrams end in a socket that nobody reads, and cause no answers. Who waits for a listener finds one.
    let _sockets = (UdpSocket::bind(("0.0.0.0", DISCARD))?, TcpListener::bind(("0.0.0.0", 0))?);
    let part = file.with_extension("part");
    fs::write(&part, std::process::id().to_string())?;
    fs::rename(part, file)?;
    loop {
        sleep(Duration::from_secs(3600));
    }
}

fn offer_frames(file: &Path, seconds: u64, rate: u64, length: usize) -> Outcome<()> {
    let here = Namespace::current()?;
    let interfaces = RouteSocket::open(&here)?.interfaces()?;
    let interface = interfaces.iter().find(|interface| interface.name != "lo").ok_or("no interface")?;
    let mut socket = PacketSocket::open(&here, &interface.name)?;
    let address = |host: u8| SocketAddr::from(([192, 0, 2, host], DISCARD));
    let frame = Udp::new(address(1), address(2)).ethernet(NOBODY, SENDER, &vec![0; length - HEADERS]);
    let server = fs::read_to_string(file)?;
    let before = received(&server)?;
    let start = clock_monotonic().as_nanos();
    let (end, mut sent) = (start + seconds * 1_000_000_000, 0_u64);
    let batch = vec![&frame; if rate == 0 { BATCH } else { 1 }];
    let mut now = start;
    while now < end {
        // With 0, as fast as they go.
        if let Some(after) = (sent * 1_000_000_000).checked_div(rate) {
            let due = start + after;
            while now < due {
                std::hint::spin_loop();
                now = clock_monotonic().as_nanos();
            }
        }
        let step = socket.send(&batch);
        sent += step.count as u64;
        match step.stopped {
            None | Some(SendStop::Full) => {}
            Some(other) => return Err(other.into()),
        }
        now = clock_monotonic().as_nanos();
    }
    // What is on its way, and what waits in queues.
    sleep(Duration::from_millis(300));
    let came = received(&server)? - before;
    println!("{{\"sent\": {sent}, \"came\": {came}, \"seconds\": {}}}", (now - start) as f64 / 1e9);
    Ok(())
}

/// Packets that came in at the interfaces of the host of this process.
fn received(process: &str) -> Outcome<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/net/dev"))?;
    let line = |line: &str| {
        let (name, values) = line.split_once(':')?;
        // Bytes, then packets.
        (name.trim() != "lo").then(|| values.split_whitespace().nth(1)?.parse::<u64>().ok()).flatten()
    };
    Ok(text.lines().filter_map(line).sum())
}

fn send_to_links(count: u32, seconds: u64, rate: u64, length: usize) -> Outcome<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let to: Vec<SocketAddr> = (0..count).map(|link| (crate::links::server(link), DISCARD).into()).collect();
    let payload = vec![0; length - 28];
    let start = clock_monotonic().as_nanos();
    let (mut sent, mut refused) = (0_u64, 0_u64);
    for number in 0..rate * seconds {
        let due = start + number * 1_000_000_000 / rate;
        while clock_monotonic().as_nanos() < due {
            std::hint::spin_loop();
        }
        match socket.send_to(&payload, to[number as usize % to.len()]) {
            Ok(_) => sent += 1,
            Err(_) => refused += 1,
        }
    }
    println!("{{\"sent\": {sent}, \"refused\": {refused}}}");
    Ok(())
}
