//! The command line.

mod itself;
mod link_keys;
mod networks;
mod offered;

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

use narrows_live::run_name::RunName;

use crate::json::Json;
use crate::report::ReportArgs;
pub(crate) use itself::{Completions, Man, ShellName};
use link_keys::LinkKeys;
pub(crate) use networks::{Exec, Up};
use offered::Offered;

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
    /// The keeper of a guest: started by `run --virtual` alone
    #[command(hide = true)]
    GuestKeeper {
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

/// What nobody can guess, at the end of the help.
const ENVIRONMENT_HELP: &str = "\
Programs of the run find in their environment:
  NARROWS_SERVER, NARROWS_SERVER6  the address of the host at the other end
  NARROWS_CLIENT, NARROWS_CLIENT6  the address of the host in which CMD runs
  NARROWS_HOST_NAME, …6            the address of each host, by its name in capitals
  NARROWS_FEED, …_LINK_UP_NAME     the socket of the only feed; that of each feed, by link and name in capitals

Examples:
  narrows run --rate 10mbit --delay 25ms --loss 1% -- sh -c 'ping -c 5 $NARROWS_SERVER'
  narrows run --rate 1.5mbit/0.5mbit --on server 'iperf3 -s -1' -- sh -c 'iperf3 -c $NARROWS_SERVER'
  narrows run scenarios/adsl.toml --record run.log -- sh -c 'ping -c 5 $NARROWS_SERVER'";

#[derive(Debug, Args)]
#[command(after_help = ENVIRONMENT_HELP)]
pub(crate) struct Run {
    /// The scenario file; without one, the flags describe one link
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
    /// The program to run and its arguments
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// The program's own measurement.
#[derive(Debug, Args)]
#[command(next_help_heading = "Probes")]
pub(crate) struct Probes {
    /// Send UDP probes both ways and report their one-way delays and losses; without CMD the run ends after ten seconds
    #[arg(
        long,
        value_name = "PER SECOND",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "100",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub(crate) probe: Option<u32>,
    /// The DSCP of probes: a name such as ef, or a number [default: 0]
    #[arg(long, value_name = "DSCP", requires = "probe")]
    pub(crate) probe_dscp: Option<String>,
    /// The length of probes, from the IP header on
    #[arg(
        long,
        value_name = "BYTES",
        requires = "probe",
        default_value_t = narrows_live::probe::LENGTH,
        value_parser = clap::value_parser!(u16).range(i64::from(narrows_live::probe::LENGTH)..=1500)
    )]
    pub(crate) probe_length: u16,
    /// The UDP port that probes go to
    #[arg(
        long,
        value_name = "PORT",
        requires = "probe",
        default_value_t = narrows_live::probe::PORT,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub(crate) probe_port: u16,
    /// Let queues mark probes with "congestion experienced" instead of dropping them (ECT(0)); the report counts them
    #[arg(long, requires = "probe")]
    pub(crate) probe_ecn: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows shell --delay 100ms --internet
  narrows shell scenarios/adsl.toml --on server 'iperf3 -s'")]
pub(crate) struct Shell {
    /// The scenario file; without one, the flags describe one link
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    #[command(flatten)]
    pub(crate) live: Live,
    #[command(flatten)]
    pub(crate) virtual_time: VirtualTime,
}

/// Whether to run in exact virtual time, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Exact virtual time")]
pub(crate) struct VirtualTime {
    /// Run everything inside a guest kernel whose clock stands still while anything computes and jumps to the next event when
    /// all is idle: no lateness, the same result at every run, no root. The host's files are seen there and protected
    #[arg(long = "virtual")]
    pub(crate) wanted: bool,
    /// The guest kernel: a kept version, or the path of an executable [default: the newest kept]
    #[arg(long, value_name = "VERSION|PATH", requires = "wanted")]
    pub(crate) kernel: Option<OsString>,
    /// Let programs in the guest write to this folder, or file, of the host; any number of times [default: none]
    #[arg(long, value_name = "PATH", requires = "wanted")]
    pub(crate) write: Vec<PathBuf>,
    /// How much memory the guest has, as in 512M or 2G
    #[arg(long, value_name = "SIZE", requires = "wanted", default_value = "1G")]
    pub(crate) memory: Memory,
    /// End the run when virtual time has stood still for so long in real time, because a program spins: 60s, or never
    #[arg(long, value_name = "TIME", requires = "wanted", default_value = "60s")]
    pub(crate) stall: String,
    /// The wall clock of the guest at its start: seconds since 1970, or now, with which no two runs are the same
    /// [default: 2026-01-01T00:00:00Z]
    #[arg(long, value_name = "SECONDS", requires = "wanted")]
    pub(crate) wall_clock: Option<WallClock>,
}

/// `--memory`, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory(pub(crate) u64);

impl FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, shift) = match text.as_bytes().last() {
            Some(b'M') => (&text[..text.len() - 1], 20),
            Some(b'G') => (&text[..text.len() - 1], 30),
            _ => ("", 0),
        };
        let size = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
        let size = size.filter(|size| (64 << 20..=1 << 40).contains(size));
        size.map(Self)
            .ok_or_else(|| "it is a size from 64M to 1024G, in whole M or G (MiB, GiB), as in 2G".into())
    }
}

