//! Logs of `speedtest-cli --simple`, with a time for each test.
//!
//! ```text
//! 26/11/2015 21:10
//! Ping: 18.459 ms
//! Download: 31.36 Mbit/s
//! Upload: 4.83 Mbit/s
//! [Tue  4 Apr 16:41:56 CEST 2023] Ping="44.271 ms" Download="102.01 Mbit/s" Upload="10.75 Mbit/s"
//! [Tue  4 Apr 17:00:06 CEST 2023] error
//! ```
//! A time is in a line of its own or at the start of one, and belongs to the values behind it; in a log that begins with
//! values and ends with a time, to those ahead of it. A test without values, which failed, keeps those before it. Other
//! lines say nothing.

use super::FAILED;
use crate::problem::Problem;
use crate::source::Source;
use crate::trace::columns::{Clock, Columns, Delay, Place, RateUnit, TimeUnit};
use crate::trace::{Format, Trace, date, table};
use crate::units::{LONGEST_NANOS, MOST_BITS};

/// Words of a line that may be its time.
const MOST_WORDS: usize = 8;

/// Whether one of these lines has the rate of a test.
pub(super) fn is_in<'a>(mut lines: impl Iterator<Item = &'a str>) -> bool {
    lines.any(|line| {
        ["Download", "Upload"].into_iter().any(|key| Value::of(line, key).is_some_and(Value::is_rate))
    })
}

/// Parses a file.
pub(super) fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let log = Log::of(source)?;
    let Some(first) = log.tests.first() else {
        let place = table::lines(source).next().unwrap_or(source.text);
        let problem = Problem::new("no test has a time: how far are they apart?").at(&source.span(place));
        return Err(problem.help(
            "a line such as `2015-11-26 21:10` ahead of each test, or `[Thu 26 Nov 21:10:05 CET 2015]` at the start of \
             its line, says it: `(date; speedtest-cli --simple) >> FILE`; `speedtest-cli --csv` writes one, too",
        ));
    };
    if !log.has_rates() && !log.has_pings() {
        let problem = Problem::new("no test has a result").at(&source.span(first.time));
        return Err(
            problem.help("such are `Ping: 18.459 ms` and `Download: 31.36 Mbit/s`, the latter above 0")
        );
    }
    let columns = log.columns(first);
    let mut text = String::from("time\tPing\tDownload");
    for test in &log.tests {
        let download = test.download.map(|bits| bits.to_string()).unwrap_or_default();
        text.push_str(&format!("\n{}\t{}\t{download}", test.time, test.ping.unwrap_or_default()));
    }
    let table = table::read(&Source { text: &text }, &columns, Format::SPEEDTEST_CLI);
    let mut trace = table.map_err(|problem| {
        let line = problem.place().map_or(0, |place| text[..place.start].matches('\n').count());
        problem.put_at(&source.span(log.tests[line.saturating_sub(1)].time))
    })?;
    trace.remarks.splice(0..0, log.remarks());
    Ok(trace)
}

/// The tests of a log.
struct Log<'a> {
    tests: Vec<Test<'a>>,
    /// Lines of values that belong to no time.
    loose: usize,
    /// Values behind others of the same test.
    again: usize,
}

struct Test<'a> {
    time: &'a str,
    /// A round trip in milliseconds.
    ping: Option<&'a str>,
    /// In bits per second.
    download: Option<u64>,
}

