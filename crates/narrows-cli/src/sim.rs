//! `narrows sim`: runs in virtual time, and replays.

use std::io::{Write, stderr, stdout};
use std::path::Path;

use narrows_core::{Seed, Time};
use narrows_report::Report;
use narrows_scenario::{LinkFlags, Scenario, printable};
use narrows_sim::{Destination, SeriesOptions, SimOptions, replay_watched, simulate_watched};

use crate::args;
use crate::check::{check_outputs, scenario};
use crate::json::is_stdout;
use crate::output::{Failure, print, print_coloured};
use crate::progress::{Long, status_or_interrupted};
use crate::report::ReportForm;
use crate::report::{self, Kept};

/// Exit status of a replay with differing verdicts.
const DIFFERENT: u8 = 1;

pub(crate) fn sim(args: &args::Sim) -> Result<u8, Failure> {
    // The scenario parser parses and checks the times.
    let time = |flag: &str, text: &Option<String>| -> Result<_, Failure> {
        let flags = LinkFlags::default().given("duration", text.clone());
        let read = Scenario::from_flags(&flags);
        read.map(|scenario| scenario.duration)
            .map_err(|error| Failure::Other(error.to_string().replace("--duration", flag)))
    };
    let to_file = |path: &Path| Destination::from(path.to_path_buf());
    let series = match (&args.series, time("--interval", &Some(args.interval.clone()))?) {
        (Some(path), Some(interval)) => Some(SeriesOptions { to: to_file(path), interval }),
        _ => None,
    };
    let options = SimOptions {
        duration: time("--duration", &args.duration)?,
        seed: args.seed.map(Seed),
        packets: args.packets.as_deref().map(to_file),
        series,
        capture: args.capture.as_deref().map(to_file),
        json: args.report.json.path().map(to_file),
        threads: args.threads,
    };
    args.report.json.probe()?;
    if let Some(log) = &args.replay {
        if args.link.is_given() {
            return Err(Failure::Other("--replay with link flags: the log defines the network".into()));
        }
        let mut long = Long::start(args.report.quiet)?;
        let result =
            replay_watched(log, &options, &mut |at| long.tell(at.nanos() / MILLISECOND, None, &come_to(at)));
        drop(long);
        let result = result?;
        say(args, &format!("{result}\n"), &result.report)?;
        let status = if result.agrees() { 0 } else { DIFFERENT };
        return Ok(status_or_interrupted(status, "the report covers the time until then"));
    }
    let scenario = offered(args)?;
    check_outputs(&outputs(args), &scenario, args.scenario.as_deref(), &args.link)?;
    let length = options.duration.or(scenario.duration);
    let total = length.map(|length| length.nanos() / MILLISECOND);
    let mut long = Long::start(args.report.quiet)?;
    let result = simulate_watched(&scenario, &options, &mut |at| {
        long.tell(at.nanos() / MILLISECOND, total, &come_to(at))
    });
    drop(long);
    let result = result?;
    if let Some(whole) = result.whole.filter(|_| !args.report.quiet) {
        // If stderr is closed, the report is still whole.
        let _ = writeln!(stderr(), "narrows: one thread instead of {}: {}", args.threads, whole.words());
    }
    say(args, "", &result.report)?;
    Ok(status_or_interrupted(0, "the report covers the time until then"))
}

const MILLISECOND: u64 = 1_000_000;

/// Progress of a run, to a tenth of a second.
fn come_to(at: Time) -> String {
    format!("{:.1} s of virtual time", at.nanos() as f64 / 1e9)
}

/// The scenario of the file or the flags, with its traffic.
fn offered(args: &args::Sim) -> Result<Scenario, Failure> {
    if args.scenario.is_none() && !args.link.is_given() && args.set.is_empty() && args.traffic.is_empty() {
        let usage = "name a network, as in: narrows sim scenarios/adsl.toml\nor by flags: narrows sim --rate 10mbit --delay 25ms --loss 1%";
        return Err(Failure::Other(usage.into()));
    }
    let mut scenario = scenario(args.scenario.as_deref(), &args.link, None, &args.set)?;
    match (&args.scenario, &args.traffic[..]) {
        (Some(_), []) => {}
        (None, []) => {
            let words = scenario.offer_most()?;
            if !args.report.quiet {
                // If stderr is closed, the report still has the packets.
                let _ = writeln!(stderr(), "narrows: {words}");
            }
        }
        (_, texts) => scenario.offer(texts)?,
    }
    Ok(scenario)
}

/// Prints a report after a line, unless standard output is for a program; stores the report.
fn say(args: &args::Sim, before: &str, report: &Report) -> Result<(), Failure> {
    Kept::find().keep(report);
    let form = report::form(&args.report)?;
    if prints_to_standard_output(args) {
        return Ok(());
    }
    match form {
        ReportForm::None => Ok(()),
        ReportForm::Full => print(&format!("{before}{}", report.text())),
        ReportForm::Summary => {
            print_coloured(&format!("{}{}", printable(before), report.summary(report::look(&stdout()))))
        }
    }
}

/// Output for a program on standard output must not be mixed with the report.
fn prints_to_standard_output(args: &args::Sim) -> bool {
    outputs(args).into_iter().any(|(_, path)| is_stdout(path))
}

/// The requested output files.
fn outputs(args: &args::Sim) -> [(&'static str, Option<&Path>); 4] {
    [
        ("--json", args.report.json.path()),
        ("--packets", args.packets.as_deref()),
        ("--series", args.series.as_deref()),
        ("--capture", args.capture.as_deref()),
    ]
}
