//! Filters `flow` at disciplines of flows.

use super::filter::Which;
use super::managed::Managed;
use super::rules;
use super::tree::{Qdisc, Tree};
use crate::node::{Table, Value};
use crate::problem::Problem;

impl Tree {
    /// A scheduler of flows, with the first of its filters, which decides about all packets.
    pub(super) fn with_flow(&self, qdisc: &Qdisc, managed: &Managed, value: Value) -> Result<Value, Problem> {
        let mut here: Vec<_> = self.filters.iter().filter(|placed| placed.parent == qdisc.handle).collect();
        rules::in_order(&mut here);
        let mut table = match value {
            Value::Table(table) => table,
            name => Table::default().and("type", name),
        };
        if let Some((Which::Flow(flow), span)) =
            here.first().map(|placed| (&placed.filter.which, &placed.span))
        {
            flow.put(managed, &mut table).map_err(|problem| problem.put_at(span))?;
        }
        Ok(Value::Table(table))
    }
}
