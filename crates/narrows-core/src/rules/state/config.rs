//! How many, and for how long.

use crate::time::Duration;

use super::queue::Life;

/// How many dynamic rules there may be, and how long they live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateConfig {
    /// No more than so many at a time. Each takes about 200 bytes.
    pub most: u32,
    /// TCP that is being opened. What is what is in the table of the module.
    pub tcp_syn: Duration,
    /// TCP that is established.
    pub tcp_established: Duration,
    /// TCP that is closed.
    pub tcp_fin: Duration,
    /// TCP that is in any other condition.
    pub tcp_rst: Duration,
    /// UDP.
    pub udp: Duration,
    /// Other protocols.
    pub other: Duration,
}

/// The reference's lifetimes (its manual's for UDP and others, 5 s and 30 s, are not those of its code). The bound is that of
/// today's FreeBSD; the reference has 4,096.
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
