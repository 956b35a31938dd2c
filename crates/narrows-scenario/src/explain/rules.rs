//! The effective settings of rules and their pipes and queues.

use narrows_core::Rate;
use narrows_core::rules::{Action, Argument};
use serde::Serialize;

use super::sharing::drop_word;
use super::{LinkExplanation, present_rate};
use crate::ipfw;
use crate::link::Link;
use crate::rules_link::{Pipe, PipeQueue, RulesLink};
use crate::value;

/// The rules of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RulesExplanation {
    /// The link.
    pub name: String,
    /// Source of outgoing packets.
    pub from: String,
    /// Destination of outgoing packets.
    pub to: String,
    /// Name of the interface in the rules.
    pub interface: String,
    /// Whether a packet that leaves a pipe is accepted.
    pub one_pass: bool,
    /// The rules in order.
    pub rules: Vec<RuleExplanation>,
    /// What translators do, in words.
    pub nats: Vec<String>,
    /// The tables, each with its number of entries.
    pub tables: Vec<(String, usize)>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleExplanation {
    /// As `ipfw list` prints it.
    pub rule: String,
    /// In words.
    pub words: String,
    /// Whether its set is disabled, so that it has no effect.
    pub disabled: bool,
}

/// A queue that shares a pipe.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueExplanation {
    /// Its number.
    pub number: u32,
    /// Weight, if the scheduler has weights; with a mask, the weight of each flow.
    pub weight: Option<u32>,
    /// Priority band, if the scheduler has bands.
    pub priority: Option<u32>,
    /// Longest expected packet in bytes, if the scheduler uses it.
    pub longest_bytes: Option<u64>,
    /// What distinguishes its flows, if it has a mask.
    pub mask: Option<String>,
    /// Maximum number of flows due to the mask.
    pub most: Option<u32>,
    /// Bound on the backlog of the queue, or of each flow.
    pub bound: String,
    /// Which packet is dropped when the queue is full.
    pub drop: &'static str,
    /// AQM of the queue.
    pub management: Option<String>,
    /// Share of packets lost before they enter the queue.
    pub loss: Option<f64>,
    /// Its share of the rate in bits per second, or that of each flow, while all queues are backlogged
    /// (those with a mask with one flow).
    pub rate_bps: Option<u64>,
}

/// The rules of a link, if it has any.
pub(super) fn of(link: &Link) -> Option<RulesExplanation> {
    let rules = link.rules()?;
    let one = |rule: &narrows_core::rules::Rule| RuleExplanation {
        rule: ipfw::rule_text(rule),
        words: words(rule),
        disabled: rules.disabled_sets >> rule.set & 1 == 1,
    };
    Some(RulesExplanation {
        name: link.name.clone(),
        from: link.between[0].clone(),
        to: link.between[1].clone(),
        interface: rules.interface.clone().unwrap_or_else(|| link.name.clone()),
        one_pass: rules.one_pass,
        rules: rules.rules.iter().map(one).collect(),
        nats: rules.nats.iter().map(|(number, nat)| ipfw::explained_nat(*number, nat)).collect(),
        tables: rules.tables.iter().map(|(name, table)| (name.clone(), table.iter().len())).collect(),
    })
}

fn words(rule: &narrows_core::rules::Rule) -> String {
    ipfw::Command::Add(rule.clone()).explain()
}

/// Adds the settings that pipes have and plain links do not.
pub(super) fn of_pipes(rules: &RulesLink, links: &mut [LinkExplanation]) {
    for ((number, pipe), link) in rules.pipes.iter().zip(links) {
        link.per_flow = pipe.mask.map(|mask| {
            let Pipe { most, idle, .. } = pipe;
            format!(
                "one link for each {}; at most {most}, each removed after {idle} idle",
                value::mask_words(&mask)
            )
        });
        let sharing = pipe.shares_by();
        let queues: Vec<_> = rules.queues_of(*number).collect();
        if let (Some(sharing), false) = (sharing, queues.is_empty()) {
            let quantum = sharing.quantum().map_or(String::new(), |quantum| format!(", quantum {quantum}"));
            link.shared_by = Some(format!("{}: {}{quantum}", sharing.kind.name(), sharing.kind.words()));
            // The delay of a full queue depends on the other queues.
            (link.small.max_ns, link.full.max_ns) = (None, None);
        }
        link.queues = queues.iter().map(|(number, queue)| one(*number, queue, pipe, &queues)).collect();
    }
}

