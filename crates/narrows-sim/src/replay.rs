//! Replays the input log of a run: the same inputs give the same verdicts.

use std::fmt;
use std::io::Read;
use std::iter;
use std::ops::ControlFlow;
use std::path::Path;

use narrows_core::{Engine, Packet, PortId, Question, TcpOptions, Time};
use narrows_frame::ReadError;
use narrows_frame::log::{
    Arrived, Changed, Ended, Fed, FilePart, Generated, Header, LogReader, LoggedFiles, Record, Segment,
};
use narrows_frame::parse::{parse_cut, tcp_options};
use narrows_frame::translate::tell_quoted;
use narrows_report::{Kind, Report, RunInfo, SourceInfo, SourceMeter};
use narrows_scenario::{Files, Scenario};

use crate::compare::Comparison;
use crate::drive::Watch;
use crate::error::SimError;
use crate::simulate::{SimOptions, times, watchers, write_json};
use crate::watched::Watched;
use narrows_traffic::{Body, Frame};

/// The result of a replay. Displays as a short summary.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReplayResult {
    /// The file.
    pub file: String,
    /// The program that wrote it.
    pub program: String,
    /// Packets in the log.
    pub arrivals: u64,
    /// Changes in the log.
    pub changes: u64,
    /// Feed values in the log.
    pub values: u64,
    /// Packets that were lost before they reached the engine of the live run. They are in neither run.
    pub lost: u64,
    /// Verdicts that are equal in log and replay: packet, copy, verdict and instant.
    pub same: u64,
    /// Verdicts that differ.
    pub different: u64,
    /// The first differences, as text, and any other disagreement.
    pub differences: Vec<String>,
    /// Verdicts of the replay that a truncated log lacks.
    pub unknown: u64,
    /// Why the log ends early, if it does.
    pub cut_short: Option<String>,
    /// Whether the watch stopped the replay: the results cover the time until then.
    pub broken_off: bool,
    /// The report of the replayed run.
    pub report: Report,
}

impl ReplayResult {
    /// Whether the replay agrees with the log, as far as the log goes.
    pub fn agrees(&self) -> bool {
        self.differences.is_empty() && self.different == 0
    }
}

impl fmt::Display for ReplayResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, program, arrivals, changes, values, same, different, .. } = self;
        match values {
            0 => writeln!(f, "{file} ({program}): {arrivals} packets and {changes} changes came in")?,
            _ => writeln!(
                f,
                "{file} ({program}): {arrivals} packets, {changes} changes and {values} values of feeds came in"
            )?,
        }
        if self.broken_off {
            writeln!(f, "interrupted: compared up to then")?;
        } else if let Some(why) = &self.cut_short {
            writeln!(f, "the log ends early: {why}")?;
            writeln!(f, "compared as far as it goes; {} verdicts of the replay are beyond it", self.unknown)?;
        }
        if self.lost > 0 {
            writeln!(f, "{} packets were lost before the run could read them and are in neither", self.lost)?;
        }
        match self.agrees() {
            true => writeln!(f, "{same} verdicts compared: all identical, to the nanosecond")?,
            false => writeln!(f, "{} verdicts compared: {different} differ", same + different)?,
        }
        self.differences.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        let shown = self.differences.len() as u64;
        if *different > shown {
            writeln!(f, "  and {} more", different - shown)?;
        }
        Ok(())
    }
}

/// Replays the input log of a run in virtual time, compares every verdict, and writes the selected outputs. Duration
/// and seed come from the log; those in `options` are ignored.
///
/// A log that ends early because the run was killed is compared as far as it goes.
///
/// # Errors
/// If the log cannot be read or is damaged, if its scenario or a change in it is invalid, or if an output cannot be
/// written.
pub fn replay(file: &Path, options: &SimOptions) -> Result<ReplayResult, SimError> {
    replay_watched(file, options, &mut |_| ControlFlow::Continue(()))
}

/// As [`replay`], with a watch that can stop it.
///
/// # Errors
/// As for [`replay`].
pub fn replay_watched(file: &Path, options: &SimOptions, watch: Watch<'_>) -> Result<ReplayResult, SimError> {
    replay_log(LogReader::open(file)?, &file.display().to_string(), options, watch)
}

