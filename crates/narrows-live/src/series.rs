//! A time series of a live run: the activity of each link in each interval, as CSV rows (from `narrows_report`).
//!
//! The director asks packet threads for the counters of their links, as for rates; a separate thread writes. Rows
//! that the disk cannot keep up with, or that exceed the size limit, are dropped and counted.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use narrows_core::{Duration, Time};
use narrows_frame::WriteError;
use narrows_report::{LinkCounts, SERIES_HEAD, Snapshot};

/// The maximum number of intervals waiting for the disk.
const WAITING: usize = 64;

/// The time series to write.
#[derive(Clone, Debug)]
pub struct SeriesPlan {
    /// The file.
    pub file: PathBuf,
    /// The length of an interval.
    pub step: Duration,
    /// The maximum size of the file, in bytes.
    pub limit: u64,
}

/// A time series being written.
#[derive(Debug)]
pub(crate) struct Series {
    file: String,
    step: Duration,
    /// When packet threads are next asked.
    next: Time,
    /// For each packet thread, the last instant and its links' counters.
    last: Vec<(Time, Vec<(String, LinkCounts)>)>,
    room: u64,
    /// Rows dropped because the disk was too slow, and because the file was full.
    missing: u64,
    beyond: u64,
    sink: SyncSender<String>,
    writer: JoinHandle<io::Result<()>>,
}

impl Series {
    /// Creates the file and starts the writer.
    pub(crate) fn create(plan: &SeriesPlan, threads: usize) -> Result<Self, WriteError> {
        let file = plan.file.display().to_string();
        let failed = |error| WriteError { file: file.clone(), error };
        let output = File::create(&plan.file).map_err(failed)?;
        let (sink, rows) = mpsc::sync_channel::<String>(WAITING);
        let writer = thread::Builder::new().name("series".into());
        let writer = writer.spawn(move || write(output, rows)).map_err(failed)?;
        // There is room for one.
        let _ = sink.try_send(SERIES_HEAD.into());
        let last = vec![(Time::ZERO, Vec::new()); threads];
        let room = plan.limit.saturating_sub(SERIES_HEAD.len() as u64);
        Ok(Self {
            file,
            step: plan.step,
            next: Time::ZERO + plan.step,
            last,
            room,
            missing: 0,
            beyond: 0,
            sink,
            writer,
        })
    }

    /// When packet threads are to be asked.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// They are asked at `now`. Intervals that the director was too late for are merged into the next one, which is
    /// longer.
    pub(crate) fn asked(&mut self, now: Time) {
        while self.next <= now {
            self.next = self.next + self.step;
        }
    }

    /// Takes the counters of a packet thread.
    pub(crate) fn take(&mut self, number: usize, snapshot: &mut Snapshot) {
        let (at, counts) = (snapshot.at(), snapshot.take_counts());
        let (start, before) = &mut self.last[number];
        if counts.is_empty() || at <= *start {
            return;
        }
        let (mut rows, none) = (String::new(), LinkCounts::default());
        for (name, now) in &counts {
            // The same links come in the same order, except for those added by rules.
            let before = before.iter().find(|(of, _)| of == name).map_or(&none, |(_, before)| before);
            // Writing to a string cannot fail.
            let _ = writeln!(rows, "{}", now.row(before, (*start, at), name));
        }
        (*start, *before) = (at, counts);
        let lines = rows.lines().count() as u64;
        if (rows.len() as u64) > self.room {
            (self.room, self.beyond) = (0, self.beyond + lines);
            return;
        }
        self.room -= rows.len() as u64;
        if let Err(TrySendError::Full(_)) = self.sink.try_send(rows) {
            self.missing += lines;
        }
    }

    /// Closes the file; returns a note, if necessary.
    pub(crate) fn finish(self) -> Option<String> {
        drop(self.sink);
        let written =
            self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread panicked")));
        let file = &self.file;
        match (written, self.missing, self.beyond) {
            (Err(error), ..) => Some(format!("the series {file} IS INCOMPLETE: {error}")),
            (Ok(()), 0, 0) => None,
            (Ok(()), 0, rows) => {
                Some(format!("the series {file} reached its size limit: {rows} later rows were left out"))
            }
            (Ok(()), rows, _) => {
                Some(format!("the series {file} lacks {rows} rows because the disk was too slow"))
            }
        }
    }
}

/// Writes rows; after an error it only discards them.
fn write(mut output: File, rows: mpsc::Receiver<String>) -> io::Result<()> {
    let mut result = Ok(());
    for rows in rows {
        if result.is_ok() {
            result = output.write_all(rows.as_bytes());
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(name: &str, limit: u64) -> SeriesPlan {
        let file = std::env::temp_dir().join(format!("narrows-series-{}-{name}", std::process::id()));
        SeriesPlan { file, step: Duration::from_millis(100), limit }
    }

    #[test]
    fn a_disk_that_is_full_is_said_and_nothing_waits_for_it() {
        let full = SeriesPlan { file: "/dev/full".into(), ..plan("full", 1 << 20) };
        let series = Series::create(&full, 1).unwrap();
        let said = series.finish().unwrap();
        assert!(said.starts_with("the series /dev/full IS INCOMPLETE: No space left"), "{said}");
        assert!(Series::create(&SeriesPlan { file: "/no/such/folder".into(), ..full }, 1).is_err());
    }

    #[test]
    fn steps_that_were_missed_are_left_out() {
        let plan = plan("steps", 1 << 20);
        let mut series = Series::create(&plan, 1).unwrap();
        assert_eq!(series.next(), Time::from_nanos(100_000_000));
        series.asked(Time::from_nanos(350_000_000));
        assert_eq!(series.next(), Time::from_nanos(400_000_000));
        assert_eq!(series.finish(), None);
        assert_eq!(std::fs::read_to_string(&plan.file).unwrap(), SERIES_HEAD);
        std::fs::remove_file(&plan.file).unwrap();
    }
}
