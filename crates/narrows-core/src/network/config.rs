//! What a network is made of, and why it cannot be built.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::classify::{FlowMask, Prefix};
use crate::counters::DropReason;
use crate::link::{Change, LinkConfig};
use crate::random::Seed;
use crate::rules::{RuleError, RuleSetConfig};
use crate::sched::Weight;
use crate::time::Duration;
use crate::units::Bytes;

/// Where packets enter and leave the network. Ports are numbered in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(u16);

impl PortId {
    pub(crate) const fn new(index: u16) -> Self {
        Self(index)
    }

    /// Its number among the ports.
    pub const fn index(self) -> u16 {
        self.0
    }
}

/// A link. Links are numbered in the order of their names; those added later, in the order in which they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(super) u32);

impl LinkId {
    /// Its number among the links.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// A set of rules. Sets are numbered in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RulesId(pub(super) u32);

impl RulesId {
    /// Its number among the sets of rules.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// A router. Routers are numbered in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouterId(pub(super) u32);

impl RouterId {
    /// Its number among the routers.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// A part of the network at which packets may be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// A link; one that was made on first use counts as the link that it is an instance of.
    Link(LinkId),
    /// A set of rules.
    Rules(RulesId),
    /// A router.
    Router(RouterId),
}

impl Element {
    const RULES: u32 = 1 << 31;
    const ROUTERS: u32 = 3 << 30;

    /// A number that tells it apart from all others, for records: links from 0 on, rules from 2³¹, routers from 3·2³⁰.
    pub const fn number(self) -> u32 {
        match self {
            Self::Link(LinkId(number)) => number,
            Self::Rules(RulesId(number)) => Self::RULES | number,
            Self::Router(RouterId(number)) => Self::ROUTERS | number,
        }
    }

    /// The element of that number, whether the network has it or not.
    pub const fn from_number(number: u32) -> Self {
        match number & Self::ROUTERS {
            Self::ROUTERS => Self::Router(RouterId(number & !Self::ROUTERS)),
            Self::RULES => Self::Rules(RulesId(number & !Self::ROUTERS)),
            _ => Self::Link(LinkId(number)),
        }
    }
}

/// Where a packet goes next, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Out of the network.
    Port(String),
    /// Into one lane of a link.
    Link {
        /// The link's name.
        name: String,
        /// 0 for a link of one direction.
        lane: u8,
    },
    /// To a set of rules.
    Rules {
        /// Its name.
        name: String,
        /// Which way: what ipfw calls "in", or "out".
        incoming: bool,
    },
    /// Out of a pipe, back to the rules that sent the packet there: to the next rule, or with one pass to where packets go
    /// that have passed.
    FromPipe {
        /// The name of the rules.
        rules: String,
        /// As it was on the way in.
        incoming: bool,
    },
    /// To a router.
    Router(String),
}

/// Links and ports, and what holds for all of them.
#[derive(Debug)]
pub struct NetworkConfig {
    /// The seed of every random draw.
    pub seed: Seed,
    /// The ports.
    pub ports: Vec<PortConfig>,
    /// The links.
    pub links: Vec<LinkConfig>,
    /// The sets of rules.
    pub rules: Vec<RulesConfig>,
    /// The routers.
    pub routers: Vec<RouterConfig>,
    /// The most bytes that the network holds, frames with 128 bytes each for the engine's own records. What comes in
    /// or is copied beyond is dropped with [`DropReason::Memory`].
    pub memory: Bytes,
    /// The most links that a packet visits before it is dropped with [`DropReason::Loop`].
    pub visits: u8,
}

impl NetworkConfig {
    /// One gibibyte, and 64 visits.
    pub fn new(seed: Seed) -> Self {
        Self {
            seed,
            ports: Vec::new(),
            links: Vec::new(),
            rules: Vec::new(),
            routers: Vec::new(),
            memory: Bytes::new(1 << 30),
            visits: 64,
        }
    }
}

/// A port.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Unique among the ports. Part of the key of random draws.
    pub name: String,
    /// Where packets go that enter here.
    pub entry: Target,
}

/// Rules that all packets meet that come this way, and the pipes that they lead to.
///
/// A pipe is a link with two lanes: the first for packets that met the rules outgoing, the second for incoming ones. Both lead
/// back here ([`Target::FromPipe`]).
#[derive(Debug)]
pub struct RulesConfig {
    /// Unique among links, rules and routers. Part of the key of random draws.
    pub name: String,
    /// The rules.
    pub rules: RuleSetConfig,
    /// The links that the numbers of pipes stand for, and the mark that packets get on the way there.
    pub pipes: Vec<(u32, PipeConfig)>,
    /// The same for the numbers of queues.
    pub queues: Vec<(u32, PipeConfig)>,
    /// Whether a packet has passed when it leaves a pipe.
    pub one_pass: bool,
    /// Where packets go that have passed: the outgoing ones, the incoming ones.
    pub exits: [Target; 2],
}

