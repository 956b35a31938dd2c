//! `narrows set` and `narrows stats`: clients of a run.

use std::io::{IsTerminal, stdout};
use std::thread;
use std::time::Duration;

use narrows_live::control::{Client, ControlError};
use narrows_report::{Now, Report};
use narrows_scenario::printable;
use serde::Serialize;

use crate::args;
use crate::output::{Failure, print, print_coloured, say, write_json};

/// Interval of `--watch`.
const EACH: Duration = Duration::from_secs(1);
/// Clears a terminal.
const CLEAR: &str = "\x1b[H\x1b[J";

pub(crate) fn set(args: &args::Set) -> Result<u8, Failure> {
    let run = Client::find_or_start(args.run.as_deref())?;
    match &args.to {
        Some(file) => crate::diff::set_to(&run, file, args.partly)?,
        None => drop(run.set(args.assignments.clone(), None)?),
    }
    Ok(0)
}

/// The report so far, and the current state of the links.
#[derive(Serialize)]
struct Both<'a> {
    #[serde(flatten)]
    report: &'a Report,
    now: Option<&'a Now>,
}

pub(crate) fn stats(args: &args::Stats) -> Result<u8, Failure> {
    args.json.probe()?;
    let run = Client::find_or_start(args.run.as_deref())?;
    if args.watch {
        return watch(&run, args);
    }
    let stats = run.stats()?;
    if let Some(path) = args.json.path() {
        write_json(path, &Both { report: &stats.report, now: stats.now.as_ref() })?;
    }
    if !args.json.takes_stdout() {
        print(&stats.text)?;
    }
    Ok(0)
}

/// Shows the state of the links once a second until the run ends: in place on a terminal, otherwise one
/// after another; with `--json` one line each.
fn watch(run: &Client, args: &args::Stats) -> Result<u8, Failure> {
    if args.json.path().is_some() && !args.json.takes_stdout() {
        return Err(Failure::Other("--watch --json prints a line of JSON each second: give no file".into()));
    }
    let on_terminal = stdout().is_terminal() && !args.json.takes_stdout();
    let name = args.run.as_deref().unwrap_or("the run");
    let mut number = 0_u32;
    loop {
        let now = match run.now() {
            // The end of the run is the regular end, once the run was found.
            Err(ControlError::Nobody { .. } | ControlError::Broken { .. }) if number > 0 => {
                say(format_args!("narrows: {name} has ended"));
                return Ok(0);
            }
            now => now?,
        };
        if args.json.takes_stdout() {
            let line = serde_json::to_string(&now).map_err(|error| Failure::Other(error.to_string()))?;
            print(&format!("{line}\n"))?;
        } else {
            let gap = if number > 0 && !on_terminal { "\n" } else { "" };
            let home = if on_terminal { CLEAR } else { "" };
            print_coloured(&format!("{home}{gap}{}", printable(&now.text())))?;
        }
        number += 1;
        if args.count.is_some_and(|count| number >= count) {
            return Ok(0);
        }
        thread::sleep(EACH);
    }
}