/// `--wall-clock`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WallClock {
    Now,
    /// Nanoseconds since 1970.
    At(u64),
}

impl FromStr for WallClock {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "now" {
            return Ok(Self::Now);
        }
        let seconds = text.parse::<u64>().ok().filter(|seconds| *seconds <= 1 << 32);
        let nanoseconds = seconds.map(|seconds| Self::At(seconds * 1_000_000_000));
        nanoseconds.ok_or_else(|| "it is a number of seconds since 1970 up to 4294967296, or now".into())
    }
}

/// What a run in real time may be told besides its network.
#[derive(Debug, Args)]
#[command(next_help_heading = "The run")]
pub(crate) struct Live {
    /// What to call the run, for --run: letters, digits and hyphens [default: a free name such as quiet-otter]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<RunName>,
    /// Change a value of the scenario beforehand, as in --set access.down.rate=2mbit; any number of times
    #[arg(long, value_name = "LINK.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The host in which CMD runs [default: the scenario's first]
    #[arg(long, value_name = "HOST", value_parser = Offered::Hosts, hide_possible_values = true)]
    pub(crate) host: Option<String>,
    /// Start a program in another host first, as in --on server "iperf3 -s", and end it with the run; any number of times.
    /// They start together, and CMD waits until they listen
    #[arg(long, value_names = ["HOST", "COMMAND"], num_args = 2, action = clap::ArgAction::Append)]
    pub(crate) on: Vec<String>,
    /// How long CMD waits until programs of --on listen on a TCP or UDP port; 0s: not at all
    #[arg(long, value_name = "TIME", default_value = "2s", requires = "on")]
    pub(crate) on_timeout: String,
    /// Put the host, as in [server], before each line that programs of --on write; auto: in a terminal
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) labels: Labels,
    /// Write what programs of --on write to DIR/HOST.log instead
    #[arg(long, value_name = "DIR", requires = "on")]
    pub(crate) logs: Option<PathBuf>,
    /// The seed of every random draw [default: the scenario's, or 1]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Let the hosts reach the outside through the far end, by address translation on this host
    #[arg(long)]
    pub(crate) internet: bool,
    /// Keep the input log: `narrows sim --replay FILE` gives the same verdict for every packet
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Keep whole packets in the log, instead of their first 128 bytes
    #[arg(long, requires = "record")]
    pub(crate) record_whole: bool,
    #[command(flatten)]
    pub(crate) capture: Capture,
    #[command(flatten)]
    pub(crate) cabling: Cabling,
    #[command(flatten)]
    pub(crate) pace: Pace,
    /// Run independent components of the network on up to so many threads; auto: as many as the host has room for, or as
    /// --cpu names
    #[arg(long, value_name = "N", default_value = "auto")]
    pub(crate) shards: Shards,
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

