//! Filters at the root of a device that change packets or gate them: packets meet them before the queue, as filters at
//! the ingress of the direction.
//!
//! In the kernel such a packet then goes to the class of the same filter. Here classes are found after the change, so a
//! change of what filters with a class look at is refused.

use super::filter::Which;
use super::filters::Placed;
use super::rules;
use super::tree::Tree;
use super::verdict::Verdict;
use crate::keys::kind::text;
use crate::node::{Table, Value};
use crate::problem::Problem;
use crate::value::Match;

fn acts(placed: &Placed) -> bool {
    placed.filter.set.is_some() || placed.filter.gate.is_some()
}

impl Tree {
    /// The filters at the ingress of the direction.
    pub(super) fn root_actions(&self) -> Result<Vec<Table>, Problem> {
        let wrong = |title: &str, at: &Placed| Problem::new(title).put_at(&at.span);
        let Some(first) = self.filters.iter().find(|placed| acts(placed)) else { return Ok(Vec::new()) };
        let root = self.root().map(|root| root.handle);
        if let Some(inside) = self.filters.iter().find(|placed| acts(placed) && Some(placed.parent) != root) {
            return Err(wrong("packets are changed or gated within a class", inside)
                .help("put the filter at the root, or at the egress of clsact"));
        }
        let mut all: Vec<&Placed> =
            self.filters.iter().filter(|placed| placed.parent == first.parent).collect();
        rules::in_order(&mut all);
        let last = all.iter().rposition(|placed| acts(placed)).map_or(0, |last| last + 1);
        let mut list = Vec::new();
        for placed in &all[..last] {
            let filter = &placed.filter;
            let which = match &filter.which {
                Which::Match(which) => which.as_deref(),
                Which::Nothing => continue,
                _ => {
                    return Err(wrong(
                        "tables of u32, several conditions or marks, with filters that change or gate packets: match the packets themselves",
                        placed,
                    ));
                }
            };
            if filter.police.is_some() || filter.redirect.is_some() {
                return Err(wrong(
                    "filters that change or gate packets, and one that polices or redirects them",
                    placed,
                ));
            }
            let (action, key) = match (&filter.set, &filter.gate, filter.verdict) {
                (_, _, Verdict::Drop) => ("drop", Table::default()),
                (Some(set), ..) => ("edit", Table::default().and("set", Value::Table(set.clone()))),
                (None, Some(gate), _) => ("gate", gate.clone()),
                (None, None, Verdict::Class) => ("pass", Table::default()),
                (None, None, Verdict::Goto(_)) => {
                    return Err(wrong(
                        "filters that change or gate packets, and one that leads to another chain",
                        placed,
                    ));
                }
                (None, None, Verdict::Next) => continue,
            };
            let with = |which: Option<&Match>, action: &str| {
                let mut table = Table::default();
                which.into_iter().for_each(|which| table.put("match", which.value()));
                table.put("action", text(action));
                table
            };
            let changed = match &filter.only {
                None => which.cloned(),
                Some(only) => match rules::joint(which, Some(only)) {
                    Some(changed) => changed,
                    None if filter.verdict == Verdict::Class => {
                        list.push(with(which, "pass"));
                        continue;
                    }
                    None => continue,
                },
            };
            let mut table = with(changed.as_ref(), action);
            super::translate::add(&key, &mut table);
            if acts(placed) && filter.verdict == Verdict::Next {
                table.put("conform", text("next"));
            }
            list.push(table);
            // Those that are not changed meet no later filter either.
            if changed.as_ref() != which && filter.verdict == Verdict::Class {
                list.push(with(which, "pass"));
            }
        }
        let with_class = || all.iter().filter(|placed| placed.filter.class.is_some());
        for placed in &all {
            let Some(set) = &placed.filter.set else { continue };
            let mut others = with_class().filter_map(|other| match &other.filter.which {
                Which::Match(Some(matches)) => Some((other, matches)),
                _ => None,
            });
            if let Some((other, _)) = others.find(|(_, matches)| looks_at(matches, set)) {
                return Err(wrong("a class is chosen by a field that a filter changes", other)
                    .help("here classes are found after the change: let the filter that changes packets match other fields"));
            }
        }
        Ok(list)
    }
}

/// Whether a condition is about a field that an edit writes.
fn looks_at(matches: &Match, set: &Table) -> bool {
    let writes = |keys: &[&str]| keys.iter().any(|key| set.get(key).is_some());
    let is_about = |parts: &[bool]| parts.contains(&false);
    writes(&["link-source", "link-destination", "swap-link-addresses"])
        && is_about(&[matches.link_sources.is_empty(), matches.link_destinations.is_empty()])
        || writes(&["hop-limit"]) && !matches.hop_limits.is_empty()
        || writes(&["vlan"]) && !matches.vlans.is_empty()
        || writes(&["source", "destination"])
            && is_about(&[matches.sources.is_empty(), matches.destinations.is_empty()])
        || writes(&["source-port", "destination-port"])
            && is_about(&[
                matches.source_ports.is_empty(),
                matches.destination_ports.is_empty(),
                matches.ports.is_empty(),
            ])
        || writes(&["mark"]) && !matches.ecns.is_empty()
}
