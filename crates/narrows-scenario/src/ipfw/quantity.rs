//! Quantities with ipfw's units: rates, times, sizes and queue lengths.

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration, Rate};

use crate::dialect::{Read, Word};
use crate::problem::{Found, Problem};
use crate::units::decimal::{Decimal, Misfit};
use crate::units::{LONGEST_NANOS, MOST_BITS, MOST_PACKETS};

/// Default bound of a queue.
pub(super) const DEFAULT_BOUND: Bound = Bound::Packets(50);

/// Maximum size of a burst (as in the reference) and of a queue, in bytes.
const MOST_BYTES: u128 = (1 << 48) - 1;

/// Splits a number and its unit.
fn split<'a>(word: Word<'a>, expected: &str) -> Result<(Decimal, &'a str), Problem> {
    let mut digits = word.text.bytes();
    if digits.next() == Some(b'0') && digits.next().is_some_and(|digit| digit.is_ascii_digit()) {
        return Err(word
            .problem(format!("{} is octal in ipfw but looks decimal", Found(word.text)))
            .help("remove the leading zeros"));
    }
    match Decimal::split(word.text) {
        (Some(number), unit) => Ok((number, unit)),
        (None, _) => Err(word.expected(expected)),
    }
}

fn whole(
    word: Word<'_>,
    number: Decimal,
    factor: u128,
    counts: &str,
    most: u128,
    most_text: &str,
) -> Result<u128, Problem> {
    let found = Found(word.text);
    match number.times(factor) {
        Ok(value) if value <= most => Ok(value),
        Ok(_) | Err(Misfit::TooLarge) => {
            Err(word.problem(format!("{found} is too large")).help(format!("at most {most_text}")))
        }
        Err(Misfit::Negative) => Err(word.problem(format!("{found} is below zero"))),
        Err(Misfit::NotWhole) => Err(word.problem(format!("{found} is not a whole number of {counts}"))),
    }
}

/// `X[K|M|G][bit/s|Byte/s]`; 0 is unlimited.
pub(super) fn rate(word: Word<'_>) -> Result<Read<Rate>, Problem> {
    const BITS: [&str; 11] =
        ["bit/s", "Bit/s", "bits/s", "Bits/s", "bit", "bits", "Bit", "Bits", "b/s", "bps", "b"];
    const EXPECTED: &str = "a rate such as 3Mbit/s, 640Kbit/s or 100KByte/s; 0 is unlimited";
    if word.text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(word
            .expected(EXPECTED)
            .help("a device as the clock of a pipe exists in ipfw but not in narrows"));
    }
    let (number, unit) = split(word, EXPECTED)?;
    let (scale, rest) = match unit.chars().next() {
        Some('K' | 'k') => (1_000, &unit[1..]),
        Some('M' | 'm') => (1_000_000, &unit[1..]),
        Some('G' | 'g') => (1_000_000_000, &unit[1..]),
        _ => (1, unit),
    };
    // In ipfw, an upper-case B means bytes, unless it starts `Bit`.
    let bytes = match rest {
        _ if rest.is_empty() || BITS.contains(&rest) => 1,
        "B" | "B/s" | "Bps" | "Byte/s" | "Bytes/s" | "Byte" | "Bytes" | "byte/s" | "bytes/s" | "byte"
        | "bytes" => 8,
        // ipfw reads no more than the prefix.
        _ if rest.starts_with("bit") || rest.starts_with("Bit") => 1,
        _ => {
            let problem = word.problem(format!("{} is not a unit of a rate", Found(unit)));
            return Err(problem.help(
                "units: bit/s, Kbit/s, Mbit/s, Gbit/s (steps of 1000), Byte/s, KByte/s, MByte/s, GByte/s",
            ));
        }
    };
    let bits = whole(word, number, scale * bytes, "bits a second", MOST_BITS.into(), "1000000Gbit/s")?;
    let value = match bits {
        0 => Rate::UNLIMITED,
        bits => Rate::from_bits_per_second(bits as u64), // at most MOST_BITS
    };
    let taken_as = match (bits, unit) {
        _ if is_fraction(word.text) => {
            let whole = word.text.split('.').next().unwrap_or_default();
            let as_ipfw = match whole.trim_start_matches('0') {
                "" => "no limit".into(),
                bits => format!("{bits}bit/s"),
            };
            Some(format!("{value}; ipfw itself reads only the whole number: {as_ipfw}"))
        }
        (0, _) => Some("no limit, as in ipfw".into()),
        (_, "" | "K" | "k" | "M" | "m" | "G" | "g") => Some(format!("{value} a second")),
        _ if bytes == 8 => Some(format!("bytes: {value} a second")),
        _ if !BITS.contains(&rest) => Some(format!("{value} a second: ipfw reads no more of the unit")),
        _ => None,
    };
    Ok(Read { value, taken_as })
}

/// Whether a number has a decimal point, at which ipfw stops to read.
fn is_fraction(text: &str) -> bool {
    text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('.')
}

/// A time; milliseconds without a unit.
pub(super) fn time(word: Word<'_>) -> Result<Read<Duration>, Problem> {
    const EXPECTED: &str = "a time such as 32ms, or 32, which is in ms";
    let (number, unit) = split(word, EXPECTED)?;
    let scale = match unit {
        "" | "ms" => 1_000_000,
        "us" | "µs" | "μs" => 1_000,
        "ns" => 1,
        "s" => 1_000_000_000,
        other => {
            return Err(word
                .problem(format!("{} is not a unit of a time", Found(other)))
                .help("units: s, ms, us, ns; ms where there is none"));
        }
    };
    let nanos = whole(word, number, scale, "nanoseconds", LONGEST_NANOS.into(), "a hundred years")?;
    let value = Duration::from_nanos(nanos as u64); // at most LONGEST_NANOS
    Ok(Read { value, taken_as: (unit.is_empty() && nanos > 0).then(|| format!("in milliseconds: {value}")) })
}

