//! The filter of acknowledgements: of those that wait, which one does the newest make redundant?
//!
//! Source: `cake_ack_filter` of `net/sched/sch_cake.c`, Linux 6.12. A waiting packet is redundant if it is of the same
//! connection, is a *pure* acknowledgement (no data, and no flag but ACK, ECE and CWR), and tells the sender nothing that
//! the newest packet does not:
//!
//! ```text
//! ack ≤ newest ack,   timestamps ≤ newest timestamps,   each SACK block within one of the newest,
//! and ack < newest ack, or fewer bytes in SACK blocks than the newest
//! ```
//!
//! A block below its own acknowledgement reports a duplicate (D-SACK, RFC 2883); such a packet stays, and so does one with an
//! option other than timestamps, SACK and MD5. The one nearest to the head goes, once a second one is found behind it:
//! so the queue keeps at least one of each run of acknowledgements. If a packet in between has other ECE and CWR flags, the
//! first one stays, because the change tells the sender something. *Aggressive*: a single one goes, too, if it is the last but one of its queue
//! and has the flags of the newest.
//!
//! Departures: packets in tunnels are not looked at, where Linux looks into IPv6 in IPv4. An option that is there twice
//! keeps its packet.

use crate::packet::{FlowKey, Headers, TcpOptions};
use crate::pool::{PacketRef, Pool};

const TCP: u8 = 6;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
/// ECE and CWR: what acknowledgements tell of congestion (RFC 3168).
const CONGESTION: u8 = 0xc0;

/// The position in a flow's queue of the acknowledgement that the last packet makes redundant. `waiting` are the packets of
/// the flow from its head on.
pub(super) fn redundant(
    waiting: impl Iterator<Item = PacketRef>,
    newest: PacketRef,
    aggressive: bool,
    pool: &Pool,
) -> Option<usize> {
    let newest_segment =
        Segment::of(newest, pool).filter(|newest| newest.key.tcp_flags & (ACK | SYN) == ACK)?;
    let (mut found, mut last) = (None, 0);
    for (place, packet) in waiting.take_while(|packet| *packet != newest).enumerate() {
        last = place;
        let Some(segment) = Segment::of(packet, pool).filter(|one| one.is_of_connection(&newest_segment))
        else {
            continue;
        };
        found = found.filter(|(_, congestion)| *congestion == segment.congestion());
        if segment.is_made_redundant_by(&newest_segment) {
            match found {
                Some((first, _)) => return Some(first),
                None => found = Some((place, segment.congestion())),
            }
        }
    }
    let only =
        found.filter(|(place, congestion)| *place == last && *congestion == newest_segment.congestion());
    only.filter(|_| aggressive).map(|(place, _)| place)
}

/// A TCP segment.
struct Segment<'a> {
    key: FlowKey,
    headers: &'a Headers,
    options: TcpOptions,
}

impl<'a> Segment<'a> {
    fn of(packet: PacketRef, pool: &'a Pool) -> Option<Self> {
        let key = pool.get(packet).seen_key();
        let headers = pool.headers(packet).filter(|_| key.transport == TCP)?;
        // Without a type, the headers are not known. Linux looks for TCP directly behind the IPv6 header.
        if headers.ether_type == 0 || headers.is_later_fragment || headers.extension_headers != 0 {
            return None;
        }
        // Where nothing is known of options that are there, none may be lost.
        let unknown = || TcpOptions::new(None, headers.tcp_options != 0);
        let options = pool.tcp_options(packet).copied().unwrap_or_else(unknown);
        Some(Self { key, headers, options })
    }

    fn is_of_connection(&self, other: &Self) -> bool {
        let ends = |key: &FlowKey| (key.source_port, key.destination_port, key.source, key.destination);
        ends(&self.key) == ends(&other.key)
    }

    const fn congestion(&self) -> u8 {
        self.key.tcp_flags & CONGESTION
    }

    /// Whether it only acknowledges.
    const fn is_pure(&self) -> bool {
        self.key.tcp_flags & !CONGESTION == ACK
            && self.headers.tcp_data_length == 0
            && !self.options.has_others
    }

    fn is_made_redundant_by(&self, newest: &Self) -> bool {
        let [own, new] = [self, newest].map(|segment| segment.headers.tcp_acknowledgement);
        let timestamps = newest.options.timestamps.unwrap_or_default();
        let is_later = |own: [u32; 2]| is_after(own[0], timestamps[0]) || is_after(own[1], timestamps[1]);
        if !self.is_pure() || is_after(own, new) || self.options.timestamps.is_some_and(is_later) {
            return false;
        }
        match self.is_exceeded_by(newest) {
            None => false,
            Some(more) => more || own != new,
        }
    }

    /// Whether the other one acknowledges more bytes selectively. `None` if there are some that it does not acknowledge.
    fn is_exceeded_by(&self, newest: &Self) -> Option<bool> {
        let (own, new) = (self.options.blocks(), newest.options.blocks());
        let acknowledged = self.headers.tcp_acknowledgement;
        let is_within = |&[from, to]: &[u32; 2]| {
            new.iter().any(|&[first, end]| !is_after(first, from) && !is_after(to, end))
        };
        let covered = |block: &[u32; 2]| !is_after(acknowledged, block[0]) && is_within(block);
        let bytes = |blocks: &[[u32; 2]]| {
            blocks.iter().fold(0_u32, |sum, [from, to]| sum.wrapping_add(to.wrapping_sub(*from)))
        };
        own.iter().all(covered).then(|| !new.is_empty() && (own.is_empty() || bytes(new) > bytes(own)))
    }
}

/// Whether a number of a sequence is behind another, modulo 2³².
const fn is_after(one: u32, other: u32) -> bool {
    (other.wrapping_sub(one) as i32) < 0
}
