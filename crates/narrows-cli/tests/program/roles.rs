//! The programs at both ends: this test program once more, told by a variable which part to play.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use narrows_io::namespace::Namespace;
use narrows_io::udp::{Datagram, StampedUdp};

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
        "ecn-server" => ecn_server(),
        "ecn-client4" => ecn_client("NARROWS_SERVER", number),
        "ecn-client6" => ecn_client("NARROWS_SERVER6", number),
        "refused" => refused(),
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

/// Speaks to a router itself, over both versions of IP: nobody listens there.
fn refused() {
    for router in ["198.18.3.1", "2001:db8:3::1"] {
        let router: IpAddr = router.parse().unwrap();
        let refused = TcpStream::connect_timeout(&(router, PORT).into(), PATIENCE).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let any: IpAddr = if router.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
        let socket = UdpSocket::bind((any, 0)).unwrap();
        socket.connect((router, PORT)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.send(b"anybody there?").unwrap();
        assert_eq!(socket.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
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

/// Sends `count` datagrams without a pause, and waits until `answers` of them are answered. A few may be missing: on a
/// busy machine the server's socket overflows, which is no matter of the link.
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
        if answered == answers - answers / 10 {
            socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        }
        match socket.recv(&mut [0; 8]) {
            Ok(length) => assert_eq!(length, 4),
            Err(_) if answered >= answers - answers / 10 => return,
            Err(error) => panic!("{answered} came: {error}"),
        }
    }
}

/// UDP payload, in one piece over either version.
const ECN_PAYLOAD: usize = 1200;
/// ECT(0), and the field of a packet that met congestion (RFC 3168).
const CAPABLE: u8 = 2;
const CONGESTION: u8 = 3;

fn socket(address: IpAddr, port: u16) -> StampedUdp {
    StampedUdp::bind(&Namespace::current().unwrap(), address, port).unwrap()
}

/// Answers each datagram of either version with the ECN field that it came with.
fn ecn_server() {
    let addresses = ["NARROWS_HOST_SERVER", "NARROWS_HOST_SERVER6"].map(|name| std::env::var(name).unwrap());
    std::thread::scope(|scope| {
        for address in addresses {
            scope.spawn(move || {
                let address: IpAddr = address.parse().unwrap();
                let socket = socket(address, PORT);
                let mut payload = [0; 2000];
                let patience = Duration::from_secs(1);
                loop {
                    let Some(datagram) = socket.receive(&mut payload, patience).unwrap() else { continue };
                    assert_eq!(datagram.length, ECN_PAYLOAD);
                    let to = (address_of(&payload), u16::from_le_bytes([payload[16], payload[17]])).into();
                    socket.send_to(&[datagram.traffic_class.unwrap() & 3], to).unwrap();
                }
            });
        }
    });
}

/// Sends `count` datagrams that can be marked, at once, with its own address in front, and says what came of them.
fn ecn_client(server: &str, count: u32) {
    let own = std::env::var(server.replace("SERVER", "CLIENT")).unwrap().parse().unwrap();
    let socket = socket(own, 0);
    socket.set_traffic_class(CAPABLE).unwrap();
    let server: IpAddr = std::env::var(server).unwrap().parse().unwrap();
    let mut payload = [0; ECN_PAYLOAD];
    let wide = match own {
        IpAddr::V4(four) => four.to_ipv6_mapped(),
        IpAddr::V6(six) => six,
    };
    payload[..16].copy_from_slice(&wide.octets());
    payload[16..18].copy_from_slice(&socket.address().unwrap().port().to_le_bytes());
    // No less than the link takes, and no more than sockets hold.
    for number in 0..count {
        socket.send_to(&payload, (server, PORT).into()).unwrap();
        if number % 10 == 9 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let mut marked = 0;
    for arrived in 0..count {
        let mut field = [0];
        let answer: Option<Datagram> = socket.receive(&mut field, PATIENCE).unwrap();
        assert!(answer.is_some(), "{arrived} arrived");
        assert!([CAPABLE, CONGESTION].contains(&field[0]), "{field:?}");
        marked += u32::from(field[0] == CONGESTION);
    }
    eprintln!("{count} datagrams arrived, {marked} of them marked");
}

fn address_of(payload: &[u8]) -> IpAddr {
    let octets: [u8; 16] = payload[..16].try_into().unwrap();
    IpAddr::from(octets).to_canonical()
}
