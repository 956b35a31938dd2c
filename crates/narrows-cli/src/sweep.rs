//! `narrows sweep`: runs a scenario over a grid of values and many seeds, using the Python package.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::{Args, ValueHint};

use crate::output::Failure;

/// Tests whether the package is installed.
const IS_THERE: &str = "import narrows.sweep_command";

#[derive(Debug, Args)]
#[command(after_help = "\
FILE.toml names a scenario, how many seeds, the values of each key, and figures of the report:

  scenario = \"adsl.toml\"
  seeds = 100
  [grid]
  \"access.down.queue\" = [\"20 packets\", \"codel\"]
  [measure]
  lost = \"access.down.dropped_share\"

Needs the Python package of narrows. See docs/python.md.

Examples:
  narrows sweep sweep.toml
  narrows sweep sweep.toml --out results.parquet --cache results --by access.down.queue --of lost")]
pub(crate) struct Sweep {
    /// Scenario, seeds, grid and figures
    #[arg(value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Write a row for each run as Parquet, and a manifest beside it
    #[arg(long, value_name = "FILE.parquet")]
    out: Option<PathBuf>,
    /// Keep results in this folder: an interrupted sweep goes on, a repeated one takes no time
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Number of processes [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<u32>,
    /// Figure to summarise; repeatable [default: those of the file]
    #[arg(long, value_name = "FIGURE")]
    of: Vec<String>,
    /// Axis to summarise by; repeatable [default: all]
    #[arg(long, value_name = "AXIS")]
    by: Vec<String>,
    /// Confidence of the intervals [default: 0.95]
    #[arg(long, value_name = "SHARE")]
    ci: Option<String>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// Replaces this process by the package's command.
pub(crate) fn sweep(args: &Sweep) -> Result<u8, Failure> {
    let mut command = Command::new(python()?);
    command.args(["-m", "narrows", "sweep"]).arg(&args.file);
    let paths = [("--out", &args.out), ("--cache", &args.cache)];
    for (flag, path) in paths.into_iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?))) {
        command.arg(flag).arg(path);
    }
    let texts = [("--jobs", args.jobs.map(|jobs| jobs.to_string())), ("--ci", args.ci.clone())];
    for (flag, text) in texts.into_iter().filter_map(|(flag, text)| Some((flag, text?))) {
        command.args([flag, &text]);
    }
    for (flag, names) in [("--of", &args.of), ("--by", &args.by)] {
        command.args(names.iter().flat_map(|name| [flag, name]));
    }
    if args.json {
        command.arg("--json");
    }
    let refused = command.exec();
    Err(Failure::Other(format!("cannot start Python: {refused}")))
}

/// A Python interpreter with the package: that of this program's environment, or the first in the path.
fn python() -> Result<PathBuf, Failure> {
    let beside = std::env::current_exe().ok().map(|program| program.with_file_name("python3"));
    let has_package = |python: &PathBuf| {
        let mut asked = Command::new(python);
        let asked =
            asked.args(["-c", IS_THERE]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    };
    beside.into_iter().chain(["python3".into()]).find(has_package).ok_or_else(|| {
        Failure::Other(
            "sweeps need the Python package of narrows, which `python3` does not have here: docs/python.md says how to install it"
                .into(),
        )
    })
}
