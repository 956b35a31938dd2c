//! `narrows check`: shows a scenario's effective settings.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use narrows_frame::capture::CaptureReader;
use narrows_scenario::ipfw::Script;
use narrows_scenario::tc;
use narrows_scenario::{LinkFlags, Ports, Scenario, Start, TrafficSource, Way};

use crate::args;
use crate::output::{Failure, print, say};
use crate::outputs;
use crate::report::ReportArgs;

/// Version of the JSON output.
const SCHEMA: u32 = 3;
/// Maximum number of lines; longer output is a table with one row per link.
const LONGEST: usize = 200;

/// Explanation of `--netem`, printed once per process.
const DOUBLE_QUEUE: &str = "narrows: --netem maps to two queues: `limit` counts waiting packets, not those in flight, and correlations keep the \
     distribution; --exact-netem is the kernel's single queue";

pub(crate) fn check(args: &args::Check) -> Result<u8, Failure> {
    if args.schema {
        print(&narrows_scenario::schema())?;
        return Ok(0);
    }
    args.json.probe()?;
    let scenario = scenario(args.scenario.as_deref(), &args.link, None, &args.set)?;
    for traffic in &scenario.traffic {
        // Opening a pipe would wait for its writer.
        if let TrafficSource::Capture { file, .. } = &traffic.source
            && std::fs::metadata(file).map_or(true, |found| !found.file_type().is_fifo())
        {
            CaptureReader::open(file).map_err(|error| Failure::Other(error.to_string()))?;
        }
    }
    check_outputs(&[("--json", args.json.path())], &scenario, args.scenario.as_deref(), &args.link)?;
    let explanation = scenario.explain();
    args.json.put(SCHEMA, &explanation, || {
        let all = explanation.to_string();
        match args.full || all.lines().count() <= LONGEST {
            true => all,
            false => format!("{}(narrows check --full shows everything)\n", explanation.table()),
        }
    })?;
    Ok(0)
}

/// The script of `--ipfw` or of the short form, and its name.
fn rules(flags: &args::LinkFlags) -> Result<Option<(Script, String)>, Failure> {
    if let Some(path) = &flags.ipfw {
        let script = Script::load(path, Start::default(), &crate::ipfw::interfaces(&flags.interfaces)?)?;
        for (line, remark) in
            script.lines.iter().flat_map(|line| line.remarks.iter().map(move |one| (line, one)))
        {
            if ["interface", "not configured"].iter().any(|word| remark.contains(word)) {
                say(format!("narrows: {}:{}: {remark}", path.display(), line.number));
            }
        }
        return Ok(Some((script, path.display().to_string())));
    }
    let ports = match (&flags.client, &flags.server) {
        (Some(ports), _) => Ports::Client(ports),
        (None, Some(ports)) => Ports::Server(ports),
        (None, None) if flags.incoming.is_some() || flags.outgoing.is_some() => {
            return Err(Failure::Other(
                "--in and --out are the links of --client or --server, as in: --client 22,80 --in 6mbit"
                    .into(),
            ));
        }
        (None, None) => return Ok(None),
    };
    if flags.incoming.is_none() && flags.outgoing.is_none() {
        return Err(Failure::Other(
            "--client and --server take --in, --out or both, as in: --client 22,80 --in 6mbit".into(),
        ));
    }
    let script = Script::of_ports(ports, flags.incoming.as_deref(), flags.outgoing.as_deref())?;
    let given = [
        ("--client", &flags.client),
        ("--server", &flags.server),
        ("--in", &flags.incoming),
        ("--out", &flags.outgoing),
    ];
    let given = given.iter().filter_map(|(flag, value)| Some(format!("{flag} {}", value.as_ref()?)));
    Ok(Some((script, given.collect::<Vec<_>>().join(" "))))
}

/// The scenario of a file or of flags, with the settings from the command line applied.
pub(crate) fn scenario(
    file: Option<&Path>,
    flags: &args::LinkFlags,
    seed: Option<u64>,
    set: &[String],
) -> Result<Scenario, Failure> {
    scenario_at(&[], file, flags, seed, set)
}

/// The outputs that runs of all kinds have.
pub(crate) fn outputs_of_run<'a>(
    record: Option<&'a Path>,
    capture: &'a args::Capture,
    series: &'a args::Series,
    report: &'a ReportArgs,
) -> [outputs::Named<'a>; 5] {
    [
        ("--json", report.json.path()),
        ("--record", record),
        ("--capture", capture.capture.as_deref()),
        ("--series", series.series.as_deref()),
        ("--packets", series.packets.as_deref()),
    ]
}

