//! The compiled conditions of a rule.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::facts::{Bits, Facts};
use super::table::link_key;
use super::tables::{Names, Tables};
use super::{
    Action, Addresses, Argument, Field, Flags, FlowEntry, Labels, Literal, Masked, Ranges, Rule, Side,
    TableTest, Term, Test, Tos,
};
use crate::packet::{FlowKey, Headers, Protocol};

/// The leading bits of IPv4 addresses mapped into IPv6.
const MAPPED: u128 = 0xffff << 32;
/// The mask of these bits.
const MAPPED_MASK: u128 = !(u32::MAX as u128);

/// "Don't fragment" among the bits of [`Test::FragmentBits`].
const DONT_FRAGMENT: u8 = 0x40;

/// What conditions test.
pub(super) struct Seen<'a> {
    pub(super) facts: &'a Facts,
    /// The key's code point may have changed since the packet arrived.
    pub(super) key: &'a FlowKey,
    pub(super) headers: &'a Headers,
    pub(super) labels: &'a Labels,
    pub(super) tables: &'a Tables,
}

/// Rows of conditions in sequence. In each row one must hold.
pub(super) type Terms = Arc<[Check]>;

/// A condition or its negation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Check {
    pub(super) not: bool,
    /// Whether another condition of its row follows.
    more: bool,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Never,
    Always,
    Bits(Bits),
    Protocol(u8),
    Source(Hosts),
    Destination(Hosts),
    SourcePort(Ports),
    DestinationPort(Ports),
    LinkSource([u8; 6], [u8; 6]),
    LinkDestination([u8; 6], [u8; 6]),
    EtherType(Ports),
    Length(Ports),
    HopLimit(Ports),
    Tos(Tos),
    Dscp(u64),
    TcpFlags {
        set: u8,
        clear: u8,
    },
    TcpDataLength(Ports),
    IcmpType(Bits, Box<[u64; 4]>),
    Tagged(Ports),
    Mark {
        value: Argument,
        mask: u32,
    },
    Fib(Ports),
    Lookup {
        field: Field,
        mask: u128,
        table: u32,
        value: Option<u32>,
    },
    /// The number of the rule is in a table.
    LookupNumber {
        number: u16,
        table: u32,
        value: Option<u32>,
    },
    /// An interface that the packet passes is in a table.
    LookupInterface {
        field: Field,
        table: u32,
        value: Option<u32>,
    },
    /// The flow is in a table.
    LookupFlow {
        table: u32,
        value: Option<u32>,
    },
    Fragment(Flags),
    IpId(Ports),
    IpOptions(Flags),
    ExtensionHeader(u8),
    TcpSequence(u32),
    TcpAcknowledgement(u32),
    TcpWindow(Ports),
    TcpMss(Ports),
    TcpOptions(Flags),
    FlowLabel(Box<[u32]>),
}

/// Addresses, separated by IP version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Hosts {
    /// Address bits and mask.
    pub(super) v4: Box<[(u32, u32)]>,
    pub(super) v6: Box<[Masked]>,
}

pub(super) type Ports = Box<[RangeInclusive<u16>]>;

impl Hosts {
    pub(super) fn new(masked: &[Masked]) -> Self {
        let is_v4 =
            |one: &&Masked| one.mask & MAPPED_MASK == MAPPED_MASK && one.address & MAPPED_MASK == MAPPED;
        let v4 =
            masked.iter().filter(is_v4).map(|one| (one.address as u32 & one.mask as u32, one.mask as u32));
        let v6 = masked.iter().filter(|one| !is_v4(one));
        let v6 = v6.map(|one| Masked { address: one.address & one.mask, ..*one });
        Self { v4: v4.collect(), v6: v6.collect() }
    }

    #[inline]
    fn have(&self, bits: Bits, address: u128) -> bool {
        if bits.fulfil(Bits::IPV4) {
            self.v4.iter().any(|&(value, mask)| address as u32 & mask == value)
        } else {
            bits.fulfil(Bits::IPV6) && self.v6.iter().any(|one| address & one.mask == one.address)
        }
    }
}

fn among(ranges: &[RangeInclusive<u16>], value: u16) -> bool {
    ranges.iter().any(|range| range.contains(&value))
}

