//! Writes the input log of a live run, without blocking the packet loop.
//!
//! Records are encoded into a buffer in memory. Full buffers, and buffers that are old enough, go to a writer thread,
//! so a killed run leaves all but its last moments. If the disk cannot keep up, a limited number of buffers is
//! queued, and then the loop waits: a log with gaps would be worthless. If it cannot be written, the run goes on without it,
//! and its report says so.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::{self, JoinHandle};

use narrows_core::{Duration, Engine, Event, LinkId, PortId, Seed, TcpOptions, Time};
use narrows_frame::log::{
    Arrived, Changed, Decided, Ended, Fed, Generated, Header, Keep, LogReader, LogWriter, Lost, Port,
    PortNumber, Record, Segment,
};
use narrows_frame::{LinkLayer, ReadError, WallTime, WriteError};
use narrows_io::confinement::{self, Work};
use narrows_scenario::{NamedFile, Scenario};

/// How much of each packet is kept by default: enough for any headers.
const HEADERS: u32 = 128;
const BUFFER: usize = 256 << 10;
/// At most 32 MiB wait for the disk: at 180,000 packets a second with 128 bytes each, about a second.
const BUFFERS: usize = 128;

/// At least this often, a verdict flushes everything recorded before it to the file.
const PATIENCE: Duration = Duration::from_millis(100);

/// The maximum bytes of commands in one record, which has room for twice as many.
const MOST_COMMANDS: usize = 1 << 19;

/// An input log being written.
#[derive(Debug)]
pub struct Recorder {
    log: LogWriter<Sink>,
    file: String,
    whole: bool,
    ended: Ended,
    /// When the records were last handed to the writer thread.
    passed_on: Time,
    /// Why it could not be written; nothing is added any more.
    failed: Option<WriteError>,
}

impl Recorder {
    /// Starts the log of a run of `scenario` on `engine`.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create<B>(
        path: &Path,
        scenario: &Scenario,
        engine: &Engine<B>,
        started: WallTime,
        whole: bool,
    ) -> Result<Self, WriteError> {
        let file = path.display().to_string();
        let failed = |error| WriteError { file: file.clone(), error };
        let output = File::create(path).map_err(failed)?;
        let (full, waiting) = mpsc::sync_channel(BUFFERS);
        let (spent, empty) = mpsc::channel();
        let writer = thread::Builder::new().name("recorder".into());
        let writer = writer.spawn(move || write(output, waiting, &spent)).map_err(failed)?;
        let sink = Sink { buffer: Vec::with_capacity(BUFFER), full: Some(full), empty, writer: Some(writer) };
        let port = |port| Port { name: engine.port_name(port).to_owned(), layer: LinkLayer::Ethernet };
        let header = Header {
            program: concat!("narrows ", env!("CARGO_PKG_VERSION")).into(),
            started,
            seed: Seed(scenario.seed),
            keep: if whole { Keep::Whole } else { Keep::Bytes(HEADERS) },
            scenario: scenario.to_toml(),
            ports: engine.ports().map(port).collect(),
            links: engine.links().map(|link| engine.view(link).name().to_owned()).collect(),
        };
        let log = LogWriter::new(file.clone(), sink, &header)?;
        let ended = Ended { at: Time::ZERO, arrivals: 0, verdicts: 0, stragglers: 0, inside: 0 };
        let mut recorder = Self { log, file, whole, ended, passed_on: Time::ZERO, failed: None };
        scenario.files().iter().try_for_each(|file| recorder.log.file(&file.name, &file.contents))?;
        // A run killed before its first packet leaves a log, too.
        recorder.log.flush()?;
        Ok(recorder)
    }

    /// Whether the log keeps whole packets.
    pub fn keeps_whole(&self) -> bool {
        self.whole
    }

    fn put(&mut self, write: impl FnOnce(&mut LogWriter<Sink>) -> Result<(), WriteError>) {
        if self.failed.is_none() {
            self.failed = write(&mut self.log).err();
        }
    }

    /// Logs a file that the following change names.
    pub fn file(&mut self, file: &NamedFile) {
        self.put(|log| log.file(&file.name, &file.contents));
    }

    /// A packet is handed in at `at`, `late` after its arrival; its headers are the first `headers` bytes.
    pub fn arrived(&mut self, at: Time, late: Duration, port: PortId, frame: &[u8], headers: u32) {
        self.ended.arrivals += 1;
        self.put(|log| log.arrived(at, late, PortNumber(port.index()), frame, headers));
    }

    /// A packet of the scenario's own traffic is handed in.
    pub fn generated(&mut self, generated: Generated, options: Option<&TcpOptions>) {
        self.ended.arrivals += 1;
        // Only where a queue compares acknowledgements.
        self.put(|log| {
            log.write(&match options {
                Some(options) => Record::Segment(Segment::of(generated, options)),
                None => Record::Generated(generated),
            })
        });
    }

    /// Values are passed to a feed at `at`.
    pub fn fed(&mut self, at: Time, link: LinkId, feed: &str, values: &[i64]) {
        self.put(|log| log.fed(at, link.into(), feed, values));
    }

    /// Links are changed.
    fn changed(&mut self, at: Time, assignments: &[String]) {
        self.put(|log| {
            log.write(&Record::Changed(Changed { at, text: &assignments.join("\n") }))?;
            log.flush()
        });
    }

    /// The commands of one request were executed. They are split into several records if necessary: a replay executes
    /// these one after the other, with the same result.
    pub fn commanded(&mut self, at: Time, commands: &[String]) {
        let mut left = commands;
        while !left.is_empty() {
            let mut bytes = 0;
            let fits = |text: &&String| {
                bytes += text.len() + 1;
                bytes <= MOST_COMMANDS
            };
            let count = left.iter().take_while(fits).count().max(1);
            let (these, later) = left.split_at(count);
            self.changed(at, these);
            left = later;
        }
    }

    /// A packet got its verdict.
    pub fn decided<B>(&mut self, event: &Event<'_, B>) {
        self.ended.verdicts += 1;
        let is_due = event.at >= self.passed_on + PATIENCE;
        if is_due {
            self.passed_on = event.at;
        }
        self.put(|log| {
            log.write(&Record::Decided(Decided::of(event)))?;
            if is_due { log.flush() } else { Ok(()) }
        });
    }

    /// The kernel dropped packets.
    pub fn lost(&mut self, at: Time, port: PortId, packets: u64) {
        self.put(|log| log.write(&Record::Lost(Lost { at, port: PortNumber(port.index()), packets })));
    }

    /// Closes the log. If it could not be written, returns a note about it.
    pub fn finish<B>(mut self, engine: &Engine<B>) -> Option<String> {
        let (at, stragglers, inside) = (engine.now(), engine.stragglers(), engine.inside());
        let ended = Ended { at, stragglers, inside, ..self.ended };
        self.put(|log| log.write(&Record::Ended(ended)));
        let Self { log, file, failed, .. } = self;
        let closed = match failed {
            Some(WriteError { error, .. }) => Err(error),
            None => log.finish().map_err(|failed| failed.error).and_then(Sink::close),
        };
        closed.err().map(|error| format!("the input log {file} IS INCOMPLETE: {error}"))
    }
}

