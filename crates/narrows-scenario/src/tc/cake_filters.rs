//! Filters of CAKE: a class is a host and a flow, and a priority is a tin (`cake_classify` of the kernel).
//!
//! `classid 3:7` stands for host 3 and flow 7, which take the place of what the packet's addresses and ports would say;
//! 0, and numbers above 1024, say nothing. A priority 1:2 (`skbedit priority`, or `-j CLASSIFY` of iptables), where 1: is the
//! discipline itself, chooses the second tin in the order in which tc prints them. So does a mark that, under the mask of
//! `fwmark` and shifted down to its lowest bit, is 2; marks count before priorities.

use narrows_core::sched::CakeTarget;

use super::Handle;
use super::managed::Managed;
use super::qdisc::Kind;
use super::rules::Rules;
use super::tree::{Qdisc, Tree};
use super::verdict::To;
use crate::dialect::{number, text_of};
use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::value::Match;

/// The tins that `tins` makes, in tc's order.
fn tins(of: &str) -> &'static [&'static str] {
    match of {
        "besteffort" => &["best-effort"],
        "diffserv4" => &["bulk", "best-effort", "video", "voice"],
        "diffserv8" | "precedence" => {
            &["tin-0", "tin-1", "tin-2", "tin-3", "tin-4", "tin-5", "tin-6", "tin-7"]
        }
        _ => &["bulk", "best-effort", "voice"],
    }
}

impl Managed {
    /// The tin that a mark chooses.
    fn tin_of_mark(&self, mark: u32) -> Option<To> {
        let mask = self.marks();
        let number = (mark & mask).checked_shr(mask.trailing_zeros())?;
        let tins = tins(&text_of(self.keys(), "tins")).len();
        (1..=tins as u32).contains(&number).then_some(To::Tin(number as u16)) // at most eight
    }
}

impl Tree {
    /// Which marks choose a tin of the discipline, and which none, in order; nothing if it does not look at marks.
    pub(super) fn marks_of_tins(&self, qdisc: &Qdisc) -> Vec<(Option<Match>, Option<To>)> {
        let Kind::Managed(managed) = &qdisc.kind else { return Vec::new() };
        let marked =
            self.marks.iter().map(|marked| (marked.matches.clone(), managed.tin_of_mark(marked.value)));
        let all: Vec<_> = marked.collect();
        if all.iter().any(|(_, tin)| tin.is_some()) { all } else { Vec::new() }
    }

    /// The value of `scheduler` for CAKE, with its filters.
    pub(super) fn with_cake_filters(&self, qdisc: &Qdisc, value: Value) -> Result<Value, Problem> {
        let rules = Rules::of(self, qdisc)?;
        let mut table = match &value {
            Value::Table(table) => table.clone(),
            _ => Table::default().and("type", text("cake")),
        };
        let tins = tins(&text_of(&table, "tins"));
        let mut list: Vec<Table> = rules
            .rules
            .iter()
            .map(|rule| {
                let mut filter = Table::default();
                if let Some(matches) = &rule.matches {
                    filter.put("match", matches.value());
                }
                put_target(rule.to, tins, &mut filter);
                filter
            })
            .collect();
        if rules.drops {
            list.push(Table::default().and("drop", Value::Boolean(true)));
        }
        let says_nothing =
            |filter: &Table| ["tin", "host", "flow", "drop"].iter().all(|key| filter.get(key).is_none());
        while list.last().is_some_and(says_nothing) {
            list.pop();
        }
        if list.is_empty() {
            return Ok(value);
        }
        let list = list.into_iter().map(|one| Node::new(Value::Table(one))).collect();
        table.put("assign", Value::Array(list));
        Ok(Value::Table(table))
    }
}

fn put_target(to: To, tins: &[&str], filter: &mut Table) {
    match to {
        To::Tin(tin) => {
            let name = usize::from(tin).checked_sub(1).and_then(|tin| tins.get(tin));
            name.into_iter().for_each(|name| filter.put("tin", text(name)));
        }
        To::Flow(Handle { major, minor }) => {
            let numbers = [("host", major), ("flow", minor)];
            let said = numbers.into_iter().filter(|(_, number)| (1..=CakeTarget::MOST).contains(number));
            said.for_each(|(key, of)| filter.put(key, number(of)));
        }
        To::Drop => filter.put("drop", Value::Boolean(true)),
        To::Class(_) | To::Direct | To::Rest => {}
    }
}
