//! Losses that do not come from a full queue: `"1%"` on the wire, or `{ ingress = "1%", wire = "0.5%" }`.

use narrows_core::Loss as Model;
use narrows_core::model::Independent;

use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::units::Share;

/// Which packets are lost: each with the same probability, independently of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Before the queue.
    pub ingress: Share,
    /// After the transmitter.
    pub wire: Share,
}

impl Loss {
    pub(crate) fn read(node: &Node) -> Result<Self, Problem> {
        let Value::Table(table) = &node.value else {
            return Ok(Self { wire: Share::read(node)?, ingress: Share::ZERO });
        };
        table.only(&["ingress", "wire"])?;
        let share = |key| table.optional(key, Share::read).map(Option::unwrap_or_default);
        Ok(Self { ingress: share("ingress")?, wire: share("wire")? })
    }

    /// The engine's model of a loss, if there is one.
    pub(crate) fn build(share: Share) -> Option<Model> {
        (!share.is_zero()).then(|| Model::of(Independent(share.probability())))
    }

    pub(crate) fn text(self) -> String {
        if self.ingress.is_zero() {
            return format!("\"{}\"", self.wire);
        }
        format!("{{ ingress = \"{}\", wire = \"{}\" }}", self.ingress, self.wire)
    }
}