/// What a line has.
enum Event<'a> {
    Time(&'a str),
    Ping(&'a str),
    Download(u64),
}

impl<'a> Log<'a> {
    fn of(source: &Source<'a>) -> Result<Self, Problem> {
        let mut events = Vec::new();
        for line in table::lines(source) {
            events.extend(time(line).map(Event::Time));
            if let Some(value) = Value::of(line, "Ping").filter(|value| value.unit == "ms") {
                let nanos = source.number(value.number, 6, LONGEST_NANOS, "a delay")?;
                // Of a test without an answer.
                events.extend((nanos / 2 < FAILED.nanos()).then_some(Event::Ping(value.number)));
            }
            if let Some(value) = Value::of(line, "Download") {
                events.extend(value.bits(source)?.map(Event::Download));
            }
        }
        let is_time = |event: Option<&Event<'_>>| matches!(event, Some(Event::Time(_)));
        let is_behind = !is_time(events.first()) && is_time(events.last());
        let mut log = Self { tests: Vec::new(), loose: 0, again: 0 };
        if is_behind {
            events.reverse();
        }
        for event in events {
            log.add(event);
        }
        if is_behind {
            log.tests.reverse();
        }
        Ok(log)
    }

    fn add(&mut self, event: Event<'a>) {
        if let Event::Time(time) = event {
            self.tests.push(Test { time, ping: None, download: None });
            return;
        }
        let Some(test) = self.tests.last_mut() else {
            self.loose += 1;
            return;
        };
        let was_there = match event {
            Event::Ping(ping) => test.ping.replace(ping).is_some(),
            Event::Download(bits) => test.download.replace(bits).is_some(),
            Event::Time(_) => false,
        };
        self.again += usize::from(was_there);
    }

    fn columns(&self, first: &Test<'_>) -> Columns {
        let epoch = || first.time.parse().ok().and_then(date::epoch).map(TimeUnit::Number);
        let delay =
            Delay { place: Place::named("Ping"), unit: Some(TimeUnit::Number(6)), is_round_trip: true };
        Columns {
            clock: Clock::Time(Place::named("time"), date::unit(first.time).or_else(epoch)),
            rate: Some((Place::named("Download"), RateUnit::BIT)).filter(|_| self.has_rates()),
            delay: Some(delay).filter(|_| self.has_pings()),
            loss: None,
            run: None,
            filter: None,
        }
    }

    fn has_pings(&self) -> bool {
        self.tests.iter().any(|test| test.ping.is_some())
    }

    /// With `--no-download`, all are 0.
    fn has_rates(&self) -> bool {
        self.tests.iter().any(|test| test.download.is_some_and(|bits| bits > 0))
    }

    fn remarks(&self) -> Vec<String> {
        let rate = match self.has_rates() {
            true => "the rate is Download, and a test holds until the next; Upload is left out",
            false => "no test has a Download above 0, and Upload is left out: there is no rate",
        };
        let failed = self.tests.iter().filter(|test| test.ping.is_none() && test.download.is_none()).count();
        let mut remarks = vec![rate.to_owned()];
        for (count, what) in [
            (failed, "tests have no result, as when they failed"),
            (self.loose, "values ahead of the first time are left out"),
            (self.again, "values are followed by others of the same time; the later ones count"),
        ] {
            if count > 0 {
                remarks.push(format!("{count} {what}"));
            }
        }
        remarks
    }
}

/// A number and its unit behind a key: `Ping: 18.459 ms`, `Download="102.01 Mbit/s"`.
#[derive(Clone, Copy)]
struct Value<'a> {
    number: &'a str,
    unit: &'a str,
}

impl<'a> Value<'a> {
    fn of(line: &'a str, key: &str) -> Option<Self> {
        line.match_indices(key).find_map(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + key.len()..]);
            if before.ends_with(char::is_alphanumeric) {
                return None;
            }
            let text =
                after.trim_start().strip_prefix([':', '='])?.trim_start().trim_start_matches(['"', '\'']);
            let (number, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
            let rest = rest.trim_start();
            let end = rest.find(|c: char| !c.is_ascii_alphabetic() && c != '/').unwrap_or(rest.len());
            (!number.is_empty()).then_some(Self { number, unit: &rest[..end] })
        })
    }

    fn is_rate(self) -> bool {
        rate_unit(self.unit).is_some()
    }

    /// Bits per second; `None` if the unit is not one of rates.
    fn bits(self, source: &Source<'_>) -> Result<Option<u64>, Problem> {
        let Some(unit) = rate_unit(self.unit) else { return Ok(None) };
        let factor = if unit.bytes { 8 } else { 1 };
        let number = source.number(self.number, unit.power, MOST_BITS / factor, "a rate")?;
        Ok(Some(number * factor))
    }
}

