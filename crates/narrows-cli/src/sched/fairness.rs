//! `narrows sched fairness`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use narrows_core::{Bytes, Rate, Seed};
use narrows_lab::Algorithm;
use narrows_lab::bench::quantity;
use narrows_lab::fairness::{FairnessOptions, JUDGED, Pattern, fairness_watched as judge};
use narrows_scenario::{LinkFlags, Medium, Scenario};

use crate::json::{Json, is_stdout};
use crate::output::{Failure, probe_plot, put};
use crate::progress::{Long, Quiet, interrupted, status_or_interrupted};

/// Additional help text, at the end of the help.
const HELP: &str = "\
B-WFI: bytes by which a flow fell behind its share of the service in its worst backlogged interval.
T-WFI: how much later a packet left than at the flow's share of the rate. Bounds are the proven ones
of each algorithm; without a proof it is only measured. Definitions and sources:
docs/scheduler-lab.md.

Examples:
  narrows sched fairness --algorithm qfq
  narrows sched fairness --algorithms all --flows 1000 --longest 1500 --packets 1m
  narrows sched fairness --algorithms drr,qfq --traffic burst --flows 11 --plot burst.svg";

/// Exit status for a violated bound.
const BROKEN: u8 = 1;

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Fairness {
    /// Algorithms, comma-separated, or all
    #[arg(long, visible_alias = "algorithm", value_name = "NAMES", default_value = "all")]
    algorithms: String,
    /// Kinds of traffic, comma-separated [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    traffic: Vec<Kind>,
    /// Number of flows
    #[arg(long, default_value_t = FairnessOptions::default().flows)]
    flows: u32,
    /// Packets per kind of traffic; k and m are 2^10 and 2^20, K and M 10^3 and 10^6
    #[arg(long, default_value = "200K", allow_hyphen_values = true)]
    packets: String,
    /// Maximum packet length in bytes
    #[arg(long, value_name = "BYTES", default_value_t = FairnessOptions::default().longest.get())]
    longest: u64,
    /// Maximum weight
    #[arg(long, value_name = "WEIGHT", default_value_t = FairnessOptions::default().heaviest)]
    heaviest: u32,
    /// Rate of the link, for delays
    #[arg(long, default_value = "10gbit", allow_hyphen_values = true)]
    rate: String,
    /// Seed of all random draws
    #[arg(long, default_value_t = FairnessOptions::default().seed.0)]
    seed: u64,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    quiet: Quiet,
    /// Draw service curves and lags of some flows around the worst moment, for the first kind of
    /// traffic named, or burst
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// A traffic pattern, by name; `None` for all.
#[derive(Clone, Copy, Debug)]
struct Kind(Option<Pattern>);

impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Self] {
        const {
            &[
                Self(Some(Pattern::ALL[0])),
                Self(Some(Pattern::ALL[1])),
                Self(Some(Pattern::ALL[2])),
                Self(Some(Pattern::ALL[3])),
                Self(Some(Pattern::ALL[4])),
                Self(Some(Pattern::ALL[5])),
                Self(Some(Pattern::ALL[6])),
                Self(None),
            ]
        }
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let (name, about) =
            self.0.map_or(("all", "all of them"), |pattern| (pattern.name(), pattern.about()));
        Some(clap::builder::PossibleValue::new(name).help(about))
    }
}

pub(crate) fn fairness(args: &Fairness) -> Result<u8, Failure> {
    let other = |error: &dyn std::fmt::Display, option: &str| Failure::Other(format!("--{option}: {error}"));
    let algorithms =
        Algorithm::parse_list(&args.algorithms, JUDGED).map_err(|error| other(&error, "algorithms"))?;
    let packets = quantity(&args.packets).map_err(|error| other(&error, "packets"))?;
    let Some(packets) = packets.fixed() else {
        return Err(other(&"a number is needed, not one times the number of flows", "packets"));
    };
    // No name, or `all` among them, means all.
    let named: Option<Vec<Pattern>> = args.traffic.iter().map(|kind| kind.0).collect();
    let kinds = named.unwrap_or_default();
    let options = FairnessOptions {
        algorithms,
        patterns: if kinds.is_empty() { Pattern::ALL.to_vec() } else { kinds.clone() },
        flows: args.flows,
        packets,
        longest: Bytes::new(args.longest),
        heaviest: args.heaviest,
        rate: rate(&args.rate)?,
        seed: Seed(args.seed),
    };
    args.json.probe()?;
    probe_plot(args.plot.as_deref())?;
    let mut long = Long::start(args.quiet.quiet)?;
    let found = judge(&options, &mut |step| long.step(step));
    drop(long);
    let found = found.map_err(|error| Failure::Other(error.to_string()))?;
    if let Some(path) = &args.plot {
        let pattern = kinds.first().copied().unwrap_or(Pattern::Burst);
        let figure = found.figure(pattern).map_err(|error| Failure::Other(error.to_string()))?;
        put(path, &figure.svg())?;
    }
    let part = interrupted().is_some();
    if !is_stdout(args.plot.as_deref()) {
        args.json.put_part(super::SCHEMA, &found.json(), part, || found.text().to_string())?;
    }
    Ok(status_or_interrupted(if found.holds() { 0 } else { BROKEN }, "partial results follow"))
}

/// The scenario parser parses and checks the rate.
fn rate(text: &str) -> Result<Rate, Failure> {
    let scenario = Scenario::from_flags(&LinkFlags::default().with("rate", text))?;
    let links = scenario.links.first().map(|link| &link.medium);
    Ok(match links {
        Some(Medium::Duplex { down, .. }) => down.rate,
        _ => Rate::UNLIMITED,
    })
}
