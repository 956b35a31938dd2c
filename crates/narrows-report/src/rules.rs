//! Counters of rules: packets that reached them, their fate, and how often each rule decided.

use std::net::{IpAddr, Ipv6Addr};

use narrows_core::rules::{Exceeded, Rule, RuleCounters, RuleView, StateKind, StateView};
use narrows_core::{Element, Engine, RulesCounters, RulesId, Tally, Time};
use narrows_scenario::ipfw;
use serde::{Deserialize, Serialize};

use crate::info::{RulesInfo, Word};

/// The rules of a link. "Out" is the direction from the link's first end to its second, "in" the other one.
///
/// `arrived_out + arrived_in + returned = passed + piped + denied + no_pipe + looped`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesReport {
    /// The engine's name of the rules: the link's name.
    pub name: String,
    /// The host where outgoing packets come from; `None` if unknown.
    pub from: Option<String>,
    /// The host where they go.
    pub to: Option<String>,
    /// Outgoing packets that arrived at the rules.
    pub arrived_out: Count,
    /// Incoming packets that arrived at the rules.
    pub arrived_in: Count,
    /// Packets sent into a pipe or queue.
    pub piped: Count,
    /// Packets that returned from a pipe or queue.
    pub returned: Count,
    /// Packets that passed.
    pub passed: Count,
    /// Packets dropped by a rule, or by a limit on dynamic rules or calls.
    pub denied: Count,
    /// Packets dropped because a rule named a pipe or queue that does not exist.
    pub no_pipe: Count,
    /// Packets dropped because they had visited the maximum number of links and rules.
    pub looped: Count,
    /// Packets whose addresses or ports a translator has changed. They are in the other counts, too.
    #[serde(default)]
    pub translated: Count,
    /// Limits that packets exceeded.
    pub bounds: Bounds,
    /// Each rule, in order; the last is the default rule, which passes everything.
    pub rules: Vec<RuleReport>,
    /// The active dynamic rules, oldest first.
    pub dynamic_rules: Vec<DynamicRule>,
}

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes from the network header on.
    pub bytes: u64,
}

/// Limits of rules that packets exceeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Packets denied because the maximum number of dynamic rules existed.
    pub full_packets: u64,
    /// Packets denied because a `limit` was reached.
    pub limit_packets: u64,
    /// Packets denied after the maximum number of calls.
    pub calls_packets: u64,
    /// Calls that were skipped because too many were open.
    pub depth_calls: u64,
    /// Packets whose call stack was lost while they were in a pipe.
    pub forgotten_packets: u64,
    /// Packets denied because a translator had no port or no room left for their flow.
    #[serde(default)]
    pub nat_packets: u64,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleReport {
    /// Its number.
    pub number: u16,
    /// Its set.
    pub set: u8,
    /// Whether its set is enabled.
    pub enabled: bool,
    /// The rule as `ipfw list` prints it, number included.
    pub rule: String,
    /// Packets to which its action was applied.
    pub packets: u64,
    /// Their bytes from the network header on.
    pub bytes: u64,
    /// When the last one arrived.
    pub last_ns: Option<u64>,
}

/// A dynamic rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DynamicRule {
    /// The number of the rule that created it.
    pub rule: u16,
    /// `state` for `keep-state`, `limited` for `limit`, and `limit` for the entry that flows counted together share.
    pub kind: Word,
    /// How many flows count together; `None` for a flow.
    pub flows: Option<u32>,
    /// The IP protocol number.
    pub protocol: u8,
    /// The source address of the first packet.
    pub source: IpAddr,
    /// Its source port.
    pub source_port: u16,
    /// Its destination address.
    pub destination: IpAddr,
    /// Its destination port.
    pub destination_port: u16,
    /// Packets that it matched, not counting the first.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time until it expires if no packet arrives.
    #[serde(alias = "left_ns")]
    pub remaining_ns: u64,
}

impl From<Tally> for Count {
    fn from(Tally { packets, bytes }: Tally) -> Self {
        Self { packets, bytes }
    }
}

/// Counters of rules at an instant, before formatting.
#[derive(Clone, Debug)]
pub(crate) struct RuleCounts {
    name: String,
    counters: RulesCounters,
    exceeded: Exceeded,
    rules: Vec<(Rule, RuleCounters, bool)>,
    states: Vec<StateView>,
}

