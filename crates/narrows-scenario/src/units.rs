//! Numbers with units, as exact decimals.
//!
//! No floating point is involved: `1.1ms` is 1,100,000 ns and `0.01` is exactly one hundredth. A value that
//! is not a whole number of the smallest unit (a nanosecond, a bit per second, a byte) is an error; it is
//! not rounded.

pub(crate) mod decimal;

use std::ops::RangeInclusive;

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration, Probability, Rate};

use crate::node::{Node, Value};
use crate::problem::{Found, Problem, nearest};
use decimal::{Decimal, Misfit};

/// Maximum duration, a hundred years: sums of several fit within the 584 years of 64-bit nanoseconds.
const LONGEST: u128 = LONGEST_NANOS as u128;
/// Same in 64 bits.
pub(crate) const LONGEST_NANOS: u64 = 100 * 365 * 24 * 3600 * 1_000_000_000;

/// Maximum rate in bits per second.
pub(crate) const MOST_BITS: u64 = 1_000_000_000_000_000;

/// Maximum number of packets; more than any memory holds.
pub(crate) const MOST_PACKETS: u64 = 1_000_000_000;

/// A kind of number with a unit.
struct Kind {
    /// Its name with its article.
    what: &'static str,
    /// Names and factors of the units. Errors show the first few.
    units: &'static [(&'static str, u128)],
    shown: &'static str,
    example: &'static str,
    /// What is counted, for the error about a number that is not whole.
    counts: &'static str,
    most: u128,
    most_text: &'static str,
    ignore_case: bool,
    /// Why a spelling that looks like a unit is rejected.
    refuse: fn(&str) -> Option<&'static str>,
}

const RATE: Kind = Kind {
    what: "a rate",
    units: &[
        ("bit", 1),
        ("kbit", 1_000),
        ("mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("tbit", 1_000_000_000_000),
        ("kibit", 1 << 10),
        ("mibit", 1 << 20),
        ("gibit", 1 << 30),
        ("tibit", 1 << 40),
    ],
    shown: "bit, kbit, mbit, gbit, tbit (steps of 1000), kibit, mibit, gibit, tibit (steps of 1024), each a second",
    example: "\"10mbit\", \"unlimited\" or \"down\"",
    counts: "bits a second",
    most: MOST_BITS as u128,
    most_text: "1000tbit",
    ignore_case: true,
    refuse: |unit| {
        let unit = unit.to_lowercase();
        if unit.ends_with("bps") || unit.ends_with("b/s") {
            Some("`bps` is bytes per second in tc and bits per second elsewhere: use bits")
        } else if unit.ends_with("/s") || unit.ends_with("ps") {
            Some("rates are per second; the unit omits it")
        } else if unit.ends_with('b') {
            Some("ambiguous: rates are in bits")
        } else {
            None
        }
    },
};

const TIME: Kind = Kind {
    what: "a time",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("µs", 1_000),
        ("μs", 1_000),
    ],
    shown: "ns, us, ms, s, min, h",
    example: "\"10ms\"",
    counts: "nanoseconds",
    most: LONGEST,
    most_text: "876000h",
    ignore_case: false,
    refuse: |unit| (unit == "m").then_some("`m` could be minutes or milliseconds: write `min` or `ms`"),
};

/// Durations with picosecond resolution: the cost of one more byte.
const FINE_TIME: Kind = Kind {
    units: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("ms", 1_000_000_000),
        ("µs", 1_000_000),
        ("μs", 1_000_000),
    ],
    shown: "ps, ns, us, ms",
    example: "\"8ns\" or \"0.8ns\"",
    counts: "picoseconds",
    // A packet of 64 KiB then takes a minute.
    most: 1_000_000_000,
    most_text: "1ms",
    ..TIME
};

