//! `narrows up`: a network that stays up, in the foreground or in the background.

use std::path::Path;
use std::time::Duration;

use narrows_live::control::{self, Client, KnownRun, Liveness, known_runs};
use narrows_live::run_name::RunName;
use narrows_live::run_record::RunKind;
use narrows_live::stay::Stay;
use narrows_scenario::{Difference, span_of_time};

use crate::args::Up;
use crate::check::live_scenario;
use crate::diff::approach;
use crate::live::{Job, go};
use crate::machines;
use crate::output::{Failure, print, say};

pub(crate) fn up(args: &Up) -> Result<u8, Failure> {
    if !args.machines.is_empty() {
        return machines::up(args);
    }
    let ttl = args.ttl.as_deref().map(|text| span_of_time("ttl", text)).transpose()?;
    if let Some(name) = args.live.name.as_ref().filter(|_| args.replace && !args.background.is_there())
        && let Some(run) = there(name)?
    {
        return replace(name, &run, args);
    }
    let name = args.live.name.as_ref();
    let passed = control::passed_socket(&control::run_folder(), name)
        .map_err(|error| Failure::Other(error.to_string()))?;
    if args.background.is_asked() && passed.is_some() {
        let why = "a service manager has passed a socket, and keeps track of this process: omit --detach";
        return Err(Failure::Other(why.into()));
    }
    if let Some(status) = args.background.detach(args.scenario.as_deref())? {
        return Ok(status);
    }
    let ttl = ttl.map(|span| Duration::from_nanos(span.nanos()));
    let stay = Stay { ttl, ready: args.background.ready()?, passed, until: None };
    let scenario = live_scenario(args.scenario.as_deref(), &args.link, &args.live)?;
    // It ends with this process, whose number it serves.
    let _web = args.web.map(crate::web::beside).transpose()?;
    let mut job = Job::new(RunKind::Up);
    job.greeting = true;
    job.stay = Some(stay);
    job.output = args.background.output.clone();
    go(scenario, job, &args.live)
}

/// The run with this name, if it is running.
fn there(name: &RunName) -> Result<Option<Client>, Failure> {
    let (all, _) = known_runs(&control::run_folder()).map_err(|error| Failure::Other(error.to_string()))?;
    let its = |run: &KnownRun| run.about.name.as_ref() == Some(name) && run.liveness != Liveness::Dead;
    Ok(all.into_iter().find(its).map(|run| Client::at(&run.socket)))
}

/// Changes the run to match the scenario as far as possible. Status 1 if something needs a new run.
fn replace(name: &RunName, run: &Client, args: &Up) -> Result<u8, Failure> {
    let scenario = live_scenario(args.scenario.as_deref(), &args.link, &args.live)?;
    let file = args.scenario.as_deref().unwrap_or(Path::new("the flags"));
    let Difference { assignments, others } = &approach(run, &scenario, file)?;
    if !args.live.report.quiet {
        match assignments.is_empty() {
            true if others.is_empty() => print(&format!("{name}: no difference\n"))?,
            true => {}
            false => print(&format!("{name}: changed {}\n", assignments.join(" ")))?,
        }
    }
    if others.is_empty() {
        return Ok(0);
    }
    let rest = Difference { others: others.clone(), ..Difference::default() };
    say(format_args!("narrows: {name}: {rest}end it with narrows down {name}, then start it with that"));
    Ok(1)
}