/// Fails if an output would overwrite a file that the scenario of a file or of flags reads.
pub(crate) fn check_outputs(
    outputs: &[outputs::Named<'_>],
    scenario: &Scenario,
    file: Option<&Path>,
    flags: &args::LinkFlags,
) -> Result<(), Failure> {
    // Names in a tc script are relative to this folder by now.
    outputs::check_scenario(outputs, scenario, file.or(flags.ipfw.as_deref()))
}

/// Same for a separate network, with its traffic.
pub(crate) fn live_scenario(
    file: Option<&Path>,
    flags: &args::LinkFlags,
    live: &args::Live,
) -> Result<Scenario, Failure> {
    let mut scenario = scenario(file, flags, live.seed, &live.set)?;
    if live.no_traffic {
        scenario.traffic.clear();
    }
    if !live.traffic.is_empty() {
        scenario.add_traffic(&live.traffic)?;
    }
    let outputs = outputs_of_run(live.record.as_deref(), &live.capture, &live.series, &live.report);
    check_outputs(&outputs, &scenario, file, flags)?;
    Ok(scenario)
}

/// Same for a network between interfaces of the host; for `--tc`, `devices` gives the direction of packets
/// that leave by each of them.
pub(crate) fn scenario_at(
    devices: &[(&str, Way)],
    file: Option<&Path>,
    flags: &args::LinkFlags,
    seed: Option<u64>,
    set: &[String],
) -> Result<Scenario, Failure> {
    let rules = rules(flags)?;
    let args_tc = flags.tc.clone();
    let shaping = flags.tc.as_deref().map(tc::Script::load).transpose()?;
    let shaping = shaping.map(|script| script.with_devices(devices.iter().copied()));
    let flags = flags.keys.0.clone();
    let own = shaping.as_ref().filter(|script| script.has_own_network());
    let mut scenario = match (file, rules) {
        (None, rules) if own.is_some() && (rules.is_some() || flags != LinkFlags::default()) => {
            return Err(Failure::Other(
                "rules or flags of one link with a tc script that has a network of its own, or more than two devices: use --set LINK.KEY=VALUE"
                    .into(),
            ));
        }
        (None, None) => match own {
            Some(script) => script.network()?,
            None => Scenario::from_flags(&flags)?,
        },
        (None, Some(_)) if flags != LinkFlags::default() => {
            return Err(Failure::Other(
                "rules with flags for a plain link: the pipes define the link".into(),
            ));
        }
        (None, Some((script, name))) => script.scenario(&name)?,
        (Some(_), rules) if rules.is_some() || shaping.is_some() || flags != LinkFlags::default() => {
            return Err(Failure::Other(
                "a scenario file with link flags: change the file, use --set, or omit it".into(),
            ));
        }
        (Some(file), _) => Scenario::load(file)?,
    };
    if let Some(shaping) = shaping {
        for line in shaping.passed_over() {
            say(format_args!("narrows: line {}: `{}`: {}", line.line, line.command, line.words.join(" ")));
        }
        for placed in shaping.placed(false)? {
            say(format_args!("narrows: {}", placed.words()));
            let says_rate = ["rate", "trace", "profile"].into_iter().any(|key| flags.get(key).is_some());
            for note in placed.device.remarks(says_rate) {
                say(format_args!("narrows: {note}"));
            }
        }
        let name = scenario.file.clone();
        scenario.set(&shaping.assignments(false)?)?;
        let steps = shaping.steps(false)?;
        if let Some(last) = steps.last() {
            let times =
                if steps.len() == 1 { "once,".into() } else { format!("{} times, last", steps.len()) };
            let again = last.every.map_or(String::new(), |every| format!(", and then every {every}"));
            say(format_args!(
                "narrows: the script changes the link {times} {} after the start{again}",
                last.at
            ));
        }
        for step in steps {
            scenario.schedule(step.at, step.every, &step.assignments())?;
        }
        let script = args_tc.map(|path| path.display().to_string()).unwrap_or_default();
        scenario.file = format!("{name} --tc {script}");
    }
    if ["netem", "netem-up", "netem-down"].into_iter().any(|key| flags.get(key).is_some()) {
        say(DOUBLE_QUEUE);
    }
    scenario.seed = seed.unwrap_or(scenario.seed);
    scenario.set(set)?;
    Ok(scenario)
}
