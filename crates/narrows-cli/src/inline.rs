//! Common parts of `narrows bridge`, `route` and `attach`.

use std::path::Path;
use std::time::Duration;

use narrows_io::host::Capabilities;
use narrows_live::control;
use narrows_live::inline::{InlineOptions, InlineOutcome};
use narrows_live::run_record::{Identity, RunKind};
use narrows_scenario::{Scenario, Way, span_of_time};

use crate::args;
use crate::certify::{lateness_bounds, verdict};
use crate::check::{check_outputs, outputs_of_run, scenario_at};
use crate::live::{cabling, capture, pace, packets, reading, series};
use crate::output::{Failure, say};
use crate::report::{self, Kept};

/// Prepares and checks the network and the options of the run. `devices` gives the direction of packets
/// that leave by each of the interfaces.
pub(crate) fn prepare(
    devices: &[(&str, Way)],
    file: Option<&Path>,
    kind: RunKind,
    args: &args::Inline,
) -> Result<(Scenario, InlineOptions), Failure> {
    let scenario = scenario_at(devices, file, &args.link, args.seed, &args.set)?;
    let outputs = outputs_of_run(args.record.as_deref(), &args.capture, &args.series, &args.report);
    check_outputs(&outputs, &scenario, file, &args.link)?;
    Ok((scenario, options(kind, args)?))
}

/// Checks the options of the run.
pub(crate) fn options(kind: RunKind, args: &args::Inline) -> Result<InlineOptions, Failure> {
    let bounds = lateness_bounds(&args.pace.max_lateness)?;
    let duration = args.duration.as_deref().map(|text| span_of_time("duration", text)).transpose()?;
    args.report.json.probe()?;
    report::form(&args.report)?;
    let capture = capture(&args.capture)?;
    let series = series(&args.series)?;
    let packets = packets(&args.series)?;
    Ok(InlineOptions {
        identity: Identity {
            name: args.name.clone(),
            kind,
            output: args.background.output.clone(),
            reports: Kept::find().folder().map(Into::into),
            owner: args.owner.clone(),
            membership: args.membership(),
        },
        duration: duration.map(|span| Duration::from_nanos(span.nanos())),
        greeting: !args.report.quiet,
        ready: args.background.ready()?,
        record: args.record.clone(),
        record_whole: args.record_whole,
        capture,
        series,
        packets,
        cabling: cabling(&args.cabling)?,
        pace: pace(&args.pace)?,
        bounds,
        run_folder: control::run_folder(),
    })
}

/// The capabilities of this process.
pub(crate) fn capabilities() -> Result<Capabilities, Failure> {
    Capabilities::effective().map_err(reading)
}

/// Prints the report and returns the exit status; `remedy` is the advice if the run ended early.
pub(crate) fn conclude(
    outcome: &InlineOutcome,
    args: &args::Inline,
    what: &str,
    remedy: &str,
) -> Result<u8, Failure> {
    report::conclude(&outcome.report, &args.report, &Kept::find())?;
    for gone in &outcome.gone {
        say(format_args!("narrows: not put back: {gone}"));
    }
    if let Some(broken) = &outcome.broken {
        say(format_args!("narrows: the {what} ended early: {broken}; {remedy}"));
    }
    Ok(verdict(outcome.status, &outcome.report))
}
