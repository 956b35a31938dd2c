//! A time series of a live run: the activity of each link in each interval, as rows of `narrows_report`.
//!
//! The director asks packet threads for the counters of their links, as for rates; a separate thread makes rows of
//! them and writes. Intervals that the disk cannot keep up with, and rows that exceed the size limit or that a full
//! disk does not take, are dropped and counted.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use narrows_columns::RowFile;
use narrows_core::{Duration, Time};
use narrows_frame::WriteError;
use narrows_io::confinement::{self, Work};
use narrows_io::scheduling;
use narrows_report::{LinkCounts, Snapshot};

/// The maximum number of intervals waiting for the disk.
const WAITING: usize = 64;

/// The time series to write.
#[derive(Clone, Debug)]
pub struct SeriesPlan {
    /// The file: Parquet if its name ends in `.parquet`, else CSV.
    pub file: PathBuf,
    /// The length of an interval.
    pub step: Duration,
    /// The maximum size of the file, in bytes. The interval that reaches it is the last one written.
    pub limit: u64,
}

/// The counters of links at an instant, by the links' names.
#[derive(Debug, Default)]
struct Counts {
    at: Time,
    links: Vec<(String, LinkCounts)>,
}

/// What a packet thread's links did between two instants.
struct Interval {
    from: Arc<Counts>,
    to: Arc<Counts>,
}

/// A time series being written.
#[derive(Debug)]
pub(crate) struct Series {
    file: String,
    step: Duration,
    /// When packet threads are next asked.
    next: Time,
    /// For each packet thread, its last counters.
    last: Vec<Arc<Counts>>,
    /// Rows dropped because the disk was too slow.
    missing: u64,
    /// `None` once the end has been told.
    sink: Option<SyncSender<Interval>>,
    writer: Option<JoinHandle<Written>>,
}

/// What became of the rows that reached the writer.
#[derive(Debug)]
struct Written {
    result: io::Result<()>,
    /// Rows that the file lacks: for the limit, or after an error.
    beyond: u64,
    lost: u64,
}

