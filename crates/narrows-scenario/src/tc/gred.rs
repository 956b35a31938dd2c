//! `gred setup DPs 3 default 2`, and `gred limit 60KB min 15K max 25K burst 20 avpkt 1000 DP 2 probability 0.02`: RED with a
//! virtual queue for each index of a packet.
//!
//! Source: `sch_gred.c` of Linux, `tc-red(8)`. Filters of `dsmark` and `tcindex` give indices to packets, and there are none
//! here: all have the index 0. They use the virtual queue 0 if it is configured, else the default one, and else the bound of
//! the whole alone.

use std::collections::BTreeMap;

use super::managed::Managed;
use super::unit::{missing, number};
use crate::dialect::{Word, Words};
use crate::problem::{Found, Problem};

/// The discipline.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gred {
    /// The number of virtual queues and the default one, where `setup` says them.
    setup: Option<(u8, u8)>,
    /// The bound of the whole.
    whole: Managed,
    /// `ecn` and `harddrop` of all.
    switches: Vec<&'static str>,
    /// RED of each virtual queue that is configured.
    queues: BTreeMap<u8, Managed>,
}

const EXAMPLE: &str = "gred setup DPs 3 default 2";

impl Gred {
    pub(super) fn read(name: Word<'_>, words: &mut Words<'_>) -> Result<Self, Problem> {
        let whole = |words: &mut Words<'_>| {
            let plain = Managed::read(Word::new("bfifo", &name.span()), words)?;
            plain.ok_or_else(|| missing(name, "setup", EXAMPLE))
        };
        let (mut others, mut queue) = (Vec::new(), None);
        if words.take_if("setup") {
            let (mut count, mut default, mut switches) = (None, None, Vec::new());
            while let Some(word) = words.take() {
                match word.text {
                    "vqs" | "DPs" => count = Some(number(word, words, 1, 16)? as u8),
                    "default" => default = Some((word, number(word, words, 0, 15)? as u8)),
                    // It is about several virtual queues with packets.
                    "grio" => {}
                    "ecn" => switches.push("ecn"),
                    "harddrop" => switches.push("harddrop"),
                    "limit" => others.extend([word, words.expect(word, "a size")?]),
                    other => {
                        return Err(word
                            .problem(format!("unsupported {} of `gred setup`", Found(other)))
                            .help("understood: vqs, DPs, default, grio, limit, ecn and harddrop"));
                    }
                }
            }
            let count = count.ok_or_else(|| missing(name, "DPs", EXAMPLE))?;
            let (word, default) = default.ok_or_else(|| missing(name, "default", EXAMPLE))?;
            if default >= count {
                return Err(word.problem(format!("the virtual queue {default} is none of {count}")));
            }
            let whole = whole(&mut Words::of_words(others, name.span().end))?;
            return Ok(Self { setup: Some((count, default)), whole, switches, queues: BTreeMap::new() });
        }
        while let Some(word) = words.take() {
            match word.text {
                "vq" | "DP" => queue = Some(number(word, words, 0, 15)? as u8),
                // Ranks of several virtual queues.
                "prio" => _ = number(word, words, 0, 255)?,
                _ => others.push(word),
            }
        }
        let queue = queue
            .ok_or_else(|| missing(name, "DP", "gred limit 60KB min 15K max 25K burst 20 avpkt 1000 DP 2"))?;
        let red = Word::new("red", &name.span());
        let red = Managed::read(red, &mut Words::of_words(others, name.span().end))?;
        let red = red.ok_or_else(|| missing(name, "setup", EXAMPLE))?;
        let whole = whole(&mut Words::of_words(Vec::new(), name.span().end))?;
        Ok(Self { setup: None, whole, switches: Vec::new(), queues: [(queue, red)].into() })
    }

    /// The settings after a change to this.
    pub(super) fn changed_from(self, before: &Self) -> Self {
        let mut changed = before.clone();
        if self.setup.is_some() {
            (changed.setup, changed.whole, changed.switches) = (self.setup, self.whole, self.switches);
        }
        changed.queues.extend(self.queues);
        changed
    }

    /// What applies to packets of index 0.
    pub(super) fn in_use(&self) -> Managed {
        let default = self.setup.map_or(0, |(_, default)| default);
        match self.queues.get(&0).or_else(|| self.queues.get(&default)) {
            Some(red) => self.switches.iter().fold(red.clone(), |red, key| red.with_switch(key)),
            None => self.whole.clone(),
        }
    }

    /// For people.
    pub(super) fn words(&self) -> Vec<String> {
        let default = self.setup.map(|(_, default)| default);
        let queue = [Some(0), default].into_iter().flatten().find(|queue| self.queues.contains_key(queue));
        let used = match (queue, self.setup) {
            (Some(queue), _) => format!("Packets have no index here, and use the virtual queue {queue}."),
            (None, Some((_, default))) => format!(
                "Packets have no index here. They use the virtual queue 0 or {default} once it is configured; until then, there is only a bound."
            ),
            (None, None) => {
                "Packets have no index here: only the virtual queue 0 and the default one are used.".into()
            }
        };
        [used, self.in_use().words()].into()
    }
}
