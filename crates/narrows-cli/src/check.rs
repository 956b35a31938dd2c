//! `narrows check`: what a scenario comes to.

use std::io::{self, Write};
use std::path::Path;

use narrows_scenario::{LinkFlags, Scenario};

use crate::args;
use crate::output::{Failure, print, write_json};

/// What `--netem` means, once for each program.
const DOUBLE_QUEUE: &str = "narrows: --netem means a double queue: `limit` bounds what waits for the rate, not what is in \
     flight behind it, and correlations leave distributions as they are; --exact-netem is the kernel's single queue";

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
        slots: flags.slots,
        trace: flags.trace,
        netem: flags.netem,
        netem_up: flags.netem_up,
        netem_down: flags.netem_down,
        exact_netem: flags.exact_netem,
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
    if flags.netem.is_some() || flags.netem_up.is_some() || flags.netem_down.is_some() {
        // Where nobody listens, `narrows tc check` says it, too.
        let _ = writeln!(io::stderr(), "{DOUBLE_QUEUE}");
    }
    scenario.seed = seed.unwrap_or(scenario.seed);
    scenario.set(set)?;
    Ok(scenario)
}
