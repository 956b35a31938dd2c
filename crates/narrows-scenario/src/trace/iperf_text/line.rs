//! Lines of iPerf.

use crate::problem::Problem;
use crate::source::Source;
use crate::units::{LONGEST_NANOS, MOST_BITS};

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Line<'a> {
    Interval(Interval<'a>),
    /// A stream is connected with this host.
    Connected {
        host: &'a str,
    },
    /// A run begins.
    Start,
    /// The run is in reverse mode.
    Reverse,
    /// The columns are those of UDP.
    Datagrams,
}

/// The direction of a test in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// That of the test, from the client to the server if it has both.
    Forward,
    Backward,
}

/// An interval, as it is printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval<'a> {
    pub(super) stream: &'a str,
    pub(super) direction: Direction,
    /// In seconds.
    pub(super) start: &'a str,
    end: &'a str,
    pub(super) rate: &'a str,
    unit: Unit,
    pub(super) is_summary: bool,
    pub(super) is_omitted: bool,
}

/// The unit of a rate: bits, or bytes with powers of 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Bits(i32),
    Bytes(u32),
}

const PREFIXES: [(&str, u32); 5] = [("", 0), ("K", 1), ("M", 2), ("G", 3), ("T", 4)];

impl Interval<'_> {
    /// Its start and end in nanoseconds.
    pub(super) fn nanos(&self, source: &Source<'_>) -> Result<(u64, u64), Problem> {
        let time = |text| source.number(text, 9, LONGEST_NANOS, "a time in seconds");
        Ok((time(self.start)?, time(self.end)?))
    }

    /// Its rate in bits per second.
    pub(super) fn bits(&self, source: &Source<'_>) -> Result<u64, Problem> {
        match self.unit {
            Unit::Bits(power) => source.number(self.rate, power, MOST_BITS, "a rate"),
            Unit::Bytes(power) => {
                // Rounded to a thousandth of the unit.
                let unit = 1024u64.pow(power);
                let thousandths =
                    source.number(self.rate, 3, MOST_BITS / 8 / unit * 1000, "a rate in bytes per second")?;
                // At most 10¹⁸ · 8.
                Ok((thousandths * 8).saturating_mul(unit) / 1000)
            }
        }
    }
}

impl<'a> Line<'a> {
    pub(super) fn of(line: &'a str) -> Option<Self> {
        if line.contains("/sec") {
            let mut brackets = line.match_indices('[').map(|(at, _)| &line[at..]);
            return brackets.find_map(interval).map(Line::Interval);
        }
        if let Some(interval) = report(line) {
            return Some(Self::Interval(interval));
        }
        if let Some((_, rest)) =
            line.split_once(" connected ").filter(|(before, _)| before.contains(" local "))
        {
            let host = rest.strip_prefix("to ").or_else(|| rest.strip_prefix("with "))?;
            return Some(Self::Connected { host: host.split_ascii_whitespace().next()? });
        }
        if line.contains("Reverse mode, remote host") {
            return Some(Self::Reverse);
        }
        if line.contains("Lost/Total") || line.contains("Total Datagrams") {
            return Some(Self::Datagrams);
        }
        let starts = [
            "Connecting to host ",
            "Accepted connection from ",
            "Client connecting to ",
            "Server listening on ",
        ];
        starts.iter().any(|start| line.contains(start)).then_some(Self::Start)
    }
}

/// `[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec`, `[SUM]  0.0- 1.0 sec  …`, `[  5][TX-C]   0.00-1.00   sec  …`.
fn interval(text: &str) -> Option<Interval<'_>> {
    let (stream, rest) = text.strip_prefix('[')?.split_once(']')?;
    let stream = stream.trim();
    let (role, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let (start, rest) = rest.split_once('-')?;
    let start = start.trim();
    let mut words = rest.split_ascii_whitespace();
    let (end, sec) = (words.next()?, words.next()?);
    let is_time =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if sec != "sec" || !is_time(start) || !is_time(end) {
        return None;
    }
    let (_, volume, rate, unit) = (words.next()?, words.next()?, words.next()?, words.next()?);
    if !volume.ends_with("Bytes") && !volume.ends_with("bits") {
        return None;
    }
    let unit = unit.strip_suffix("/sec")?;
    let power = |prefix: &str| {
        PREFIXES.iter().find(|(name, _)| name.eq_ignore_ascii_case(prefix)).map(|(_, power)| *power)
    };
    let unit = match (unit.strip_suffix("bits"), unit.strip_suffix("Bytes")) {
        (Some(prefix), _) => Unit::Bits(3 * i32::try_from(power(prefix)?).ok()?),
        (None, Some(prefix)) => Unit::Bytes(power(prefix)?),
        (None, None) => return None,
    };
    let (mut is_summary, mut is_omitted) = (false, false);
    for word in words {
        is_summary |= word == "sender" || word == "receiver";
        is_omitted |= word == "(omitted)";
    }
    // iPerf 2 marks the other direction, and both together.
    let is_backward = matches!(role, "RX-C" | "TX-S") || stream.starts_with('*') || stream.starts_with("FD");
    let direction = if is_backward { Direction::Backward } else { Direction::Forward };
    Some(Interval { stream, direction, start, end, rate, unit, is_summary, is_omitted })
}

