//! `narrows dist fit`.

use std::path::PathBuf;

use clap::Args;
use narrows_core::model::Distribution;
use narrows_lab::dist::{FitJson, Source, figure, fit as fitted};
use serde::Serialize;

use super::input::{Delays, Input};
use super::picture;
use crate::json::Json;
use crate::output::Failure;

/// Version of the JSON output.
const SCHEMA: u32 = 2;

/// Additional help text, at the end of the help.
const HELP: &str = "\
Examples:
  ping -c 1000 -i 0.01 example.org | sed -n 's/.*time=\\([0-9.]*\\) ms/\\1/p' > rtt.txt
  narrows dist fit rtt.txt --unit ms --plot fit.svg
  narrows dist fit probes.csv --column rtt --unit us --json -";

/// Number of best fits that are plotted.
const DRAWN: usize = 3;

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Fit {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    json: Json,
    /// Draw the three best fits beside the samples
    #[arg(long, value_name = "FILE.svg|png")]
    plot: Option<PathBuf>,
}

/// JSON output. Times are in nanoseconds.
#[derive(Serialize)]
struct Found<'a> {
    samples: &'a str,
    count: usize,
    min_ns: f64,
    max_ns: f64,
    mean_ns: f64,
    sd_ns: f64,
    quartiles_ns: [f64; 3],
    fits: Vec<FitJson>,
    left_out: Vec<LeftOut<'a>>,
}

#[derive(Serialize)]
struct LeftOut<'a> {
    name: &'a str,
    why: &'a str,
}

pub(crate) fn fit(args: &Fit) -> Result<u8, Failure> {
    args.json.probe()?;
    picture::probe(args.plot.as_deref(), "--plot")?;
    let delays = Delays::read(&args.input.file, &args.input.options.column(false))?;
    delays.differ()?;
    let sample = &delays.sample;
    let fits = fitted(sample);
    if let Some(path) = &args.plot {
        let best: Vec<(String, &Distribution)> =
            fits.fits.iter().take(DRAWN).map(|fit| (fit.name.to_owned(), &fit.distribution)).collect();
        picture::write(path, &figure(&delays.name, sample, &best))?;
    }
    let json = Found {
        samples: &delays.name,
        count: sample.len(),
        min_ns: sample.least(),
        max_ns: sample.greatest(),
        mean_ns: sample.mean(),
        sd_ns: sample.sd(),
        quartiles_ns: sample.quartiles(),
        fits: fits.fits.iter().map(narrows_lab::dist::Fit::json).collect(),
        left_out: fits.left_out.iter().map(|(name, why)| LeftOut { name, why }).collect(),
    };
    let unit = delays.unit();
    let source = Source { sample, name: &delays.name, unit: (&unit.to_string(), unit.nanoseconds()) };
    args.json.put(SCHEMA, &json, || fits.text(source).to_string())?;
    Ok(0)
}
