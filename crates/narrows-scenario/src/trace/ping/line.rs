//! Lines of ping.

use crate::problem::Problem;
use crate::source::Source;
use crate::trace::date;
use crate::units::LONGEST_NANOS;

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Event<'a> {
    /// A command line, with its `-i`.
    Command {
        interval: Option<&'a str>,
    },
    /// The header of a run, and the number of its first probe.
    Start {
        target: &'a str,
        first: u64,
    },
    /// Numbers are those that ping prints; Windows prints none. A stamp is what stands in front.
    Answer {
        from: &'a str,
        sequence: Option<&'a str>,
        time: Option<Trip<'a>>,
        stamp: Option<&'a str>,
        is_duplicate: bool,
    },
    Missing {
        sequence: Option<&'a str>,
    },
    /// Probes sent, and how long that took.
    Summary {
        sent: &'a str,
        millis: Option<&'a str>,
    },
}

/// A round trip in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trip<'a> {
    millis: &'a str,
    /// `<1ms`.
    pub(super) is_below: bool,
}

impl Trip<'_> {
    pub(super) fn nanos(self, source: &Source<'_>) -> Result<u64, Problem> {
        let nanos = source.number(self.millis, 6, LONGEST_NANOS, "a round trip in milliseconds")?;
        Ok(if self.is_below { nanos / 2 } else { nanos })
    }
}

impl<'a> Event<'a> {
    /// Whether a file with this line is ping's.
    pub(super) const fn is_telling(&self) -> bool {
        matches!(self, Self::Start { .. } | Self::Answer { .. } | Self::Missing { .. })
    }

    pub(super) fn of(line: &'a str) -> Option<Self> {
        let line = line.trim();
        start(line)
            .or_else(|| missing(line))
            .or_else(|| answer(line))
            .or_else(|| summary(line))
            .or_else(|| command(line))
    }
}

/// `$ ping -i 0.2 example.net`.
fn command(line: &str) -> Option<Event<'_>> {
    let mut words = line.split_ascii_whitespace();
    words.find(|word| matches!(word.rsplit('/').next(), Some("ping" | "ping6")))?;
    let mut words = words.skip_while(|word| !word.starts_with("-i"));
    let interval = match words.next().and_then(|word| word.strip_prefix("-i")) {
        Some("") => words.next(),
        interval => interval,
    };
    let interval = interval.filter(|text| text.parse::<f64>().is_ok());
    Some(Event::Command { interval })
}

/// `PING example.net (192.0.2.1) 56(84) bytes of data.` of Linux, which counts from 1; `… (192.0.2.1): 56 data bytes` of macOS and
/// BusyBox, which count from 0; `Pinging example.net [192.0.2.1] with 32 bytes of data:` of Windows.
fn start(line: &str) -> Option<Event<'_>> {
    if let Some(rest) = line.strip_prefix("Pinging ") {
        let target = rest.split_once(" with ")?.0.split(' ').next()?;
        return Some(Event::Start { target, first: 1 });
    }
    let rest = &line[line.find("PING")?..];
    if !rest.contains("bytes of data") && !rest.contains("data bytes") && !rest.starts_with("PING6(") {
        return None;
    }
    // Linux has no colon behind the address, and no `of` where it pings IPv6.
    let first = u64::from(!rest.contains("): ") && !rest.starts_with("PING6("));
    let target = match rest.split_once(" --> ") {
        Some((_, target)) => target.split(' ').next()?,
        None => rest.strip_prefix("PING ")?.split([' ', '(']).next()?,
    };
    Some(Event::Start { target, first })
}

/// `no answer yet for icmp_seq=5`, `Request timeout for icmp_seq 5`, `From 192.0.2.9 icmp_seq=5 Destination Host
/// Unreachable`, `Request timed out.`, `Reply from 192.0.2.9: Destination host unreachable.`
fn missing(line: &str) -> Option<Event<'_>> {
    if let Some(at) = line.find("no answer yet for ").or_else(|| line.find("Request timeout for ")) {
        return Some(Event::Missing { sequence: sequence(&line[at..]) });
    }
    let is_failed =
        ["nreachable", "xceeded", "expired in transit", "iltered"].iter().any(|why| line.contains(why));
    if is_failed && line.contains("From ") {
        return sequence(line).map(|number| Event::Missing { sequence: Some(number) });
    }
    let is_windows = line.ends_with("Request timed out.")
        || line.ends_with("General failure.")
        || is_failed && line.contains("Reply from ")
        || line.ends_with("Destination host unreachable.");
    is_windows.then_some(Event::Missing { sequence: None })
}

