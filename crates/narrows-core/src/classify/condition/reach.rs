//! Static analysis of conditions: whether one condition covers another, and whether a condition can match at all.
//!
//! Both answers are sound: they are "yes" only when that is certain. They assume packets as they appear on a wire:
//! addresses of IPv4 packets are mapped ones, those of IPv6 packets are not, and only protocols with ports have
//! ports.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::{Condition, Families, ICMP, ICMPV6, Prefix, TCP, has_ports, is_icmp, mask};

/// IPv4 addresses, mapped into IPv6.
const IPV4: (u128, u128) = (0xffff_0000_0000, 0xffff_ffff_ffff);
const PORTS: (u128, u128) = (0, 0xffff);
const LENGTHS: (u128, u128) = (0, u32::MAX as u128);
const PROTOCOLS: (u128, u128) = (0, 0xff);
const CODE_POINTS: (u128, u128) = (0, 63);
const ECN_FIELDS: (u128, u128) = (0, 3);
const ADDRESSES: (u128, u128) = (0, u128::MAX);

impl Condition {
    /// Whether every packet that matches `other` also matches this condition, so that `other` never matches after it.
    /// True only when that is certain. If `other` is impossible, the answer may be either.
    pub fn covers(&self, other: &Self) -> bool {
        let (is_ip, is_ported) = (other.is_about_ip(), other.has_ports());
        let covers = |own: Option<Set>, others: Option<Set>, all: Option<(u128, u128)>| match (own, others) {
            (None, _) => true,
            (Some(own), Some(others)) => own.covers(&others),
            (Some(own), None) => all.is_some_and(|all| own.covers(&Set::new([all]))),
        };
        let if_ip = |all| is_ip.then_some(all);
        let if_ported = |all| is_ported.then_some(all);
        covers(self.source_set(), other.source_set(), if_ip(ADDRESSES))
            && covers(self.destination_set(), other.destination_set(), if_ip(ADDRESSES))
            && covers(self.protocol_set(), other.protocol_set(), if_ip(PROTOCOLS))
            && covers(self.code_point_set(), other.code_point_set(), if_ip(CODE_POINTS))
            && covers(self.ecn_set(), other.ecn_set(), if_ip(ECN_FIELDS))
            && covers(ports(&self.icmp), ports(&other.icmp), None)
            && covers(ports(&self.source_ports), ports(&other.source_ports), if_ported(PORTS))
            && covers(ports(&self.destination_ports), ports(&other.destination_ports), if_ported(PORTS))
            && (self.ports.is_empty()
                || [&other.ports, &other.source_ports, &other.destination_ports]
                    .into_iter()
                    .any(|others| covers(ports(&self.ports), ports(others), if_ported(PORTS))))
            && covers(self.length_set(), other.length_set(), Some(LENGTHS))
            && (self.lane.is_none() || self.lane == other.lane)
            && (self.headers.is_none() || self.headers == other.headers)
            && self.families.is_none_or(|own| other.possible_families().without(own).is_empty())
            && self.tcp_flags.is_none_or(|own| {
                let sure = |flags: u8, others: u8| flags & !others == 0;
                other
                    .tcp_flags
                    .is_some_and(|others| sure(own.set, others.set) && sure(own.clear, others.clear))
            })
    }

    /// Whether no packet can match, because fields contradict each other or themselves. True only when that is
    /// certain.
    pub fn is_impossible(&self) -> bool {
        let sets = [
            self.source_set(),
            self.destination_set(),
            self.protocol_set(),
            self.code_point_set(),
            self.ecn_set(),
            ports(&self.source_ports),
            ports(&self.destination_ports),
            ports(&self.ports),
            ports(&self.icmp),
            self.length_set(),
        ];
        sets.into_iter().flatten().any(|set| set.0.is_empty())
            || self.asks_for_ports_of_none()
            || self.possible_families().is_empty()
            || self.tcp_flags.is_some_and(|flags| flags.set & flags.clear != 0)
            || self.asks_for_other_ports()
    }

    /// The only value that packets which match can have: as source, destination, protocol, source port, destination port, and code
    /// point. `None` where there are several, or none. A condition covers only conditions with the same values where it has one,
    /// and impossible ones.
    pub fn only_values(&self) -> [Option<u128>; 6] {
        let sets = [
            self.source_set(),
            self.destination_set(),
            self.protocol_set(),
            ports(&self.source_ports),
            ports(&self.destination_ports),
            self.code_point_set(),
        ];
        sets.map(|set| match set?.0[..] {
            [(low, high)] if low == high => Some(low),
            _ => None,
        })
    }