const SIZE: Kind = Kind {
    what: "a size",
    units: &[
        ("bytes", 1),
        ("byte", 1),
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    shown: "bytes, B, kB, MB, GB (steps of 1000), KiB, MiB, GiB (steps of 1024)",
    example: "\"64kB\"",
    counts: "bytes",
    most: 1_000_000_000_000,
    most_text: "1000GB",
    ignore_case: false,
    refuse: |unit| match unit {
        "b" => Some("`b` could be bits or bytes: write `B` or `bytes`"),
        "kb" | "KB" | "Kb" | "mb" | "Mb" | "gb" | "Gb" | "k" | "K" | "M" => {
            Some("ambiguous: use `kB`, `MB` (1000) or `KiB`, `MiB` (1024)")
        }
        _ => None,
    },
};

/// A rate, such as `1.5mbit`, `unlimited` or `down`.
pub(crate) fn rate(node: &Node) -> Result<Rate, Problem> {
    match &node.value {
        Value::String(text) if text.trim() == "unlimited" => Ok(Rate::UNLIMITED),
        Value::String(text) if text.trim() == "down" => Ok(Rate::DOWN),
        _ => {
            // At most 10¹⁵.
            quantity(node, &RATE).map(|bits| Rate::from_bits_per_second(bits as u64))
        }
    }
}

/// A finite rate above zero, such as `1.5mbit`.
pub(crate) fn finite_rate(node: &Node) -> Result<Rate, Problem> {
    match &node.value {
        Value::String(text) if matches!(text.trim(), "unlimited" | "down") => Err(node.expected(FINITE_RATE)),
        _ => match quantity(node, &Kind { example: "\"10mbit\"", ..RATE })? {
            0 => Err(node.expected(FINITE_RATE)),
            bits => Ok(Rate::from_bits_per_second(bits as u64)),
        },
    }
}

const FINITE_RATE: &str = "a rate above zero, such as \"1mbit\"";

/// A duration, such as `10ms`.
pub(crate) fn time(node: &Node) -> Result<Duration, Problem> {
    // At most `LONGEST`, which is below 2⁶².
    quantity(node, &TIME).map(|nanos| Duration::from_nanos(nanos as u64))
}

/// A positive or negative duration in nanoseconds, such as `-2ms`.
pub(crate) fn signed_time(node: &Node) -> Result<i64, Problem> {
    let backwards = match &node.value {
        Value::String(text) => text.trim().strip_prefix('-'),
        _ => None,
    };
    let Some(rest) = backwards else { return time(node).map(|span| span.nanos() as i64) };
    let span = time(&Node { span: node.span.clone(), value: Value::String(rest.trim().into()) })?;
    Ok(-(span.nanos() as i64))
}

/// Same, as written in a file.
pub(crate) fn signed_time_text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    format!("{sign}{}", Duration::from_nanos(nanos.unsigned_abs()))
}

/// Picoseconds per byte, such as `0.8ns`.
pub(crate) fn picoseconds(node: &Node) -> Result<u64, Problem> {
    // At most 10⁹.
    quantity(node, &FINE_TIME).map(|picoseconds| picoseconds as u64)
}

/// Same, as written in a file.
pub(crate) fn picoseconds_text(picoseconds: u64) -> String {
    let (whole, part) = (picoseconds / 1000, picoseconds % 1000);
    match part {
        0 => format!("{whole}ns"),
        _ => format!("{whole}.{}ns", format!("{part:03}").trim_end_matches('0')),
    }
}

/// A duration above zero.
pub(crate) fn positive_time(node: &Node) -> Result<Duration, Problem> {
    match time(node)? {
        Duration::ZERO => Err(node.expected("a time above zero")),
        time => Ok(time),
    }
}

/// A duration in an inclusive range.
pub(crate) fn time_between(node: &Node, low: Duration, high: Duration) -> Result<Duration, Problem> {
    match time(node)? {
        time if time < low || time > high => Err(node.expected(&format!("a time from {low} to {high}"))),
        time => Ok(time),
    }
}

/// The length of an IP packet, such as `1500 bytes`.
pub(crate) fn packet_size(node: &Node) -> Result<Bytes, Problem> {
    match size(node)? {
        size if (1..65_536).contains(&size.get()) => Ok(size),
        _ => Err(node.expected("the length of a packet, from 1 to 65535 bytes")),
    }
}

/// A number of bytes, such as `64kB`.
pub(crate) fn size(node: &Node) -> Result<Bytes, Problem> {
    // At most 10¹².
    quantity(node, &SIZE).map(|bytes| Bytes::new(bytes as u64))
}

/// A number of packets, such as `13 packets`, above zero.
pub(crate) fn packets(node: &Node) -> Result<u64, Problem> {
    const HELP: &str = "write it like \"100 packets\"";
    match bound(node) {
        Ok(Bound::Packets(packets)) => Ok(packets),
        Err(problem) if node.text("").is_ok_and(|text| text.contains("packet")) => Err(problem),
        _ => Err(node.expected("a number of packets").help(HELP)),
    }
}

