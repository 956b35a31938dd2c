//! What a network is made of, and why it cannot be built.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::classify::Prefix;
use crate::counters::DropReason;
use crate::id::{Element, PortId};
use crate::link::{LinkConfig, Target};
use crate::random::Seed;
use crate::rules::{RuleError, RuleSetConfig};
use crate::sched::Weight;
use crate::units::Bytes;

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