/// What the number of a pipe or queue stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeConfig {
    /// The link.
    pub link: String,
    /// The mark that packets get: in a queue of flow sets ([`FlowSets`](crate::sched::FlowSets)), the number of the set.
    pub mark: u32,
}

/// A change of a set of rules while it runs.
#[derive(Clone, Debug)]
pub enum RulesChange {
    /// Of the rules themselves, or a table.
    Rules(crate::rules::RuleChange),
    /// What the number of a pipe stands for. Without a link, packets for it are dropped; those inside the former one leave it.
    Pipe(u32, Option<PipeConfig>),
    /// The same for a queue.
    Queue(u32, Option<PipeConfig>),
    /// Whether a packet has passed when it leaves a pipe: counts for those that leave one from now on.
    OnePass(bool),
}

/// Sends packets on by their destination, and lowers their hop limit.
#[derive(Clone, Debug)]
pub struct RouterConfig {
    /// Unique among links, rules and routers. Part of the key of random draws.
    pub name: String,
    /// Where packets go: by the longest prefix.
    pub routes: Vec<(Prefix, Route)>,
}

/// Where packets of a prefix go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// One way, or several with their weights.
    pub ways: Vec<(Target, Weight)>,
    /// How packets are spread over several.
    pub spread: Spread,
    /// Whether this is the router itself: the hop limit does not count, unless the way leads to another router.
    pub local: bool,
}

/// How packets are spread over several ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// By a hash of addresses, protocol and ports: a flow keeps its way. Fragments go by zero ports, but for the first.
    #[default]
    Flow,
    /// Each packet by a draw of its own.
    Packet,
}

/// Makes a link of its own for each flow that a mask tells apart, on the flow's first packet: ipfw's "dynamic pipes".
#[derive(Debug)]
pub struct Instances {
    /// What tells the flows apart.
    pub mask: FlowMask,
    /// The most links at a time. Packets of flows beyond share the configured link itself.
    pub most: u32,
    /// A link in which nothing has been for as long as this is given up by the next packet that comes here.
    pub idle: Duration,
    /// What they are like. The values of a feed go to the configured link alone, so their delay is none that is fed.
    pub template: Box<dyn LinkTemplate>,
}

/// What links are like that are made on first use.
pub trait LinkTemplate: fmt::Debug + Send {
    /// A new one. Its name, lanes and instances are not looked at.
    fn link(&self) -> LinkConfig;

    /// What makes a link of the template before this one a link of this one; see [`Change::Template`].
    fn changes(&self) -> Vec<Change>;
}

/// Why a network cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// Two elements or two ports have this name.
    NameTaken(String),
    /// `from` sends packets to a port, link, lane, set of rules or router that does not exist.
    NoSuchTarget {
        /// The element.
        from: String,
        /// What it names.
        target: Target,
    },
    /// The names of these two ports happen to have the same hash, and so would share random draws.
    NamesCollide(String, String),
    /// More ports (65,535), links (2³¹ − 1) or lanes of a link (255) than can be numbered, or a link without any lane, or a
    /// pipe with less than two.
    TooMany(&'static str),
    /// A rule of the set of this name is wrong.
    Rules(String, RuleError),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken(name) => write!(f, "two elements are called `{name}`"),
            Self::NoSuchTarget { from, target } => match target {
                Target::Port(port) => write!(f, "`{from}` leads to port `{port}`, which does not exist"),
                Target::Link { name, lane } => {
                    write!(f, "`{from}` leads to lane {lane} of link `{name}`, which does not exist")
                }
                Target::Rules { name, .. } | Target::FromPipe { rules: name, .. } => {
                    write!(f, "`{from}` leads to the rules `{name}`, which do not exist")
                }
                Target::Router(name) => write!(f, "`{from}` leads to router `{name}`, which does not exist"),
            },
            Self::NamesCollide(a, b) => {
                write!(f, "ports `{a}` and `{b}` would share random draws: rename one of them")
            }
            Self::TooMany(what) => write!(f, "a wrong number of {what}"),
            Self::Rules(name, error) => write!(f, "`{name}`: {error}"),
        }
    }
}

impl core::error::Error for BuildError {}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It left by this port.
    Delivered(PortId),
    /// It was dropped.
    Dropped {
        /// Where; nothing when the network as a whole refused it.
        at: Option<Element>,
        /// Why.
        reason: DropReason,
    },
}
