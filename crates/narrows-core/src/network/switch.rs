//! Switches: learning bridges between links, with VLANs.
//!
//! A packet goes to the port behind which its destination was last seen as a source, or to all other ports of
//! its VLAN if the destination is a group or unknown (IEEE 802.1Q-2018, clauses 8.6 to 8.8). There is no
//! spanning tree: in a ring of switches a flooded packet circulates until it has used up its visits.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::Hop;
use super::config::VlanSet;
use crate::counters::Tally;
use crate::packet::{Headers, LinkAddress};
use crate::random::Stream;
use crate::time::{Duration, Time};

/// The counters of a switch: `arrived + copied = forwarded + filtered + looped + refused`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounters {
    /// Arrived.
    pub arrived: Tally,
    /// Packets created by flooding: one fewer than the ports that each flooded packet left by.
    pub copied: Tally,
    /// Sent out of a port, copies included.
    pub forwarded: Tally,
    /// Dropped because no port was left: the destination is behind the port that the packet came by, or the
    /// VLAN has no other port, or the packet came by a port outside its VLAN.
    pub filtered: Tally,
    /// Dropped because they reached the limit on visited elements.
    pub looped: Tally,
    /// Copies dropped because the network had reached its memory limit.
    pub refused: Tally,
    /// Packets that were flooded: to a group or an unknown destination.
    pub flooded: Tally,
    /// Packets from a source that the full table had no room for.
    pub not_learned: u64,
}

#[derive(Debug)]
pub(super) struct Switch {
    pub(super) name: String,
    pub(super) ports: Vec<Port>,
    pub(super) table: Table,
    pub(super) counters: SwitchCounters,
    /// For the lineages of copies.
    pub(super) copies: Stream,
    /// Whether a packet may visit again, so that its draws must be keyed by the visit.
    pub(super) revisited: bool,
}

#[derive(Debug)]
pub(super) struct Port {
    pub(super) exit: Hop,
    /// The VLAN of untagged packets, if the port takes any.
    pub(super) untagged: Option<u16>,
    /// The VLANs whose packets have tags here.
    pub(super) tagged: VlanSet,
}

/// A way out of a switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Out {
    pub(super) exit: Hop,
    /// The VLAN of the tag that the packet leaves with; 0 without a tag.
    pub(super) tag: u16,
}

impl Port {
    /// The VLAN of a packet that arrives here with this tag, if the port belongs to it.
    fn vlan_of(&self, tag: u16) -> Option<u16> {
        match tag {
            0 => self.untagged,
            tag => (self.untagged == Some(tag) || self.tagged.contains(tag)).then_some(tag),
        }
    }

    /// The way out here for packets of a VLAN, if the port belongs to it.
    fn out(&self, vlan: u16) -> Option<Out> {
        let tag = match self.untagged == Some(vlan) {
            true => 0,
            false if self.tagged.contains(vlan) => vlan,
            false => return None,
        };
        Some(Out { exit: self.exit, tag })
    }
}

impl Switch {
    /// Appends to `outs` the ways that a packet with these headers leaves by. Learns its source.
    pub(super) fn direct(
        &mut self,
        now: Time,
        from: u16,
        headers: &Headers,
        length: u32,
        outs: &mut Vec<Out>,
    ) {
        let Some(vlan) = self.ports[usize::from(from)].vlan_of(headers.vlan) else { return };
        if !self.table.learn(now, (vlan, headers.link_source), from) {
            self.counters.not_learned += 1;
        }
        if let Some(to) = self.table.find(now, (vlan, headers.link_destination)) {
            outs.extend(self.ports[usize::from(to)].out(vlan).filter(|_| to != from));
            return;
        }
        let others = (0..).zip(&self.ports).filter(|&(number, _)| number != from);
        outs.extend(others.filter_map(|(_, port)| port.out(vlan)));
        if !outs.is_empty() {
            self.counters.flooded.add(length);
        }
    }
}

/// What a switch knows about where link addresses are.
#[derive(Debug)]
pub(super) struct Table {
    entries: BTreeMap<(u16, LinkAddress), Entry>,
    ageing: Duration,
    most: usize,
    learned: usize,
    purged: Time,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    port: u16,
    /// When the address was last seen; `None` for one that is known for good.
    seen: Option<Time>,
}

impl Table {
    pub(super) fn new(ageing: Duration, most: u32) -> Self {
        Self { entries: BTreeMap::new(), ageing, most: most as usize, learned: 0, purged: Time::ZERO }
    }

    /// Adds an address that is known for good.
    pub(super) fn know(&mut self, vlan: u16, address: LinkAddress, port: u16) {
        self.entries.insert((vlan, address), Entry { port, seen: None });
    }

    /// Learns where an address is; returns whether there was room.
    fn learn(&mut self, now: Time, key: (u16, LinkAddress), port: u16) -> bool {
        let (_, address) = key;
        if is_group(address) || address == LinkAddress::default() {
            return true;
        }
        if let Some(entry) = self.entries.get_mut(&key) {
            if entry.seen.is_some() {
                *entry = Entry { port, seen: Some(now) };
            }
            return true;
        }
        if self.learned >= self.most {
            self.purge(now);
        }
        let has_room = self.learned < self.most;
        if has_room {
            self.entries.insert(key, Entry { port, seen: Some(now) });
            self.learned += 1;
        }
        has_room
    }

    /// Forgets what is too old; at most once a second, because it looks at every entry.
    fn purge(&mut self, now: Time) {
        if now.since(self.purged) < Duration::from_secs(1) {
            return;
        }
        self.purged = now;
        let ageing = self.ageing;
        self.entries.retain(|_, entry| !entry.is_old(now, ageing));
        self.learned = self.entries.values().filter(|entry| entry.seen.is_some()).count();
    }

    /// The port behind which an address is.
    fn find(&self, now: Time, key: (u16, LinkAddress)) -> Option<u16> {
        let entry = self.entries.get(&key)?;
        (!entry.is_old(now, self.ageing)).then_some(entry.port)
    }

    /// The addresses known at an instant.
    pub(super) fn known(&self, now: Time) -> usize {
        self.entries.values().filter(|entry| !entry.is_old(now, self.ageing)).count()
    }
}

impl Entry {
    fn is_old(&self, now: Time, ageing: Duration) -> bool {
        self.seen.is_some_and(|seen| now.since(seen) > ageing)
    }
}

/// Whether this is the address of a group, such as broadcast.
const fn is_group(address: LinkAddress) -> bool {
    address[0] & 1 == 1
}

/// A set of VLAN identifiers, one bit for each.
type Bits = Box<[u64; 64]>;

impl VlanSet {
    /// The set of these identifiers.
    pub fn of(vlans: impl IntoIterator<Item = u16>) -> Self {
        let mut bits: Option<Bits> = None;
        for vlan in vlans {
            bits.get_or_insert_with(|| Box::new([0; 64]))[usize::from(vlan & 0xfff) / 64] |= 1 << (vlan % 64);
        }
        bits.map_or(Self::None, Self::Some)
    }

    /// Whether it contains this identifier.
    pub fn contains(&self, vlan: u16) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(bits) => bits[usize::from(vlan & 0xfff) / 64] & 1 << (vlan % 64) != 0,
        }
    }
}
