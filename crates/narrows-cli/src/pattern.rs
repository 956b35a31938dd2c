//! `narrows pattern`: predefined events per packet or millisecond.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use narrows_scenario::pattern::{About, Pattern, Per, Random};
use narrows_scenario::typed;

use crate::json::Json;
use crate::output::{Failure, put};
use crate::trace::read;

/// Version of the JSON output of `info`.
const SCHEMA: u32 = 2;

/// What is done with a pattern.
#[derive(Debug, Subcommand)]
pub(crate) enum PatternCommand {
    /// Make a pattern from places, runs, a list, or at random
    Make(Make),
    /// Show a pattern's share, bursts, gaps and mean
    Info(Info),
}

/// Additional help text, at the end of the help.
const MAKE_HELP: &str = "\
Places count from 1. In a scenario: loss = { pattern = { file = \"x.pattern\" } }, likewise for delay and
corrupt; per-millisecond patterns of rate, delay and loss also as trace = \"x.pattern\". File format:
docs/traces.md.

Examples:
  narrows pattern make loss --length 1000 --at 11-15,400 -o x.pattern
  narrows pattern make loss --length 100000 --random 1% --burst 3 --seed 7 -o x.pattern
  narrows pattern make delay --per millisecond --runs '30000 20ms, 30000 35ms' -o x.pattern
  narrows pattern make bit-errors --per bit --length 10000000 --random 0.0001%
  narrows pattern make rate --per millisecond --list rates.txt -o x.pattern";

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = MAKE_HELP)]
#[command(group(clap::ArgGroup::new("source").required(true).args(["at", "random", "runs", "list"])))]
pub(crate) struct Make {
    /// What the pattern controls
    #[arg(value_enum)]
    about: AboutName,
    /// What a place is [default: packet, or millisecond for rates]
    #[arg(long, value_enum)]
    per: Option<PerName>,
    /// Number of places, after which the pattern repeats
    #[arg(long, value_name = "PLACES", required_unless_present_any = ["runs", "list"], conflicts_with_all = ["runs", "list"])]
    length: Option<u64>,
    /// Places that are hit, as 11-15,400; for delays and rates the value from a place on, as '1 10ms, 51 30ms'
    #[arg(long, value_name = "PLACES")]
    at: Option<String>,
    /// Share of places hit at random
    #[arg(long, value_name = "SHARE")]
    random: Option<String>,
    /// Mean length of random bursts [default: independent places]
    #[arg(long, value_name = "PLACES", requires = "random")]
    burst: Option<f64>,
    /// Seed of the draws
    #[arg(long, default_value_t = 1, requires = "random")]
    seed: u64,
    /// Runs of places, as '100 pass, 5 hit' or '50 10ms, 50 30ms'
    #[arg(long, value_name = "RUNS")]
    runs: Option<String>,
    /// File with one line per place: 0 or 1, pass or hit, or a value with its unit; - is stdin
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// Output file [default: stdout]
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows pattern info x.pattern")]
pub(crate) struct Info {
    /// The pattern; - is the standard input
    file: PathBuf,
    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AboutName {
    /// Packets that are lost
    Loss,
    /// Bits that are flipped
    BitErrors,
    /// Propagation delays
    Delay,
    /// Rates of the wire
    Rate,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PerName {
    /// Packets, as they come by
    Packet,
    /// Milliseconds from the start of the run
    #[value(alias = "ms")]
    Millisecond,
    /// Bits, through all packets
    Bit,
}

/// Runs a subcommand.
pub(crate) fn pattern(command: &PatternCommand) -> Result<u8, Failure> {
    match command {
        PatternCommand::Make(args) => make(args),
        PatternCommand::Info(args) => info(args),
    }
}

fn make(args: &Make) -> Result<u8, Failure> {
    let about = match args.about {
        AboutName::Loss => About::Loss,
        AboutName::BitErrors => About::BitErrors,
        AboutName::Delay => About::Delay,
        AboutName::Rate => About::Rate,
    };
    let per = match args.per {
        Some(PerName::Packet) => Per::Packet,
        Some(PerName::Millisecond) => Per::Millisecond,
        Some(PerName::Bit) => Per::Bit,
        // The first unit that it supports.
        None => about.places()[0],
    };
    let length = args.length.unwrap_or_default();
    let made = match (&args.at, &args.random, &args.runs, &args.list) {
        (Some(places), ..) => Pattern::at(about, per, length, places),
        (None, Some(share), ..) => {
            let random = Random { rate: typed::share(share)?, burst: args.burst, seed: args.seed };
            Pattern::random(about, per, length, &random)
        }
        (None, None, Some(runs), _) => Pattern::runs(about, per, runs),
        (None, None, None, list) => {
            let (name, bytes) = read(list.as_deref().unwrap_or(Path::new("-")))?;
            Pattern::list(about, per, &name, &bytes)
        }
    };
    let made = made.map_err(|error| Failure::Other(error.to_string()))?;
    put(&args.output, &made.text())?;
    Ok(0)
}

fn info(args: &Info) -> Result<u8, Failure> {
    let (name, bytes) = read(&args.file)?;
    let info = Pattern::read_any(&name, &bytes)?.info();
    args.json.put(SCHEMA, &info, || info.to_string())?;
    Ok(0)
}
