//! `narrows check`: what a scenario comes to.

use std::path::Path;

use narrows_scenario::{LinkFlags, Scenario};

use crate::args;
use crate::output::{Failure, print, write_json};

pub(crate) fn check(args: &args::Check) -> Result<u8, Failure> {
    if args.schema {
        print(&narrows_scenario::schema())?;
        return Ok(0);
    }
    let explanation = scenario(args.scenario.as_deref(), &args.link, None, &args.set)?.explain();
    match &args.json {
        Some(path) => write_json(path, &explanation)?,
        None => print(&explanation.to_string())?,
    }
    Ok(0)
}

/// The scenario that a file, or else the flags, describe, with what is set on the command line.
pub(crate) fn scenario(
    file: Option<&Path>,
    flags: &args::LinkFlags,
    seed: Option<u64>,
    set: &[String],
) -> Result<Scenario, Failure> {
    let flags = flags.clone();
    let flags = LinkFlags {
        rate: flags.rate,
        delay: flags.delay,
        jitter: flags.jitter,
        order: flags.order,
        loss: flags.loss,
        queue: flags.queue,
        scheduler: flags.scheduler,
        overhead: flags.overhead,
        duplicate: flags.duplicate,
        corrupt: flags.corrupt,
        reorder: flags.reorder,
        mtu: flags.mtu,
        line_limit: flags.line_limit,
        ..LinkFlags::default()
    };
    let mut scenario = match file {
        None => Scenario::from_flags(&flags)?,
        Some(_) if flags != LinkFlags::default() => {
            return Err(Failure::Other(
                "a scenario file and flags for the link: the file says what the link is; change it there, or leave it out"
                    .into(),
            ));
        }
        Some(file) => Scenario::load(file)?,
    };
    scenario.seed = seed.unwrap_or(scenario.seed);
    scenario.set(set)?;
    Ok(scenario)
}
