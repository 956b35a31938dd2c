//! `narrows dist plot`.

use std::path::PathBuf;

use clap::Args;
use narrows_core::model::Distribution;
use narrows_lab::dist::figure;

use super::input::{Delays, Input, distribution};
use super::picture;
use crate::output::Failure;

/// Additional help text, at the end of the help.
const HELP: &str = "\
Examples:
  narrows dist plot rtt.txt --unit ms --plot rtt.svg
  narrows dist plot rtt.txt --unit ms --fit '{ gamma = { shape = 2.1, scale = \"1.2ms\" }, shift = \"9ms\" }' --plot rtt.png";

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Plot {
    #[command(flatten)]
    input: Input,
    /// Distribution to draw beside the samples, as in a scenario; repeatable
    #[arg(long, value_name = "DELAY")]
    fit: Vec<String>,
    /// Output file; PNG needs rsvg-convert, inkscape or magick
    #[arg(long, alias = "output", short_alias = 'o', value_name = "FILE.svg|png")]
    plot: PathBuf,
}

pub(crate) fn plot(args: &Plot) -> Result<u8, Failure> {
    picture::probe(Some(&args.plot), "--plot")?;
    let fits = args.fit.iter().map(|text| distribution(text, "--fit")).collect::<Result<Vec<_>, _>>()?;
    let delays = Delays::read(&args.input.file, &args.input.options.column(false))?;
    delays.differ()?;
    let named: Vec<_> = fits.iter().enumerate().map(|(index, fit)| (name(index + 1, fit), fit)).collect();
    picture::write(&args.plot, &figure(&delays.name, &delays.sample, &named))?;
    Ok(0)
}

/// Maximum length of a name in the legend.
const LONGEST: usize = 48;

/// The name of a distribution in the legend.
fn name(number: usize, distribution: &Distribution) -> String {
    let words = distribution.to_string();
    let words = words.strip_suffix(", below zero clamped").unwrap_or(&words);
    match words.chars().count() <= LONGEST {
        true => words.into(),
        false => format!("{}, the distribution no. {number}", words.split([' ', ',']).next().unwrap_or("")),
    }
}
