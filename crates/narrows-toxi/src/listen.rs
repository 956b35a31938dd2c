//! Addresses of proxies: `HOST:PORT`, of UDP with `udp://` before it.

use std::io;
use std::net::SocketAddr;

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    Tcp,
    Udp,
}

/// What an address of UDP starts with.
const UDP: &str = "udp://";

/// Splits an address into its network and `HOST:PORT`.
pub(crate) fn split(address: &str) -> (Network, &str) {
    match address.strip_prefix(UDP) {
        Some(rest) => (Network::Udp, rest),
        None => (Network::Tcp, address),
    }
}

/// `HOST:PORT` of this network, as the API shows it.
pub(crate) fn join(network: Network, address: SocketAddr) -> String {
    match network {
        Network::Tcp => address.to_string(),
        Network::Udp => format!("{UDP}{address}"),
    }
}

/// Looks an address up, IPv4 first. Without an address, a free port of the loopback interface; without a host, all
/// interfaces.
pub(crate) async fn listen_address(text: &str) -> io::Result<SocketAddr> {
    match text {
        "" => Ok(SocketAddr::from(([127, 0, 0, 1], 0))),
        text if text.starts_with(':') => look_up(&format!("[::]{text}")).await,
        text => look_up(text).await,
    }
}

/// Looks an address up, IPv4 first.
pub(crate) async fn look_up(text: &str) -> io::Result<SocketAddr> {
    let wrong = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
    let (_, port) = text.rsplit_once(':').ok_or_else(|| wrong("missing port in address"))?;
    port.parse::<u16>().map_err(|_| wrong("invalid port"))?;
    let found = tokio::net::lookup_host(text).await.map_err(|error| match error.raw_os_error() {
        Some(_) => error,
        None => wrong("no such host"),
    })?;
    let found: Vec<SocketAddr> = found.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"))
}
