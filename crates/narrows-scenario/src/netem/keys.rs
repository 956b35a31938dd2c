//! Converts NetEm options to the keys of a link's direction (the double queue), and the keys back to NetEm
//! options for `tc qdisc show`.
//!
//! The settings of a link are stored only in its keys, which need not come from NetEm options. Whatever
//! changed them (a file, a timeline, `narrows set` or `narrows tc`), the options shown match the link's
//! current behaviour.

use narrows_core::Duration;

use super::options::{Chance, DEFAULT_LIMIT, Netem};
use super::row::{Around, InReading, Key};
use super::{FedDelay, Kind, Qdisc, chance, delay, kernel, limit, loss, rate, slot};
use crate::ScenarioError;
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::units::Share;

/// A key of a direction, and its value as written in a file.
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
    /// The equivalent keys of a direction with their values, without those that have no effect.
    ///
    /// # Errors
    /// If a scenario cannot express the options: a kernel's release, or cells that lose bytes on the wire.
    pub(crate) fn keys(&self) -> Result<Vec<(&'static str, Value)>, Problem> {
        kernel::refuse(self)?;
        let mut keys = Vec::new();
        for key in KEYS {
            keys.extend((key.write)(self)?.map(|value| (key.name, value)));
        }
        Ok(keys)
    }

    /// Whether packets overtake one another due to their delays. With a rate, each packet is due after the
    /// one before it.
    pub(crate) fn overtakes(&self) -> bool {
        self.jitter > Duration::ZERO && !self.has_rate()
    }

    /// The share of candidates that skip the delay, and the gap. A gap alone means that all candidates skip
    /// it.
    pub(crate) fn reordering(&self) -> Option<(Chance, u32)> {
        match (self.reorder.share.is_zero(), self.gap.unwrap_or(0)) {
            (true, 0) => None,
            (true, gap) => Some((Chance { share: Share::ZERO.complement(), correlation: Share::ZERO }, gap)),
            (false, gap) => Some((self.reorder, gap.max(1))),
        }
    }
}

/// The current settings of a direction as NetEm options, as far as NetEm can express them.
#[derive(Clone, Debug, PartialEq)]
pub struct CurrentConfig {
    /// The qdisc; `None` for a plain link, or for one that NetEm cannot express at all.
    pub qdisc: Option<Qdisc>,
    /// Whether it is NetEm's single queue.
    pub exact: bool,
    /// Keys of the direction whose values NetEm cannot express.
    pub unrepresentable: Vec<&'static str>,
    /// Keys related to NetEm that differ from a plain link: those that another qdisc replaces.
    pub keys: Vec<&'static str>,
}

/// Converts the keys of a direction that differ from a plain link to NetEm options.
pub(crate) fn current_config(entries: &[(&'static str, String)], around: Around) -> CurrentConfig {
    let said = |name: &str| entries.iter().find(|(key, _)| *key == name).map(|(_, text)| text);
    let keys: Vec<&str> = KEYS.iter().map(|key| key.name).filter(|key| said(key).is_some()).collect();
    if let Some(text) = said("exact-netem") {
        let mut exact = super::read(&Node::typed(text, 0)).ok();
        if let Some(Qdisc { kind: Kind::Netem(netem), .. }) = &mut exact {
            // The limit applies, as no other key replaces it, and tc always shows it.
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
        // `delay` cannot express NetEm options other than the limit.
        if (Netem { limit: None, ..netem }) != Netem::default() {
            unrepresentable
                .extend(keys.iter().filter(|key| !["delay", "line-limit", "order"].contains(*key)));
        }
        unrepresentable.dedup();
        shown(Kind::Delay(FedDelay { limit, reorder: allow }))
    } else {
        // The packet order must be `allow` where NetEm lets packets overtake; for a constant delay it makes
        // no difference.
        if netem.jitter > Duration::ZERO && netem.overtakes() != allow {
            unrepresentable.push("order");
        }
        if netem == Netem::default() { None } else { shown(Kind::Netem(Box::new(netem))) }
    };
    CurrentConfig { qdisc, exact: false, unrepresentable, keys }
}

/// The assignments that replace the current settings by a qdisc, or by a plain link. `keys` are those of
/// [`CurrentConfig`]; `exact` makes the qdisc NetEm's single queue.
///
/// # Errors
/// If a scenario cannot express the qdisc.
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
    // A scheduler stays if a qdisc does not mention it; a plain link removes it.
    let mut all = reset(keys, &new, qdisc.is_some());
    all.extend(new);
    Ok(all)
}

/// The value of a key of a plain link, as in a file.
pub(crate) fn plain(key: &str) -> Option<&'static str> {
    let known = KEYS.iter().find(|known| known.name == key).map(|known| known.plain);
    known.or(matches!(key, "policer" | "ingress").then_some("\"none\""))
}

/// The assignments that reset those current keys that `new` does not set.
pub(crate) fn reset<T: AsRef<str>>(keys: &[T], new: &[Assignment], keeps_scheduler: bool) -> Vec<Assignment> {
    let replaced = |key: &&Key| {
        let was = keys.iter().any(|name| name.as_ref() == key.name);
        let again = new.iter().any(|(name, _)| *name == key.name);
        was && !again && !(keeps_scheduler && key.name == "scheduler")
    };
    KEYS.iter().filter(replaced).map(|key| (key.name, key.plain.to_owned())).collect()
}
