//! The ends of a link: `web -> db`.

use std::fmt;

use narrows_io::address::IpPrefix;

/// One end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A service.
    Service(String),
    /// Every service.
    Any,
    /// Addresses outside the project.
    Network(IpPrefix),
}

/// A direction between two ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Where packets come from.
    pub from: End,
    /// Where they go.
    pub to: End,
}

impl End {
    pub(super) fn parse(text: &str) -> Self {
        match (text, network(text)) {
            ("*", _) => Self::Any,
            (_, Some(network)) => Self::Network(network),
            (service, None) => Self::Service(service.into()),
        }
    }

    /// Whether this end is, or includes, the service.
    pub fn covers(&self, service: &str) -> bool {
        match self {
            Self::Service(name) => name == service,
            Self::Any => true,
            Self::Network(_) => false,
        }
    }

    /// Whether it is this service by name: more than [`End::Any`].
    fn names(&self) -> bool {
        matches!(self, Self::Service(_))
    }
}

impl Pair {
    /// Whether the pair is for packets between these services.
    pub fn covers(&self, from: &str, to: &str) -> bool {
        self.from.covers(from) && self.to.covers(to)
    }

    /// Of several pairs for the same packets, the one with the highest rank counts: named ends go before `*`, and
    /// the source before the destination.
    pub fn rank(&self) -> u8 {
        u8::from(self.from.names()) * 2 + u8::from(self.to.names())
    }
}

/// An address, or a network such as `10.0.0.0/8`.
fn network(text: &str) -> Option<IpPrefix> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: std::net::IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.unwrap_or(most);
    (length <= most).then(|| IpPrefix::new(address, length))
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(name) => f.write_str(name),
            Self::Any => f.write_str("*"),
            Self::Network(network) => write!(f, "{}/{}", network.address, network.length),
        }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}
