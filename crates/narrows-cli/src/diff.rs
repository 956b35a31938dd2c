//! `narrows diff`, and `narrows set --to`: what makes one scenario of another, or of what a run has in force.

use std::path::{Path, PathBuf};

use clap::Args;
use narrows_live::control::{Client, ControlError};
use narrows_scenario::{Difference, Scenario};

use crate::json::Json;
use crate::output::{Failure, say};

/// How often a change is worked out again because somebody else was faster.
const TRIES: u32 = 20;

/// The version of the JSON.
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

/// Status 0 where there is no difference, 1 where there is one, as of diff(1).
pub(crate) fn diff(args: &Diff) -> Result<u8, Failure> {
    let difference = match &args.second {
        Some(second) => Scenario::load(&args.first)?.difference(&Scenario::load(second)?),
        None => from_run(&Client::find(args.run.as_deref())?, &Scenario::load(&args.first)?, &args.first)?.0,
    };
    args.json.put(SCHEMA, &difference, || difference.to_string())?;
    Ok(u8::from(!difference.is_none()))
}

/// Makes a run like a scenario, as far as a run can be changed. Where somebody else changes it meanwhile, once more from what
/// is in force then.
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

/// Makes a run like a scenario, which was read from this file, as far as a run can be changed. Gives what was changed, and what
/// only another run can have.
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

/// What makes a scenario of what a run has in force, and the generation of that.
fn from_run(run: &Client, after: &Scenario, file: &Path) -> Result<(Difference, u64), Failure> {
    let current = run.scenario()?;
    // Files that it names are found where those of the scenario are.
    let name = file.with_file_name("the current settings of the run");
    let before = Scenario::parse(&current.toml, &name.to_string_lossy())?;
    Ok((before.difference(after), current.generation))
}
