//! `narrows calibrate`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use narrows_calibrate::{Effort, calibrate as measure};
use narrows_io::host::Capabilities;
use narrows_io::user_namespace::{InnerUser, enter_user_namespace};

use crate::json::{Json, is_stdout};
use crate::output::{Failure, print, probe_plot, put, write_json};
use crate::progress::{Progress, Quiet};

/// Exit status of an interrupted calibration, as a shell reports Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Additional help text, at the end of the help.
const HELP: &str = "\
Takes about 75 s on an otherwise idle host and shows the accuracy it can reach next to its noise
floor. See docs/calibrate.md.

Examples:
  narrows calibrate --plot host.svg
  narrows calibrate --json - | jq .knee_per_second";

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Calibrate {
    #[command(flatten)]
    json: Json,
    /// Draw a page of plots, as SVG
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Measure each thing once, in a few seconds: to see that it works; figures are not reliable
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    quiet: Quiet,
}

pub(crate) fn calibrate(args: &Calibrate) -> Result<u8, Failure> {
    args.json.probe()?;
    probe_plot(args.plot.as_deref())?;
    let capabilities = Capabilities::effective()
        .map_err(|error| Failure::Other(format!("cannot read this process's capabilities: {error}")))?;
    if !capabilities.all() {
        enter_user_namespace(InnerUser::Root)?;
    }
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    let mut progress = Progress::new(args.quiet.quiet);
    let found = measure(effort, |done, total, step| progress.tell(done as u64, Some(total as u64), step));
    drop(progress);
    let found = found?;
    if let Some(path) = args.plot.as_deref().filter(|_| !found.interrupted) {
        put(path, &found.page().svg())?;
    }
    if let Some(path) = args.json.path() {
        write_json(path, &found)?;
    }
    if !args.json.takes_stdout() && !is_stdout(args.plot.as_deref()) {
        print(&found.to_string())?;
    }
    if found.interrupted {
        // If stderr is closed, the exit status is enough.
        let _ = writeln!(io::stderr(), "narrows: interrupted: partial measurements follow");
        return Ok(found.signal.map_or(INTERRUPTED, |signal| 128 + signal as u8)); // at most 64
    }
    Ok(0)
}
