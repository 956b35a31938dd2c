//! `narrows dist make`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use narrows_core::Duration;
use narrows_core::model::Distribution;
use narrows_lab::dist::{Table, by_quantiles, cdf_entry, histogram_entry, maketable};
use narrows_lab::statistics::Sample;
use narrows_scenario::tables::write_dist;

use super::input::{Delays, Options, distribution};
use crate::output::{Failure, print, probe_writable, say};

/// Additional help text, at the end of the help.
const HELP: &str = "\
A table holds 4096 delays in steps of sd/8192, within 4 sd; NetEm draws one of them per packet.
`maketable` gives the same numbers as iproute2 and cuts off at 4 sd; `quantiles` is closer to the
samples. See docs/distributions.md.

Examples:
  narrows dist make rtt.txt --unit ms -o rtt.dist
  narrows dist make rtt.txt --unit ms --toml=cdf
  narrows dist make --distribution '{ gamma = { shape = 2.5, scale = \"1ms\" } }' -o gamma.dist";

/// The line of the comment in maketable's files that identifies a distribution table.
const COMMENT: &str = "This is the distribution table for the experimental distribution.";
/// For an unbounded distribution, entries stop at this share from the end.
const END: f64 = 1e-6;

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Make {
    /// Measured delays: one number per line, or a CSV column; - is stdin
    #[arg(value_name = "SAMPLES", required_unless_present = "distribution", conflicts_with = "distribution")]
    samples: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
    /// Distribution as in a scenario, instead of samples
    #[arg(long, value_name = "DELAY", conflicts_with_all = ["unit", "column", "plain"])]
    distribution: Option<String>,
    /// Take bare numbers of any sign, and only the shape of their distribution
    #[arg(long, conflicts_with_all = ["unit", "toml"])]
    plain: bool,
    /// Output file; - is stdout
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Write a scenario entry instead of a .dist table
    #[arg(long, value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "histogram")]
    toml: Option<Kind>,
    /// Table method [default: maketable for samples, quantiles for a distribution]
    #[arg(long, value_name = "METHOD", conflicts_with = "toml")]
    method: Option<Method>,
}

/// What a scenario's line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// 100 bins of equal width
    Histogram,
    /// 201 points of the distribution function
    Cdf,
    /// The file's name, so that the values themselves are drawn
    Samples,
}

/// How a table is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    /// As iproute2's maketable, number for number
    Maketable,
    /// The delay at each of 4096 equal steps of probability
    Quantiles,
}

/// What the output is made from.
enum Origin {
    Delays(Delays),
    Distribution(Box<Distribution>),
}

pub(crate) fn make(args: &Make) -> Result<u8, Failure> {
    let origin = match (&args.samples, &args.distribution) {
        (Some(file), _) => Origin::Delays(Delays::read(file, &args.options.column(args.plain))?),
        (None, text) => Origin::Distribution(Box::new(distribution(
            text.as_deref().unwrap_or_default(),
            "--distribution",
        )?)),
    };
    probe_writable(Some(&args.output))?;
    match args.toml {
        Some(kind) => write(&args.output, &args.toml_text(&origin, kind)?)?,
        None => args.make_table(&origin)?,
    }
    Ok(0)
}

impl Make {
    fn make_table(&self, origin: &Origin) -> Result<(), Failure> {
        let method = match (origin, self.method) {
            (Origin::Delays(_), method) => method.unwrap_or(Method::Maketable),
            (Origin::Distribution(_), None | Some(Method::Quantiles)) => Method::Quantiles,
            (Origin::Distribution(_), Some(Method::Maketable)) => {
                return Err(Failure::Other("--method maketable makes tables from samples only".into()));
            }
        };
        let table = match (origin, method) {
            (Origin::Delays(delays), Method::Maketable) => {
                delays.differ()?;
                // In the file's unit, as maketable reads it, so that the last digits match.
                maketable(&delays.samples.values).map(|table| {
                    let scale = delays.samples.unit.map_or(1.0, |unit| unit.nanoseconds());
                    Table { mean: table.mean * scale, sd: table.sd * scale, ..table }
                })
            }
            (Origin::Delays(delays), Method::Quantiles) => {
                delays.differ()?;
                by_quantiles(|p| delays.sample.inverse_cdf(p))
            }
            (Origin::Distribution(distribution), _) => by_quantiles(|p| distribution.quantile(p)),
        };
        let table = table.ok_or_else(|| {
            Failure::Other("the delay is (nearly) constant: NetEm needs no table for that".into())
        })?;
        write(&self.output, &write_dist(COMMENT, &table.entries))?;
        let note = self.note(origin, &table, method);
        match self.output == Path::new("-") {
            true => say(note.trim_end()),
            false => print(&note)?,
        }
        Ok(())
    }

