//! What iPerf 2 and 3 print: a line for each interval (`iperf3 -i 1`; `esnet/iperf`, `src/iperf_locale.c`).
//!
//! ```text
//! [  5] local 192.0.2.2 port 51528 connected to 192.0.2.1 port 5201
//! [ ID] Interval           Transfer     Bitrate         Retr  Cwnd
//! [  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0   73.5 KBytes
//! [SUM]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    0
//! [  5]   0.00-10.00  sec  12.5 MBytes  10.5 Mbits/sec    0             sender
//! ```
//! With `--reportstyle C` of iPerf 2, the same as a table: `20200316143919,192.0.2.2,34002,192.0.2.1,5001,3,0.0-1.0,2752512,22020096`.
//!
//! A rate for each interval; of several streams, that of all (`[SUM]`). Prefixes of bits are powers of 1000, of bytes
//! (`-f M`) powers of 1024. Summaries of a whole run are left out: those with `sender` or `receiver`, and those that
//! begin where the run began. Runs follow one another, without the gaps between their intervals. Losses of UDP are
//! those of the test's own load, and left out.

mod line;

use narrows_core::{Duration, Rate, Time};

use self::line::{Direction, Interval, Line};
use super::table;
use crate::problem::{Found, Problem, one_of};
use crate::source::Source;
use crate::trace::column::{filled, put};
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Column, Format, MOST_POINTS, Trace};
use crate::units::LONGEST_NANOS;

/// One of the first lines is an interval of iPerf.
impl Format {
    /// What iPerf prints. Read only.
    pub const IPERF_TEXT: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "iperf-text",
    begins: |beginning| beginning.lines().any(|line| matches!(Line::of(line), Some(Line::Interval(_)))),
    always: &[],
    extensions: &[],
    read,
    write: |_, _| Err(CannotWrite::ReadOnly { format: Format::IPERF_TEXT, why: "it is the output of iPerf" }),
    has_opportunities: false,
    says_loop: false,
};

/// Times of intervals differ by rounding, and by a late timer.
const ROUNDING: u64 = 100_000_000;

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let first = table::lines(source).next().ok_or_else(|| source.empty())?;
    let mut log = Log::default();
    for line in source.lines() {
        log.add(source, line)?;
    }
    if log.runs.is_empty() {
        let problem = Problem::new(match log.summaries {
            0 => "no line is an interval of iPerf".to_owned(),
            count => format!("{count} lines are summaries of whole tests, and none is an interval"),
        });
        return Err(problem.at(&source.span(first)).help(
            "intervals are lines such as `[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec`, which `-i 1` prints",
        ));
    }
    log.into_trace(source)
}

/// An interval of a stream, or of all streams together.
struct Row<'a> {
    stream: &'a str,
    start: u64,
    end: u64,
    bits: u64,
}

/// A run of iPerf.
struct Run<'a> {
    rows: Vec<Row<'a>>,
    is_reverse: bool,
    /// Where it begins in the file.
    place: &'a str,
}

/// A log as far as it is read.
#[derive(Default)]
struct Log<'a> {
    runs: Vec<Run<'a>>,
    /// Whether the next interval begins a run, and that run's direction.
    is_new: bool,
    is_reverse: bool,
    host: Option<&'a str>,
    points: usize,
    summaries: usize,
    omitted: usize,
    /// Intervals of the other direction.
    backward: usize,
    is_udp: bool,
}

impl<'a> Log<'a> {
    fn add(&mut self, source: &Source<'a>, line: &'a str) -> Result<(), Problem> {
        match Line::of(line) {
            Some(Line::Interval(interval)) => return self.interval(source, interval),
            Some(Line::Connected { host }) => {
                self.is_new = true;
                let other = self.host.replace(host).filter(|other| *other != host);
                if let Some(other) = other.filter(|_| !self.runs.is_empty()) {
                    let title =
                        format!("the log has tests with several hosts: {} and {}", Found(other), Found(host));
                    let problem = Problem::new(title).at(&source.span(host));
                    return Err(problem.help("keep the lines of one of them in a file of its own"));
                }
            }
            Some(Line::Start) => (self.is_new, self.is_reverse) = (true, false),
            Some(Line::Reverse) => self.is_reverse = true,
            Some(Line::Datagrams) => self.is_udp = true,
            None => {}
        }
        Ok(())
    }

