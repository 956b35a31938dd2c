//! Sends the datagrams of a case at their instants.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use narrows_io::clock::clock_realtime;
use narrows_io::wait::wake_on_time;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

use crate::traffic::Datagram;

/// From one whole multiple of this to the next, in nanoseconds: runs begin at the same phase of the kernel's ticks.
const ALIGNMENT: u64 = 1_000_000_000;
/// A socket that waits for its own datagrams would hold back the others.
const BUFFER: usize = 256 << 20;

/// Sends them, and gives for each the instant of the wall clock at which it was, in nanoseconds. The first goes one to two
/// seconds from now, at the beginning of a second of that clock.
///
/// # Errors
/// When the system refuses a socket, or to send.
pub fn send(datagrams: &[Datagram], to: Ipv4Addr) -> io::Result<Vec<u64>> {
    wake_on_time()?;
    let mut sockets = BTreeMap::new();
    for datagram in datagrams {
        let of = (datagram.flow, datagram.traffic_class);
        if sockets.contains_key(&of) {
            continue;
        }
        sockets.insert(of, socket(datagram, to)?);
    }
    let begin = (clock_realtime() / ALIGNMENT + 2) * ALIGNMENT;
    let mut sent = Vec::with_capacity(datagrams.len());
    for (number, datagram) in datagrams.iter().enumerate() {
        sleep_until(begin + datagram.at)?;
        let payload = &datagram.bytes(number as u32)[..];
        let socket = &sockets[&(datagram.flow, datagram.traffic_class)];
        sent.push(clock_realtime());
        // No program listens at the ports of some: the answer to one is told at the next, which is then not sent.
        match socket.send(payload) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => socket.send(payload)?,
            done => done?,
        };
    }
    Ok(sent)
}

/// Several classes of one flow have sockets of their own with the same port.
fn socket(datagram: &Datagram, to: Ipv4Addr) -> io::Result<UdpSocket> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, SockaddrIn, bind};
    use std::os::fd::AsRawFd;
    let (kind, protocol) = match datagram.segment {
        None => (SockType::Datagram, None),
        Some(_) => (SockType::Raw, Some(SockProtocol::Tcp)),
    };
    let socket = nix::sys::socket::socket(AddressFamily::Inet, kind, SockFlag::SOCK_CLOEXEC, protocol)?;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    setsockopt(&socket, sockopt::ReusePort, &true)?;
    let ends = datagram.ends;
    let [source_port, destination_port] = datagram.ports();
    let source = SocketAddrV4::new(ends.source.unwrap_or(Ipv4Addr::UNSPECIFIED), source_port);
    bind(socket.as_raw_fd(), &SockaddrIn::from(source))?;
    let socket = UdpSocket::from(socket);
    setsockopt(&socket, sockopt::SndBufForce, &BUFFER)?;
    setsockopt(&socket, sockopt::Ipv4Tos, &datagram.traffic_class.into())?;
    socket.connect((ends.destination.unwrap_or(to), destination_port))?;
    Ok(socket)
}

/// Sleeps until that instant of the wall clock, in nanoseconds.
fn sleep_until(instant: u64) -> io::Result<()> {
    let time = TimeSpec::new((instant / 1_000_000_000) as i64, (instant % 1_000_000_000) as i64);
    match clock_nanosleep(ClockId::CLOCK_REALTIME, ClockNanosleepFlags::TIMER_ABSTIME, &time) {
        Ok(_) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
