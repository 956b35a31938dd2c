//! Output of `list`, `show`, `pipe show`, `queue show`, `sched show`, `table list` and `set show` in ipfw's
//! layout.

mod objects;
mod time;

pub use objects::{ListedFlow, object_lines};

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};

use narrows_core::rules::Rule;

use super::command::{Listing, Times};
use super::flows::TableKey;
use super::text::{body_text, protocol};

/// A rule and its counters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListedRule<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// Matched packets.
    pub packets: u64,
    /// Matched bytes.
    pub bytes: u64,
    /// Unix time of the last match in seconds; `None` if there was none.
    pub last: Option<u64>,
    /// Whether its set is enabled.
    pub enabled: bool,
}

/// A dynamic rule and its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedState {
    /// Number of the rule that created it.
    pub rule: u16,
    /// Set of that rule.
    pub set: u8,
    /// Matched packets.
    pub packets: u64,
    /// Matched bytes.
    pub bytes: u64,
    /// Remaining lifetime in seconds.
    pub seconds: u64,
    /// Kind of dynamic rule.
    pub kind: StateKind,
    /// The IP protocol.
    pub protocol: u8,
    /// Source address and port of the first packet.
    pub source: (IpAddr, u16),
    /// Destination address and port of the first packet.
    pub destination: (IpAddr, u16),
}

/// Kinds of dynamic rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// From `keep-state`.
    State,
    /// From `limit`.
    Limit,
    /// The counter of a `limit`, with its current count.
    Parent(u32),
}

/// The lines of `list` or `show`, with line ends. Rules of disabled sets appear only with `-S`.
pub fn rule_lines(rules: &[ListedRule<'_>], states: &[ListedState], listing: &Listing) -> String {
    let rules = rules.iter().filter(|listed| listing.rules.include(listed.rule));
    let shown: Vec<_> = rules.filter(|listed| listed.enabled || listing.sets).collect();
    let width = |largest: Option<u64>| largest.map_or(1, |largest| largest.to_string().len());
    let states: Vec<_> = states
        .iter()
        .filter(|state| {
            listing.dynamic
                && listing.rules.set.is_none_or(|set| set == state.set)
                && (listing.rules.numbers.is_empty()
                    || listing.rules.numbers.iter().any(|range| range.contains(&state.rule)))
        })
        .collect();
    let packets = shown.iter().map(|listed| listed.packets).chain(states.iter().map(|state| state.packets));
    let bytes = shown.iter().map(|listed| listed.bytes).chain(states.iter().map(|state| state.bytes));
    let widths = (width(packets.max()), width(bytes.max()));
    let mut text = String::new();
    for listed in shown {
        rule_line(&mut text, listed, listing, widths);
    }
    if !states.is_empty() {
        text += &format!("## Dynamic rules ({}):\n", states.len());
    }
    for state in states {
        state_line(&mut text, state, listing.counters.then_some(widths));
    }
    text
}

fn rule_line(text: &mut String, listed: &ListedRule<'_>, listing: &Listing, widths: (usize, usize)) {
    if !listed.enabled {
        text.push_str("# DISABLED ");
    }
    *text += &format!("{:05} ", listed.rule.number);
    if listing.counters {
        *text += &format!("{:>w$} {:>v$} ", listed.packets, listed.bytes, w = widths.0, v = widths.1);
    }
    match (listing.times, listed.last) {
        (Some(Times::Seconds), last) => *text += &format!("{:>10} ", last.unwrap_or(0)),
        (Some(Times::Text), Some(seconds)) => *text += &format!("{} ", time::text(seconds)),
        (Some(Times::Text), None) => *text += &" ".repeat(time::WIDTH),
        (None, _) => {}
    }
    if listing.sets {
        *text += &format!("set {} ", listed.rule.set);
    }
    text.push_str(&body_text(listed.rule));
    text.push('\n');
}

fn state_line(text: &mut String, state: &ListedState, widths: Option<(usize, usize)>) {
    *text += &format!("{:05}", state.rule);
    if let Some((packets, bytes)) = widths {
        *text += &format!(
            " {:>packets$} {:>bytes$} ({}s)",
            state.packets,
            state.bytes,
            state.seconds,
            packets = packets,
            bytes = bytes
        );
    }
    let kind = match state.kind {
        StateKind::State => "STATE".into(),
        StateKind::Limit => "LIMIT".into(),
        StateKind::Parent(count) => format!("PARENT {count}"),
    };
    let protocol = match protocol(state.protocol) {
        number if number.starts_with(|c: char| c.is_ascii_digit()) => format!("proto {number}"),
        name => name,
    };
    let ((from, from_port), (to, to_port)) = (state.source, state.destination);
    *text += &format!(" {kind} {protocol} {from} {from_port} <-> {to} {to_port}\n");
}

/// The lines of `table N list`; for `table all list`, the name precedes each table.
pub fn table_lines(tables: &BTreeMap<String, BTreeMap<TableKey, u32>>, table: Option<&str>) -> String {
    let mut text = String::new();
    for (name, rows) in tables.iter().filter(|(name, _)| table.is_none_or(|table| table == *name)) {
        if table.is_none() && !rows.is_empty() {
            text += &format!("---table({name})---\n");
        }
        for (network, value) in rows {
            writeln!(text, "{network} {value}").expect("writing to a string does not fail");
        }
    }
    text
}

/// The lines of `table N info`.
pub fn table_info(tables: &BTreeMap<String, BTreeMap<TableKey, u32>>, table: Option<&str>) -> String {
    let wanted = tables.iter().filter(|(name, _)| table.is_none_or(|table| table == *name));
    let info = |(name, rows): (&String, &BTreeMap<TableKey, u32>)| {
        let kind = rows.keys().next().map_or("addr".into(), TableKey::kind);
        format!(
            "--- table({name}), set(0) ---\n kindex: 0, type: {kind}\n valtype: number\n items: {}\n",
            rows.len()
        )
    };
    wanted.map(info).collect()
}

/// The line of `set show`. Omits set 31, which is always enabled.
pub fn sets_line(disabled: u32) -> String {
    let of = |wanted: bool, word: &str| {
        let sets: Vec<String> =
            (0..31).filter(|set| (disabled >> set & 1 == 1) == wanted).map(|set| format!(" {set}")).collect();
        if sets.is_empty() { String::new() } else { format!("{word}{}", sets.concat()) }
    };
    let lines = [of(true, "disable"), of(false, "enable")];
    let lines: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
    format!("{}\n", lines.join(" "))
}

/// Converts 128 bits to an address; IPv4-mapped addresses become IPv4.
fn address(address: u128) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(address)).to_canonical()
}
