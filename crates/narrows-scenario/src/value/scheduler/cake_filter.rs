//! Filters of CAKE: `assign = [{ match = { destination-port = 22 }, tin = "voice" }, { match = …, host = 3, flow = 7 }]`.

use std::net::IpAddr;

use narrows_core::classify::Classifier;
use narrows_core::sched::CakeTarget;
use serde_json::json;

use super::matches::MATCHES;
use crate::keys::kind::{Boolean, ByHand, Given, Integer, Text};
use crate::keys::{self, Keyed, Row, Tabled, row, schema};
use crate::node::{Node, Value};
use crate::value::condition::Match;

const NUMBER: Integer = Integer { what: "a number from 1 to 1024", low: 1, high: CakeTarget::MOST as i64 };

/// Chooses the tin of matching packets, and numbers their hosts and their flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CakeFilter {
    /// Conditions, of which one must match; every packet matches without one.
    matches: Vec<Match>,
    pub(super) tin: Option<String>,
    host: Option<u16>,
    flow: Option<u16>,
    drop: bool,
}

impl Keyed for CakeFilter {
    const ROWS: &'static [Row<Self>] = &[
        row!("match", matches, MATCHES, "Packets it matches.").default("every packet"),
        row!("tin", tin, Given(Text("the name of a tin")), "Tin it chooses.")
            .default("that of the code point"),
        row!("host", host, Given(NUMBER), "Number that stands for the source host and the destination host.")
            .default("their addresses"),
        row!("flow", flow, Given(NUMBER), "Number that stands for the flow.")
            .default("its addresses and ports"),
        row!("drop", drop, Boolean, "Drop the packets, with the reason `no class`."),
    ];
}

/// The list of filters.
pub(super) const ASSIGN: ByHand<Vec<CakeFilter>> = ByHand {
    words: || "list of [tables](#filters-of-cake)".into(),
    schema: |definitions| {
        let one = schema::define(definitions, "CakeFilter", |definitions| {
            let doc = "Chooses the tin of packets, and numbers their hosts and their flow.";
            schema::object(doc, &keys::keys::<CakeFilter>(), definitions)
        });
        json!({ "type": "array", "items": one })
    },
    read: |node, around| {
        let items =
            node.list("a list of filters: [{ match = { destination-port = 22 }, tin = \"voice\" }]")?;
        let expected = "a filter: { match = { destination-port = 22 }, tin = \"voice\" }";
        items.iter().map(|node| keys::read_table(node, node.table(expected)?, around)).collect()
    },
    write: |all| {
        let one = |filter: &CakeFilter| Node::new(Value::Table(filter.to_table()));
        (!all.is_empty()).then(|| Value::Array(all.iter().map(one).collect()))
    },
};

/// The engine's filters, and their targets by class. `tin` knows the numbers of tins.
pub(super) fn filters(
    all: &[CakeFilter],
    tin: impl Fn(&str) -> Option<u8>,
    addresses: &dyn Fn(&str) -> Vec<IpAddr>,
) -> (Classifier, Vec<CakeTarget>) {
    let mut targets = vec![CakeTarget::default()];
    let mut rules = Vec::new();
    for filter in all {
        let class = if filter.drop { Classifier::NO_CLASS } else { targets.len() as u32 };
        if !filter.drop {
            let tin = filter.tin.as_deref().and_then(&tin);
            targets.push(CakeTarget { tin, host: filter.host, flow: filter.flow });
        }
        let every = [Match::default()];
        let matches = if filter.matches.is_empty() { &every[..] } else { &filter.matches[..] };
        rules.extend(matches.iter().map(|one| (one.condition(addresses), class)));
    }
    (Classifier::Rules { rules, default: Some(0) }, targets)
}
