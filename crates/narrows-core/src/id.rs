//! Ids of ports and network elements, used inside and outside the engine.

/// A port, where packets enter and leave the network. Ports are numbered by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(u16);

impl PortId {
    pub(crate) const fn new(index: u16) -> Self {
        Self(index)
    }

    /// The port's number.
    pub const fn index(self) -> u16 {
        self.0
    }
}

/// A link. Configured links are numbered by name; links added later, in the order they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

impl LinkId {
    /// The link's number.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// A rule set. Rule sets are numbered by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RulesId(pub(crate) u32);

impl RulesId {
    /// The rule set's number.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// A router. Routers are numbered by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouterId(pub(crate) u32);

impl RouterId {
    /// The router's number.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// A switch. Switches are numbered by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub(crate) u32);

impl SwitchId {
    /// The switch's number.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// A part of the network that may drop packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// A link. A link created on first use counts as the link it is an instance of.
    Link(LinkId),
    /// A rule set.
    Rules(RulesId),
    /// A router.
    Router(RouterId),
    /// A switch.
    Switch(SwitchId),
}

impl Element {
    const SWITCHES: u32 = 1 << 30;
    const RULES: u32 = 1 << 31;
    const ROUTERS: u32 = 3 << 30;

    /// A number for records, unique across all kinds: links from 0, switches from 2³⁰, rule sets from 2³¹,
    /// routers from 3·2³⁰.
    pub const fn number(self) -> u32 {
        match self {
            Self::Link(LinkId(number)) => number,
            Self::Rules(RulesId(number)) => Self::RULES | number,
            Self::Router(RouterId(number)) => Self::ROUTERS | number,
            Self::Switch(SwitchId(number)) => Self::SWITCHES | number,
        }
    }

    /// The element with this number, whether or not it exists in the network.
    pub const fn from_number(number: u32) -> Self {
        match number & Self::ROUTERS {
            Self::ROUTERS => Self::Router(RouterId(number & !Self::ROUTERS)),
            Self::RULES => Self::Rules(RulesId(number & !Self::ROUTERS)),
            Self::SWITCHES => Self::Switch(SwitchId(number & !Self::ROUTERS)),
            _ => Self::Link(LinkId(number)),
        }
    }
}
