//! Arguments of `interop`.

use std::path::PathBuf;

use clap::Args;

/// Additional help text, at the end of the help.
const HELP: &str = "\
Replaces the `sim` container of quic-interop-runner and quic-network-simulator: translates its scenario,
waits for the server named by WAITFORSERVER (host:port), if set, routes between the interfaces, and then
listens on TCP port 57832. Needs CAP_NET_ADMIN and CAP_NET_RAW only. docs/interop.md lists what differs.

Scenarios: simple-p2p, drop-rate, corrupt-rate, droplist, blackhole, rebind, tcp-cross-traffic,
udp-cross-traffic.

Examples:
  narrows interop --check 'droplist --delay=15ms --bandwidth=10Mbps --queue=25 --drops_to_server=2,3'
  SCENARIO='simple-p2p --delay=15ms --bandwidth=100Mbps --queue=25' narrows interop --logs /logs";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Interop {
    /// The scenario with its options, as one argument [default: the environment variable SCENARIO]
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// Print the scenario and its effective settings, without a run
    #[arg(long, alias = "dry-run")]
    pub(crate) check: bool,
    /// Interface on the client's side
    #[arg(long, value_name = "IF", default_value = "eth0")]
    pub(crate) left: String,
    /// Interface on the server's side
    #[arg(long, value_name = "IF", default_value = "eth1")]
    pub(crate) right: String,
    /// TCP port that listens while packets are forwarded
    #[arg(long, value_name = "PORT", default_value = "57832")]
    pub(crate) ready_port: u16,
    /// Folder for trace_node_left.pcap and trace_node_right.pcap, which tcpdump writes
    #[arg(long, value_name = "FOLDER")]
    pub(crate) logs: Option<PathBuf>,
    /// Network namespace of the interfaces: an `ip netns` name, a path, or pid:N [default: this one]
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) netns: Option<String>,
    /// Stop after this time, as in 30s [default: on SIGTERM or SIGINT]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Write a capture of packets delivered and dropped; comments give due time, lateness, drop reason
    #[arg(long, value_name = "FILE.pcapng")]
    pub(crate) capture: Option<PathBuf>,
    /// Also write the report as JSON (`-` for stdout)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}
