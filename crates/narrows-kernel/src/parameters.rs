//! The parameters of a direction of a link, as the program reads them (`struct narrows_parameters` in `bpf/link.h`).

use narrows_core::queue::Bound;
use narrows_core::service::Overhead;
use narrows_core::{Duration, Probability, Rate};
use narrows_io::kernel_end::Layout;

/// What stands for "no limit".
const NO_LIMIT: u64 = u64::MAX;
/// More bytes than this in an overhead might overflow the program's arithmetic.
pub const MOST_OVERHEAD: u32 = 1 << 20;

/// Loss of a share of all packets, with the keys of its draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// The share.
    pub chance: Probability,
    /// The key of the draws ([`narrows_core::Stream::key`]).
    pub key: [u32; 2],
}

/// A direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// The rate.
    pub rate: Rate,
    /// The delay.
    pub delay: Duration,
    /// The bound of the queue.
    pub bound: Bound,
    /// What packets occupy; its numbers are at most [`MOST_OVERHEAD`].
    pub overhead: Overhead,
    /// Loss before the queue.
    pub ingress_loss: Loss,
    /// Loss after the transmission.
    pub wire_loss: Loss,
    /// The hash of the port's name in draws ([`narrows_core::port_origin`]).
    pub origin: u32,
    /// The MTU of the sending interface.
    pub mtu: u32,
}

impl Parameters {
    /// How they lie in memory, with these lengths of rings.
    pub fn bytes(&self, slots: u32, records: u32) -> [u8; Layout::PARAMETERS] {
        let (packets, bytes) = match self.bound {
            Bound::Packets(packets) => (packets, NO_LIMIT),
            Bound::Bytes(bytes) => (NO_LIMIT, bytes.get()),
        };
        let long = [
            self.rate.bits_per_second(),
            self.delay.nanos(),
            packets,
            bytes,
            self.ingress_loss.chance.raw(),
            self.wire_loss.chance.raw(),
        ];
        let cells = self.overhead.cells;
        let short = [
            self.ingress_loss.key[0],
            self.ingress_loss.key[1],
            self.wire_loss.key[0],
            self.wire_loss.key[1],
            self.origin,
            self.overhead.extra as u32,
            self.overhead.minimum,
            u32::from(self.overhead.link_header),
            cells.map_or(0, |cells| cells.payload),
            cells.map_or(0, |cells| cells.size),
            self.mtu,
            slots,
            records,
            0,
        ];
        let mut all = [0; Layout::PARAMETERS];
        let words = long
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .chain(short.iter().flat_map(|word| word.to_ne_bytes()));
        all.iter_mut().zip(words).for_each(|(to, byte)| *to = byte);
        all
    }
}