/// Like [`among`], for values that may exceed any range.
fn among_wide(ranges: &[RangeInclusive<u16>], value: u32) -> bool {
    u16::try_from(value).is_ok_and(|value| among(ranges, value))
}

fn link_agrees(own: [u8; 6], address: [u8; 6], mask: [u8; 6]) -> bool {
    (0..6).all(|at| (own[at] ^ address[at]) & mask[at] == 0)
}

/// Compiles the terms of the rule with this number.
pub(super) fn compile(number: u16, terms: &[Term], me: &[Masked], names: &mut Arc<Names>) -> Terms {
    let mut checks = Vec::new();
    for Term(literals) in terms {
        checks.extend(literals.iter().map(|literal| check(number, literal, me, names)));
        match checks.last_mut() {
            Some(last) if !literals.is_empty() => last.more = false,
            // An empty alternative never holds.
            _ => checks.push(Check { not: false, more: false, kind: Kind::Never }),
        }
    }
    checks.into()
}

/// The rows of terms.
pub(super) fn rows(terms: &[Check]) -> impl Iterator<Item = &[Check]> {
    terms.split_inclusive(|check| !check.more)
}

/// Whether the terms of a rule hold, if the direction of a packet is all that they test, or is enough to reject it.
pub(super) fn hold_by_direction(terms: &[Check], incoming: bool) -> Option<bool> {
    let holds = |row: &[Check]| match row {
        [Check { not, kind: Kind::Always, .. }] => Some(!not),
        [Check { not, kind: Kind::Never, .. }] => Some(*not),
        [Check { not, kind: Kind::Bits(bits), .. }] if *bits == Bits::IN => Some(incoming != *not),
        [Check { not, kind: Kind::Bits(bits), .. }] if *bits == Bits::IN.not() => Some(incoming == *not),
        _ => None,
    };
    let not = |held: Option<bool>| held == Some(false);
    if rows(terms).map(holds).any(not) {
        Some(false)
    } else {
        rows(terms).map(holds).find(Option::is_none).unwrap_or(Some(true))
    }
}

