//! The configuration of a network, and why it may be invalid.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::classify::Prefix;
use crate::counters::DropReason;
use crate::id::{Element, PortId};
use crate::link::{LinkConfig, Target};
use crate::packet::LinkAddress;
use crate::random::Seed;
use crate::rules::{RuleError, RuleSetConfig};
use crate::sched::Weight;
use crate::time::Duration;
use crate::units::Bytes;

/// The elements of a network, and its global limits.
#[derive(Debug)]
pub struct NetworkConfig {
    /// The seed of all random draws.
    pub seed: Seed,
    /// The ports.
    pub ports: Vec<PortConfig>,
    /// The links.
    pub links: Vec<LinkConfig>,
    /// The rule sets.
    pub rules: Vec<RulesConfig>,
    /// The routers.
    pub routers: Vec<RouterConfig>,
    /// Prefixes that routers have routes to, each with the number of its group: routers send packets to all prefixes of a
    /// group the same way ([`RouterConfig::groups`]). Of prefixes within others only the longest counts: where a router has no
    /// way to its group, routes of the router's own apply. A large network has many routers, and as many prefixes as links.
    pub destinations: Vec<(Prefix, u32)>,
    /// The switches.
    pub switches: Vec<SwitchConfig>,
    /// The maximum number of bytes in the network, counting each frame plus 128 bytes for the engine's own
    /// records. Packets that arrive or are copied beyond this are dropped as [`DropReason::Memory`].
    pub memory: Bytes,
    /// The maximum number of links and rule sets that a packet visits before it is dropped as
    /// [`DropReason::Loop`].
    pub visits: u8,
}

impl NetworkConfig {
    /// What packets inside take at most by default.
    pub const DEFAULT_MEMORY: Bytes = Bytes::new(1 << 30);

    /// The default limits: one gibibyte, and 64 visits.
    pub fn new(seed: Seed) -> Self {
        Self {
            seed,
            ports: Vec::new(),
            links: Vec::new(),
            rules: Vec::new(),
            routers: Vec::new(),
            destinations: Vec::new(),
            switches: Vec::new(),
            memory: Self::DEFAULT_MEMORY,
            visits: 64,
        }
    }
}

/// A port.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Unique among the ports. Part of the key of random draws.
    pub name: String,
    /// Where packets that enter here go.
    pub entry: Target,
}

/// A rule set that all packets sent here pass through, and the pipes it leads to.
///
/// A pipe is a link with two lanes: the first for outgoing packets, the second for incoming ones. Both lead
/// back here ([`Target::FromPipe`]).
#[derive(Debug)]
pub struct RulesConfig {
    /// Unique among links, rule sets and routers. Part of the key of random draws.
    pub name: String,
    /// The rules.
    pub rules: RuleSetConfig,
    /// The link behind each pipe number, and the mark that packets get on the way there.
    pub pipes: Vec<(u32, PipeConfig)>,
    /// The same for queue numbers.
    pub queues: Vec<(u32, PipeConfig)>,
    /// One-pass: a packet that leaves a pipe has passed the rules.
    pub one_pass: bool,
    /// Where passed packets go: outgoing ones, incoming ones.
    pub exits: [Target; 2],
}

/// The target of a pipe or queue number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeConfig {
    /// The link.
    pub link: String,
    /// The mark that packets get: in a queue with flow sets ([`FlowSets`](crate::sched::FlowSets)), the
    /// number of the set.
    pub mark: u32,
}

/// A change of a running rule set.
#[derive(Clone, Debug)]
pub enum RulesChange {
    /// A change of the rules themselves, or of a table.
    Rules(crate::rules::RuleChange),
    /// The link of a pipe number. Without a link, packets for it are dropped; packets inside the previous
    /// link leave it normally.
    Pipe(u32, Option<PipeConfig>),
    /// The link of a queue number, likewise.
    Queue(u32, Option<PipeConfig>),
    /// The one-pass setting, for packets that leave a pipe from now on.
    OnePass(bool),
}

