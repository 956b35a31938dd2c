//! Numbers as tc parses them: the meaning of a number without a unit depends on the place, and size
//! prefixes are powers of 1024.

use narrows_core::{Duration, Rate};

use crate::dialect::{Read, Word};
use crate::node::{Node, Value};
use crate::problem::{Found, Problem};
use crate::units::Share;
use crate::units::decimal::{Decimal, Misfit};

/// Units, as multiples of the smallest one.
type Units = &'static [(&'static str, u128)];

const TIMES: Units = &[
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("secs", 1_000_000_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("msecs", 1_000_000),
    ("us", 1_000),
    ("usec", 1_000),
    ("usecs", 1_000),
    ("ns", 1),
    ("nsec", 1),
    ("nsecs", 1),
];

/// In bits per second. In tc, `bps` is bytes per second.
const RATES: Units = &[
    ("bit", 1),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("tbit", 1_000_000_000_000),
    ("kibit", 1 << 10),
    ("mibit", 1 << 20),
    ("gibit", 1 << 30),
    ("tibit", 1 << 40),
    ("bps", 8),
    ("kbps", 8_000),
    ("mbps", 8_000_000),
    ("gbps", 8_000_000_000),
    ("tbps", 8_000_000_000_000),
    ("kibps", 8 << 10),
    ("mibps", 8 << 20),
    ("gibps", 8 << 30),
    ("tibps", 8 << 40),
];

/// In eighths of what is counted: `kbit` is 1024 bits. `k` is 1024, also for packets.
const SIZES: Units = &[
    ("b", 8),
    ("k", 8 << 10),
    ("kb", 8 << 10),
    ("m", 8 << 20),
    ("mb", 8 << 20),
    ("g", 8 << 30),
    ("gb", 8 << 30),
    ("kbit", 1 << 10),
    ("mbit", 1 << 20),
    ("gbit", 1 << 30),
];

/// A year: longer times are typing errors, and all computations with this limit fit in 64 bits.
const LONGEST: u128 = 365 * 24 * 3600 * 1_000_000_000;
/// 1000 Tbit/s, the maximum in a scenario.
const FASTEST: u128 = 1_000_000_000_000_000;

/// A time; nanoseconds without a unit, as for netem in current tc.
pub(crate) fn time(word: Word<'_>) -> Result<Read<Duration>, Problem> {
    let read = quantity(word, "a time", TIMES, 1, LONGEST, "a year")?;
    // At most LONGEST.
    let mut read = read.map(|nanos| Duration::from_nanos(nanos as u64));
    if read.taken_as.is_some() && read.value > Duration::ZERO {
        let micros = read.value.nanos().checked_mul(1000).map(Duration::from_nanos);
        let older = micros.map_or(String::new(), |old| format!(" (older tc: {old})"));
        read.taken_as = Some(format!("{}ns{older}", word.text));
    }
    Ok(read)
}

/// A time for qdiscs other than netem; microseconds without a unit.
pub(crate) fn time_in_micros(word: Word<'_>) -> Result<Read<Duration>, Problem> {
    let read = quantity(word, "a time", TIMES, 1000, LONGEST, "a year")?;
    let mut read = read.map(|nanos| Duration::from_nanos(nanos as u64)); // at most LONGEST
    read.taken_as = read.taken_as.map(|_| format!("{}us", word.text));
    Ok(read)
}

/// A time of `slot`; nanoseconds without a unit in all versions.
pub(crate) fn slot_time(word: Word<'_>) -> Result<Read<Duration>, Problem> {
    let mut read = time(word)?;
    read.taken_as = read.taken_as.map(|_| format!("{}ns", word.text));
    Ok(read)
}

/// A rate; bits per second without a unit.
pub(crate) fn rate(word: Word<'_>) -> Result<Read<Rate>, Problem> {
    if word.text.ends_with('%') {
        return Err(word
            .problem(format!("{} is a share of a device's speed; a link has none", Found(word.text)))
            .help("write the rate itself, such as 10mbit"));
    }
    let read = quantity(word, "a rate", RATES, 1, FASTEST, "1000tbit")?;
    let mut read = read.map(|bits| Rate::from_bits_per_second(bits as u64)); // at most FASTEST
    if read.taken_as.is_some() {
        read.taken_as = Some(format!("{}bit a second", word.text));
    } else if word.text.to_ascii_lowercase().ends_with("bps") {
        read.taken_as = Some(format!("bytes per second (tc's `bps`): {}", read.value));
    }
    Ok(read)
}

/// A number of bytes, or of packets, which tc parses the same way: `10k` is 10240.
pub(crate) fn size(word: Word<'_>, what: &str, counts: &str) -> Result<Read<u32>, Problem> {
    let read = quantity(word, what, SIZES, 8, 8 * u128::from(u32::MAX), "4294967295")?;
    let mut read = read.map(|eighths| (eighths / 8) as u32); // at most u32::MAX
    read.taken_as = Some(format!("{} {counts}", read.value)).filter(|words| *words != word.text);
    Ok(read)
}

/// A probability in percent, with or without the percent sign.
pub(crate) fn percent(word: Word<'_>) -> Result<Read<Share>, Problem> {
    let number = word.text.strip_suffix('%').unwrap_or(word.text);
    let text = match Decimal::split(number) {
        (Some(_), "") => format!("{number}%"),
        _ => {
            return Err(word
                .problem(format!("{} is not a percentage", Found(word.text)))
                .help("write it like 1% or 0.1%, from 0% to 100%"));
        }
    };
    let node = Node { span: word.span(), value: Value::String(text.clone()) };
    let value = Share::read(&node)?;
    let taken_as = (number == word.text && !value.is_zero()).then(|| text.clone());
    Ok(Read { value, taken_as })
}

/// A whole number: decimal, hexadecimal with `0x`, or octal with a leading zero as in C.
pub(crate) fn integer(word: Word<'_>, what: &str, low: i64, high: i64) -> Result<i64, Problem> {
    let (negative, digits) = match word.text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word.text),
    };
    let parsed = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16),
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8),
        None => digits.parse(),
    };
    let value = parsed.ok().map(|value| if negative { -value } else { value });
    value.filter(|value| (low..=high).contains(value)).ok_or_else(|| {
        word.problem(format!("found {}, expected {what}", Found(word.text)))
            .help(format!("a whole number from {low} to {high}"))
    })
}

fn quantity(
    word: Word<'_>,
    what: &str,
    units: Units,
    bare: u128,
    most: u128,
    most_text: &str,
) -> Result<Read<u128>, Problem> {
    let help = || {
        let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        format!("units of {what}: {}", names.join(", "))
    };
    let (Some(number), unit) = Decimal::split(word.text) else {
        return Err(word.problem(format!("{} is not {what}", Found(word.text))).help(help()));
    };
    let factor = match units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        Some((_, factor)) => *factor,
        None if unit.is_empty() => bare,
        None => {
            let problem = word.problem(format!("{} is not a unit of {what}", Found(unit)));
            return Err(problem.did_you_mean(unit, units.iter().map(|(name, _)| *name)).help(help()));
        }
    };
    let value = match number.times_rounded_down(factor) {
        Ok(value) if value <= most => value,
        Err(Misfit::Negative) => {
            return Err(word.problem(format!("{} is below zero", Found(word.text))));
        }
        _ => {
            return Err(word
                .problem(format!("{} is too large for {what}", Found(word.text)))
                .help(format!("at most {most_text}")));
        }
    };
    Ok(Read { value, taken_as: unit.is_empty().then(|| word.text.into()) })
}
