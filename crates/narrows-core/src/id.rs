//! What ports and elements of a network are known by, inside the engine and outside.

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
pub struct LinkId(pub(crate) u32);

impl LinkId {
    /// Its number among the links.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// A set of rules. Sets are numbered in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RulesId(pub(crate) u32);

impl RulesId {
    /// Its number among the sets of rules.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// A router. Routers are numbered in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouterId(pub(crate) u32);

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