/// The file for the part of an input log that a thread of the packet loop, other than the first, writes until they
/// are merged.
pub fn part(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".part-{number}"));
    name.into()
}

/// Merges the input log at `path` with the given number of finished parts beside it: the result is in order of time, as
/// if one thread had recorded it.
///
/// In each part inputs are in order of time, and verdicts are no later than the inputs after them. Each has all
/// changes; those of the first part are used, and come before everything else at their instants.
///
/// # Errors
/// If a part cannot be read, or the result cannot be written.
pub fn join(path: &Path, parts: usize) -> Result<(), WriteError> {
    let mut joined = path.as_os_str().to_owned();
    joined.push(".joined");
    let joined = PathBuf::from(joined);
    let result = merge(path, parts, &joined);
    if result.is_err() {
        // What there is of it takes the room of a full disk.
        let _ = std::fs::remove_file(&joined);
    }
    result
}

/// Removes the parts of a merged log.
///
/// # Errors
/// If one cannot be removed.
pub fn remove_parts(path: &Path, parts: usize) -> io::Result<()> {
    (1..=parts).try_for_each(|number| std::fs::remove_file(part(path, number)))
}

fn merge(path: &Path, parts: usize, joined: &Path) -> Result<(), WriteError> {
    let file = path.display().to_string();
    let failed = |error| WriteError { file: file.clone(), error };
    let of_part = |error: ReadError| WriteError { file: file.clone(), error: io::Error::other(error) };
    let paths: Vec<PathBuf> = (1..=parts).map(|number| part(path, number)).collect();
    let all = std::iter::once(path).chain(paths.iter().map(PathBuf::as_path));
    let mut logs = all.map(LogReader::open).collect::<Result<Vec<_>, _>>().map_err(of_part)?;
    let mut whole = LogWriter::create(joined, logs[0].header())?;
    let mut ended = Ended { at: Time::ZERO, arrivals: 0, verdicts: 0, stragglers: 0, inside: 0 };
    // How far each has got; `None` once it has ended.
    let mut reached = logs
        .iter_mut()
        .map(|log| next_instant(log, Time::ZERO))
        .collect::<Result<Vec<_>, _>>()
        .map_err(of_part)?;
    while let Some((at, from)) = (0..).zip(&reached).filter_map(|(log, at)| Some(((*at)?, log))).min() {
        match logs[from].read().map_err(of_part)? {
            Some(Record::Changed(_) | Record::File(_)) if from > 0 => {}
            Some(Record::Ended(part)) => {
                ended.at = ended.at.max(part.at);
                ended.arrivals += part.arrivals;
                ended.verdicts += part.verdicts;
                ended.stragglers += part.stragglers;
                ended.inside += part.inside;
            }
            Some(record) => whole.write(&record)?,
            None => {}
        }
        reached[from] = next_instant(&mut logs[from], at).map_err(of_part)?;
    }
    whole.write(&Record::Ended(ended))?;
    whole.finish()?;
    std::fs::rename(joined, path).map_err(failed)
}

