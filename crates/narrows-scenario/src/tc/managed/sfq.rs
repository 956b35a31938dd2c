//! `sfq limit 500 depth 50 headdrop`, and `sfq redflowlimit 100000 ecn`: stochastic fairness queueing, with RED in each
//! flow.

use narrows_core::Bytes;
use narrows_core::queue::Bound;

use super::QUANTUM;
use super::red::{self, BURST, PROBABILITY_OF_MAX};
use crate::dialect::{Follows, Opt, Options, Word};
use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::tc::unit::{LIMIT, PACKETS, SIZE, missing, size_of, whole};
use crate::units;

pub(super) const OPTIONS: Options = Options(&[&[
    Opt::value(&["limit"], "bound", LIMIT),
    QUANTUM,
    Opt::value(&["divisor"], "flows", whole::<1, 65536>()),
    Opt::nothing(&["flows"], Follows::One("a number"))
        .remark("`flows` has no effect: as many flows may have packets as `divisor` distinguishes."),
    Opt::nothing(&["perturb"], Follows::One("a number"))
        .remark("`perturb` has no effect: flows that share one of the 1024 hash buckets keep sharing it."),
    Opt::value(&["depth"], "flow-limit", PACKETS),
    Opt::word(&["headdrop"], "drop", "head"),
    Opt::value(&["redflowlimit"], LIMIT_OF_FLOW, SIZE),
    Opt::value(&["min"], "min", SIZE).zero_is_none(),
    Opt::value(&["max"], "max", SIZE).zero_is_none(),
    Opt::value(&["avpkt"], "avpkt", SIZE).zero_is_none(),
    BURST,
    PROBABILITY_OF_MAX,
    Opt::switch(&["ecn"], &[], "ecn"),
    Opt::switch(&["harddrop"], &[], "harddrop"),
]]);

/// In tc only: the thresholds follow from it.
const LIMIT_OF_FLOW: &str = "redflowlimit";
/// The keys of RED.
const RED: [&str; 8] = [LIMIT_OF_FLOW, "min", "max", "avpkt", "burst", "probability", "ecn", "harddrop"];
/// The kernel's limit of a flow's packets (`SFQ_MAX_DEPTH`).
const DEPTH: u64 = 127;

/// A flow holds 127 packets at most. Options of RED become the queue of each flow.
pub(super) fn settle(name: Word<'_>, keys: &mut Table) -> Result<(), Problem> {
    let packets = |keys: &Table, key: &str| keys.get(key).and_then(|node| units::packets(node).ok());
    let depth = packets(keys, "flow-limit").unwrap_or(DEPTH).min(DEPTH);
    match packets(keys, "bound") {
        Some(limit) if limit <= depth => keys.remove("flow-limit"),
        _ => keys.set("flow-limit", Node::new(text(Bound::Packets(depth)))),
    }
    if let Some(red) = managed(name, keys)? {
        keys.put("flow-queue", Value::Table(red));
    }
    Ok(())
}

/// The queue of each flow, if it has RED.
fn managed(name: Word<'_>, keys: &mut Table) -> Result<Option<Table>, Problem> {
    let mut red = Table::default();
    for key in RED {
        if let Some((key, node)) = keys.take(key) {
            red.insert(key, node);
        }
    }
    let Some(first) = red.iter().next().map(|(key, _)| key.span.clone()) else { return Ok(None) };
    let Some(limit) = size_of(&red, LIMIT_OF_FLOW) else {
        return Err(missing(name, LIMIT_OF_FLOW, "sfq redflowlimit 100000 min 8000 max 60000 ecn"));
    };
    if let Some(head) = keys.key("drop") {
        return Err(Problem::new("both `headdrop` and `redflowlimit`")
            .at(&head.span)
            .also(&first, "RED")
            .help("in the kernel RED then drops and marks the oldest packet of a flow; here the arriving one: leave out `headdrop`"));
    }
    red.remove(LIMIT_OF_FLOW);
    let max = size_of(&red, "max").unwrap_or(Bytes::new(limit.get() / 4));
    if max > limit {
        let at = red.key("max").map_or(first, |key| key.span.clone());
        return Err(Problem::new(format!("`max`, {max}, is above `redflowlimit`, {limit}")).at(&at));
    }
    red::average(name, &mut red, max)?;
    let usual = |red: &Table, key: &str, value: Value| red.get(key).map_or(value, |node| node.value.clone());
    let mut whole = Table::default();
    whole.put("type", text("red"));
    whole.put("probability", usual(&red, "probability", Value::Float("0.02".into())));
    whole.put("ecn", usual(&red, "ecn", Value::Boolean(false)));
    red.iter().filter(|(key, _)| !["probability", "ecn"].contains(&key.name.as_str())).for_each(
        |(key, node)| {
            whole.put(&key.name, node.value.clone());
        },
    );
    // A flow without packets is forgotten.
    whole.put("restart", Value::Boolean(true));
    Ok(Some(whole))
}
