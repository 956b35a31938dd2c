//! `hhf limit 1000 quantum 1514 hh_limit 2048 reset_timeout 40ms admit_bytes 131072 evict_timeout 1s non_hh_weight 2`: the
//! heavy-hitter filter.

use narrows_core::Bytes;
use narrows_core::sched::HhfConfig;

use crate::dialect::{Opt, Options, Read, Unit, Word, number};
use crate::keys::kind::text;
use crate::netem::units;
use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::tc::unit::{BYTES, LIMIT_OR_ZERO, TIME, size_of, whole};

pub(super) const OPTIONS: Options = Options(&[&[
    Opt::value(&["limit"], "bound", LIMIT_OR_ZERO).zero_is_none(),
    Opt::value(&["quantum"], "quantum", NUMBER_OF_BYTES).zero_is_none(),
    Opt::value(&["hh_limit"], "heavy-limit", whole::<0, { HhfConfig::MOST_HEAVY as i64 }>()).zero_is_none(),
    Opt::value(&["reset_timeout"], "reset", TIME).zero_is_none(),
    Opt::value(&["admit_bytes"], "admit", NUMBER_OF_BYTES).zero_is_none(),
    Opt::value(&["evict_timeout"], "evict", TIME).zero_is_none(),
    Opt::value(&["non_hh_weight"], "weight", whole::<0, { HhfConfig::MOST_WEIGHT as i64 }>()).zero_is_none(),
]]);

/// A number of bytes without a unit.
const NUMBER_OF_BYTES: Unit = Unit {
    what: "a number of bytes",
    read: |word, _| {
        let bytes = units::integer(word, "a number of bytes", 0, u32::MAX.into())?;
        Ok(Read::plain(if bytes == 0 { number(0) } else { text(Bytes::new(bytes as u64)) }))
    },
    ..BYTES
};

/// The least quantum of the kernel, and the greatest of a scenario.
const LEAST: Bytes = Bytes::new(256);
const MOST: Bytes = Bytes::new(1 << 20);

pub(super) fn settle(_: Word<'_>, keys: &mut Table) -> Result<(), Problem> {
    let Some(quantum) = size_of(keys, "quantum") else { return Ok(()) };
    if quantum > MOST {
        let place = keys.key("quantum").map(|key| key.span.clone()).unwrap_or_default();
        return Err(Problem::new(format!("a quantum of {quantum} is above {MOST}")).at(&place));
    }
    if quantum < LEAST {
        keys.set("quantum", Node::new(text(LEAST)));
    }
    Ok(())
}
