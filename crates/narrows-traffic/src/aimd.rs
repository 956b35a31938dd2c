//! A sender that responds to congestion, and its acknowledging receiver: traffic for queues that drop and mark.
//!
//! It implements TCP's additive increase and multiplicative decrease (RFC 5681) without TCP's protocol: there is no
//! connection set-up and no byte stream to reassemble. Packets of one length go from one port to another; each that
//! arrives undamaged is acknowledged at that instant by a packet of 40 bytes (IPv6: 60), which crosses the network
//! too. An acknowledgement covers everything that has arrived so far (a SACK with as many blocks as needed, and the
//! marks counted per packet), so that losing one does no harm.
//!
//! - Each transmission has its own number, as in QUIC (RFC 9002): a lost packet is sent again under a new number, so
//!   every acknowledgement gives a round-trip time sample.
//! - A packet is considered lost when three packets sent later have arrived, or when the time-out of RFC 6298 expires
//!   (1 s initially and at least; doubled each time, up to 60 s). After 15 consecutive time-outs the sender gives up.
//! - Congestion window: see [`window`]. Packets are sent as soon as the window allows, without pacing.
//!
//! Both ends discard packets with bit errors, as a checksum would. Packets must not be fragmented: on a path with a
//! smaller MTU none arrives.

mod sender;
mod window;

use std::collections::VecDeque;

use narrows_core::{FlowKey, Headers, Packet, PortId, Protocol, Time};
use narrows_scenario::AimdConfig;

use crate::aimd::sender::Sender;
use crate::body::{Arrived, Delivery, reversed};

/// Sender and receiver.
#[derive(Debug)]
pub(crate) struct Aimd {
    sender: Sender,
    /// Arrivals that the sender does not know of yet: transmission numbers, and whether they were marked.
    arrived: VecDeque<(u64, bool)>,
    /// How many arrivals the sender knows of.
    known: u64,
    data: Packet<()>,
    acknowledgement: Packet<()>,
    from: PortId,
    to: PortId,
    /// Packets that enter the network next.
    out: VecDeque<Out>,
}

/// A packet that enters the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Out {
    pub(crate) at: Time,
    pub(crate) port: PortId,
    /// For data, the transmission number; for an acknowledgement, how many packets have arrived.
    pub(crate) number: u64,
}

impl Aimd {
    /// A flow with the flow key `key` from one port to another.
    pub(crate) fn new(config: &AimdConfig, key: FlowKey, from: PortId, to: PortId) -> Self {
        let network_header = if key.network == Protocol::Ipv6 { 0 } else { 20 };
        let headers = Headers::plain(&key, config.length);
        let data = Packet { length: config.length, link_header: 14, network_header, key, headers, body: () };
        let traffic_class = key.traffic_class & !FlowKey::CONGESTION_EXPERIENCED;
        let back = FlowKey { traffic_class, ..reversed(&key) };
        let length = if key.network == Protocol::Ipv6 { 60 } else { 40 };
        let headers = Headers::plain(&back, length);
        let acknowledgement = Packet { length, key: back, headers, ..data };
        let (arrived, out) = Default::default();
        Self { sender: Sender::new(config), arrived, known: 0, data, acknowledgement, from, to, out }
    }

    /// When the next packet enters the network. An arrival may move this in either direction.
    pub(crate) fn peek(&self) -> Option<Time> {
        self.out.front().map(|out| out.at).or(self.sender.wakes())
    }

    /// The packet that [`Aimd::peek`] announced.
    pub(crate) fn take(&mut self) -> (Out, Packet<()>) {
        if let (None, Some(at)) = (self.out.front(), self.sender.wakes()) {
            self.sender.wake();
            self.send(at);
        }
        let out = self.out.pop_front().expect("a sender that wakes up sends");
        let packet = if out.port == self.from { &self.data } else { &self.acknowledgement };
        (out, packet.clone())
    }

    /// A packet has arrived at one of the ends.
    pub(crate) fn arrive(&mut self, arrived: Arrived) {
        let Arrived { delivery: Delivery { at, port, marked, seen, .. }, number, .. } = arrived;
        if port == self.to {
            let traffic_class = self.acknowledgement.key.traffic_class;
            self.acknowledgement.key = FlowKey { traffic_class, ..reversed(&seen.unwrap_or(self.data.key)) };
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
