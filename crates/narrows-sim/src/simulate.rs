//! A scenario in virtual time, from beginning to end.

use std::ops::ControlFlow;

use narrows_core::queue::Queue;
use narrows_core::source::SourceConfig;
use narrows_core::{Duration, Engine, LinkConfig, Seed, Time};
use narrows_frame::WallTime;
use narrows_report::{Kind, Report, RunInfo, SourceInfo};
use narrows_scenario::{Scenario, Traffic, TrafficSource};

use crate::capture_out::CaptureOut;
use crate::changes::ScenarioChanges;
use crate::drive::{Drive, End, TrafficInfo, Watch};
use crate::error::SimError;
use crate::observe::{Observer, Observers, Observing};
use crate::output::{Destination, Output};
use crate::packets::PacketRecords;
use crate::series::{Series, Sink};
use crate::watched::{Watched, Watchers};
use narrows_traffic::{Body, SourceOptions, Sources, application_infos};

/// What a run is to do beyond what the scenario says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimOptions {
    /// How long the run lasts, instead of what the scenario says. If neither says it, the run ends when all traffic has
    /// come and the network is empty.
    pub duration: Option<Duration>,
    /// The seed, instead of the scenario's.
    pub seed: Option<Seed>,
    /// One record for each packet, as CSV.
    pub packets: Option<Destination>,
    /// A time series for each link and flow, as CSV.
    pub series: Option<SeriesOptions>,
    /// What left the network and what was dropped, as pcapng.
    pub capture: Option<Destination>,
    /// The report, as JSON.
    pub json: Option<Destination>,
}

/// A time series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesOptions {
    /// Where it goes.
    pub to: Destination,
    /// How far apart its rows are; not zero.
    pub interval: Duration,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SimResult {
    /// The report.
    pub report: Report,
    /// Whether who watched broke it off: the report is of the time until then.
    pub broken_off: bool,
}

/// Runs a scenario in virtual time and writes the outputs that are asked for. The same scenario, captures and seed give
/// the same outputs, byte for byte, on every machine.
///
/// ```
/// # use narrows_scenario::Scenario;
/// # use narrows_sim::{SimOptions, simulate};
/// let text = r#"
///     [hosts.client]
///     [hosts.server]
///     [links.access]
///     between = ["client", "server"]
///     rate = "1mbit"
///     queue = "10 packets"
///     [[traffic]]
///     from = "client"
///     to = "server"
///     constant = "1.2mbit"
///     length = "1250 bytes"
///     stop = "10s"
/// "#;
/// let scenario = Scenario::parse(text, "overload.toml")?;
/// let report = simulate(&scenario, &SimOptions::default())?.report;
/// // The wire is never idle: 1 Mbit/s, not a packet more or less.
/// assert_eq!(report.directions[0].wire_bps, Some(1_000_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the scenario has no traffic, or traffic without an end and no duration; when a capture cannot be read or an
/// output not be written.
pub fn simulate(scenario: &Scenario, options: &SimOptions) -> Result<SimResult, SimError> {
    run(scenario, options, &mut |_| (), Observers::default(), &mut go_on)
}

/// The same, while somebody watches who may break it off: the report is then of the time until that, and says so.
///
/// # Errors
/// As for [`simulate`].
pub fn simulate_watched(
    scenario: &Scenario,
    options: &SimOptions,
    watch: Watch<'_>,
) -> Result<SimResult, SimError> {
    run(scenario, options, &mut |_| (), Observers::default(), watch)
}

fn go_on(_: Time) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The same, while somebody is told what becomes of each packet.
///
/// # Errors
/// As for [`simulate`].
pub fn observe(scenario: &Scenario, options: &SimOptions, observer: Observer) -> Result<SimResult, SimError> {
    observe_watched(scenario, options, observer, &mut go_on)
}

/// The same, while somebody watches as for [`simulate_watched`].
///
/// # Errors
/// As for [`simulate`].
pub fn observe_watched(
    scenario: &Scenario,
    options: &SimOptions,
    observer: Observer,
    watch: Watch<'_>,
) -> Result<SimResult, SimError> {
    run(scenario, options, &mut |_| (), Observers { packets: Some(observer), ..Observers::default() }, watch)
}

/// The same, while somebody is told what becomes of each packet, of rows of a series, or both. A series that
/// [`SimOptions::series`] asks for is not written then, if there is an observer for one. `adjust` may put elements of its
/// own in the place of those that the scenario says, from the beginning; the report knows only what the scenario says.
///
/// # Errors
/// As for [`simulate`].
pub fn observe_all(
    scenario: &Scenario,
    options: &SimOptions,
    adjust: AdjustLink<'_>,
    observers: Observers,
    watch: Watch<'_>,
) -> Result<SimResult, SimError> {
    run(scenario, options, adjust, observers, watch)
}

/// May change what a link of the engine is made of. It is called for each, once.
pub type AdjustLink<'a> = &'a mut dyn FnMut(&mut LinkConfig);

/// Another queue for a link of the engine, by its name (`access.down`, or `radio` where the medium is shared), in place of
/// what the scenario says; nothing for most.
pub type OtherQueue<'a> = &'a mut dyn FnMut(&str) -> Option<Box<dyn Queue>>;

