//! The command line.

mod doctor;
mod inline;
mod interop;
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
pub(crate) use doctor::{AskedMachines, Doctor, Purpose};
pub(crate) use inline::{Attach, Bridge, DirectionName, Inline, Route};
pub(crate) use interop::Interop;
pub(crate) use itself::{Completions, Man, ShellName};
use link_keys::LinkKeys;
pub(crate) use means::{BackendName, Cabling, Capture, Pace, RunBefore, Series, WaitBy};
pub(crate) use networks::{Exec, Place, Up};
use offered::Offered;
pub(crate) use run::{Labels, Live, Probes, Run, Shell, Sockets};
pub(crate) use virtual_time::{VirtualTime, WallClock};

/// The version, and the commit that it was built from.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("NARROWS_COMMIT"), ")");

/// Network path emulator: puts a modelled network between unmodified programs, in real or virtual time.
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
    /// Run a program behind an emulated network and report what happened
    Run(Run),
    /// Open an interactive shell behind an emulated network; shells nest
    Shell(Shell),
    /// Bring up a network that stays up, in the foreground or background
    Up(Up),
    /// List runs, or the hosts of one
    Ls(crate::ls::Ls),
    /// Run a program or a shell in a host of a run
    Exec(Exec),
    /// End runs and print their summaries
    Down(crate::down::Down),
    /// Bridge two existing interfaces through an emulated network (layer 2)
    Bridge(Bridge),
    /// Route between two existing interfaces through an emulated network (layer 3)
    Route(Route),
    /// Stand in for the network simulator of quic-interop-runner
    Interop(Interop),
    /// Attach an emulated network to an interface in use, of this host or a container
    Attach(Attach),
    /// Attach emulated networks to containers as they start, by their labels
    #[command(subcommand)]
    Docker(crate::docker::DockerCommand),
    /// Attach emulated networks to the services of a compose project, by its file
    Compose(crate::compose::Compose),
    /// Attach emulated networks to the links of a containerlab lab, by its topology file
    Clab(crate::clab::Clab),
    /// Attach emulated networks to the pods of Kubernetes as they start: install and check the CNI plugin
    #[command(subcommand)]
    Cni(crate::cni::CniCommand),
    /// Run a scenario in virtual time: deterministic, faster than real time
    Sim(Sim),
    /// Validate a scenario and show its effective settings
    Check(Check),
    /// Change links of a running network
    Set(Set),
    /// Stream the events of a run: changes, timeline steps, lateness, feeds
    Events(crate::events::ShowEvents),
    /// Stream the packets of a run: who sent them, what happened to them and why
    Packets(crate::packets::ShowPackets),
    /// Show the differences between two scenarios, or a run and a scenario
    Diff(crate::diff::Diff),
    /// Watch a run live in the terminal and change it
    Top(crate::top::Top),
    /// Watch runs live in the browser, change them, export metrics
    Web(crate::web::Web),
    /// Show the current state and counters of a run
    Stats(Stats),
    /// Show the full report of a finished run
    Report(crate::report::ShowReport),
    /// Compare two runs: totals, and means with confidence intervals
    Compare(crate::compare::Compare),
    /// Stream per-packet delays into a feed of a run
    Feed(crate::feed::Feed),
    /// Convert, describe (info) and plot traces of rate, delay, loss, queue
    #[command(subcommand)]
    Trace(crate::trace::TraceCommand),
    /// Make and describe (info) patterns of loss, bit errors, delay, rate
    #[command(subcommand)]
    Pattern(crate::pattern::PatternCommand),
    /// Describe (info) and plot link profiles (Dummynet's extra air time)
    #[command(subcommand)]
    Profile(crate::profile::ProfileCommand),
    /// Show link presets from published measurements, with sources
    #[command(subcommand)]
    Preset(crate::preset::PresetCommand),
    /// Plot a time series of a run (--series)
    Plot(crate::plot::Plot),
    /// Run a scenario over a grid of values and many seeds, on all processors
    Sweep(crate::sweep::Sweep),
    /// Write a scenario of a common topology, or of a network in a file
    Topology(crate::topology::Topology),
    /// Serve Toxiproxy's HTTP API: proxies of TCP and UDP with toxics
    Toxi(crate::toxi::Toxi),
    /// Measure a real path: delay, loss, rate; as a trace, a scenario, or live into a link
    Probe(crate::probe::Probe),
    /// Benchmark schedulers, check their proven bounds, compare them on traffic
    #[command(subcommand)]
    Sched(crate::sched::Sched),
    /// Print where the published evaluations of schedulers moved to
    #[command(hide = true)]
    Lab {
        /// What it was asked for
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measure the accuracy this host can reach
    Calibrate(crate::calibrate::Calibrate),
    /// Explain tc scripts (check), or apply tc commands to a run
    Tc(crate::tc::Tc),
    /// Explain ipfw scripts (check), or apply ipfw commands to a run
    Ipfw(crate::ipfw::Ipfw),
    /// Fit distributions to measured delays, make tables, plot them
    #[command(subcommand)]
    Dist(crate::dist::Dist),
    /// Build, list (info) and remove the guest kernel for exact virtual time
    #[command(subcommand)]
    Kernel(crate::kernel::KernelCommand),
    /// Check what this host supports, and how to fix what it lacks
    Doctor(Doctor),
    /// Clean up after killed runs
    #[command(after_help = "Examples:\n  narrows clean")]
    Clean,
    /// Write man pages, one per command
    Man(Man),
    /// Print shell completions
    Completions(Completions),
    /// Run the part of a scenario that is on this machine: started by `up --machines` alone
    #[command(hide = true)]
    Agent,
    /// The supervisor of a guest: started by `run --virtual` alone
    #[command(hide = true)]
    GuestSupervisor {
        /// The descriptor that its plan is in
        descriptor: i32,
    },
    /// Act as the first process of a guest
    #[command(hide = true)]
    GuestInit {
        /// Further arguments of the guest kernel's command line, such as `console=tty0`
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
    /// Script of tc commands for the link: its first device is the client's, its second the server's
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ipfw", "client", "server"])]
    pub(crate) tc: Option<PathBuf>,
    /// Script of ipfw commands in place of a link: `out` is from client to server
    #[arg(long, value_name = "FILE", conflicts_with_all = ["client", "server"])]
    pub(crate) ipfw: Option<PathBuf>,
    /// Map an interface that rules name (`recv`, `xmit`, `via`) to its host: em0=client [default: a single one is the client's]
    #[arg(long = "interface", value_name = "NAME=HOST", requires = "ipfw")]
    pub(crate) interfaces: Vec<String>,
    /// Emulate only traffic between the client and these remote ports: 22,80 or 5000-5010
    #[arg(long, value_name = "PORTS", conflicts_with = "server")]
    pub(crate) client: Option<String>,
    /// Emulate only traffic to and from these ports of the client
    #[arg(long, value_name = "PORTS")]
    pub(crate) server: Option<String>,
    /// Link towards the client, with --client or --server: a rate, or an ipfw pipe as in 'bw 6Mbit/s delay 10ms'
    #[arg(long = "in", value_name = "PIPE")]
    pub(crate) incoming: Option<String>,
    /// Link from the client, likewise
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
    /// Scenario file, including its traffic; without one, the flags describe one link
    #[arg(conflicts_with = "replay", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: Option<PathBuf>,
    /// Replay a recorded run and compare every verdict; exit status 1 if any differs
    #[arg(long, value_name = "LOG")]
    pub(crate) replay: Option<PathBuf>,
    /// Override a value of the scenario, as in --set access.down.rate=2mbit; repeatable
    #[arg(long, value_name = "LINK.KEY=VALUE", conflicts_with = "replay")]
    pub(crate) set: Vec<String>,
    /// Seed of all random draws [default: the scenario's, or 1]
    #[arg(long, conflicts_with = "replay")]
    pub(crate) seed: Option<u64>,
    /// Virtual time at which to end [default: the scenario's, or when its traffic ends; 10s with flags]
    #[arg(long, value_name = "TIME", conflicts_with = "replay")]
    pub(crate) duration: Option<String>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    /// Write one row per packet: arrival, verdict, sojourn time, times at each link (docs/report.md)
    #[arg(long, value_name = "FILE.csv|.parquet")]
    pub(crate) packets: Option<PathBuf>,
    /// Write time series of backlog, sojourn and throughput, per link and flow (docs/series.md)
    #[arg(long, value_name = "FILE.csv|.parquet")]
    pub(crate) series: Option<PathBuf>,
    /// The interval of the time series
    #[arg(long, value_name = "TIME", default_value = "100ms", requires = "series")]
    pub(crate) interval: String,
    /// Write a capture of packets delivered and dropped; comments give the reason of each drop
    #[arg(long, value_name = "FILE.pcapng")]
    pub(crate) capture: Option<PathBuf>,
    /// Run on up to N threads, or on one per processor (`all`); the results are the same (docs/parallel.md)
    #[arg(long, value_name = "N|all", default_value = "1", value_parser = threads, conflicts_with = "replay")]
    pub(crate) threads: usize,
    // Under the heading of these flags stands what comes behind them.
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    /// Add traffic between the first two hosts: constant=9mbit, down:poisson=500/s, aimd, or a `[[traffic]]` table; repeatable
    /// [default without a file: constant, at 90 % of the rate]
    #[arg(long, value_name = "KIND=VALUE", conflicts_with = "replay")]
    pub(crate) traffic: Vec<String>,
}

/// Threads of a run in virtual time.
fn threads(text: &str) -> Result<usize, String> {
    const MOST: usize = 256;
    match text {
        "all" => Ok(std::thread::available_parallelism().map_or(1, |all| all.get().min(MOST))),
        _ => match text.parse() {
            Ok(number @ 1..=MOST) => Ok(number),
            _ => Err(format!("expected a number from 1 to {MOST}, or `all`")),
        },
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows check scenarios/adsl.toml
  narrows check --rate 10mbit --delay 25ms --json | jq '.links[].queue'
  narrows check --schema > narrows.schema.json")]
pub(crate) struct Check {
    /// Scenario file; without one, the flags describe one link
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: Option<PathBuf>,
    /// Override a value of the scenario, as in --set access.down.rate=2mbit; repeatable
    #[arg(long, value_name = "LINK.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) json: Json,
    /// Print every link in full, instead of a table of many
    #[arg(long)]
    pub(crate) full: bool,
    /// Print the JSON Schema of scenario files
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
    /// Changes, applied at one instant: LINK.KEY=VALUE or LINK.DIRECTION.KEY=VALUE
    #[arg(required_unless_present = "to", value_name = "LINK.KEY=VALUE", value_parser = Offered::Keys, hide_possible_values = true)]
    pub(crate) assignments: Vec<String>,
    /// Apply all differences from this scenario, at one instant
    #[arg(long, value_name = "FILE", conflicts_with = "assignments")]
    pub(crate) to: Option<PathBuf>,
    /// With --to: apply what can change and list on stderr what needs a new run
    #[arg(long, requires = "to")]
    pub(crate) partly: bool,
    /// Run, by name or number [default: the only one, or the one around this shell]
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
    /// Refresh every second: rates over the last 1 s and 10 s, queues, current settings
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// With --watch: stop after this many refreshes [default: when the run ends]
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: Option<u32>,
    #[command(flatten)]
    pub(crate) json: Json,
    /// Run, by name or number [default: the only one, or the one around this shell]
    #[arg(long)]
    pub(crate) run: Option<String>,
}
