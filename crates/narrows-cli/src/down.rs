//! `narrows down`: ends runs, waits for them, and prints their reports.

use std::io::stdout;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::process::OtherProcess;
use narrows_io::wait::{Waiting, wait};
use narrows_live::control::{self, Client, ControlError, KnownRun, Liveness, known_runs};
use narrows_live::run_record::RunKind;

use crate::output::{Failure, print, print_coloured};
use crate::report::{Kept, look};

/// Maximum time for a run to end: programs get two seconds, twice, and the record is written to disk.
const PATIENCE: Duration = Duration::from_secs(30);

/// The arguments of `narrows down`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows down dsl
  narrows down --all --quiet")]
pub(crate) struct Down {
    /// Runs, by name or number
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    runs: Vec<String>,
    /// All networks of `narrows up`
    #[arg(long)]
    all: bool,
    /// Print no summaries
    #[arg(long, short)]
    quiet: bool,
}

/// A run that was asked to end.
pub(crate) struct Ending {
    called: String,
    number: u32,
    process: OtherProcess,
    reports: Option<PathBuf>,
    since_ns: u64,
}

pub(crate) fn down(args: &Down) -> Result<u8, Failure> {
    let (all, _) = known_runs(&control::run_folder()).map_err(|error| Failure::Other(error.to_string()))?;
    let meant: Vec<KnownRun> = match args.all {
        true => {
            let is_up = |run: &KnownRun| run.about.kind == RunKind::Up && run.liveness != Liveness::Dead;
            all.into_iter().filter(is_up).collect()
        }
        false => args.runs.iter().map(|run| find(&all, run)).collect::<Result<_, _>>()?,
    };
    let mut failed = Vec::new();
    let mut ending = Vec::new();
    for run in &meant {
        match ask(run) {
            Ok(asked) => ending.extend(asked),
            Err(error) => failed.push(format!("{}: {error}", run.called())),
        }
    }
    let deadline = within(PATIENCE);
    for (position, one) in ending.iter().enumerate() {
        if !one.is_over_by(deadline)? {
            failed.push(format!(
                "{} has not ended within {} s; kill -9 {} and narrows clean end it",
                one.called,
                PATIENCE.as_secs(),
                one.number
            ));
            continue;
        }
        if !args.quiet {
            let gap = if position == 0 { "" } else { "\n" };
            print(&format!("{gap}{} is down\n", one.called))?;
            let kept = one.reports.clone().map_or_else(Kept::find, Kept::at);
            match kept.of_run(one.number, one.since_ns) {
                Some(report) => print_coloured(&report.summary(look(&stdout())).to_string())?,
                None => print("its report was not kept\n")?,
            }
        }
    }
    if meant.is_empty() && !args.quiet {
        print("no network is up\n")?;
    }
    if failed.is_empty() { Ok(0) } else { Err(Failure::Other(failed.join("\n"))) }
}

/// The running network with this name or number.
fn find(all: &[KnownRun], name: &str) -> Result<KnownRun, Failure> {
    // If a killed run had the same name, the current run is meant.
    let is_meant = |run: &&KnownRun| run.is_called(name);
    let found = all.iter().rfind(|run| is_meant(run) && run.liveness != Liveness::Dead);
    match found.or_else(|| all.iter().rfind(is_meant)) {
        Some(run) if run.liveness == Liveness::Dead => Err(Failure::Other(format!(
            "the run {} was killed; narrows clean removes what it left",
            run.called()
        ))),
        Some(run) => Ok(run.clone()),
        None => {
            let alive = all.iter().filter(|run| run.liveness != Liveness::Dead);
            let others: Vec<_> = alive.map(KnownRun::called).collect();
            let others = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
            Err(Failure::Other(format!("no active run `{name}`; active: {others}")))
        }
    }
}

impl Ending {
    /// Whether it has ended, which is waited for until this time.
    pub(crate) fn is_over_by(&self, deadline: MonotonicTime) -> Result<bool, Failure> {
        let waited = wait(&mut [Waiting::readable(&self.process)], Some(deadline));
        waited.map_err(|cause| Failure::Other(format!("cannot wait for {}: {cause}", self.called)))?;
        Ok(self.process.is_over().unwrap_or(true))
    }
}

/// This much later.
pub(crate) fn within(patience: Duration) -> MonotonicTime {
    MonotonicTime::from_nanos(clock_monotonic().as_nanos().saturating_add(patience.as_nanos() as u64))
}

/// Asks a run to end; `None` if it has ended meanwhile.
pub(crate) fn ask(run: &KnownRun) -> Result<Option<Ending>, Failure> {
    let client = Client::at(&run.socket);
    let number = match client.process() {
        // It is already ending and has closed its control socket. Its record has its number.
        Err(ControlError::Nobody { .. }) => run.number,
        number => number?.ok_or_else(|| {
            let why = "it is in a PID namespace not visible from here: end it from where it was started";
            Failure::Other(why.into())
        })?,
    };
    // Opened before asking: afterwards the number may belong to another process.
    let process = match OtherProcess::open(number) {
        Ok(process) => process,
        Err(cause) if cause.raw_os_error() == Some(NO_SUCH_PROCESS) => return Ok(None),
        Err(cause) => return Err(Failure::Other(format!("cannot wait for it: {cause}"))),
    };
    // A run that is already ending does not answer.
    match client.end() {
        Err(ControlError::Nobody { .. } | ControlError::Broken { .. }) => {}
        asked => asked?,
    }
    Ok(Some(Ending {
        called: run.called(),
        number: run.number,
        process,
        reports: run.about.reports.clone(),
        since_ns: run.about.since_ns,
    }))
}

/// `ESRCH`.
const NO_SUCH_PROCESS: i32 = 3;
