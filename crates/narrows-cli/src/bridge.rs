//! `narrows bridge`.

use std::io::{self, Write};
use std::time::Duration;

use narrows_io::host::Capabilities;
use narrows_live::bridge::{self, BridgeOptions};
use narrows_live::control;
use narrows_scenario::span_of_time;

use crate::args;
use crate::certify::{lateness_bounds, verdict};
use crate::check::scenario;
use crate::live::{cabling, capture, pace, reading};
use crate::output::{Failure, probe_writable, write_json};

pub(crate) fn bridge(args: &args::Bridge) -> Result<u8, Failure> {
    let bounds = lateness_bounds(&args.pace.max_lateness)?;
    let duration = args.duration.as_deref().map(|text| span_of_time("duration", text)).transpose()?;
    let scenario = scenario(args.scenario.as_deref(), &args.link, args.seed, &args.set)?;
    probe_writable(args.json.as_deref())?;
    let capture = capture(&args.capture)?;
    let held = Capabilities::effective().map_err(reading)?;
    if !(held.net_admin && held.net_raw) {
        return Err(Failure::Other(
            "a bridge needs CAP_NET_ADMIN and CAP_NET_RAW over the interfaces that it joins: run it as root"
                .into(),
        ));
    }
    let options = BridgeOptions {
        interfaces: [args.first.clone(), args.second.clone()],
        namespace: args.netns.clone(),
        duration: duration.map(|span| Duration::from_nanos(span.nanos())),
        greeting: !args.quiet,
        record: args.record.clone(),
        record_whole: args.record_whole,
        capture,
        cabling: cabling(&args.cabling),
        pace: pace(&args.pace),
        bounds,
        run_folder: control::run_folder(),
    };
    let outcome = bridge::bridge(scenario, &options)?;
    if let Some(path) = &args.json {
        write_json(path, &outcome.report)?;
    }
    if !args.quiet {
        // As of `run`: where nobody listens, nobody wants to know.
        let _ = write!(io::stderr(), "\n{}", outcome.report.text());
    }
    if let Some(broken) = &outcome.broken {
        let _ = writeln!(
            io::stderr(),
            "narrows: the bridge ended early: {broken}; bring it up again, and start the bridge once more"
        );
    }
    Ok(verdict(outcome.status, &outcome.report))
}
