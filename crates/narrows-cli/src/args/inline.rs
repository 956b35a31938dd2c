//! Arguments of `bridge`, `route` and `attach`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use narrows_live::run_name::RunName;
use narrows_live::run_record::Membership;

use super::LinkFlags;
use super::means::{Cabling, Capture, Pace, Series};
use crate::background::Background;
use crate::fail::FailName;
use crate::report::ReportArgs;

/// Additional help text of `bridge`, at the end of the help.
const BRIDGE_HELP: &str = "\
IF1 is the client's side (the first host of a scenario), IF2 the server's; up is IF1 to IF2. Frames of
every protocol cross. Offloads of both interfaces are off during the run and restored afterwards
(after kill -9, by `narrows clean`).

Examples:
  narrows bridge eth1 eth2 --rate 10mbit --delay 25ms
  narrows bridge veth0 veth1 --netns lab --netem 'delay 100ms loss 1%' --duration 30s
  narrows bridge eth1 eth2 net.toml --record run.log";

#[derive(Debug, Args)]
#[command(after_help = BRIDGE_HELP)]
pub(crate) struct Bridge {
    /// Interface on the client's side
    #[arg(value_name = "IF1")]
    pub(crate) first: String,
    /// Interface on the server's side
    #[arg(value_name = "IF2")]
    pub(crate) second: String,
    /// The scenario file, with two ends; without one, the flags describe one link
    pub(crate) scenario: Option<PathBuf>,
    /// Network namespace of the interfaces: an `ip netns` name, a path, or pid:N [default: this one]
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) netns: Option<String>,
    #[command(flatten)]
    pub(crate) inline: Inline,
}

/// Additional help text of `route`, at the end of the help.
const ROUTE_HELP: &str = "\
The interfaces are in different subnets and keep their addresses; hosts behind them use these as their
gateway. IF1 is the client's side (the first host of a scenario), IF2 the server's; up is IF1 to IF2.
Packets lose one hop; ICMP tells their senders what cannot be forwarded. Packets to this host itself
and by other interfaces are left to the kernel. Needs CAP_NET_ADMIN and CAP_NET_RAW only.

Examples:
  narrows route eth0 eth1 --rate 10mbit --delay 15ms --queue 25
  narrows route eth0 eth1 net.toml --capture run.pcapng --duration 30s
  narrows route eth0 eth1 --delay 15ms --nat --rebind port=2s/5s";

#[derive(Debug, Args)]
#[command(after_help = ROUTE_HELP)]
pub(crate) struct Route {
    /// Interface on the client's side
    #[arg(value_name = "IF1")]
    pub(crate) first: String,
    /// Interface on the server's side
    #[arg(value_name = "IF2")]
    pub(crate) second: String,
    /// The scenario file, with two ends; without one, the flags describe one link
    pub(crate) scenario: Option<PathBuf>,
    /// Network namespace of the interfaces: an `ip netns` name, a path, or pid:N [default: this one]
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) netns: Option<String>,
    /// Translate addresses: packets that leave by IF2 come from its address (UDP, TCP, ICMP echo)
    #[arg(long)]
    pub(crate) nat: bool,
    /// Outer addresses of the translation; the first is used until a rebinding [default: IF2's]
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', requires = "nat")]
    pub(crate) nat_pool: Vec<IpAddr>,
    /// Forget all mappings this long after the first packet, and again with a period: port=5s, address=2s/10s; repeatable
    #[arg(long, value_name = "WHAT=TIME[/PERIOD]", requires = "nat")]
    pub(crate) rebind: Vec<String>,
    #[command(flatten)]
    pub(crate) inline: Inline,
}

/// What only a run has, and no network that stays without one.
const NEEDS_A_RUN: [&str; 27] = [
    "fail",
    "title",
    "name",
    "detach",
    "output",
    "group",
    "ends",
    "owner",
    "duration",
    "record",
    "record_whole",
    "capture",
    "capture_bytes",
    "series",
    "series_limit",
    "interval",
    "packets",
    "packets_limit",
    "to",
    "report",
    "busy_poll",
    "trains",
    "cpu",
    "wait",
    "priority",
    "max_lateness",
    "max_cpu",
];

/// Additional help text of `attach`, at the end of the help.
const ATTACH_HELP: &str = "\
Programs on this side of IF are the client (the first host of a scenario): up is what they send, down
what they receive. IF keeps its configuration and its connections. When narrows ends, even by kill -9,
frames bypass the network again; with --fail closed they are dropped until `narrows clean` or the next
run on IF. Needs root and Linux 6.6; with --persist, which leaves a simple link in the kernel without
a process, Linux 6.16 and a program built for it.

