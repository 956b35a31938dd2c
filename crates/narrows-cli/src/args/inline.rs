//! What `bridge` and `attach` may be told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use narrows_live::run_name::RunName;

use super::LinkFlags;
use super::means::{Cabling, Capture, Pace};
use crate::report::ReportArgs;

/// What else is to be known of a bridge, at the end of the help.
const BRIDGE_HELP: &str = "\
Up is from IF1 to IF2: IF1 stands for the first host of a scenario, and for the client of the flags. Every frame crosses,
whatever its protocol; offloads of both interfaces are switched off meanwhile and put back after it (after kill -9, by
narrows clean).

Examples:
  narrows bridge eth1 eth2 --rate 10mbit --delay 25ms
  narrows bridge veth0 veth1 --netns lab --netem 'delay 100ms loss 1%' --duration 30s
  narrows bridge eth1 eth2 net.toml --record run.log";

#[derive(Debug, Args)]
#[command(after_help = BRIDGE_HELP)]
pub(crate) struct Bridge {
    /// The interface that stands for the client
    #[arg(value_name = "IF1")]
    pub(crate) first: String,
    /// The interface that stands for the server
    #[arg(value_name = "IF2")]
    pub(crate) second: String,
    /// The scenario file, with two ends; without one, the flags describe one link
    pub(crate) scenario: Option<PathBuf>,
    /// The namespace that the interfaces are in: a name as of `ip netns`, a path, or pid:N [default: this one]
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) netns: Option<String>,
    #[command(flatten)]
    pub(crate) inline: Inline,
}

/// What else is to be known of an attachment, at the end of the help.
const ATTACH_HELP: &str = "\
Up is what the programs on this side of IF send, down is what they receive: they stand for the first host of a scenario, and
for the client of the flags. IF stays as it is, connections that cross it go on, and when narrows ends, even by kill -9,
frames take the direct way again; with --fail closed none passes then until `narrows clean`, or the next run on IF. Needs
root and Linux 6.6.

Examples:
  narrows attach eth0 --rate 10mbit --delay 25ms
  narrows attach eth0 --container web --direction out --loss 1% --duration 30s
  narrows attach eth0 --pid 4711 net.toml --record run.log --fail closed";

#[derive(Debug, Args)]
#[command(after_help = ATTACH_HELP)]
pub(crate) struct Attach {
    /// The interface
    #[arg(value_name = "IF")]
    pub(crate) interface: String,
    /// The scenario file, with two ends; without one, the flags describe one link
    pub(crate) scenario: Option<PathBuf>,
    /// Which frames cross the network: what is sent, what is received, or both
    #[arg(long, value_enum, default_value_t)]
    pub(crate) direction: DirectionName,
    /// The namespace that the interface is in: a name as of `ip netns`, a path, or pid:N [default: this one]
    #[arg(long, value_name = "NAMESPACE", conflicts_with_all = ["pid", "container"])]
    pub(crate) netns: Option<String>,
    /// The process whose namespace the interface is in; the run ends with it
    #[arg(long, value_name = "N", conflicts_with = "container", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
    /// The container of Docker or Podman that the interface is in; the run ends with it
    #[arg(long, value_name = "NAME")]
    pub(crate) container: Option<String>,
    /// What passes when narrows is gone without having ended in order: everything (open), or nothing in --direction (closed)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) fail: FailName,
    #[command(flatten)]
    pub(crate) inline: Inline,
}

/// `--direction`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum DirectionName {
    In,
    Out,
    #[default]
    Both,
}

/// `--fail`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailName {
    #[default]
    Open,
    Closed,
}

/// What a network may be told that stands at interfaces which exist already.
#[derive(Debug, Args)]
pub(crate) struct Inline {
    /// What to call the run, for --run: letters, digits and hyphens [default: a free name such as quiet-otter]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<RunName>,
    /// How long, as in 30s [default: until Ctrl-C]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Change a value of the scenario beforehand, as in --set access.down.rate=2mbit; any number of times
    #[arg(long, value_name = "LINK.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The seed of every random draw [default: the scenario's, or 1]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Keep the input log: `narrows sim --replay FILE` gives the same verdict for every packet
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Keep whole packets in the log, instead of their first 128 bytes
    #[arg(long, requires = "record")]
    pub(crate) record_whole: bool,
    #[command(flatten)]
    pub(crate) capture: Capture,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    #[command(flatten)]
    pub(crate) cabling: Cabling,
    #[command(flatten)]
    pub(crate) pace: Pace,
}
