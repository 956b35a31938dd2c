//! Captures a live run: delivered and dropped packets, with verdicts, without blocking the packet loop.
//!
//! The loop copies packets into batches in memory; a writer thread sorts each batch by time, formats the comments and
//! writes. A batch is handed over when it is full or old enough. If the disk cannot keep up, a limited number of
//! batches is queued; further packets are missing from the file: they are counted, and the comment of the next packet
//! kept says so. The file grows by whole blocks, so the file of a killed run is readable.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use narrows_core::{Duration, Engine, Event, PortId, Time};
use narrows_frame::capture::verdicts::{Fate, Outcome, VerdictWriter};
use narrows_frame::edit::Edits;
use narrows_frame::{ElementNames, LinkLayer, WallTime, WriteError};
use narrows_io::confinement::{self, Work};
use narrows_report::CaptureReport;
use narrows_scenario::Scenario;

/// The maximum size of a batch, in bytes of packets and in packets.
const BATCH: usize = 256 << 10;
const BATCH_PACKETS: usize = 4096;
/// At most 32 MiB wait for the disk.
const BATCHES: usize = 128;
/// Batches are handed over at least this often.
const PATIENCE: Duration = Duration::from_millis(100);

/// What to capture, and where to write it.
#[derive(Clone, Debug)]
pub struct CapturePlan {
    /// The file, created or truncated.
    pub file: PathBuf,
    /// The maximum bytes kept of a packet; `None` keeps all.
    pub snap: Option<u32>,
}

/// A capture being written.
#[derive(Debug)]
pub struct Capture {
    file: String,
    /// The maximum bytes kept of a packet.
    snap: usize,
    batch: Batch,
    /// Packets of the batch from this index on are about to be sent.
    staged: usize,
    /// How many of the packets about to be sent had no room.
    unstaged: usize,
    /// `None` once it is closed.
    full: Option<SyncSender<Batch>>,
    spent: Receiver<Batch>,
    writer: Option<JoinHandle<Result<u64, WriteError>>>,
    /// Packets that the thread got, and those among them that are in the file for certain.
    passed: u64,
    written: Arc<AtomicU64>,
    /// All missing packets, and those since the last packet kept.
    missing: u64,
    missing_now: u64,
    passed_on: Time,
    rendered: Vec<u8>,
}

/// Packets in the order in which the loop finished with them.
#[derive(Debug, Default)]
struct Batch {
    packets: Vec<Taken>,
    bytes: Vec<u8>,
    /// The names of the network, if its links have changed.
    names: Option<ElementNames>,
    /// Later batches have no packet before this instant.
    complete: Time,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    at: Time,
    port: PortId,
    fate: Fate,
    length: u32,
    missing: u64,
    /// The end of its bytes, which begin at the end of the previous packet's.
    end: usize,
}