/// As [`replay_watched`], with a log from anywhere: `name` stands for its file in errors and results.
///
/// # Errors
/// As for [`replay`].
pub fn replay_log<R: Read>(
    mut log: LogReader<R>,
    name: &str,
    options: &SimOptions,
    watch: Watch<'_>,
) -> Result<ReplayResult, SimError> {
    let header = log.header().clone();
    let files = log.read_files()?;
    let name = name.to_owned();
    let contents = files.whole().iter().map(|(name, contents)| (name.as_str(), contents.clone()));
    let mut scenario = Scenario::parse_with(&header.scenario, &name, Files::given(contents))?;
    scenario.seed = header.seed.0;
    if log.version() < 3 {
        scenario.forget_floor_of_default_bounds();
    }
    let engine: Engine<Body> = Engine::new(scenario.network())?;
    check_names(&name, &header, &engine)?;

    let mut info = RunInfo::of(&scenario, Kind::Replay);
    let mut outputs = watchers(options, &engine, &name, header.started)?;
    outputs.comparison = Some(Comparison::default());
    // The packets of programs are one source without a name; the scenario's own sources follow.
    let own = SourceInfo::all(&scenario);
    let sources = iter::once(String::new()).chain(own.iter().map(|source| source.name.clone())).collect();
    let mut network = Watched::new(engine, sources, outputs);
    network.has_programs = true;
    let mut replay = Replay {
        ports: network.engine.ports().collect(),
        network,
        scenario,
        header,
        keep: options.capture.is_some(),
        files,
        arrivals: 0,
        changes: 0,
        values: (0, 0),
        questions: Vec::new(),
        lost: 0,
        last: Time::ZERO,
        ended: None,
    };
    let (cut_short, broken_off) = match replay.read_all(&mut log, watch)? {
        Stop::End => (None, false),
        Stop::Cut(why) => (Some(why), false),
        Stop::Broken => (None, true),
    };
    let end = replay.ended.map_or(replay.last, |ended| ended.at);
    replay.network.poll(end)?;
    let mut comparison = replay.network.watchers.comparison.take().expect("it was put there above");
    let unknown = comparison.close(cut_short.is_some() || broken_off);
    let mut differences = comparison.first(replay.network.names());
    if !broken_off {
        differences.extend(replay.disagreements());
    }
    replay.network.finish(end)?;

    info.span = (Time::ZERO, end);
    info.update(&replay.scenario);
    info.notes.extend(broken_off.then(|| "interrupted: figures up to then".into()));
    info.notes.extend(cut_short.as_ref().map(|why| format!("the log ends early: {why}")));
    let changed = times(replay.changes);
    info.notes.extend(
        changed.map(|times| format!("the network was changed {times}; settings are shown as at the end")),
    );
    let mut report = Report::new(&info, &replay.network.engine, &replay.network.meter);
    report.generated = SourceMeter::reports(&own, (0..).zip(replay.network.traffic.iter().skip(1)));
    write_json(options.json.as_ref(), &report)?;
    Ok(ReplayResult {
        file: name,
        program: replay.header.program,
        arrivals: replay.arrivals,
        changes: replay.changes,
        values: replay.values.0,
        lost: replay.lost,
        same: comparison.same,
        different: comparison.different,
        differences,
        unknown,
        cut_short,
        broken_off,
        report,
    })
}

/// The log refers to ports and links by index; the scenario must give the same indices.
fn check_names(file: &str, header: &Header, engine: &Engine<Body>) -> Result<(), SimError> {
    let ports =
        engine.ports().map(|port| engine.port_name(port)).eq(header.ports.iter().map(|port| &port.name));
    let links = engine.links().map(|link| engine.view(link).name()).eq(header.links.iter());
    for (same, what) in [(ports, "ports"), (links, "links")] {
        if !same {
            return Err(SimError::ForeignLog { file: file.into(), what });
        }
    }
    Ok(())
}

/// Records between two calls of the watch.
const LOOK: u64 = 1_024;

/// Where a replay ended.
enum Stop {
    /// At the end of a complete log.
    End,
    /// At the end of a truncated log.
    Cut(String),
    /// The watch stopped it.
    Broken,
}

struct Replay {
    network: Watched,
    scenario: Scenario,
    header: Header,
    /// The contents of the files that the scenario and its changes name.
    files: LoggedFiles,
    /// By index.
    ports: Vec<PortId>,
    /// Whether any output needs the frames.
    keep: bool,
    arrivals: u64,
    changes: u64,
    /// Values in the log, and values that the engine accepted.
    values: (u64, u64),
    /// The answers are in the log; questions are discarded.
    questions: Vec<Question>,
    lost: u64,
    last: Time,
    ended: Option<Ended>,
}

impl Replay {
    /// Replays all records of the log, or until the watch stops.
    fn read_all<R: Read>(&mut self, log: &mut LogReader<R>, watch: Watch<'_>) -> Result<Stop, SimError> {
        for number in 1u64.. {
            match log.read() {
                Ok(Some(record)) => self.take(record)?,
                Ok(None) => return Ok(Stop::End),
                Err(error @ ReadError::Truncated { .. }) => return Ok(Stop::Cut(error.to_string())),
                Err(error) => return Err(error.into()),
            }
            if number.is_multiple_of(LOOK) && watch(self.last).is_break() {
                return Ok(Stop::Broken);
            }
        }
        Ok(Stop::End)
    }

