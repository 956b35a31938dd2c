//! Runs a scenario in virtual time from beginning to end.

use std::ops::ControlFlow;

use narrows_core::queue::Queue;
use narrows_core::source::SourceConfig;
use narrows_core::{Duration, Engine, LinkConfig, Seed, Time};
use narrows_frame::WallTime;
use narrows_report::{Kind, Report, RunInfo, SourceInfo, human};
use narrows_scenario::{Scenario, Traffic, TrafficSource};

use crate::capture_out::CaptureOut;
use crate::changes::ScenarioChanges;
use crate::drive::{Drive, End, TrafficInfo, Watch};
use crate::error::SimError;
use crate::metered::Metered;
use crate::observe::{Observer, Observers, Observing};
use crate::output::{Destination, Output, Rows};
use crate::parallel;
use crate::series::{Series, Sink};
use crate::watched::{Watched, Watchers};
use crate::whole::Whole;
use narrows_traffic::{Body, SourceOptions, Sources, application_infos};

/// Options of a run beyond the scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimOptions {
    /// Overrides the scenario's duration. If neither sets one, the run ends when all traffic has been sent and the
    /// network is empty.
    pub duration: Option<Duration>,
    /// Overrides the scenario's seed.
    pub seed: Option<Seed>,
    /// Write one record for each packet, as Parquet if the file's name ends in `.parquet`, else as CSV.
    pub packets: Option<Destination>,
    /// Write a time series for each link and flow, in the same forms.
    pub series: Option<SeriesOptions>,
    /// Write delivered and dropped packets, as pcapng.
    pub capture: Option<Destination>,
    /// Write the report, as JSON.
    pub json: Option<Destination>,
    /// The most threads to run on; 0 is one. The outputs are the same, byte for byte, on any number. A run for which
    /// [`SimResult::whole`] gives a reason is on one.
    pub threads: usize,
}

impl SimOptions {
    /// Whether packets go where a run cannot begin again.
    fn write_once(&self) -> bool {
        [&self.packets, &self.capture].into_iter().flatten().any(Destination::is_written_once)
    }
}

/// The time series output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesOptions {
    /// Where to write it.
    pub to: Destination,
    /// The interval between rows; not zero.
    pub interval: Duration,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SimResult {
    /// The report.
    pub report: Report,
    /// Whether the watch stopped the run: the report covers the time until then.
    pub broken_off: bool,
    /// The threads that it ran on.
    pub threads: usize,
    /// How many times as fast as on one thread it can be at most: all events and inputs, divided by those of the thread with
    /// the most between any two meetings of the threads.
    pub parallelism: f64,
    /// Why it ran on one thread although the options allow more.
    pub whole: Option<Whole>,
}

/// Runs a scenario in virtual time and writes the selected outputs. The same scenario, captures and seed give the
/// same outputs, byte for byte, on every machine.
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
/// If the scenario has no traffic, or endless traffic without a duration; if a capture cannot be read or an output
/// cannot be written.
pub fn simulate(scenario: &Scenario, options: &SimOptions) -> Result<SimResult, SimError> {
    run(scenario, options, None, Observers::default(), &mut go_on)
}

/// As [`simulate`], with a watch that can stop the run: the report then covers the time until that, and says so.
///
/// # Errors
/// As for [`simulate`].
pub fn simulate_watched(
    scenario: &Scenario,
    options: &SimOptions,
    watch: Watch<'_>,
) -> Result<SimResult, SimError> {
    run(scenario, options, None, Observers::default(), watch)
}

fn go_on(_: Time) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// As [`simulate`], with a callback for the fate of each packet.
///
/// # Errors
/// As for [`simulate`].
pub fn observe(scenario: &Scenario, options: &SimOptions, observer: Observer) -> Result<SimResult, SimError> {
    observe_watched(scenario, options, observer, &mut go_on)
}

