//! Text for people on rules: their totals, and the rules that matched most.

use std::cmp::Reverse;
use std::fmt::{self, Formatter};

use crate::figures::share;
use crate::human::{bytes, count, packets, percent, shortened};
use crate::rules::{Bounds, Count, RuleReport, RulesReport};

/// Up to this many rules, all are shown.
const FEW_RULES: usize = 12;
/// The columns available for a rule.
const RULE_WIDTH: usize = 69;

/// Prints a block for each rule set that packets arrived at, up to `most`; up to `few` sets, all are shown.
pub(crate) fn print(all: &[RulesReport], few: usize, most: usize, f: &mut Formatter<'_>) -> fmt::Result {
    let met = |rules: &&RulesReport| rules.arrived_out.packets.saturating_add(rules.arrived_in.packets) > 0;
    let shown: Vec<&RulesReport> = all.iter().filter(|rules| all.len() <= few || met(rules)).collect();
    shown.iter().take(most).try_for_each(|rules| one(rules, f))?;
    if shown.len() > most {
        writeln!(f, "\n{} more sets of rules with traffic", shown.len() - most)?;
    }
    if shown.len() < all.len() {
        writeln!(f, "\n{} sets of rules without traffic", all.len() - shown.len())?;
    }
    Ok(())
}

fn one(rules: &RulesReport, f: &mut Formatter<'_>) -> fmt::Result {
    match (&rules.from, &rules.to) {
        (Some(from), Some(to)) => writeln!(f, "\n{}, rules: out is {from} → {to}", rules.name)?,
        _ => writeln!(f, "\n{}, rules", rules.name)?,
    }
    let met = rules.arrived_out.packets.saturating_add(rules.arrived_in.packets);
    if met == 0 {
        writeln!(f, "  no traffic")?;
    }
    for (what, Count { packets: number, bytes: sum }) in [
        ("out", rules.arrived_out),
        ("in", rules.arrived_in),
        ("into pipes", rules.piped),
        ("from pipes", rules.returned),
        ("passed", rules.passed),
        ("translated", rules.translated),
    ] {
        if number > 0 {
            writeln!(f, "  {what:<11}{:>20}{:>12}", packets(number), bytes(sum))?;
        }
    }
    let drops = [("denied", rules.denied), ("no pipe", rules.no_pipe), ("loop", rules.looped)];
    let dropped: u64 = drops.iter().map(|(_, count)| count.packets).fold(0, u64::saturating_add);
    if dropped > 0 {
        let reasons = listed(drops.map(|(what, Count { packets, .. })| (what, packets)));
        writeln!(f, "  dropped    {:>20}{:>12}   {reasons}", packets(dropped), percent(share(dropped, met)))?;
    }
    dynamic(rules, f)?;
    table(&rules.rules, f)
}

fn dynamic(rules: &RulesReport, f: &mut Formatter<'_>) -> fmt::Result {
    let Bounds { full_packets, limit_packets, calls_packets, depth_calls, forgotten_packets, nat_packets } =
        rules.bounds;
    // The shared entries of `limit` are not flows.
    let alive = rules.dynamic_rules.iter().filter(|rule| rule.flows.is_none()).count() as u64;
    let figures = [
        ("alive", alive),
        ("packets denied by a limit", limit_packets),
        ("packets denied at the maximum number", full_packets),
    ];
    if figures.iter().any(|(_, number)| *number > 0) {
        writeln!(f, "  dynamic rules: {}", listed(figures))?;
    }
    let figures = [
        ("packets denied at the call limit", calls_packets),
        ("skipped at the nesting limit", depth_calls),
        ("lost in a pipe", forgotten_packets),
    ];
    if figures.iter().any(|(_, number)| *number > 0) {
        writeln!(f, "  calls: {}", listed(figures))?;
    }
    if nat_packets > 0 {
        writeln!(f, "  translators: packets denied without a free port or flow {}", count(nat_packets))?;
    }
    Ok(())
}

/// `denied 2, loop 1`: zeros are omitted.
fn listed<const N: usize>(figures: [(&str, u64); N]) -> String {
    let parts = figures.iter().filter(|(_, number)| *number > 0);
    parts.map(|(what, number)| format!("{what} {}", count(*number))).collect::<Vec<_>>().join(", ")
}

/// The rules in order; of many rules, those that matched most.
fn table(all: &[RuleReport], f: &mut Formatter<'_>) -> fmt::Result {
    let mut order: Vec<usize> = (0..all.len()).collect();
    if all.len() > FEW_RULES {
        order.sort_by_key(|&at| Reverse(all[at].packets));
        order.truncate(FEW_RULES);
        order.retain(|&at| all[at].packets > 0);
        order.sort_unstable();
    }
    writeln!(f, "  {:>14}{:>12}   rule", "packets", "bytes")?;
    for rule in order.iter().map(|&at| &all[at]) {
        let [number, sum] = match rule.packets {
            0 => ["-".into(), "-".into()],
            number => [count(number), bytes(rule.bytes)],
        };
        let disabled = if rule.enabled { "" } else { " (its set is disabled)" };
        writeln!(f, "  {number:>14}{sum:>12}   {}{disabled}", shortened(&rule.rule, RULE_WIDTH))?;
    }
    let more = all.len() - order.len();
    if more > 0 {
        let unmatched = all.iter().filter(|rule| rule.packets == 0).count() as u64;
        let words = if order.len() < FEW_RULES {
            "no packet matched them".to_owned()
        } else {
            format!("{} of them matched no packet", count(unmatched))
        };
        writeln!(f, "  {:>14}{:>12}   {} more rules: {words}", "", "", count(more as u64))?;
    }
    Ok(())
}