fn check(number: u16, literal: &Literal, me: &[Masked], names: &mut Arc<Names>) -> Check {
    let boxed = |ranges: &Ranges| ranges.clone().into_boxed_slice();
    let bits = Kind::Bits;
    let lookup_flow = |TableTest { table, value }: &TableTest, names: &mut Arc<Names>| Kind::LookupFlow {
        table: names.number(table),
        value: *value,
    };
    let mut lookup = |field, mask, TableTest { table, value }: &TableTest| {
        let (table, value) = (names.number(table), *value);
        match field {
            // The lower bits are those of a number.
            Field::RuleNumber => Kind::LookupNumber { number: number & mask as u16, table, value },
            Field::Received | Field::Sent | Field::Via => Kind::LookupInterface { field, table, value },
            _ => Kind::Lookup { field, mask, table, value },
        }
    };
    let kind = match &literal.test {
        Test::Any => Kind::Always,
        Test::Never => Kind::Never,
        &Test::Protocol(protocol) => Kind::Protocol(protocol),
        Test::IpVersion(4) => bits(Bits::IPV4),
        Test::IpVersion(6) => bits(Bits::IPV6),
        Test::IpVersion(_) => Kind::Never,
        Test::Source(Addresses::Any) | Test::Destination(Addresses::Any) => bits(Bits::IP),
        Test::Source(Addresses::Me) => Kind::Source(Hosts::new(me)),
        Test::Source(Addresses::In(masked)) => Kind::Source(Hosts::new(masked)),
        Test::Source(Addresses::Table(table)) => lookup(Field::Source, u128::MAX, table),
        Test::Destination(Addresses::Me) => Kind::Destination(Hosts::new(me)),
        Test::Destination(Addresses::In(masked)) => Kind::Destination(Hosts::new(masked)),
        Test::Destination(Addresses::Table(table)) => lookup(Field::Destination, u128::MAX, table),
        Test::SourcePort(ranges) => Kind::SourcePort(boxed(ranges)),
        Test::DestinationPort(ranges) => Kind::DestinationPort(boxed(ranges)),
        Test::In => bits(Bits::IN),
        Test::Out => bits(Bits::IN.not()),
        Test::Layer2 => bits(Bits::LAYER2),
        &Test::LinkSource { address, mask } => Kind::LinkSource(address, mask),
        &Test::LinkDestination { address, mask } => Kind::LinkDestination(address, mask),
        Test::EtherType(ranges) => Kind::EtherType(boxed(ranges)),
        Test::Length(ranges) => Kind::Length(boxed(ranges)),
        Test::HopLimit(ranges) => Kind::HopLimit(boxed(ranges)),
        &Test::Tos(tos) => Kind::Tos(tos),
        &Test::Dscp(set) => Kind::Dscp(set),
        &Test::Precedence(precedence) if precedence < 8 => {
            let set = precedence << 5;
            Kind::Tos(Tos { set, clear: !set & 0xe0 })
        }
        Test::Precedence(_) => Kind::Never,
        Test::Fragment => bits(Bits::FRAGMENT),
        &Test::FragmentBits(flags) => Kind::Fragment(flags),
        Test::IpId(ranges) => Kind::IpId(boxed(ranges)),
        &Test::ExtensionHeader(headers) => Kind::ExtensionHeader(headers),
        &Test::IpOptions(flags) => Kind::IpOptions(flags),
        Test::Setup => bits(Bits::SETUP),
        Test::Established => bits(Bits::ESTABLISHED),
        &Test::TcpFlags { set, clear } => Kind::TcpFlags { set, clear },
        Test::TcpDataLength(ranges) => Kind::TcpDataLength(boxed(ranges)),
        &Test::TcpSequence(number) => Kind::TcpSequence(number),
        &Test::TcpAcknowledgement(number) => Kind::TcpAcknowledgement(number),
        Test::TcpWindow(ranges) => Kind::TcpWindow(boxed(ranges)),
        Test::TcpMss(ranges) => Kind::TcpMss(boxed(ranges)),
        &Test::TcpOptions(flags) => Kind::TcpOptions(flags),
        &Test::IcmpType(set) => Kind::IcmpType(Bits::ICMP, Box::new(set)),
        &Test::Icmp6Type(set) => Kind::IcmpType(Bits::ICMP6, Box::new(set)),
        Test::Tagged(ranges) => Kind::Tagged(boxed(ranges)),
        &Test::Mark { value, mask } => Kind::Mark { value, mask },
        Test::Fib(ranges) => Kind::Fib(boxed(ranges)),
        Test::Lookup { field, mask, table } => lookup(*field, *mask, table),
        Test::Flow(table) => lookup_flow(table, names),
        Test::FlowLabel(labels) => {
            let mut labels: Vec<u32> = labels.clone();
            labels.sort_unstable();
            Kind::FlowLabel(labels.into())
        }
    };
    Check { not: literal.not, more: true, kind }
}

/// Whether all terms hold. The value of the last successful table lookup is left in `argument`.
pub(super) fn hold(terms: &[Check], seen: &Seen<'_>, argument: &mut u32) -> bool {
    // Whether a condition of the row has held. The others of the row are then skipped.
    let mut is_done = false;
    for check in terms {
        let holds = is_done || check.holds(seen, argument);
        if !holds && !check.more {
            return false;
        }
        is_done = holds && check.more;
    }
    true
}

impl Check {
    fn holds(&self, seen: &Seen<'_>, argument: &mut u32) -> bool {
        self.kind.holds(seen, argument) != self.not
    }

    pub(super) fn is_about_direction(&self) -> bool {
        matches!(self.kind, Kind::Bits(bits) if bits == Bits::IN || bits == Bits::IN.not())
    }

    /// The changeable properties that this condition tests.
    fn looks_at(&self) -> Changes {
        match self.kind {
            Kind::Tos(_) | Kind::Dscp(_) | Kind::Lookup { field: Field::Dscp, .. } => Changes::DSCP,
            Kind::Tagged(_) => Changes::TAGS,
            Kind::Mark { .. } | Kind::Lookup { field: Field::Mark, .. } => Changes::MARK,
            Kind::Fib(_) => Changes::FIB,
            _ => Changes::NONE,
        }
    }
}

