//! `sfb limit 1000 max 25 target 20 increment 0.0005 decrement 0.00005 penalty_rate 10 penalty_burst 20 rehash 600000 db
//! 60000`: stochastic fair Blue.

use narrows_core::Duration;
use narrows_core::queue::Bound;

use crate::dialect::{Opt, Options, Read, Unit, Word, is_zero};
use crate::keys::kind::text;
use crate::netem::units;
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem};
use crate::tc::unit::{LIMIT_OR_ZERO, whole};
use crate::units as scenario;

pub(super) const OPTIONS: Options = Options(&[&[
    Opt::value(&["limit"], "bound", LIMIT_OR_ZERO).zero_is_none(),
    Opt::value(&["max"], "bin-max", LIMIT_OR_ZERO).zero_is_none(),
    Opt::value(&["target"], "bin-target", LIMIT_OR_ZERO).zero_is_none(),
    Opt::value(&["increment"], "increment", SHARE),
    Opt::value(&["decrement"], "decrement", SHARE),
    Opt::value(&["penalty_rate"], "penalty-rate", NUMBER),
    Opt::value(&["penalty_burst"], "penalty-burst", NUMBER),
    Opt::value(&["rehash"], "rehash", INTERVAL),
    Opt::value(&["db"], "warmup", MILLISECONDS),
]]);

const NUMBER: Unit = whole::<0, { u32::MAX as i64 }>();

/// A probability from 0 to 1, both included.
const SHARE: Unit = Unit {
    what: "a probability",
    read: |word, _| {
        let number = word.text.parse::<f64>().ok().filter(|p| (0.0..=1.0).contains(p));
        let number = number.ok_or_else(|| {
            word.problem(format!("{} is not a probability", Found(word.text)))
                .help("from 0 to 1, such as 0.0005")
        })?;
        Ok(Read::plain(match number {
            // A scenario rejects a bare 1, which might mean one percent.
            1.0 => text("100%"),
            0.0 => text("0%"),
            number => Value::Float(number.to_string()),
        }))
    },
    show: |node| Some(format!("{:.5}", scenario::Share::read(node).ok()?.probability().as_f64())),
};

/// A whole number of milliseconds. The manual calls them seconds, and so does `tc`'s help.
const MILLISECONDS: Unit = Unit {
    what: "a number of milliseconds",
    read: |word, _| {
        let number = units::integer(word, "a number of milliseconds", 0, u32::MAX.into())?;
        Ok(Read::plain(text(Duration::from_millis(number as u64))))
    },
    show: |node| Some((scenario::time(node).ok()?.nanos() / 1_000_000).to_string()),
};

/// The same, where 0 is never.
const INTERVAL: Unit = Unit {
    read: |word, option| match (MILLISECONDS.read)(word, option)? {
        read if is_zero(&read.value) => Ok(Read::plain(text("never"))),
        read => Ok(read),
    },
    show: |node| match &node.value {
        Value::String(never) if never == "never" => Some("0".into()),
        _ => (MILLISECONDS.show)(node),
    },
    ..MILLISECONDS
};

/// Of `max` and `target`, the one that is not given follows from the other, as in tc (`sfb_parse_opt`).
pub(super) fn settle(_: Word<'_>, keys: &mut Table) -> Result<(), Problem> {
    let packets = |key: &str| keys.get(key).and_then(|node| scenario::packets(node).ok());
    let (max, target) = match (packets("bin-max"), packets("bin-target")) {
        (Some(_), Some(_)) | (None, None) => return Ok(()),
        (None, Some(target)) => ((5 * target).div_ceil(4), target),
        (Some(max), None) => (max, (4 * max).div_ceil(5)),
    };
    keys.set("bin-max", Node::new(text(Bound::Packets(max))));
    keys.set("bin-target", Node::new(text(Bound::Packets(target))));
    Ok(())
}
