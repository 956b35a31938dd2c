//! `narrows set` and `narrows stats`: talking to a run.

use narrows_live::control::Client;

use crate::args;
use crate::output::{Failure, print, write_json};

pub(crate) fn set(args: &args::Set) -> Result<u8, Failure> {
    let run = Client::find(args.run.as_deref())?;
    match &args.to {
        Some(file) => crate::diff::set_to(&run, file, args.partly)?,
        None => drop(run.set(args.assignments.clone(), None)?),
    }
    Ok(0)
}

pub(crate) fn stats(args: &args::Stats) -> Result<u8, Failure> {
    args.json.probe()?;
    let stats = Client::find(args.run.as_deref())?.stats()?;
    if let Some(path) = args.json.path() {
        write_json(path, &stats.report)?;
    }
    if !args.json.takes_stdout() {
        print(&stats.text)?;
    }
    Ok(0)
}