/// The next instant of a log that has reached an instant; `None` at its end.
fn next_instant<R: io::Read>(log: &mut LogReader<R>, reached: Time) -> Result<Option<Time>, ReadError> {
    let at = match log.peek()? {
        None => return Ok(None),
        Some(Record::Arrived(Arrived { at, .. })) => at,
        Some(Record::Changed(Changed { at, .. })) => at,
        Some(Record::Decided(Decided { at, .. })) => at,
        Some(Record::Lost(Lost { at, .. })) => at,
        Some(Record::Fed(Fed { at, .. })) => at,
        Some(Record::Generated(Generated { at, .. })) => at,
        Some(Record::Segment(Segment { generated, .. })) => generated.at,
        Some(Record::Ended(Ended { at, .. })) => at,
        Some(Record::File(_)) => reached,
    };
    Ok(Some(at.max(reached)))
}

fn write(mut output: File, waiting: Receiver<Vec<u8>>, spent: &Sender<Vec<u8>>) -> io::Result<()> {
    // Its file is open; writing also works if the kernel does not confine it.
    let _ = confinement::to(Work::Descriptors);
    for buffer in waiting {
        output.write_all(&buffer)?;
        // If nobody takes it back, the run has ended.
        let _ = spent.send(buffer);
    }
    output.flush()
}

/// The destination of the log's bytes.
#[derive(Debug)]
struct Sink {
    buffer: Vec<u8>,
    /// `None` once it is closed.
    full: Option<SyncSender<Vec<u8>>>,
    empty: Receiver<Vec<u8>>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl Sink {
    fn pass_on(&mut self) -> io::Result<()> {
        let mut next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BUFFER));
        next.clear();
        let full = std::mem::replace(&mut self.buffer, next);
        match self.full.as_ref().map(|sender| sender.send(full)) {
            Some(Ok(())) => Ok(()),
            // The thread only ends early if it cannot write; the reason is its result.
            _ => Err(self.end_writer().err().unwrap_or_else(|| io::Error::other("it is closed already"))),
        }
    }

    /// Waits until everything has been written.
    fn close(mut self) -> io::Result<()> {
        self.flush()?;
        self.end_writer()
    }

    fn end_writer(&mut self) -> io::Result<()> {
        // Without a sender, the thread ends.
        self.full = None;
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread panicked")))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > BUFFER && !self.buffer.is_empty() {
            self.pass_on()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { self.pass_on() }
    }
}

