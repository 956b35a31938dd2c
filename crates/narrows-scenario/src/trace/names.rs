//! What the name of a column says about it: `throughput_mbps`, `linkDownKbps`, `at_ms`, `Loss (%)`.
//!
//! A name is split into words at capitals and at all that is neither letter nor digit. Only what cannot be meant
//! otherwise counts: a loss rate may be a share or percent, and `MBps` may be bytes. Names that well-known tools give
//! their columns are listed ([`KNOWN`]).

use super::columns::{RateUnit, ShareUnit, TimeUnit};

/// What a column holds, with its unit if the name has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Time(Option<TimeUnit>),
    Rate(Option<RateUnit>),
    /// A one-way delay.
    Delay(Option<TimeUnit>),
    /// `is_sure` unless it may be a one-way delay, too, as a latency.
    RoundTrip {
        unit: Option<TimeUnit>,
        is_sure: bool,
    },
    Loss(Option<ShareUnit>),
    /// Something of a path that is no column of a trace by itself.
    Near(&'static str),
    Other,
}

const TIME: &[&str] = &["time", "timestamp", "ts", "t", "elapsed", "date", "datetime", "clock", "epoch"];
const RATE: &[&str] =
    &["throughput", "bandwidth", "rate", "bitrate", "capacity", "goodput", "tput", "bw", "thrpt", "speed"];
const SECONDS: &[(&str, i32)] = &[
    ("s", 9),
    ("sec", 9),
    ("secs", 9),
    ("second", 9),
    ("seconds", 9),
    ("ms", 6),
    ("msec", 6),
    ("millis", 6),
    ("milliseconds", 6),
    ("us", 3),
    ("usec", 3),
    ("micros", 3),
    ("microseconds", 3),
    ("ns", 0),
    ("nsec", 0),
    ("nanos", 0),
    ("nanoseconds", 0),
];

/// Columns of tshark (`-T fields`) and of argus' `ra`.
const KNOWN: &[(&str, Meaning)] = &[
    ("frame.time_epoch", Meaning::Time(SECOND)),
    ("frame.time_relative", Meaning::Time(SECOND)),
    ("tcp.analysis.ack_rtt", Meaning::RoundTrip { unit: SECOND, is_sure: true }),
    ("tcp.analysis.initial_rtt", Meaning::RoundTrip { unit: SECOND, is_sure: true }),
    ("icmp.resptime", Meaning::RoundTrip { unit: Some(TimeUnit::Number(6)), is_sure: true }),
    ("TcpRtt", Meaning::RoundTrip { unit: SECOND, is_sure: true }),
];
const SECOND: Option<TimeUnit> = Some(TimeUnit::Number(9));

/// What a name says.
pub(super) fn meaning(name: &str) -> Meaning {
    if let Some((_, means)) = KNOWN.iter().find(|(known, _)| *known == name) {
        return *means;
    }
    let words = words(name);
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    if has(&["jitter", "variation", "variance", "var", "std", "stddev", "mdev", "deviation"]) {
        return Meaning::Near("jitter");
    }
    let unit = seconds(&words);
    if has(&["rtt", "ping", "roundtrip"]) || has(&["round"]) && has(&["trip"]) {
        return Meaning::RoundTrip { unit, is_sure: true };
    }
    // Alone it may be a latitude.
    if has(&["latency"]) || has(&["lat"]) && unit.is_some() {
        return Meaning::RoundTrip { unit, is_sure: false };
    }
    if has(&["loss", "lost", "plr"]) {
        return match loss(name, &words) {
            Some(unit) => Meaning::Loss(Some(unit)),
            None if has(&["packets", "pkts", "bytes", "count"]) => Meaning::Other,
            None => Meaning::Loss(None),
        };
    }
    if has(&["delay", "owd"]) {
        return Meaning::Delay(seconds(&words));
    }
    if has(&["frame", "sample", "refresh", "error", "symbol", "heart"]) {
        return Meaning::Other;
    }
    let unit = rate(name, &words);
    if unit.is_some() || has(&RATE[..RATE.len() - 1]) {
        return Meaning::Rate(unit);
    }
    let is_unit = words.len() == 1 && name.len() > 1 && seconds(&words).is_some();
    let first = words.first().map(String::as_str);
    if has(TIME) || is_unit || first == Some("at") && seconds(&words).is_some() {
        return Meaning::Time(seconds(&words));
    }
    Meaning::Other
}

