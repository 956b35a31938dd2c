//! `narrows preset`: links by name, and where their values come from.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use narrows_scenario::Preset;

use crate::output::{Failure, print, write_json};

/// What is asked of presets.
#[derive(Debug, Subcommand)]
pub(crate) enum PresetCommand {
    /// List all presets: rates, round trips, what of them is measured
    #[command(visible_alias = "ls")]
    List(List),
    /// Show a preset's values, their published sources, and what was not measured
    Show(Show),
}

/// Its arguments.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Write the list as JSON instead (`-` for stdout)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Its arguments.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The name of the preset
    name: String,
    /// Write it as JSON instead (`-` for stdout)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Does one of them.
pub(crate) fn preset(command: &PresetCommand) -> Result<u8, Failure> {
    match command {
        PresetCommand::List(args) => list(args),
        PresetCommand::Show(args) => show(args),
    }
}

fn list(args: &List) -> Result<u8, Failure> {
    let all: Vec<Preset> = Preset::names().into_iter().map(Preset::named).collect::<Result<_, _>>()?;
    if let Some(path) = &args.json {
        write_json(path, &all.iter().map(Preset::json).collect::<Vec<_>>())?;
        return Ok(0);
    }
    let width = all.iter().map(|preset| preset.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Preset { name, about, figures, measured, .. } in &all {
        text += &format!("{name:width$}  {about}\n{:width$}  {figures} (measured: {measured})\n", "");
    }
    text += "\nWhere the values come from: narrows preset show NAME\n";
    print(&text)?;
    Ok(0)
}

fn show(args: &Show) -> Result<u8, Failure> {
    let preset = Preset::named(&args.name)?;
    match &args.json {
        Some(path) => write_json(path, &preset.json())?,
        None => print(&preset.to_string())?,
    }
    Ok(0)
}
