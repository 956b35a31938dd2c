//! `narrows trace`: converts, describes and plots traces of links.

mod picture;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use narrows_scenario::preset_trace;
use narrows_scenario::trace::{Format, Trace};
use narrows_scenario::typed;

use crate::json::Json;
use crate::output::{Failure, put, say};
use crate::progress::{Progress, Quiet};

/// Version of the JSON output of `info`.
const SCHEMA: u32 = 2;

/// What is done with a trace.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Convert a trace to another format, or to equal steps
    Convert(Convert),
    /// Show a trace's length, means, outages, and unused columns
    Info(Info),
    /// Plot each column of a trace over time, as SVG
    Plot(Plot),
}

/// Additional help text, at the end of the help.
const CONVERT_HELP: &str = "\
Formats: csv, mahimahi, netem-trace (JSON; reads TOML), theaterq, pattern (read only). --from defaults
to the format detected from name and content, --to to OUT's ending: .csv, .json, .mahi, .up or .down
(mahimahi), .raw (TheaterQ). Whatever the output format cannot express is reported.

Examples:
  narrows trace convert verizon.up cell.csv --resample 100ms
  narrows trace convert cell.csv cell.json --columns rate
  narrows trace convert - - --from theaterq --to csv < x.raw";

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = CONVERT_HELP)]
pub(crate) struct Convert {
    /// The trace; - is the standard input
    input: PathBuf,
    /// Output file; - is stdout
    #[arg(required_unless_present = "to_file", value_name = "OUTPUT")]
    output: Option<PathBuf>,
    /// Output file, as in other commands
    #[arg(long = "output", short = 'o', value_name = "FILE", conflicts_with = "output")]
    to_file: Option<PathBuf>,
    /// Format of the trace [default: detected]
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    /// Output format [default: by OUT's ending]
    #[arg(long, value_name = "FORMAT")]
    to: Option<Format>,
    /// Resample to equal steps, each with the mean over its time
    #[arg(long, value_name = "TIME")]
    resample: Option<String>,
    /// Only these columns: rate, delay, loss, duplicate, queue
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    #[command(flatten)]
    quiet: Quiet,
}

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows trace info cell.csv
  narrows trace info verizon.up --from mahimahi --json")]
pub(crate) struct Info {
    /// The trace; - is the standard input
    file: PathBuf,
    /// Its format [default: detected]
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    #[command(flatten)]
    json: Json,
    #[command(flatten)]
    quiet: Quiet,
}

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows trace plot cell.csv --plot cell.svg
  narrows trace plot verizon.up --resample 100ms --plot - > verizon.svg")]
pub(crate) struct Plot {
    /// The trace; - is the standard input
    file: PathBuf,
    /// Its format [default: detected]
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    /// Output file for the figure, SVG; - is stdout
    #[arg(
        long,
        alias = "output",
        short_alias = 'o',
        value_name = "FILE.svg",
        required_unless_present = "svg"
    )]
    plot: Option<PathBuf>,
    /// Print the figure to stdout: --plot -
    #[arg(long, conflicts_with = "plot", hide = true)]
    svg: bool,
    /// Resample to equal steps, each with the mean over its time
    #[arg(long, value_name = "TIME")]
    resample: Option<String>,
    #[command(flatten)]
    quiet: Quiet,
}

/// Runs a subcommand.
pub(crate) fn trace(command: &TraceCommand) -> Result<u8, Failure> {
    match command {
        TraceCommand::Convert(args) => convert(args),
        TraceCommand::Info(args) => info(args),
        TraceCommand::Plot(args) => plot(args),
    }
}

fn convert(args: &Convert) -> Result<u8, Failure> {
    let mut trace = load(&args.input, args.from, args.resample.as_deref(), args.quiet)?;
    if !args.columns.is_empty() {
        let names: Vec<&str> = args.columns.iter().map(|name| name.trim()).collect();
        trace = trace.only(&names).map_err(|error| Failure::Other(format!("--columns: {error}")))?;
    }
    let output = args.output.as_deref().or(args.to_file.as_deref()).unwrap_or(Path::new("-"));
    let format = args.to.or_else(|| Format::of_file(&output.to_string_lossy())).ok_or_else(|| {
        let names = Format::names().join(", ");
        Failure::Other(format!("{}: unknown format; set it with --to: one of {names}", output.display()))
    })?;
    let written = trace.write(format).map_err(|error| Failure::Other(error.to_string()))?;
    put(output, &written.text)?;
    tell(trace.remarks().iter().chain(&written.remarks));
    Ok(0)
}

fn info(args: &Info) -> Result<u8, Failure> {
    let info = load(&args.file, args.from, None, args.quiet)?.info();
    args.json.put(SCHEMA, &info, || info.to_string())?;
    Ok(0)
}

fn plot(args: &Plot) -> Result<u8, Failure> {
    crate::output::probe_plot(args.plot.as_deref())?;
    let trace = load(&args.file, args.from, args.resample.as_deref(), args.quiet)?;
    let figure = picture::figure(&args.file.display().to_string(), &trace).svg();
    put(args.plot.as_deref().unwrap_or(Path::new("-")), &figure)?;
    Ok(0)
}

/// Reads a trace; resamples it in steps if requested.
fn load(file: &Path, format: Option<Format>, step: Option<&str>, quiet: Quiet) -> Result<Trace, Failure> {
    let (name, bytes) = read(file)?;
    let megabytes = bytes.len() as f64 / 1e6;
    let _progress = Progress::waiting(quiet.quiet, &format!("reading {megabytes:.1} MB of {name}"));
    let trace = Trace::read(&name, &bytes, format)?;
    let Some(step) = step else { return Ok(trace) };
    trace.resample(typed::time(step)?).ok_or_else(|| {
        let length = trace.length();
        Failure::Other(format!("--resample {step}: too long for a trace of {length}"))
    })
}

/// Reads a file or standard input; returns its name and contents.
pub(crate) fn read(file: &Path) -> Result<(String, Vec<u8>), Failure> {
    let name = if file == Path::new("-") { "the standard input".into() } else { file.display().to_string() };
    if let Some(text) = preset_trace(&name) {
        return Ok((name, text.into()));
    }
    let mut bytes = Vec::new();
    let result = match file == Path::new("-") {
        true => io::stdin().lock().read_to_end(&mut bytes).map(|_| ()),
        false => fs::read(file).map(|read| bytes = read),
    };
    match result {
        Ok(()) => Ok((name, bytes)),
        Err(cause) => Err(Failure::Other(format!("cannot read {name}: {cause}"))),
    }
}

/// Prints remarks to stderr.
pub(crate) fn tell<'a>(remarks: impl IntoIterator<Item = &'a String>) {
    for remark in remarks {
        say(format_args!("narrows: note: {remark}"));
    }
}
