//! Marks and classes that a firewall gives to packets: lines of `iptables`, `ip6tables` and `ipset` in a script.
//!
//! Rules of the table `mangle` become a list of conditions, of which the first that holds says the mark that
//! a packet has when it leaves. The list is made from the last rule to the first: what a rule does is
//! combined with what the rules behind it do.

mod connections;
mod line;
mod list;
mod sets;
mod values;
mod words;
mod written;

pub(super) use line::{Line, read};

use std::collections::BTreeMap;
use std::ops::Range;

use narrows_core::classify::Families;

use self::connections::{Both, turned};
use self::list::{Bits, Change, Entry, List, Number, changed, of_those, prune, trim};
use self::sets::{Looked, Sets};
use super::both::both;
use crate::node::Table;
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
    /// Of the packet's mark, or that of its connection.
    Mark(Change),
    Classify(u32),
    /// To the chain that called this one, or to the next hook.
    Return,
    /// To the next hook.
    Accept,
    Drop,
    /// Something is written into the packet's header.
    Write(Change),
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
    /// It is for packets of connections that are established.
    is_established: bool,
    /// What it looks at that is not known here.
    unclear: Option<Unclear>,
    target: Target,
    place: Place,
}

/// Where a rule stands in the script.
#[derive(Clone, Debug)]
struct Place(Range<usize>);

/// A condition that is not known.
#[derive(Clone, Debug)]
struct Unclear {
    what: String,
    place: Range<usize>,
}

/// Rules are the same wherever they stand.
impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl PartialEq for Unclear {
    fn eq(&self, other: &Self) -> bool {
        self.what == other.what
    }
}

/// The tables `mangle` and `filter` of a host: chains by family and name; and its sets.
#[derive(Clone, Debug, Default)]
pub(super) struct Firewall {
    chains: BTreeMap<(bool, String), Vec<Rule>>,
    sets: Sets,
}

/// The chains that packets of a kind pass, in their order: those that leave by a device, and those of the other direction, which
/// arrive there.
#[derive(Clone, Copy, Debug)]
struct Way {
    leaving: &'static [&'static str],
    arriving: &'static [&'static str],
}

/// Packets that arrive, of which the host gets some and forwards others.
const ARRIVING: [&str; 5] = ["PREROUTING", "INPUT", "filter/INPUT", "FORWARD", "filter/FORWARD"];

