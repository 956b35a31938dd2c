//! What rules did: which packets met them, what became of these, and how often each rule decided.

use std::net::{IpAddr, Ipv6Addr};

use narrows_core::rules::{Exceeded, Rule, RuleCounters, RuleView, StateKind, StateView};
use narrows_core::{Element, Engine, RulesCounters, RulesId, Tally, Time};
use narrows_scenario::ipfw;
use serde::{Deserialize, Serialize};

use crate::info::{RulesInfo, Word};

/// The rules of a link. Out is from the link's first end to its second, in the other way.
///
/// `arrived_out + arrived_in + returned = passed + piped + denied + no_pipe + looped`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesReport {
    /// The engine's name of them: that of the link.
    pub name: String,
    /// Where outgoing packets come from; nothing where that is unknown.
    pub from: Option<String>,
    /// Where they go.
    pub to: Option<String>,
    /// Came to the rules outgoing.
    pub arrived_out: Count,
    /// Came incoming.
    pub arrived_in: Count,
    /// Sent into a pipe or queue.
    pub piped: Count,
    /// Came back from one.
    pub returned: Count,
    /// Passed.
    pub passed: Count,
    /// Dropped by a rule, or by a bound on dynamic rules or calls.
    pub denied: Count,
    /// Dropped because a rule gave them a pipe or queue that there is not.
    pub no_pipe: Count,
    /// Dropped because they had visited as many links and rules as they may.
    pub looped: Count,
    /// Bounds that packets met.
    pub bounds: Bounds,
    /// Each rule, in order; the last is the one that lets pass what no other decides on.
    pub rules: Vec<RuleReport>,
    /// The dynamic rules that are alive, oldest first.
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

/// Bounds of rules that packets met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Packets denied because there were as many dynamic rules as there may be.
    pub full_packets: u64,
    /// Packets denied because a `limit` was reached.
    pub limit_packets: u64,
    /// Packets denied after as many calls as there may be.
    pub calls_packets: u64,
    /// Calls that were passed over, as so many were open.
    pub depth_calls: u64,
    /// Packets that forgot on their way through a pipe that they were called.
    pub forgotten_packets: u64,
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
    /// As `ipfw list` prints it, number included.
    pub rule: String,
    /// Packets on which its action was taken.
    pub packets: u64,
    /// Their bytes from the network header on.
    pub bytes: u64,
    /// When the last one came.
    pub last_ns: Option<u64>,
}

/// A dynamic rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DynamicRule {
    /// The number of the rule that made it.
    pub rule: u16,
    /// `state` of `keep-state`, `limited` of `limit`, and `limit` for what flows have in common that count together.
    pub kind: Word,
    /// How many count together; nothing for a flow.
    pub flows: Option<u32>,
    /// The IP protocol's number.
    pub protocol: u8,
    /// Where the first packet came from.
    pub source: IpAddr,
    /// Its source port.
    pub source_port: u16,
    /// Where it went.
    pub destination: IpAddr,
    /// Its destination port.
    pub destination_port: u16,
    /// Packets that it matched, without the first.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long it lives if no packet comes.
    pub left_ns: u64,
}

impl From<Tally> for Count {
    fn from(Tally { packets, bytes }: Tally) -> Self {
        Self { packets, bytes }
    }
}

/// Rules as they were at an instant, before they are put into words.
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
        let RulesCounters { arrived: [out, incoming], returned, piped, passed, denied, no_pipe, looped } =
            self.counters;
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
            bounds: bounds(self.exceeded),
            rules: self.rules.into_iter().map(rule_report).collect(),
            dynamic_rules: self.states.iter().map(dynamic).collect(),
        }
    }
}

fn bounds(Exceeded { states, depth, calls, forgotten }: Exceeded) -> Bounds {
    Bounds {
        full_packets: states.full,
        limit_packets: states.limit,
        calls_packets: calls,
        depth_calls: depth,
        forgotten_packets: forgotten,
    }
}

fn rule_report((rule, counters, enabled): (Rule, RuleCounters, bool)) -> RuleReport {
    let (number, set) = (rule.number, rule.set);
    // The default rule is in a set of its own, which goes without saying.
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
        left_ns: state.left.nanos(),
    }
}

/// What does not add up in a set of rules.
pub(crate) fn violations<B>(id: RulesId, engine: &Engine<B>) -> Vec<String> {
    let name = engine.element_name(Element::Rules(id));
    let RulesCounters { arrived: [out, incoming], returned, piped, passed, denied, no_pipe, looped } =
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
    let Bounds { full_packets, limit_packets, calls_packets, .. } = bounds(engine.rule_set(id).exceeded());
    let refused = full_packets + limit_packets + calls_packets;
    if refused > denied.packets {
        found.push(format!(
            "rules {name}: {refused} packets were denied by bounds, but {} in all",
            denied.packets
        ));
    }
    found
}