/// How much the name of a time says that it is the clock of the rows: less is more. A row counts from its start on.
pub(super) fn clock_rank(name: &str) -> usize {
    let words = words(name);
    let all = |known: &[&str]| {
        let is_unit = |word: &str| SECONDS.iter().any(|(unit, _)| *unit == word);
        words
            .iter()
            .all(|word| TIME.contains(&word.as_str()) || known.contains(&word.as_str()) || is_unit(word))
    };
    match () {
        () if KNOWN.iter().any(|(known, _)| *known == name) || all(&["at", "unix", "utc", "local"]) => 0,
        () if all(&["start", "begin", "started"]) => 1,
        () => 2,
    }
}

/// Whether the name says that its column tells what was measured: `target`, `DstAddr`.
pub(super) fn is_subject(name: &str) -> bool {
    const SUBJECT: &[&str] = &[
        "target",
        "host",
        "hostname",
        "destination",
        "dst",
        "server",
        "url",
        "address",
        "addr",
        "ip",
        "endpoint",
        "peer",
        "interface",
        "iface",
        "daddr",
    ];
    words(name).iter().any(|word| SUBJECT.contains(&word.as_str()))
}

/// Whether a name says that its column has no quantity of a path: `Server ID`, `lat`, `dport`.
pub(super) fn is_label(name: &str) -> bool {
    const LABEL: &[&str] = &[
        "id",
        "no",
        "nr",
        "num",
        "number",
        "index",
        "idx",
        "port",
        "sport",
        "dport",
        "hop",
        "hops",
        "seq",
        "lat",
        "lon",
        "lng",
        "latitude",
        "longitude",
        "altitude",
        "distance",
        "cell",
        "pid",
        "run",
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "ttl",
        "version",
    ];
    let words = words(name);
    words.is_empty() || words.iter().any(|word| LABEL.contains(&word.as_str()))
}

/// Whether a name has a direction, as columns of rates have: `downlink`, `tx`.
pub(super) fn is_direction(name: &str) -> bool {
    const DIRECTION: &[&str] =
        &["download", "upload", "downlink", "uplink", "down", "up", "dl", "ul", "in", "out", "rx", "tx"];
    words(name).iter().any(|word| DIRECTION.contains(&word.as_str()))
}

/// The words of a name in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || was_small && letter.is_uppercase() {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().expect("there is one").extend(letter.to_lowercase());
        }
        was_small = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The power of ten of the unit of a time that a name has, in nanoseconds: that of a tool, or that it ends with.
pub(super) fn time_power(name: &str) -> Option<i32> {
    let known = KNOWN.iter().find(|(known, _)| *known == name).and_then(|(_, means)| match means {
        Meaning::Time(unit) | Meaning::RoundTrip { unit, .. } => *unit,
        _ => None,
    });
    match known.or_else(|| seconds(&words(name)))? {
        TimeUnit::Number(power) => Some(power),
        TimeUnit::Date | TimeUnit::TimeOfDay => None,
    }
}

/// The unit of a time: its last word.
fn seconds(words: &[String]) -> Option<TimeUnit> {
    let last = words.last()?;
    SECONDS.iter().find(|(unit, _)| unit == last).map(|(_, power)| TimeUnit::Number(*power))
}

/// The unit of a rate: `mbps`, `kbit`, `bits_per_second`, `Mbit/s`.
fn rate(name: &str, words: &[String]) -> Option<RateUnit> {
    if name.contains("Bps") || name.contains("B/s") {
        return None;
    }
    let is_rate = words.iter().any(|word| RATE.contains(&word.as_str()));
    let found = words.iter().enumerate().find_map(|(at, word)| {
        let next = |ahead: usize| words.get(at + ahead).map_or("", String::as_str);
        let is_second = |word: &str| ["s", "sec", "second"].contains(&word);
        let per = is_second(next(1)) || next(1) == "per" && is_second(next(2));
        let singular = word.strip_suffix('s').filter(|word| word.ends_with("bit") || word.ends_with("byte"));
        let word = match singular {
            // `rate_mbits` may be a slip; `bits` alone counts them.
            Some(singular) => Some(singular).filter(|_| per)?,
            None => word.as_str(),
        };
        let power = |rest: &str, of: &str| {
            let power = match rest.strip_suffix(of)? {
                "" => 0,
                "k" | "kilo" => 3,
                "m" | "mega" => 6,
                "g" | "giga" => 9,
                _ => return None,
            };
            Some(power)
        };
        // Without a word of time it may be a volume. Small letters are bits: `Mb/s`.
        let bits = power(word, "bps")
            .or_else(|| power(word, "bit").filter(|power| per || *power > 0 && is_rate))
            .or_else(|| power(word, "b").filter(|_| per && name.contains("b/s")));
        let bytes = power(word, "byte").filter(|power| *power < 9 && per);
        let unit = |bytes| move |power| RateUnit { power, bytes };
        bits.map(unit(false)).or_else(|| bytes.map(unit(true)))
    });
    found.or_else(|| {
        let last = words.last()?;
        (is_rate && last == "bit").then_some(RateUnit::BIT)
    })
}

