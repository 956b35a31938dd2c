//! Limits and lifetimes.

use crate::time::Duration;

use super::queue::Life;

/// The maximum number of dynamic rules, and their lifetimes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateConfig {
    /// Maximum number at a time. Each takes about 200 bytes.
    pub most: u32,
    /// TCP being opened. The module's table defines the conditions.
    pub tcp_syn: Duration,
    /// Established TCP.
    pub tcp_established: Duration,
    /// TCP being closed.
    pub tcp_fin: Duration,
    /// TCP in any other condition.
    pub tcp_rst: Duration,
    /// UDP.
    pub udp: Duration,
    /// Other protocols.
    pub other: Duration,
}

/// The reference's lifetimes. (Its manual gives 5 s and 30 s for UDP and others, which differ from its code.) The
/// maximum is that of present FreeBSD; the reference has 4,096.
impl Default for StateConfig {
    fn default() -> Self {
        Self {
            most: 16_384,
            tcp_syn: Duration::from_secs(20),
            tcp_established: Duration::from_secs(300),
            tcp_fin: Duration::from_secs(1),
            tcp_rst: Duration::from_secs(1),
            udp: Duration::from_secs(10),
            other: Duration::from_secs(5),
        }
    }
}

impl StateConfig {
    pub(super) const fn lifetime(&self, life: Life) -> Duration {
        match life {
            Life::TcpSyn => self.tcp_syn,
            Life::TcpEstablished => self.tcp_established,
            Life::TcpFin => self.tcp_fin,
            Life::TcpRst => self.tcp_rst,
            Life::Udp => self.udp,
            Life::Other => self.other,
        }
    }
}