/// The delay of a pipe. ipfw reads the whole number at its start, in milliseconds.
pub(super) fn delay(word: Word<'_>) -> Result<Read<Duration>, Problem> {
    let read = time(word)?;
    let digits = word.text.len() - word.text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if matches!(&word.text[digits..], "" | "ms") {
        return Ok(read);
    }
    let (value, whole) = (read.value, &word.text[..digits]);
    let whole = if whole.is_empty() { "0" } else { whole };
    Ok(Read { value, taken_as: Some(format!("{value}; ipfw itself takes only the number, {whole}ms")) })
}

/// A time that ipfw raises to its shortest, which is shorter than narrows'.
pub(super) fn positive_time(word: Word<'_>) -> Result<Read<Duration>, Problem> {
    let read = time(word)?;
    Ok(match read.value {
        Duration::ZERO => Read {
            value: Duration::from_micros(1),
            taken_as: Some("the shortest: 1us (in ipfw, 1ns)".into()),
        },
        _ => read,
    })
}

/// CoDel's interval, which narrows has from a millisecond on.
pub(super) fn interval(word: Word<'_>) -> Result<Read<Duration>, Problem> {
    let read = time(word)?;
    match read.value < Duration::from_millis(1) {
        true => Err(word.expected("an interval of 1ms or more").help("ipfw's default is 100ms")),
        false => Ok(read),
    }
}

/// Prefixes are powers of 1024.
fn binary(unit: &str) -> Option<(u128, &str)> {
    let scale = match unit.chars().next()? {
        'K' | 'k' => 1 << 10,
        'M' | 'm' => 1 << 20,
        'G' | 'g' => 1 << 30,
        _ => return None,
    };
    Some((scale, &unit[1..]))
}

fn is_bytes(unit: &str) -> bool {
    matches!(unit, "B" | "byte" | "bytes" | "Byte" | "Bytes")
}

/// A number of bytes, with prefixes as powers of 1024: `15K`.
pub(super) fn size(word: Word<'_>) -> Result<Read<Bytes>, Problem> {
    let (number, unit) = split(word, "a size such as 15000 or 15K")?;
    let (scale, rest) = binary(unit).unwrap_or((1, unit));
    if !(rest.is_empty() || is_bytes(rest)) {
        return Err(word
            .problem(format!("{} is not a unit of a size", Found(unit)))
            .help("units: B, K, M, G, in steps of 1024"));
    }
    let bytes = whole(word, number, scale, "bytes", MOST_BYTES, "281474976710655 bytes")?;
    let value = Bytes::new(bytes as u64); // at most MOST_BYTES
    Ok(Read { value, taken_as: (scale > 1 || unit.is_empty()).then(|| value.to_string()) })
}

/// A queue bound: `N` slots, `NK`, `Nbytes`.
pub(super) fn bound(word: Word<'_>) -> Result<Read<Bound>, Problem> {
    const EXPECTED: &str = "a number of slots such as 50, or of bytes such as 30Kbytes";
    let (number, unit) = split(word, EXPECTED)?;
    if matches!(unit, "" | "slots" | "sl.") {
        let slots = whole(word, number, 1, "slots", MOST_PACKETS.into(), "1000000000 slots")?;
        return match slots {
            0 => Ok(Read { value: DEFAULT_BOUND, taken_as: Some("the default: 50 packets".into()) }),
            slots => Ok(Read {
                value: Bound::Packets(slots as u64), // at most MOST_PACKETS
                taken_as: unit.is_empty().then(|| format!("a number of slots: {slots} packets")),
            }),
        };
    }
    let (scale, rest) = binary(unit).unwrap_or((1, unit));
    if scale > 1 << 10 && rest.starts_with("bit") {
        let slots = bound(word.part(&word.text[..word.text.len() - unit.len()]))?;
        let taken_as = Some(format!("{}: ipfw reads only the number, which is one of slots", slots.value));
        return Ok(Read { taken_as, ..slots });
    }
    // Of what begins with K, ipfw reads no more.
    if !(is_bytes(rest) || scale == 1 << 10 || rest.is_empty() && scale > 1) {
        return Err(word.problem(format!("{} is not a unit of a queue", Found(unit))).help(EXPECTED));
    }
    if scale > 1 << 10 {
        return Err(word
            .problem(format!("ipfw takes {} as a number of slots", Found(word.text)))
            .help("the only prefix of a queue is K, in steps of 1024: write 1024Kbytes for 1 MiB"));
    }
    let bytes = whole(word, number, scale, "bytes", 1_000_000_000_000, "1000GB")?;
    let (bytes, taken_as) = match bytes {
        0 => (16_384, Some("the default: 16384 bytes".into())),
        1..1_500 => (1_500, Some("the least: 1500 bytes".into())),
        bytes => (bytes, (scale > 1).then(|| format!("{bytes} bytes"))),
    };
    Ok(Read { value: Bound::Bytes(Bytes::new(bytes as u64)), taken_as }) // at most 10¹²
}

/// A number, where `K` multiplies by 1024.
pub(super) fn kilo(word: Word<'_>, what: &str) -> Result<u64, Problem> {
    let expected = format!("{what}, a whole number, in slots or bytes as the queue counts");
    let (number, unit) = split(word, &expected)?;
    let scale = match unit {
        "" => 1,
        "K" | "k" => 1024,
        _ => return Err(word.expected(&expected)),
    };
    whole(word, number, scale, "packets or bytes", 1_000_000_000, "1000000000").map(|value| value as u64)
}