    fn interval(&mut self, source: &Source<'a>, interval: Interval<'a>) -> Result<(), Problem> {
        let counted = match interval {
            Interval { is_omitted: true, .. } => &mut self.omitted,
            Interval { direction: Direction::Backward, .. } => &mut self.backward,
            Interval { is_summary: true, .. } => &mut self.summaries,
            _ => &mut self.points,
        };
        *counted += 1;
        if interval.is_omitted || interval.is_summary || interval.direction == Direction::Backward {
            return Ok(());
        }
        if self.points > MOST_POINTS {
            let problem = Problem::new(format!("more than {MOST_POINTS} intervals"));
            return Err(problem.at(&source.span(interval.rate)));
        }
        let (start, end) = interval.nanos(source)?;
        let row = Row { stream: interval.stream, start, end, bits: interval.bits(source)? };
        let place = interval.start;
        match self.runs.last_mut().filter(|_| !self.is_new).map(|run| (run.takes(&row), run)) {
            Some((Takes::Interval, run)) => run.rows.push(row),
            Some((Takes::Summary, _)) => self.summaries += 1,
            Some((Takes::Nothing, _)) | None => {
                self.runs.push(Run { rows: vec![row], is_reverse: self.is_reverse, place });
                self.is_new = false;
            }
        }
        Ok(())
    }

    fn into_trace(self, source: &Source<'_>) -> Result<Trace, Problem> {
        if let Some(run) = self.runs.iter().find(|run| run.is_reverse != self.runs[0].is_reverse) {
            let problem = Problem::new("the log has runs of both directions").at(&source.span(run.place));
            return Err(problem.help(
                "one before is in the other direction (`-R`): keep those of one in a file of their own",
            ));
        }
        let mut rate: Column<Rate> = Vec::new();
        let (mut now, mut gaps, mut skipped, mut streams) = (Time::ZERO, 0, Duration::ZERO, 0);
        for run in &self.runs {
            let names = run.streams();
            let sum = names.iter().copied().find(|name| name.starts_with("SUM"));
            let stream = match (sum, &names[..]) {
                (Some(sum), _) | (None, &[sum]) => sum,
                _ => {
                    let title = format!("several streams without a `[SUM]`: {}", one_of(&names));
                    let problem = Problem::new(title).at(&source.span(run.place));
                    return Err(problem.help("keep the lines of one of them in a file of its own"));
                }
            };
            streams = streams.max(names.len() - usize::from(sum.is_some()));
            let mut before: Option<u64> = None;
            for row in run.rows.iter().filter(|row| row.stream == stream) {
                if let Some(gap) =
                    before.map(|before| row.start.saturating_sub(before)).filter(|gap| *gap > ROUNDING)
                {
                    gaps += 1;
                    skipped += Duration::from_nanos(gap);
                }
                before = Some(row.end);
                if row.end <= row.start {
                    continue;
                }
                put(&mut rate, now, Rate::from_bits_per_second(row.bits));
                now = now + Duration::from_nanos(row.end - row.start);
                if now.nanos() > LONGEST_NANOS {
                    let problem = Problem::new("the intervals of this run last too long");
                    return Err(problem
                        .at(&source.span(run.place))
                        .help("a trace lasts for 876000h at most"));
                }
            }
        }
        if rate.is_empty() {
            return Err(Problem::new("no interval lasts").at(&source.span(self.runs[0].place)));
        }
        let mut trace = Trace::new(Format::IPERF_TEXT, now.since(Time::ZERO));
        trace.rate = filled(rate);
        let mut say = |is_so: bool, what: String| trace.remarks.extend(is_so.then_some(what));
        say(streams > 1, format!("the rate is that of all {streams} streams (`[SUM]`)"));
        say(
            self.runs[0].is_reverse,
            "the test is in reverse mode: the rate is that from the server to the client".into(),
        );
        say(self.runs.len() > 1, format!("{} runs of the log follow one another", self.runs.len()));
        say(gaps > 0, format!("{skipped} in {gaps} gaps between intervals have no measurement: left out"));
        say(self.omitted > 0, format!("{} intervals before the test (`omitted`) are left out", self.omitted));
        say(
            self.backward > 0,
            "the test has both directions: that from the server to the client is left out".into(),
        );
        say(
            self.is_udp,
            "UDP: the rate is that of the test's datagrams, and the link may have more; their losses and jitter are left out"
                .into(),
        );
        Ok(trace)
    }
}

/// What an interval is to a run.
enum Takes {
    Interval,
    /// It is the summary of the run.
    Summary,
    /// It belongs to another run.
    Nothing,
}

impl<'a> Run<'a> {
    fn takes(&self, row: &Row<'_>) -> Takes {
        let mut own = self.rows.iter().filter(|own| own.stream == row.stream);
        let ends = own.clone().next_back().zip(own.next());
        match (ends, self.rows.last()) {
            (Some((last, _)), _) if row.start + ROUNDING >= last.end => Takes::Interval,
            // Summaries of iPerf 2 and of UDP begin where the run began, and end where it ends.
            (Some((last, first)), _)
                if row.start == first.start && last.start > row.start && row.end + ROUNDING >= last.end =>
            {
                Takes::Summary
            }
            (Some(_), _) => Takes::Nothing,
            // The other streams of a test have the same intervals.
            (None, Some(last)) if row.start + ROUNDING >= last.start => Takes::Interval,
            (None, _) => Takes::Nothing,
        }
    }

    /// The names of its streams.
    fn streams(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !names.contains(&row.stream) {
                names.push(row.stream);
            }
        }
        names
    }
}
