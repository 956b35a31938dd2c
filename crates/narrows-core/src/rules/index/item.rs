//! What an index makes of a rule: a filter, and for each field the prefixes that it may have.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::address::Address;
use super::field;
use super::filter::{Filter, Parts, Span};
use super::pieces::{self, Piece};
use crate::rules::facts::Bits;
use crate::rules::hot::Hot;
use crate::rules::test::{Check, Hosts, Kind, Ports, rows};

/// A rule that some packets of a kind may match.
#[derive(Debug)]
pub(super) struct Item<A: Address> {
    pub(super) filter: Filter<A>,
    /// By field: disjoint pieces. Empty if the field does not matter.
    pub(super) pieces: [Box<[Piece<A>]>; field::COUNT],
}

impl<A: Address> Item<A> {
    /// `None` if no packet with the properties `known` can match.
    pub(super) fn new(rule: u32, hot: &Hot, terms: &[Check], known: Bits) -> Option<Self> {
        let pieces = [const { Vec::new() }; field::COUNT];
        let mut draft = Draft { parts: Parts::all(), pieces };
        draft.parts.in_view = terms.iter().all(is_in_view);
        for row in rows(terms) {
            match row {
                [check] if check.not => draft.refuse(&check.kind)?,
                [check] => draft.ask(&check.kind)?,
                row => draft.ask_for_one_of(row),
            }
        }
        let Draft { parts, pieces } = draft;
        let is_possible = !parts.need.oppose(known) && !parts.need.contradict();
        is_possible.then(|| Self {
            filter: Filter::new(rule, hot, &parts),
            pieces: pieces.map(Vec::into_boxed_slice),
        })
    }
}

struct Draft<A> {
    parts: Parts<A>,
    pieces: [Vec<Piece<A>>; field::COUNT],
}

/// Methods return `None` if no packet can match.
impl<A: Address> Draft<A> {
    /// Requires a condition.
    fn ask(&mut self, kind: &Kind) -> Option<()> {
        self.parts.need = self.parts.need.and(needed(kind));
        match kind {
            Kind::Never => return None,
            Kind::Always | Kind::Bits(_) => {}
            &Kind::Protocol(protocol) => {
                if self.parts.protocol.is_some_and(|own| own != protocol) {
                    return None;
                }
                self.parts.protocol = Some(protocol);
                self.narrow(field::PROTOCOL, of_protocols(&[protocol]));
            }
            Kind::Source(hosts) => self.ask_for_hosts(field::SOURCE, hosts)?,
            Kind::Destination(hosts) => self.ask_for_hosts(field::DESTINATION, hosts)?,
            Kind::SourcePort(ports) => self.ask_for_ports(field::SOURCE_PORT, ports)?,
            Kind::DestinationPort(ports) => self.ask_for_ports(field::DESTINATION_PORT, ports)?,
            _ => self.parts.whole = false,
        }
        Some(())
    }

    /// Requires the negation of a condition.
    fn refuse(&mut self, kind: &Kind) -> Option<()> {
        match kind {
            Kind::Always => return None,
            Kind::Never => {}
            Kind::Bits(bits) if bits.is_one() => self.parts.need = self.parts.need.and(bits.not()),
            _ => self.parts.whole = false,
        }
        Some(())
    }

    /// Requires one of several conditions.
    fn ask_for_one_of(&mut self, row: &[Check]) {
        self.parts.whole = false;
        if row.iter().any(|check| check.not) {
            return;
        }
        let protocol = |check: &Check| if let Kind::Protocol(one) = check.kind { Some(one) } else { None };
        let source = |check: &Check| match &check.kind {
            Kind::Source(hosts) => Some(pieces::of_hosts(A::hosts(hosts))),
            _ => None,
        };
        let destination = |check: &Check| match &check.kind {
            Kind::Destination(hosts) => Some(pieces::of_hosts(A::hosts(hosts))),
            _ => None,
        };
        if let Some(protocols) = row.iter().map(protocol).collect::<Option<Vec<_>>>() {
            self.narrow(field::PROTOCOL, of_protocols(&protocols));
        } else if let Some(sources) = row.iter().map(source).collect::<Option<Vec<_>>>() {
            self.narrow(field::SOURCE, sources.concat());
        } else if let Some(destinations) = row.iter().map(destination).collect::<Option<Vec<_>>>() {
            self.narrow(field::DESTINATION, destinations.concat());
        }
    }

