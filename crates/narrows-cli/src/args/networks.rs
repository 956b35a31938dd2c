//! Commands for networks that stay up.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{LinkFlags, Live};
use crate::background::Background;

/// The arguments of `narrows up`.
#[derive(Debug, Args)]
#[command(after_help = "\
The network stays up until Ctrl-C, SIGTERM, `narrows down` or the end of --ttl. With --detach the
command prints the network's name and returns once it is up. A service manager may pass a socket
(LISTEN_FDS) on which it has waited for the first client: see docs/running.md.

Examples:
  narrows up scenarios/adsl.toml --name dsl --detach
  narrows up --rate 10mbit --delay 25ms --on server 'iperf3 -s' --ttl 2h -d
  narrows up scenarios/adsl.toml --web
  narrows up edited.toml --name dsl --replace
  narrows up examples/machines/two-sites.toml --machines alpha,beta --place auto")]
pub(crate) struct Up {
    /// Scenario file; without one, the flags describe one link
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) background: Background,
    /// Take the network down after this time, as in 2h [default: never]
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Option<String>,
    /// If the network of --name is up, apply the differences; list what needs a new one (exit status 1)
    #[arg(long, requires = "name")]
    pub(crate) replace: bool,
    /// Serve the network's page and metrics, as `narrows web` does
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true, conflicts_with = "detach",
        default_missing_value = crate::web::ADDRESS)]
    pub(crate) web: Option<SocketAddr>,
    /// Run the scenario across these machines, reached by ssh: alpha,beta; addresses between them as in alpha=10.0.0.1
    #[arg(long, value_name = "MACHINES", value_delimiter = ',', requires = "scenario", conflicts_with_all = [
        "detach", "replace", "web", "on", "host", "record", "capture", "series", "packets", "internet", "traffic",
        "backend", "trains", "cpu", "wait", "priority", "shards", "max_lateness", "labels", "logs",
    ])]
    pub(crate) machines: Vec<String>,
    /// Which hosts go where: those of the scenario's `machine` keys, or with auto also those without one
    #[arg(long, value_name = "HOW", requires = "machines", default_value = "given")]
    pub(crate) place: Place,
    /// Command that starts an agent, with the machine's name after it [default: ssh with keepalives, without questions]
    #[arg(long, value_name = "COMMAND", requires = "machines")]
    pub(crate) ssh: Option<String>,
    /// By how much the network between the machines may exceed its measured delay before the run counts as not accurate
    #[arg(long, value_name = "TIME", requires = "machines", default_value = "1ms")]
    pub(crate) underlay_tolerance: String,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    #[command(flatten)]
    pub(crate) live: Live,
}

/// Where the hosts of a scenario across machines go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    /// Every host says it
    Given,
    /// Hosts that do not say it are placed so that little traffic crosses between machines
    Auto,
}

/// The arguments of `narrows exec`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows exec dsl client -- ping -c 3 server
  narrows exec dsl client")]
pub(crate) struct Exec {
    /// Run, by name or number
    #[arg(value_name = "NAME")]
    pub(crate) run: String,
    /// Host
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// Program to run, and its arguments [default: your shell]
    #[arg(
        value_name = "CMD",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(crate) command: Vec<OsString>,
}
