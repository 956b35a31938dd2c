//! The plain values of a link: a change applies from the next packet on.
//!
//! To add one, add a field here, its default, and the code in the link that reads it.

/// The plain values of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// Whether packets may overtake each other in the delay line.
    pub order: Order,
    /// The maximum number of packets in the delay line. Packets in flight stay when it changes.
    pub line_limit: Option<u64>,
    /// The MTU, and the policy for longer packets.
    pub mtu: Option<Mtu>,
}

impl LinkSettings {
    /// The values of a link that does nothing.
    pub const PLAIN: Self = Self { order: Order::Keep, line_limit: None, mtu: None };
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self::PLAIN
    }
}

/// Whether a varying delay may reorder packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// A packet is delayed until the packets that entered before it have left.
    #[default]
    Keep,
    /// Packets leave when they are due.
    Allow,
}

/// The MTU of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mtu {
    /// Bytes from the network header on.
    pub bytes: u32,
    /// The policy for longer packets.
    pub policy: MtuPolicy,
}

/// The policy for packets longer than the MTU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MtuPolicy {
    /// As routers do: fragment IPv4 packets without DF; for all others notify the sender.
    #[default]
    Fragment,
    /// Notify the sender: "fragmentation needed" or "packet too big".
    Answer,
    /// Drop silently.
    BlackHole,
}
