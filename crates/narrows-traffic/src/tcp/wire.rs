//! The device that smoltcp uses: one packet in, any number out.

use smoltcp::phy::{self, Checksum, DeviceCapabilities, Medium};
use smoltcp::time::Instant;

/// Bytes reserved before a packet for the link header.
pub(super) const LINK_HEADER: usize = 14;

/// Packets with room for a link header before them.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) mtu: usize,
    /// The packet that arrived, and whether smoltcp has not read it yet.
    inbound: Vec<u8>,
    is_new: bool,
    /// Packets to be sent.
    pub(super) sent: Vec<Vec<u8>>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

/// The maximum number of buffers kept.
const SPARE: usize = 64;

impl Wire {
    pub(super) fn new(mtu: u16) -> Self {
        let (inbound, sent, spare) = Default::default();
        Self { mtu: mtu.into(), inbound, is_new: false, sent, spare }
    }

    /// A packet has arrived.
    pub(super) fn arrive(&mut self, bytes: Vec<u8>) {
        let room = std::mem::replace(&mut self.inbound, bytes);
        self.is_new = true;
        if self.spare.len() < SPARE && room.capacity() > 0 {
            self.spare.push(room);
        }
    }
}

impl phy::Device for Wire {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Sending<'_>)> {
        let received = Received(self.inbound.get(LINK_HEADER..)?);
        let is_new = std::mem::take(&mut self.is_new);
        is_new.then_some((received, Sending { sent: &mut self.sent, spare: &mut self.spare }))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending { sent: &mut self.sent, spare: &mut self.spare })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut all = DeviceCapabilities::default();
        all.medium = Medium::Ip;
        all.max_transmission_unit = self.mtu;
        // The IPv4 checksum is added later; packets with bit errors do not get here.
        all.checksum.ipv4 = Checksum::None;
        all.checksum.tcp = Checksum::Tx;
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
    sent: &'a mut Vec<Vec<u8>>,
    spare: &'a mut Vec<Vec<u8>>,
}

impl phy::TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut room = self.spare.pop().unwrap_or_default();
        room.clear();
        room.resize(LINK_HEADER + length, 0);
        let result = write(&mut room[LINK_HEADER..]);
        self.sent.push(room);
        result
    }
}