/// The unit of a rate: `Mbit/s`, `Kbits/s`, `Mbps`, `Mbyte/s`.
fn rate_unit(unit: &str) -> Option<RateUnit> {
    let amount = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps"))?;
    let (power, of) = match amount.strip_prefix(['K', 'k']) {
        Some(of) => (3, of),
        None => match (amount.strip_prefix('M'), amount.strip_prefix('G')) {
            (Some(of), _) => (6, of),
            (_, Some(of)) => (9, of),
            _ => (0, amount),
        },
    };
    let bytes = match of {
        "bit" | "bits" | "b" => false,
        "byte" | "bytes" | "Byte" | "Bytes" | "B" => true,
        _ => return None,
    };
    Some(RateUnit { power, bytes })
}

/// The time at the start of a line, perhaps in brackets or behind a word such as `Date:`.
fn time(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let text = match line.split_once(':') {
        Some((word, rest)) if word.chars().all(char::is_alphabetic) => rest.trim_start(),
        _ => line,
    };
    let ends =
        text.char_indices().filter(|(_, c)| c.is_whitespace() || [']', ')'].contains(c)).map(|(at, _)| at);
    let ends: Vec<usize> = ends.take(2 * MOST_WORDS).chain([text.len()]).collect();
    let is_end = |c: char| !c.is_alphanumeric();
    // The longest, so that a zone or a year at its end is in it.
    ends.into_iter().rev().map(|end| text[..end].trim_end_matches(is_end)).find(|text| is_time(text))
}

/// Whether a text is a date, a time of day, or seconds since 1970.
fn is_time(text: &str) -> bool {
    let is_epoch = || {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        is_number && text.parse().ok().and_then(date::epoch).is_some()
    };
    date::unit(text).is_some() || is_epoch()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_at_the_start_of_lines() {
        for (line, found) in [
            ("26/11/2015 21:10", Some("26/11/2015 21:10")),
            ("[Tue  4 Apr 16:41:56 CEST 2023] error", Some("Tue  4 Apr 16:41:56 CEST 2023")),
            ("Tue Apr  4 16:41:56 CEST 2023", Some("Tue Apr  4 16:41:56 CEST 2023")),
            ("2023-04-04T16:41:56+0200: Ping: 4 ms", Some("2023-04-04T16:41:56+0200")),
            ("2023-04-04 16:41:56 ERROR: Cannot retrieve", Some("2023-04-04 16:41:56")),
            ("2023-04-04 16:41:56, Download: 5 Mbit/s", Some("2023-04-04 16:41:56")),
            ("=== 2023-04-04 16:41 ===", Some("2023-04-04 16:41")),
            ("Date: Tue Apr  4 16:41:56 2023", Some("Tue Apr  4 16:41:56 2023")),
            ("16:41:56 Ping: 4 ms", Some("16:41:56")),
            ("1680619316", Some("1680619316")),
            ("Ping: 18.459 ms", None),
            ("Cannot retrieve speedtest configuration", None),
            ("Download: 31.36 Mbit/s", None),
            ("", None),
            ("[", None),
        ] {
            assert_eq!(time(line), found, "{line}");
        }
    }

    #[test]
    fn values_have_units() {
        let bits = |line: &str| {
            let source = Source { text: line };
            Value::of(line, "Download").and_then(|value| value.bits(&source).expect("it is a rate"))
        };
        for (line, found) in [
            ("Download: 31.36 Mbits/s", Some(31_360_000)),
            ("x Download=\"102.01 Mbit/s\" Upload=\"1 Mbit/s\"", Some(102_010_000)),
            ("Download = '900 Kbit/s'", Some(900_000)),
            ("Download: 1.5 Gbit/s", Some(1_500_000_000)),
            ("Download:93.9 Mbps (data used: 1 MB)", Some(93_900_000)),
            ("Download: 2 Mbyte/s", Some(16_000_000)),
            ("Download: 5 ms", None),
            ("Download: 5", None),
            ("Download: Mbit/s", None),
            ("Download: error", None),
            ("NoDownload: 5 Mbit/s", None),
        ] {
            assert_eq!(bits(line), found, "{line}");
        }
    }
}