/// As [`observe`], with a watch as for [`simulate_watched`].
///
/// # Errors
/// As for [`simulate`].
pub fn observe_watched(
    scenario: &Scenario,
    options: &SimOptions,
    observer: Observer,
    watch: Watch<'_>,
) -> Result<SimResult, SimError> {
    run(scenario, options, None, Observers { packets: Some(observer), ..Observers::default() }, watch)
}

/// As [`simulate_watched`], with callbacks for packets, for rows of a series, or both. If there is a callback for a
/// series, the one that [`SimOptions::series`] selects is not written. `adjust` may replace elements of the scenario
/// from the beginning; the report knows only what the scenario says.
///
/// # Errors
/// As for [`simulate`].
pub fn observe_all(
    scenario: &Scenario,
    options: &SimOptions,
    adjust: Option<AdjustLink<'_>>,
    observers: Observers,
    watch: Watch<'_>,
) -> Result<SimResult, SimError> {
    run(scenario, options, adjust, observers, watch)
}

/// May change the configuration of a link of the engine. Called once for each link.
pub type AdjustLink<'a> = &'a mut dyn FnMut(&mut LinkConfig);

/// A replacement queue for a link of the engine, by the link's name (`access.down`, or `radio` where the medium is
/// shared); `None` to keep the scenario's.
pub type OtherQueue<'a> = &'a mut dyn FnMut(&str) -> Option<Box<dyn Queue>>;

/// As [`observe_all`], with queues other than the scenario's in some links from the beginning: for schedulers that
/// scenarios do not have. The report knows only what the scenario says, so the classes should be the same.
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
        Some(&mut adjust),
        Observers { packets: Some(observer), ..Observers::default() },
        &mut go_on,
    )
}

fn run(
    scenario: &Scenario,
    options: &SimOptions,
    adjust: Option<AdjustLink<'_>>,
    mut observers: Observers,
    watch: Watch<'_>,
) -> Result<SimResult, SimError> {
    let mut scenario = scenario.clone();
    if let Some(Seed(seed)) = options.seed {
        scenario.seed = seed;
    }
    let until = options.duration.or(scenario.duration).map(|length| Time::ZERO + length);
    check(&scenario, until)?;
    let mut whole = None;
    if options.threads > 1 {
        if adjust.is_some() {
            whole = Some(Whole::Adjusted);
        } else if options.series.is_some() || observers.series.is_some() {
            whole = Some(Whole::Series);
        } else {
            match on_threads(&scenario, options, until, &mut observers, watch)? {
                Ok(result) => return Ok(result),
                Err(why) => whole = Some(why),
            }
        }
    }
    on_one_thread(scenario, options, until, adjust, observers, watch)
        .map(|result| SimResult { whole, ..result })
}

/// Runs on several threads, or says why that is not possible.
fn on_threads(
    scenario: &Scenario,
    options: &SimOptions,
    until: Option<Time>,
    observers: &mut Observers,
    watch: Watch<'_>,
) -> Result<Result<SimResult, Whole>, SimError> {
    let traffic =
        TrafficInfo { sources: SourceInfo::all(scenario), applications: application_infos(scenario) };
    let mut opened = false;
    let open = |engine: &Engine<Body>| {
        let mut watchers = watchers(options, engine, &scenario.file, WallTime::default())?;
        watchers.observing = Observing(observers.packets.take());
        opened = watchers.observing.0.is_some() || options.write_once();
        Ok(watchers)
    };
    let ended =
        match parallel::run(scenario, (options.threads, options.capture.is_some()), until, open, watch)? {
            Ok(ended) => ended,
            // Packets have been written or told of already.
            Err(whole) if opened => return Err(SimError::Whole(whole)),
            Err(whole) => return Ok(Err(whole)),
        };
    let mut info = RunInfo::of(scenario, Kind::Virtual);
    info.span = (Time::ZERO, ended.at);
    let changes = ended.changes(&mut info);
    let parallel::Ended { at, broken_off, parallelism, .. } = ended;
    let inside = ended.inside();
    let end = End { at, stuck: until.is_none() && !broken_off && inside > 0, broken_off };
    info.notes.extend(stuck(end, inside));
    info.notes.extend(self::broken_off(end, until));
    info.notes.extend(changed(changes));
    let threads = ended.threads();
    let report = ended.report(&info, &traffic, at.since(Time::ZERO));
    write_json(options.json.as_ref(), &report)?;
    Ok(Ok(SimResult { report, broken_off, threads, parallelism, whole: None }))
}

