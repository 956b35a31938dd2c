//! `narrows sched differentiation`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use narrows_core::Seed;
use narrows_core::sched::{Gamma, Per1024};
use narrows_lab::bench::quantity;
use narrows_lab::differentiation::{
    Average, DifferentiationOptions, Traffic, differentiation_watched as run,
};

use crate::json::{Json, is_stdout};
use crate::output::{Failure, probe_plot, put};
use crate::progress::{Long, Quiet, interrupted, status_or_interrupted};

/// Additional help text, at the end of the help.
const HELP: &str = "\
Classes of equal load share a 10 Mbit/s link under hybrid proportional delay (hpd), which keeps their
mean waiting times in the ratios of their ddp. With g = 0 it uses current waiting times and reaches the
ratios as the load rises (Kleinrock's formula); with g = 1024 it uses average delays and keeps the
ratios wherever a service order can. See docs/scheduler-lab.md.

Examples:
  narrows sched differentiation
  narrows sched differentiation --ddp 1,2 --ddp 1,4,16 --g 0,1024 --loads 70,99 --traffic poisson
  narrows sched differentiation --gamma 16 --plot ratios.svg";

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Differentiation {
    /// Delay differentiation parameters of the classes, ascending; repeatable
    /// [default: 1,2 and 1,2,4]
    #[arg(long, value_name = "NUMBERS")]
    ddp: Vec<String>,
    /// Weights of the average delay against the present one, in 1024ths
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [0, 512, 1024])]
    g: Vec<u16>,
    /// Loads, in percent
    #[arg(long, value_name = "PERCENTS", value_delimiter = ',', default_values_t = [70.0, 80.0, 90.0, 95.0, 99.0])]
    loads: Vec<f64>,
    /// Arrival process
    #[arg(long, value_delimiter = ',', default_values_t = [Kind(Traffic::Poisson), Kind(Traffic::Bursts)])]
    traffic: Vec<Kind>,
    /// Weight of the newest delay in the average, in 1024ths, or auto; exact: the mean of all
    #[arg(long, default_value = "exact")]
    gamma: String,
    /// Packets per run; k and m are 2^10 and 2^20, K and M 10^3 and 10^6
    #[arg(long, default_value = "1M", allow_hyphen_values = true)]
    packets: String,
    /// Seed of all random draws
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    quiet: Quiet,
    /// Draw the ratios over the load
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// A traffic pattern, by name.
#[derive(Clone, Copy, Debug)]
struct Kind(Traffic);

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.0.name())
    }
}

impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(Traffic::Poisson), Self(Traffic::Bursts)]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let help = match self.0 {
            Traffic::Poisson => "one by one, at random",
            Traffic::Bursts => "in bursts of eight on average, at random",
        };
        Some(clap::builder::PossibleValue::new(self.0.name()).help(help))
    }
}

pub(crate) fn differentiation(args: &Differentiation) -> Result<u8, Failure> {
    let other = |error: &dyn std::fmt::Display, option: &str| Failure::Other(format!("--{option}: {error}"));
    let packets = quantity(&args.packets).map_err(|error| other(&error, "packets"))?;
    let Some(packets) = packets.fixed() else {
        return Err(other(&"a number is needed, not one times the number of flows", "packets"));
    };
    let default = DifferentiationOptions::default();
    let options = DifferentiationOptions {
        ddps: match &args.ddp[..] {
            [] => default.ddps,
            given => given.iter().map(|text| ddps(text)).collect::<Result<_, _>>()?,
        },
        g: args.g.clone(),
        loads: args.loads.clone(),
        traffic: args.traffic.iter().map(|kind| kind.0).collect(),
        average: average(&args.gamma)?,
        packets,
        seed: Seed(args.seed),
    };
    args.json.probe()?;
    probe_plot(args.plot.as_deref())?;
    let mut long = Long::start(args.quiet.quiet)?;
    let found = run(&options, &mut |step| long.step(step));
    drop(long);
    let found = found.map_err(|error| Failure::Other(error.to_string()))?;
    if let Some(path) = &args.plot {
        put(path, &found.figure().svg())?;
    }
    let part = interrupted().is_some();
    if !is_stdout(args.plot.as_deref()) {
        args.json.put_part(super::SCHEMA, &found.json(), part, || found.text().to_string())?;
    }
    Ok(status_or_interrupted(0, "partial results follow"))
}

fn ddps(text: &str) -> Result<Vec<u32>, Failure> {
    let one = |part: &str| part.trim().parse().ok().filter(|ddp| *ddp > 0);
    let all: Option<Vec<u32>> = text.split(',').map(one).collect();
    all.filter(|all| all.is_sorted()).ok_or_else(|| {
        Failure::Other(format!("--ddp: `{text}` is not a list of ascending whole numbers from 1"))
    })
}

fn average(text: &str) -> Result<Average, Failure> {
    match text.trim() {
        "exact" => Ok(Average::Exact),
        "auto" => Ok(Average::Moving(Gamma::OfBacklog)),
        number => match number.parse().ok().and_then(Per1024::new) {
            Some(parts) => Ok(Average::Moving(Gamma::Fixed(parts))),
            None => Err(Failure::Other(format!(
                "--gamma: `{number}` is none of: exact, auto, a whole number from 0 to 1024"
            ))),
        },
    }
}
