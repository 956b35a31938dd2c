//! `narrows run` and `narrows shell`.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_core::FlowKey;
use narrows_io::cable_end::Backend;
use narrows_io::host::{self, Capabilities};
use narrows_io::scheduling::Priority;
use narrows_io::user_namespace::{InnerUser, enter_user_namespace};
use narrows_live::cabling::Cabling;
use narrows_live::capture::CapturePlan;
use narrows_live::control;
use narrows_live::director::{Pace, Threads, Wait};
use narrows_live::packet_records::PacketsPlan;
use narrows_live::probe::{ECN_CAPABLE, ProbePacket, ProbePlan};
use narrows_live::run::{self, RunOptions, Uplink};
use narrows_live::run_record::{Identity, RunKind};
use narrows_live::series::SeriesPlan;
use narrows_live::service_output::OutputPlan;
use narrows_live::services::Service;
use narrows_live::stay::Stay;
use narrows_scenario::{Scenario, code_point, span_of_time};

use crate::args::{self, BackendName, Labels, Live, Probes, RunBefore, Sockets, WaitBy};
use crate::certify::{lateness_bounds, verdict};
use crate::check::live_scenario;
use crate::hints;
use crate::in_virtual_time;
use crate::output::{Failure, say};
use crate::report::{self, Kept, conclude};
use crate::shell::Shell;
use crate::usage;

/// Duration of probes if no program determines the end.
const PROBING_SECONDS: u64 = 10;

pub(crate) fn run(args: &args::Run) -> Result<u8, Failure> {
    if in_virtual_time::wanted(&args.virtual_time) {
        return in_virtual_time::run(args);
    }
    if args.command.is_empty() && args.probes.probe.is_none() {
        let given: Vec<OsString> = env::args_os().collect();
        if let Some(line) = usage::forgotten_dashes(&given) {
            return Err(Failure::Other(line));
        }
        let usage = "say what to run, as in: narrows run --rate 10mbit --delay 25ms -- sh -c 'ping -c 5 $NARROWS_SERVER'\n\
                     or measure the network alone with --probe";
        return Err(Failure::Other(usage.into()));
    }
    let alone = args.command.is_empty();
    let packet = packet(&args.probes)?;
    let probe = args.probes.probe.map(|per_second| ProbePlan {
        per_second,
        count: alone.then(|| PROBING_SECONDS * u64::from(per_second)),
        packet,
    });
    let scenario = live_scenario(args.scenario.as_deref(), &args.link, &args.live)?;
    go(scenario, Job { command: args.command.clone(), probe, ..Job::new(RunKind::Run) }, &args.live)
}

/// Format of probe packets.
fn packet(probes: &Probes) -> Result<ProbePacket, Failure> {
    let dscp = probes.probe_dscp.as_deref().map_or(Ok(0), |text| code_point("probe-dscp", text))?;
    let ecn = if probes.probe_ecn { ECN_CAPABLE } else { FlowKey::NOT_ECN_CAPABLE };
    Ok(ProbePacket { port: probes.probe_port, traffic_class: dscp << 2 | ecn, length: probes.probe_length })
}

pub(crate) fn shell(args: &args::Shell) -> Result<u8, Failure> {
    if in_virtual_time::wanted(&args.virtual_time) {
        return in_virtual_time::shell(args);
    }
    let scenario = live_scenario(args.scenario.as_deref(), &args.link, &args.live)?;
    let first = scenario.hosts.first().map(|host| host.name.clone());
    let host = args.live.host.clone().or(first).unwrap_or_default();
    let Shell { command, environment, .. } = &Shell::of_user(&host)?;
    let (command, environment) = (command.clone(), environment.clone());
    go(scenario, Job { command, environment, greeting: true, ..Job::new(RunKind::Shell) }, &args.live)
}

/// What to do in the hosts of a network.
pub(crate) struct Job {
    kind: RunKind,
    command: Vec<OsString>,
    environment: Vec<(String, OsString)>,
    probe: Option<ProbePlan>,
    pub(crate) greeting: bool,
    pub(crate) stay: Option<Stay>,
    pub(crate) output: Option<PathBuf>,
}

impl Job {
    /// An empty job.
    pub(crate) fn new(kind: RunKind) -> Self {
        let (command, environment) = (Vec::new(), Vec::new());
        Self { kind, command, environment, probe: None, greeting: false, stay: None, output: None }
    }
}

