//! `narrows compare`: two runs side by side.

use std::io::stdout;
use std::path::{Path, PathBuf};

use clap::Args;
use narrows_lab::run_comparison::{RunComparisonOptions, RunData, compare_runs};
use narrows_report::read_series;
use narrows_scenario::typed;

use crate::json::Json;
use crate::output::Failure;
use crate::outputs;
use crate::plot::refuse_parquet;
use crate::report::{self, Kept, look};
use crate::trace;

/// The version of the JSON.
const SCHEMA: u32 = 1;

const HELP: &str = "\
A run is a report (its file, or its number in `narrows report --list`), a series file (--series), or
both joined by a comma. Reports compare totals; series compare means, with 95 % confidence intervals
by batch means. Links are matched by name; the change is B minus A. See docs/compare.md.

Examples:
  narrows compare 2 1
  narrows compare fifo.json codel.json --json | jq .totals.directions
  narrows compare fifo.csv codel.csv --from 5s
  narrows compare fifo.json,fifo.csv codel.json,codel.csv --paired";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Compare {
    /// First run: REPORT.json, SERIES.csv, REPORT.json,SERIES.csv, or a number as in `narrows report --list`; - is stdin
    #[arg(value_name = "A")]
    a: String,
    /// Second run, given by the same kinds of files
    #[arg(value_name = "B")]
    b: String,
    /// Leave out intervals that start before this time: the warm-up
    #[arg(long = "from", value_name = "TIME")]
    since: Option<String>,
    /// Leave out intervals that end after this time
    #[arg(long = "to", value_name = "TIME")]
    until: Option<String>,
    /// Compare batches in pairs, for runs with the same seed and intervals
    #[arg(long)]
    paired: bool,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn compare(args: &Compare) -> Result<u8, Failure> {
    args.json.probe()?;
    let time = |flag: &str, text: &Option<String>| {
        let parsed = text.as_deref().map(typed::time).transpose();
        parsed.map_err(|error| {
            Failure::Other(format!("{flag}: {}", error.to_string().replacen("error: ", "", 1)))
        })
    };
    let options = RunComparisonOptions {
        from: time("--from", &args.since)?,
        to: time("--to", &args.until)?,
        paired: args.paired,
    };
    let (a, b) = (files(&args.a)?, files(&args.b)?);
    outputs::check(&[("--json", args.json.path())], &[&a[..], &b[..]].concat())?;
    let (a, b) = (run(&args.a, &a)?, run(&args.b, &b)?);
    let compared = compare_runs(&a, &b, &options).map_err(|error| Failure::Other(error.to_string()))?;
    args.json.put_coloured(SCHEMA, &compared, || compared.text(look(&stdout())).to_string())?;
    Ok(0)
}

/// The files of a run: one, or two with a comma in between.
fn files(word: &str) -> Result<Vec<PathBuf>, Failure> {
    let file = |word: &str| match report::is_number(word) {
        true => Kept::find().numbered(word),
        false => Ok(word.into()),
    };
    match word.split_once(',').filter(|_| !Path::new(word).exists()) {
        Some((first, second)) => Ok(vec![file(first)?, file(second)?]),
        None => Ok(vec![file(word)?]),
    }
}

/// Reads one file or two, which tell by what is in them what they are.
fn run(word: &str, files: &[PathBuf]) -> Result<RunData, Failure> {
    let mut run = RunData { name: word.to_owned(), ..RunData::default() };
    files.iter().try_for_each(|file| read(file, &mut run))?;
    match files.len() < 2 || (run.report.is_some() && run.series.is_some()) {
        true => Ok(run),
        false => Err(Failure::Other(format!("{word}: two of a kind, expected a report and a series"))),
    }
}

fn read(file: &Path, run: &mut RunData) -> Result<(), Failure> {
    let (name, bytes) = trace::read(file)?;
    refuse_parquet(&name, &bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    if text.trim_start().starts_with('{') {
        run.report = Some(report::parse(Path::new(&name), text.as_bytes())?);
        return Ok(());
    }
    let series = read_series(&text);
    run.series = Some(series.map_err(|error| {
        Failure::Other(format!(
            "{name}:{error}\nneither a report (JSON, --json) nor a series (CSV, --series)"
        ))
    })?);
    Ok(())
}
