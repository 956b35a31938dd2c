//! The commands about networks that stay up.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{LinkFlags, Live};

/// The arguments of `narrows up`.
#[derive(Debug, Args)]
#[command(after_help = "\
The network stays up until Ctrl-C, SIGTERM, `narrows down` or the end of --ttl. With --detach the command returns once it is
up, and prints its name.

Examples:
  narrows up scenarios/adsl.toml --name dsl --detach
  narrows up --rate 10mbit --delay 25ms --on server 'iperf3 -s' --ttl 2h -d
  narrows up edited.toml --name dsl --replace")]
pub(crate) struct Up {
    /// The scenario file; without one, the flags describe one link
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: Option<PathBuf>,
    /// Return once the network is up, and leave it up in the background
    #[arg(long, short)]
    pub(crate) detach: bool,
    /// How long the network stays up, as in 2h [default: until it is ended]
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Option<String>,
    /// Where the network of --name is up already, change what differs, and name what only another one can have (status 1)
    #[arg(long, requires = "name")]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    #[command(flatten)]
    pub(crate) live: Live,
    /// In the background: the descriptor of whoever waits for the network
    #[arg(long, hide = true)]
    pub(crate) ready: Option<i32>,
    /// In the background: where the output goes
    #[arg(long, hide = true)]
    pub(crate) output: Option<PathBuf>,
}

/// The arguments of `narrows exec`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows exec dsl client -- ping -c 3 server
  narrows exec dsl client")]
pub(crate) struct Exec {
    /// The run, by its name or number
    #[arg(value_name = "NAME")]
    pub(crate) run: String,
    /// The host
    #[arg(value_name = "HOST")]
    pub(crate) host: String,
    /// The program to run and its arguments [default: your shell]
    #[arg(
        value_name = "CMD",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(crate) command: Vec<OsString>,
}
