//! Executes the commands of one request in order on a copy of a link with rules, and collects the changes
//! for the engine.
//!
//! The engine gets the same changes as if each command came alone at the same instant, with simplifications
//! that do not affect the result:
//!
//! - Rules are one change at the end ([`EngineChange::ReplaceRules`]), whose trees are built here.
//! - When a pipe gets many queues in turn, as more and more are configured, the engine gets the last one
//!   only. (One case differs: packets that arrived at different queues at one instant change places if one
//!   of these queues is deleted or gets another mask. As the first few queues in turn are all sent, only a
//!   request with many such changes is affected.)
//! - The same applies to the entries of a table, if there are many.
//!
//! Only packets could reveal a difference, and no packet moves between two changes at one instant unless a
//! change releases it. So all pending changes are sent before each change that may release packets.

use std::collections::BTreeMap;
use std::sync::Arc;

use narrows_core::rules::{PreparedRules, Rule, RuleBook, RuleChange, Table};
use narrows_core::sched::Weight;
use narrows_core::{Change, RulesChange};

use super::RulesLink;
use super::build::RulesSite;
use crate::engine_change::EngineChange;
use crate::ipfw::{self, Command};
use crate::problem::Problem;
use crate::value::Surroundings;

/// Maximum number of single changes of a table; beyond it, the engine gets the table's new entries.
const MANY_ENTRIES: usize = 64;

/// Number of successive queues of one pipe that are all sent to the engine.
const FEW_QUEUES: usize = 16;

pub(crate) struct Batch<'a> {
    /// The link before the batch.
    pub(crate) before: &'a RulesLink,
    /// Name of the link.
    pub(crate) name: &'a str,
    pub(crate) site: RulesSite,
    pub(crate) around: Surroundings<'a>,
    /// The link so far, except its rules and tables.
    pub(crate) link: RulesLink,
    /// The rules, once changed.
    book: Option<Arc<RuleBook>>,
    /// The tables, once changed.
    tables: Option<BTreeMap<String, Table>>,
    /// The changes for the engine, in order.
    changes: Vec<EngineChange>,
    /// Pending changes of rules and tables.
    untold: Vec<RuleChange>,
    /// Pipes with a pending new queue.
    requeued: BTreeMap<u32, Requeued>,
    /// Number of successive queues sent to the engine, by pipe.
    told_queues: BTreeMap<u32, usize>,
}

/// A pipe with a pending new queue.
#[derive(Default)]
struct Requeued {
    /// Weights that have changed since its last queue.
    weights: BTreeMap<u32, Option<Weight>>,
    /// Changes since then.
    then: Vec<Change>,
}