/// `20200316143919,192.0.2.2,34002,192.0.2.1,5001,3,0.0-1.0,2752512,22020096`, with `--reportstyle C` of iPerf 2: bytes and bits
/// per second; five more columns for UDP.
fn report(text: &str) -> Option<Interval<'_>> {
    let mut fields = text.trim_end().split(',');
    let is_date = |text: &str| {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        digits == 14 && (text.len() == 14 || text[14..].starts_with(['.', '+', '-']))
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_date(fields.next()?) {
        return None;
    }
    let ends: [&str; 4] = [fields.next()?, fields.next()?, fields.next()?, fields.next()?];
    let (stream, (start, end)) = (fields.next()?, fields.next()?.split_once('-')?);
    let (bytes, rate) = (fields.next()?, fields.next()?);
    let is_sum = stream == "-1";
    let is_one = [ends[1], ends[3], bytes, rate].into_iter().all(is_number)
        && (is_sum || is_number(stream))
        && is_time(start)
        && is_time(end)
        && matches!(fields.count(), 0 | 5);
    let stream = if is_sum { "SUM" } else { stream };
    is_one.then_some(Interval {
        stream,
        direction: Direction::Forward,
        start,
        end,
        rate,
        unit: Unit::Bits(0),
        is_summary: false,
        is_omitted: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_versions_are_understood() {
        let source = |text| Source { text };
        for (text, stream, start, end, bits) in [
            (
                "[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0   73.5 KBytes",
                "5",
                0,
                1000,
                10_500_000,
            ),
            (
                "[  3]  0.0- 1.0 sec   128 KBytes  1.05 Mbits/sec   0.003 ms    0/   89 (0%)",
                "3",
                0,
                1000,
                1_050_000,
            ),
            ("[SUM]  9.0-10.0 sec  2.50 GBytes  21.0 Gbits/sec", "SUM", 9000, 10_000, 21_000_000_000),
            ("[  1] 1.0000-2.0000 sec  0.00 Bytes  0.00 bits/sec", "1", 1000, 2000, 0),
            (
                "2025-04-02 01:30:50 [  5][TX-C]   0.50-1.00   sec  1.25 MBytes  2.00 MBytes/sec",
                "5",
                500,
                1000,
                16_777_216,
            ),
            (
                "20200316143919,192.0.2.2,34002,192.0.2.1,5001,3,1.0-2.0,2752512,22020096",
                "3",
                1000,
                2000,
                22_020_096,
            ),
            (
                "20200316143919.250,192.0.2.2,34002,192.0.2.1,5001,-1,0.0-1.0,131250,1050000,0.012,0,89,0.000,0",
                "SUM",
                0,
                1000,
                1_050_000,
            ),
            (
                "host iperf3[412]: [  7] 7197.00-7198.00 sec   512 KBytes  4190 Kbits/sec  91",
                "7",
                7_197_000,
                7_198_000,
                4_190_000,
            ),
        ] {
            let Some(Line::Interval(interval)) = Line::of(text) else { panic!("{text}") };
            assert_eq!(interval.stream, stream, "{text}");
            assert_eq!(interval.nanos(&source(text)), Ok((start * 1_000_000, end * 1_000_000)), "{text}");
            assert_eq!(interval.bits(&source(text)), Ok(bits), "{text}");
            assert_eq!((interval.is_summary, interval.is_omitted), (false, false), "{text}");
        }
        for (text, is_summary, is_omitted, direction) in [
            (
                "[  5]   0.00-5.04   sec  13.3 GBytes  22.6 Gbits/sec                  receiver",
                true,
                false,
                Direction::Forward,
            ),
            (
                "[  5]   0.00-1.00   sec  13.3 MBytes  22.6 Mbits/sec  0  1 MBytes  (omitted)",
                false,
                true,
                Direction::Forward,
            ),
            ("[  7][RX-C]   0.00-1.00   sec  13.3 MBytes  22.6 Mbits/sec", false, false, Direction::Backward),
        ] {
            let Some(Line::Interval(interval)) = Line::of(text) else { panic!("{text}") };
            let found = (interval.is_summary, interval.is_omitted, interval.direction);
            assert_eq!(found, (is_summary, is_omitted, direction), "{text}");
        }
        for (text, line) in [
            ("[ ID] Interval           Transfer     Bitrate         Retr  Cwnd", None),
            ("Speed : 22.60 Gbits/sec", None),
            ("3.97,Mbits/sec", None),
            ("20200316143919,192.0.2.2,34002,192.0.2.1,5001,3,1.0-2.0,2752512", None),
            ("20200316,192.0.2.2,34002,192.0.2.1,5001,3,1.0-2.0,2752512,22020096", None),
            (
                "[  5] local 192.0.2.2 port 51528 connected to 192.0.2.1 port 5201",
                Some(Line::Connected { host: "192.0.2.1" }),
            ),
            (
                "[  3] local 192.0.2.2 port 51528 connected with 192.0.2.1 port 5001",
                Some(Line::Connected { host: "192.0.2.1" }),
            ),
            ("Connecting to host a.net, port 5201", Some(Line::Start)),
            ("Reverse mode, remote host a.net is sending", Some(Line::Reverse)),
            (
                "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams",
                Some(Line::Datagrams),
            ),
        ] {
            assert_eq!(Line::of(text), line, "{text}");
        }
    }
}