fn on_one_thread(
    scenario: Scenario,
    options: &SimOptions,
    until: Option<Time>,
    adjust: Option<AdjustLink<'_>>,
    observers: Observers,
    watch: Watch<'_>,
) -> Result<SimResult, SimError> {
    let mut network = scenario.network();
    if let Some(adjust) = adjust {
        network.links.iter_mut().for_each(adjust);
    }
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
    // Timeline entries may count from the first packet.
    let first = inputs.peek().filter(|&at| until.is_none_or(|until| at < until));
    let changes = ScenarioChanges::new(scenario, first);
    let network = Watched::new(engine, inputs.names(), watchers);
    let mut drive = Drive::new(network, inputs, Box::new(changes), watch);
    let end = drive.run(until)?;

    info.span = (Time::ZERO, end.at);
    drive.update(&mut info);
    let Metered { engine, meter, .. } = &*drive.network;
    info.notes.extend(stuck(end, engine.inside()));
    info.notes.extend(broken_off(end, until));
    info.notes.extend(changed(drive.changes_made));
    let mut report = Report::new(&info, engine, meter);
    drive.report_traffic(&mut report, &traffic, end.at.since(Time::ZERO));
    write_json(options.json.as_ref(), &report)?;
    Ok(SimResult { report, broken_off: end.broken_off, threads: 1, parallelism: 1.0, whole: None })
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

/// Opens the selected outputs. `start` is the wall clock at the start of the run.
pub(crate) fn watchers(
    options: &SimOptions,
    engine: &Engine<Body>,
    title: &str,
    start: WallTime,
) -> Result<Watchers, SimError> {
    let packets = options.packets.as_ref().map(Rows::open).transpose()?;
    let capture = options.capture.as_ref().map(Output::open).transpose()?;
    let capture = capture.map(|output| CaptureOut::new(output, title, start)).transpose()?;
    let series = match &options.series {
        Some(SeriesOptions { interval: Duration::ZERO, .. }) => return Err(SimError::NoInterval),
        Some(SeriesOptions { to, interval }) => {
            Some(Series::new(Sink::File(Rows::open(to)?), *interval, engine))
        }
        None => None,
    };
    Ok(Watchers { packets, series, capture, ..Watchers::default() })
}

fn stuck(end: End, inside: u64) -> Option<String> {
    end.stuck.then(|| format!("the run ended with {inside} packets stuck inside: a link is down"))
}

fn broken_off(end: End, until: Option<Time>) -> Option<String> {
    let span = |at: Time| human::span(at.since(Time::ZERO).nanos());
    let whole = until.map_or(String::new(), |until| format!(" of {}", span(until)));
    let at = span(end.at);
    end.broken_off.then(|| format!("interrupted after {at}{whole}: figures up to then"))
}

/// A note for the report: the settings that it shows are those at the start, which changed during the run.
fn changed(count: u64) -> Option<String> {
    let times = times(count)?;
    Some(format!("the timeline changed the network {times}; settings are shown as at the start"))
}

/// `once`, `5 times`; `None` for never.
pub(crate) fn times(count: u64) -> Option<String> {
    match count {
        0 => None,
        1 => Some("once".into()),
        count => Some(format!("{count} times")),
    }
}

pub(crate) fn write_json(to: Option<&Destination>, report: &Report) -> Result<(), SimError> {
    let Some(destination) = to else { return Ok(()) };
    let mut output = Output::open(destination)?;
    let mut json = serde_json::to_vec_pretty(report).map_err(|error| output.error(error.into()))?;
    json.push(b'\n');
    output.put(&json)?;
    output.finish()
}
