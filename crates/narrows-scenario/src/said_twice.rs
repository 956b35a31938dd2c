//! Settings that a direction's table makes twice.

use crate::netem;
use crate::node::Table;
use crate::problem::Problem;

/// Problems with keys of a direction's table that set the same thing.
pub(crate) fn said_twice(table: &Table) -> Vec<Problem> {
    let mut problems = beside_netem(table);
    let beside = table.key("order");
    let within =
        table.get("delay").and_then(|delay| delay.table("").ok()).and_then(|delay| delay.key("order"));
    if let (Some(beside), Some(within)) = (beside, within) {
        problems.push(
            Problem::new("the packet order is set twice")
                .at(&beside.span)
                .also(&within.span, "here too")
                .help("keep one of the two"),
        );
    }
    problems
}

/// Problems with keys beside `netem` that its options also set: the result would depend on their order.
fn beside_netem(table: &Table) -> Vec<Problem> {
    let Some((words, node)) = table.key("netem").zip(table.get("netem")) else { return Vec::new() };
    let Ok(qdisc) = netem::read(node) else { return Vec::new() };
    let mut problems = Vec::new();
    if qdisc.seed().is_some() {
        problems.push(
            Problem::new("`seed` in one link")
                .at(&node.span)
                .inside("netem")
                .help("a scenario has one seed for all random draws, at the top level: seed = 7"),
        );
    }
    let assignments = qdisc.assignments().unwrap_or_default();
    let both = assignments.iter().find_map(|(key, text)| Some((table.key(key)?, text)));
    problems.extend(both.map(|(key, text)| {
        Problem::new(format!("`{}` with `netem`, which sets {} = {text}", key.name, key.name))
            .at(&key.span)
            .also(&words.span, "here")
            .inside(&key.name)
            .help("remove one of the two")
    }));
    problems
}
