//! Packet records of a live run: a row for each packet, as rows of `narrows_report`, with the times at each link.
//!
//! Packet threads copy what events say, as raw values, into batches in memory; one writer thread makes rows of them. A
//! batch is handed over when it is full or old enough. If the disk cannot keep up, a limited number of batches is
//! queued. Packets beyond that, beyond the size limit, or after an error are left out and counted.
//!
//! Rows are in the order of verdicts. Those of several packet threads are merged by time, without waiting for a thread
//! that is more than half a second behind.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use narrows_columns::{Packets, RowFile};
use narrows_core::{Duration, Engine, Event, FlowKey, Passed, Time, Verdict};
use narrows_frame::{ElementNames, WriteError};
use narrows_io::confinement::{self, Work};
use narrows_io::scheduling;
use narrows_report::{PacketRow, Path};
use narrows_scenario::Scenario;

use crate::load::Load;
use crate::seen::Seen;

/// Packets in a batch: half a megabyte, and a quarter of that for each link passed.
const BATCH: usize = 4096;
/// Batches waiting for the writer, and batches that it holds back to merge them.
const WAITING: usize = 32;
const HELD: usize = 32;
/// Batches are handed over at least this often.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long rows wait for those of other packet threads.
const LAG: Duration = Duration::from_millis(500);

/// The packet records to write.
#[derive(Clone, Debug)]
pub struct PacketsPlan {
    /// The file: Parquet if its name ends in `.parquet`, else CSV.
    pub file: PathBuf,
    /// The maximum size of the file, in bytes; about: later packets are left out.
    pub limit: u64,
}

/// Packet records being written: the director's part.
#[derive(Debug)]
pub(crate) struct PacketRecords {
    file: String,
    /// `None` once the end has been told.
    sink: Option<SyncSender<Message>>,
    writer: Option<JoinHandle<Written>>,
}

/// A packet thread's part.
#[derive(Debug)]
pub(crate) struct PacketTap {
    thread: usize,
    batch: Batch,
    /// `None` once it is closed.
    sink: Option<SyncSender<Message>>,
    spent: Receiver<Batch>,
    /// Packets that had no room.
    missing: u64,
    passed_on: Time,
}

#[derive(Debug)]
enum Message {
    Batch(usize, Batch),
    End,
}

/// Packets in the order of their verdicts.
#[derive(Debug, Default)]
struct Batch {
    packets: Vec<Seen>,
    /// The links that they passed, one packet's after another's.
    passed: Vec<Passed>,
    /// The names of the network, if it has more links than before.
    names: Option<ElementNames>,
    /// Later batches of the thread have no packet before this instant.
    complete: Time,
}

/// What became of the packets that reached the writer.
#[derive(Debug)]
struct Written {
    result: io::Result<()>,
    /// Packets that the file lacks: for the limit, or after an error.
    beyond: u64,
    lost: u64,
}

impl PacketRecords {
    /// Creates the file and starts the writer; returns what each packet thread needs. From now on, the engines keep
    /// the links that packets pass.
    pub(crate) fn create<'a>(
        plan: &PacketsPlan,
        scenario: &Scenario,
        engines: impl Iterator<Item = &'a mut Engine<Load>>,
    ) -> Result<(Self, Vec<PacketTap>), WriteError> {
        let file = plan.file.display().to_string();
        let failed = |error| WriteError { file: file.clone(), error };
        let output = RowFile::create(&plan.file).map_err(failed)?;
        let (sink, messages) = mpsc::sync_channel(WAITING);
        let (mut names, mut taps, mut back) = (None, Vec::new(), Vec::new());
        for (thread, engine) in engines.enumerate() {
            engine.keep_passed(true);
            names.get_or_insert_with(|| ElementNames::of(engine));
            let (done, spent) = mpsc::channel();
            back.push(done);
            let batch = Batch::with_room();
            taps.push(PacketTap {
                thread,
                batch,
                sink: Some(sink.clone()),
                spent,
                missing: 0,
                passed_on: Time::ZERO,
            });
        }
        let writer = Writer {
            output,
            limit: plan.limit,
            names: Names {
                elements: names.unwrap_or_default(),
                traffic: scenario.traffic.iter().map(|traffic| traffic.name.clone()).collect(),
            },
            threads: back.into_iter().map(Thread::new).collect(),
            result: Ok(()),
            taken: 0,
            beyond: 0,
        };
        let thread = thread::Builder::new().name("packets".into());
        let thread = thread.spawn(move || writer.run(messages)).map_err(failed)?;
        Ok((Self { file, sink: Some(sink), writer: Some(thread) }, taps))
    }

    /// Completes the file; returns a note, if necessary. It is also added to `unwritten` if the file could not be written.
    pub(crate) fn finish(
        mut self,
        taps: impl IntoIterator<Item = (Box<PacketTap>, Time)>,
        unwritten: &mut Vec<String>,
    ) -> Option<String> {
        let missing: u64 = taps.into_iter().map(|(mut tap, reached)| tap.close(reached)).sum();
        let Written { result, beyond, lost } = self.end()?;
        let file = &self.file;
        match (result, missing, beyond) {
            (Err(error), ..) => {
                let lacking = lost + missing + beyond;
                let note =
                    format!("the packet records {file} ARE INCOMPLETE: {error}; they lack {lacking} packets");
                unwritten.extend((error.kind() != io::ErrorKind::BrokenPipe).then(|| note.clone()));
                Some(note)
            }
            (Ok(()), 0, 0) => None,
            (Ok(()), 0, packets) => Some(format!(
                "the packet records {file} reached their size limit: {packets} later packets were left out"
            )),
            (Ok(()), packets, _) => Some(format!(
                "the packet records {file} lack {} packets because the disk was too slow",
                packets + beyond
            )),
        }
    }

    /// Waits for the writer; once.
    fn end(&mut self) -> Option<Written> {
        // If the writer is gone, it left an error.
        if let Some(sink) = self.sink.take() {
            let _ = sink.send(Message::End);
        }
        let panicked = || Err(io::Error::other("the writing thread panicked"));
        self.writer.take().map(|writer| {
            writer.join().unwrap_or_else(|_| Written { result: panicked(), beyond: 0, lost: 0 })
        })
    }
}

