//! `limit` and `seed`.

use narrows_core::Rate;
use narrows_core::queue::Bound;

use super::options::{DEFAULT_LIMIT, Netem};
use super::row::{Key, Row};
use super::{units, words};
use crate::keys::kind::text;
use crate::problem::Found;
use crate::units as scenario;

pub(super) const LIMIT: Row<Netem> = Row {
    words: &["limit"],
    read: |netem, word, reader| {
        let number = reader.words.expect(word, "a number of packets")?;
        let limit = reader.value(number, |word| units::size(word, "a number of packets", "packets"))?;
        if limit == 0 {
            return Err(number
                .problem("a limit of 0 packets passes nothing")
                .help("the least is 1 packet; to lose every packet write: loss 100%"));
        }
        netem.limit = Some(limit.into());
        Ok(())
    },
    show: |netem| netem.limit.map(|limit| limit.to_string()),
    explain: |netem| {
        let limit = words::count(netem.limit.unwrap_or(DEFAULT_LIMIT), "packet");
        vec![if netem.has_rate() {
            format!(
                "At most {limit} wait for the rate; further ones are dropped. Packets in flight do not count. (In tc's netem they do.)"
            )
        } else {
            format!(
                "Without a rate it bounds the delay line: at most {limit} in flight at once; further ones are dropped."
            )
        }]
    },
};

/// With a rate, the limit bounds the queue.
pub(super) const QUEUE: Key = Key {
    name: "queue",
    plain: "\"fifo\"",
    write: |netem| {
        let limit = netem.limit.unwrap_or(DEFAULT_LIMIT);
        Ok(netem.has_rate().then(|| text(Bound::Packets(limit))))
    },
    read: |reading, node| {
        let said = match node.table("") {
            Ok(table) => table.get("bound").filter(|_| table.iter().count() == 1)?,
            Err(_) => node,
        };
        match scenario::bound(said).ok()? {
            Bound::Packets(limit) => reading.netem.limit = Some(limit),
            Bound::Bytes(_) => return None,
        }
        Some(())
    },
};

/// Without a rate, the limit bounds the delay line.
pub(super) const LINE_LIMIT: Key = Key {
    name: "line-limit",
    plain: "\"unlimited\"",
    write: |netem| {
        let limit = netem.limit.filter(|_| !netem.has_rate());
        Ok(limit.map(|limit| text(Bound::Packets(limit))))
    },
    read: |reading, node| {
        if reading.direction.rate != Rate::UNLIMITED {
            return None;
        }
        reading.netem.limit = Some(scenario::packets(node).ok()?);
        Some(())
    },
};

pub(super) const SEED: Row<Netem> = Row {
    words: &["seed"],
    read: |netem, word, reader| {
        let number = reader.words.expect(word, "a number")?;
        let seed = number.text.parse().map_err(|_| {
            number
                .problem(format!("found {}, expected a seed", Found(number.text)))
                .help(format!("a whole number from 0 to {}", u64::MAX))
        })?;
        netem.seed = Some(seed);
        Ok(())
    },
    show: |netem| netem.seed.map(|seed| seed.to_string()),
    explain: |_| {
        vec!["The seed of the scenario: the same seed gives the same verdicts. The draws differ from the kernel's.".into()]
    },
};