/// A number of packets or bytes, above zero.
pub(crate) fn bound(node: &Node) -> Result<Bound, Problem> {
    const HELP: &str = "write it like \"13 packets\" or \"64kB\"";
    let text = node.text("a number of packets or bytes").map_err(|p| p.help(HELP))?;
    let (number, unit) = Decimal::split(text);
    let bound = match unit {
        "packet" | "packets" => {
            let number = number.ok_or_else(|| node.expected("a number of packets").help(HELP))?;
            let whole =
                number.times(1).map_err(|misfit| misfit_problem(node, misfit, "packets").help(HELP))?;
            Bound::Packets(u64::try_from(whole).ok().filter(|n| *n <= MOST_PACKETS).ok_or_else(|| {
                Problem::new(format!("{} are too many packets", node.found()))
                    .at(&node.span)
                    .help(format!("at most {MOST_PACKETS} packets"))
            })?)
        }
        "" if number.is_some() => {
            return Err(Problem::new(format!("{} has no unit", node.found())).at(&node.span).help(HELP));
        }
        unit if nearest(unit, ["packets"]).is_some() => {
            return Err(Problem::new(format!("unknown unit {}", Found(unit)))
                .at(&node.span)
                .help("did you mean `packets`?"));
        }
        _ => Bound::Bytes(size(node).map_err(|p| p.help("or a number of packets, like \"13 packets\""))?),
    };
    // Every packet passes through the queue, even if for no time. A queue without room would drop all.
    match bound {
        Bound::Packets(0) => Err(node.expected("one packet or more")),
        Bound::Bytes(bytes) if bytes.get() == 0 => Err(node.expected("one byte or more")),
        bound => Ok(bound),
    }
}

/// A share from 0 to 1, kept as the decimal that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    /// The share in units of 10⁻¹⁹.
    parts: u64,
}

impl Share {
    /// 10¹⁹ fits in 64 bits.
    const ONE: u64 = 10_000_000_000_000_000_000;
    /// Zero.
    pub const ZERO: Self = Self { parts: 0 };
    /// One.
    pub const ALWAYS: Self = Self { parts: Self::ONE };

    /// Whether it is exactly zero.
    pub const fn is_zero(self) -> bool {
        self.parts == 0
    }

    /// One minus this share.
    pub(crate) const fn complement(self) -> Self {
        Self { parts: Self::ONE - self.parts }
    }

    /// The engine's type for it.
    pub fn probability(self) -> Probability {
        Probability::from_ratio(self.parts, Self::ONE).expect("a share is at most one")
    }

    /// The decimal with the fewest digits that the engine maps to this probability.
    pub(crate) fn shortest(probability: Probability) -> Self {
        // At most 2⁶³ · 10¹⁹ before the division, and 10¹⁹ after it.
        let exact = (u128::from(probability.raw()) * u128::from(Self::ONE) + (1 << 62)) >> 63;
        let rounded = |digits: u32| {
            let unit = 10_u128.pow(19 - digits);
            Self { parts: ((exact + unit / 2) / unit * unit) as u64 }
        };
        // 10⁻¹⁹ is finer than 2⁻⁶³: with all its digits, the decimal maps to that probability.
        (0..19).map(rounded).find(|share| share.probability() == probability).unwrap_or(rounded(19))
    }

    /// As a floating-point number, for display and closed forms.
    pub fn as_f64(self) -> f64 {
        self.probability().as_f64()
    }

    /// Reads one share of a group, where a bare 1 can only mean always.
    pub(crate) fn read_of_several(node: &Node) -> Result<Self, Problem> {
        match &node.value {
            Value::Integer(text) | Value::Float(text) | Value::String(text) if text.trim() == "1" => {
                Ok(Self::ALWAYS)
            }
            _ => Self::read(node),
        }
    }

    /// Reads `1%`, `0.01` or `1e-2`.
    pub(crate) fn read(node: &Node) -> Result<Self, Problem> {
        const HELP: &str = "write it like \"1%\" or 0.01";
        let (text, bare) = match &node.value {
            Value::String(text) => (text.as_str(), false),
            Value::Float(text) => (text.as_str(), false),
            Value::Integer(text) => (text.as_str(), true),
            _ => return Err(node.expected("a probability").help(HELP)),
        };
        let (number, unit) = Decimal::split(text);
        let number = number.ok_or_else(|| node.expected("a probability").help(HELP))?;
        let scale = match unit {
            "%" => Self::ONE / 100,
            "" => Self::ONE,
            _ => {
                return Err(Problem::new(format!("{} is not a probability", node.found()))
                    .at(&node.span)
                    .help(HELP));
            }
        };
        // A bare 1 is ambiguous: one percent, or always.
        if unit.is_empty() && (bare || !text.contains(['.', 'e', 'E'])) && number.is_one() {
            return Err(Problem::new(format!("{} is ambiguous: 1% or 100%", node.found()))
                .at(&node.span)
                .help("write \"1%\" or \"100%\""));
        }
        match number.times(u128::from(scale)) {
            Ok(parts) if parts <= u128::from(Self::ONE) => Ok(Self { parts: parts as u64 }),
            Err(Misfit::Negative) => Err(Problem::new(format!("{} is below zero", node.found()))
                .at(&node.span)
                .help("a probability is from 0% to 100%")),
            Err(Misfit::NotWhole) => Err(Problem::new(format!("{} has too many digits", node.found()))
                .at(&node.span)
                .help("a probability may have 19 digits after the point, 17 in percent")),
            Ok(_) | Err(Misfit::TooLarge) => {
                let problem = Problem::new(format!(
                    "{} is more than {}",
                    node.found(),
                    if unit == "%" { "100%" } else { "1" }
                ))
                .at(&node.span)
                .help("a probability is from 0% to 100%");
                Err(if unit.is_empty() {
                    problem.help(format!("did you mean \"{}%\"?", text.trim()))
                } else {
                    problem
                })
            }
        }
    }
}

