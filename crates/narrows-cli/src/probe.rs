//! `narrows probe`: measures round-trip times, loss and the rate of a real path, as a trace, as a scenario,
//! or as live values of a link.
//!
//! An echo gives a round-trip time; one-way values are estimates: half of it, unless `--whole` is given.
//! For a round-trip loss L, each direction is assumed to lose `1 − √(1 − L)`, which gives L for two
//! directions with equal loss. The output states both assumptions.

mod drive;
mod measure;
mod summary;
mod trains;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use clap::Args;
use narrows_core::Duration;
use narrows_io::icmp::{Echo, LONGEST};
use narrows_scenario::trace::Format;
use narrows_scenario::typed;

use crate::json::{Json, is_stdout};
use crate::output::{Failure, print, probe_writable, put, write_json};
use crate::outputs;
use crate::progress::Progress;
use crate::trace::tell;
use drive::Drive;
use measure::{Measurement, Plan};
use summary::Guess;

/// Additional help text, at the end of the help.
const HELP: &str = "\
Probes are ICMP echoes: from a ping socket where net.ipv4.ping_group_range allows it, else from a raw
socket, which needs root. A round trip does not show where its delay and losses occur: each way gets
half of the delay and equal losses, unless --whole. The rate is that of the bottleneck of both ways.

Examples:
  narrows probe 192.0.2.1 --duration 1min -o path.csv
  narrows probe 2001:db8::1 --interval 20ms --size 1200 --count 500 --json -
  narrows probe 192.0.2.1 --scenario path.toml && narrows run path.toml -- CMD
  narrows probe 192.0.2.1 --drive access.down";

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Probe {
    /// The host at the other end: an address, IPv4 or IPv6, or a name
    address: String,
    /// Number of probes [default: the duration divided by the interval]
    #[arg(long, value_name = "PROBES", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    count: Option<u64>,
    /// How long to probe [default: 10s; with --drive until Ctrl-C]
    #[arg(long, value_name = "TIME", conflicts_with = "count")]
    duration: Option<String>,
    /// Time between probes; at least 1ms
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    interval: String,
    /// Payload bytes of a probe, after the IP and ICMP headers
    #[arg(long, value_name = "BYTES", default_value_t = 56, value_parser = clap::value_parser!(u16).range(0..=LONGEST as i64))]
    size: u16,
    /// Count a probe as lost after this time without an answer
    #[arg(long, value_name = "TIME", default_value = "2s")]
    timeout: String,
    /// Window over which the loss rate is computed
    #[arg(long, value_name = "TIME", default_value = "1s")]
    window: String,
    /// Attribute the whole round trip and its losses to one way
    #[arg(long)]
    whole: bool,
    /// Packet trains that measure the bottleneck rate, 32 packets each; 0: none [default: 10; 0 with --drive]
    #[arg(long, value_name = "TRAINS", value_parser = clap::value_parser!(u16).range(0..=1000))]
    trains: Option<u16>,
    /// Write a scenario that copies the path, and its trace to a file of the same name ending in .csv
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["output", "whole"])]
    scenario: Option<PathBuf>,
    /// Write the measurements as a CSV trace; - is stdout
    #[arg(short, long, value_name = "FILE.csv")]
    output: Option<PathBuf>,
    /// Apply measurements to a link of a run as they come: access, or access.down for one way
    #[arg(long, value_name = "LINK")]
    drive: Option<String>,
    /// Run, by name or number [default: the only one, or the one around this shell]
    #[arg(long, requires = "drive")]
    run: Option<String>,
    #[command(flatten)]
    json: Json,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

/// Minimum interval: below it, 16-bit sequence numbers repeat within a minute.
const LEAST: Duration = Duration::from_millis(1);
/// Default number of trains.
const TRAINS: u16 = 10;
/// Default duration.
const USUAL: Duration = Duration::from_secs(10);

