//! A rule as written, not compiled.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::packet::Protocol;
use crate::units::Probability;

/// A numbered rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The number, 1 to 65,534. Rules with the same number are ordered by when they were added.
    pub number: u16,
    /// The set of the rule, 0 to 31.
    pub set: u8,
    /// Match only with this probability. It is tested first.
    pub probability: Option<Probability>,
    /// The action for a matching packet.
    pub action: Action,
    /// Whether the user wants each match logged. The match is counted as usual.
    pub log: bool,
    /// The tag to add to a matching packet, or to remove.
    pub tag: Option<Tag>,
    /// The conditions. All of them must hold.
    pub terms: Vec<Term>,
    /// Create a dynamic rule on a match.
    pub keep: Option<Keep>,
    /// Whether `keep` only creates dynamic rules: this rule looks none up.
    pub records: bool,
    /// Whether the action is only for packets with a dynamic rule that this rule has created. Other matching packets
    /// continue at the next rule, not counted.
    pub defers: bool,
    /// The comment after `//`.
    pub comment: Option<String>,
}

impl Rule {
    /// A rule of set 0 without conditions: it applies to every packet.
    pub const fn new(number: u16, action: Action) -> Self {
        Self {
            number,
            set: 0,
            probability: None,
            action,
            log: false,
            tag: None,
            terms: Vec::new(),
            keep: None,
            records: false,
            defers: false,
            comment: None,
        }
    }
}

/// The action for a matching packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Pass. No other rule is tried.
    Allow,
    /// Drop.
    Deny,
    /// Drop, and tell the sender.
    Reject(Answer),
    /// Count, and continue at the next rule.
    Count,
    /// Continue at the first rule with at least this number, which must be greater than the rule's own. If a table
    /// yields a number that is not, continue at the next rule.
    SkipTo(Argument),
    /// Like `SkipTo`, forwards or backwards. [`Action::Return`] returns to the first rule with a greater number than
    /// the calling rule's. The 17th nested call continues at the next rule.
    Call(Argument),
    /// Return from the last call: continue at the first rule with a greater number than the calling rule's. Without a
    /// call, continue at the next rule.
    Return,
    /// Send the packet through the pipe with this number.
    Pipe(Argument),
    /// Send the packet through the queue with this number.
    Queue(Argument),
    /// Set the DSCP code point, 0 to 63, and continue at the next rule. Of a table's value the lower six bits are
    /// used.
    SetDscp(Argument),
    /// Set the packet's mark, and continue at the next rule.
    SetMark(Argument),
    /// Set the number of the packet's routing table, and continue at the next rule. A table's value beyond 65,535 sets
    /// 0.
    SetFib(Argument),
    /// Pass, and let the next router that the packet reaches send it towards this address, instead of its destination.
    /// Packets of another IP version only pass, and so do those that go against the flow that created a dynamic rule.
    Forward(NextHop),
    /// Translate the packet by the translator with this number ([`NatConfig`](super::NatConfig)). If that leaves the packet
    /// in the rules, it passes, or continues at the next rule as if it came anew: see [`Decision::Translated`]. Packets
    /// of IPv6 are dropped, and all if there is no such translator; what is not IP stays as it is.
    ///
    /// [`Decision::Translated`]: super::Decision::Translated
    Nat(Argument),
    /// Like `Nat`, by the first translator that knows the flow of a packet that goes out. Others are not changed.
    NatGlobal,
    /// Apply the action of the rule that created the packet's dynamic rule. If there is none, continue without
    /// counting.
    CheckState,
}

/// What the sender of a rejected packet is told. An answer over one IP version is not given to packets of the other.
///
/// The engine does not make the answer: it is reported with the drop ([`Event::answer`](crate::Event::answer)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A TCP reset, over IPv4. Only for TCP.
    Reset,
    /// A TCP reset, over IPv6. Only for TCP.
    Reset6,
    /// ICMP "destination unreachable" with this code.
    Unreachable(u8),
    /// ICMPv6 "destination unreachable" with this code.
    Unreachable6(u8),
    /// ICMP "fragmentation needed" with this MTU.
    FragmentationNeeded(u16),
}