/// Before the names of the chains of `filter`, which packets pass behind those of `mangle` at the same place.
const OF_FILTER: &str = "filter/";
/// Packets that the host forwards.
const FORWARDED: Way = Way {
    leaving: &["PREROUTING", "FORWARD", "filter/FORWARD", "POSTROUTING"],
    arriving: &["PREROUTING", "FORWARD", "filter/FORWARD", "POSTROUTING"],
};
/// Packets of the host itself.
const OWN: Way = Way {
    leaving: &["OUTPUT", "filter/OUTPUT", "POSTROUTING"],
    arriving: &["PREROUTING", "INPUT", "filter/INPUT"],
};
/// Both, where rules do not look at marks: own packets begin at `OUTPUT`, others at `PREROUTING`.
const ANY: Way = Way {
    leaving: &["PREROUTING", "FORWARD", "filter/FORWARD", "OUTPUT", "filter/OUTPUT", "POSTROUTING"],
    arriving: &[],
};
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

    /// Whether a rule of `filter` gives packets marks or classes.
    pub(super) fn marks_in_filter(&self) -> bool {
        let mut of_filter = self.chains.iter().filter(|((_, chain), _)| chain.starts_with(OF_FILTER));
        of_filter.any(|(_, rules)| {
            rules.iter().any(|rule| matches!(rule.target, Target::Mark(_) | Target::Classify(_)))
        })
    }

    /// The marks of packets that leave by a device.
    pub(super) fn marks(&self, device: &str) -> Result<Vec<Marked>, Problem> {
        self.outcome(device, Number::Mark)
    }

    /// The classes of packets that leave by a device.
    pub(super) fn classes(&self, device: &str) -> Result<Vec<Marked>, Problem> {
        self.outcome(device, Number::Class)
    }

    /// The marks of the connections of packets that arrive at a device.
    pub(super) fn connections(&self, device: &str) -> Result<Vec<Marked>, Problem> {
        let with_lists = |walk: &Walk<'_>, way: Way| match self.has_connections(walk.six) {
            true => walk.with_both(way, |lists| lists.arriving()),
            false => Ok(List::new()),
        };
        self.both_families(device, Number::Mark, with_lists)
    }

    /// Whether a rule drops packets.
    pub(super) fn drops(&self) -> bool {
        self.chains.values().flatten().any(|rule| rule.target == Target::Drop)
    }

    /// The packets that are dropped before they leave by a device: the first condition that holds counts, and those with 1 are.
    pub(super) fn dropped_leaving(&self, device: &str) -> Result<Vec<Marked>, Problem> {
        if self.drops() { self.outcome(device, Number::Dropped) } else { Ok(Vec::new()) }
    }

    /// The packets that are dropped when they have arrived at a device.
    pub(super) fn dropped_arriving(&self, device: &str) -> Result<Vec<Marked>, Problem> {
        if !self.drops() {
            return Ok(Vec::new());
        }
        self.both_families(device, Number::Dropped, |walk: &Walk<'_>, _| {
            if self.has_connections(walk.six) {
                return Err(Problem::new("rules of iptables that drop packets, beside marks of connections"));
            }
            Walk { arrives: true, ..*walk }.passed(&ARRIVING)
        })
    }

    /// Filters that write into headers what rules write, of packets that leave by a device, or of those that arrive there.
    pub(super) fn written(&self, device: &str, arrives: bool) -> Result<Vec<Table>, Problem> {
        let writes = |rule: &&Rule| matches!(rule.target, Target::Write(_));
        let Some(writing) = self.chains.values().flatten().find(writes) else { return Ok(Vec::new()) };
        let looks = |rule: &&Rule| rule.matches.iter().any(written::is_looked_at);
        if let Some(rule) = self.chains.values().flatten().find(looks) {
            let title =
                "a rule of iptables that looks at a code point or hop limit, beside rules that write them";
            return Err(Problem::new(title)
                .at(&rule.place.0)
                .help("match what packets have besides: addresses, ports"));
        }
        let written = match arrives {
            false => self.outcome(device, Number::Header)?,
            true => self.both_families(device, Number::Header, |walk: &Walk<'_>, _| {
                Walk { arrives, ..*walk }.passed(&ARRIVING)
            })?,
        };
        written::filters(&written).map_err(|problem| problem.put_at(&writing.place.0))
    }

    fn outcome(&self, device: &str, number: Number) -> Result<Vec<Marked>, Problem> {
        let with_lists = |walk: &Walk<'_>, way: Way| match self.has_connections(walk.six) {
            true => walk.with_both(way, |lists| lists.leaving(number)),
            false => walk.passed(way.leaving),
        };
        self.both_families(device, number, with_lists)
    }

    /// The lists of both families of packets that pass a device, put together. `list` makes that for one way.
    fn both_families(
        &self,
        device: &str,
        number: Number,
        list: impl Fn(&Walk<'_>, Way) -> Result<List, Problem>,
    ) -> Result<Vec<Marked>, Problem> {
        let mut all = Vec::new();
        for six in [false, true] {
            let looks = self.looks_at_marks(six);
            let of = |number: Number, counts| if counts { number.bits() } else { 0 };
            let tracked =
                number.bits() | of(Number::Mark, looks) | of(Number::Connection, self.has_connections(six));
            let walk = Walk { firewall: self, six, device, arrives: false, tracked };
            let pruned = |way| {
                let mut list = list(&walk, way)?;
                prune(&mut list, number);
                Ok(list)
            };
            let list = match (
                self.gives(six, number, &["OUTPUT", "filter/OUTPUT"]),
                self.gives(six, number, &["PREROUTING", "FORWARD", "filter/FORWARD"]),
            ) {
                _ if !looks => pruned(ANY)?,
                (true, true) => walk.same(pruned(FORWARDED)?, &pruned(OWN)?)?,
                (true, false) => pruned(OWN)?,
                (false, _) => pruned(FORWARDED)?,
            };
            all.extend(list.into_iter().map(|entry| Marked {
                value: number.of(entry.change.applied(0)),
                matches: Some(entry.matches).filter(|all| *all != Match::default()),
            }));
        }
        Ok(all)
    }

    fn rules(&self, six: bool) -> impl Iterator<Item = &Rule> {
        self.chains.iter().filter(move |((of, _), _)| *of == six).flat_map(|(_, rules)| rules)
    }

    /// Whether a rule for packets of a family depends on the marks that they have.
    fn looks_at_marks(&self, six: bool) -> bool {
        let looks = |rule: &Rule| rule.bits != Bits::ANY || !rule.not.is_empty();
        self.rules(six).any(looks) || self.has_connections(six)
    }

    /// Whether a rule keeps marks with connections.
    fn has_connections(&self, six: bool) -> bool {
        self.rules(six).any(|rule| matches!(rule.target, Target::Mark(change) if change.is_of_connections()))
    }

    /// Whether a rule of these chains may give packets a mark or a class that is not that of their connection, or drop them.
    fn gives(&self, six: bool, number: Number, chains: &[&str]) -> bool {
        let rules = chains.iter().filter_map(|chain| self.chains.get(&(six, (*chain).to_owned()))).flatten();
        rules.into_iter().any(|rule| match rule.target {
            Target::Mark(change) => !change.copies(),
            Target::Classify(_) | Target::Call(_) => true,
            Target::Drop => number == Number::Dropped,
            Target::Write(_) => number == Number::Header,
            Target::Return | Target::Accept | Target::Nothing => false,
        })
    }
}

