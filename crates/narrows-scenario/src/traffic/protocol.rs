//! IP protocols of traffic.

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// Whether packets of an IP protocol have ports: TCP, UDP, DCCP, SCTP and UDP-Lite.
pub(super) const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | 33 | 132 | 136)
}