impl RuleCounts {
    pub(crate) fn of<B>(id: RulesId, engine: &Engine<B>, now: Time) -> Self {
        let set = engine.rule_set(id);
        let rule = |view: RuleView<'_>| (view.rule.clone(), view.counters, view.enabled);
        Self {
            name: engine.element_name(Element::Rules(id)).to_owned(),
            counters: engine.rules_counters(id),
            exceeded: set.exceeded(),
            rules: set.rules().map(rule).collect(),
            states: set.states(now),
        }
    }

    pub(crate) fn report(self, info: &[RulesInfo]) -> RulesReport {
        let ends = info.iter().find(|info| info.name == self.name);
        let RulesCounters {
            arrived: [out, incoming],
            returned,
            piped,
            passed,
            denied,
            translated,
            no_pipe,
            looped,
        } = self.counters;
        RulesReport {
            from: ends.map(|info| info.from.clone()),
            to: ends.map(|info| info.to.clone()),
            name: self.name,
            arrived_out: out.into(),
            arrived_in: incoming.into(),
            piped: piped.into(),
            returned: returned.into(),
            passed: passed.into(),
            denied: denied.into(),
            no_pipe: no_pipe.into(),
            looped: looped.into(),
            translated: translated.into(),
            bounds: bounds(self.exceeded),
            rules: self.rules.into_iter().map(rule_report).collect(),
            dynamic_rules: self.states.iter().map(dynamic).collect(),
        }
    }
}

fn bounds(Exceeded { states, depth, calls, nat, forgotten }: Exceeded) -> Bounds {
    Bounds {
        full_packets: states.full,
        limit_packets: states.limit,
        calls_packets: calls,
        depth_calls: depth,
        forgotten_packets: forgotten,
        nat_packets: nat,
    }
}

fn rule_report((rule, counters, enabled): (Rule, RuleCounters, bool)) -> RuleReport {
    let (number, set) = (rule.number, rule.set);
    // The default rule is in a set of its own, which is not shown.
    let shown = if number == u16::MAX { Rule { set: 0, ..rule } } else { rule };
    RuleReport {
        number,
        set,
        enabled,
        rule: ipfw::rule_text(&shown),
        packets: counters.packets,
        bytes: counters.bytes,
        last_ns: counters.last.map(Time::nanos),
    }
}

fn dynamic(state: &StateView) -> DynamicRule {
    let (kind, flows) = match state.kind {
        StateKind::State => ("state", None),
        StateKind::Limited => ("limited", None),
        StateKind::Limit { flows } => ("limit", Some(flows)),
    };
    let address = |bytes: [u8; 16]| Ipv6Addr::from(bytes).to_canonical();
    DynamicRule {
        rule: state.rule,
        kind: kind.into(),
        flows,
        protocol: state.protocol,
        source: address(state.source),
        source_port: state.source_port,
        destination: address(state.destination),
        destination_port: state.destination_port,
        packets: state.packets,
        bytes: state.bytes,
        remaining_ns: state.left.nanos(),
    }
}

/// Conservation violations in a rule set.
pub(crate) fn violations<B>(id: RulesId, engine: &Engine<B>) -> Vec<String> {
    let name = engine.element_name(Element::Rules(id));
    let RulesCounters { arrived: [out, incoming], returned, piped, passed, denied, no_pipe, looped, .. } =
        engine.rules_counters(id);
    let mut found = Vec::new();
    let came = [out, incoming, returned].map(|tally| tally.packets);
    let went = [passed, piped, denied, no_pipe, looped].map(|tally| tally.packets);
    if came.iter().sum::<u64>() != went.iter().sum::<u64>() {
        let ([out, incoming, returned], [passed, piped, denied, no_pipe, looped]) = (came, went);
        found.push(format!(
            "rules {name}: {out} outgoing, {incoming} incoming and {returned} from pipes are not {passed} passed, \
             {piped} into pipes, {denied} denied, {no_pipe} without a pipe and {looped} in loops"
        ));
    }
    let Bounds { full_packets, limit_packets, calls_packets, nat_packets, .. } =
        bounds(engine.rule_set(id).exceeded());
    let refused = full_packets + limit_packets + calls_packets + nat_packets;
    if refused > denied.packets {
        found.push(format!(
            "rules {name}: {refused} packets were denied by bounds, but {} in all",
            denied.packets
        ));
    }
    found
}