impl Capture {
    /// Starts the capture of a run of `scenario` on `engine`.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create<B>(
        plan: &CapturePlan,
        scenario: &Scenario,
        engine: &Engine<B>,
        started: WallTime,
    ) -> Result<Self, WriteError> {
        let file = plan.file.display().to_string();
        let failed = |error| WriteError { file: file.clone(), error };
        let output = WholeWrites { file: File::create(&plan.file).map_err(failed)?, waiting: Vec::new() };
        let title = format!("narrows, seed {}, started at {started}: {}", scenario.seed, scenario.file);
        let names = ElementNames::of(engine);
        let mut writer = VerdictWriter::new(file.clone(), output, &title, started)?;
        for port in engine.ports() {
            writer.interface(&names, port, LinkLayer::Ethernet)?;
        }
        writer.flush()?;
        let written = Arc::new(AtomicU64::new(0));
        let writer = Writer {
            writer,
            written: Arc::clone(&written),
            names,
            scenario: scenario.clone(),
            ways: BTreeSet::new(),
            held: Batch::default(),
        };
        let (full, waiting) = mpsc::sync_channel(BATCHES);
        let (done, spent) = mpsc::channel();
        let thread = thread::Builder::new().name("capture".into());
        let thread = thread.spawn(move || writer.run(waiting, &done)).map_err(failed)?;
        Ok(Self {
            file,
            snap: plan.snap.map_or(usize::MAX, |bytes| bytes as usize),
            batch: Batch::default(),
            staged: 0,
            unstaged: 0,
            full: Some(full),
            spent,
            writer: Some(thread),
            passed: 0,
            written,
            missing: 0,
            missing_now: 0,
            passed_on: Time::ZERO,
            rendered: Vec::new(),
        })
    }

    /// The network's links have changed.
    pub fn renamed<B>(&mut self, engine: &Engine<B>) {
        self.batch.names = Some(ElementNames::of(engine));
    }

    /// A packet was dropped, or delivered to `port`, which has no cable.
    pub fn decided<B: AsRef<[u8]>>(&mut self, event: &Event<'_, B>, port: PortId, fate: Fate) {
        if !self.has_room(event.at) {
            return self.miss(1);
        }
        let edits = Edits::of(event);
        let mut bytes = event.body.get().as_ref();
        let mut rendered = std::mem::take(&mut self.rendered);
        if edits.needed(bytes) {
            edits.render(bytes, &mut rendered);
            bytes = &rendered;
        }
        self.take(event.at, port, fate, bytes);
        self.rendered = rendered;
    }

    /// Packets are about to be sent by `port`; the fate of each is recorded if it is sent. The engine is at `now`.
    pub fn stage<'a>(&mut self, now: Time, frames: impl ExactSizeIterator<Item = (PortId, Fate, &'a [u8])>) {
        self.unstaged = if self.has_room(now) { 0 } else { frames.len() };
        self.staged = self.batch.packets.len();
        if self.unstaged == 0 {
            for (port, fate, bytes) in frames {
                self.take(now, port, fate, bytes);
            }
        }
    }

    /// The first `count` of the staged packets left at `at`; `refused` says whether the next one was refused.
    pub fn sent(&mut self, at: Time, count: usize, refused: bool) {
        let gone = count + usize::from(refused);
        if self.unstaged > 0 {
            return self.miss(gone as u64);
        }
        let packets = &mut self.batch.packets;
        let (start, kept) = (self.staged, self.staged + gone);
        for (number, packet) in packets[start..kept].iter_mut().enumerate() {
            packet.at = at;
            if number == count {
                packet.fate = packet.fate.refused();
            }
        }
        // Packets not taken are staged again later, and so is the first one's number of missing packets.
        self.missing_now += packets[kept..].iter().map(|packet| packet.missing).sum::<u64>();
        packets.truncate(kept);
        self.batch.bytes.truncate(packets.last().map_or(0, |last| last.end));
    }

    /// Packets are given up at `at`, because their outgoing interface had no room for too long.
    pub fn refused<'a>(&mut self, at: Time, frames: impl ExactSizeIterator<Item = (PortId, Fate, &'a [u8])>) {
        for (port, fate, bytes) in frames {
            match self.has_room(self.passed_on) {
                true => self.take(at, port, fate.refused(), bytes),
                false => self.miss(1),
            }
        }
    }

    /// A turn has ended in which the engine reached `now`.
    pub fn turn_ended(&mut self, now: Time) {
        if now >= self.passed_on + PATIENCE && !self.batch.packets.is_empty() {
            self.pass_on(now);
        }
    }

    /// Closes the file. Errors are in the report; they did not affect any packet.
    pub fn finish(mut self, now: Time) -> CaptureReport {
        let (written, error) = match self.close(now) {
            Ok(written) => (Some(written), None),
            Err(error) => (None, Some(error.error)),
        };
        // Some may be in the part of the file behind the last batch that is whole.
        let lost = if error.is_some() { self.passed - self.written.load(Ordering::Relaxed) } else { 0 };
        let reader_is_gone = error.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        CaptureReport {
            file: std::mem::take(&mut self.file),
            written_packets: written,
            missing_packets: self.missing + lost,
            error: error.map(|error| error.to_string()),
            reader_is_gone,
        }
    }

    fn close(&mut self, now: Time) -> Result<u64, WriteError> {
        if let Some(full) = self.full.take() {
            self.batch.complete = now;
            self.passed += self.batch.packets.len() as u64;
            // Waiting for the disk is acceptable now. If the thread is gone, it left an error.
            let _ = full.send(std::mem::take(&mut self.batch));
        }
        let failed = |text| WriteError { file: self.file.clone(), error: io::Error::other(text) };
        match self.writer.take() {
            Some(writer) => writer.join().unwrap_or_else(|_| Err(failed("the writing thread panicked"))),
            None => Err(failed("it is closed already")),
        }
    }

    fn take(&mut self, at: Time, port: PortId, fate: Fate, bytes: &[u8]) {
        self.batch.bytes.extend_from_slice(&bytes[..bytes.len().min(self.snap)]);
        let (end, missing) = (self.batch.bytes.len(), std::mem::take(&mut self.missing_now));
        let length = bytes.len() as u32; // a frame has at most some 64 KiB
        self.batch.packets.push(Taken { at, port, fate, length, missing, end });
    }

    fn miss(&mut self, packets: u64) {
        self.missing += packets;
        self.missing_now += packets;
    }

    fn has_room(&mut self, now: Time) -> bool {
        let is_full = self.batch.bytes.len() >= BATCH || self.batch.packets.len() >= BATCH_PACKETS;
        !is_full || self.pass_on(now)
    }

    /// Hands the batch over if the thread has room for it.
    fn pass_on(&mut self, now: Time) -> bool {
        let Some(full) = &self.full else { return false };
        self.batch.complete = now;
        let packets = self.batch.packets.len() as u64;
        match full.try_send(std::mem::take(&mut self.batch)) {
            Ok(()) => {
                self.passed_on = now;
                self.passed += packets;
                self.batch = self.spent.try_recv().unwrap_or_default();
                true
            }
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                self.batch = batch;
                false
            }
        }
    }
}