/// A run that ends with an error completes its file, too.
impl Drop for PacketRecords {
    fn drop(&mut self) {
        // What the file lacks then is nobody's question.
        let _ = self.end();
    }
}

impl PacketTap {
    /// A packet got its verdict; `traffic` is the scenario's traffic that sent it, by index.
    pub(crate) fn note(&mut self, event: &Event<'_, Load>, traffic: Option<u32>) {
        if self.batch.packets.len() >= BATCH && !self.pass_on(event.at) {
            self.missing += 1;
            return;
        }
        self.batch.passed.extend_from_slice(event.passed);
        let end = self.batch.passed.len();
        self.batch.packets.push(Seen::of(event, traffic, end));
    }

    /// A turn has ended in which the engine reached `now`.
    pub(crate) fn turn_ended(&mut self, now: Time) {
        if now >= self.passed_on + PATIENCE && !self.batch.packets.is_empty() {
            self.pass_on(now);
        }
    }

    /// The network has more links.
    pub(crate) fn renamed(&mut self, engine: &Engine<Load>) {
        self.batch.names = Some(ElementNames::of(engine));
    }

    /// Hands the batch over if there is room for it.
    fn pass_on(&mut self, now: Time) -> bool {
        let Some(sink) = &self.sink else { return false };
        self.batch.complete = now;
        match sink.try_send(Message::Batch(self.thread, std::mem::take(&mut self.batch))) {
            Ok(()) => {
                self.passed_on = now;
                self.batch = self.spent.try_recv().unwrap_or_else(|_| Batch::with_room());
                true
            }
            Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => {
                if let Message::Batch(_, batch) = message {
                    self.batch = batch;
                }
                false
            }
        }
    }

    /// Hands over the last batch; returns the number of packets that had no room.
    fn close(&mut self, reached: Time) -> u64 {
        if let Some(sink) = self.sink.take() {
            self.batch.complete = reached;
            // Waiting for the disk is acceptable now. If the writer is gone, it left an error.
            let _ = sink.send(Message::Batch(self.thread, std::mem::take(&mut self.batch)));
        }
        self.missing
    }
}

/// A packet thread that fails still hands over what it noted.
impl Drop for PacketTap {
    fn drop(&mut self) {
        self.close(self.passed_on);
    }
}

impl Batch {
    fn with_room() -> Self {
        let (packets, passed) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        Self { packets, passed, names: None, complete: Time::ZERO }
    }
}

/// The writer's view of a packet thread.
struct Thread {
    batches: VecDeque<Batch>,
    /// The first packet of the first batch that is not written.
    next: usize,
    complete: Time,
    back: Sender<Batch>,
}

/// The names for numbers.
struct Names {
    elements: ElementNames,
    /// Of the scenario's traffic.
    traffic: Vec<String>,
}

/// The state of the writer thread.
struct Writer {
    output: RowFile<Packets>,
    limit: u64,
    names: Names,
    threads: Vec<Thread>,
    result: io::Result<()>,
    taken: u64,
    beyond: u64,
}

