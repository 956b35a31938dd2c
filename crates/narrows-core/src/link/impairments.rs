//! Impairments of a link: loss, bit errors, duplicates, skipped delays; and a policer. Few links of a large
//! network have any, so they are stored apart from the link.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Corruption, Ingress, Loss, Policer, Reorder};
use crate::model::Selector;
use crate::pool::{PacketRef, Pool};
use crate::random::{Seed, Stream};
use crate::time::Time;

#[derive(Debug)]
pub(super) struct Impairments {
    pub(super) ingress_loss: Option<Loss>,
    pub(super) ingress: Option<Ingress>,
    pub(super) policer: Option<Policer>,
    pub(super) wire_loss: Option<Loss>,
    pub(super) corruption: Option<Corruption>,
    pub(super) duplication: Option<Box<dyn Selector>>,
    pub(super) reorder: Option<Reorder>,
    pub(super) streams: Streams,
    /// The flipped bits of the current packet; empty between packets.
    pub(super) flips: Vec<u32>,
    /// Packets since the last one that skipped the delay.
    since_reordered: u32,
}

#[derive(Debug)]
pub(super) struct Streams {
    pub(super) ingress_loss: Stream,
    pub(super) wire_loss: Stream,
    pub(super) corruption: Stream,
    pub(super) duplication: Stream,
    reorder: Stream,
}

impl Impairments {
    pub(super) fn new(seed: Seed, link: &str) -> Self {
        let stream = |purpose| Stream::new(seed, link, purpose);
        Self {
            ingress_loss: None,
            ingress: None,
            policer: None,
            wire_loss: None,
            corruption: None,
            duplication: None,
            reorder: None,
            streams: Streams {
                ingress_loss: stream("ingress loss"),
                wire_loss: stream("wire loss"),
                corruption: stream("corruption"),
                duplication: stream("duplication"),
                reorder: stream("reorder"),
            },
            flips: Vec::new(),
            since_reordered: 0,
        }
    }

    /// Whether this packet skips the delay.
    pub(super) fn skips(&mut self, now: Time, packet: PacketRef, visit: u8, pool: &Pool) -> bool {
        let Some(reorder) = &mut self.reorder else { return false };
        self.since_reordered = self.since_reordered.saturating_add(1);
        let skips = self.since_reordered >= reorder.gap && {
            let mut draw = pool.draw(&self.streams.reorder, packet, visit);
            reorder.selector.selects(now, pool.get(packet), &mut draw)
        };
        if skips {
            self.since_reordered = 0;
        }
        skips
    }
}