/// Creates the network, runs the job, and reports.
pub(crate) fn go(scenario: Scenario, job: Job, live: &Live) -> Result<u8, Failure> {
    let bounds = lateness_bounds(&live.pace.max_lateness)?;
    live.report.json.probe()?;
    report::form(&live.report)?;
    let kept = Kept::find();
    let capture = capture(&live.capture)?;
    let series = series(&live.series)?;
    let packets = packets(&live.series)?;
    let run_folder = control::run_folder();
    let capabilities = Capabilities::effective().map_err(reading)?;
    if !capabilities.all() {
        enter_user_namespace(InnerUser::Root)?;
    }
    let nested = env::var_os(run::RUN_ENVIRONMENT).is_some();
    let uplink = match (live.internet, nested) {
        (true, _) => Uplink::Required,
        (false, true) => Uplink::Optional,
        (false, false) => Uplink::Off,
    };
    let options = RunOptions {
        identity: Identity {
            name: live.name.clone(),
            kind: job.kind,
            output: job.output,
            reports: kept.folder().map(Into::into),
            owner: None,
            membership: None,
        },
        command: job.command,
        host: live.host.clone(),
        beside: services(live),
        patience: Duration::from_nanos(span_of_time("on-timeout", &live.on_timeout)?.nanos()),
        output: output_plan(live),
        environment: job.environment,
        greeting: job.greeting && !live.report.quiet,
        stay: job.stay,
        tunnels: Vec::new(),
        record: live.record.clone(),
        record_whole: live.record_whole,
        capture,
        series,
        packets,
        uplink,
        probe: job.probe,
        bounds,
        cabling: Cabling { one_socket: one_socket(live)?, ..cabling(&live.cabling)? },
        pace: Pace { processor: None, ..paced(&live.pace) },
        threads: Threads { most: live.shards.0, processors: live.pace.cpu.clone() },
        run_folder,
    };
    let server = server(&scenario, live.host.as_deref());
    hints::unexpanded(&options.command, &server).into_iter().for_each(say);
    let outcome = run::run(scenario, &options)?;
    conclude(&outcome.report, &live.report, &kept)?;
    if let Some(broken) = &outcome.broken {
        say(format_args!(
            "narrows: the run ended early: {broken}; a program, or somebody on the host, took an interface of the run away"
        ));
    }
    if outcome.status != 0 && env::var_os("NARROWS_SERVER").is_none() {
        hints::expanded_to_nothing(&options.command, &server).into_iter().for_each(say);
    }
    Ok(verdict(outcome.status, &outcome.report))
}

/// The name of a host other than CMD's, for hints.
fn server(scenario: &Scenario, host: Option<&str>) -> String {
    let mut names = scenario.hosts.iter().map(|host| host.name.as_str());
    let host = host.or_else(|| names.clone().next());
    names.find(|name| Some(*name) != host).unwrap_or("server").to_owned()
}

/// The programs of `--on`.
fn services(live: &Live) -> Vec<Service> {
    let service = |pair: &[String]| Service { host: pair[0].clone(), line: pair[1].clone() };
    live.on.chunks_exact(2).map(service).collect()
}

