//! `narrows profile`: describes and plots link profiles.

mod picture;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use narrows_scenario::Profile;

use crate::json::Json;
use crate::output::{Failure, put};
use crate::trace::{read, tell};

/// Version of the JSON output of `info`.
const SCHEMA: u32 = 2;

/// What is done with a profile.
#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Show a profile's air time, losses and effective rate
    Info(Info),
    /// Plot its CDF and the effective rate, as SVG
    Plot(Plot),
}

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows profile info scenarios/profiles/802.11g-1024.profile")]
pub(crate) struct Info {
    /// The profile; - is the standard input
    file: PathBuf,
    #[command(flatten)]
    json: Json,
}

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows profile plot scenarios/profiles/802.11g-1024.profile --plot wifi.svg")]
pub(crate) struct Plot {
    /// The profile; - is the standard input
    file: PathBuf,
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
}

/// Runs a subcommand.
pub(crate) fn profile(command: &ProfileCommand) -> Result<u8, Failure> {
    match command {
        ProfileCommand::Info(args) => info(args),
        ProfileCommand::Plot(args) => plot(args),
    }
}

fn info(args: &Info) -> Result<u8, Failure> {
    let info = load(&args.file)?.1.info();
    args.json.put(SCHEMA, &info, || info.to_string())?;
    Ok(0)
}

fn plot(args: &Plot) -> Result<u8, Failure> {
    crate::output::probe_plot(args.plot.as_deref())?;
    let (name, profile) = load(&args.file)?;
    let figure = picture::figure(profile.name().unwrap_or(&name), &profile).svg();
    put(args.plot.as_deref().unwrap_or(Path::new("-")), &figure)?;
    tell(profile.remarks());
    Ok(0)
}

fn load(file: &Path) -> Result<(String, Profile), Failure> {
    let (name, bytes) = read(file)?;
    let profile = Profile::read(&name, &bytes)?;
    Ok((name, profile))
}
