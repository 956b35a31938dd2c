//! Output of ipfw commands: the current rules, pipes and queues, with the counters of packet threads.

use std::net::{IpAddr, Ipv6Addr};

use narrows_core::rules::{StateKind, StateView};
use narrows_core::{Protocol, Time};
use narrows_scenario::ipfw::{
    self, Command, ListedFlow, ListedRule, ListedState, Listing, NatCommand, Object, SetCommand,
    TableCommand, nat_flow_lines, nat_lines, object_lines, rule_lines, sets_line, setting_lines, table_info,
    table_lines,
};
use narrows_scenario::{RulesLink, Scenario};

use crate::clock::Clock;
use crate::data::sample::{FlowSample, RulesSample};

/// Formats the output of commands on the rules at a link.
pub(super) struct Printer<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) clock: Clock,
    pub(super) link: &'a str,
    pub(super) counted: &'a RulesSample,
}

impl Printer<'_> {
    /// The output of a command; `None` for one that changes something.
    pub(super) fn print(&self, command: &Command) -> Option<String> {
        let rules = self.scenario.links.iter().find(|one| one.name == self.link)?.rules()?;
        Some(match command {
            Command::List(listing) => self.list(listing),
            Command::Sets(SetCommand::Show) => sets_line(rules.disabled_sets),
            Command::ListObjects(object, numbers) => {
                object_lines(&rules.objects(), *object, numbers, |object, number| {
                    self.flows(rules, object, number)
                })
            }
            Command::Nat(NatCommand::Show(which)) => {
                let interface = rules.interface.as_deref().unwrap_or(self.link);
                nat_lines(rules.nats.iter().map(|(number, nat)| (*number, nat)), *which, interface)
            }
            Command::Nat(NatCommand::ShowFlows(which)) => {
                nat_flow_lines(self.counted.nats.iter().copied(), *which)
            }
            Command::Settings(names) => setting_lines(names, rules.one_pass),
            Command::Table(TableCommand::List(table)) => table_lines(&rules.networks(), table.as_deref()),
            Command::Table(TableCommand::Info(table)) => table_info(&rules.networks(), table.as_deref()),
            _ => return None,
        })
    }

    fn list(&self, listing: &Listing) -> String {
        let wall = |at: Time| (self.clock.started() + at.since(Time::ZERO)).nanos() / 1_000_000_000;
        let listed: Vec<_> = self
            .counted
            .rules
            .iter()
            .map(|(rule, counters, enabled)| ListedRule {
                rule,
                packets: counters.packets,
                bytes: counters.bytes,
                last: counters.last.map(wall),
                enabled: *enabled,
            })
            .collect();
        let set_of =
            |number| listed.iter().find(|one| one.rule.number == number).map_or(0, |one| one.rule.set);
        let states: Vec<_> =
            self.counted.states.iter().map(|state| listed_state(state, set_of(state.rule))).collect();
        rule_lines(&listed, &states, listing)
    }

    /// The flows created by a mask, or the only flow once a packet has arrived.
    fn flows(&self, rules: &RulesLink, object: Object, number: u32) -> Vec<ListedFlow> {
        let pipe = match object {
            Object::Queue => rules.queues.get(&number).map(|queue| queue.pipe),
            _ => Some(number),
        };
        let link = pipe.and_then(|pipe| rules.link_of_pipe(self.link, pipe));
        let Some(pipe) = link.and_then(|link| self.counted.pipes.iter().find(|pipe| pipe.link == link))
        else {
            return Vec::new();
        };
        if object == Object::Queue {
            let by_queue =
                rules.queues.get(&number).and_then(|queue| queue.mask).is_some_and(|mask| mask.queue);
            let own = pipe.queues.iter().filter(|(queue, _)| *queue == number);
            return own.map(|(_, flow)| listed_flow(flow, by_queue)).collect();
        }
        let by_queue = rules.pipes.get(&number).and_then(|pipe| pipe.mask).is_some_and(|mask| mask.queue);
        if pipe.instances.is_empty() {
            let only = listed_flow(&pipe.whole, by_queue);
            return if only.packets > 0 { vec![only] } else { Vec::new() };
        }
        pipe.instances.iter().map(|flow| listed_flow(flow, by_queue)).collect()
    }
}

fn listed_flow(of: &FlowSample, by_queue: bool) -> ListedFlow {
    ListedFlow {
        flow: of.flow,
        by_queue,
        packets: of.packets,
        bytes: of.bytes,
        waiting: of.waiting,
        waiting_bytes: of.waiting_bytes,
        dropped: of.dropped,
    }
}

fn listed_state(state: &StateView, set: u8) -> ListedState {
    let address = |bytes: [u8; 16]| match state.network {
        Protocol::Ipv4 | Protocol::Ipv4DontFragment => IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical(),
        _ => IpAddr::V6(Ipv6Addr::from(bytes)),
    };
    ListedState {
        rule: state.rule,
        set,
        packets: state.packets,
        bytes: state.bytes,
        seconds: state.left.nanos() / 1_000_000_000,
        kind: match state.kind {
            StateKind::State => ipfw::StateKind::State,
            StateKind::Limited => ipfw::StateKind::Limit,
            StateKind::Limit { flows } => ipfw::StateKind::Parent(flows),
        },
        protocol: state.protocol,
        source: (address(state.source), state.source_port),
        destination: (address(state.destination), state.destination_port),
    }
}
