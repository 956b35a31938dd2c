//! Marks and classes that a firewall gives to packets: lines of `iptables`, `ip6tables` and `ipset` in a script.
//!
//! Rules of the table `mangle` become a list of conditions, of which the first that holds says the mark that
//! a packet has when it leaves. The list is made from the last rule to the first: what a rule does is
//! combined with what the rules behind it do.

mod line;
mod sets;
mod values;
mod words;

pub(super) use line::{Line, read};

use std::collections::{BTreeMap, BTreeSet};

use narrows_core::classify::Families;

use self::sets::{Looked, Sets};
use super::both::both;
use crate::problem::{Found, Problem};
use crate::value::Match;

/// Packets with a condition have this mark, or are in the class with this handle.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Marked {
    /// The condition; `None` for all packets.
    pub(super) matches: Option<Match>,
    pub(super) value: u32,
}

/// A change of a number: some bits are cleared, then some are inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    clear: u32,
    invert: u32,
}

impl Change {
    const NONE: Self = Self { clear: 0, invert: 0 };

    /// This change, and then the other.
    const fn then(self, other: Self) -> Self {
        Self { clear: self.clear | other.clear, invert: (self.invert & !other.clear) ^ other.invert }
    }

    /// Whether nothing of what was before is left.
    const fn is_constant(self) -> bool {
        self.clear == u32::MAX
    }
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Mark(Change),
    Classify(u32),
    /// To the chain that called this one, or to the next hook.
    Return,
    /// To the next hook.
    Accept,
    Call(String),
    Nothing,
}

/// A rule of a chain.
#[derive(Clone, Debug, PartialEq)]
struct Rule {
    /// Conditions of which one must hold; empty if no packet matches.
    matches: Vec<Match>,
    /// The device by which packets leave, and whether it must be another.
    leaves: Option<(String, bool)>,
    /// The device where packets came in, and whether it must be another.
    arrives: Option<(String, bool)>,
    /// Sets in which a packet must be, or must not be.
    sets: Vec<Looked>,
    target: Target,
}

/// The table `mangle` of a host: chains by family and name; and its sets.
#[derive(Clone, Debug, Default)]
pub(super) struct Firewall {
    chains: BTreeMap<(bool, String), Vec<Rule>>,
    sets: Sets,
}

/// The chains that packets pass which leave a host, in their order. (Own packets begin at `OUTPUT`, others at
/// `PREROUTING`.)
const HOOKS: [&str; 4] = ["PREROUTING", "FORWARD", "OUTPUT", "POSTROUTING"];
/// Packets of the host itself come in by it.
const LOOPBACK: &str = "lo";
/// Chains that call one another, including the first one.
const DEEPEST: usize = 16;
/// The most entries of a list.
const MOST: usize = 1 << 16;

/// A condition, and the change for packets that have it.
type Entry = (Match, Change);
/// The first condition that holds counts; where none does, nothing changes.
type List = Vec<Entry>;

impl Firewall {
    /// Executes a line.
    ///
    /// # Errors
    /// If it names a set that is not there, or one that is; the error has no place.
    pub(super) fn apply(&mut self, line: &Line) -> Result<(), Problem> {
        line.change(&mut self.chains, &mut self.sets)
    }

    /// The marks of packets that leave by a device.
    pub(super) fn marks(&self, device: &str) -> Result<Vec<Marked>, Problem> {
        self.outcome(device, &|target| match target {
            Target::Mark(change) => Some(*change),
            _ => None,
        })
    }

    /// The classes of packets that leave by a device.
    pub(super) fn classes(&self, device: &str) -> Result<Vec<Marked>, Problem> {
        self.outcome(device, &|target| match target {
            Target::Classify(class) => Some(Change { clear: u32::MAX, invert: *class }),
            _ => None,
        })
    }

    fn outcome(&self, device: &str, change: &Changes) -> Result<Vec<Marked>, Problem> {
        let rules = self.chains.values().flatten();
        let arrivals: BTreeSet<&str> = rules
            .filter_map(|rule| rule.arrives.as_ref())
            .map(|(device, _)| device.as_str())
            .filter(|device| *device != LOOPBACK)
            .collect();
        let mut all = Vec::new();
        for six in [false, true] {
            let mut list = List::new();
            for hook in HOOKS.iter().rev() {
                let walk = Walk { firewall: self, six, device, arrivals: &arrivals, change };
                list = walk.chain(hook, &list, &list, 0)?;
            }
            prune(&mut list);
            // Before, all marks are zero.
            all.extend(list.into_iter().map(|(matches, change)| Marked {
                matches: Some(matches).filter(|all| *all != Match::default()),
                value: change.invert,
            }));
        }
        Ok(all)
    }
}

/// The change that a target makes, if it is about the number in question.
type Changes = dyn Fn(&Target) -> Option<Change>;

/// The making of a list for a device.
struct Walk<'a> {
    firewall: &'a Firewall,
    six: bool,
    device: &'a str,
    /// The devices that rules name as those where packets came in, but for the loopback device.
    arrivals: &'a BTreeSet<&'a str>,
    change: &'a Changes,
}

