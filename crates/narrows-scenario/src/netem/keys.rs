//! What the options mean as keys of a link's direction, the double queue, and the way back: what the keys of a direction
//! are in NetEm's words, for `tc qdisc show`.
//!
//! A link need not have been made by these words, and what is in force is nowhere kept but in its keys: whatever changed
//! them, a file, a timeline, `narrows set` or `narrows tc`, the words that are shown mean what the link does.

use narrows_core::Duration;

use super::options::{Chance, DEFAULT_LIMIT, Netem};
use super::row::{Around, InReading, Key};
use super::{FedDelay, Kind, Qdisc, chance, delay, limit, loss, rate, slot};
use crate::ScenarioError;
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::units::Share;

/// A key of a direction, and its value as it stands in a file.
pub type Assignment = (&'static str, String);

const KEYS: &[Key] = &[
    rate::RATE_KEY,
    rate::OVERHEAD,
    limit::QUEUE,
    limit::LINE_LIMIT,
    delay::DELAY_KEY,
    delay::JITTER,
    delay::ORDER,
    loss::LOSS_KEY,
    chance::DUPLICATE_KEY,
    chance::CORRUPT_KEY,
    chance::REORDER_KEY,
    slot::SLOTS,
    Key::unrepresentable("trace", "\"none\""),
    Key::unrepresentable("exact-netem", "\"none\""),
    Key::unrepresentable("scheduler", "\"none\""),
];

impl Netem {
    /// The keys of a direction that say the same, and their values; what has no effect is left out.
    ///
    /// # Errors
    /// When a scenario cannot say it: cells that lose bytes on the wire.
    pub(crate) fn keys(&self) -> Result<Vec<(&'static str, Value)>, Problem> {
        let mut keys = Vec::new();
        for key in KEYS {
            keys.extend((key.write)(self)?.map(|value| (key.name, value)));
        }
        Ok(keys)
    }

    /// Whether packets overtake one another as their delays have it. With a rate each is due after the one before it.
    pub(crate) fn overtakes(&self) -> bool {
        self.jitter > Duration::ZERO && !self.has_rate()
    }

    /// Which packets skip the delay, of those that the gap leaves: a gap alone means all of them.
    pub(crate) fn reordering(&self) -> Option<(Chance, u32)> {
        match (self.reorder.share.is_zero(), self.gap.unwrap_or(0)) {
            (true, 0) => None,
            (true, gap) => Some((Chance { share: Share::ZERO.complement(), correlation: Share::ZERO }, gap)),
            (false, gap) => Some((self.reorder, gap.max(1))),
        }
    }
}

/// What a direction does, in NetEm's words as far as they go.
#[derive(Clone, Debug, PartialEq)]
pub struct CurrentConfig {
    /// Nothing for a plain link, or one of which NetEm could say nothing.
    pub qdisc: Option<Qdisc>,
    /// Whether it is NetEm's single queue.
    pub exact: bool,
    /// Keys of the direction whose values NetEm has no words for.
    pub unrepresentable: Vec<&'static str>,
    /// The keys that NetEm has to do with and that are not as in a plain link: what another qdisc replaces.
    pub keys: Vec<&'static str>,
}

/// What the keys of a direction that differ from a plain link say, in NetEm's words.
pub(crate) fn current_config(entries: &[(&'static str, String)], around: Around) -> CurrentConfig {
    let said = |name: &str| entries.iter().find(|(key, _)| *key == name).map(|(_, text)| text);
    let keys: Vec<&str> = KEYS.iter().map(|key| key.name).filter(|key| said(key).is_some()).collect();
    if let Some(text) = said("exact-netem") {
        let mut exact = super::read(&Node::typed(text, 0)).ok();
        if let Some(Qdisc { kind: Kind::Netem(netem), .. }) = &mut exact {
            // It is in force, as it has no other in its place, and tc shows it always.
            netem.limit.get_or_insert(DEFAULT_LIMIT);
        }
        return CurrentConfig { qdisc: exact, exact: true, unrepresentable: Vec::new(), keys };
    }
    let mut reading = InReading { netem: Netem::default(), fed: false, allow: false, direction: around };
    let mut unrepresentable = Vec::new();
    for (name, text) in entries {
        let row = KEYS.iter().find(|key| key.name == *name);
        if row.and_then(|row| (row.read)(&mut reading, &Node::typed(text, 0))).is_none() {
            unrepresentable.push(*name);
        }
    }
    finish(reading, unrepresentable, keys)
}

fn finish(
    reading: InReading,
    mut unrepresentable: Vec<&'static str>,
    keys: Vec<&'static str>,
) -> CurrentConfig {
    let InReading { netem, fed, allow, .. } = reading;
    let shown = |kind| Some(Qdisc { kind, clauses: Vec::new() });
    let qdisc = if fed {
        let limit = netem.limit.unwrap_or(DEFAULT_LIMIT);
        // All that netem would say, `delay` cannot.
        if (Netem { limit: None, ..netem }) != Netem::default() {
            unrepresentable
                .extend(keys.iter().filter(|key| !["delay", "line-limit", "order"].contains(*key)));
        }
        unrepresentable.dedup();
        shown(Kind::Delay(FedDelay { limit, reorder: allow }))
    } else {
        // Order is allowed where NetEm has packets overtake, and else it makes no difference to a delay that is constant.
        if netem.jitter > Duration::ZERO && netem.overtakes() != allow {
            unrepresentable.push("order");
        }
        if netem == Netem::default() { None } else { shown(Kind::Netem(Box::new(netem))) }
    };
    CurrentConfig { qdisc, exact: false, unrepresentable, keys }
}

/// The assignments that put a qdisc, or a plain link, in the place of what is in force: `keys` are those of [`CurrentConfig`],
/// and `exact` says whether the qdisc is to be NetEm's single queue.
///
/// # Errors
/// When a scenario cannot say what the qdisc does.
pub fn replacement<T: AsRef<str>>(
    keys: &[T],
    exact: bool,
    qdisc: Option<&Qdisc>,
) -> Result<Vec<Assignment>, ScenarioError> {
    let new = match qdisc {
        Some(qdisc) if exact => vec![("exact-netem", crate::node::toml_string(&qdisc.text()))],
        Some(qdisc) => qdisc.assignments()?,
        None => Vec::new(),
    };
    // What schedules stays beside a discipline that says nothing of it, and goes with a plain link.
    let mut all = reset(keys, &new, qdisc.is_some());
    all.extend(new);
    Ok(all)
}

/// The assignments that make keys plain which are in force and which `new` says nothing of.
pub(crate) fn reset<T: AsRef<str>>(keys: &[T], new: &[Assignment], keeps_scheduler: bool) -> Vec<Assignment> {
    let replaced = |key: &&Key| {
        let was = keys.iter().any(|name| name.as_ref() == key.name);
        let again = new.iter().any(|(name, _)| *name == key.name);
        was && !again && !(keeps_scheduler && key.name == "scheduler")
    };
    KEYS.iter().filter(replaced).map(|key| (key.name, key.plain.to_owned())).collect()
}