/// What rules may change in a packet, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changes(u8);

impl Changes {
    pub(super) const NONE: Self = Self(0);
    const DSCP: Self = Self(1);
    const TAGS: Self = Self(1 << 1);
    const MARK: Self = Self(1 << 2);
    const FIB: Self = Self(1 << 3);

    /// What a rule changes.
    pub(super) const fn by(rule: &Rule) -> Self {
        let tags = if rule.tag.is_some() { Self::TAGS } else { Self::NONE };
        tags.and(match rule.action {
            Action::SetDscp(_) => Self::DSCP,
            Action::SetMark(_) => Self::MARK,
            Action::SetFib(_) => Self::FIB,
            _ => Self::NONE,
        })
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Whether terms that hold now always hold, as long as only `changes` happen.
pub(super) fn are_settled(terms: &[Check], changes: Changes) -> bool {
    !terms.iter().any(|check| check.looks_at().meet(changes))
}

impl Kind {
    fn holds(&self, seen: &Seen<'_>, argument: &mut u32) -> bool {
        let facts = seen.facts;
        let is = |bits| facts.bits.fulfil(bits);
        match self {
            Self::Never => false,
            Self::Always => true,
            &Self::Bits(bits) => is(bits),
            &Self::Protocol(protocol) => is(Bits::IP) && facts.protocol == protocol,
            Self::Source(hosts) => hosts.have(facts.bits, facts.source),
            Self::Destination(hosts) => hosts.have(facts.bits, facts.destination),
            Self::SourcePort(ports) => is(Bits::PORTS) && among(ports, facts.source_port),
            Self::DestinationPort(ports) => is(Bits::PORTS) && among(ports, facts.destination_port),
            &Self::LinkSource(address, mask) => {
                is(Bits::LAYER2) && link_agrees(seen.headers.link_source, address, mask)
            }
            &Self::LinkDestination(address, mask) => {
                is(Bits::LAYER2) && link_agrees(seen.headers.link_destination, address, mask)
            }
            Self::EtherType(types) => is(Bits::LAYER2) && among(types, seen.headers.ether_type),
            Self::Length(lengths) => is(Bits::IP) && among_wide(lengths, facts.length),
            Self::HopLimit(limits) => is(Bits::IP) && among(limits, seen.headers.hop_limit.into()),
            Self::Tos(Tos { set, clear }) => {
                is(Bits::IP) && seen.key.traffic_class & (set | clear) == *set & !clear && set & clear == 0
            }
            Self::Dscp(set) => is(Bits::IP) && set >> seen.key.dscp() & 1 == 1,
            Self::TcpFlags { set, clear } => {
                is(Bits::TCP) && seen.key.tcp_flags & set == *set && seen.key.tcp_flags & clear == 0
            }
            Self::TcpDataLength(lengths) => is(Bits::TCP) && among(lengths, seen.headers.tcp_data_length),
            Self::IcmpType(version, set) => {
                let kind = usize::from(facts.source_port >> 8);
                is(*version) && set[kind / 64] >> (kind % 64) & 1 == 1
            }
            Self::Tagged(tags) => seen.labels.tags.iter().any(|&tag| among(tags, tag)),
            &Self::Mark { value, mask } => (seen.labels.mark ^ value.or(*argument)) & mask == 0,
            Self::Fib(tables) => among(tables, seen.labels.fib),
            &Self::Lookup { field, mask, table, value } => {
                let masked = |key| (u128::from_be_bytes(key) & mask).to_be_bytes();
                let found = key_of(field, seen).and_then(|key| seen.tables.get(table).lookup(masked(key)));
                keep_if(found, value, argument)
            }
            &Self::LookupNumber { number, table, value } => {
                keep_if(seen.tables.get(table).lookup(number_key(number.into())), value, argument)
            }
            &Self::LookupInterface { field, table, value } => {
                let accepts = |one| value.is_none_or(|value| value == one);
                let sides = sides_of(field, is(Bits::IN));
                let table = seen.tables.get(table);
                let found = sides.iter().find_map(|&side| table.interface(side, accepts));
                keep_if(found, None, argument)
            }
            &Self::LookupFlow { table, value } => {
                let found = is(Bits::IP).then(|| seen.tables.get(table).lookup_flow(flow_of(seen))).flatten();
                keep_if(found, value, argument)
            }
            Self::Fragment(flags) => {
                let whole = if seen.key.network == Protocol::Ipv4DontFragment { DONT_FRAGMENT } else { 0 };
                is(Bits::IPV4) && flags.fit(seen.headers.fragment | whole)
            }
            Self::IpId(ids) => is(Bits::IPV4) && among(ids, seen.headers.ip_id),
            Self::IpOptions(flags) => {
                let options = seen.headers.ip_options;
                is(Bits::IPV4) && options & Headers::MALFORMED_OPTIONS == 0 && flags.fit(options)
            }
            &Self::ExtensionHeader(of) => is(Bits::IPV6) && seen.headers.extension_headers & of != 0,
            &Self::TcpSequence(number) => is(Bits::TCP) && seen.headers.tcp_sequence == number,
            &Self::TcpAcknowledgement(number) => is(Bits::TCP) && seen.headers.tcp_acknowledgement == number,
            Self::TcpWindow(windows) => is(Bits::TCP) && among(windows, seen.headers.tcp_window),
            Self::TcpMss(sizes) => {
                let has_option = seen.headers.tcp_options & Headers::TCP_OPTION_MSS != 0;
                is(Bits::TCP) && has_option && among(sizes, seen.headers.tcp_mss)
            }
            Self::TcpOptions(flags) => is(Bits::TCP) && flags.fit(seen.headers.tcp_options),
            Self::FlowLabel(labels) => {
                is(Bits::IPV6) && labels.binary_search(&seen.headers.flow_label).is_ok()
            }
        }
    }
}

/// The table key of a field. `None` if the packet does not have the field.
fn key_of(field: Field, seen: &Seen<'_>) -> Option<[u8; 16]> {
    let number = |bits, number: u32| seen.facts.bits.fulfil(bits).then(|| number_key(number));
    let link = |address| seen.facts.bits.fulfil(Bits::LAYER2).then(|| link_key(address));
    match field {
        Field::Source => seen.facts.bits.fulfil(Bits::IP).then_some(seen.key.source),
        Field::Destination => seen.facts.bits.fulfil(Bits::IP).then_some(seen.key.destination),
        Field::SourcePort => number(Bits::PORTS, seen.facts.source_port.into()),
        Field::DestinationPort => number(Bits::PORTS, seen.facts.destination_port.into()),
        Field::Dscp => number(Bits::IP, seen.key.dscp().into()),
        Field::Mark => Some(number_key(seen.labels.mark)),
        Field::LinkSource => link(seen.headers.link_source),
        Field::LinkDestination => link(seen.headers.link_destination),
        // These are not looked up by a key of the packet.
        Field::RuleNumber | Field::Received | Field::Sent | Field::Via => None,
    }
}

/// The flow of a packet of IP as tables have it.
fn flow_of(seen: &Seen<'_>) -> FlowEntry {
    let &Facts { source, destination, bits, source_port, destination_port, protocol, .. } = seen.facts;
    let (source_port, destination_port) =
        if bits.fulfil(Bits::PORTS) { (source_port, destination_port) } else { (0, 0) };
    FlowEntry { source, destination, protocol, source_port, destination_port }
}

/// A number as the IPv4 address with that value.
fn number_key(number: u32) -> [u8; 16] {
    (MAPPED | u128::from(number)).to_be_bytes()
}

/// The sides on which a packet passes the interfaces of a field: it leaves one end and arrives at the other.
const fn sides_of(field: Field, incoming: bool) -> &'static [Side] {
    match (field, incoming) {
        (Field::Received, true) | (Field::Sent, false) => &[Side::Inside],
        (Field::Received, false) | (Field::Sent, true) => &[Side::Outside],
        _ => &[Side::Inside, Side::Outside],
    }
}

/// Whether a value was found that is the demanded one. It is then left in `argument`.
fn keep_if(found: Option<u32>, demanded: Option<u32>, argument: &mut u32) -> bool {
    let found = found.filter(|found| demanded.is_none_or(|demanded| demanded == *found));
    *argument = found.unwrap_or(*argument);
    found.is_some()
}