/// The parts of a link with rules that differ after a batch.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) link: RulesLink,
    /// `None` if unchanged.
    pub(crate) rules: Option<Vec<Rule>>,
    pub(crate) tables: Option<BTreeMap<String, Table>>,
    pub(crate) changes: Vec<EngineChange>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(
        before: &'a RulesLink,
        name: &'a str,
        site: RulesSite,
        around: Surroundings<'a>,
    ) -> Self {
        let link = RulesLink {
            interface: before.interface.clone(),
            one_pass: before.one_pass,
            disabled_sets: before.disabled_sets,
            rules: Vec::new(),
            tables: BTreeMap::new(),
            nats: before.nats.clone(),
            pipes: before.pipes.clone(),
            queues: before.queues.clone(),
            memory: before.memory.clone(),
        };
        Self {
            before,
            name,
            site,
            around,
            link,
            book: None,
            tables: None,
            changes: Vec::new(),
            untold: Vec::new(),
            requeued: BTreeMap::new(),
            told_queues: BTreeMap::new(),
        }
    }

    /// Executes a command. Commands that only print have no effect.
    ///
    /// # Errors
    /// If the command cannot be executed; the caller must then discard the whole batch.
    pub(crate) fn command(&mut self, command: &Command) -> Result<(), Problem> {
        match command {
            Command::Add(rule) => self.add(rule.clone()),
            Command::Delete(rules) => self.delete(rules),
            Command::DeleteSets(sets) => sets.iter().try_for_each(|set| self.delete_set(*set)),
            Command::Flush(Some(set)) => self.delete_set(*set),
            Command::Flush(None) => self.change_rules(RuleChange::Flush),
            Command::Zero(rules) => self.zero(rules),
            Command::Sets(change) => self.change_sets(*change),
            Command::Table(change) => self.change_table(change),
            Command::Nat(command) => self.change_nat(command),
            Command::Configure(config) => self.configure(config),
            Command::DeleteObjects(object, numbers) => {
                numbers.iter().try_for_each(|numbers| self.delete_objects(*object, numbers))
            }
            Command::FlushObjects => {
                self.flush_objects();
                Ok(())
            }
            Command::OnePass(one_pass) => {
                if self.link.one_pass != *one_pass {
                    self.link.one_pass = *one_pass;
                    self.tell(RulesChange::OnePass(*one_pass));
                }
                Ok(())
            }
            Command::Firewall(false) => Err(ipfw::disabled()),
            Command::Sleep(_) => Err(Problem::new("`sleep` among commands for a run")
                .help("all commands of a file take effect at once: use one file for each step")),
            Command::ResetLog(_)
            | Command::List(_)
            | Command::ListObjects(..)
            | Command::Settings(_)
            | Command::Firewall(true)
            | Command::Nothing => Ok(()),
        }
    }

    /// The rules so far.
    pub(crate) fn book(&mut self) -> Result<&mut RuleBook, Problem> {
        if self.book.is_none() {
            let known = self.before.memory.book.clone();
            let made = || RuleBook::new(self.site.seed, self.name, &self.before.rules_alone(&self.site));
            self.book = Some(match known {
                Some(book) => book,
                None => Arc::new(made().map_err(|error| Problem::new(error.to_string()))?),
            });
        }
        self.book.as_mut().map(Arc::make_mut).ok_or_else(|| Problem::new("there are no rules"))
    }

    /// Changes the rules.
    pub(crate) fn change_rules(&mut self, change: RuleChange) -> Result<(), Problem> {
        self.book()?.change(change.clone()).map_err(|error| Problem::new(error.to_string()))?;
        self.untold.push(change);
        Ok(())
    }

    /// The tables so far.
    pub(crate) fn tables(&mut self) -> &mut BTreeMap<String, Table> {
        self.tables.get_or_insert_with(|| self.before.tables.clone())
    }

    /// Records a change of a table.
    pub(crate) fn tell_of_table(&mut self, change: RuleChange) {
        self.untold.push(change);
    }

    /// Records that the number of a pipe or queue has a new target.
    pub(crate) fn tell(&mut self, change: RulesChange) {
        self.changes.push(EngineChange::Rules { rules: self.name.into(), change });
    }

    /// Records a new link.
    pub(crate) fn tell_of_link(&mut self, link: narrows_core::LinkConfig) {
        self.changes.push(EngineChange::AddLink(Box::new(link)));
    }

    /// Records a change of a pipe's link.
    pub(crate) fn tell_link(&mut self, link: &str, change: Change) {
        if may_let_go(&change) {
            self.tell_rules();
            self.tell_queues();
        }
        self.changes.push(EngineChange::Link { link: link.into(), change });
    }

    /// Marks a pipe for a new queue.
    pub(crate) fn requeue(&mut self, pipe: u32) {
        self.requeued.insert(pipe, Requeued::default());
        let told = self.told_queues.entry(pipe).or_default();
        *told += 1;
        if *told <= FEW_QUEUES {
            self.tell_queue(pipe);
        }
    }

    /// Records a new weight for a queue of a pipe, which has this place and had this weight.
    pub(crate) fn reweigh(&mut self, pipe: u32, number: u32, before: Option<Weight>, change: Change) {
        if let Some(requeued) = self.requeued.get_mut(&pipe) {
            requeued.weights.entry(number).or_insert(before);
            requeued.then.push(change);
        } else if let Some(link) = self.link.link_of_pipe(self.name, pipe) {
            self.tell_link(&link, change);
        }
    }

    /// Sends the pending new queue of a pipe, if any.
    pub(crate) fn tell_queue(&mut self, pipe: u32) {
        let Some(requeued) = self.requeued.remove(&pipe) else { return };
        let Some(mut plan) = self.link.plan(self.name, pipe) else { return };
        for (number, queue) in &mut plan.sets {
            if let Some(weight) = requeued.weights.get(number) {
                queue.weight = *weight;
            }
        }
        let queue = Change::Queue(plan.queue(&self.site));
        for change in std::iter::once(queue).chain(requeued.then) {
            self.changes.push(EngineChange::Link { link: plan.name.clone(), change });
        }
    }

    fn tell_queues(&mut self) {
        while let Some(pipe) = self.requeued.keys().next().copied() {
            self.tell_queue(pipe);
        }
    }

    /// Sends pending changes of rules and tables one by one, because the rules prepared at the end apply to
    /// later packets only.
    fn tell_rules(&mut self) {
        for change in std::mem::take(&mut self.untold) {
            self.tell(RulesChange::Rules(change));
        }
    }

    /// The result of all commands.
    pub(crate) fn finish(mut self) -> Done {
        self.tell_queues();
        self.tell_tables();
        let rules = self.book.take().map(|book| {
            let (rules, with) = (self.name.into(), Box::new(PreparedRules::new(&book)));
            self.changes.push(EngineChange::ReplaceRules { rules, with });
            self.link.disabled_sets = book.disabled_sets();
            let count = book.rules().len() - 1; // but for the default rule
            let rules = book.rules().take(count).cloned().collect();
            self.link.memory.book = Some(book);
            rules
        });
        Done { rules, tables: self.tables, changes: self.changes, link: self.link }
    }

    /// Sends pending changes of tables: single changes, or the new entries if there are many.
    fn tell_tables(&mut self) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for table in self.untold.iter().filter_map(table_of) {
            *counts.entry(table.into()).or_default() += 1;
        }
        for change in std::mem::take(&mut self.untold) {
            let Some(table) = table_of(&change) else { continue };
            if counts.get(table).is_some_and(|count| *count <= MANY_ENTRIES) {
                self.tell(RulesChange::Rules(change));
            }
        }
        for (table, _) in counts.into_iter().filter(|(_, count)| *count > MANY_ENTRIES) {
            let entries = Box::new(self.tables().get(&table).cloned().unwrap_or_default());
            self.tell(RulesChange::Rules(RuleChange::Table { table, entries }));
        }
    }
}

/// The table of a change.
fn table_of(change: &RuleChange) -> Option<&str> {
    match change {
        RuleChange::Table { table, .. }
        | RuleChange::TableAdd { table, .. }
        | RuleChange::TableDelete { table, .. }
        | RuleChange::FlowAdd { table, .. }
        | RuleChange::FlowDelete { table, .. }
        | RuleChange::TableFlush { table } => Some(table),
        _ => None,
    }
}

/// Whether a change of a link may release packets at its own instant. Other changes affect later packets
/// only.
fn may_let_go(change: &Change) -> bool {
    !matches!(
        change,
        Change::Delay(_) | Change::IngressLoss(_) | Change::QueueBound(_) | Change::Weight { .. }
    )
}