/// The making of a list for a device.
struct Walk<'a> {
    firewall: &'a Firewall,
    six: bool,
    device: &'a str,
    /// Whether the packets arrive at the device rather than leave by it.
    arrives: bool,
    /// The bits of a packet's numbers that are of interest.
    tracked: u128,
}

impl Walk<'_> {
    /// The list for packets that pass these chains.
    fn passed(&self, hooks: &[&str]) -> Result<List, Problem> {
        let mut list = List::new();
        for hook in hooks.iter().rev() {
            list = self.chain(hook, &list, &list, 0)?;
        }
        Ok(list)
    }

    /// What is made of the lists of both directions.
    fn with_both(
        &self,
        way: Way,
        make: impl Fn(&Both<'_>) -> Result<List, Problem>,
    ) -> Result<List, Problem> {
        let leaving = self.passed(way.leaving)?;
        let mut arriving = Walk { arrives: true, ..*self }.passed(way.arriving)?;
        for entry in &mut arriving {
            entry.matches = turned(&entry.matches);
        }
        make(&Both { leaving: &leaving, arriving: &arriving, everything: &self.everything() })
    }

    /// The list for all packets, where it is the same for those of the host itself and those that it forwards.
    fn same(&self, forwarded: List, own: &List) -> Result<List, Problem> {
        match forwarded == *own {
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
            Target::Write(change) if self.tracked & Number::Header.bits() != 0 => Some(*change),
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
            let drops = self.tracked & Number::Dropped.bits() != 0;
            let is_about_it = match &rule.target {
                Target::Return | Target::Accept | Target::Call(_) => true,
                Target::Drop => drops,
                target => self.change(target).is_some(),
            };
            if !is_about_it {
                continue;
            }
            let is_there = |at: Option<&(String, bool)>, arrives| match at {
                Some((device, other)) => Ok(self.passes(device, arrives)? != *other),
                None => Ok(true),
            };
            if !is_there(rule.leaves.as_ref(), false)? || !is_there(rule.arrives.as_ref(), true)? {
                continue;
            }
            // Which packets of a connection that is established are dropped depends on what came before.
            let established = || Unclear {
                what: "a rule of iptables for packets of established connections".into(),
                place: rule.place.0.clone(),
            };
            let unclear = rule.unclear.clone().or_else(|| (drops && rule.is_established).then(established));
            if let Some(unclear) = &unclear {
                let same = match &rule.target {
                    Target::Return => after == &list[..],
                    Target::Accept => beyond == &list[..],
                    Target::Drop => false,
                    Target::Call(chain) => self.chain(chain, &list, beyond, depth + 1)? == list,
                    _ => true,
                };
                if same {
                    continue;
                }
                let do_what = if drops {
                    "drop packets"
                } else if self.tracked & Number::Header.bits() != 0 {
                    "change packets"
                } else {
                    "give packets marks"
                };
                let title = format!("{}, before rules that {do_what}", unclear.what);
                return Err(Problem::new(title).at(&unclear.place));
            }
            let excepted = self.excepted(rule, &list)?;
            let inside = match &rule.target {
                Target::Call(chain) => self.chain(chain, &list, beyond, depth + 1)?,
                Target::Drop => {
                    vec![Entry { matches: everything.clone(), bits: Bits::ANY, change: Change::drop() }]
                }
                _ => List::new(),
            };
            for matches in self.matches(rule)?.iter().rev() {
                let other = match &rule.target {
                    Target::Return => after,
                    Target::Accept => beyond,
                    Target::Call(_) | Target::Drop => &inside,
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

    /// Whether packets arrive at, or leave by, this device. They do at one of the ends of their way, the device in question. At
    /// the other end it is the only other device that rules name there, if there is one, and never the loopback device.
    fn passes(&self, device: &str, arrives: bool) -> Result<bool, Problem> {
        if arrives == self.arrives {
            return Ok(device == self.device);
        }
        if device == self.device || device == LOOPBACK {
            return Ok(false);
        }
        let rules = self.firewall.chains.values().flatten();
        let named =
            rules.filter_map(|rule| if arrives { rule.arrives.as_ref() } else { rule.leaves.as_ref() });
        let mut others =
            named.filter(|(other, _)| ![self.device, device, LOOPBACK].contains(&other.as_str()));
        match others.next() {
            None => Ok(true),
            Some((other, _)) if arrives => Err(Problem::new(format!(
                "rules of iptables by the devices where packets came in, {} and {}: packets that leave by {} do not say which it was",
                Found(device),
                Found(other),
                Found(self.device)
            ))
            .help("match their addresses: -s NETWORK")),
            Some((other, _)) => Err(Problem::new(format!(
                "rules of iptables by the devices by which packets leave, {} and {}: packets that arrive at {}, and give their connections marks, do not say which it is",
                Found(device),
                Found(other),
                Found(self.device)
            ))
            .help("match their addresses: -d NETWORK")),
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
