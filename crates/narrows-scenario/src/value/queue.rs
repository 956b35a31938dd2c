//! Queues: `"13 packets"`, `"64kB"`, `"default"`, or `{ bound = "13 packets", drop = "head" }`.

use narrows_core::queue::{self, Bound, DropAt, Fifo};

use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::units;

/// Where packets wait for the transmitter: first in, first out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// How much may wait; nothing for the default.
    pub bound: Option<Bound>,
    /// Which packet goes when it is full.
    pub drop: DropAt,
}

const DROPS: &[(&str, DropAt)] = &[("tail", DropAt::Tail), ("head", DropAt::Head)];

impl Queue {
    pub(crate) fn read(node: &Node) -> Result<Self, Problem> {
        let Value::Table(table) = &node.value else {
            return Ok(Self { bound: Self::read_bound(node)?, drop: DropAt::Tail });
        };
        table.only(&["bound", "drop"])?;
        Ok(Self {
            bound: table.optional("bound", Self::read_bound)?.flatten(),
            drop: table.optional("drop", Self::read_drop)?.unwrap_or_default(),
        })
    }

    pub(crate) fn read_bound(node: &Node) -> Result<Option<Bound>, Problem> {
        match &node.value {
            Value::String(text) if text.trim() == "default" => Ok(None),
            _ => units::bound(node).map(Some),
        }
    }

    pub(crate) fn read_drop(node: &Node) -> Result<DropAt, Problem> {
        node.choice("place to drop", DROPS)
    }

    /// The engine's queue. `default` is the bound where none is given.
    pub(crate) fn build(self, default: Bound) -> Box<dyn queue::Queue> {
        Box::new(Fifo::new(self.bound.unwrap_or(default), self.drop))
    }

    pub(crate) fn text(self) -> String {
        let bound = self.bound.map_or("default".into(), |bound| bound.to_string());
        match self.drop {
            DropAt::Tail => format!("\"{bound}\""),
            DropAt::Head => format!("{{ bound = \"{bound}\", drop = \"head\" }}"),
        }
    }
}
