//! The command line.

mod inline;
mod itself;
mod link_keys;
mod means;
mod networks;
mod offered;
mod run;
mod virtual_time;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

use crate::json::Json;
use crate::report::ReportArgs;
pub(crate) use inline::{Attach, Bridge, DirectionName, FailName, Inline};
pub(crate) use itself::{Completions, Man, ShellName};
use link_keys::LinkKeys;
pub(crate) use means::{BackendName, Cabling, Capture, Pace, RunBefore, WaitBy};
pub(crate) use networks::{Exec, Up};
use offered::Offered;
pub(crate) use run::{Labels, Live, Probes, Run, Shell};
pub(crate) use virtual_time::{VirtualTime, WallClock};

/// The version, and the commit that it is made of.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("NARROWS_COMMIT"), ")");

/// Puts a modelled network between unmodified programs, on real packets in real time or in exact virtual time.
#[derive(Debug, Parser)]
#[command(
    name = "narrows",
    version = VERSION,
    max_term_width = 100,
    propagate_version = true,
    arg_required_else_help = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program behind the network and report what it met
    Run(Run),
    /// The same with an interactive shell; shells nest
    Shell(Shell),
    /// Bring a network up that stays up, in the foreground or in the background
    Up(Up),
    /// List the runs that are going on, or the hosts of one
    Ls(crate::ls::Ls),
    /// Run a program, or a shell, in a host of a run
    Exec(Exec),
    /// End runs in order, and print what they reported
    Down(crate::down::Down),
    /// Put the network between two existing interfaces, transparent at layer 2
    Bridge(Bridge),
    /// Put the network onto an interface in use, of this host or of a container
    Attach(Attach),
    /// Run a scenario in virtual time: deterministic, as fast as the processor goes
    Sim(Sim),
    /// Validate a scenario and show its effective settings
    Check(Check),
    /// Change links of a run while it runs
    Set(Set),
    /// Say what happens to a run, as it happens: changes, steps, lateness, feeds
    Events(crate::events::ShowEvents),
    /// Say what makes one scenario of another, and how much of it a run can have while it goes on
    Diff(crate::diff::Diff),
    /// Print the report of a run as it stands
    Stats(Stats),
    /// Show the report of a run that has ended, in full
    Report(crate::report::ShowReport),
    /// Stream delays into a feed of a run
    Feed(crate::feed::Feed),
    /// Convert, describe (info) and draw (plot) traces of rate, delay, loss, queue
    #[command(subcommand)]
    Trace(crate::trace::TraceCommand),
    /// Make and describe (info) patterns of losses, bit errors, delays, rates
    #[command(subcommand)]
    Pattern(crate::pattern::PatternCommand),
    /// Describe (info) and draw (plot) link profiles, Dummynet's extra air time
    #[command(subcommand)]
    Profile(crate::profile::ProfileCommand),
    /// Show links of published measurements, with their sources
    #[command(subcommand)]
    Preset(crate::preset::PresetCommand),
    /// Measure a real path into a trace, or drive a link with what is measured
    Probe(crate::probe::Probe),
    /// Measure what schedulers cost, whether they keep their bounds, how they compare
    #[command(subcommand)]
    Sched(crate::sched::Sched),
    /// Published evaluations of schedulers: what was here is elsewhere, which it says
    #[command(hide = true)]
    Lab {
        /// What it was asked for
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measure what accuracy this host can give
    Calibrate(crate::calibrate::Calibrate),
    /// Explain tc's commands (check), or apply them to a run: qdisc, class
    Tc(crate::tc::Tc),
    /// Explain ipfw's scripts (check), or apply its commands to a run
    Ipfw(crate::ipfw::Ipfw),
    /// Fit distributions to measured delays, make tables of them, draw them
    #[command(subcommand)]
    Dist(crate::dist::Dist),
    /// Build, describe (info) and remove the guest kernel of exact virtual time
    #[command(subcommand)]
    Kernel(crate::kernel::KernelCommand),
    /// Say what this host can do, and what it lacks
    Doctor(crate::doctor::Doctor),
    /// Remove what killed runs left behind
    #[command(after_help = "Examples:\n  narrows clean")]
    Clean,
    /// Write the manual: a page for each command
    Man(Man),
    /// Print completions for a shell
    Completions(Completions),
    /// The supervisor of a guest: started by `run --virtual` alone
    #[command(hide = true)]
    GuestSupervisor {
        /// The descriptor that its plan is in
        descriptor: i32,
    },
    /// The first process of a guest
    #[command(hide = true)]
    GuestInit {
        /// What guest kernels say to it besides, such as `console=tty0`
        #[arg(allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

/// The link when there is no scenario file: one link between `client` and `server`. Values may begin with a hyphen: the
/// scenario's parser says what is wrong with a negative one.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The link, without a scenario file (DOWN/UP, or one value for both ways)")]
pub(crate) struct LinkFlags {
    #[command(flatten)]
    pub(crate) keys: LinkKeys,
    /// A script of tc's commands for the link: the first device is the client's, a second one the server's
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ipfw", "client", "server"])]
    pub(crate) tc: Option<PathBuf>,
    /// A script of ipfw's commands in place of a link: `out` is from the client to the server
    #[arg(long, value_name = "FILE", conflicts_with_all = ["client", "server"])]
    pub(crate) ipfw: Option<PathBuf>,
    /// Whose an interface is that rules name in `recv`, `xmit` or `via`: em0=client or em0=server [default: one is the client's]
    #[arg(long = "interface", value_name = "NAME=HOST", requires = "ipfw")]
    pub(crate) interfaces: Vec<String>,
    /// Only what the client's programs exchange with these ports of others crosses a link: 22,80 or 5000-5010
    #[arg(long, value_name = "PORTS", conflicts_with = "server")]
    pub(crate) client: Option<String>,
    /// Only what others exchange with these ports of the client crosses a link
    #[arg(long, value_name = "PORTS")]
    pub(crate) server: Option<String>,
    /// The link towards the client of --client or --server: a rate, or ipfw's words for a pipe, as in 'bw 6Mbit/s delay 10ms'
    #[arg(long = "in", value_name = "PIPE")]
    pub(crate) incoming: Option<String>,
    /// The link from the client
    #[arg(long = "out", value_name = "PIPE")]
    pub(crate) outgoing: Option<String>,
}

impl LinkFlags {
    /// Whether any of them is given.
    pub(crate) fn is_given(&self) -> bool {
        let rules = [&self.client, &self.server, &self.incoming, &self.outgoing];
        self.keys != LinkKeys::default()
            || self.tc.is_some()
            || self.ipfw.is_some()
            || rules.into_iter().any(Option::is_some)
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows sim scenarios/adsl.toml --json
  narrows sim --rate 10mbit --delay 25ms --loss 1% --traffic aimd --duration 1min
  narrows sim --rate 10mbit --netem 'delay 20ms 5ms' --traffic '{ poisson = \"500/s\", length = \"200 bytes\" }' --packets packets.csv
  narrows sim --replay run.log")]
pub(crate) struct Sim {
    /// The scenario file, which describes the traffic, too; without one, the flags describe one link
    #[arg(conflicts_with = "replay", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: Option<PathBuf>,
    /// Give the packets of a recorded run their verdicts again, and compare: exit status 1 if any differs
    #[arg(long, value_name = "LOG")]
    pub(crate) replay: Option<PathBuf>,
    /// Change a value of the scenario beforehand, as in --set access.down.rate=2mbit; any number of times
    #[arg(long, value_name = "LINK.KEY=VALUE", conflicts_with = "replay")]
    pub(crate) set: Vec<String>,
    /// The seed of every random draw [default: the scenario's, or 1]
    #[arg(long, conflicts_with = "replay")]
    pub(crate) seed: Option<u64>,
    /// When to end, in virtual time [default: the scenario's, or when the traffic ends; by flags 10s]
    #[arg(long, value_name = "TIME", conflicts_with = "replay")]
    pub(crate) duration: Option<String>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    /// Write one row for each packet: arrival, verdict, queueing time, departure
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) packets: Option<PathBuf>,
    /// Write time series of backlog, sojourn and throughput, per link and flow
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) series: Option<PathBuf>,
    /// The interval of the time series
    #[arg(long, value_name = "TIME", default_value = "100ms", requires = "series")]
    pub(crate) interval: String,
    /// Write a capture of what left the network, each drop with its reason in the packet's comment
    #[arg(long, value_name = "FILE.pcapng")]
    pub(crate) capture: Option<PathBuf>,
    // Under the heading of these flags stands what comes behind them.
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    /// Traffic between the first two hosts, both ways or up: or down: alone, as in constant=9mbit, down:poisson=500/s, aimd, or
    /// a table as of `[[traffic]]`; any number of times [default by flags: an even pace at nine tenths of the rate]
    #[arg(long, value_name = "KIND=VALUE", conflicts_with = "replay")]
    pub(crate) traffic: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows check scenarios/adsl.toml
  narrows check --rate 10mbit --delay 25ms --json | jq '.links[].queue'
  narrows check --schema > narrows.schema.json")]
pub(crate) struct Check {
    /// The scenario file; without one, the flags describe one link
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: Option<PathBuf>,
    /// Change a value of the scenario beforehand, as in --set access.down.rate=2mbit; any number of times
    #[arg(long, value_name = "LINK.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) json: Json,
    /// Print everything, also where there are so many links that it would be a table of them
    #[arg(long)]
    pub(crate) full: bool,
    /// Print the JSON Schema of scenario files instead
    #[arg(long)]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows set link.down.rate=2mbit
  narrows set access.delay=100ms access.loss=1% --run 4711")]
pub(crate) struct Set {
    /// What to change, all at one instant: LINK.KEY=VALUE or LINK.DIRECTION.KEY=VALUE
    #[arg(required_unless_present = "to", value_name = "LINK.KEY=VALUE", value_parser = Offered::Keys, hide_possible_values = true)]
    pub(crate) assignments: Vec<String>,
    /// Change what differs from this scenario, all at one instant
    #[arg(long, value_name = "FILE", conflicts_with = "assignments")]
    pub(crate) to: Option<PathBuf>,
    /// With --to: change what can be changed, and name on the standard error what only another run can have
    #[arg(long, requires = "to")]
    pub(crate) partly: bool,
    /// Which run, by its name or number [default: the only one, or the one that this shell is inside of]
    #[arg(long)]
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows stats
  narrows stats --run dsl --watch
  narrows stats --json | jq '.directions[] | {link, dropped_packets}'")]
pub(crate) struct Stats {
    /// Show each second what the links do: rates over the last second and ten seconds, what waits, what is configured
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// With --watch: end after so many times [default: when the run ends]
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: Option<u32>,
    #[command(flatten)]
    pub(crate) json: Json,
    /// Which run, by its name or number [default: the only one, or the one that this shell is inside of]
    #[arg(long)]
    pub(crate) run: Option<String>,
}
