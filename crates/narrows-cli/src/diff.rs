//! `narrows diff`, and `narrows set --to`: the difference between two scenarios, or between a run's current
//! settings and a scenario.

use std::path::{Path, PathBuf};

use clap::Args;
use narrows_live::control::{Client, ControlError};
use narrows_scenario::{Difference, Scenario};

use crate::json::Json;
use crate::output::{Failure, say};
use crate::outputs;

/// Maximum number of attempts to apply a change while others change the run.
const TRIES: u32 = 20;

/// Version of the JSON output.
const SCHEMA: u32 = 1;

/// The arguments of `narrows diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows diff access.toml edited.toml
  narrows diff edited.toml --run 4711
  narrows set --to edited.toml")]
pub(crate) struct Diff {
    /// A scenario file, which is compared with what a run has in force where it stands alone
    first: PathBuf,
    /// The scenario file that is to come of the first
    second: Option<PathBuf>,
    /// Run, by name or number [default: the only one, or the one around this shell]
    #[arg(long, conflicts_with = "second")]
    run: Option<String>,
    #[command(flatten)]
    json: Json,
}

/// Status 0 without a difference, 1 with one, as in diff(1).
pub(crate) fn diff(args: &Diff) -> Result<u8, Failure> {
    let load = |file: &Path| -> Result<Scenario, Failure> {
        let scenario = Scenario::load(file)?;
        outputs::check_scenario(&[("--json", args.json.path())], &scenario, Some(file))?;
        Ok(scenario)
    };
    let difference = match &args.second {
        Some(second) => load(&args.first)?.difference(&load(second)?),
        None => {
            let run = Client::find_or_start(args.run.as_deref())?;
            from_run(&run, &load(&args.first)?, &args.first)?.0
        }
    };
    args.json.put(SCHEMA, &difference, || difference.to_string())?;
    Ok(u8::from(!difference.is_none()))
}

/// Changes a run to match a scenario, as far as a run can be changed. If others change the run meanwhile,
/// tries again from the new settings.
pub(crate) fn set_to(run: &Client, file: &Path, partly: bool) -> Result<(), Failure> {
    for _ in 0..TRIES {
        let (difference, generation) = from_run(run, &Scenario::load(file)?, file)?;
        if !difference.others.is_empty() {
            let others = Difference { assignments: Vec::new(), ..difference.clone() };
            if !partly {
                return Err(Failure::Other(format!(
                    "{others}nothing was changed; --partly applies the rest"
                )));
            }
            say(others.to_string().trim_end());
        }
        match run.set(difference.assignments, Some(generation)) {
            Err(ControlError::Stale(_)) => {}
            result => return Ok(result.map(|_| ())?),
        }
    }
    Err(restless())
}

/// Changes a run to match a scenario that was read from this file, as far as a run can be changed. Returns
/// what was changed, and what needs a new run.
pub(crate) fn approach(run: &Client, scenario: &Scenario, file: &Path) -> Result<Difference, Failure> {
    for _ in 0..TRIES {
        let (difference, generation) = from_run(run, scenario, file)?;
        if difference.assignments.is_empty() {
            return Ok(difference);
        }
        match run.set(difference.assignments.clone(), Some(generation)) {
            Err(ControlError::Stale(_)) => {}
            result => return Ok(result.map(|_| difference)?),
        }
    }
    Err(restless())
}

fn restless() -> Failure {
    Failure::Other(format!("others changed the run {TRIES} times in the meantime; try again"))
}

/// The difference from the run's current settings to a scenario, and the generation of these settings.
fn from_run(run: &Client, after: &Scenario, file: &Path) -> Result<(Difference, u64), Failure> {
    let current = run.scenario()?;
    // Files are looked up relative to the scenario's folder.
    let name = file.with_file_name("the current settings of the run");
    let before = Scenario::parse(&current.toml, &name.to_string_lossy())?;
    Ok((before.difference(after), current.generation))
}
