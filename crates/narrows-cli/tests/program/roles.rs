//! The programs at both ends: this test program once more, told by a variable which part to play.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use crate::common::quoted;

const ROLE: &str = "NARROWS_TEST_ROLE";
const PORT: u16 = 7007;
/// No end waits longer for the other, which then has failed.
const PATIENCE: Duration = Duration::from_secs(50);

/// What the TCP client sends: long enough for the windows to grow, and for many losses.
pub(crate) const TCP_BYTES: usize = 400_000;
/// UDP payload; with IPv4 and UDP headers 1498 bytes.
pub(crate) const PAYLOAD: usize = 1470;

/// Datagrams of a flood: 4.8 s at 1 Mbit/s, so that even with pauses it comes faster.
pub(crate) const FLOOD: u32 = 400;

/// A line for the shell that plays a role. Its arguments are words behind a colon.
pub(crate) fn role(role: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let program = quoted(program.to_str().unwrap());
    format!("{ROLE}='{role}' exec {program} roles::play --exact --nocapture --test-threads=1 >&2")
}

/// One end of a connection, when another test starts this program for it; otherwise nothing.
#[test]
fn play() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (name, number) = role.split_once(':').unwrap_or((&role, "0"));
    let number: u32 = number.parse().unwrap();
    match name {
        "tcp-server" => tcp_server(),
        "tcp-client" => tcp_client("NARROWS_SERVER"),
        "tcp-client6" => tcp_client("NARROWS_SERVER6"),
        "udp-server" => udp_server(),
        "udp-burst" => udp_burst(number, number),
        "udp-flood" => udp_burst(FLOOD, number),
        other => panic!("no such role: {other}"),
    }
}

/// Bytes that differ at every place, so that none can be lost, repeated or swapped unseen.
fn stream() -> Vec<u8> {
    (0..TCP_BYTES as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Takes the stream, and sends it back.
fn tcp_server() {
    let listener = TcpListener::bind(("::", PORT)).unwrap();
    let (mut client, _) = listener.accept().unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut seen = Vec::new();
    client.read_to_end(&mut seen).unwrap();
    assert!(seen == stream(), "{} bytes came, and not the right ones", seen.len());
    client.write_all(&seen).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    // Until the client has it all.
    let _ = client.read(&mut [0]);
}

fn tcp_client(server: &str) {
    let server: IpAddr = std::env::var(server).unwrap().parse().unwrap();
    let mut stream_to = TcpStream::connect_timeout(&(server, PORT).into(), PATIENCE).unwrap();
    stream_to.set_read_timeout(Some(PATIENCE)).unwrap();
    stream_to.write_all(&stream()).unwrap();
    stream_to.shutdown(Shutdown::Write).unwrap();
    let mut seen = Vec::new();
    stream_to.read_to_end(&mut seen).unwrap();
    assert!(seen == stream(), "{} bytes came back, and not the right ones", seen.len());
}

/// Answers each datagram with its number.
fn udp_server() {
    let socket = UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
    let mut payload = [0; 2000];
    loop {
        let (length, from) = socket.recv_from(&mut payload).unwrap();
        assert_eq!(length, PAYLOAD);
        socket.send_to(&payload[..4], from).unwrap();
    }
}

/// Sends `count` datagrams without a pause, and waits until `answers` of them are answered.
fn udp_burst(count: u32, answers: u32) {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    socket.connect((std::env::var("NARROWS_SERVER").unwrap(), PORT)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut payload = [0; PAYLOAD];
    for number in 0..count {
        payload[..4].copy_from_slice(&number.to_le_bytes());
        socket.send(&payload).unwrap();
    }
    for answered in 0..answers {
        assert_eq!(socket.recv(&mut [0; 8]).unwrap_or_else(|error| panic!("{answered} came: {error}")), 4);
    }
}
