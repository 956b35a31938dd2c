//! `duplicate`, `corrupt`, `reorder` and `gap`.

use super::options::{Chance, Netem};
use super::row::{Key, Row};
use super::value::{chance, chance_of, number_of, share};
use super::{units, words};
use crate::dialect::number;
use crate::keys::kind::text;
use crate::node::Value;
use crate::units::Share;

/// What is said of copies on a link of two queues.
pub(crate) const COPIES: &str =
    "Each is duplicated on the wire; the copy takes no transmission time and has its own delay.";

pub(super) const DUPLICATE: Row<Netem> = Row {
    words: &["duplicate"],
    read: |netem, word, reader| {
        netem.duplicate = reader.chance(word)?;
        Ok(())
    },
    show: |netem| netem.duplicate.show(),
    explain: |netem| {
        let mut said = words::chance(netem.duplicate, "Packets that arrive twice", COPIES);
        if netem.loss.is_some_and(|loss| !loss.is_none()) {
            said.push("Of packets that are not lost. (In NetEm one that is chosen to be lost and to be duplicated arrives once.)".into());
        }
        said
    },
};

pub(super) const DUPLICATE_KEY: Key = Key {
    name: "duplicate",
    plain: "\"0%\"",
    write: |netem| Ok(written(netem.duplicate)),
    read: |reading, node| {
        reading.netem.duplicate = chance_of(node)?;
        Some(())
    },
};

pub(super) const CORRUPT: Row<Netem> = Row {
    words: &["corrupt"],
    read: |netem, word, reader| {
        netem.corrupt = reader.chance(word)?;
        Ok(())
    },
    show: |netem| netem.corrupt.show(),
    explain: |netem| {
        let more = "The bit position is random; checksums are not corrected.";
        words::chance(netem.corrupt, "Packets with one flipped bit", more)
    },
};

pub(super) const CORRUPT_KEY: Key = Key {
    name: "corrupt",
    plain: "\"0%\"",
    write: |netem| Ok(written(netem.corrupt)),
    read: |reading, node| {
        reading.netem.corrupt = chance_of(node)?;
        Some(())
    },
};

fn written(of: Chance) -> Option<Value> {
    (!of.share.is_zero()).then(|| chance(of))
}

pub(super) const REORDER: Row<Netem> = Row {
    words: &["reorder"],
    read: |netem, word, reader| {
        netem.reorder = reader.chance(word)?;
        Ok(())
    },
    show: |netem| netem.reorder.show(),
    explain: |netem| match netem.reordering() {
        None => nothing_skips(),
        Some(_) if netem.reorder.share.is_zero() => vec!["No packet is chosen by `reorder` itself.".into()],
        Some((chance, _)) => {
            let what = "Packets that skip the delay and leave at once";
            let said = match netem.rate {
                None => "They overtake packets in flight.",
                Some(_) => {
                    "They overtake packets in flight, but wait for the rate; in the kernel's single queue they skip that, too."
                }
            };
            words::chance(chance, what, said)
        }
    },
};

pub(super) const GAP: Row<Netem> = Row {
    words: &["gap"],
    read: |netem, word, reader| {
        let number = reader.words.expect(word, "a number of packets")?;
        let gap = units::integer(number, "a number of packets", 0, u32::MAX.into())?;
        reader.note(number, format!("{gap} packets"));
        netem.gap = Some(gap as u32).filter(|gap| *gap > 0); // at most u32::MAX
        Ok(())
    },
    show: |netem| netem.gap.map(|gap| gap.to_string()),
    explain: |netem| match netem.reordering() {
        None => nothing_skips(),
        Some((_, gap)) if netem.reorder.share.is_zero() => vec![
            format!("Every {} packet skips the delay.", ordinal(gap)),
            "Current tc refuses `gap` without `reorder`; it means reorder 100%, as in older kernels.".into(),
        ],
        Some((_, 1)) => vec!["Every packet may skip the delay.".into()],
        Some((_, 2)) => vec!["After a packet that skipped the delay the next one has it.".into()],
        Some((_, gap)) => {
            vec![format!("After a packet that skipped the delay the next {} have it.", gap - 1)]
        }
    },
};

fn nothing_skips() -> Vec<String> {
    vec!["No packet skips the delay.".into()]
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (1, teen) if teen != 11 => "st",
        (2, teen) if teen != 12 => "nd",
        (3, teen) if teen != 13 => "rd",
        _ => "th",
    };
    if number == 1 { "single".into() } else { format!("{number}{ending}") }
}

pub(super) const REORDER_KEY: Key = Key {
    name: "reorder",
    plain: "\"none\"",
    write: |netem| {
        Ok(netem.reordering().map(|(of, gap)| match (chance(of), gap) {
            (value, 1) => value,
            (Value::Table(mut own), gap) => {
                own.put("gap", number(gap));
                Value::Table(own)
            }
            (_, gap) => text(format!("{} gap {gap}", of.share)),
        }))
    },
    read: |reading, node| {
        let table = node.table("").ok()?;
        let correlation = table.get("correlation").map_or(Some(Share::ZERO), share)?;
        let probability = share(table.get("probability").or(table.get("rate"))?)?;
        reading.netem.reorder = Chance { share: probability, correlation };
        let gap = table.get("gap").map_or(Some(1), number_of)?;
        reading.netem.gap = Some(gap).filter(|gap| *gap > 1);
        Some(())
    },
};
