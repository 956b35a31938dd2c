//! `narrows preset`: lists presets and shows the sources of their values.

use clap::{Args, Subcommand};
use narrows_scenario::Preset;
use serde::Serialize;

use crate::json::Json;
use crate::output::Failure;

/// What is asked of presets.
#[derive(Debug, Subcommand)]
pub(crate) enum PresetCommand {
    /// List all presets: rates, round-trip times, which values are measured
    #[command(visible_alias = "ls")]
    List(List),
    /// Show a preset's values, their published sources, and what was not measured
    Show(Show),
}

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows preset list
  narrows run --preset dsl -- curl -o /dev/null http://$NARROWS_SERVER/")]
pub(crate) struct List {
    #[command(flatten)]
    json: Json,
}

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows preset show leo-satellite")]
pub(crate) struct Show {
    /// The name of the preset
    name: String,
    #[command(flatten)]
    json: Json,
}

/// Version of the JSON output.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Presets {
    presets: Vec<serde_json::Value>,
}

/// Runs a subcommand.
pub(crate) fn preset(command: &PresetCommand) -> Result<u8, Failure> {
    match command {
        PresetCommand::List(args) => list(args),
        PresetCommand::Show(args) => show(args),
    }
}

fn list(args: &List) -> Result<u8, Failure> {
    let all: Vec<Preset> = Preset::names().into_iter().map(Preset::named).collect::<Result<_, _>>()?;
    let width = all.iter().map(|preset| preset.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Preset { name, about, figures, measured, .. } in &all {
        text += &format!("{name:width$}  {about}\n{:width$}  {figures} (measured: {measured})\n", "");
    }
    text += "\nWhere the values come from: narrows preset show NAME\n";
    let found = Presets { presets: all.iter().map(Preset::json).collect() };
    args.json.put(SCHEMA, &found, || text)?;
    Ok(0)
}

fn show(args: &Show) -> Result<u8, Failure> {
    let preset = Preset::named(&args.name)?;
    args.json.put(SCHEMA, &preset.json(), || preset.to_string())?;
    Ok(0)
}
