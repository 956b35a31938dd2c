//! Applies a preset to a link. The keys of the link and of its directions override it.

use std::collections::BTreeSet;

use super::{Link, Medium};
use crate::direction::Direction;
use crate::netem;
use crate::node::Node;
use crate::preset::Preset;
use crate::problem::Problem;
use crate::surroundings::Surroundings;
use crate::trace::Then;
use crate::way::Way;

/// The keys for one direction that stand beside a preset and override it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside(BTreeSet<String>);

impl Beside {
    /// Adds a key; for NetEm options, adds the keys that they set.
    pub(crate) fn add(&mut self, key: &str, node: &Node) {
        self.0.insert(key.into());
        if key == "netem"
            && let Ok(qdisc) = netem::read(node)
        {
            let means = qdisc.assignments().unwrap_or_default();
            self.0.extend(means.into_iter().map(|(key, _)| key.to_string()));
        }
    }

    fn has(&self, key: &str) -> bool {
        self.0.contains(key)
    }

    /// The columns of a trace that these keys replace.
    fn columns(&self) -> Vec<&'static str> {
        let keys = [
            ("rate", "rate"),
            ("delay", "delay"),
            ("jitter", "delay"),
            ("loss", "loss"),
            ("duplicate", "duplicate"),
            ("queue", "queue"),
        ];
        keys.into_iter().filter(|(key, _)| self.has(key)).map(|(_, column)| column).collect()
    }
}

/// Applies the preset that a value names, except for the keys beside it.
pub(crate) fn apply(
    link: &mut Link,
    node: &Node,
    beside: impl Fn(Way) -> Beside,
    around: Surroundings<'_>,
) -> Result<(), Problem> {
    let preset = Preset::read(node)?;
    if !matches!(link.medium, Medium::Duplex { .. }) {
        return Err(Problem::new("a shared medium has no preset")
            .at(&node.span)
            .help("a preset has two directions: remove `shared`, or write the keys of one medium"));
    }
    for way in [Way::Up, Way::Down] {
        let beside = beside(way);
        // Exact NetEm replaces everything else in the direction.
        if beside.has("exact-netem") {
            continue;
        }
        for direction in link.directions_mut(Some(way)) {
            for (key, value) in preset.table(way).iter().filter(|(key, _)| !beside.has(&key.name)) {
                direction.set(&key.name, value, around).map_err(|problem| problem.put_at(&node.span))?;
            }
            direction.trace = direction.trace.take().and_then(|trace| trace.without(&beside.columns()));
        }
    }
    Ok(())
}

/// Removes settings of a preset that a trace beside it supplies.
pub(crate) fn settle(direction: &mut Direction, beside: &Beside) {
    let Some(trace) = direction.trace.as_ref().filter(|used| beside.has("trace") && used.then != Then::End)
    else {
        return;
    };
    let columns = trace.trace.columns();
    let plain = Direction::default();
    for column in columns.into_iter().filter(|column| !beside.columns().contains(column)) {
        match column {
            "rate" => direction.rate = plain.rate,
            "delay" => direction.delay = None,
            "loss" => direction.loss.wire = None,
            "duplicate" => direction.duplicate = plain.duplicate,
            _ => direction.queue.bound = None,
        }
    }
}