/// A router: forwards packets by destination, and decrements their hop limit.
#[derive(Clone, Debug, Default)]
pub struct RouterConfig {
    /// Unique among links, rule sets, routers and switches. Part of the key of random draws.
    pub name: String,
    /// Routes of its own; the longest matching prefix applies, among them and [`NetworkConfig::destinations`], and of two
    /// equal ones its own.
    pub routes: Vec<(Prefix, Route)>,
    /// Routes to groups of destinations.
    pub ways: Vec<Route>,
    /// For each group of destinations, which of `ways` leads there: one that does not exist, or no entry, if none does.
    pub groups: Arc<[u16]>,
    /// The link addresses of its interfaces, if one of them is on a switch: packets to other link addresses
    /// are then dropped. Packets from sources that give none (all zero) pass.
    pub link_addresses: Vec<LinkAddress>,
}

/// Where packets for a prefix go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// One next hop, or several with weights.
    pub ways: Vec<(Target, Weight)>,
    /// For each of them the link addresses, destination and source, that packets get; empty if no switch
    /// needs them.
    pub link_addresses: Vec<[LinkAddress; 2]>,
    /// How packets are spread over several next hops.
    pub spread: Spread,
    /// Whether this is the router itself: the hop limit is then not decremented, unless the next hop is
    /// another router.
    pub local: bool,
}

/// How packets are spread over several next hops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// By a hash of addresses, protocol and ports: a flow stays on its path. Fragments except the first are
    /// hashed with zero ports.
    #[default]
    Flow,
    /// Each packet by its own random draw.
    Packet,
}

/// A switch: forwards packets by their link addresses.
#[derive(Clone, Debug, Default)]
pub struct SwitchConfig {
    /// Unique among links, rule sets, routers and switches. Part of the key of random draws.
    pub name: String,
    /// The ports, at most 65,535.
    pub ports: Vec<SwitchPort>,
    /// Addresses known from the start and for good, each with its VLAN and port.
    pub known: Vec<(u16, LinkAddress, u16)>,
    /// How long a learned address that sends nothing is kept.
    pub ageing: Duration,
    /// How many addresses it can learn.
    pub room: u32,
}

/// A port of a switch.
#[derive(Clone, Debug)]
pub struct SwitchPort {
    /// Where packets that leave here go.
    pub exit: Target,
    /// The VLAN of packets without a tag, 1 to 4094, if the port takes any.
    pub untagged: Option<u16>,
    /// The VLANs whose packets have tags here.
    pub tagged: VlanSet,
}

/// A set of VLANs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VlanSet {
    /// No VLAN.
    #[default]
    None,
    /// These, one bit for each: see [`VlanSet::of`].
    Some(alloc::boxed::Box<[u64; 64]>),
    /// Every VLAN.
    All,
}

/// Why a network cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// Two elements or two ports have this name.
    NameTaken(String),
    /// `from` sends packets to a port, link, lane, rule set or router that does not exist.
    NoSuchTarget {
        /// The element.
        from: String,
        /// The missing target.
        target: Target,
    },
    /// The names of these two ports have the same hash, so the ports would share random draws.
    NamesCollide(String, String),
    /// More ports (65,535), links (2³¹ − 1) or lanes of a link (255) than can be numbered, a link without a
    /// lane, or a pipe with fewer than two lanes.
    TooMany(&'static str),
    /// A rule of the rule set with this name is invalid.
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
                Target::Switch { name, port } => {
                    write!(f, "`{from}` leads to port {port} of switch `{name}`, which does not exist")
                }
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

/// How a packet left the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Delivered at this port.
    Delivered(PortId),
    /// Dropped.
    Dropped {
        /// Where; `None` if the network as a whole refused it.
        at: Option<Element>,
        /// Why.
        reason: DropReason,
    },
}
