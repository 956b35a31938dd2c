//! `choke limit 1000 bandwidth 10mbit min 83 max 250 burst 138 probability 0.02 ecn`: RED that compares packets of flows.

use narrows_core::Bytes;
use narrows_core::queue::Bound;

use super::red::{self, BURST, PROBABILITY_OF_MAX};
use crate::dialect::{Opt, Options, Word, number_of};
use crate::keys::kind::text;
use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::tc::unit::{LIMIT_OR_ZERO, RATE, SIZE, missing, size_of};
use crate::units;

pub(super) const OPTIONS: Options = Options(&[&[
    Opt::value(&["limit"], "bound", LIMIT_OR_ZERO).zero_is_none(),
    Opt::value(&["min"], "min", LIMIT_OR_ZERO).zero_is_none(),
    Opt::value(&["max"], "max", LIMIT_OR_ZERO).zero_is_none(),
    PROBABILITY_OF_MAX,
    Opt::value(&["avpkt"], "avpkt", SIZE).zero_is_none(),
    BURST,
    Opt::value(&["bandwidth"], BANDWIDTH, RATE).remark(red::NO_BANDWIDTH),
    Opt::switch(&["ecn"], &[], "ecn"),
]]);

/// In tc only, which requires it.
const BANDWIDTH: &str = "bandwidth";
const EXAMPLE: &str = "choke limit 1000 bandwidth 10mbit min 83 max 250 burst 138";
/// The longest table of the kernel (`CHOKE_MAX_QUEUE`).
const MOST: u64 = 128 * 1024 - 1;

/// Computes the thresholds that are not given, and the weight of an arrival in the average, as tc does
/// (`choke_parse_opt`).
pub(super) fn settle(name: Word<'_>, keys: &mut Table) -> Result<(), Problem> {
    let packets = |key: &str| keys.get(key).and_then(|node| units::packets(node).ok());
    let place = |key: &str| keys.key(key).map_or(name.span(), |key| key.span.clone());
    let limit = packets("bound").ok_or_else(|| missing(name, "limit", EXAMPLE))?;
    if keys.get(BANDWIDTH).is_none() {
        return Err(missing(name, BANDWIDTH, EXAMPLE));
    }
    if limit > MOST {
        return Err(Problem::new(format!("`limit`, {limit} packets, is above {MOST}")).at(&place("bound")));
    }
    let max = packets("max").unwrap_or(limit / 4);
    let min = packets("min").unwrap_or(max / 3);
    if max > limit {
        return Err(
            Problem::new(format!("`max`, {max} packets, is above `limit`, {limit}")).at(&place("max"))
        );
    }
    if min >= max {
        return Err(
            Problem::new(format!("`min`, {min} packets, is not below `max`, {max}")).at(&place("min"))
        );
    }
    if min == 0 {
        return Err(Problem::new(format!("`max`, {max} packets, leaves no room for a lower threshold"))
            .at(&place("max"))
            .help("give `min`, one packet or more"));
    }
    let packet = size_of(keys, "avpkt").unwrap_or(red::PACKET);
    let given = number_of::<u64>(keys, "burst");
    let burst = given.unwrap_or((2 * min + max) / 3);
    let weight = red::weight(Bytes::new(min * packet.get()), burst, packet).ok_or_else(|| {
        Problem::new(format!("a burst of {burst} packets is too short for `min`, which is {min} packets"))
            .at(&place(if given.is_some() { "burst" } else { "min" }))
            .help(format!("it takes at least {min} packets"))
    })?;
    red::check_scale(max, weight).map_err(|problem| problem.at(&place("max")))?;
    for key in [BANDWIDTH, "avpkt", "burst"] {
        keys.remove(key);
    }
    keys.set("min", Node::new(text(Bound::Packets(min))));
    keys.set("max", Node::new(text(Bound::Packets(max))));
    keys.put("typical-packet", text(packet));
    keys.put("weight", red::decimal(weight));
    Ok(())
}