fn one(number: u32, queue: &PipeQueue, pipe: &Pipe, all: &[(u32, &PipeQueue)]) -> QueueExplanation {
    let sharing = pipe.shares_by();
    let has_weights = sharing.is_some_and(|sharing| sharing.has_weights());
    let waits = queue.queue.unwrap_or(pipe.direction.queue);
    let sum: u64 = all.iter().map(|(_, queue)| u64::from(queue.weight().get())).sum();
    let rate = present_rate(&pipe.direction);
    let has_rate = ![Rate::UNLIMITED, Rate::DOWN].contains(&rate);
    let weight = queue.weight().get();
    let share = u128::from(rate.bits_per_second()) * u128::from(weight) / u128::from(sum.max(1));
    QueueExplanation {
        number,
        weight: has_weights.then_some(weight),
        priority: sharing
            .is_some_and(|sharing| sharing.kind == value::SchedulerKind::Prio)
            .then_some(queue.priority),
        longest_bytes: sharing
            .is_some_and(|sharing| sharing.kind.wants_longest())
            .then(|| queue.longest.unwrap_or(PipeQueue::LONGEST).get()),
        mask: queue.mask.map(|mask| value::mask_words(&mask)),
        most: queue.mask.map(|_| queue.most),
        bound: waits.bound.unwrap_or(pipe.direction.bound()).to_string(),
        drop: drop_word(waits.drop),
        management: waits.policy.words(),
        loss: queue.loss.as_ref().map(value::LossModel::mean),
        // At most the rate.
        rate_bps: (has_weights && has_rate).then_some(share as u64),
    }
}

/// Settings of a link with rules that are probably unintended.
pub(super) fn warnings(link: &Link) -> Vec<String> {
    let Some(rules) = link.rules() else { return Vec::new() };
    let mut all = Vec::new();
    let missing = rules.rules.iter().filter_map(|rule| rules.leads_nowhere(rule).map(|_| rule.number));
    all.extend(missing.map(|rule| {
        format!(
            "rule {rule} leads to a pipe, queue or translator that does not exist: its packets are dropped"
        )
    }));
    let from_table = |queue: bool| {
        rules.rules.iter().any(|rule| match rule.action {
            Action::Pipe(Argument::TableArgument) => !queue,
            Action::Queue(Argument::TableArgument) => queue,
            _ => false,
        })
    };
    let names = |queue: bool, number: u32| {
        rules.rules.iter().any(|rule| match rule.action {
            Action::Pipe(Argument::Number(to)) => !queue && to == number,
            Action::Queue(Argument::Number(to)) => queue && to == number,
            _ => false,
        })
    };
    let unused = |queue: bool, number: u32| !from_table(queue) && !names(queue, number);
    for number in rules.queues.keys().filter(|number| unused(true, **number)) {
        all.push(format!("no rule leads to queue {number}"));
    }
    for number in rules.pipes.keys().filter(|number| unused(false, **number)) {
        if rules.queues_of(*number).next().is_none() {
            all.push(format!("no rule leads to pipe {number}"));
        }
    }
    let of_nats = |number: u32| {
        rules.rules.iter().any(|rule| match rule.action {
            Action::Nat(Argument::Number(to)) => to == number,
            Action::Nat(Argument::TableArgument) | Action::NatGlobal => true,
            _ => false,
        })
    };
    for number in rules.nats.keys().filter(|number| !of_nats(**number)) {
        all.push(format!("no rule leads to translator {number}"));
    }
    for (number, pipe) in &rules.pipes {
        // An unlimited rate never queues packets, so there is nothing to share.
        let waits_never = present_rate(&pipe.direction) == Rate::UNLIMITED;
        if waits_never && rules.queues_of(*number).next().is_some() {
            all.push(format!("pipe {number} has no rate: its queues stay empty"));
        }
    }
    all.into_iter().map(|warning| format!("{}: {warning}", link.name)).collect()
}