impl Drop for Capture {
    /// A run that aborts still writes what it has captured.
    fn drop(&mut self) {
        if self.full.is_some() {
            let _ = self.close(self.passed_on);
        }
    }
}

/// The state of the writer thread.
struct Writer {
    writer: VerdictWriter<WholeWrites>,
    /// Packets in the file.
    written: Arc<AtomicU64>,
    names: ElementNames,
    scenario: Scenario,
    /// Pairs of ports whose links the writer knows.
    ways: BTreeSet<(PortId, PortId)>,
    /// Packets that may still be preceded by earlier ones.
    held: Batch,
}

impl Writer {
    /// Returns the number of packets in the file.
    fn run(mut self, waiting: Receiver<Batch>, spent: &Sender<Batch>) -> Result<u64, WriteError> {
        // Its file is open; writing also works if the kernel does not confine it.
        let _ = confinement::to(Work::Descriptors);
        let mut written = 0;
        for mut batch in waiting {
            // Numbers stay.
            self.names = batch.names.take().unwrap_or(self.names);
            self.held.append(&batch);
            written += self.write_until(batch.complete)?;
            self.writer.flush()?;
            self.written.store(written, Ordering::Relaxed);
            batch.packets.clear();
            batch.bytes.clear();
            // If nobody takes it back, the run has ended.
            let _ = spent.send(batch);
        }
        written += self.write_until(Time::NEVER)?;
        self.writer.finish()?;
        Ok(written)
    }

    /// Writes packets that nothing can precede any more, in order of time, and keeps the rest.
    fn write_until(&mut self, complete: Time) -> Result<u64, WriteError> {
        let held = std::mem::take(&mut self.held);
        let mut start = 0;
        let mut packets: Vec<(usize, &Taken)> = Vec::with_capacity(held.packets.len());
        for packet in &held.packets {
            packets.push((std::mem::replace(&mut start, packet.end), packet));
        }
        packets.sort_by_key(|(_, packet)| packet.at);
        let ready = packets.partition_point(|(_, packet)| packet.at <= complete);
        for &(start, &Taken { at, port, fate, length, missing, end }) in &packets[..ready] {
            if let Fate::Released(passage) | Fate::Refused(passage) = fate {
                self.find_way(passage.from, port);
            }
            let (layer, bytes) = (LinkLayer::Ethernet, &held.bytes[start..end]);
            self.writer.write(&self.names, &Outcome { at, port, layer, length, bytes, fate, missing })?;
        }
        for &(start, packet) in &packets[ready..] {
            self.held.bytes.extend_from_slice(&held.bytes[start..packet.end]);
            self.held.packets.push(Taken { end: self.held.bytes.len(), ..*packet });
        }
        Ok(ready as u64)
    }

    fn find_way(&mut self, from: PortId, to: PortId) {
        if !self.ways.insert((from, to)) {
            return;
        }
        let port = |id| self.scenario.ports().iter().find(|port| port.name == self.names.port(id));
        if let (Some(start), Some(end)) = (port(from), port(to))
            && let Some(links) = self.scenario.only_way(start, end)
        {
            self.writer.way(from, to, links.join(", "));
        }
    }
}

impl Batch {
    fn append(&mut self, other: &Self) {
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.packets.extend(other.packets.iter().map(|packet| Taken { end: packet.end + offset, ..*packet }));
    }
}

/// Writes only when flushed, so that the file consists of whole blocks.
#[derive(Debug)]
struct WholeWrites {
    file: File,
    waiting: Vec<u8>,
}

impl Write for WholeWrites {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
