//! The device that smoltcp uses: one packet in, any number out.

use smoltcp::phy::{self, Checksum, DeviceCapabilities, Medium};
use smoltcp::time::Instant;

use crate::body::Frame;

/// Bytes reserved before a packet for the link header.
pub(super) const LINK_HEADER: usize = 14;

/// Bytes of the longest headers: of IPv4 with all options or IPv6, and of TCP.
const MOST_HEADERS: usize = 60 + 60;

/// Payloads are zeros, as nobody reads them. Packets in the network are without, unless somebody looks at their frames.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) mtu: usize,
    keeps_payload: bool,
    /// The packet that arrived, with zeros behind what its frame had of it, and behind its end.
    inbound: Vec<u8>,
    /// How many bytes its frame had, and how many it has.
    headed: usize,
    length: usize,
    /// Whether smoltcp has not read it yet.
    is_new: bool,
    /// Packets to be sent.
    pub(super) sent: Vec<Sent>,
    /// Where smoltcp writes a packet.
    room: Vec<u8>,
}

/// A packet to be sent.
#[derive(Debug)]
pub(super) struct Sent {
    /// Room for a link header, then the packet, perhaps without its payload.
    pub(super) bytes: Vec<u8>,
    /// The length with payload and link header.
    pub(super) original: usize,
}

impl Wire {
    pub(super) fn new(mtu: u16, keeps_payload: bool) -> Self {
        let (inbound, sent, room) = Default::default();
        Self { mtu: mtu.into(), keeps_payload, inbound, headed: 0, length: 0, is_new: false, sent, room }
    }

    /// The frame of a packet has arrived.
    pub(super) fn arrive(&mut self, frame: &Frame) {
        self.length = frame.original as usize - LINK_HEADER;
        let packet = &frame.bytes[LINK_HEADER..];
        let packet = &packet[..packet.len().min(self.length)];
        let former = std::mem::replace(&mut self.headed, packet.len());
        if self.inbound.len() < self.length {
            self.inbound.resize(self.length, 0);
        }
        self.inbound[..former].fill(0);
        self.inbound[..packet.len()].copy_from_slice(packet);
        self.is_new = true;
    }
}

/// Where the TCP header of an IP packet is.
pub(super) fn transport(ip: &[u8]) -> usize {
    if ip[0] >> 4 == 6 { 40 } else { usize::from(ip[0] & 0xf) * 4 }
}

impl phy::Device for Wire {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Sending<'_>)> {
        let Self { sent, room, keeps_payload, .. } = self;
        let is_new = std::mem::take(&mut self.is_new);
        is_new.then_some((
            Received(&self.inbound[..self.length]),
            Sending { sent, room, keeps_payload: *keeps_payload },
        ))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending { sent: &mut self.sent, room: &mut self.room, keeps_payload: self.keeps_payload })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut all = DeviceCapabilities::default();
        all.medium = Medium::Ip;
        all.max_transmission_unit = self.mtu;
        // Checksums are added later; packets with bit errors do not get here.
        all.checksum.ipv4 = Checksum::None;
        all.checksum.tcp = Checksum::None;
        all
    }
}

#[derive(Debug)]
pub(super) struct Received<'a>(&'a [u8]);

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

#[derive(Debug)]
pub(super) struct Sending<'a> {
    sent: &'a mut Vec<Sent>,
    room: &'a mut Vec<u8>,
    keeps_payload: bool,
}

impl phy::TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        if self.room.len() < length {
            self.room.resize(length, 0);
        }
        let ip = &mut self.room[..length];
        ip[..MOST_HEADERS.min(length)].fill(0);
        let result = write(ip);
        let tcp = transport(ip);
        let kept = if self.keeps_payload { length } else { tcp + usize::from(ip[tcp + 12] >> 4) * 4 };
        let mut bytes = Vec::with_capacity(LINK_HEADER + kept);
        bytes.resize(LINK_HEADER, 0);
        bytes.extend_from_slice(&ip[..kept]);
        self.sent.push(Sent { bytes, original: LINK_HEADER + length });
        result
    }
}