impl Answer {
    /// Whether it is for packets of this protocol.
    pub(crate) const fn fits(self, network: Protocol) -> bool {
        match self {
            Self::Reset | Self::Unreachable(_) | Self::FragmentationNeeded(_) => {
                matches!(network, Protocol::Ipv4 | Protocol::Ipv4DontFragment)
            }
            Self::Reset6 | Self::Unreachable6(_) => matches!(network, Protocol::Ipv6),
        }
    }
}

/// The numeric argument of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A constant.
    Number(u32),
    /// The value found by the rule's last successful table lookup; 0 if none was successful.
    TableArgument,
}

impl Argument {
    /// The constant, or the value found in a table.
    pub(super) const fn or(self, found: u32) -> u32 {
        match self {
            Self::Number(number) => number,
            Self::TableArgument => found,
        }
    }
}

/// Where a router sends a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextHop {
    /// Towards this address; IPv4 is mapped into IPv6.
    Address([u8; 16]),
    /// Towards the IPv4 address that is the value found by the rule's last successful table lookup.
    TableArgument,
}

/// A tag, 1 to 65,534. It stays with the packet through pipes, until the packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Add the tag.
    Add(u16),
    /// Remove the tag.
    Remove(u16),
}

/// Creates a dynamic rule on a match. The dynamic rule applies to both directions of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// One dynamic rule for each flow.
    State,
    /// Like `State`, with a maximum number at a time among the flows that agree in these fields.
    Limit {
        /// The maximum, at least 1.
        most: u32,
        /// The fields in which the flows agree.
        by: By,
    },
}

/// Fields of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct By {
    /// The source address.
    pub source: bool,
    /// The source port.
    pub source_port: bool,
    /// The destination address.
    pub destination: bool,
    /// The destination port.
    pub destination_port: bool,
}

/// A condition, or an "or block": it holds when one of its literals does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term(pub Vec<Literal>);

impl From<Test> for Term {
    fn from(test: Test) -> Self {
        Self(alloc::vec![Literal { not: false, test }])
    }
}

/// A condition or its negation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Whether the condition is negated.
    pub not: bool,
    /// The condition.
    pub test: Test,
}

