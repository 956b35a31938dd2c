//! `narrows trace`: converts, describes and plots traces of links.

mod picture;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use narrows_scenario::trace::{Columns, Format, Trace};
use narrows_scenario::typed;
use narrows_scenario::{preset_trace, read_bytes};

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
Formats: csv, mahimahi, netem-trace (JSON; reads TOML), theaterq, sabre, pensieve; read only: pattern,
mm-link, alphartc, alphartc-downlink, genet, ntrace, iperf3, oboe, norway, nyu-mets, ucc, lumos5g,
sigcomm21-5g, fcc, ping, iperf-text, speedtest-cli, json-rows. --from defaults to the format detected
from name and content, --to to OUT's ending: .csv, .json (netem-trace), .mahi, .up or .down (mahimahi),
.raw (TheaterQ), .sabre, .pensieve. Whatever the output format cannot express is reported.

Examples:
  narrows trace convert verizon.up cell.csv --resample 100ms
  narrows trace convert cell.csv cell.json --columns rate
  narrows trace convert drive.csv cell.csv --columns time=ts,rate=downlink,unit=mbit
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
    /// Only these columns (rate, delay, loss, duplicate, queue); or which columns of any CSV they are
    #[arg(long, value_name = "NAMES")]
    columns: Option<String>,
    #[command(flatten)]
    quiet: Quiet,
}

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows trace info cell.csv
  narrows trace info verizon.up --from mahimahi --json
  narrows trace info drive.csv --columns time=ts,rate=downlink,unit=mbit
  narrows trace info plain.txt --columns time=1,time-unit=ms,rate=2,unit=kbyte")]
pub(crate) struct Info {
    /// The trace; - is the standard input
    file: PathBuf,
    /// Its format [default: detected]
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    /// Only these columns (rate, delay, loss, duplicate, queue); or which columns of any CSV they are
    #[arg(long, value_name = "NAMES")]
    columns: Option<String>,
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
    /// Only these columns (rate, delay, loss, duplicate, queue); or which columns of any CSV they are
    #[arg(long, value_name = "NAMES")]
    columns: Option<String>,
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
    let reading = Reading { format: args.from, columns: args.columns.as_deref() };
    let trace = load(&args.input, reading, args.resample.as_deref(), args.quiet)?;
    let output = args.output.as_deref().or(args.to_file.as_deref()).unwrap_or(Path::new("-"));
    let format = args.to.or_else(|| Format::of_file(&output.to_string_lossy())).ok_or_else(|| {
        let can = Format::ALL.iter().filter(|format| trace.write(**format).is_ok());
        let names = can.map(|format| format.name()).collect::<Vec<_>>().join(", ");
        Failure::Other(format!("{}: unknown format; set it with --to: one of {names}", output.display()))
    })?;
    let written = trace.write(format).map_err(|error| Failure::Other(error.to_string()))?;
    put(output, &written.text)?;
    tell(trace.remarks().iter().chain(&written.remarks));
    Ok(0)
}

fn info(args: &Info) -> Result<u8, Failure> {
    let reading = Reading { format: args.from, columns: args.columns.as_deref() };
    let info = load(&args.file, reading, None, args.quiet)?.info();
    args.json.put(SCHEMA, &info, || info.to_string())?;
    Ok(0)
}

fn plot(args: &Plot) -> Result<u8, Failure> {
    crate::output::probe_plot(args.plot.as_deref())?;
    let reading = Reading { format: args.from, columns: args.columns.as_deref() };
    let trace = load(&args.file, reading, args.resample.as_deref(), args.quiet)?;
    let figure = picture::figure(&args.file.display().to_string(), &trace).svg();
    put(args.plot.as_deref().unwrap_or(Path::new("-")), &figure)?;
    Ok(0)
}

/// How a trace is read.
struct Reading<'a> {
    format: Option<Format>,
    columns: Option<&'a str>,
}

impl Reading<'_> {
    fn read(&self, name: &str, bytes: &[u8]) -> Result<Trace, Failure> {
        let wrong = |error: String| Failure::Other(format!("--columns: {error}"));
        match self.columns {
            Some(text) if text.contains('=') => {
                if let Some(format) = self.format.filter(|format| *format != Format::CSV) {
                    return Err(wrong(format!("named columns are those of a CSV file, not of {format}")));
                }
                Ok(Trace::read_columns(name, bytes, &text.parse::<Columns>().map_err(wrong)?)?)
            }
            Some(text) => {
                let names: Vec<&str> = text.split(',').map(str::trim).collect();
                Trace::read(name, bytes, self.format)?.only(&names).map_err(wrong)
            }
            None => Ok(Trace::read(name, bytes, self.format)?),
        }
    }
}

/// Reads a trace; resamples it in steps if requested.
fn load(file: &Path, reading: Reading<'_>, step: Option<&str>, quiet: Quiet) -> Result<Trace, Failure> {
    let (name, bytes) = read(file)?;
    let megabytes = bytes.len() as f64 / 1e6;
    let _progress = Progress::waiting(quiet.quiet, &format!("reading {megabytes:.1} MB of {name}"));
    let trace = reading.read(&name, &bytes)?;
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
    match read_bytes(file) {
        Ok(bytes) => Ok((name, bytes)),
        Err(cause) => Err(Failure::Other(format!("cannot read {name}: {cause}"))),
    }
}

/// Prints remarks to stderr.
pub(crate) fn tell<'a>(remarks: impl IntoIterator<Item = &'a String>) {
    for remark in remarks {
        say(format_args!("narrows: note: {remark}"));
    }
}