    /// Whether all packets that match are known to have ports.
    fn has_ports(&self) -> bool {
        let all_have = !self.protocols.is_empty() && self.protocols.iter().all(|&number| has_ports(number));
        all_have || self.tcp_flags.is_some() || self.is_about_ports()
    }

    fn asks_for_ports_of_none(&self) -> bool {
        let none_has = !self.protocols.is_empty() && !self.protocols.iter().any(|&number| has_ports(number));
        (none_has || !self.icmp.is_empty()) && self.is_about_ports()
    }

    /// The network protocols of packets that may match. Both addresses of a packet are of the same family.
    fn possible_families(&self) -> Families {
        let ipv4 = Set::new([IPV4]);
        let of_addresses = |set: Option<Set>| match set {
            None => Families::ALL,
            Some(set) => match (set.meets(&ipv4), ipv4.covers(&set)) {
                (true, true) => Families::IPV4,
                (false, _) => Families::IPV6,
                (true, false) => Families::IPV4.or(Families::IPV6),
            },
        };
        let other = if self.is_about_ip() { Families::OTHER } else { Families::NONE };
        self.families
            .unwrap_or(Families::ALL)
            .without(other)
            .and(of_addresses(self.source_set()))
            .and(of_addresses(self.destination_set()))
    }

    /// Whether `ports` must contain one of the two ports but can contain neither.
    fn asks_for_other_ports(&self) -> bool {
        let (Some(either), Some(source), Some(destination)) =
            (ports(&self.ports), ports(&self.source_ports), ports(&self.destination_ports))
        else {
            return false;
        };
        !either.meets(&source) && !either.meets(&destination)
    }

    fn source_set(&self) -> Option<Set> {
        addresses(&self.sources)
    }

    fn destination_set(&self) -> Option<Set> {
        addresses(&self.destinations)
    }

    fn protocol_set(&self) -> Option<Set> {
        let set = |all: &mut dyn Iterator<Item = u8>| Some(Set::new(all.map(|one| (one.into(), one.into()))));
        let may_be =
            |one: u8| (self.tcp_flags.is_none() || one == TCP) && (self.icmp.is_empty() || is_icmp(one));
        match &self.protocols[..] {
            [] if self.tcp_flags.is_none() && self.icmp.is_empty() => None,
            [] => set(&mut [ICMP, TCP, ICMPV6].into_iter().filter(|one| may_be(*one))),
            all => set(&mut all.iter().copied().filter(|one| may_be(*one))),
        }
    }

    fn code_point_set(&self) -> Option<Set> {
        self.dscps.map(of_bits)
    }

    fn ecn_set(&self) -> Option<Set> {
        self.ecns.map(|set| of_bits(u64::from(set & 0xf)))
    }

    fn length_set(&self) -> Option<Set> {
        self.lengths.as_ref().map(|range| Set::new([(u128::from(*range.start()), u128::from(*range.end()))]))
    }
}

/// The numbers of the bits that are set.
fn of_bits(set: u64) -> Set {
    Set::new((0..64u128).filter(|number| set >> number & 1 == 1).map(|number| (number, number)))
}

fn addresses(prefixes: &[Prefix]) -> Option<Set> {
    let range = |prefix: &Prefix| (prefix.address, prefix.address | !mask(prefix.bits));
    (!prefixes.is_empty()).then(|| Set::new(prefixes.iter().map(range)))
}

fn ports(ranges: &[RangeInclusive<u16>]) -> Option<Set> {
    let range = |range: &RangeInclusive<u16>| (u128::from(*range.start()), u128::from(*range.end()));
    (!ranges.is_empty()).then(|| Set::new(ranges.iter().map(range)))
}

/// A set of numbers as inclusive ranges, sorted and with gaps in between.
struct Set(Vec<(u128, u128)>);

impl Set {
    fn new(ranges: impl IntoIterator<Item = (u128, u128)>) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().filter(|(low, high)| low <= high).collect();
        ranges.sort_unstable();
        let mut joined: Vec<(u128, u128)> = Vec::new();
        for (low, high) in ranges {
            match joined.last_mut() {
                Some((_, end)) if low <= end.saturating_add(1) => *end = high.max(*end),
                _ => joined.push((low, high)),
            }
        }
        Self(joined)
    }

    fn covers(&self, other: &Self) -> bool {
        let has = |&(low, high): &(u128, u128)| self.0.iter().any(|own| own.0 <= low && high <= own.1);
        other.0.iter().all(has)
    }

    fn meets(&self, other: &Self) -> bool {
        let meets = |&(low, high): &(u128, u128)| self.0.iter().any(|own| own.0 <= high && low <= own.1);
        other.0.iter().any(meets)
    }
}
