//! `narrows profile`: link profiles, described and drawn.

mod picture;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use narrows_scenario::Profile;

use crate::output::{Failure, print, write_json};
use crate::trace::{put, read, tell};

/// What is done with a profile.
#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Show a profile's air time, losses and the rate that is left
    Info(Info),
    /// Draw its distribution function, and what is left of the rate, as SVG
    Plot(Plot),
}

/// Its arguments.
#[derive(Debug, Args)]
pub(crate) struct Info {
    /// The profile; - is the standard input
    file: PathBuf,
    /// Write it for a program instead; - is the standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Its arguments.
#[derive(Debug, Args)]
pub(crate) struct Plot {
    /// The profile; - is the standard input
    file: PathBuf,
    /// Where the figure goes
    #[arg(short, long, value_name = "FILE.svg", required_unless_present = "svg")]
    output: Option<PathBuf>,
    /// Print the figure
    #[arg(long, conflicts_with = "output")]
    svg: bool,
}

/// Does one of them.
pub(crate) fn profile(command: &ProfileCommand) -> Result<u8, Failure> {
    match command {
        ProfileCommand::Info(args) => info(args),
        ProfileCommand::Plot(args) => plot(args),
    }
}

fn info(args: &Info) -> Result<u8, Failure> {
    let info = load(&args.file)?.1.info();
    match &args.json {
        Some(path) => write_json(path, &info)?,
        None => print(&info.to_string())?,
    }
    Ok(0)
}

fn plot(args: &Plot) -> Result<u8, Failure> {
    crate::output::probe_plot(args.output.as_deref())?;
    let (name, profile) = load(&args.file)?;
    let figure = picture::figure(profile.name().unwrap_or(&name), &profile).svg();
    put(args.output.as_deref().unwrap_or(Path::new("-")), &figure)?;
    tell(profile.remarks());
    Ok(0)
}

fn load(file: &Path) -> Result<(String, Profile), Failure> {
    let (name, bytes) = read(file)?;
    let profile = Profile::read(&name, &bytes)?;
    Ok((name, profile))
}
