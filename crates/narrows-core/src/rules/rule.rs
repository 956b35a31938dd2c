//! A rule as it is written: nothing here is compiled.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::units::Probability;

/// A numbered rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// 1 to 65,534. Several rules may have one number; they stand in the order in which they came.
    pub number: u16,
    /// The set that it belongs to, 0 to 31.
    pub set: u8,
    /// Matches only with this probability, which is tested first.
    pub probability: Option<Probability>,
    /// What is done with a packet that matches.
    pub action: Action,
    /// Whether the user wants to hear of each match. It is counted as any other.
    pub log: bool,
    /// What is written on a packet that matches, or taken off.
    pub tag: Option<Tag>,
    /// What a packet must be like: all of these must hold.
    pub terms: Vec<Term>,
    /// A match makes a dynamic rule.
    pub keep: Option<Keep>,
    /// What stands behind `//`.
    pub comment: Option<String>,
}

/// What is done with a packet that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It passes, and no other rule is tried.
    Allow,
    /// It is dropped.
    Deny,
    /// It is counted, and goes on at the next rule.
    Count,
    /// It goes on at the first rule of at least this number, which is above the rule's own. Where a table gives a number that
    /// is not, it goes on at the next rule.
    SkipTo(Argument),
    /// The same, forwards or backwards, and [`Action::Return`] comes back to the first rule of a greater number than the
    /// call's. The 17th call within others goes on at the next rule.
    Call(Argument),
    /// Goes back behind the last call; without one, on at the next rule.
    Return,
    /// It goes through the pipe of that number.
    Pipe(Argument),
    /// It goes through the queue of that number.
    Queue(Argument),
    /// Its code point becomes this one, 0 to 63, and it goes on at the next rule. Of a table's value the lower six bits count.
    SetDscp(Argument),
    /// What the rule does that made the packet's dynamic rule, if it has one; else it goes on, and nothing is counted.
    CheckState,
}

/// A number of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// This one.
    Number(u32),
    /// The value that the rule's last look-up in a table found that found one; 0 where none did.
    TableArgument,
}

/// A tag, 1 to 65,534: stays with the packet through pipes, until it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Written on it.
    Add(u16),
    /// Taken off.
    Remove(u16),
}

/// Makes a dynamic rule out of a match, which counts for the packets of the flow both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// One for each flow.
    State,
    /// The same, but no more than so many at a time among the flows that agree in these.
    Limit {
        /// At least 1.
        most: u32,
        /// What they agree in.
        by: By,
    },
}

/// Parts of a flow.
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

/// Holds when one of these does: one condition, or an "or block".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term(pub Vec<Literal>);

/// A condition, or its opposite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Whether it holds where the test does not.
    pub not: bool,
    /// The condition.
    pub test: Test,
}

/// A condition on one packet. One that looks at a header holds for no packet without that header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// Holds always.
    Any,
    /// Holds never: an interface that there is not.
    Never,
    /// The IP protocol, or the last header of IPv6.
    Protocol(u8),
    /// IPv4 or IPv6.
    IpVersion(u8),
    /// The source address.
    Source(Addresses),
    /// The destination address.
    Destination(Addresses),
    /// The source port. Holds for no fragment but the first.
    SourcePort(Ranges),
    /// The destination port.
    DestinationPort(Ranges),
    /// Comes from outside: the second lane.
    In,
    /// Goes outside: the first lane.
    Out,
    /// Has a link header.
    Layer2,
    /// The source address of the link layer, of which these bits count.
    LinkSource {
        /// The bits.
        address: [u8; 6],
        /// Those that count.
        mask: [u8; 6],
    },
    /// The destination address of the link layer.
    LinkDestination {
        /// The bits.
        address: [u8; 6],
        /// Those that count.
        mask: [u8; 6],
    },
    /// What the link layer says that the frame carries.
    EtherType(Ranges),
    /// Bytes from the network header on, of an IP packet.
    Length(Ranges),
    /// Time to live or hop limit.
    HopLimit(Ranges),
    /// Bits of the TOS or traffic class byte.
    Tos(Tos),
    /// The code point is in this set, one bit for each.
    Dscp(u64),
    /// The precedence, 0 to 7.
    Precedence(u8),
    /// Is a fragment other than the first.
    Fragment,
    /// TCP: a SYN without an ACK.
    Setup,
    /// TCP: an RST or an ACK.
    Established,
    /// TCP flags, as in the header: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32.
    TcpFlags {
        /// Those that must be set.
        set: u8,
        /// Those that must not.
        clear: u8,
    },
    /// Bytes behind the TCP header.
    TcpDataLength(Ranges),
    /// The ICMP type is in this set.
    IcmpType([u64; 4]),
    /// The ICMPv6 type is in this set.
    Icmp6Type([u64; 4]),
    /// Carries one of these tags.
    Tagged(Ranges),
    /// A field is in a table.
    Lookup {
        /// Which field.
        field: Field,
        /// In which table.
        table: TableTest,
    },
    /// The IPv6 flow label is one of these.
    FlowLabel(Vec<u32>),
}

/// Which addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Those of any IP packet.
    Any,
    /// Those of the host at which the rules are.
    Me,
    /// Those that agree with one of these.
    In(Vec<Masked>),
    /// Those in a table.
    Table(TableTest),
}

/// Addresses that agree in the bits of a mask. IPv4 is mapped into IPv6: its masks have all of the upper 96 bits set. IPv4
/// packets agree with none but those, and IPv6 packets with none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Masked {
    /// The bits, 0 where they do not count.
    pub address: u128,
    /// Those that count. They need not be the first ones.
    pub mask: u128,
}

/// Which entries of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableTest {
    /// The name; of old a number.
    pub table: String,
    /// Only one with this value.
    pub value: Option<u32>,
}

/// What is looked up in a table. A number is looked up as the IPv4 address of that number, as ipfw does.
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
    /// The code point.
    Dscp,
}

/// Numbers: a list of ranges, at least one.
pub type Ranges = Vec<RangeInclusive<u16>>;

/// Bits of the TOS byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tos {
    /// Those that must be set.
    pub set: u8,
    /// Those that must not.
    pub clear: u8,
}
