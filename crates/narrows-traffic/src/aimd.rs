//! A sender that responds to congestion, with the other end that acknowledges: what a queue that drops and marks is for.
//!
//! It is the additive increase and multiplicative decrease of TCP (RFC 5681) without TCP's protocol: there is no
//! connection to set up and no stream to put in order. Packets of one length go from one port to another; each that gets
//! there whole is answered at that instant by an acknowledgement of 40 bytes (IPv6: 60), which crosses the network too. An
//! acknowledgement tells of everything that has arrived so far (a SACK with as many blocks as it takes, and the marks
//! counted packet by packet), so that one may be lost without harm.
//!
//! - Each transmission has a number of its own, as in QUIC (RFC 9002): what is lost is sent again under another one, and
//!   so every acknowledgement measures a round trip.
//! - A packet is lost when three that were sent later have arrived, or when the time-out of RFC 6298 has passed (1 s at
//!   first and at least; doubled each time, up to 60 s). After 15 time-outs in a row the sender gives up.
//! - The window: [`window`]. Packets go out as soon as it has room, without pacing.
//!
//! A packet with a flipped bit is thrown away at either end, as a checksum would have it. Packets may not be cut: on a path
//! with a smaller MTU none gets through.

mod sender;
mod window;

use std::collections::VecDeque;

use narrows_core::{FlowKey, Headers, Packet, PortId, Protocol, Time};
use narrows_scenario::AimdConfig;

use crate::aimd::sender::Sender;
use crate::body::{Arrived, Delivery};

/// Both ends.
#[derive(Debug)]
pub(crate) struct Aimd {
    sender: Sender,
    /// What has arrived and the sender does not know of yet: numbers, and whether they were marked.
    arrived: VecDeque<(u64, bool)>,
    /// How much arrived before that.
    known: u64,
    data: Packet<()>,
    acknowledgement: Packet<()>,
    from: PortId,
    to: PortId,
    /// What enters the network next.
    out: VecDeque<Out>,
}

/// A packet that enters the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Out {
    pub(crate) at: Time,
    pub(crate) port: PortId,
    /// Of data, the number of the transmission; of an acknowledgement, how much has arrived.
    pub(crate) number: u64,
}

impl Aimd {
    /// Packets of the flow `key` from one port to another.
    pub(crate) fn new(config: &AimdConfig, key: FlowKey, from: PortId, to: PortId) -> Self {
        let network_header = if key.network == Protocol::Ipv6 { 0 } else { 20 };
        let headers = Headers::plain(&key, config.length);
        let data = Packet { length: config.length, link_header: 14, network_header, key, headers, body: () };
        let back = FlowKey {
            source: key.destination,
            destination: key.source,
            source_port: key.destination_port,
            destination_port: key.source_port,
            traffic_class: key.traffic_class & !FlowKey::CONGESTION_EXPERIENCED,
            ..key
        };
        let length = if key.network == Protocol::Ipv6 { 60 } else { 40 };
        let headers = Headers::plain(&back, length);
        let acknowledgement = Packet { length, key: back, headers, ..data };
        let (arrived, out) = Default::default();
        Self { sender: Sender::new(config), arrived, known: 0, data, acknowledgement, from, to, out }
    }

    /// When the next packet enters the network. Moves, either way, at each arrival.
    pub(crate) fn peek(&self) -> Option<Time> {
        self.out.front().map(|out| out.at).or(self.sender.wakes())
    }

    /// The packet whose instant was peeked at.
    pub(crate) fn take(&mut self) -> (Out, Packet<()>) {
        if let (None, Some(at)) = (self.out.front(), self.sender.wakes()) {
            self.sender.wake();
            self.send(at);
        }
        let out = self.out.pop_front().expect("a sender that wakes up sends");
        let packet = if out.port == self.from { &self.data } else { &self.acknowledgement };
        (out, packet.clone())
    }

    /// A packet has got to one of the ends.
    pub(crate) fn arrive(&mut self, arrived: Arrived) {
        let Arrived { delivery: Delivery { at, port, marked, .. }, number, .. } = arrived;
        if port == self.to {
            self.arrived.push_back((number, marked));
            let number = self.known + self.arrived.len() as u64;
            self.out.push_back(Out { at, port, number });
        } else {
            let news = number.saturating_sub(self.known);
            self.known += news;
            self.sender.learn(at, self.arrived.drain(..news as usize));
            self.send(at);
        }
    }

    fn send(&mut self, at: Time) {
        while let Some(number) = self.sender.send(at) {
            self.out.push_back(Out { at, port: self.from, number });
        }
    }
}