/// `--shards`: how many at most; nothing for `auto`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shards(pub(crate) Option<usize>);

impl FromStr for Shards {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(number @ 1..=1024) => Ok(Self(Some(number))),
            _ if text == "auto" => Ok(Self(None)),
            _ => Err("it is a number from 1 to 1024, or auto".into()),
        }
    }
}

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
    pub(crate) standing: Standing,
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
    pub(crate) standing: Standing,
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
pub(crate) struct Standing {
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

/// What is captured of a run.
#[derive(Debug, Args)]
pub(crate) struct Capture {
    /// Write a capture of what left the network, with when it was to leave and when it did, and of what was dropped, with
    /// the reason, in the packets' comments
    #[arg(long, value_name = "FILE.pcapng")]
    pub(crate) capture: Option<PathBuf>,
    /// Keep so many bytes of each packet at most [default: all]
    #[arg(long, value_name = "BYTES", requires = "capture", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) capture_bytes: Option<u32>,
}

/// How frames get from the kernel to the engine and back.
#[derive(Debug, Args)]
#[command(next_help_heading = "Packet I/O")]
pub(crate) struct Cabling {
    /// Packet I/O backend [default: best available for run and shell, af_packet for bridge and attach]
    #[arg(long, value_enum)]
    pub(crate) backend: Option<BackendName>,
    /// With --backend af_xdp: look for frames by doing the receive work of the interface's driver, instead of its interrupts,
    /// where the driver can (cards mostly can, veth pairs cannot)
    #[arg(long, requires = "backend")]
    pub(crate) busy_poll: bool,
    /// Take trains of segments in one piece from the kernel, and give it packets that leave together as one: faster. Each packet
    /// still has its own verdict and time; those of a train come at one instant, and the report says how far apart those were
    /// that left as one
    #[arg(long)]
    pub(crate) trains: bool,
}

/// `--backend`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BackendName {
    /// Packet sockets: on any interface
    #[value(name = "af_packet")]
    AfPacket,
    /// TAP devices in place of the hosts' ends of cables, without stamps of arrival: for run and shell
    #[value(name = "tap")]
    Tap,
    /// AF_XDP, in memory shared with the kernel: needs root over the host
    #[value(name = "af_xdp")]
    AfXdp,
}

/// How well the packet loop is to keep up, and what it may take for that.
#[derive(Debug, Args)]
#[command(next_help_heading = "Accuracy")]
pub(crate) struct Pace {
    /// Fail, with exit status 75, if packets are released later than this: p99=50us; also median, p90, p999, max; any
    /// number of times
    #[arg(long, value_name = "QUANTILE=TIME")]
    pub(crate) max_lateness: Vec<String>,
    /// How to wait for the next packet to leave: by a timer until shortly before and then looking without pause, by looking
    /// without pause always, or by a timer alone
    ///
    /// [default: hybrid, and in exact virtual time timer]
    #[arg(long, value_enum)]
    pub(crate) wait: Option<WaitBy>,
    /// Run the packet loop on this processor alone, or each of its threads on one of these, as in 2,3; programs of the run
    /// may still use all
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) cpu: Vec<usize>,
    /// Run the packet loop before others: high is nice -20, real-time is before all usual programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) priority: RunBefore,
}

/// `--wait`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum WaitBy {
    Spin,
    #[default]
    Hybrid,
    Timer,
}

/// `--priority`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum RunBefore {
    #[default]
    Usual,
    High,
    RealTime,
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
    /// What crosses the link of the flags, both ways or up: or down: alone, as in constant=9mbit, down:poisson=500/s, aimd, or
    /// a table as of `[[traffic]]`; any number of times [default: an even pace at nine tenths of the rate]
    #[arg(long, value_name = "KIND=VALUE", conflicts_with_all = ["scenario", "replay"])]
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