impl Series {
    /// Creates the file and starts the writer.
    pub(crate) fn create(plan: &SeriesPlan, threads: usize) -> Result<Self, WriteError> {
        let file = plan.file.display().to_string();
        let failed = |error| WriteError { file: file.clone(), error };
        let output = RowFile::create(&plan.file).map_err(failed)?;
        let (sink, intervals) = mpsc::sync_channel(WAITING);
        let (writer, limit) = (thread::Builder::new().name("series".into()), plan.limit);
        let writer = writer.spawn(move || write(output, limit, intervals)).map_err(failed)?;
        Ok(Self {
            file,
            step: plan.step,
            next: Time::ZERO + plan.step,
            last: vec![Arc::default(); threads],
            missing: 0,
            sink: Some(sink),
            writer: Some(writer),
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
        self.add(number, Counts { at: snapshot.at(), links: snapshot.take_counts() });
    }

    fn add(&mut self, number: usize, now: Counts) {
        let last = &mut self.last[number];
        if now.links.is_empty() || now.at <= last.at {
            return;
        }
        let rows = now.links.len() as u64;
        let now = Arc::new(now);
        let from = std::mem::replace(last, Arc::clone(&now));
        let interval = Interval { from, to: now };
        if let Some(Err(TrySendError::Full(_))) = self.sink.as_ref().map(|sink| sink.try_send(interval)) {
            self.missing += rows;
        }
    }

    /// Completes the file; returns a note, if necessary. It is also added to `unwritten` if the file could not be written.
    pub(crate) fn finish(mut self, unwritten: &mut Vec<String>) -> Option<String> {
        let Written { result, beyond, lost } = self.end()?;
        let (file, missing) = (&self.file, self.missing);
        match (result, missing, beyond) {
            (Err(error), ..) => {
                let note =
                    format!("the series {file} IS INCOMPLETE: {error}; it lacks {} rows", lost + missing);
                // What a reader has closed is as short as it wants.
                unwritten.extend((error.kind() != io::ErrorKind::BrokenPipe).then(|| note.clone()));
                Some(note)
            }
            (Ok(()), 0, 0) => None,
            (Ok(()), 0, rows) => {
                Some(format!("the series {file} reached its size limit: {rows} later rows were left out"))
            }
            (Ok(()), rows, _) => {
                Some(format!("the series {file} lacks {rows} rows because the disk was too slow"))
            }
        }
    }

    /// Waits for the writer; once.
    fn end(&mut self) -> Option<Written> {
        drop(self.sink.take());
        let panicked = || Err(io::Error::other("the writing thread panicked"));
        self.writer.take().map(|writer| {
            writer.join().unwrap_or_else(|_| Written { result: panicked(), beyond: 0, lost: 0 })
        })
    }
}

/// A run that ends with an error completes its file, too.
impl Drop for Series {
    fn drop(&mut self) {
        // What the file lacks then is nobody's question.
        let _ = self.end();
    }
}

/// Writes rows; after an error, or beyond the limit, it only counts them.
fn write(
    mut file: RowFile<narrows_columns::Series>,
    limit: u64,
    intervals: mpsc::Receiver<Interval>,
) -> Written {
    // Packet threads come first; intervals can wait.
    scheduling::give_way();
    // Its file is open; writing also works if the kernel does not confine it.
    let _ = confinement::to(Work::Descriptors);
    let (mut result, mut beyond, mut taken, mut full) = (Ok(()), 0, 0, false);
    for interval in intervals {
        let rows = interval.to.links.len() as u64;
        full |= file.size() >= limit;
        if full {
            beyond += rows;
            continue;
        }
        taken += rows;
        if result.is_ok() {
            result = put(&mut file, &interval);
        }
    }
    result = result.and_then(|()| file.finish());
    let lost = taken - file.kept();
    Written { result, beyond, lost }
}

fn put(file: &mut RowFile<narrows_columns::Series>, Interval { from, to }: &Interval) -> io::Result<()> {
    let none = LinkCounts::default();
    for (name, now) in &to.links {
        // The same links come in the same order, except for those added by rules.
        let before = from.links.iter().find(|(of, _)| of == name).map_or(&none, |(_, before)| before);
        file.put(&now.row(before, (from.at, to.at), name))?;
    }
    file.settle(to.at)
}

#[cfg(test)]
mod tests {
    use narrows_report::SERIES_HEAD;

    use super::*;

    fn plan(name: &str, limit: u64) -> SeriesPlan {
        let file = std::env::temp_dir().join(format!("narrows-series-{}-{name}", std::process::id()));
        SeriesPlan { file, step: Duration::from_millis(100), limit }
    }

    #[test]
    fn a_disk_that_is_full_is_said_and_nothing_waits_for_it() {
        let full = SeriesPlan { file: "/dev/full".into(), ..plan("full", 1 << 20) };
        let series = Series::create(&full, 1).unwrap();
        let mut unwritten = Vec::new();
        let said = series.finish(&mut unwritten).unwrap();
        assert_eq!(unwritten, std::slice::from_ref(&said));
        assert!(said.starts_with("the series /dev/full IS INCOMPLETE: No space left"), "{said}");
        assert!(said.ends_with("; it lacks 0 rows"), "{said}");
        assert!(Series::create(&SeriesPlan { file: "/no/such/folder".into(), ..full }, 1).is_err());
    }

    #[test]
    fn steps_that_were_missed_are_left_out() {
        let plan = plan("steps", 1 << 20);
        let mut series = Series::create(&plan, 1).unwrap();
        assert_eq!(series.next(), Time::from_nanos(100_000_000));
        series.asked(Time::from_nanos(350_000_000));
        assert_eq!(series.next(), Time::from_nanos(400_000_000));
        assert_eq!(series.finish(&mut Vec::new()), None);
        assert_eq!(std::fs::read_to_string(&plan.file).unwrap(), SERIES_HEAD);
        std::fs::remove_file(&plan.file).unwrap();
    }

    /// The first interval of a row, the second one without room: what is left out is counted, not written.
    #[test]
    fn rows_beyond_the_limit_are_counted() {
        let plan = plan("limit", SERIES_HEAD.len() as u64 + 1);
        let mut series = Series::create(&plan, 1).unwrap();
        for second in 1..=3 {
            let links =
                vec![("l.up".into(), LinkCounts::default()), ("l.down".into(), LinkCounts::default())];
            series.add(0, Counts { at: Time::from_nanos(second * 1_000_000_000), links });
        }
        assert!(
            series
                .finish(&mut Vec::new())
                .unwrap()
                .ends_with("reached its size limit: 4 later rows were left out")
        );
        let text = std::fs::read_to_string(&plan.file).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("\n0,1000000000,link,l.up,,0,0,0,,0,0,0,0,0,\n"), "{text}");
        std::fs::remove_file(&plan.file).unwrap();
    }

    /// A run that ends with an error drops its series.
    #[test]
    fn a_series_that_is_dropped_is_complete() {
        let plan = plan("dropped", 1 << 20);
        let mut series = Series::create(&plan, 1).unwrap();
        let links = vec![("l.up".into(), LinkCounts::default())];
        series.add(0, Counts { at: Time::from_nanos(1_000_000_000), links });
        drop(series);
        assert_eq!(std::fs::read_to_string(&plan.file).unwrap().lines().count(), 2);
        std::fs::remove_file(&plan.file).unwrap();
    }
}
