//! Reading `aimd = { … }`.

use narrows_core::Time;

use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::traffic::{AimdConfig, Marks};
use crate::units;

/// RFC 6928.
const WINDOW: u32 = 10;
/// A bound for a mistyped number: a burst of 100 Gbit/s times 100 ms.
const MOST: i64 = 1_000_000;

/// Reads the table under `aimd`; `length`, `start` and `stop` stand beside it.
pub(super) fn read(node: &Node, length: u32, start: Time, stop: Time) -> Result<AimdConfig, Problem> {
    let table = node.table("a table of how it sends, which may be empty: aimd = {}")?;
    table.only(&["ecn", "scalable", "size", "window"])?;
    let size = table.optional("size", |node| match units::size(node)? {
        size if size.get() > 0 => Ok(size),
        _ => Err(node.expected("a size above zero")),
    })?;
    let window = table.optional("window", |node| node.integer("a number of packets", 1..MOST + 1))?;
    let window = window.map_or(WINDOW, |packets| packets as u32);
    Ok(AimdConfig { length, size, start, stop, window, marks: marks(table)? })
}

fn marks(table: &Table) -> Result<Marks, Problem> {
    let ecn = table.optional("ecn", Node::boolean)?;
    match (table.optional("scalable", Node::boolean)?.unwrap_or(false), ecn) {
        (true, Some(false)) => {
            let key = table.key("ecn").map_or(0..0, |key| key.span.clone());
            Err(Problem::new("a scalable sender responds to marks, so that its packets are ECN-capable")
                .at(&key)
                .help("leave `ecn` out, or `scalable`"))
        }
        (true, _) => Ok(Marks::Scalable),
        (false, Some(true)) => Ok(Marks::Classic),
        (false, _) => Ok(Marks::None),
    }
}
