//! What of a link is a plain value: it counts from the next packet on, whenever it changes.
//!
//! A new one is a field here, its default, and where the link asks for it.

/// The plain values of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// Whether packets may overtake one another in the delay line.
    pub order: Order,
    /// The most packets that the delay line holds. Those in flight stay when it changes.
    pub line_limit: Option<u64>,
    /// The longest packet, and what becomes of longer ones.
    pub mtu: Option<Mtu>,
}

impl LinkSettings {
    /// Those of a link that does nothing.
    pub const PLAIN: Self = Self { order: Order::Keep, line_limit: None, mtu: None };
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self::PLAIN
    }
}

/// Whether a delay that varies may change the order of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// A packet is held back until those that entered before it have left.
    #[default]
    Keep,
    /// Packets leave when they are due.
    Allow,
}

/// The longest packet that a link takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mtu {
    /// Bytes from the network header on.
    pub bytes: u32,
    /// What becomes of a longer one.
    pub policy: MtuPolicy,
}

/// What becomes of a packet that is too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MtuPolicy {
    /// As routers do: IPv4 that may be fragmented is; the sender of any other packet is told.
    #[default]
    Fragment,
    /// The sender is told: "fragmentation needed" or "packet too big".
    Answer,
    /// It vanishes.
    BlackHole,
}