impl Walk<'_> {
    /// The list for packets that enter a chain. `after` is that for packets that return from it, `beyond` that
    /// for packets that it accepts.
    fn chain(&self, name: &str, after: &[Entry], beyond: &[Entry], depth: usize) -> Result<List, Problem> {
        if depth == DEEPEST {
            return Err(Problem::new(format!(
                "chains of iptables that call one another more than {DEEPEST} deep"
            )));
        }
        let mut list = after.to_vec();
        let rules = self.firewall.chains.get(&(self.six, name.to_owned()));
        for rule in rules.into_iter().flatten().rev() {
            if rule.leaves.as_ref().is_some_and(|(device, other)| (device == self.device) == *other) {
                continue;
            }
            let is_about_it = match &rule.target {
                Target::Return | Target::Accept | Target::Call(_) => true,
                Target::Nothing => false,
                target => (self.change)(target).is_some(),
            };
            if !is_about_it {
                continue;
            }
            if let Some((device, other)) = &rule.arrives
                && self.came_by(device)? == *other
            {
                continue;
            }
            let excepted = self.excepted(rule, &list)?;
            for matches in self.matches(rule)?.iter().rev() {
                match &rule.target {
                    Target::Return => ahead(&mut list, matches, after),
                    Target::Accept => ahead(&mut list, matches, beyond),
                    Target::Call(chain) => {
                        let inside = self.chain(chain, &list, beyond, depth + 1)?;
                        ahead(&mut list, matches, &inside);
                    }
                    Target::Nothing => {}
                    target => {
                        if let Some(change) = (self.change)(target) {
                            list = changed(list, matches, change);
                        }
                    }
                }
                few(list.len())?;
            }
            few(list.len() + excepted.len())?;
            list.splice(0..0, excepted);
        }
        Ok(list)
    }

    /// Whether packets that leave by the device in question came in by this one: if it is the only other one that rules name,
    /// all did. None came in by the loopback device.
    fn came_by(&self, device: &str) -> Result<bool, Problem> {
        if device == self.device || device == LOOPBACK {
            return Ok(false);
        }
        match self.arrivals.iter().find(|other| **other != self.device && **other != device) {
            None => Ok(true),
            Some(other) => Err(Problem::new(format!(
                "rules of iptables by the devices where packets came in, {} and {}: packets that leave by {} do not say which it was",
                Found(device),
                Found(other),
                Found(self.device)
            ))
            .help("match their addresses: -s NETWORK")),
        }
    }

    /// The conditions of a rule of which one must hold, with the sets in which a packet must be.
    fn matches(&self, rule: &Rule) -> Result<Vec<Match>, Problem> {
        let mut all = rule.matches.clone();
        for looked in rule.sets.iter().filter(|looked| !looked.not) {
            let inside = looked.conditions(&self.firewall.sets);
            few(all.len().saturating_mul(inside.len()))?;
            all = all.iter().flat_map(|one| inside.iter().filter_map(|other| both(one, other))).collect();
        }
        Ok(all)
    }

    /// What a list says of packets in sets in which a rule's packets must not be: they pass it by.
    fn excepted(&self, rule: &Rule, list: &[Entry]) -> Result<List, Problem> {
        let families = vec![if self.six { Families::IPV6 } else { Families::IPV4 }];
        let family = Match { families, ..Match::default() };
        let sets = rule.sets.iter().filter(|looked| looked.not);
        let inside = sets.flat_map(|looked| looked.conditions(&self.firewall.sets));
        let mut excepted = List::new();
        for inside in inside.filter_map(|inside| both(&inside, &family)) {
            excepted.extend(list.iter().filter_map(|(own, change)| Some((both(&inside, own)?, *change))));
            excepted.push((inside, Change::NONE));
            few(excepted.len())?;
        }
        Ok(excepted)
    }
}

/// Refuses more conditions than can be looked at.
fn few(count: usize) -> Result<(), Problem> {
    match count <= MOST {
        true => Ok(()),
        false => Err(Problem::new(format!("rules of iptables that come to more than {MOST} conditions"))),
    }
}

/// How many entries before one are compared with it.
const NEAR: usize = 256;

/// Removes entries that never count: those behind one whose condition they have, and the last ones if they
/// change nothing.
fn prune(list: &mut List) {
    let mut kept = List::new();
    for (own, change) in list.drain(..) {
        let mut near = kept.iter().rev().take(NEAR);
        if !near.any(|(earlier, _)| both(earlier, &own).as_ref() == Some(&own)) {
            kept.push((own, change));
        }
    }
    while kept.last().is_some_and(|(_, change)| change.invert == 0) {
        kept.pop();
    }
    *list = kept;
}

/// Packets with a condition use another list.
fn ahead(list: &mut List, matches: &Match, other: &[Entry]) {
    let within = other.iter().filter_map(|(own, change)| Some((both(matches, own)?, *change)));
    let mut first: List = within.collect();
    first.push((matches.clone(), Change::NONE));
    list.splice(0..0, first);
}

/// Packets with a condition are changed before they come to a list.
fn changed(mut list: List, matches: &Match, change: Change) -> List {
    // What decides the number whatever it was stays as it is: most rules set a whole mark.
    if list.iter().all(|(_, later)| later.is_constant()) {
        list.push((matches.clone(), change));
        return list;
    }
    let mut all = List::with_capacity(list.len() + 1);
    for (own, later) in list {
        if later.is_constant() {
            all.push((own, later));
            continue;
        }
        let within = both(matches, &own);
        // Those with both conditions go first; where these are all, the entry itself never counts.
        let all_of_it = within.as_ref() == Some(&own);
        all.extend(within.map(|within| (within, change.then(later))));
        if !all_of_it {
            all.push((own, later));
        }
    }
    all.push((matches.clone(), change));
    all
}
