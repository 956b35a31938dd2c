//! Commands of one request, done one after the other on a copy of a link with rules, and what the engine does for them.
//!
//! The engine is told what it would be told if each command came by itself at the same instant, but for what cannot be told
//! apart from that:
//!
//! - Rules come as one change at the end ([`EngineChange::ReplaceRules`]), whose trees are built here.
//! - Of many queues in turn that a pipe is to have, as more and more are configured, the last one comes. (But for one case:
//!   packets that came to different queues at one instant change places when one of these is deleted or gets another mask.
//!   The first few queues in turn come all, so it takes a request with many of those, too.)
//! - So are the entries of a table, where they are many.
//!
//! Only packets could tell, and none moves between two changes at one instant unless a change lets it go: before each that
//! may, all that came before it is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use narrows_core::rules::{PreparedRules, Rule, RuleBook, RuleChange, Table};
use narrows_core::sched::Weight;
use narrows_core::{Change, RulesChange};

use super::RulesLink;
use super::build::RulesSite;
use crate::engine_change::EngineChange;
use crate::ipfw::Command;
use crate::problem::Problem;
use crate::value::Surroundings;

/// More changes than this of one table are told as its new entries.
const MANY_ENTRIES: usize = 64;

/// So many queues of one pipe in turn are told of.
const FEW_QUEUES: usize = 16;

pub(crate) struct Batch<'a> {
    /// As it was.
    pub(crate) before: &'a RulesLink,
    /// The link's.
    pub(crate) name: &'a str,
    pub(crate) site: RulesSite,
    pub(crate) around: Surroundings<'a>,
    /// As it is, but for rules and tables.
    pub(crate) link: RulesLink,
    /// The rules, once they have changed.
    book: Option<Arc<RuleBook>>,
    /// The tables, once they have changed.
    tables: Option<BTreeMap<String, Table>>,
    /// What the engine is told, in this order.
    changes: Vec<EngineChange>,
    /// What it has not been told yet of rules and tables.
    untold: Vec<RuleChange>,
    /// The same of pipes that are to have another queue.
    requeued: BTreeMap<u32, Requeued>,
    /// How many queues in turn the engine has been told of, by pipe.
    told_queues: BTreeMap<u32, usize>,
}

/// A pipe that is to have another queue.
#[derive(Default)]
struct Requeued {
    /// Weights that were others when it was last to have one.
    weights: BTreeMap<u32, Option<Weight>>,
    /// What has changed them since.
    then: Vec<Change>,
}

/// A link with rules after a batch, where it is other than before.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) link: RulesLink,
    /// Nothing where they are as they were.
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

    /// Does what a command asks for. Commands that only print do nothing.
    ///
    /// # Errors
    /// When it asks for what cannot be; then nothing must come of the whole batch.
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
            Command::ResetLog(_)
            | Command::List(_)
            | Command::ListObjects(..)
            | Command::Settings(_)
            | Command::Nothing => Ok(()),
        }
    }

    /// The rules as they are.
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

    /// The tables as they are.
    pub(crate) fn tables(&mut self) -> &mut BTreeMap<String, Table> {
        self.tables.get_or_insert_with(|| self.before.tables.clone())
    }

    /// A table has changed.
    pub(crate) fn tell_of_table(&mut self, change: RuleChange) {
        self.untold.push(change);
    }

    /// What the numbers of pipes and queues stand for has changed.
    pub(crate) fn tell(&mut self, change: RulesChange) {
        self.changes.push(EngineChange::Rules { rules: self.name.into(), change });
    }

    /// A link is new.
    pub(crate) fn tell_of_link(&mut self, link: narrows_core::LinkConfig) {
        self.changes.push(EngineChange::AddLink(Box::new(link)));
    }

    /// The link of a pipe changes.
    pub(crate) fn tell_link(&mut self, link: &str, change: Change) {
        if may_let_go(&change) {
            self.tell_rules();
            self.tell_queues();
        }
        self.changes.push(EngineChange::Link { link: link.into(), change });
    }

    /// A pipe is to have another queue.
    pub(crate) fn requeue(&mut self, pipe: u32) {
        self.requeued.insert(pipe, Requeued::default());
        let told = self.told_queues.entry(pipe).or_default();
        *told += 1;
        if *told <= FEW_QUEUES {
            self.tell_queue(pipe);
        }
    }

    /// A queue of a pipe, which has this place and had this weight, gets another weight.
    pub(crate) fn reweigh(&mut self, pipe: u32, number: u32, before: Option<Weight>, change: Change) {
        if let Some(requeued) = self.requeued.get_mut(&pipe) {
            requeued.weights.entry(number).or_insert(before);
            requeued.then.push(change);
        } else if let Some(link) = self.link.link_of_pipe(self.name, pipe) {
            self.tell_link(&link, change);
        }
    }

    /// Tells of the queue of a pipe, if it is to have another.
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

    /// Tells of rules and tables, one change after the other: what is prepared at the end is for later packets.
    fn tell_rules(&mut self) {
        for change in std::mem::take(&mut self.untold) {
            self.tell(RulesChange::Rules(change));
        }
    }

    /// What came of all commands.
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

    /// Tells of tables what has not been told: each change, or where there are many, what has come of them.
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

/// The table that a change is about.
fn table_of(change: &RuleChange) -> Option<&str> {
    match change {
        RuleChange::Table { table, .. }
        | RuleChange::TableAdd { table, .. }
        | RuleChange::TableDelete { table, .. }
        | RuleChange::TableFlush { table } => Some(table),
        _ => None,
    }
}

/// Whether a change of a link may let packets go at its own instant. These are for packets that come later, and leave the
/// instants of the others.
fn may_let_go(change: &Change) -> bool {
    !matches!(
        change,
        Change::Delay(_) | Change::IngressLoss(_) | Change::QueueBound(_) | Change::Weight { .. }
    )
}