    fn take(&mut self, record: Record<'_>) -> Result<(), SimError> {
        match record {
            Record::Arrived(arrived) => self.arrive(arrived)?,
            Record::Generated(generated) => self.generate(&generated, None)?,
            Record::Segment(segment) => self.generate(&segment.packet(), Some(&segment))?,
            Record::Changed(changed) => self.change(changed)?,
            Record::Fed(fed) => self.feed(&fed)?,
            Record::File(part) => self.take_file(part)?,
            Record::Decided(decided) => {
                self.last = self.last.max(decided.at);
                if let Some(comparison) = &mut self.network.watchers.comparison {
                    comparison.recorded(decided);
                }
            }
            Record::Lost(lost) => self.lost += lost.packets,
            Record::Ended(ended) => self.ended = Some(ended),
        }
        Ok(())
    }

    fn change(&mut self, changed: Changed<'_>) -> Result<(), SimError> {
        let lines: Vec<_> = changed.text.lines().collect();
        let changes = self.scenario.change_at(changed.at, &lines)?;
        self.network.make(changed.at, changes)?;
        self.network.poll(changed.at)?;
        self.changes += 1;
        self.last = self.last.max(changed.at);
        Ok(())
    }

    fn take_file(&mut self, part: FilePart<'_>) -> Result<(), SimError> {
        let file = || self.scenario.file.clone();
        let name = part.name.to_owned();
        self.files.take(part).map_err(|source| SimError::LoggedFile { file: file(), source })?;
        // For the following change.
        if let Some(contents) = self.files.whole().get(&name) {
            self.scenario.add_file(&name, contents.as_slice());
        }
        Ok(())
    }

    fn feed(&mut self, fed: &Fed<'_>) -> Result<(), SimError> {
        let Some(link) = self.network.engine.links().nth(fed.link.0 as usize) else {
            return Err(SimError::ForeignLog { file: self.scenario.file.clone(), what: "links" });
        };
        self.values.0 += fed.values.len() as u64;
        self.values.1 += self.network.feed(fed.at, link, fed.feed, &fed.values)? as u64;
        self.network.poll(fed.at)?;
        self.last = self.last.max(fed.at);
        Ok(())
    }

    fn arrive(&mut self, arrived: Arrived<'_>) -> Result<(), SimError> {
        let number = usize::from(arrived.port.0);
        let (Some(&port), Some(named)) = (self.ports.get(number), self.header.ports.get(number)) else {
            return Err(SimError::ForeignLog { file: self.scenario.file.clone(), what: "ports" });
        };
        let parsed = parse_cut(named.layer, arrived.frame, arrived.length);
        let frame = || {
            Box::new(Frame { bytes: arrived.frame.to_vec(), original: arrived.length, layer: named.layer })
        };
        let body = Body { source: 0, length: parsed.length, number: 0, frame: self.keep.then(frame) };
        let compares = self.network.engine.looks_at_tcp_options();
        let options =
            compares.then(|| tcp_options(named.layer, arrived.frame, arrived.length).unwrap_or_default());
        tell_quoted(&mut self.network.engine, named.layer, arrived.frame, arrived.length);
        self.hand_in(arrived.at, port, parsed.with(body), options)
    }

    fn generate(&mut self, generated: &Generated, segment: Option<&Segment>) -> Result<(), SimError> {
        let foreign = |what| SimError::ForeignLog { file: self.scenario.file.clone(), what };
        let Some(&port) = self.ports.get(usize::from(generated.port.0)) else { return Err(foreign("ports")) };
        if generated.source as usize >= self.scenario.traffic.len() {
            return Err(foreign("sources of traffic"));
        }
        let body = Body { source: 1 + generated.source, length: generated.length, number: 0, frame: None };
        self.hand_in(generated.at, port, generated.with(body), segment.map(Segment::options))
    }

    fn hand_in(
        &mut self,
        at: Time,
        port: PortId,
        packet: Packet<Body>,
        options: Option<TcpOptions>,
    ) -> Result<(), SimError> {
        self.network.hand_in(at, port, packet, options)?;
        self.network.poll(at)?;
        self.network.engine.take_questions(&mut self.questions);
        self.questions.clear();
        self.arrivals += 1;
        self.last = self.last.max(at);
        Ok(())
    }

    /// Differences between the counts in the last record and those of the replay.
    fn disagreements(&self) -> Vec<String> {
        let Some(ended) = self.ended else { return Vec::new() };
        let pairs = [
            ("packets came in", ended.arrivals, self.arrivals),
            ("values were taken by feeds", self.values.0, self.values.1),
            ("packets were inside at the end", ended.inside, self.network.engine.inside()),
        ];
        let differ = pairs.into_iter().filter(|(_, recorded, replayed)| recorded != replayed);
        differ
            .map(|(what, recorded, replayed)| format!("{what}: recorded {recorded}, replayed {replayed}"))
            .collect()
    }
}
