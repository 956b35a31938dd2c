//! `narrows sim`: virtual time, and replays.

use std::io::stdout;
use std::path::Path;

use narrows_core::Seed;
use narrows_report::Report;
use narrows_scenario::{LinkFlags, Scenario, printable};
use narrows_sim::{Destination, SeriesOptions, SimOptions, replay, simulate};

use crate::args::{self, ReportForm};
use crate::output::{Failure, print, print_coloured};
use crate::report::{self, Kept};

/// What a replay with differing verdicts exits with.
const DIFFERENT: u8 = 1;

pub(crate) fn sim(args: &args::Sim) -> Result<u8, Failure> {
    // The scenario's parser reads the times, and says what is wrong with them.
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
        json: args.report.json.as_deref().map(to_file),
    };
    if let Some(log) = &args.replay {
        let result = replay(log, &options)?;
        say(args, &format!("{result}\n"), &result.report)?;
        return Ok(if result.agrees() { 0 } else { DIFFERENT });
    }
    let Some(file) = &args.scenario else {
        return Err(Failure::Other("say which scenario, as in: narrows sim scenarios/adsl.toml".into()));
    };
    let mut scenario = Scenario::load(file)?;
    scenario.set(&args.set)?;
    let report = simulate(&scenario, &options)?.report;
    say(args, "", &report)?;
    Ok(0)
}

/// Prints a report behind a line, unless the standard output is for a program; and keeps it.
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

/// What goes to the standard output for a program must not be mixed with the report.
fn prints_to_standard_output(args: &args::Sim) -> bool {
    let outputs = [&args.report.json, &args.packets, &args.series, &args.capture];
    outputs.into_iter().flatten().any(|path| path == Path::new("-"))
}
