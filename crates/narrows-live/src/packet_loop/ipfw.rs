//! ipfw's commands at work: what they change, and what they print.

use std::net::{IpAddr, Ipv6Addr};

use narrows_core::classify::Flow;
use narrows_core::rules::{StateKind, StateView};
use narrows_core::{Element, LinkView, Protocol, Time};
use narrows_scenario::ipfw::{
    self, Command, ListedFlow, ListedRule, ListedState, Listing, Object, SetCommand, TableCommand,
    object_lines, rule_lines, sets_line, table_info, table_lines,
};
use narrows_scenario::{RulesLink, ScenarioError};

use super::{LoopError, PacketLoop};

impl PacketLoop {
    /// Does what commands say at one instant: all of it, or nothing where one is wrong. Returns what they print, which is how
    /// things are after all of them; nothing where another thread has the rules.
    pub(super) fn ipfw(
        &mut self,
        at: Time,
        link: Option<&str>,
        file: &str,
        commands: &str,
    ) -> Result<Result<Option<String>, ScenarioError>, LoopError> {
        let at = at.max(self.engine.now());
        let commands = match self.scenario.ipfw_commands(link, file, commands) {
            Ok(commands) => commands,
            Err(error) => return Ok(Err(error)),
        };
        let (mut scenario, mut changes, mut texts) = (self.scenario.clone(), Vec::new(), Vec::new());
        for (number, (command, text)) in commands.commands.iter().enumerate() {
            if prints(command) {
                continue;
            }
            match scenario.ipfw_at(at, Some(&commands.link), command) {
                Ok(more) => changes.extend(more),
                Err(error) => return Ok(Err(commands.refused(number, error))),
            }
            texts.push(format!("ipfw {} {text}", commands.link));
        }
        if !texts.is_empty() {
            self.scenario = scenario;
            if let Some(recorder) = &mut self.recorder {
                recorder.files(&self.scenario)?;
                recorder.changed(at, &texts)?;
            }
            self.note(|| format!("changed at {at}: {}", texts.join(", ")));
        }
        for change in changes {
            if let Err(error) = change.make(&mut self.engine, at) {
                // The scenario was in step with the engine, which takes what the scenario takes.
                self.note(|| format!("a change at {at} was left out: {error}"));
            }
        }
        if let Some(capture) = &mut self.capture {
            capture.renamed(&self.engine);
        }
        self.update_feeds();
        let rules = self.engine.rules_of(&commands.link);
        if rules.is_some_and(|rules| !self.share.has_element(Element::Rules(rules))) {
            return Ok(Ok(None));
        }
        let printed =
            commands.commands.iter().filter_map(|(command, _)| self.print(command, &commands.link, at));
        Ok(Ok(Some(printed.collect())))
    }

    /// What a command prints; nothing for one that does something.
    fn print(&self, command: &Command, link: &str, now: Time) -> Option<String> {
        let rules = self.scenario.links.iter().find(|one| one.name == link)?.rules()?;
        Some(match command {
            Command::List(listing) => self.list(link, listing, now),
            Command::Sets(SetCommand::Show) => sets_line(rules.disabled_sets),
            Command::ListObjects(object, numbers) => {
                object_lines(&rules.objects(), *object, numbers, |object, number| {
                    self.flows(rules, link, object, number, now)
                })
            }
            Command::Table(TableCommand::List(table)) => table_lines(&rules.networks(), table.as_deref()),
            Command::Table(TableCommand::Info(table)) => table_info(&rules.networks(), table.as_deref()),
            _ => return None,
        })
    }

    fn list(&self, link: &str, listing: &Listing, now: Time) -> String {
        let Some(rules) = self.engine.rules_of(link) else { return String::new() };
        let set = self.engine.rule_set(rules);
        let wall = |at: Time| (self.clock.started() + at.since(Time::ZERO)).nanos() / 1_000_000_000;
        let listed: Vec<_> = set
            .rules()
            .map(|view| ListedRule {
                rule: view.rule,
                packets: view.counters.packets,
                bytes: view.counters.bytes,
                last: view.counters.last.map(wall),
                enabled: view.enabled,
            })
            .collect();
        let set_of =
            |number| listed.iter().find(|one| one.rule.number == number).map_or(0, |one| one.rule.set);
        let states: Vec<_> =
            set.states(now).iter().map(|state| listed_state(state, set_of(state.rule))).collect();
        rule_lines(&listed, &states, listing)
    }

    /// The flows that a mask has made, or the only one once a packet has come.
    fn flows(
        &self,
        rules: &RulesLink,
        link: &str,
        object: Object,
        number: u32,
        now: Time,
    ) -> Vec<ListedFlow> {
        let pipe = match object {
            Object::Queue => rules.queues.get(&number).map(|queue| queue.pipe),
            _ => Some(number),
        };
        let engine_link = pipe.and_then(|pipe| rules.link_of_pipe(link, pipe));
        let Some(view) = engine_link.and_then(|name| self.engine.link(&name)).map(|id| self.engine.view(id))
        else {
            return Vec::new();
        };
        if object == Object::Queue {
            let own = view.masked_flows(now).into_iter().filter(|flow| flow.number == number);
            let by_queue =
                rules.queues.get(&number).and_then(|queue| queue.mask).is_some_and(|mask| mask.queue);
            let listed = own.map(|flow| ListedFlow {
                flow: flow.flow.unwrap_or_default(),
                by_queue,
                packets: flow.arrived.packets,
                bytes: flow.arrived.bytes,
                waiting: flow.backlog.packets,
                waiting_bytes: flow.backlog.bytes,
                dropped: flow.dropped.packets,
            });
            return listed.collect();
        }
        let by_queue = rules.pipes.get(&number).and_then(|pipe| pipe.mask).is_some_and(|mask| mask.queue);
        let instances = view.instances(now);
        if instances.is_empty() {
            let only = listed_flow(Flow::default(), by_queue, &view);
            return if only.packets > 0 { vec![only] } else { Vec::new() };
        }
        instances.iter().map(|instance| listed_flow(instance.flow, by_queue, &instance.link)).collect()
    }
}

/// Whether a command prints something and changes nothing.
fn prints(command: &Command) -> bool {
    matches!(
        command,
        Command::List(_)
            | Command::Sets(SetCommand::Show)
            | Command::ListObjects(..)
            | Command::Table(TableCommand::List(_) | TableCommand::Info(_))
    )
}

fn listed_flow(flow: Flow, by_queue: bool, view: &LinkView<'_>) -> ListedFlow {
    let (counters, backlog) = (view.counters(), view.backlog());
    ListedFlow {
        flow,
        by_queue,
        packets: counters.iter().map(|lane| lane.arrived.packets).sum(),
        bytes: counters.iter().map(|lane| lane.arrived.bytes).sum(),
        waiting: backlog.packets,
        waiting_bytes: backlog.bytes,
        dropped: counters.iter().map(|lane| lane.dropped_in_all().packets).sum(),
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
