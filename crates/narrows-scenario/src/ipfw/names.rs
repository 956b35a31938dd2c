//! Names of protocols, ports, EtherTypes, code points and header bits; and ipfw features that narrows
//! rejects.

/// Names of numbers. The first name of a number is used in output.
pub(super) type Names<T> = &'static [(&'static str, T)];

/// The number of a name, ignoring case.
pub(super) fn number<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    names.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, number)| *number)
}

/// The name of a number.
pub(super) fn name<T: PartialEq>(names: &[(&'static str, T)], number: T) -> Option<&'static str> {
    names.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
}

/// IP protocols, as in `/etc/protocols`. `ip`, `ip4`, `ip6` and `all` are not protocols in a rule.
pub(super) const PROTOCOLS: Names<u8> = &[
    ("tcp", 6),
    ("udp", 17),
    ("icmp", 1),
    ("hopopt", 0),
    ("igmp", 2),
    ("ggp", 3),
    ("ipencap", 4),
    ("ipip", 4),
    ("egp", 8),
    ("igp", 9),
    ("dccp", 33),
    ("idrp", 45),
    ("ipv6-route", 43),
    ("ipv6-frag", 44),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("mobile", 55),
    ("ipv6-icmp", 58),
    ("icmp6", 58),
    ("icmpv6", 58),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("eigrp", 88),
    ("ospf", 89),
    ("ospfigp", 89),
    ("etherip", 97),
    ("encap", 98),
    ("pim", 103),
    ("ipcomp", 108),
    ("vrrp", 112),
    ("carp", 112),
    ("pgm", 113),
    ("l2tp", 115),
    ("sctp", 132),
    ("mobility-header", 135),
    ("udplite", 136),
    ("pfsync", 240),
];

pub(super) use crate::dialect::SERVICES;

/// EtherTypes, with ipfw's names.
pub(super) const ETHER_TYPES: Names<u16> = &[
    ("ip", 0x0800),
    ("ipv4", 0x0800),
    ("ipv6", 0x86dd),
    ("arp", 0x0806),
    ("rarp", 0x8035),
    ("vlan", 0x8100),
    ("loop", 0x9000),
    ("trail", 0x1000),
    ("at", 0x809b),
    ("atalk", 0x809b),
    ("aarp", 0x80f3),
    ("pppoe_disc", 0x8863),
    ("pppoe_sess", 0x8864),
    ("ipx", 0x8137),
    ("ns", 0x0600),
];

/// Differentiated services code points (DSCP).
pub(super) const CODE_POINTS: Names<u8> = &[
    ("be", 0),
    ("cs0", 0),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];

/// TCP flags, in the order in which they are written.
pub(super) const TCP_FLAGS: Names<u8> =
    &[("syn", 0x02), ("fin", 0x01), ("ack", 0x10), ("psh", 0x08), ("rst", 0x04), ("urg", 0x20)];

/// Bits of the TOS byte. Output uses the first name that fits.
pub(super) const TOS: Names<u8> = &[
    ("lowdelay", 0x10),
    ("throughput", 0x08),
    ("reliability", 0x04),
    ("congestion", 0x03),
    ("mincost", 0x02),
    ("ecntransport", 0x02),
];

/// Bits of the fragmentation fields of IPv4.
pub(super) const FRAGMENT: Names<u8> = &[("rf", 0x80), ("df", 0x40), ("mf", 0x20), ("offset", 0x01)];

/// Options of IPv4: strict and loose source route, record route, timestamp.
pub(super) const IP_OPTIONS: Names<u8> = &[("ssrr", 0x02), ("lsrr", 0x01), ("rr", 0x04), ("ts", 0x08)];

/// Extension headers of IPv6, and ESP.
pub(super) const EXTENSION_HEADERS: Names<u8> = &[
    ("frag", 0x01),
    ("hopopt", 0x02),
    ("route", 0x04),
    ("ah", 0x08),
    ("esp", 0x10),
    ("dstopt", 0x20),
    ("rthdr0", 0x40),
    ("rthdr2", 0x80),
];

/// Options of TCP.
pub(super) const TCP_OPTIONS: Names<u8> =
    &[("mss", 0x01), ("window", 0x02), ("sack", 0x04), ("ts", 0x08), ("cc", 0x10)];

/// The options of a rule.
pub(super) const OPTIONS: &[&str] = &[
    "src-ip",
    "dst-ip",
    "src-ip6",
    "src-ipv6",
    "dst-ip6",
    "dst-ipv6",
    "src-port",
    "dst-port",
    "proto",
    "ip4",
    "ipv4",
    "ip6",
    "ipv6",
    "in",
    "out",
    "recv",
    "xmit",
    "via",
    "layer2",
    "bridged",
    "MAC",
    "mac",
    "src-mac",
    "dst-mac",
    "mac-type",
    "iplen",
    "ipttl",
    "iptos",
    "dscp",
    "ipprecedence",
    "ipversion",
    "ipver",
    "ipid",
    "ipoptions",
    "ipopts",
    "frag",
    "fragment",
    "setup",
    "established",
    "estab",
    "tcpflags",
    "tcpflgs",
    "tcpdatalen",
    "tcpseq",
    "tcpack",
    "tcpwin",
    "tcpmss",
    "tcpoptions",
    "tcpopts",
    "icmptypes",
    "icmptype",
    "icmp6types",
    "icmp6type",
    "flow-id",
    "ext6hdr",
    "fib",
    "mark",
    "flow",
    "verrevpath",
    "antispoof",
    "tagged",
    "lookup",
    "keep-state",
    "limit",
    "record-state",
    "set-limit",
    "defer-action",
    "defer-immediate-action",
];

/// The actions of a rule.
pub(super) const ACTIONS: &[&str] = &[
    "pipe",
    "queue",
    "allow",
    "accept",
    "pass",
    "permit",
    "deny",
    "drop",
    "reset",
    "reset6",
    "reject",
    "unreach",
    "unreach6",
    "count",
    "reass",
    "skipto",
    "nat",
    "call",
    "return",
    "setdscp",
    "setmark",
    "setfib",
    "fwd",
    "forward",
    "check-state",
];

const NO_SOCKETS: &str = "a packet on the wire does not say whose it is; if narrows asked the host, the answer would come after \
                          the first packet, and a replay could not repeat it: tell flows apart by address, port or `dscp`";
const NO_ROUTES: &str = "narrows has no routing table at its rules";
const NO_DIVERT: &str = "narrows does not pass packets to other programs";
const NO_REWRITE: &str =
    "of the rules, only `nat` changes addresses; `edits` of a link do, too, without state";

/// ipfw options that narrows rejects, and why.
pub(super) const REFUSED_OPTIONS: Names<&str> = &[
    ("uid", NO_SOCKETS),
    ("gid", NO_SOCKETS),
    ("jail", NO_SOCKETS),
    ("sockarg", NO_SOCKETS),
    ("versrcreach", NO_ROUTES),
    ("diverted", NO_DIVERT),
    ("diverted-loopback", NO_DIVERT),
    ("diverted-output", NO_DIVERT),
    ("ipsec", "narrows does not track IPsec history"),
];

/// ipfw actions that narrows rejects, and why.
pub(super) const REFUSED_ACTIONS: Names<&str> = &[
    ("divert", NO_DIVERT),
    ("tee", NO_DIVERT),
    ("netgraph", NO_DIVERT),
    ("ngtee", NO_DIVERT),
    ("nat64lsn", NO_REWRITE),
    ("nat64stl", NO_REWRITE),
    ("nat64clat", NO_REWRITE),
    ("nptv6", NO_REWRITE),
    ("tcp-setmss", NO_REWRITE),
];

/// The codes of `unreach`.
pub(super) const UNREACHABLE: Names<u8> = &[
    ("net", 0),
    ("host", HOST),
    ("protocol", 2),
    ("port", 3),
    ("needfrag", NEEDS_FRAGMENTATION),
    ("srcfail", 5),
    ("net-unknown", 6),
    ("host-unknown", 7),
    ("isolated", 8),
    ("net-prohib", 9),
    ("host-prohib", 10),
    ("tosnet", 11),
    ("toshost", 12),
    ("filter-prohib", 13),
    ("host-precedence", 14),
    ("precedence-cutoff", 15),
];

/// ICMP: host unreachable.
pub(super) const HOST: u8 = 1;
/// ICMP: fragmentation needed.
pub(super) const NEEDS_FRAGMENTATION: u8 = 4;

/// The codes of `unreach6`.
pub(super) const UNREACHABLE_6: Names<u8> =
    &[("no-route", 0), ("admin-prohib", 1), ("address", 3), ("port", 4)];

/// The flow fields that a limit may count by, as written.
pub(super) const LIMITS: &[&str] = &["src-addr", "src-port", "dst-addr", "dst-port"];