impl Writer {
    fn run(mut self, messages: Receiver<Message>) -> Written {
        // Packet threads come first; the batches between can wait.
        scheduling::give_way();
        // Its file is open; writing also works if the kernel does not confine it.
        let _ = confinement::to(Work::Descriptors);
        for message in messages {
            match message {
                Message::Batch(number, mut batch) => {
                    // Numbers of links stay.
                    self.names.elements = batch.names.take().unwrap_or(self.names.elements);
                    self.threads[number].add(batch);
                    let at = self.merge(false);
                    if self.result.is_ok() {
                        self.result = self.output.settle(at);
                    }
                }
                Message::End => break,
            }
        }
        self.merge(true);
        let result = std::mem::replace(&mut self.result, Ok(())).and_then(|()| self.output.finish());
        Written { result, beyond: self.beyond, lost: self.taken - self.output.kept() }
    }

    /// Writes what no packet can precede any more, or all; returns the instant up to which that is.
    fn merge(&mut self, all: bool) -> Time {
        let complete = |thread: &Thread| thread.complete;
        let slowest = self.threads.iter().map(complete).min().unwrap_or(Time::ZERO);
        let fastest = self.threads.iter().map(complete).max().unwrap_or(Time::ZERO);
        let until = slowest.max(Time::from_nanos(fastest.nanos().saturating_sub(LAG.nanos())));
        let mut held: usize = self.threads.iter().map(|thread| thread.batches.len()).sum();
        // At the same instant, in the order of threads.
        while let Some((at, number)) =
            self.threads.iter().zip(0..).filter_map(|(thread, number)| Some((thread.first()?, number))).min()
        {
            if at > until && held <= HELD && !all {
                break;
            }
            // A thread's packets up to the next packet of another one.
            let others = self.threads.iter().zip(0..).filter(|(_, other)| *other != number);
            let next = others.filter_map(|(thread, other)| Some((thread.first()?, other))).min();
            let thread = &mut self.threads[number];
            let Some(mut batch) = thread.batches.pop_front() else { break };
            let comes_first = |seen: &Seen| next.is_none_or(|next| (seen.at, number) < next);
            let ready = |seen: &Seen| comes_first(seen) && (all || held > HELD || seen.at <= until);
            let start = std::mem::take(&mut thread.next);
            let end = start + batch.packets[start..].iter().take_while(|seen| ready(seen)).count();
            self.write(&batch, start, end);
            let thread = &mut self.threads[number];
            if end < batch.packets.len() {
                thread.next = end;
                thread.batches.push_front(batch);
            } else {
                held -= 1;
                batch.packets.clear();
                batch.passed.clear();
                // If nobody takes it back, the run has ended.
                let _ = thread.back.send(batch);
            }
        }
        until
    }

    /// Writes packets of a batch; after an error, or beyond the limit, only counts them.
    fn write(&mut self, batch: &Batch, start: usize, end: usize) {
        let mut from = start.checked_sub(1).map_or(0, |before| batch.packets[before].passed_end);
        for seen in &batch.packets[start..end] {
            let passed = &batch.passed[std::mem::replace(&mut from, seen.passed_end)..seen.passed_end];
            if self.beyond > 0 || self.output.size() >= self.limit {
                self.beyond += 1;
                continue;
            }
            self.taken += 1;
            if self.result.is_ok() {
                self.result = self.output.put(&self.names.row(seen, passed));
            }
        }
    }
}

impl Names {
    fn row<'a>(&'a self, seen: &Seen, passed: &'a [Passed]) -> PacketRow<'a> {
        let names = &self.elements;
        let (delivered, place, reason) = match seen.verdict {
            Verdict::Delivered(port) => (true, names.port(port), ""),
            Verdict::Dropped { at, reason } => (false, at.map_or("", |at| names.element(at)), reason.name()),
        };
        let feed = seen.traffic.and_then(|place| self.traffic.get(place as usize));
        PacketRow {
            feed: feed.map_or("", String::as_str),
            port: names.port(seen.id.port()),
            number: seen.id.number(),
            copy: seen.copy,
            key: seen.key,
            arrival: seen.arrival,
            at: seen.at,
            length: seen.length,
            queued: seen.queued,
            delivered,
            place,
            reason,
            marked: seen.key.ecn() == FlowKey::CONGESTION_EXPERIENCED,
            links: Path { passed, names },
        }
    }
}

impl Thread {
    fn new(back: Sender<Batch>) -> Self {
        Self { batches: VecDeque::new(), next: 0, complete: Time::ZERO, back }
    }

    fn add(&mut self, batch: Batch) {
        self.complete = self.complete.max(batch.complete);
        if !batch.packets.is_empty() {
            self.batches.push_back(batch);
        }
    }

    /// The instant of its first packet.
    fn first(&self) -> Option<Time> {
        self.batches.front().map(|batch| batch.packets[self.next].at)
    }
}

#[cfg(test)]
mod tests;
