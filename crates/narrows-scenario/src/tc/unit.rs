//! Arguments of tc options, except netem's: times without a unit are microseconds, and size prefixes are
//! powers of 1024.

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration, Rate};

use crate::dialect::{self, Read, Unit, Word, Words, shown_as_is};
use crate::keys::kind::text;
use crate::netem::units;
use crate::node::{Node, Table, Value, suggest};
use crate::problem::{Found, Problem, one_of};
use crate::units as scenario;

/// A frame of the default MTU: the default quantum.
pub(super) const FRAME: Bytes = Bytes::new(1514);

/// A time, printed with its unit.
pub(super) const TIME: Unit =
    Unit { what: "a time", read: |word, _| Ok(units::time_in_micros(word)?.map(text)), show: shown_as_is };

/// A time, printed as a number of microseconds without a unit if whole.
pub(super) const MICROS: Unit = Unit {
    show: |node| {
        let time = scenario::time(node).ok()?;
        Some(match time.nanos() % 1000 {
            0 => (time.nanos() / 1000).to_string(),
            _ => format!("{}ns", time.nanos()),
        })
    },
    ..TIME
};

/// A rate above zero.
pub(super) const RATE: Unit = Unit {
    what: "a rate",
    read: |word, _| match units::rate(word)? {
        read if read.value.bits_per_second() == 0 => Err(word.problem("a rate of zero passes nothing")),
        read => Ok(read.map(text)),
    },
    show: |node| Some(rate_letters(scenario::rate(node).ok()?)),
};

/// A rate, or zero.
pub(super) const SLOPE: Unit = Unit {
    read: |word, _| {
        let read = units::rate(word)?;
        Ok(read.map(|rate| if rate == Rate::DOWN { text("0bit") } else { text(rate) }))
    },
    ..RATE
};

/// A weight written as a rate: the weight is its bytes per second.
pub(super) const WEIGHT: Unit = Unit {
    read: |word, _| {
        let bytes = units::rate(word)?.value.bits_per_second() / 8;
        match bytes {
            0 => Err(word.problem("a rate of zero passes nothing")),
            _ => Ok(Read::plain(dialect::number(bytes.min(u32::MAX.into())))),
        }
    },
    show: |node| Some(format!("{}bit", shown_as_is(node)?.parse::<u64>().ok()? * 8)),
    ..RATE
};

/// A size, optionally with a cell size after a slash as in `burst 5kb/8`, which is ignored.
pub(super) const SIZE: Unit = Unit {
    what: "a size",
    read: |mut word, _| {
        word.text = word.text.split_once('/').map_or(word.text, |(size, _)| size);
        Ok(units::size(word, "a size", "bytes")?.map(|bytes| text(Bytes::new(bytes.into()))))
    },
    show: |node| Some(size_letters(scenario::size(node).ok()?)),
};

/// A size, printed as a number of bytes without a unit.
pub(super) const BYTES: Unit =
    Unit { show: |node| Some(scenario::size(node).ok()?.get().to_string()), ..SIZE };

/// A quantum, of one byte or more.
pub(super) const QUANTUM: Unit = Unit {
    read: |word, option| match (SIZE.read)(word, option)? {
        read if dialect::is_zero(&read.value) => Err(word.problem("a quantum of zero, which sends nothing")),
        read => Ok(read),
    },
    ..SIZE
};

/// Same, a number without a unit.
pub(super) const PLAIN_QUANTUM: Unit = Unit {
    what: "a number of bytes",
    read: |word, _| {
        let bytes = units::integer(word, "a quantum in bytes", 1, u32::MAX.into())? as u64;
        Ok(Read::plain(text(Bytes::new(bytes))))
    },
    ..BYTES
};

/// The longest packet of a class of `qfq`, a number of bytes without a unit. A scenario's range ends one byte below
/// the kernel's.
pub(super) const PACKET: Unit = Unit {
    what: "a number of bytes",
    read: |word, _| {
        let bytes = units::integer(word, "a length in bytes", 512, 65_536)? as u64;
        Ok(Read::plain(text(Bytes::new(bytes.min(65_535)))))
    },
    ..BYTES
};

/// A limit in packets; tc prints `limit 100p`.
pub(super) const LIMIT: Unit = Unit {
    what: "a number of packets",
    read: |mut word, _| {
        word.text = word.text.trim_end_matches('p');
        packets(units::integer(word, "a limit", 1, 1 << 30)?)
    },
    show: |node| Some(format!("{}p", packets_of(node)?)),
};

