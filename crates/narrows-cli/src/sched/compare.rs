//! `narrows sched compare`.

use std::path::PathBuf;

use clap::Args;
use narrows_core::Seed;
use narrows_core::sched::Weight;
use narrows_lab::Algorithm;
use narrows_lab::compare::{COMPARED, CompareError, CompareOptions, compare_watched as run};
use narrows_scenario::{LinkFlags, Scenario};

use crate::json::{Json, is_stdout};
use crate::output::{Failure, probe_plot, put};
use crate::outputs;
use crate::progress::{Long, Quiet, interrupted, status_or_interrupted};

/// Additional help text, at the end of the help.
const HELP: &str = "\
Each algorithm replaces the link's scheduler, with the same classes where it supports classes; nothing
else changes. Jain's index is computed on each flow's throughput divided by its fair share:
docs/scheduler-lab.md.

Examples:
  narrows sched compare --algorithms fifo,qfq,fq_codel --plot delays.svg
  narrows sched compare scenarios/adsl.toml --link access.up --algorithms fifo,drr --duration 60s";

/// The default scenario.
const VOIP_AND_BULK: &str = include_str!("../../../../scenarios/voip-and-bulk.toml");

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Compare {
    /// The scenario file, which describes the traffic, too [default: a call and downloads on 10 Mbit/s,
    /// scenarios/voip-and-bulk.toml]
    scenario: Option<PathBuf>,
    /// Algorithms, comma-separated, or all that suit the link
    #[arg(long, visible_alias = "algorithm", value_name = "NAMES", default_value = "fifo,drr,qfq,fq_codel")]
    algorithms: String,
    /// Link whose scheduler is replaced, as in access.down [default: the one with most traffic]
    #[arg(long)]
    link: Option<String>,
    /// Virtual time at which each run ends [default: the scenario's, or when its traffic ends]
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    /// Seed of all random draws [default: the scenario's, or 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Weights of named traffic in the fairness index; others have 1
    #[arg(long, value_name = "NAME=WEIGHT", value_delimiter = ',', value_parser = weight)]
    weights: Vec<(String, Weight)>,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    quiet: Quiet,
    /// Draw the delay distribution of each flow
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

pub(crate) fn compare(args: &Compare) -> Result<u8, Failure> {
    let algorithms = Algorithm::parse_list(&args.algorithms, COMPARED)
        .map_err(|error| Failure::Other(format!("--algorithms: {error}")))?;
    let scenario = match &args.scenario {
        Some(file) => Scenario::load(file)?,
        None => Scenario::parse(VOIP_AND_BULK, "scenarios/voip-and-bulk.toml")?,
    };
    // The scenario parser parses and checks the time.
    let flags = LinkFlags::default().given("duration", args.duration.clone());
    let options = CompareOptions {
        algorithms,
        link: args.link.clone(),
        duration: Scenario::from_flags(&flags)?.duration,
        seed: args.seed.map(Seed),
        weights: args.weights.clone(),
        where_possible: args.algorithms.split(',').any(|name| name.trim().eq_ignore_ascii_case("all")),
    };
    args.json.probe()?;
    probe_plot(args.plot.as_deref())?;
    let named = [("--json", args.json.path()), ("--plot", args.plot.as_deref())];
    outputs::check_scenario(&named, &scenario, args.scenario.as_deref())?;
    let mut long = Long::start(args.quiet.quiet)?;
    let comparison = run(&scenario, &options, &mut |step| long.step(step));
    drop(long);
    let comparison = comparison.map_err(|error| match error {
        CompareError::Run(error) => error.into(),
        other => Failure::Other(other.to_string()),
    })?;
    if let Some(path) = &args.plot {
        put(path, &comparison.figure().svg())?;
    }
    let part = interrupted().is_some();
    if !is_stdout(args.plot.as_deref()) {
        args.json.put_part(super::SCHEMA, &comparison.json(), part, || comparison.text().to_string())?;
    }
    Ok(status_or_interrupted(0, "results of complete runs follow"))
}

fn weight(text: &str) -> Result<(String, Weight), String> {
    let parts = text.rsplit_once('=').and_then(|(name, weight)| Some((name, weight.trim().parse().ok()?)));
    match parts.and_then(|(name, weight)| Some((name.trim().to_owned(), Weight::new(weight)?))) {
        Some(pair) => Ok(pair),
        None => Err("a name and a whole number above zero, as in call-down=8".into()),
    }
}
