//! `narrows set` and `narrows stats`: talking to a run.

use narrows_live::control::{self, Request};

use crate::args;
use crate::output::{Failure, print};

pub(crate) fn set(args: &args::Set) -> Result<u8, Failure> {
    let path = control::find(&control::run_folder(), args.run.as_deref())?;
    control::ask(&path, &Request::Set { assignments: args.assignments.clone() })?;
    Ok(0)
}

pub(crate) fn stats(args: &args::Stats) -> Result<u8, Failure> {
    let path = control::find(&control::run_folder(), args.run.as_deref())?;
    let answer = control::ask(&path, &Request::Stats {})?;
    if args.json {
        print(&format!("{:#}\n", answer["report"]))?;
    } else {
        print(answer["text"].as_str().unwrap_or_default())?;
    }
    Ok(0)
}
