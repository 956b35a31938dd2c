//! `rate`, and what it counts as the length of a packet.

use narrows_core::Rate;
use narrows_core::queue::Bound;
use narrows_core::service::Cells;

use super::options::{Netem, RateOption};
use super::row::{Key, Reader, Row};
use super::units;
use super::value::table;
use crate::dialect::{Word, number};
use crate::keys::kind::text;
use crate::node::{Table, Value};
use crate::problem::Problem;
use crate::units as scenario;

/// Size of the Ethernet header, which NetEm counts and `overhead = "ip"` does not.
const LINK_HEADER: i32 = 14;

pub(super) const RATE: Row<Netem> = Row {
    words: &["rate"],
    read: |netem, word, reader| {
        netem.rate = Some(read(word, reader)?);
        Ok(())
    },
    show: |netem| {
        let RateOption { rate, packet_overhead, cell_size, cell_overhead } = netem.rate?;
        // A scenario's rate units are also tc's. A scenario has two additional words.
        let mut text = if rate == Rate::DOWN { "0bit".into() } else { rate.to_string() };
        let numbers = [i64::from(packet_overhead), cell_size.into(), cell_overhead.into()];
        let said = numbers.iter().rposition(|number| *number != 0).map_or(0, |last| last + 1);
        numbers[..said].iter().for_each(|number| text += &format!(" {number}"));
        Some(text)
    },
    explain,
};

fn read(word: Word<'_>, reader: &mut Reader<'_, '_>) -> Result<RateOption, Problem> {
    let number = reader.words.expect(word, "a rate")?;
    let rate = reader.value(number, units::rate)?;
    let mut bytes = |label: &str, low: i64, high: i64, taken_as: fn(i64) -> String| -> Result<i64, Problem> {
        let number = match reader.words.peek().filter(|word| word.text == label) {
            Some(word) => {
                reader.words.take();
                reader.words.expect(word, "a number of bytes")?
            }
            None => match reader.words.take_number(low < 0) {
                Some(number) => number,
                None => return Ok(0),
            },
        };
        let value = units::integer(number, "a number of bytes", low, high)?;
        reader.note(number, taken_as(value));
        Ok(value)
    };
    /// Limit far above the overhead of any link layer, as in a scenario.
    const MOST: i64 = 65_536;
    let packet_overhead =
        bytes("packetoverhead", -MOST, MOST, |bytes| format!("{bytes} bytes more for each packet"))? as i32;
    let cell_size =
        bytes("cellsize", 0, MOST, |bytes| format!("cells with {bytes} bytes of payload"))? as u32;
    let cell_overhead =
        bytes("celloverhead", -MOST, MOST, |bytes| format!("{bytes} bytes more for each cell"))? as i32;
    if cell_size > 0 && i64::from(cell_size) + i64::from(cell_overhead) < 1 {
        return Err(number.problem(format!(
            "cells of {cell_size} bytes less {} have nothing left on the wire",
            cell_overhead.unsigned_abs()
        )));
    }
    Ok(RateOption { rate, packet_overhead, cell_size, cell_overhead })
}

fn explain(netem: &Netem) -> Vec<String> {
    let Some(RateOption { rate, packet_overhead, cell_size, cell_overhead }) = netem.rate else {
        return Vec::new();
    };
    if rate.bits_per_second() == 0 {
        return vec!["A rate of zero means none in netem: packets take no transmission time.".into()];
    }
    let mut length = "A packet counts with its link header (14 bytes on Ethernet)".to_owned();
    match packet_overhead {
        0 => {}
        more if more > 0 => length += &format!(" and {more} bytes more"),
        less => length += &format!(", less {} bytes", less.unsigned_abs()),
    }
    if cell_size > 0 {
        let size = i64::from(cell_size) + i64::from(cell_overhead);
        length += &format!(", in cells of {cell_size} bytes that take {size} on the wire");
    }
    vec![format!("Rate {rate} per second, without bursts. {length}.")]
}

impl Netem {
    /// The rate, unless it is zero, which netem treats as none.
    fn real_rate(&self) -> Option<RateOption> {
        self.rate.filter(|rate| rate.rate.bits_per_second() > 0)
    }

    /// Whether packets wait for a rate.
    pub(super) fn has_rate(&self) -> bool {
        self.real_rate().is_some()
    }
}

pub(super) const RATE_KEY: Key = Key {
    name: "rate",
    plain: "\"unlimited\"",
    write: |netem| Ok(netem.real_rate().map(|rate| text(rate.rate))),
    read: |reading, node| match scenario::rate(node).ok()? {
        Rate::UNLIMITED | Rate::DOWN => None,
        rate => {
            let more = reading.direction.overhead;
            let cells = more.cells.unwrap_or(Cells { payload: 0, size: 0 });
            reading.netem.rate = Some(RateOption {
                rate,
                packet_overhead: more.extra - if more.link_header { 0 } else { LINK_HEADER },
                cell_size: cells.payload,
                cell_overhead: i32::try_from(i64::from(cells.size) - i64::from(cells.payload)).ok()?,
            });
            if reading.netem.limit.is_none()
                && let Bound::Packets(limit) = reading.direction.bound
            {
                reading.netem.limit = Some(limit);
            }
            Some(())
        }
    },
};

pub(super) const OVERHEAD: Key = Key {
    name: "overhead",
    plain: "\"ip\"",
    write: |netem| netem.real_rate().map(overhead).transpose(),
    // Covered by the rate, or without effect if there is none.
    read: |reading, _| (reading.direction.overhead.minimum == 0).then_some(()),
};

fn overhead(rate: RateOption) -> Result<Value, Problem> {
    let RateOption { packet_overhead, cell_size, cell_overhead, .. } = rate;
    if packet_overhead == 0 && cell_size == 0 {
        return Ok(text("frame"));
    }
    let mut own = Table::default();
    own.put("base", text("frame"));
    own.put("bytes", number(packet_overhead));
    match cell_size {
        0 => {}
        _ if cell_overhead < 0 => {
            return Err(Problem::new("cells that are shorter on the wire than their payload")
                .help("a scenario has no such cells; --exact-netem has"));
        }
        payload => {
            let size = i64::from(payload) + i64::from(cell_overhead);
            own.put("cells", table([("payload", number(payload)), ("size", number(size))]));
        }
    }
    Ok(Value::Table(own))
}