impl Drop for Sink {
    /// A run that aborts still writes what it has recorded.
    fn drop(&mut self) {
        if self.full.is_some() {
            let _ = self.flush();
            let _ = self.end_writer();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str =
        "[hosts.a]\n[hosts.b]\n[links.one]\nbetween = [\"a\", \"b\"]\n[links.two]\nbetween = [\"a\", \"b\"]";

    /// Writes what happened, as (instant, port or nothing for a change).
    fn record(path: &Path, scenario: &Scenario, engine: &Engine<()>, what: &[(u64, Option<usize>)]) {
        let mut recorder = Recorder::create(path, scenario, engine, WallTime::from_nanos(0), true).unwrap();
        for &(at, port) in what {
            let at = Time::from_nanos(at);
            match port {
                Some(port) => {
                    let port = engine.ports().nth(port).unwrap();
                    recorder.arrived(at, Duration::ZERO, port, &[1, 2, 3], 3);
                }
                None => recorder.changed(at, &[format!("one.delay={}ns", at.nanos())]),
            }
        }
        assert_eq!(recorder.finish(engine), None);
    }

    #[test]
    fn parts_that_cannot_be_joined_stay_as_they_are() {
        let folder = std::env::temp_dir().join(format!("narrows-parts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("run.log");
        let scenario = Scenario::parse(SCENARIO, "two.toml").unwrap();
        let engine = Engine::<()>::new(scenario.network()).unwrap();
        record(&path, &scenario, &engine, &[(10, Some(0))]);
        record(&part(&path, 1), &scenario, &engine, &[(5, Some(1)), (20, Some(1))]);
        let cut = std::fs::read(part(&path, 1)).unwrap();
        std::fs::write(part(&path, 1), &cut[..cut.len() - 60]).unwrap();
        let before = std::fs::read(&path).unwrap();
        join(&path, 1).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), before);
        let mut left: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["run.log", "run.log.part-1"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// The run goes on, and is told at its end.
    #[test]
    fn a_log_that_cannot_be_written_is_told() {
        let scenario = Scenario::parse(SCENARIO, "two.toml").unwrap();
        let engine = Engine::<()>::new(scenario.network()).unwrap();
        let full = Path::new("/dev/full");
        let mut recorder = Recorder::create(full, &scenario, &engine, WallTime::from_nanos(0), true).unwrap();
        let port = engine.ports().next().unwrap();
        // More than waits for the disk.
        for at in 0..50_000 {
            recorder.arrived(Time::from_nanos(at), Duration::ZERO, port, &[0; 1_500], 40);
        }
        let told = recorder.finish(&engine).unwrap();
        assert!(told.starts_with("the input log /dev/full IS INCOMPLETE: No space left on device"), "{told}");
    }

    /// A record has room for 1 MiB.
    #[test]
    fn commands_of_one_request_may_take_several_records() {
        let folder = std::env::temp_dir().join(format!("narrows-commands-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("run.log");
        let scenario = Scenario::parse(SCENARIO, "two.toml").unwrap();
        let engine = Engine::<()>::new(scenario.network()).unwrap();
        let commands: Vec<String> =
            (1..=30_000).map(|n| format!("ipfw net add {n} count ip from any to any out")).collect();
        let mut recorder =
            Recorder::create(&path, &scenario, &engine, WallTime::from_nanos(0), true).unwrap();
        recorder.commanded(Time::from_nanos(7), &commands);
        assert_eq!(recorder.finish(&engine), None);
        let (mut log, mut found, mut records) = (LogReader::open(&path).unwrap(), Vec::new(), 0);
        while let Some(record) = log.read().unwrap() {
            if let Record::Changed(Changed { at, text }) = record {
                assert_eq!(at.nanos(), 7);
                found.extend(text.lines().map(String::from));
                records += 1;
            }
        }
        assert!(records > 1);
        assert_eq!(found, commands);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn parts_are_joined_in_order_of_time_with_the_changes_of_one() {
        let folder = std::env::temp_dir().join(format!("narrows-record-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("run.log");
        let scenario = Scenario::parse(SCENARIO, "two.toml").unwrap();
        let engine = Engine::<()>::new(scenario.network()).unwrap();
        record(&path, &scenario, &engine, &[(10, Some(0)), (20, None), (20, Some(0)), (50, None)]);
        record(
            &part(&path, 1),
            &scenario,
            &engine,
            &[(5, Some(1)), (20, None), (20, Some(1)), (50, None), (60, Some(1))],
        );
        record(&part(&path, 2), &scenario, &engine, &[(20, None), (50, None)]);
        join(&path, 2).unwrap();
        remove_parts(&path, 2).unwrap();
        let mut log = LogReader::open(&path).unwrap();
        assert_eq!(log.header().ports.len(), 4);
        let mut found = Vec::new();
        let ended = loop {
            match log.read().unwrap() {
                Some(Record::Arrived(Arrived { at, port, .. })) => found.push((at.nanos(), Some(port.0))),
                Some(Record::Changed(Changed { at, .. })) => found.push((at.nanos(), None)),
                Some(Record::Ended(ended)) => break ended,
                other => panic!("{other:?} was not written"),
            }
        };
        let expected = [
            (5, Some(1)),
            (10, Some(0)),
            (20, None),
            (20, Some(0)),
            (20, Some(1)),
            (50, None),
            (60, Some(1)),
        ];
        assert_eq!(found, expected);
        assert_eq!((ended.arrivals, ended.verdicts), (5, 0));
        let left: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(left, ["run.log"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