/// Labels are for people: in a pipe, a program reads the output of the programs.
fn output_plan(live: &Live) -> OutputPlan {
    let to_stderr = live.report.json.takes_stdout();
    let is_terminal = if to_stderr { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
    let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    OutputPlan {
        labels: match live.labels {
            Labels::Auto => is_terminal,
            Labels::Always => true,
            Labels::Never => false,
        },
        colours: is_terminal && !no_color,
        logs: live.logs.clone(),
        to_stderr,
    }
}

/// Packet threads are queried at each interval, so it must not be too short.
const SHORTEST_INTERVAL: narrows_core::Duration = narrows_core::Duration::from_millis(10);

/// The time series to record.
pub(crate) fn series(args: &args::Series) -> Result<Option<SeriesPlan>, Failure> {
    let Some(file) = &args.series else { return Ok(None) };
    if file == Path::new("-") {
        return Err(Failure::Other("--series -: the standard output is the program's; name a file".into()));
    }
    let step = span_of_time("interval", &args.interval)?;
    if step < SHORTEST_INTERVAL {
        let why = format!("--interval {}: at least {SHORTEST_INTERVAL} in a live run", args.interval);
        return Err(Failure::Other(why));
    }
    Ok(Some(SeriesPlan { file: file.clone(), step, limit: args.series_limit.saturating_mul(1_000_000) }))
}

/// The packet records to write.
pub(crate) fn packets(args: &args::Series) -> Result<Option<PacketsPlan>, Failure> {
    let Some(file) = &args.packets else { return Ok(None) };
    if file == Path::new("-") {
        return Err(Failure::Other("--packets -: the standard output is the program's; name a file".into()));
    }
    Ok(Some(PacketsPlan { file: file.clone(), limit: args.packets_limit.saturating_mul(1_000_000) }))
}

/// The captures to write.
pub(crate) fn capture(args: &args::Capture) -> Result<Option<CapturePlan>, Failure> {
    match &args.capture {
        Some(file) if file.as_os_str() == "-" => Err(Failure::Other(
            "--capture -: the standard output is the program's; name a file, or a pipe as of mkfifo".into(),
        )),
        Some(file) => Ok(Some(CapturePlan { file: file.clone(), snap: args.capture_bytes })),
        None => Ok(None),
    }
}

/// Whether cables share a packet socket, if `--sockets` says it.
fn one_socket(live: &args::Live) -> Result<Option<bool>, Failure> {
    let cannot = |why| Err(Failure::Other(format!("--sockets shared: {why}")));
    match (live.sockets, live.cabling.backend) {
        (Sockets::Auto, _) => Ok(None),
        (Sockets::Own, _) => Ok(Some(false)),
        (Sockets::Shared, _) if live.cabling.trains => cannot("--trains needs one for each cable"),
        (Sockets::Shared, _) if host::time_is_virtual() => cannot("--virtual has one for each cable"),
        (Sockets::Shared, None | Some(BackendName::AfPacket)) => Ok(Some(true)),
        (Sockets::Shared, Some(_)) => cannot("only those of --backend af_packet can be"),
    }
}

/// The packet I/O backend between kernel and engine.
pub(crate) fn cabling(args: &args::Cabling) -> Result<Cabling, Failure> {
    let backend = args.backend.and_then(|name| match name {
        BackendName::AfPacket => Some(Backend::AfPacket),
        BackendName::Tap => Some(Backend::Tap),
        BackendName::AfXdp => Some(Backend::AfXdp),
        BackendName::Kernel => Some(Backend::Kernel),
        BackendName::Auto => None,
    });
    let kernel_if_possible = matches!(args.backend, Some(BackendName::Auto));
    if let Some(other) = backend.filter(|&backend| args.busy_poll && backend != Backend::AfXdp) {
        let name = other.name();
        return Err(Failure::Other(format!(
            "--busy-poll is for --backend af_xdp, and the backend is {name}"
        )));
    }
    let cabling = Cabling {
        backend,
        kernel_if_possible,
        busy_poll: args.busy_poll,
        trains: args.trains,
        one_socket: None,
    };
    // Guests have no AF_XDP, and no lateness either.
    Ok(if host::time_is_virtual() { cabling.or(Backend::AfPacket) } else { cabling })
}

/// How a single-threaded packet loop waits, and on which processor it runs.
pub(crate) fn pace(args: &args::Pace) -> Result<Pace, Failure> {
    match args.cpu.len() {
        0 | 1 => Ok(paced(args)),
        several => {
            let what =
                format!("--cpu names {several} processors, but there is one thread here: name one processor");
            Err(Failure::Other(what))
        }
    }
}

fn paced(args: &args::Pace) -> Pace {
    let usual = if host::time_is_virtual() { WaitBy::Timer } else { WaitBy::default() };
    let wait = match args.wait.unwrap_or(usual) {
        WaitBy::Spin => Wait::Spin,
        WaitBy::Hybrid => Wait::Hybrid,
        WaitBy::Timer => Wait::Timer,
    };
    let priority = match args.priority {
        RunBefore::Usual => Priority::Usual,
        RunBefore::High => Priority::High,
        RunBefore::RealTime => Priority::RealTime,
    };
    Pace { wait, processor: args.cpu.first().copied(), priority, max_share: args.max_cpu }
}

pub(crate) fn reading(error: io::Error) -> Failure {
    Failure::Other(format!("cannot read this process's capabilities: {error}"))
}