/// `64 bytes from 192.0.2.1: icmp_seq=1 ttl=54 time=13.2 ms`, `Reply from 192.0.2.1: bytes=32 time=13ms TTL=54`.
fn answer(line: &str) -> Option<Event<'_>> {
    let (begin, rest) = match line.find(" bytes from ") {
        Some(at) => {
            let digits = line[..at].bytes().rev().take_while(u8::is_ascii_digit).count();
            (at - digits, &line[at + " bytes from ".len()..])
        }
        None => {
            let at = line.find("Reply from ")?;
            (at, &line[at + "Reply from ".len()..])
        }
    };
    let is_unix = line[begin..].starts_with(|c: char| c.is_ascii_digit());
    let (from, rest) = rest.split_once(": ")?;
    let mut time = None;
    let mut words = rest.split_ascii_whitespace();
    while let Some(word) = words.next() {
        let value = word.strip_prefix("time=").map(|value| (value, false));
        let Some((value, is_below)) = value.or_else(|| Some((word.strip_prefix("time<")?, true))) else {
            continue;
        };
        let millis = match value.strip_suffix("ms") {
            Some(millis) => millis,
            None if words.next() == Some("ms") => value,
            None => return None,
        };
        time = Some(Trip { millis, is_below });
    }
    let sequence = sequence(rest);
    // A host on the way says what is wrong, and Windows always prints a time.
    if is_unix && sequence.is_none() || !is_unix && time.is_none() {
        return None;
    }
    let stamp = Some(line[..begin].trim()).filter(|stamp| !stamp.is_empty());
    Some(Event::Answer { from: from.trim(), sequence, time, stamp, is_duplicate: rest.contains("(DUP!)") })
}

/// `10 packets transmitted, 9 received, 10% packet loss, time 9012ms`.
fn summary(line: &str) -> Option<Event<'_>> {
    let (sent, rest) = line.split_once(" packets transmitted")?;
    let sent = sent.split_ascii_whitespace().next_back()?;
    let millis = rest.split_once(", time ").and_then(|(_, time)| time.trim().strip_suffix("ms"));
    sent.bytes().all(|byte| byte.is_ascii_digit()).then_some(Event::Summary { sent, millis })
}

/// The number behind `icmp_seq=`, `icmp_seq `, `icmp_req=` or `seq=`.
fn sequence(text: &str) -> Option<&str> {
    let at = ["icmp_seq=", "icmp_seq ", "icmp_req=", " seq="]
        .iter()
        .find_map(|key| Some(text.find(key)? + key.len()));
    let rest = match at {
        Some(at) => &text[at..],
        None => text.strip_prefix("seq=")?,
    };
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    (count > 0).then_some(&rest[..count])
}

