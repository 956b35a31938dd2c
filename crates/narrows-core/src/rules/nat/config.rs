//! What a translator does.

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::ops::RangeInclusive;

use super::super::RuleError;
use super::Redirect;
use crate::time::Duration;

/// What a translator does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatConfig {
    /// The outer address; `None` for the first IPv4 address of the host that the rules are on.
    pub address: Option<Ipv4Addr>,
    /// Whether a new flow gets its own port if that is free.
    pub keeps_ports: bool,
    /// The ports of new flows. At least one.
    pub ports: RangeInclusive<u16>,
    /// Whether packets that come in without a flow or a redirection of their port are denied.
    pub denies_incoming: bool,
    /// Which inner addresses are translated.
    pub inner: Inner,
    /// Whether all flows of UDP from an inner address and port have one outer port (endpoint-independent mapping, RFC
    /// 4787), to which anybody may send unless `denies_incoming` is set.
    pub udp_eim: bool,
    /// Whether packets that come in count as going out, and the other way round.
    pub reverse: bool,
    /// Whether [`Action::NatGlobal`](super::super::Action::NatGlobal) looks here, too.
    pub global: bool,
    /// Whether all flows end when the outer address changes.
    pub resets: bool,
    /// Where packets without a flow go.
    pub redirects: Vec<Redirect>,
    /// How long flows last without packets.
    pub lifetimes: Lifetimes,
    /// Maximum number of flows at a time. Each takes about 350 bytes.
    pub most: u32,
}

/// Which inner addresses are translated; others keep theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inner {
    /// All.
    #[default]
    All,
    /// Private ones (RFC 1918).
    Private,
    /// Private ones, and those of carriers (RFC 6598).
    PrivateOrShared,
}

/// How long flows last without packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// UDP.
    pub udp: Duration,
    /// Echoes and timestamps of ICMP.
    pub icmp: Duration,
    /// TCP that both sides have opened.
    pub tcp: Duration,
    /// TCP before that.
    pub tcp_opening: Duration,
    /// TCP that one side has closed.
    pub tcp_closing: Duration,
    /// TCP that was closed or reset.
    pub tcp_closed: Duration,
    /// Other protocols.
    pub other: Duration,
}

/// Those of libalias.
impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            udp: Duration::from_secs(60),
            icmp: Duration::from_secs(60),
            tcp: Duration::from_secs(86_400),
            tcp_opening: Duration::from_secs(300),
            tcp_closing: Duration::from_secs(90),
            tcp_closed: Duration::from_secs(10),
            other: Duration::from_secs(60),
        }
    }
}

impl Default for NatConfig {
    fn default() -> Self {
        Self {
            address: None,
            keeps_ports: false,
            ports: Self::PORTS,
            denies_incoming: false,
            inner: Inner::All,
            udp_eim: false,
            reverse: false,
            global: true,
            resets: false,
            redirects: Vec::new(),
            lifetimes: Lifetimes::default(),
            most: 65_536,
        }
    }
}

impl NatConfig {
    /// The ports of new flows by default.
    pub const PORTS: RangeInclusive<u16> = 32_768..=65_535;

    /// Whether there are ports for new flows and redirections.
    pub(in crate::rules) fn check(&self, nat: u32) -> Result<(), RuleError> {
        let is_empty = self.ports.is_empty() || self.redirects.iter().any(Redirect::is_empty);
        if is_empty { Err(RuleError::NoPorts { nat }) } else { Ok(()) }
    }

    /// Whether this inner address is translated.
    pub(super) fn translates(&self, inner: Ipv4Addr) -> bool {
        match self.inner {
            Inner::All => true,
            Inner::Private => inner.is_private(),
            Inner::PrivateOrShared => {
                inner.is_private() || matches!(inner.octets(), [100, second, ..] if second & 0xc0 == 64)
            }
        }
    }
}
