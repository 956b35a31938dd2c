//! Marks and classes that a firewall gives to packets: lines of `iptables`, `ip6tables` and `ipset` in a script.
//!
//! Rules of the table `mangle` become a list of conditions, of which the first that holds says the mark that
//! a packet has when it leaves. The list is made from the last rule to the first: what a rule does is
//! combined with what the rules behind it do.

mod line;
mod list;
mod sets;
mod values;
mod words;

pub(super) use line::{Line, read};

use std::collections::{BTreeMap, BTreeSet};

use narrows_core::classify::Families;

use self::list::{Bits, Change, Entry, List, Number, changed, of_those, prune, trim};
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
    /// The mark that a packet must have.
    bits: Bits,
    /// Marks that it must not have.
    not: Vec<Bits>,
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
        self.outcome(device, Number::Mark)
    }

    /// The classes of packets that leave by a device.
    pub(super) fn classes(&self, device: &str) -> Result<Vec<Marked>, Problem> {
        self.outcome(device, Number::Class)
    }

    fn outcome(&self, device: &str, number: Number) -> Result<Vec<Marked>, Problem> {
        let rules = self.chains.values().flatten();
        let arrivals: BTreeSet<&str> = rules
            .filter_map(|rule| rule.arrives.as_ref())
            .map(|(device, _)| device.as_str())
            .filter(|device| *device != LOOPBACK)
            .collect();
        let mut all = Vec::new();
        for six in [false, true] {
            let looks = self.looks_at_marks(six);
            let tracked = if looks { number.bits() | Number::Mark.bits() } else { number.bits() };
            let walk = Walk { firewall: self, six, device, arrivals: &arrivals, tracked };
            let list = match looks && self.has_two_ways(six) {
                true => walk.either_way(number)?,
                false => walk.hooks(&HOOKS, number)?,
            };
            all.extend(list.into_iter().map(|entry| Marked {
                value: entry.change.value(number),
                matches: Some(entry.matches).filter(|all| *all != Match::default()),
            }));
        }
        Ok(all)
    }

    /// Whether a rule for packets of a family depends on the marks that they have.
    fn looks_at_marks(&self, six: bool) -> bool {
        let rules = self.chains.iter().filter(|((of, _), _)| *of == six).flat_map(|(_, rules)| rules);
        rules.into_iter().any(|rule| rule.bits != Bits::ANY || !rule.not.is_empty())
    }

    /// Whether packets of the host itself meet rules of their own, and packets that it forwards do.
    fn has_two_ways(&self, six: bool) -> bool {
        let has =
            |chain: &str| self.chains.get(&(six, chain.to_owned())).is_some_and(|rules| !rules.is_empty());
        has("OUTPUT") && (has("PREROUTING") || has("FORWARD"))
    }
}

/// The making of a list for a device.
struct Walk<'a> {
    firewall: &'a Firewall,
    six: bool,
    device: &'a str,
    /// The devices that rules name as those where packets came in, but for the loopback device.
    arrivals: &'a BTreeSet<&'a str>,
    /// The bits of a packet's numbers that are of interest.
    tracked: u64,
}

impl Walk<'_> {
    /// The list for packets that pass these chains. Before, all numbers are zero.
    fn hooks(&self, hooks: &[&str], number: Number) -> Result<List, Problem> {
        let mut list = List::new();
        for hook in hooks.iter().rev() {
            list = self.chain(hook, &list, &list, 0)?;
        }
        prune(&mut list, number);
        Ok(list)
    }

    /// The list for all packets, where it is the same for those of the host itself and those that it forwards.
    fn either_way(&self, number: Number) -> Result<List, Problem> {
        let forwarded = self.hooks(&["PREROUTING", "FORWARD", "POSTROUTING"], number)?;
        match forwarded == self.hooks(&["OUTPUT", "POSTROUTING"], number)? {
            true => Ok(forwarded),
            false => Err(Problem::new(format!(
                "rules of iptables that look at marks, and give packets that leave by {} other marks in `OUTPUT` than in `PREROUTING` and `FORWARD`",
                Found(self.device)
            ))
            .help("whether a packet was forwarded is not known here: put the rules into `POSTROUTING`, or the same into both")),
        }
    }

    /// The condition of all packets.
    fn everything(&self) -> Match {
        let families = vec![if self.six { Families::IPV6 } else { Families::IPV4 }];
        Match { families, ..Match::default() }
    }

    /// What a target changes of the numbers that are of interest; `None` for another target, and another number.
    fn change(&self, target: &Target) -> Option<Change> {
        match target {
            Target::Mark(change) if self.tracked & Number::Mark.bits() != 0 => Some(*change),
            Target::Classify(class) if self.tracked & Number::Class.bits() != 0 => {
                Some(Change::of(Number::Class, u32::MAX, *class))
            }
            _ => None,
        }
    }

    /// The list for packets that enter a chain. `after` is that for packets that return from it, `beyond` that
    /// for packets that it accepts.
    fn chain(&self, name: &str, after: &[Entry], beyond: &[Entry], depth: usize) -> Result<List, Problem> {
        if depth == DEEPEST {
            return Err(Problem::new(format!(
                "chains of iptables that call one another more than {DEEPEST} deep"
            )));
        }
        let everything = self.everything();
        let mut list = after.to_vec();
        let rules = self.firewall.chains.get(&(self.six, name.to_owned()));
        for rule in rules.into_iter().flatten().rev() {
            if rule.leaves.as_ref().is_some_and(|(device, other)| (device == self.device) == *other) {
                continue;
            }
            let is_about_it = match &rule.target {
                Target::Return | Target::Accept | Target::Call(_) => true,
                target => self.change(target).is_some(),
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
            let inside = match &rule.target {
                Target::Call(chain) => self.chain(chain, &list, beyond, depth + 1)?,
                _ => List::new(),
            };
            for matches in self.matches(rule)?.iter().rev() {
                let other = match &rule.target {
                    Target::Return => after,
                    Target::Accept => beyond,
                    Target::Call(_) => &inside,
                    target => {
                        if let Some(change) = self.change(target) {
                            let own = Entry { matches: matches.clone(), bits: rule.bits, change };
                            list = changed(list, own, self.tracked);
                        }
                        few(list.len())?;
                        continue;
                    }
                };
                list.splice(0..0, of_those(other, matches, rule.bits));
                few(list.len())?;
            }
            few(list.len() + excepted.len())?;
            list.splice(0..0, excepted);
            trim(&mut list, |matches| *matches == everything);
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

    /// What a list says of packets in sets in which a rule's packets must not be, and of those with marks that they must not
    /// have: they pass it by.
    fn excepted(&self, rule: &Rule, list: &[Entry]) -> Result<List, Problem> {
        let everything = self.everything();
        let sets = rule.sets.iter().filter(|looked| looked.not);
        let inside = sets.flat_map(|looked| looked.conditions(&self.firewall.sets));
        let inside = inside.filter_map(|inside| both(&inside, &everything));
        let with_sets = inside.map(|inside| (inside, Bits::ANY));
        let with_marks = rule.not.iter().map(|bits| (everything.clone(), *bits));
        let mut excepted = List::new();
        for (inside, bits) in with_sets.chain(with_marks) {
            excepted.extend(of_those(list, &inside, bits));
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
