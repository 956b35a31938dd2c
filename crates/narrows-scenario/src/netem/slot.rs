//! `slot`.

use narrows_core::Duration;

use super::options::{Netem, Slot, SlotGap};
use super::row::{Key, Reader, Row, TIME};
use super::value::{distribution, distribution_of, number_of, table, time};
use super::{shape, units, words};
use crate::dialect::{Word, number};
use crate::keys::kind::text;
use crate::node::{Table, Value};
use crate::problem::{Found, Problem};
use crate::units as scenario;

pub(super) const SLOT: Row<Netem> = Row {
    words: &["slot"],
    read: |netem, word, reader| {
        let gap = gap(word, reader)?;
        // tc accepts only this order. Here both orders mean the same.
        let mut bytes = most("bytes", reader)?;
        let packets = most("packets", reader)?;
        if bytes == 0 {
            bytes = most("bytes", reader)?;
        }
        netem.slot = Some(Slot { gap, packets, bytes });
        Ok(())
    },
    show: |netem| {
        let slot = netem.slot.as_ref()?;
        let mut text = match &slot.gap {
            SlotGap::Between { low, high } => format!("{low} {high}"),
            SlotGap::Distribution { shape, delay, jitter } => {
                format!("distribution {} {delay} {jitter}", shape.word())
            }
        };
        for (name, most) in [("packets", slot.packets), ("bytes", slot.bytes)] {
            if most > 0 {
                text += &format!(" {name} {most}");
            }
        }
        Some(text)
    },
    explain,
};

fn gap(word: Word<'_>, reader: &mut Reader<'_, '_>) -> Result<SlotGap, Problem> {
    if let Some(first) = reader.words.take_number(false) {
        let low = reader.value(first, units::slot_time)?;
        let Some(second) = reader.words.take_number(false) else {
            return Ok(SlotGap::Between { low, high: low });
        };
        let high = reader.value(second, units::slot_time)?;
        if high < low {
            let title = format!("the longest gap, {high}, is below the shortest, {low}");
            return Err(second.problem(title));
        }
        return Ok(SlotGap::Between { low, high });
    }
    let distribution = reader.words.expect(word, "a time or `distribution`")?;
    if distribution.text != "distribution" {
        return Err(distribution
            .problem(format!("found {}, expected a time or `distribution`", Found(distribution.text)))
            .help("as in: slot 800us 10ms packets 42, or slot distribution pareto 1ms 2ms"));
    }
    let shape = shape::read(distribution, reader.words)?;
    let delay = reader.expect(distribution, TIME, units::slot_time)?;
    let word = reader.words.expect(distribution, "a jitter")?;
    let jitter = reader.value(word, units::slot_time)?;
    if jitter == Duration::ZERO {
        return Err(word
            .problem("a distribution with a jitter of zero")
            .help("a constant gap is written: slot 5ms"));
    }
    Ok(SlotGap::Distribution { shape, delay, jitter })
}

/// `bytes N` or `packets N`, or an abbreviation of the word; zero if it does not follow.
fn most(label: &str, reader: &mut Reader<'_, '_>) -> Result<u32, Problem> {
    let is_label = |word: &Word<'_>| word.text.len() > 1 && label.starts_with(word.text);
    let Some(word) = reader.words.peek().filter(is_label) else { return Ok(0) };
    reader.words.take();
    if label == "bytes" {
        return reader.expect(word, "a number of bytes", |word| units::size(word, "a size", "bytes"));
    }
    let number = reader.words.expect(word, "a number of packets")?;
    let value = units::integer(number, "a number of packets", 0, i32::MAX.into())?;
    reader.note(number, format!("{value} packets"));
    Ok(value as u32) // at most i32::MAX
}

fn explain(netem: &Netem) -> Vec<String> {
    let Some(slot) = &netem.slot else { return Vec::new() };
    if !slot.is_some() {
        return vec!["A gap of zero: packets leave when they are due.".into()];
    }
    let gap = match &slot.gap {
        SlotGap::Between { low, high } if low == high => format!("{low}"),
        SlotGap::Between { low, high } => format!("{low} to {high}"),
        SlotGap::Distribution { shape, delay, jitter } => format!("{delay} ± {jitter} ({})", shape.word()),
    };
    let mut most: Vec<String> = Vec::new();
    if slot.packets > 0 {
        most.push(words::count(slot.packets.into(), "packet"));
    }
    if slot.bytes > 0 {
        most.push(format!("{} bytes", slot.bytes));
    }
    let most =
        if most.is_empty() { "all that are due".into() } else { format!("at most {}", most.join(" and ")) };
    vec![
        format!(
            "Due packets wait for a slot and leave together when it opens: {most}. A slot opens {gap} after it was requested."
        ),
        "It is requested when a packet falls due. (NetEm's slots also depend on when it is polled.)".into(),
    ]
}

pub(super) const SLOTS: Key = Key {
    name: "slots",
    plain: "\"none\"",
    write: |netem| Ok(netem.slot.as_ref().filter(|slot| slot.is_some()).map(value)),
    read: |reading, node| {
        let table = node.table("").ok()?;
        let gap = table.get("gap")?;
        let gap = match &gap.value {
            Value::Table(inner) => match (inner.get("uniform"), inner.get("shift")) {
                (Some(uniform), None) => {
                    let uniform = uniform.table("").ok()?;
                    SlotGap::Between { low: time(uniform, "low")?, high: time(uniform, "high")? }
                }
                _ => {
                    let (shape, delay, jitter) = distribution_of(inner)?;
                    SlotGap::Distribution { shape, delay, jitter }
                }
            },
            _ => {
                let gap = scenario::time(gap).ok()?;
                SlotGap::Between { low: gap, high: gap }
            }
        };
        let most = |key| table.get(key).map_or(Some(0), number_of);
        reading.netem.slot = Some(Slot { gap, packets: most("packets")?, bytes: most("bytes")? });
        Some(())
    },
};

fn value(slot: &Slot) -> Value {
    let gap = match &slot.gap {
        SlotGap::Between { low, high } if low == high => text(low),
        SlotGap::Between { low, high } => {
            table([("uniform", table([("low", text(low)), ("high", text(high))]))])
        }
        SlotGap::Distribution { shape, delay, jitter } => Value::Table(distribution(shape, *delay, *jitter)),
    };
    let mut own = Table::default();
    own.put("gap", gap);
    for (key, most) in [("packets", slot.packets), ("bytes", slot.bytes)] {
        if most > 0 {
            own.put(key, number(most));
        }
    }
    Value::Table(own)
}