    fn ask_for_hosts(&mut self, field: usize, hosts: &Hosts) -> Option<()> {
        let mut all = A::hosts(hosts);
        let (address, mask) = all.next()?;
        if all.next().is_some() {
            self.parts.whole = false;
        } else {
            let (own, own_mask) = &mut self.parts.hosts[field];
            if (*own ^ address) & *own_mask & mask != A::default() {
                return None;
            }
            *own = *own | address;
            *own_mask = *own_mask | mask;
        }
        self.narrow(field, pieces::of_hosts(A::hosts(hosts)));
        Some(())
    }

    fn ask_for_ports(&mut self, field: usize, ports: &Ports) -> Option<()> {
        let ranges = || ports.iter().filter(|range| !range.is_empty());
        let first = ranges().map(|range| *range.start()).min()?;
        let last = ranges().map(|range| *range.end()).max()?;
        let own = match field {
            field::SOURCE_PORT => &mut self.parts.source_port,
            _ => &mut self.parts.destination_port,
        };
        *own = own.and(Span(first, last))?;
        self.parts.whole &= ranges().count() == 1;
        self.narrow(field, pieces::of_ports(ports));
        Some(())
    }

    /// Restricts a field to these values. If there are two sets, the narrower one is used.
    fn narrow(&mut self, field: usize, pieces: Vec<Piece<A>>) {
        let pieces = pieces::apart(pieces);
        let own = &mut self.pieces[field];
        let narrowness = |pieces: &[Piece<A>]| pieces.iter().map(|piece| piece.bits).min();
        if pieces.iter().any(|piece| piece.bits > 0) && narrowness(&pieces) > narrowness(own) {
            *own = pieces;
        }
    }
}

fn of_protocols<A: Address>(protocols: &[u8]) -> Vec<Piece<A>> {
    protocols.iter().map(|&protocol| Piece { value: A::top(protocol.into(), 8), bits: 8 }).collect()
}

/// Whether a condition tests only what is in a [`View`](super::filter::View).
fn is_in_view(check: &Check) -> bool {
    use Kind::{Always, Bits, Destination, DestinationPort, IcmpType, Never, Protocol, Source, SourcePort};
    matches!(
        check.kind,
        Never
            | Always
            | Bits(_)
            | Protocol(_)
            | IcmpType(..)
            | Source(_)
            | Destination(_)
            | SourcePort(_)
            | DestinationPort(_)
    )
}

/// The properties that a condition requires.
fn needed(kind: &Kind) -> Bits {
    use crate::rules::Field;
    match kind {
        Kind::Never | Kind::Always | Kind::Tagged(_) | Kind::Mark { .. } | Kind::Fib(_) => Bits::NONE,
        Kind::Lookup { field: Field::Mark, .. } => Bits::NONE,
        Kind::LookupFlow { .. } => Bits::IP,
        Kind::LookupNumber { .. } | Kind::LookupInterface { .. } => Bits::NONE,
        &Kind::Bits(bits) | &Kind::IcmpType(bits, _) => bits,
        Kind::SourcePort(_) | Kind::DestinationPort(_) => Bits::PORTS,
        Kind::LinkSource(..) | Kind::LinkDestination(..) | Kind::EtherType(_) => Bits::LAYER2,
        Kind::Protocol(_) | Kind::Source(_) | Kind::Destination(_) => Bits::IP,
        Kind::Length(_) | Kind::HopLimit(_) | Kind::Tos(_) | Kind::Dscp(_) => Bits::IP,
        Kind::Fragment(_) | Kind::IpId(_) | Kind::IpOptions(_) => Bits::IPV4,
        Kind::TcpFlags { .. } | Kind::TcpDataLength(_) | Kind::TcpOptions(_) => Bits::TCP,
        Kind::TcpSequence(_) | Kind::TcpAcknowledgement(_) | Kind::TcpWindow(_) | Kind::TcpMss(_) => {
            Bits::TCP
        }
        Kind::Lookup { field: Field::SourcePort | Field::DestinationPort, .. } => Bits::PORTS,
        Kind::Lookup { field: Field::LinkSource | Field::LinkDestination, .. } => Bits::LAYER2,
        Kind::Lookup { .. } => Bits::IP,
        Kind::FlowLabel(_) | Kind::ExtensionHeader(_) => Bits::IPV6,
    }
}