/// A condition on one packet. A condition on a header never holds for packets without that header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// Always holds.
    Any,
    /// Never holds: an interface that does not exist.
    Never,
    /// The IP protocol, or the last header of IPv6.
    Protocol(u8),
    /// The IP version, 4 or 6.
    IpVersion(u8),
    /// The source address.
    Source(Addresses),
    /// The destination address.
    Destination(Addresses),
    /// The source port. Never holds for fragments other than the first.
    SourcePort(Ranges),
    /// The destination port.
    DestinationPort(Ranges),
    /// Incoming, from outside: the second lane.
    In,
    /// Outgoing: the first lane.
    Out,
    /// Has a link header.
    Layer2,
    /// The source address of the link layer, under a mask.
    LinkSource {
        /// The address bits.
        address: [u8; 6],
        /// The bits to compare.
        mask: [u8; 6],
    },
    /// The destination address of the link layer, under a mask.
    LinkDestination {
        /// The address bits.
        address: [u8; 6],
        /// The bits to compare.
        mask: [u8; 6],
    },
    /// The EtherType of the frame.
    EtherType(Ranges),
    /// The length of an IP packet in bytes, from the network header on.
    Length(Ranges),
    /// Time to live or hop limit.
    HopLimit(Ranges),
    /// Bits of the TOS or traffic class byte.
    Tos(Tos),
    /// The DSCP code point is in this set, one bit each.
    Dscp(u64),
    /// The IP precedence, 0 to 7.
    Precedence(u8),
    /// Is a fragment other than the first.
    Fragment,
    /// Bits of the fragmentation fields of IPv4: 0x80 reserved, 0x40 don't fragment, 0x20 more fragments, 0x01 the
    /// offset is not 0.
    FragmentBits(Flags),
    /// The identification of an IPv4 packet.
    IpId(Ranges),
    /// One of these extension headers of IPv6, as in [`Headers::extension_headers`](crate::Headers::extension_headers).
    ExtensionHeader(u8),
    /// The options of IPv4, as in [`Headers::ip_options`](crate::Headers::ip_options). Never holds for malformed ones.
    IpOptions(Flags),
    /// TCP with SYN set and ACK clear.
    Setup,
    /// TCP with RST or ACK set.
    Established,
    /// TCP flags as in the header: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32.
    TcpFlags {
        /// Flags that must be set.
        set: u8,
        /// Flags that must be clear.
        clear: u8,
    },
    /// Bytes of TCP payload.
    TcpDataLength(Ranges),
    /// The TCP sequence number.
    TcpSequence(u32),
    /// The TCP acknowledgement number.
    TcpAcknowledgement(u32),
    /// The window of the TCP header, not scaled.
    TcpWindow(Ranges),
    /// The maximum segment size of the TCP option. Never holds without that option.
    TcpMss(Ranges),
    /// The options of TCP, as in [`Headers::tcp_options`](crate::Headers::tcp_options).
    TcpOptions(Flags),
    /// The ICMP type is in this set.
    IcmpType([u64; 4]),
    /// The ICMPv6 type is in this set.
    Icmp6Type([u64; 4]),
    /// Has one of these tags.
    Tagged(Ranges),
    /// The packet's mark has this value in the bits of a mask.
    Mark {
        /// The value, or the one that an earlier lookup of the rule has found.
        value: Argument,
        /// The bits to compare.
        mask: u32,
    },
    /// The number of the packet's routing table is one of these.
    Fib(Ranges),
    /// A field is in a table.
    Lookup {
        /// The field.
        field: Field,
        /// The bits of the field that are looked up. Those of an IPv4 address or a number are the lower 32; the others
        /// must be set for them.
        mask: u128,
        /// The table.
        table: TableTest,
    },
    /// The flow is in a table of flows.
    Flow(TableTest),
    /// The IPv6 flow label is one of these.
    FlowLabel(Vec<u32>),
}

/// A set of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Any address of an IP packet.
    Any,
    /// The addresses of the host that the rules are on.
    Me,
    /// Addresses that match one of these.
    In(Vec<Masked>),
    /// Addresses in a table.
    Table(TableTest),
}

/// Addresses that agree in the bits of a mask. IPv4 is mapped into IPv6, and its masks have all of the upper 96 bits
/// set. IPv4 packets match only such entries, and IPv6 packets none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Masked {
    /// The address bits, 0 where the mask is 0.
    pub address: u128,
    /// The bits to compare. They need not be contiguous.
    pub mask: u128,
}

/// A match against table entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableTest {
    /// The table's name; traditionally a number.
    pub table: String,
    /// Match only entries with this value.
    pub value: Option<u32>,
}

/// The field to look up in a table. A number is looked up as the IPv4 address with that value, as in ipfw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// The source address.
    Source,
    /// The destination address.
    Destination,
    /// The source port.
    SourcePort,
    /// The destination port.
    DestinationPort,
    /// The DSCP code point.
    Dscp,
    /// The source address of the link layer.
    LinkSource,
    /// The destination address of the link layer.
    LinkDestination,
    /// The packet's mark.
    Mark,
    /// The number of the rule itself.
    RuleNumber,
    /// The interface by which the packet came.
    Received,
    /// The interface by which the packet leaves.
    Sent,
    /// Either of the two.
    Via,
}

/// A list of at least one range of numbers.
pub type Ranges = Vec<RangeInclusive<u16>>;

/// Bits of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flags {
    /// Bits that must be set.
    pub set: u8,
    /// Bits that must be clear.
    pub clear: u8,
}

impl Flags {
    /// Whether a field has these bits.
    pub const fn fit(self, field: u8) -> bool {
        field & self.set == self.set && field & self.clear == 0
    }
}

/// Bits of the TOS byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tos {
    /// Bits that must be set.
    pub set: u8,
    /// Bits that must be clear.
    pub clear: u8,
}
