//! The environment of sessions: their draws, what they send, and how they end.

use std::collections::VecDeque;

use narrows_core::source::{Period, Sizes};
use narrows_core::{Duration, FlowKey, Headers, Packet, PortId, Protocol, Seed, Stream, Time};
use narrows_report::AppMeter;

use super::{Departure, reversed};
use crate::body::Frame;
use crate::tcp::{Buffers, Host, Segment};

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client = 0,
    Server = 1,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Client, Self::Server];

    pub(super) fn other(self) -> Self {
        if self == Self::Client { Self::Server } else { Self::Client }
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Succeeded(Duration),
    Reset,
    TimedOut,
}

/// The environment of a session at one instant.
pub(super) struct Scene<'a> {
    pub(super) now: Time,
    pub(super) serial: u32,
    /// The client's UDP or TCP port and the server's.
    pub(super) client: (u16, u16),
    pub(super) key: FlowKey,
    pub(super) ports: [PortId; 2],
    pub(super) hosts: Option<&'a mut [Host; 2]>,
    pub(super) buffers: &'a mut Buffers,
    pub(super) draws: &'a Draws,
    pub(super) meter: &'a mut AppMeter,
    pub(super) out: &'a mut VecDeque<Departure>,
}

/// Random draws of sessions, keyed by transaction and the number of the draw in it.
pub(super) struct Draws {
    pub(super) request: Stream,
    pub(super) response: Stream,
    pub(super) pause: Stream,
    pub(super) service: Stream,
    pub(super) duration: Stream,
    pub(super) spurts: [Stream; 2],
}

impl Draws {
    pub(super) fn new(seed: Seed, name: &str) -> Self {
        let stream = |purpose| Stream::new(seed, name, purpose);
        Self {
            request: stream("request"),
            response: stream("response"),
            pause: stream("pause"),
            service: stream("service"),
            duration: stream("duration"),
            spurts: [stream("client's spurt"), stream("server's spurt")],
        }
    }
}

pub(super) fn size(stream: &Stream, serial: u32, number: u32, sizes: &Sizes) -> u64 {
    sizes.draw(&mut stream.draw(serial, number.into(), 0, 0)).get()
}

pub(super) fn span(stream: &Stream, serial: u32, number: u32, period: Period) -> Duration {
    period.draw(&mut stream.draw(serial, number.into(), 0, 0))
}

/// The kind of a datagram: the upper two bits of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request = 0,
    Answer = 1,
    Message = 2,
}

impl Kind {
    pub(super) fn of(message: u32) -> Self {
        match message >> 30 {
            0 => Self::Request,
            1 => Self::Answer,
            _ => Self::Message,
        }
    }
}

/// Counts a datagram that has arrived, whether its session is in progress or not.
pub(super) fn datagram_arrived(
    meter: &mut AppMeter,
    side: Side,
    message: u32,
    length: u32,
    network: Protocol,
    delay: Duration,
) {
    meter.arrived_packets += 1;
    let payload = u64::from(length - headers(network));
    match side {
        Side::Server => meter.up_bytes += payload,
        Side::Client => meter.down_bytes += payload,
    }
    if Kind::of(message) == Kind::Message {
        meter.message(delay);
    }
}

/// The length of the IP and UDP headers.
fn headers(network: Protocol) -> u32 {
    if network == Protocol::Ipv6 { 48 } else { 28 }
}

const HOSTS: &str = "sessions on connections have hosts that speak TCP";

impl Scene<'_> {
    pub(super) fn hosts_and_buffers(&mut self) -> (&mut [Host; 2], &mut Buffers) {
        let hosts = self.hosts.as_deref_mut().expect(HOSTS);
        (hosts, self.buffers)
    }

    /// Sends a datagram.
    pub(super) fn datagram(&mut self, from: Side, kind: Kind, number: u32, payload: u16) {
        let key = FlowKey { source_port: self.client.0, ..self.key };
        let key = if from == Side::Client { key } else { reversed(&key) };
        let network_header = if key.network == Protocol::Ipv6 { 0 } else { 20 };
        let length = headers(key.network) + u32::from(payload);
        let headers = Headers::plain(&key, length);
        let packet = Packet { length, link_header: 14, network_header, key, headers, body: None };
        let message = (kind as u32) << 30 | number & 0x3fff_ffff;
        self.depart(from, message, packet);
    }

    /// The host of a side, and where its segments go.
    pub(super) fn host(&mut self, side: Side) -> (&mut Host, impl FnMut(Segment)) {
        let (at, port, number) = (self.now, self.ports[side as usize], self.number(0));
        let Self { hosts, meter, out, .. } = self;
        let hosts = hosts.as_deref_mut().expect(HOSTS);
        let send = move |Segment { packet, again, .. }: Segment| {
            meter.sent_packets += 1;
            meter.retransmitted += u64::from(again);
            out.push_back(Departure { at, port, number, packet });
        };
        (&mut hosts[side as usize], send)
    }

    fn depart(&mut self, from: Side, message: u32, packet: Packet<Option<Box<Frame>>>) {
        self.meter.sent_packets += 1;
        let number = self.number(message);
        self.out.push_back(Departure { at: self.now, port: self.ports[from as usize], number, packet });
    }

    fn number(&self, message: u32) -> u64 {
        u64::from(self.serial) << 32 | u64::from(message)
    }
}
