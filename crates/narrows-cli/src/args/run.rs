//! Arguments of `run`, `shell` and `up`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum, ValueHint};
use narrows_live::run_name::RunName;

use super::LinkFlags;
use super::means::{Cabling, Capture, Pace, Series};
use super::offered::Offered;
use super::virtual_time::VirtualTime;
use crate::report::ReportArgs;

/// Additional help text, at the end of the help.
const ENVIRONMENT_HELP: &str = "\
Environment of programs in the run:
  NARROWS_SERVER, NARROWS_SERVER6  the address of the host at the other end
  NARROWS_CLIENT, NARROWS_CLIENT6  the address of the host in which CMD runs
  NARROWS_HOST_NAME, …6            the address of each host, by its name in capitals
  NARROWS_FEED, …_LINK_UP_NAME     the socket of the only feed; that of each feed, by link and name in capitals

Examples:
  narrows run --rate 10mbit --delay 25ms --loss 1% -- sh -c 'ping -c 5 $NARROWS_SERVER'
  narrows run --rate 1.5mbit/0.5mbit --on server 'iperf3 -s -1' -- sh -c 'iperf3 -c $NARROWS_SERVER'
  narrows run --rate 10mbit --delay 5ms --traffic up:constant=5mbit --on server 'iperf3 -s -1' -- sh -c 'iperf3 -c $NARROWS_SERVER'
  narrows run scenarios/adsl.toml --record run.log -- sh -c 'ping -c 5 $NARROWS_SERVER'";

#[derive(Debug, Args)]
#[command(after_help = ENVIRONMENT_HELP)]
pub(crate) struct Run {
    /// Scenario file; without one, the flags describe one link
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    #[command(flatten)]
    pub(crate) live: Live,
    #[command(flatten)]
    pub(crate) probes: Probes,
    #[command(flatten)]
    pub(crate) virtual_time: VirtualTime,
    /// Program to run, and its arguments
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// The program's own measurement.
#[derive(Debug, Args)]
#[command(next_help_heading = "Probes")]
pub(crate) struct Probes {
    /// Send UDP probes both ways and report one-way delay and loss; without CMD for 10 s
    #[arg(
        long,
        value_name = "PER SECOND",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "100",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub(crate) probe: Option<u32>,
    /// DSCP of probes: a name such as ef, or a number [default: 0]
    #[arg(long, value_name = "DSCP", requires = "probe")]
    pub(crate) probe_dscp: Option<String>,
    /// IP length of probes
    #[arg(
        long,
        value_name = "BYTES",
        requires = "probe",
        default_value_t = narrows_live::probe::LENGTH,
        value_parser = clap::value_parser!(u16).range(i64::from(narrows_live::probe::LENGTH)..=1500)
    )]
    pub(crate) probe_length: u16,
    /// UDP port of probes
    #[arg(
        long,
        value_name = "PORT",
        requires = "probe",
        default_value_t = narrows_live::probe::PORT,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub(crate) probe_port: u16,
    /// Send ECN-capable probes (ECT(0)): queues mark instead of drop, and the report counts marks
    #[arg(long, requires = "probe")]
    pub(crate) probe_ecn: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows shell --delay 100ms --internet
  narrows shell scenarios/adsl.toml --on server 'iperf3 -s'")]
pub(crate) struct Shell {
    /// Scenario file; without one, the flags describe one link
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    #[command(flatten)]
    pub(crate) live: Live,
    #[command(flatten)]
    pub(crate) virtual_time: VirtualTime,
}

/// What a run in real time may be told besides its network.
#[derive(Debug, Args)]
#[command(next_help_heading = "The run")]
pub(crate) struct Live {
    /// Name of the run, for --run: letters, digits, hyphens [default: a free name such as quiet-otter]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<RunName>,
    /// Override a value of the scenario, as in --set access.down.rate=2mbit; repeatable
    #[arg(long, value_name = "LINK.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Add cross traffic between the first two hosts: constant=5mbit, down:poisson=500/s, aimd, or a `[[traffic]]`
    /// table; repeatable
    #[arg(long, value_name = "KIND=VALUE")]
    pub(crate) traffic: Vec<String>,
    /// Leave out the traffic of the scenario file
    #[arg(long)]
    pub(crate) no_traffic: bool,
    /// Host that runs CMD [default: the scenario's first]
    #[arg(long, value_name = "HOST", value_parser = Offered::Hosts, hide_possible_values = true)]
    pub(crate) host: Option<String>,
    /// Start a program in another host first, as in --on server "iperf3 -s"; it ends with the run. Repeatable:
    /// all start together, and CMD waits until they listen
    #[arg(long, value_names = ["HOST", "COMMAND"], num_args = 2, action = clap::ArgAction::Append)]
    pub(crate) on: Vec<String>,
    /// How long CMD waits for programs of --on to listen on a TCP or UDP port; 0s: do not wait
    #[arg(long, value_name = "TIME", default_value = "2s", requires = "on")]
    pub(crate) on_timeout: String,
    /// Prefix output lines of --on programs with their host, as `[server]`; auto: in a terminal
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) labels: Labels,
    /// Write the output of --on programs to DIR/HOST.log
    #[arg(long, value_name = "DIR", requires = "on")]
    pub(crate) logs: Option<PathBuf>,
    /// Seed of all random draws [default: the scenario's, or 1]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Connect the hosts to the Internet through the far end and NAT on this host
    #[arg(long)]
    pub(crate) internet: bool,
    /// Record the input log; `narrows sim --replay FILE` reproduces the verdict of every packet
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Record whole packets instead of their first 128 bytes
    #[arg(long, requires = "record")]
    pub(crate) record_whole: bool,
    #[command(flatten)]
    pub(crate) capture: Capture,
    #[command(flatten)]
    pub(crate) series: Series,
    #[command(flatten)]
    pub(crate) cabling: Cabling,
    #[command(flatten)]
    pub(crate) pace: Pace,
    /// Threads for independent components of the network; auto: as many as the host allows or --cpu names
    #[arg(long, value_name = "N", default_value = "auto")]
    pub(crate) shards: Shards,
    /// Packet sockets of the hosts' cables: one each (own), or one for all of a packet thread (shared), which takes less
    /// time per packet if there are many; auto: shared for more than 32
    #[arg(long, value_enum, default_value_t, help_heading = "Packet I/O")]
    pub(crate) sockets: Sockets,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// `--labels`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Labels {
    Auto,
    Always,
    Never,
}

/// `--sockets`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sockets {
    #[default]
    Auto,
    Own,
    Shared,
}

/// `--shards`: maximum number of shards; `None` for `auto`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shards(pub(crate) Option<usize>);

impl FromStr for Shards {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(number @ 1..=1024) => Ok(Self(Some(number))),
            _ if text == "auto" => Ok(Self(None)),
            _ => Err("expected a number from 1 to 1024, or auto".into()),
        }
    }
}