pub(crate) fn probe(args: &Probe) -> Result<u8, Failure> {
    let plan = plan(args)?;
    let guess = if args.whole { Guess::Whole } else { Guess::Half };
    let window = typed::time(&args.window)?.max(LEAST);
    let (trace_file, scenario_file) = (trace_file(args)?, args.scenario.as_deref());
    probe_writable(trace_file.as_deref())?;
    probe_writable(scenario_file)?;
    args.json.probe()?;
    let beside = scenario_file.and(trace_file.as_deref());
    outputs::check(&[("--json", args.json.path()), ("the trace of --scenario", beside)], &[])?;
    let mut drive = match &args.drive {
        Some(link) => Some(Drive::start(link, args.run.as_deref(), guess, window)?),
        None => None,
    };
    let to = resolve(&args.address)?;
    let cannot = |cause| Failure::Other(format!("cannot ask {} ({}): {cause}", args.address, to.ip()));
    let echo = Echo::open(to).map_err(|cause| match cause.raw_os_error() {
        // Neither kind of socket is allowed.
        Some(EPERM | EACCES) => Failure::Other(format!(
            "cannot ask {}: echoes need root, or your group in the sysctl net.ipv4.ping_group_range",
            args.address
        )),
        _ => cannot(cause),
    })?;
    let count = plan.count;
    let mut progress = Progress::new(args.quiet);
    let mut measurement = Measurement::new(echo, plan);
    let mut done = 0;
    let measured = measurement.run(|outcome, so_far| {
        done += 1;
        progress.tell(done, count, so_far);
        drive.as_mut().is_none_or(|drive| drive.take(outcome))
    });
    drop(progress);
    measured.map_err(cannot)?;
    if let Some(cause) = drive.as_mut().and_then(Drive::ended) {
        tell([&format!("the run accepts no more values: {cause}")]);
    }
    let trains = args.trains.unwrap_or(if args.drive.is_some() { 0 } else { TRAINS });
    let wants_trains = trains > 0 && measurement.ended_by.is_none() && measurement.is_answered();
    let mut summary = measurement.summary(&args.address, guess);
    if wants_trains {
        let _progress = Progress::waiting(args.quiet, "measuring the rate");
        summary.rate = measurement.trains(to.is_ipv6(), trains).map_err(cannot)?;
    }
    if let Some(path) = args.json.path() {
        write_json(path, &summary)?;
    }
    if summary.answered == 0 {
        return Err(Failure::Other(format!("no answer from {} to {} probes", args.address, summary.asked)));
    }
    if let Some(path) = &trace_file {
        let trace = measurement.trace(&args.address, guess, window).expect("there is an answer");
        let written = trace.write(Format::CSV).map_err(|error| Failure::Other(error.to_string()))?;
        let heading: String = trace.remarks().iter().map(|remark| format!("# {remark}\n")).collect();
        put(path, &(heading + &written.text))?;
    }
    if let (Some(path), Some(trace)) = (scenario_file, &trace_file) {
        put(path, &summary.scenario(trace))?;
    }
    if !args.quiet && !is_stdout(args.output.as_deref()) && !args.json.takes_stdout() {
        print(&summary.to_string())?;
    }
    // Without a count, Ctrl-C is the regular end.
    let early = measurement.ended_by.filter(|_| count.is_some());
    Ok(early.map_or(0, |signal| 128 + signal as u8)) // signals go up to 64
}

/// The file of the trace: next to the scenario's file, if there is one.
fn trace_file(args: &Probe) -> Result<Option<PathBuf>, Failure> {
    let Some(scenario) = &args.scenario else { return Ok(args.output.clone()) };
    if is_stdout(Some(scenario)) || scenario.extension().is_some_and(|ending| ending == "csv") {
        let name = scenario.display();
        return Err(Failure::Other(format!(
            "--scenario {name}: a file such as path.toml, beside which the trace goes"
        )));
    }
    Ok(Some(scenario.with_extension("csv")))
}

/// System error for a missing permission.
const EPERM: i32 = 1;
const EACCES: i32 = 13;

fn plan(args: &Probe) -> Result<Plan, Failure> {
    let interval = typed::time(&args.interval)?;
    if interval < LEAST {
        return Err(Failure::Other(format!("--interval {}: at least {LEAST}", args.interval)));
    }
    let duration = args.duration.as_deref().map(typed::time).transpose()?;
    let count = match (args.count, duration, &args.drive) {
        (Some(count), ..) => Some(count),
        (None, Some(duration), _) => Some((duration.nanos() / interval.nanos()).max(1)),
        (None, None, Some(_)) => None,
        (None, None, None) => Some(USUAL.nanos() / interval.nanos()),
    };
    Ok(Plan { interval, count, size: args.size.into(), timeout: typed::time(&args.timeout)?.max(LEAST) })
}

fn resolve(address: &str) -> Result<SocketAddr, Failure> {
    let addresses = (address, 0).to_socket_addrs();
    let first = addresses.map(|mut addresses| addresses.next());
    match first {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(Failure::Other(format!("{address} has no address"))),
        Err(cause) => {
            Err(Failure::Other(format!("{address} is neither an address nor a known name: {cause}")))
        }
    }
}