/// Exact, in percent: `1%`, `0.05%`.
impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const PERCENT: u64 = Share::ONE / 100;
        let (whole, part) = (self.parts / PERCENT, self.parts % PERCENT);
        if part == 0 {
            return f.pad(&format!("{whole}%"));
        }
        let digits = format!("{part:017}");
        f.pad(&format!("{whole}.{}%", digits.trim_end_matches('0')))
    }
}

/// A plain number from 0 to a billion, kept as the decimal that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number {
    billionths: u64,
}

impl Number {
    const ONE: u64 = 1_000_000_000;

    /// The nearest floating-point number, for numbers below nine million.
    pub fn as_f64(self) -> f64 {
        self.billionths as f64 / Self::ONE as f64
    }

    /// Reads `1.25` or `3`.
    pub(crate) fn read(node: &Node) -> Result<Self, Problem> {
        const ALLOWED: &str = "a plain number from 0 to 1000000000, with at most 9 digits after the point";
        let text = match &node.value {
            Value::String(text) | Value::Float(text) | Value::Integer(text) => text.as_str(),
            _ => "",
        };
        let (Some(number), "") = Decimal::split(text) else { return Err(node.expected(ALLOWED)) };
        match number.times(u128::from(Self::ONE)) {
            Ok(parts) if parts <= u128::from(Self::ONE) * u128::from(Self::ONE) => {
                Ok(Self { billionths: parts as u64 })
            }
            _ => Err(node.expected(ALLOWED)),
        }
    }

    /// Reads a number in a range.
    pub(crate) fn within(node: &Node, range: RangeInclusive<f64>) -> Result<Self, Problem> {
        match Self::read(node)? {
            number if range.contains(&number.as_f64()) => Ok(number),
            _ => Err(node.expected(&format!("a number from {} to {}", range.start(), range.end()))),
        }
    }
}

/// Exact: `1.25`, `3`.
impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, part) = (self.billionths / Self::ONE, self.billionths % Self::ONE);
        match part {
            0 => f.pad(&whole.to_string()),
            _ => f.pad(&format!("{whole}.{}", format!("{part:09}").trim_end_matches('0'))),
        }
    }
}

fn quantity(node: &Node, kind: &Kind) -> Result<u128, Problem> {
    let help = || format!("write {} like {}; units: {}", kind.what, kind.example, kind.shown);
    let text = match &node.value {
        Value::String(text) => text,
        Value::Integer(_) | Value::Float(_) => {
            return Err(Problem::new(format!("{} has no unit", node.found())).at(&node.span).help(help()));
        }
        _ => return Err(node.expected(kind.what).help(help())),
    };
    let (number, unit) = Decimal::split(text);
    let Some(number) = number else {
        return Err(node.expected(kind.what).help(help()));
    };
    if unit.is_empty() {
        return Err(Problem::new(format!("{} has no unit", node.found())).at(&node.span).help(help()));
    }
    let same = |name: &str| if kind.ignore_case { name.eq_ignore_ascii_case(unit) } else { name == unit };
    let Some((_, factor)) = kind.units.iter().find(|(name, _)| same(name)) else {
        let problem = Problem::new(format!("{} is not a unit of {}", Found(unit), kind.what)).at(&node.span);
        let problem = match ((kind.refuse)(unit), nearest(unit, kind.units.iter().map(|(name, _)| *name))) {
            (Some(why), _) => problem.help(why),
            (None, Some(name)) => problem.help(format!("did you mean `{name}`?")),
            (None, None) => problem,
        };
        return Err(problem.help(help()));
    };
    match number.times(*factor) {
        Ok(value) if value <= kind.most => Ok(value),
        Ok(_) | Err(Misfit::TooLarge) => {
            Err(Problem::new(format!("{} is too large for {}", node.found(), kind.what))
                .at(&node.span)
                .help(format!("at most {}", kind.most_text)))
        }
        Err(misfit) => Err(misfit_problem(node, misfit, kind.counts)),
    }
}

fn misfit_problem(node: &Node, misfit: Misfit, counts: &str) -> Problem {
    let found = node.found();
    Problem::new(match misfit {
        Misfit::Negative => format!("{found} is below zero"),
        Misfit::NotWhole => format!("{found} is not a whole number of {counts}"),
        Misfit::TooLarge => format!("{found} is too large"),
    })
    .at(&node.span)
}

#[cfg(test)]
mod tests;