/// Same, where 0 stands for the default.
pub(super) const LIMIT_OR_ZERO: Unit = Unit {
    read: |mut word, _| {
        word.text = word.text.trim_end_matches('p');
        match units::integer(word, "a limit", 0, 1 << 30)? {
            0 => Ok(Read::plain(dialect::number(0))),
            number => packets(number),
        }
    },
    ..LIMIT
};

/// A number of packets without a suffix.
pub(super) const PACKETS: Unit = Unit {
    what: "a number",
    read: |word, _| packets(units::integer(word, "a number", 1, 1 << 30)?),
    show: |node| Some(packets_of(node)?.to_string()),
};

/// The limit of `pfifo`.
pub(super) const PFIFO_LIMIT: Unit = Unit {
    what: "a number",
    read: |mut word, _| {
        word.text = word.text.trim_end_matches('p');
        packets(above_zero(word, "packets")?.into())
    },
    show: |node| match scenario::bound(node).ok()? {
        Bound::Packets(packets) => Some(format!("{packets}p")),
        Bound::Bytes(_) => None,
    },
};

/// The limit of `bfifo`.
pub(super) const BFIFO_LIMIT: Unit = Unit {
    what: "a number",
    read: |word, _| Ok(Read::plain(text(Bytes::new(above_zero(word, "bytes")?.into())))),
    show: |node| match scenario::bound(node).ok()? {
        Bound::Bytes(bytes) => Some(size_letters(bytes)),
        Bound::Packets(_) => None,
    },
};

/// A whole number in a range.
pub(super) const fn whole<const LOW: i64, const HIGH: i64>() -> Unit {
    Unit {
        what: "a number",
        read: |word, _| Ok(Read::plain(dialect::number(units::integer(word, "a number", LOW, HIGH)?))),
        show: shown_as_is,
    }
}

/// A value and a mask of one byte each, after a slash.
pub(super) const SELECTOR: Unit = Unit {
    what: "a value and a mask",
    read: |word, _| {
        let Some((value, mask)) = word.text.split_once('/') else {
            return Err(word
                .problem(format!("{} has no mask", Found(word.text)))
                .help("a value and a mask of the code point and the ECN bits, such as 0x1/0x3"));
        };
        let byte = |text| Ok(units::integer(word.part(text), "a number", 0, 255)? as u8);
        let (value, mask): (u8, u8) = (byte(value)?, byte(mask)?);
        Ok(Read::plain(text(format!("{value:#04x}/{mask:#04x}"))))
    },
    show: shown_as_is,
};

/// A number of 1/1024 parts.
pub(super) const SHARE_OF_1024: Unit = Unit {
    read: |word, option| {
        (whole::<0, 1024>().read)(word, option).map_err(|problem| problem.help("in 1024ths: 512 is a half"))
    },
    ..whole::<0, 1024>()
};

/// Same, or "by backlog".
pub(super) const GAMMA: Unit = Unit {
    read: |word, option| match word.text {
        "auto" => Ok(Read::plain(text("auto"))),
        _ => (SHARE_OF_1024.read)(word, option),
    },
    ..SHARE_OF_1024
};

/// A whole number of percent.
pub(super) const PER_CENT: Unit = Unit {
    what: "a number",
    read: |word, _| Ok(Read::plain(text(format!("{}%", units::integer(word, "a number", 0, 100)?)))),
    show: |node| Some(shown_as_is(node)?.trim_end_matches('%').into()),
};

/// Sixteenths of a hertz.
pub(super) const fn sixteenths<const LOW: i64>() -> Unit {
    Unit {
        what: "a number",
        read: |word, _| {
            let parts = units::integer(word, "a number", LOW, 32)?;
            Ok(Read::plain(Value::Float((parts as f64 / 16.0).to_string())))
        },
        show: |node| Some((shown_as_is(node)?.parse::<f64>().ok()? * 16.0).to_string()),
    }
}

/// A probability from 0 to 1.
pub(super) const PROBABILITY: Unit = Unit {
    what: "a probability",
    read: |word, _| {
        let number = word.text.parse::<f64>().ok().filter(|p| *p > 0.0 && *p <= 1.0);
        let number = number.ok_or_else(|| {
            word.problem(format!("{} is not a probability", Found(word.text)))
                .help("from 0 to 1, such as 0.02")
        })?;
        // A scenario rejects a bare 1, which might mean one percent.
        Ok(Read::plain(if number < 1.0 {
            Value::Float(number.to_string())
        } else {
            Value::String("100%".into())
        }))
    },
    show: shown_as_is,
};