/// The unit of a loss. `loss` alone is that of narrows' own tables.
fn loss(name: &str, words: &[String]) -> Option<ShareUnit> {
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    if name.contains('%') || has(&["pct", "percent", "percentage"]) {
        return Some(ShareUnit::Percent);
    }
    let is_share = words == ["loss"] || has(&["ratio", "fraction", "share", "probability", "prob"]);
    is_share.then_some(ShareUnit::Share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_mean_or_nothing() {
        let time = |power| Meaning::Time(Some(TimeUnit::Number(power)));
        let rate = |power| Meaning::Rate(Some(RateUnit { power, bytes: false }));
        let delay = |power| Meaning::Delay(Some(TimeUnit::Number(power)));
        let round_trip = |power, is_sure| Meaning::RoundTrip { unit: Some(TimeUnit::Number(power)), is_sure };
        for (name, means) in [
            ("at_ms", time(6)),
            ("timestamp_ms", time(6)),
            ("Time (s)", time(9)),
            ("seconds", time(9)),
            ("elapsed_ns", time(0)),
            ("timestamp", Meaning::Time(None)),
            ("at", Meaning::Other),
            ("sat_ms", Meaning::Other),
            ("uptime", Meaning::Other),
            ("throughput_mbps", rate(6)),
            ("bandwidth_kbps", rate(3)),
            ("rate_kbit", rate(3)),
            ("rate_bit", rate(0)),
            ("linkDownKbps", rate(3)),
            ("mobileRx_diff_Mbps", rate(6)),
            ("Throughput (Mbit/s)", rate(6)),
            ("bits_per_second", rate(0)),
            ("rate_byte_per_s", Meaning::Rate(Some(RateUnit::BYTE))),
            ("THROUGHPUT_GBPS", rate(9)),
            ("throughput", Meaning::Rate(None)),
            ("DL_bitrate", Meaning::Rate(None)),
            ("rate_mbits", Meaning::Rate(None)),
            ("throughput_MBps", Meaning::Rate(None)),
            ("speed", Meaning::Other),
            ("frame_rate", Meaning::Other),
            ("bytes", Meaning::Other),
            ("bits", Meaning::Other),
            ("delay_ms", delay(6)),
            ("owd_us", delay(3)),
            ("delay", Meaning::Delay(None)),
            ("rate [kbit/s]", rate(3)),
            ("Bandwidth (Mb/s)", rate(6)),
            ("Bandwidth (MB/s)", Meaning::Rate(None)),
            ("Bandwidth (MB/S)", Meaning::Rate(None)),
            ("delay_us", delay(3)),
            ("rtt_ms", round_trip(6, true)),
            ("route.latencyMs", round_trip(6, false)),
            ("latency(ms)", round_trip(6, false)),
            ("Ping", Meaning::RoundTrip { unit: None, is_sure: true }),
            ("tcp.analysis.ack_rtt", round_trip(9, true)),
            ("lat", Meaning::Other),
            ("lat_ms", round_trip(6, false)),
            ("rtt_mdev_ms", Meaning::Near("jitter")),
            ("jitter_ms", Meaning::Near("jitter")),
            ("delay_variation_ms", Meaning::Near("jitter")),
            ("total_mbit", Meaning::Other),
            ("mbit_per_min", Meaning::Other),
            ("loss", Meaning::Loss(Some(ShareUnit::Share))),
            ("loss_pct", Meaning::Loss(Some(ShareUnit::Percent))),
            ("Packet loss (%)", Meaning::Loss(Some(ShareUnit::Percent))),
            ("loss_ratio", Meaning::Loss(Some(ShareUnit::Share))),
            ("loss_rate", Meaning::Loss(None)),
            ("lost_packets", Meaning::Other),
            ("note", Meaning::Other),
            ("", Meaning::Other),
        ] {
            assert_eq!(meaning(name), means, "{name}");
        }
    }
}
