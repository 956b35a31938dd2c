//! `narrows calibrate`.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use narrows_calibrate::{Effort, calibrate as measure};
use narrows_io::host::Capabilities;
use narrows_io::user_namespace::{InnerUser, enter_user_namespace};

use crate::output::{Failure, print, probe_plot, probe_writable, write_json};

/// What nobody can guess, at the end of the help.
const HELP: &str = "\
It takes over a minute, in which the host should have nothing else to do. What is measured, and how
to read it: docs/calibrate.md.

Examples:
  narrows calibrate --plot host.svg
  narrows calibrate --json - | jq .knee_per_second";

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Calibrate {
    /// Write the figures for a program; - is the standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw a page of plots
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Everything once, in a few seconds: to see that it works, not to believe the figures
    #[arg(long)]
    quick: bool,
}

pub(crate) fn calibrate(args: &Calibrate) -> Result<u8, Failure> {
    probe_writable(args.json.as_deref())?;
    probe_plot(args.plot.as_deref())?;
    let capabilities = Capabilities::effective()
        .map_err(|error| Failure::Other(format!("cannot read this process's capabilities: {error}")))?;
    if !capabilities.all() {
        enter_user_namespace(InnerUser::Root)?;
    }
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    let terminal = io::stderr().is_terminal();
    let found = measure(effort, |step| {
        // Whoever closed the standard error does not want to know.
        let _ = match terminal {
            true => write!(io::stderr(), "\r\x1b[Kmeasuring: {step}"),
            false => Ok(()),
        };
    });
    if terminal {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    let found = found?;
    if let Some(path) = &args.plot {
        fs::write(path, found.page().svg()).map_err(|cause| Failure::Write { path: path.clone(), cause })?;
    }
    if let Some(path) = &args.json {
        write_json(path, &found)?;
    }
    if args.json.as_deref() != Some(Path::new("-")) {
        print(&found.to_string())?;
    }
    Ok(0)
}