/// The number of a class, which may be given a name.
pub(super) const CLASS: Unit = Unit {
    what: "the number of a class",
    read: |word, _| {
        if let Some((_, minor)) = word.text.split_once(':') {
            return Err(word
                .problem(format!(
                    "found {}, expected a class number without its discipline",
                    Found(word.text)
                ))
                .help(format!(
                    "tc takes the number behind the colon alone, in hexadecimal: default {minor}"
                )));
        }
        Ok(Read::plain(dialect::number(super::Handle::read(word)?.major)))
    },
    show: shown_as_is,
};

/// Estimators of averages: tc's names, those that are printed first, and the scenario's names.
const ESTIMATORS: &[(&str, &str)] = &[
    ("ewma", "ewma"),
    ("ewmar", "ewma-r"),
    ("ewmape", "ewma-pe"),
    ("ewma-r", "ewma-r"),
    ("ewma-pe", "ewma-pe"),
];

pub(super) const ESTIMATOR: Unit = Unit {
    what: "an estimator",
    read: |word, _| {
        let known = ESTIMATORS.iter().find(|(name, _)| *name == word.text);
        let (_, name) = known.ok_or_else(|| {
            let names: Vec<&str> = ESTIMATORS.iter().map(|(name, _)| *name).collect();
            word.problem(format!("{} is not an estimator", Found(word.text)))
                .did_you_mean(word.text, names.iter().copied())
                .help(format!("allowed: {}", one_of(&names)))
        })?;
        Ok(Read::plain(text(name)))
    },
    show: |node| {
        let name = shown_as_is(node)?;
        ESTIMATORS.iter().find(|(_, known)| *known == name).map(|(word, _)| (*word).into())
    },
};

fn packets(number: i64) -> Result<Read<Value>, Problem> {
    Ok(Read::plain(text(Bound::Packets(number as u64)))) // at most 2³²
}

fn packets_of(node: &Node) -> Option<u64> {
    scenario::packets(node).ok()
}

fn above_zero(word: Word<'_>, counts: &str) -> Result<u32, Problem> {
    match units::size(word, "a limit", counts)?.value {
        0 => Err(word.problem("a limit of 0 passes nothing")),
        value => Ok(value),
    }
}

/// The rate of a key.
pub(super) fn rate_of(table: &Table, key: &str) -> Option<Rate> {
    scenario::rate(table.get(key)?).ok()
}

/// The size of a key.
pub(super) fn size_of(table: &Table, key: &str) -> Option<Bytes> {
    scenario::size(table.get(key)?).ok()
}

/// The time of a key.
pub(super) fn time_of(table: &Table, key: &str) -> Option<Duration> {
    scenario::time(table.get(key)?).ok()
}

/// A rate with tc's units, `10Mbit`, exactly.
pub(super) fn rate_letters(rate: Rate) -> String {
    let bits = rate.bits_per_second();
    let units = [(1_000_000_000_000, "Tbit"), (1_000_000_000, "Gbit"), (1_000_000, "Mbit"), (1_000, "Kbit")];
    match units.into_iter().find(|(unit, _)| bits >= *unit && bits.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bits / unit),
        None => format!("{bits}bit"),
    }
}

/// A size with tc's units, `5Kb` for 5120 bytes, exactly.
fn size_letters(size: Bytes) -> String {
    let bytes = size.get();
    match [(1 << 20, "Mb"), (1 << 10, "Kb")]
        .into_iter()
        .find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit))
    {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}b"),
    }
}

/// The error for a missing required option.
pub(super) fn missing(word: Word<'_>, what: &str, example: &str) -> Problem {
    word.problem(format!("`{}` without `{what}`", word.text)).help(format!("as in: {example}"))
}

/// The number after a word.
pub(super) fn number(after: Word<'_>, words: &mut Words<'_>, low: i64, high: i64) -> Result<i64, Problem> {
    let word = words.expect(after, "a number")?;
    units::integer(word, "a number", low, high)
}

/// The error for an unknown option.
pub(super) fn unknown(word: Word<'_>, of: &str, known: &[&str]) -> Problem {
    let problem = word.problem(format!("{} is not an option of `{of}`", Found(word.text)));
    if known.is_empty() { problem } else { suggest(problem, word.text, known) }
}

/// The number of an action that filters share.
pub(super) fn index(after: Word<'_>, words: &mut Words<'_>) -> Result<u32, Problem> {
    Ok(number(after, words, 1, u32::MAX.into())? as u32)
}