/// The same with other queues than the scenario's in some links, from the beginning: for schedulers that scenarios do not
/// have. The report knows only what the scenario says, so the classes had better be the same.
///
/// # Errors
/// As for [`simulate`].
pub fn observe_with(
    scenario: &Scenario,
    options: &SimOptions,
    queues: OtherQueue<'_>,
    observer: Observer,
) -> Result<SimResult, SimError> {
    let mut adjust = |link: &mut LinkConfig| {
        if let Some(queue) = queues(&link.name) {
            link.queue = queue;
        }
    };
    run(
        scenario,
        options,
        &mut adjust,
        Observers { packets: Some(observer), ..Observers::default() },
        &mut go_on,
    )
}

fn run(
    scenario: &Scenario,
    options: &SimOptions,
    adjust: AdjustLink<'_>,
    observers: Observers,
    watch: Watch<'_>,
) -> Result<SimResult, SimError> {
    let mut scenario = scenario.clone();
    if let Some(Seed(seed)) = options.seed {
        scenario.seed = seed;
    }
    let until = options.duration.or(scenario.duration).map(|length| Time::ZERO + length);
    check(&scenario, until)?;

    let mut network = scenario.network();
    network.links.iter_mut().for_each(adjust);
    let engine: Engine<Body> = Engine::new(network)?;
    let traffic =
        TrafficInfo { sources: SourceInfo::all(&scenario), applications: application_infos(&scenario) };
    let keep_frames = options.capture.is_some();
    let mut inputs =
        Sources::of(&scenario, &engine, SourceOptions { keep_frames, ..SourceOptions::default() }, |_| true)?;
    let mut watchers = watchers(options, &engine, &scenario.file, WallTime::default())?;
    watchers.observing = Observing(observers.packets);
    match observers.series {
        Some((Duration::ZERO, _)) => return Err(SimError::NoInterval),
        Some((interval, observer)) => {
            watchers.series = Some(Series::new(Sink::Observer(observer), interval, &engine));
        }
        None => {}
    }
    let mut info = RunInfo::of(&scenario, Kind::Virtual);
    // Entries of the timeline may count from the first packet.
    let first = inputs.peek().filter(|&at| until.is_none_or(|until| at < until));
    let changes = ScenarioChanges::new(scenario, &engine, first);
    let network = Watched::new(engine, inputs.names(), watchers);
    let mut drive = Drive::new(network, inputs, Box::new(changes), watch);
    let end = drive.run(until)?;

    info.span = (Time::ZERO, end.at);
    drive.update(&mut info);
    let Watched { engine, meter, .. } = &drive.network;
    info.notes.extend(stuck(end, engine.inside()));
    info.notes.extend(broken_off(end, until));
    info.notes.extend(changed(drive.changes_made));
    let mut report = Report::new(&info, engine, meter);
    drive.report_traffic(&mut report, &traffic, end.at.since(Time::ZERO));
    write_json(options.json.as_ref(), &report)?;
    Ok(SimResult { report, broken_off: end.broken_off })
}

fn check(scenario: &Scenario, until: Option<Time>) -> Result<(), SimError> {
    if scenario.traffic.is_empty() {
        return Err(SimError::NoTraffic(scenario.file.clone()));
    }
    let endless = |traffic: &&Traffic| match &traffic.source {
        TrafficSource::Generated { config: SourceConfig { stop, packets, .. }, .. } => {
            *stop == Time::NEVER && packets.is_none()
        }
        TrafficSource::Aimd { config, .. } => config.stop == Time::NEVER && config.size.is_none(),
        TrafficSource::App { config, .. } => !config.ends(),
        _ => false,
    };
    match scenario.traffic.iter().find(endless) {
        Some(traffic) if until.is_none() => Err(SimError::Endless(traffic.name.clone())),
        _ => Ok(()),
    }
}

/// Opens the outputs that are asked for. `start` is the wall clock at the start of the run.
pub(crate) fn watchers(
    options: &SimOptions,
    engine: &Engine<Body>,
    title: &str,
    start: WallTime,
) -> Result<Watchers, SimError> {
    let open = |destination: &Option<Destination>| destination.as_ref().map(Output::open).transpose();
    let packets = open(&options.packets)?.map(PacketRecords::new).transpose()?;
    let capture = open(&options.capture)?.map(|output| CaptureOut::new(output, title, start)).transpose()?;
    let series = match &options.series {
        Some(SeriesOptions { interval: Duration::ZERO, .. }) => return Err(SimError::NoInterval),
        Some(SeriesOptions { to, interval }) => {
            Some(Series::new(Sink::csv(Output::open(to)?)?, *interval, engine))
        }
        None => None,
    };
    Ok(Watchers { packets, series, capture, ..Watchers::default() })
}

fn stuck(end: End, inside: u64) -> Option<String> {
    end.stuck.then(|| format!("the run ended with {inside} packets stuck inside: a link is down"))
}

fn broken_off(end: End, until: Option<Time>) -> Option<String> {
    let whole = until.map_or(String::new(), |until| format!(" of {}", until.since(Time::ZERO)));
    let at = end.at.since(Time::ZERO);
    end.broken_off.then(|| format!("interrupted after {at}{whole}: figures up to then"))
}

/// The reader compares with what was asked for, which is not what was in force all the time.
fn changed(times: u64) -> Option<String> {
    let times = match times {
        0 => return None,
        1 => "once".into(),
        times => format!("{times} times"),
    };
    Some(format!("the timeline changed the network {times}; settings are shown as at the start"))
}

pub(crate) fn write_json(to: Option<&Destination>, report: &Report) -> Result<(), SimError> {
    let Some(destination) = to else { return Ok(()) };
    let mut output = Output::open(destination)?;
    let mut json = serde_json::to_vec_pretty(report).map_err(|error| output.error(error.into()))?;
    json.push(b'\n');
    output.put(&json)?;
    output.finish()
}