/// Nanoseconds of what stands in front of an answer: `[1656622594.003106]`, or a date.
pub(super) fn instant(stamp: &str) -> Option<u64> {
    let stamp = stamp.trim_matches(|c: char| "[]():|>-,;".contains(c) || c.is_whitespace());
    let epoch = || {
        let (whole, part) = stamp.split_once('.').unwrap_or((stamp, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let seconds: u64 = whole.parse().ok().filter(|seconds| date::epoch(*seconds as f64) == Some(9))?;
        let nanos: u64 = format!("{part:0<9}").get(..9)?.parse().ok().filter(|_| is_number(part))?;
        Some(seconds * 1_000_000_000 + nanos)
    };
    epoch().or_else(|| date::nanos(stamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_many_systems_are_understood() {
        let trip = |millis| Some(Trip { millis, is_below: false });
        let answer = |from, sequence, time, stamp| {
            Some(Event::Answer { from, sequence, time, stamp, is_duplicate: false })
        };
        for (line, event) in [
            (
                "64 bytes from 192.0.2.1: icmp_seq=1 ttl=54 time=13.2 ms",
                answer("192.0.2.1", Some("1"), trip("13.2"), None),
            ),
            (
                "[1656622594.003106] 64 bytes from a.net (192.0.2.1): icmp_seq=7 ttl=54 time=9 ms",
                answer("a.net (192.0.2.1)", Some("7"), trip("9"), Some("[1656622594.003106]")),
            ),
            (
                "64 bytes from fe80::1%eth0: icmp_seq=3 ttl=64 time=0.2 ms",
                answer("fe80::1%eth0", Some("3"), trip("0.2"), None),
            ),
            (
                "64 bytes from 192.0.2.1: seq=0 ttl=57 time=11.211 ms",
                answer("192.0.2.1", Some("0"), trip("11.211"), None),
            ),
            ("8 bytes from 192.0.2.1: icmp_seq=2 ttl=57", answer("192.0.2.1", Some("2"), None, None)),
            ("Reply from 192.0.2.1: bytes=32 time=13ms TTL=54", answer("192.0.2.1", None, trip("13"), None)),
            ("Reply from 2001:db8::1: time=13ms", answer("2001:db8::1", None, trip("13"), None)),
            (
                "Reply from 192.0.2.1: bytes=32 time<1ms TTL=54",
                answer("192.0.2.1", None, Some(Trip { millis: "1", is_below: true }), None),
            ),
            ("Request timed out.", Some(Event::Missing { sequence: None })),
            ("Reply from 192.0.2.9: Destination host unreachable.", Some(Event::Missing { sequence: None })),
            ("no answer yet for icmp_seq=5", Some(Event::Missing { sequence: Some("5") })),
            ("Request timeout for icmp_seq 5", Some(Event::Missing { sequence: Some("5") })),
            (
                "From 192.0.2.9 icmp_seq=5 Destination Host Unreachable",
                Some(Event::Missing { sequence: Some("5") }),
            ),
            ("From 192.0.2.9: icmp_seq=5 Redirect Host(New nexthop: 192.0.2.8)", None),
            ("92 bytes from 192.0.2.9: Destination Host Unreachable", None),
            (
                "PING a.net (192.0.2.1) 56(84) bytes of data.",
                Some(Event::Start { target: "a.net", first: 1 }),
            ),
            ("PING a.net (192.0.2.1): 56 data bytes", Some(Event::Start { target: "a.net", first: 0 })),
            (
                "PING fe80::1(fe80::1) from fe80::2 wlan0: 56 data bytes",
                Some(Event::Start { target: "fe80::1", first: 1 }),
            ),
            (
                "PING6(56=40+8+8 bytes) fe80::2 --> fe80::1",
                Some(Event::Start { target: "fe80::1", first: 0 }),
            ),
            (
                "Pinging a.net [192.0.2.1] with 32 bytes of data:",
                Some(Event::Start { target: "a.net", first: 1 }),
            ),
            (
                "10 packets transmitted, 9 received, 10% packet loss, time 9012ms",
                Some(Event::Summary { sent: "10", millis: Some("9012") }),
            ),
            (
                "10 packets transmitted, 9 packets received, 10.0% packet loss",
                Some(Event::Summary { sent: "10", millis: None }),
            ),
            ("user@host:~$ ping -c 5 -i 0.2 a.net", Some(Event::Command { interval: Some("0.2") })),
            ("# /bin/ping -i.5 a.net", Some(Event::Command { interval: Some(".5") })),
            ("ping a.net", Some(Event::Command { interval: None })),
            ("Antwort von 192.0.2.1: Bytes=32 Zeit=13ms TTL=54", None),
            ("rtt min/avg/max/mdev = 0.284/0.583/1.175/0.418 ms", None),
            ("time_s,delay_ms", None),
        ] {
            assert_eq!(Event::of(line), event, "{line}");
        }
    }

    #[test]
    fn stamps_are_clocks_or_dates() {
        assert_eq!(instant("[1656622594.003106]"), Some(1_656_622_594_003_106_000));
        assert_eq!(instant("1970-01-01T00:00:02Z -"), Some(2_000_000_000));
        assert_eq!(instant("user@host"), None);
        assert_eq!(instant("12"), None);
    }
}