    /// Describes the output, its use, and its deviation from the origin.
    fn note(&self, origin: &Origin, table: &Table, method: Method) -> String {
        let how = match method {
            Method::Maketable => "as iproute2's maketable makes it",
            Method::Quantiles => "by quantiles",
        };
        let mut note = format!("{}: {} entries, {how}\n", self.output.display(), table.entries.len());
        if self.plain {
            return note
                + "Bare numbers keep only their shape: give NetEm the mean and deviation you want.\n";
        }
        let name = self
            .output
            .file_stem()
            .and_then(|name| name.to_str())
            .filter(|name| *name != "-")
            .unwrap_or("NAME");
        let file = if self.output == Path::new("-") {
            "NAME.dist".into()
        } else {
            self.output.display().to_string()
        };
        let (mean, sd) = (nanos(table.mean), nanos(table.sd));
        note += &format!(
            "scenario: delay = {{ table = {{ file = {}, mean = \"{mean}\", sd = \"{sd}\" }} }}\n",
            quoted(&file)
        );
        note += &format!("netem:    delay {mean} {sd} distribution {name}\n");
        let drawn = drawn(table);
        let (entries, others) = match origin {
            Origin::Delays(delays) => {
                let other = match method {
                    Method::Maketable => by_quantiles(|p| delays.sample.inverse_cdf(p)),
                    Method::Quantiles => None,
                };
                let other = other.map(|other| delays.sample.wasserstein_to(&self::drawn(&other)));
                (delays.sample.wasserstein_to(&drawn), other)
            }
            Origin::Distribution(distribution) => (drawn.wasserstein(|p| distribution.quantile(p)), None),
        };
        note += &format!(
            "It gives delays from {} to {}, mean {}, standard deviation {}, in steps of {:.0}ns; no values beyond these, nor rarer than 1 in {}.\nWasserstein distance from the original: {}",
            nanos(drawn.least()),
            nanos(drawn.greatest()),
            nanos(drawn.mean()),
            nanos(drawn.sd()),
            (table.sd / 8192.0).max(1.0),
            table.entries.len(),
            nanos(entries),
        );
        if let Some(other) = others {
            note += &format!("; a table by quantiles (--method quantiles) would have {}", nanos(other));
        }
        note + "\n"
    }

    fn toml_text(&self, origin: &Origin, kind: Kind) -> Result<String, Failure> {
        let entry = match (origin, kind) {
            (Origin::Delays(delays), Kind::Samples) => {
                if self.samples.as_deref() == Some(Path::new("-")) {
                    return Err(Failure::Other(
                        "--toml=samples names the file, so that has to be one".into(),
                    ));
                }
                let unit = self.options.unit.map_or(String::new(), |unit| format!(", unit = \"{unit}\""));
                let column = self
                    .options
                    .column
                    .as_ref()
                    .map_or(String::new(), |name| format!(", column = {}", quoted(name)));
                format!("delay = {{ samples = {{ file = {}{unit}{column} }} }}", quoted(&delays.name))
            }
            (Origin::Delays(delays), Kind::Cdf) => {
                delays.differ()?;
                cdf_entry(|p| delays.sample.quantile(p))
            }
            (Origin::Delays(delays), Kind::Histogram) => {
                delays.differ()?;
                let sample = &delays.sample;
                histogram_entry(sample.least(), sample.greatest(), |x| sample.cdf(x))
            }
            (Origin::Distribution(_), Kind::Samples) => {
                return Err(Failure::Other("--toml=samples needs a file of samples".into()));
            }
            (Origin::Distribution(distribution), Kind::Cdf) => cdf_entry(|p| within(distribution, p)),
            (Origin::Distribution(distribution), Kind::Histogram) => {
                let ends = (within(distribution, 0.0), within(distribution, 1.0));
                histogram_entry(ends.0, ends.1, |x| distribution.cdf(x))
            }
        };
        Ok(entry + "\n")
    }
}

/// The quantile; for an unbounded distribution limited to all but a millionth.
fn within(distribution: &Distribution, p: f64) -> f64 {
    match distribution.quantile(p) {
        end if end.is_finite() => end,
        _ => distribution.quantile(p.clamp(END, 1.0 - END)),
    }
}

/// The delays that a table gives: NetEm sends packets with a negative delay at once.
fn drawn(table: &Table) -> Sample {
    let values = table.entries.iter().map(|&entry| table.value(entry).max(0.0)).collect();
    Sample::new(values).expect("a table has entries, and they are finite")
}

fn nanos(value: f64) -> Duration {
    Duration::from_nanos(value.max(0.0).round() as u64)
}

/// As a TOML string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    match path == Path::new("-") {
        true => print(text),
        false => fs::write(path, text).map_err(|cause| Failure::Write { path: path.into(), cause }),
    }
}