Examples:
  narrows attach eth0 --rate 10mbit --delay 25ms
  narrows attach eth0 --container web --direction out --loss 1% --duration 30s
  narrows attach eth0 --pid 4711 net.toml --record run.log --fail closed
  narrows attach eth0 --persist --rate 10mbit --delay 25ms
  narrows attach eth0 --remove";

#[derive(Debug, Args)]
#[command(after_help = ATTACH_HELP)]
pub(crate) struct Attach {
    /// The interface
    #[arg(value_name = "IF")]
    pub(crate) interface: String,
    /// The scenario file, with two ends; without one, the flags describe one link
    pub(crate) scenario: Option<PathBuf>,
    /// Which frames cross the network: sent, received, or both
    #[arg(long, value_enum, default_value_t)]
    pub(crate) direction: DirectionName,
    /// Network namespace of the interface: an `ip netns` name, a path, or pid:N [default: this one]
    #[arg(long, value_name = "NAMESPACE", conflicts_with_all = ["pid", "container"])]
    pub(crate) netns: Option<String>,
    /// Process whose network namespace has the interface; a run ends with it
    #[arg(long, value_name = "N", conflicts_with = "container", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
    /// Docker or Podman container that has the interface; a run ends with it
    #[arg(long, value_name = "NAME")]
    pub(crate) container: Option<String>,
    /// Leave the network in place and end: a link inside the kernel, until --remove or a restart (experimental)
    #[arg(long, conflicts_with_all = NEEDS_A_RUN)]
    pub(crate) persist: bool,
    /// Take off the network that --persist left
    #[arg(long, conflicts_with_all = NEEDS_A_RUN, conflicts_with_all = ["persist", "scenario", "direction", "backend"])]
    pub(crate) remove: bool,
    /// After a crash of narrows, let everything pass (open), or nothing in --direction (closed)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) fail: FailName,
    /// Title of the run in its reports, followed by `on IF` [default: the scenario's file, or the flags]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) inline: Inline,
}

impl Inline {
    /// The group of the run.
    pub(crate) fn membership(&self) -> Option<Membership> {
        Some(Membership { group: self.group.clone()?, ends: self.ends.clone()? })
    }
}

/// The two ends of a link.
fn ends(text: &str) -> Result<[String; 2], String> {
    let is_end = |end: &&str| !end.is_empty() && !end.starts_with(':');
    match text.split(',').collect::<Vec<_>>()[..] {
        [from, to] if [from, to].iter().all(is_end) => Ok([from.into(), to.into()]),
        _ => Err("two ends with a comma in between, as in a:eth1,b:eth1".into()),
    }
}

/// `--direction`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum DirectionName {
    In,
    Out,
    #[default]
    Both,
}

/// What a network may be told that stands at interfaces which exist already.
#[derive(Debug, Args)]
pub(crate) struct Inline {
    /// Name of the run, for --run: letters, digits, hyphens [default: a free name such as quiet-otter]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<RunName>,
    #[command(flatten)]
    pub(crate) background: Background,
    /// What started it finds it by this again
    #[arg(long, hide = true)]
    pub(crate) owner: Option<String>,
    /// Group of runs that `narrows top` and `narrows web` show as one network, such as a lab
    #[arg(long, value_name = "GROUP", requires = "ends")]
    pub(crate) group: Option<String>,
    /// The ends of this link in the group, as in a:eth1,b:eth1; up is from the first to the second
    #[arg(long, value_name = "NODE[:IF],NODE[:IF]", requires = "group", value_parser = ends)]
    pub(crate) ends: Option<[String; 2]>,
    /// Stop after this time, as in 30s [default: on Ctrl-C]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Override a value of the scenario, as in --set access.down.rate=2mbit; repeatable
    #[arg(long, value_name = "LINK.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all random draws [default: the scenario's, or 1]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
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
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    #[command(flatten)]
    pub(crate) cabling: Cabling,
    #[command(flatten)]
    pub(crate) pace: Pace,
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command};

    use super::*;

    /// What a network has that stays, or what is said about it.
    const OF_A_NETWORK: [&str; 9] =
        ["interface", "scenario", "direction", "netns", "pid", "container", "persist", "remove", "quiet"];

    /// An argument that is neither would be accepted and ignored.
    #[test]
    fn every_argument_is_of_a_run_or_of_a_network_that_stays() {
        let all = Attach::augment_args(Command::new("attach"));
        let link = LinkFlags::augment_args(Command::new("link"));
        let of_link: Vec<&str> = link.get_arguments().map(|argument| argument.get_id().as_str()).collect();
        let known =
            [&NEEDS_A_RUN[..], &OF_A_NETWORK, &["set", "seed", "backend", "ready"], &of_link].concat();
        let unknown =
            all.get_arguments().map(|argument| argument.get_id().as_str()).filter(|id| !known.contains(id));
        assert_eq!(unknown.collect::<Vec<_>>(), [""; 0]);
    }
}
