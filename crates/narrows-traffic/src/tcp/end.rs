//! Hosts, and the ends of their connections.

use std::net::{IpAddr, Ipv6Addr};

use narrows_core::{Duration, FlowKey, PortId, Time};
use narrows_scenario::{Congestion, TcpConfig};
use smoltcp::iface::{Config, Interface, PollResult, SocketSet};
use smoltcp::socket::AnySocket;
use smoltcp::socket::tcp::{CongestionControl, Socket, State};
use smoltcp::time::{self, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use super::buffers::{Buffered, Buffers};
use super::segment::{self, Segment};
use super::wire::Wire;
use crate::body::Frame;

/// A connection without arrivals for this long is dead: about what Linux waits, with its 15 retransmissions
/// (tcp_retries2).
const GONE: time::Duration = time::Duration::from_secs(900);
/// When smoltcp claims to be due at once but sends nothing, it is polled again after this time.
const AGAIN: Duration = Duration::from_millis(1);

/// A host with one address.
pub(crate) struct Host {
    interface: Interface,
    wire: Wire,
    tcp: TcpConfig,
    pub(crate) address: IpAddress,
    /// Where its packets enter the network, and where packets for it leave.
    pub(crate) port: PortId,
    /// The port that its packets are addressed to.
    peer: PortId,
    traffic_class: u8,
}

/// One end of a connection: a socket that is polled separately.
pub(crate) struct End {
    socket: Buffered,
    /// The sequence number after the last byte sent.
    sent_until: Option<u32>,
    /// When its timers expire.
    pub(crate) wakes: Option<Time>,
    /// The other end sent a reset.
    pub(crate) was_reset: bool,
}

impl Host {
    /// The host that sends packets with flow keys like `key`, which enter at `port` and go to `peer`.
    /// With `keeps_payload`, its packets are whole in the network, too.
    pub(crate) fn new(
        tcp: TcpConfig,
        key: &FlowKey,
        (port, peer): (PortId, PortId),
        seed: u64,
        keeps_payload: bool,
    ) -> Self {
        let mut wire = Wire::new(tcp.mtu, keeps_payload);
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        let address = address(key.source);
        let whole = if matches!(address, IpAddress::Ipv4(_)) { 32 } else { 128 };
        interface
            .update_ip_addrs(|all| all.push(IpCidr::new(address, whole)).expect("there is room for one"));
        Self { interface, wire, tcp, address, port, peer, traffic_class: key.traffic_class }
    }

    fn new_end(&self, buffers: &mut Buffers) -> End {
        let mut socket = buffers.socket(self.tcp.buffer.get() as usize);
        socket.with_dependent_mut(|_, all| {
            let socket = only(all);
            socket.set_congestion_control(match self.tcp.congestion {
                Congestion::Cubic => CongestionControl::Cubic,
                Congestion::Reno => CongestionControl::Reno,
                Congestion::None => CongestionControl::None,
            });
            socket.set_ack_delay(
                self.tcp.delayed_ack.map(|delay| time::Duration::from_micros(delay.nanos() / 1000)),
            );
            socket.set_nagle_enabled(self.tcp.nagle);
            socket.set_timeout(Some(GONE));
        });
        End { socket, sent_until: None, wakes: None, was_reset: false }
    }

    /// An end that listens for a connection.
    pub(crate) fn listen(&self, port: u16, buffers: &mut Buffers) -> End {
        let mut end = self.new_end(buffers);
        end.with(|socket| socket.listen((self.address, port))).expect("it is new, and no port is 0");
        end
    }

    /// An end that connects to another host.
    pub(crate) fn connect(
        &mut self,
        port: u16,
        (address, to): (IpAddress, u16),
        buffers: &mut Buffers,
    ) -> End {
        let mut end = self.new_end(buffers);
        let local = (self.address, port);
        let context = self.interface.context();
        end.with(|socket| socket.connect(context, (address, to), local))
            .expect("it is new, both have addresses of one family, and no port is 0");
        end
    }

    /// A packet for `end` has arrived. `out` gets the segments that the end sends in response.
    pub(crate) fn receive(&mut self, now: Time, end: &mut End, frame: &Frame, out: impl FnMut(Segment)) {
        let resets = segment::resets(&frame.bytes);
        self.wire.arrive(frame);
        let Self { interface, wire, .. } = self;
        let was_open = end.socket.with_dependent_mut(|_, all| {
            let was_open = only(all).is_active();
            interface.poll_ingress_single(instant(now), wire, all);
            was_open
        });
        end.was_reset |= was_open && resets && end.state() == State::Closed;
        self.take(end, out);
    }

    /// Lets `end` send what it has to send, to `out`; sets when it must be polled again.
    pub(crate) fn send(&mut self, now: Time, end: &mut End, out: impl FnMut(Segment)) {
        let at = instant(now);
        let Self { interface, wire, .. } = self;
        let wakes = end.socket.with_dependent_mut(|_, all| {
            while interface.poll_egress(at, wire, all) != PollResult::None {}
            interface.poll_at(at, all)
        });
        self.take(end, out);
        end.wakes = wakes.map(|at| {
            let at = Time::from_nanos(u64::try_from(at.total_micros()).unwrap_or(0).saturating_mul(1000));
            if at > now { at } else { now + AGAIN }
        });
    }

    fn take(&mut self, end: &mut End, mut out: impl FnMut(Segment)) {
        for sent in self.wire.sent.drain(..) {
            let mut segment = Segment::new(sent, self.traffic_class, self.port, self.peer);
            if let Some(until) = segment.until {
                // Sequence numbers wrap around: half of the range counts as earlier.
                segment.again = end.sent_until.is_some_and(|sent| until.wrapping_sub(sent) as i32 <= 0);
                if !segment.again {
                    end.sent_until = Some(until);
                }
            }
            out(segment);
        }
    }
}

impl End {
    fn with<R>(&mut self, act: impl FnOnce(&mut Socket<'_>) -> R) -> R {
        self.socket.with_dependent_mut(|_, all| act(only(all)))
    }

    pub(crate) fn state(&self) -> State {
        self.socket.with_dependent(|_, all| {
            let socket = all.iter().find_map(|(_, socket)| <Socket<'_> as AnySocket<'_>>::downcast(socket));
            socket.expect("each end has one").state()
        })
    }

    /// Resets the connection.
    pub(crate) fn abort(&mut self) {
        self.with(|socket| socket.abort());
    }

    /// Nothing more will be written.
    pub(crate) fn close(&mut self) {
        self.with(|socket| socket.close());
    }

    /// Gives its memory to connections to come.
    pub(crate) fn release(self, buffers: &mut Buffers) {
        buffers.reclaim(self.socket);
    }

    /// Reads what has arrived; returns the number of bytes.
    pub(crate) fn read(&mut self) -> u64 {
        self.with(|socket| {
            let mut all = 0;
            while let Ok(bytes @ 1..) = socket.recv(|bytes| (bytes.len(), bytes.len())) {
                all += bytes as u64;
            }
            all
        })
    }

    /// Writes up to `bytes` bytes; returns how many there was room for.
    pub(crate) fn write(&mut self, bytes: u64) -> u64 {
        self.with(|socket| {
            let mut written = 0;
            while written < bytes {
                let left = usize::try_from(bytes - written).unwrap_or(usize::MAX);
                // What the buffer has: zeros.
                match socket.send(|room| (room.len().min(left), room.len().min(left))) {
                    Ok(some @ 1..) => written += some as u64,
                    _ => break,
                }
            }
            written
        })
    }

    /// Nothing more will be sent from here: both ends have closed, or this one was told that there is no connection.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state(), State::Closed | State::TimeWait)
    }
}

/// The socket of a set of one.
fn only<'a, 'b>(all: &'a mut SocketSet<'b>) -> &'a mut Socket<'b> {
    let socket = all.iter_mut().find_map(|(_, socket)| <Socket<'_> as AnySocket<'_>>::downcast_mut(socket));
    socket.expect("each end has one")
}

/// The instant in smoltcp's whole microseconds.
fn instant(now: Time) -> Instant {
    Instant::from_micros((now.nanos() / 1000) as i64)
}

fn address(bytes: [u8; 16]) -> IpAddress {
    match IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical() {
        IpAddr::V4(four) => IpAddress::Ipv4(four),
        IpAddr::V6(six) => IpAddress::Ipv6(six),
    }
}
