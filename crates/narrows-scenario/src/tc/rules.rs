//! Flattens filters, including those of inner classes, into one list of rules for the leaf classes.

use std::collections::BTreeMap;
use std::ops::Range;

use super::bands::Bands;
use super::both::both;
use super::filter::Which;
use super::filters::Placed;
use super::netfilter::Marked;
use super::tree::Tree;
use super::u32::{Divisors, NODE, U32, Ways, check_table};
use super::verdict::{To, Verdict};
use super::{Handle, protocol, qdisc};
use crate::problem::Problem;
use crate::value::Match;

/// Decides about packets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    /// The condition; `None` for all packets.
    pub(super) matches: Option<Match>,
    pub(super) to: To,
}

/// The rules of a qdisc in order, and the class of packets that match none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    pub(super) default: Option<Handle>,
    /// Whether packets that match none are dropped by a filter.
    pub(super) drops: bool,
}

/// Maximum nesting depth of filters of inner classes.
const DEEPEST: usize = 16;
/// Maximum number of rules: filters of marks and of inner classes multiply.
const MOST: usize = 1 << 20;

impl Rules {
    pub(super) fn of(tree: &Tree, root: &super::tree::Qdisc) -> Result<Self, Problem> {
        let mut rules = Self::default();
        let mut first = Vec::new();
        if let qdisc::Kind::Hpd(hpd) = &root.kind {
            for (point, number) in &hpd.dscps {
                let class = tree.numbered(root.handle, *number);
                first.extend(class.map(|class| Rule {
                    matches: Some(Match { dscps: vec![*point], ..Match::default() }),
                    to: To::Class(class.id),
                }));
            }
        }
        rules.default = match &root.kind {
            qdisc::Kind::Htb(qdisc::Htb { default, .. }) | qdisc::Kind::Hfsc(default) if *default > 0 => {
                Some(Handle { minor: *default, ..root.handle })
                    .filter(|class| tree.classes.has(*class) && tree.below(*class).next().is_none())
            }
            qdisc::Kind::Hpd(_) => tree
                .classes
                .iter()
                .find(|known| known.id.qdisc() == root.handle && known.kind.is_default)
                .map(|known| known.id),
            kind => kind.bands().map(|bands| rules.by_priority(root.handle, &bands)),
        };
        // Until they are turned, the last rule is the first one.
        let mut turned = std::mem::take(&mut rules.rules);
        turned.reverse();
        let mut collected = Collected::new(tree);
        let origin = (root.handle, &root.span);
        if let Some(bands) = root.kind.bands() {
            let by_number: Vec<_> =
                tree.classified.iter().map(|one| by_number(one, root.handle, &bands)).collect();
            if by_number.iter().any(|(_, to)| to.is_some()) {
                collected.first_of(by_number, origin, 0, &mut turned)?;
            }
        }
        collected.at((root.handle, 0), None, 0, &mut turned)?;
        let is_cake = tree.is_cake(root.handle);
        let classified = tree.classified.iter().map(|classified| {
            let class = Handle { major: (classified.value >> 16) as u16, minor: classified.value as u16 };
            let is_own = class.qdisc() == root.handle;
            let to = match is_cake {
                true => (is_own && class.minor > 0).then_some(To::Tin(class.minor)),
                false => (is_own && tree.is_class(class)).then_some(To::Class(class)),
            };
            (Some(classified.matches.clone()), to)
        });
        let marked = if is_cake { tree.marks_of_tins(root) } else { Vec::new() };
        if let (true, Some(placed)) =
            (is_cake, tree.filters.iter().find(|placed| placed.parent == root.handle))
            && (classified.clone().any(|(_, to)| to.is_some()) || !marked.is_empty())
        {
            return Err(Problem::new(
                "filters of `cake`, and priorities or marks that choose its tins before them",
            )
            .put_at(&placed.span)
            .help("a packet gets both in the kernel: let filters choose tins, too, by `skbedit priority`"));
        }
        let classified: Vec<_> = classified.collect();
        if classified.iter().any(|(_, to)| to.is_some()) {
            collected.first_of(classified, origin, 0, &mut turned)?;
        }
        let marked = marked.into_iter().map(|(matches, to)| (Some(matches), to));
        collected.first_of(marked.collect(), origin, 0, &mut turned)?;
        rules.rules = first;
        rules.rules.extend(turned.into_iter().rev());
        let name = |id: Handle| tree.classes.get(id).map_or(id, |class| class.name());
        for rule in &mut rules.rules {
            rule.to = match (rule.to, rules.default) {
                (To::Class(class), _) => To::Class(name(class)),
                (To::Rest, Some(default)) => To::Class(name(default)),
                (to, _) => to,
            };
        }
        rules.default = rules.default.map(name);
        // Later rules than one that matches all packets never apply.
        if let Some(all) = rules.rules.iter().position(|rule| rule.matches.is_none()) {
            match rules.rules[all].to {
                To::Class(class) => rules.default = Some(class),
                To::Drop => (rules.default, rules.drops) = (None, true),
                To::Direct => rules.default = None,
                To::Rest | To::Flow(_) | To::Tin(_) => {}
            }
            let stays = matches!(rules.rules[all].to, To::Flow(_) | To::Tin(_));
            rules.rules.truncate(all + usize::from(stays));
        }
        Ok(rules.joined())
    }

    /// Adds rules for the priority map and the TOS byte, which the kernel reads of IPv4 packets only; returns the class of all other packets.
    fn by_priority(&mut self, handle: Handle, bands: &Bands) -> Handle {
        let band = |priority: usize| Handle { minor: u16::from(bands.map[priority]) + 1, ..handle };
        let rest = band(0);
        // One rule for each class, whose conditions exclude each other.
        let mut rules: Vec<(Handle, Match)> = Vec::new();
        for (bits, priority) in Bands::OF_POINTS {
            let (class, own) = (band(priority), Bands::asks(bits));
            match rules.iter_mut().find(|(known, _)| *known == class) {
                Some((_, all)) => {
                    all.dscps.extend(own.dscps);
                    all.dscps.sort_unstable();
                }
                None if class == rest => {}
                None => rules.push((class, own)),
            }
        }
        let rule = |(class, matches)| Rule { matches: Some(matches), to: To::Class(class) };
        self.rules.extend(rules.into_iter().map(rule));
        rest
    }

    /// Drops packets of classes that are longer than these numbers of bytes, for each class from 1 on.
    pub(super) fn limit(&mut self, longest: &[u32]) {
        let beyond = |class: Handle| {
            let most = longest.get(usize::from(class.minor).checked_sub(1)?).filter(|most| **most > 0)?;
            Some(Match { length: Some(most.saturating_add(1)..=u32::MAX), ..Match::default() })
        };
        let drop = |matches: Option<&Match>, class: Handle| {
            let matches = joint(matches, Some(&beyond(class)?))?;
            Some(Rule { matches, to: To::Drop })
        };
        let rest = self.default.and_then(|class| drop(None, class));
        for rule in std::mem::take(&mut self.rules) {
            if let To::Class(class) = rule.to {
                self.rules.extend(drop(rule.matches.as_ref(), class));
            }
            self.rules.push(rule);
        }
        self.rules.extend(rest);
    }

    /// Merges consecutive code points of one class into one rule.
    fn joined(mut self) -> Self {
        let only_dscps = |rule: &Rule| {
            rule.matches.as_ref().is_some_and(|one| {
                !one.dscps.is_empty() && Match { dscps: Vec::new(), ..one.clone() } == Match::default()
            })
        };
        let mut joined: Vec<Rule> = Vec::new();
        for rule in self.rules {
            match joined.last_mut() {
                Some(last) if last.to == rule.to && only_dscps(last) && only_dscps(&rule) => {
                    if let (Some(all), Some(more)) = (&mut last.matches, rule.matches) {
                        all.dscps.extend(more.dscps);
                        all.dscps.sort_unstable();
                        all.dscps.dedup();
                    }
                }
                _ => joined.push(rule),
            }
        }
        self.rules = joined;
        self
    }
}

/// Rules being collected from filters.
struct Collected<'a> {
    tree: &'a Tree,
    /// The filters of each place and chain, in the order in which they are tried.
    filters: BTreeMap<(Handle, u32), Vec<&'a Placed>>,
    /// How many more rules there may be.
    left: usize,
}

/// Rules from the last one to the first.
type Turned = Vec<Rule>;

/// The qdisc or class whose filter this is, and where the filter stands.
type Origin<'a> = (Handle, &'a Range<usize>);

impl<'a> Collected<'a> {
    fn new(tree: &'a Tree) -> Self {
        let mut filters: BTreeMap<(Handle, u32), Vec<&Placed>> = BTreeMap::new();
        for placed in tree.filters.iter() {
            filters.entry((placed.parent, placed.filter.chain)).or_default().push(placed);
        }
        filters.values_mut().for_each(|here| in_order(here));
        Self { tree, filters, left: MOST }
    }

    /// The rules of the filters in a chain of a qdisc or class, each combined with the condition that leads there, and
    /// those in `turned` behind them.
    fn at(
        &mut self,
        at: (Handle, u32),
        before: Option<&Match>,
        depth: usize,
        turned: &mut Turned,
    ) -> Result<(), Problem> {
        let here = self.filters.get(&at).cloned().unwrap_or_default();
        let tables = Tables::of(&here);
        tables.check()?;
        let mut ways = tables.ways();
        // From the last one to the first, so that those behind a filter are known.
        let mut ahead = &here[..];
        while let Some((placed, earlier)) = ahead.split_last() {
            ahead = earlier;
            match &placed.filter.which {
                Which::Match(own) => {
                    self.decided(placed, joint(before, own.as_deref()), depth, turned)?;
                }
                Which::Any(any) => {
                    for own in any.iter().rev() {
                        self.decided(placed, joint(before, Some(own)), depth, turned)?;
                    }
                }
                Which::Tables(table) if table.is_at_root() && table.makes.is_none() => {
                    let ends = |placed: &Placed| {
                        placed.filter.verdict != Verdict::Next || placed.filter.too_long.is_some()
                    };
                    let found = ways.of((&**table, *placed), ends);
                    let found = found.map_err(|(problem, at)| problem.put_at(&at.span))?;
                    for (condition, end) in found.into_iter().rev() {
                        self.decided(end, joint(before, Some(&condition)), depth, turned)?;
                    }
                }
                Which::Tables(_) | Which::Nothing | Which::Flow(_) => {}
                Which::Mark(_) | Which::AnyMark => {
                    let also = beside_mark(placed);
                    let alike = |placed: &&&Placed| placed.filter.kind == "fw" && beside_mark(placed) == also;
                    let more = ahead.iter().rev().take_while(alike).count();
                    let run = &here[ahead.len() - more..=ahead.len()];
                    ahead = &ahead[..ahead.len() - more];
                    let Some(own) = joint(before, also.as_ref()) else { continue };
                    let to = |mark| run.iter().find_map(|placed| of_mark(self.tree, placed, mark));
                    let marks = self.tree.marks.iter();
                    let marks =
                        marks.map(|marked| (joint(own.as_ref(), marked.matches.as_ref()), to(marked.value)));
                    // The others have the mark 0.
                    let others = to(0).map(|zero| (Some(own.clone()), Some(zero)));
                    let marks: Vec<_> = marks.chain(others).collect();
                    self.first_of(marks, (at.0, &placed.span), depth, turned)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the rules of a filter that matches these packets, if it can match any.
    fn decided(
        &mut self,
        placed: &Placed,
        matches: Option<Option<Match>>,
        depth: usize,
        turned: &mut Turned,
    ) -> Result<(), Problem> {
        let too_long = match (&matches, &placed.filter.too_long) {
            (Some(matches), Some(too_long)) => joint(matches.as_ref(), Some(too_long)),
            _ => None,
        };
        self.passed(placed, matches, depth, turned)?;
        match too_long {
            Some(matches) => self.push((placed.parent, &placed.span), Rule { matches, to: To::Drop }, turned),
            None => Ok(()),
        }
    }

    /// The same, of packets that it does not drop by their length.
    fn passed(
        &mut self,
        placed: &Placed,
        matches: Option<Option<Match>>,
        depth: usize,
        turned: &mut Turned,
    ) -> Result<(), Problem> {
        let from = (placed.parent, &placed.span);
        if let (Some(matches), Verdict::Goto(chain)) = (&matches, placed.filter.verdict) {
            // What no filter of the chain matches is for the default class.
            self.push(from, Rule { matches: matches.clone(), to: To::Rest }, turned)?;
            return match depth == DEEPEST {
                true => Err(Problem::new(format!(
                    "chains of filters that lead to one another more than {DEEPEST} deep"
                ))
                .put_at(&placed.span)),
                false => self.at((placed.parent, chain), matches.as_ref(), depth + 1, turned),
            };
        }
        match (matches, target(self.tree, placed)) {
            (Some(matches), Some(to)) => self.goes(from, matches, to, depth, turned),
            _ => Ok(()),
        }
    }

    fn push(&mut self, from: Origin<'_>, rule: Rule, turned: &mut Turned) -> Result<(), Problem> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            Problem::new(format!("filters that come to more than {MOST} rules")).put_at(from.1)
        })?;
        turned.push(rule);
        Ok(())
    }

    /// Adds the rules for packets that go to a class, which may have filters itself.
    fn goes(
        &mut self,
        from: Origin<'_>,
        matches: Option<Match>,
        to: To,
        depth: usize,
        turned: &mut Turned,
    ) -> Result<(), Problem> {
        let inner = match to {
            To::Class(class) => Some(class).filter(|class| self.tree.below(*class).next().is_some()),
            _ => None,
        };
        let Some(class) = inner else { return self.push(from, Rule { matches, to }, turned) };
        // What no filter of an inner class matches is for the default class.
        self.push(from, Rule { matches: matches.clone(), to: To::Rest }, turned)?;
        match class == from.0 || depth == DEEPEST {
            true => Ok(()),
            false => self.at((class, 0), matches.as_ref(), depth + 1, turned),
        }
    }

    /// Adds rules for conditions of which the first that holds counts. Where it says nothing, the packets meet
    /// the rules behind.
    fn first_of(
        &mut self,
        list: Vec<(Option<Option<Match>>, Option<To>)>,
        from: Origin<'_>,
        depth: usize,
        turned: &mut Turned,
    ) -> Result<(), Problem> {
        if list.is_empty() {
            return Ok(());
        }
        let behind = turned.clone();
        for (matches, to) in list.into_iter().rev() {
            let Some(matches) = matches else { continue };
            if let Some(to) = to {
                self.goes(from, matches, to, depth, turned)?;
                continue;
            }
            self.push(from, Rule { matches: matches.clone(), to: To::Rest }, turned)?;
            for rule in &behind {
                if let Some(both) = joint(matches.as_ref(), rule.matches.as_ref()) {
                    self.push(from, Rule { matches: both, to: rule.to }, turned)?;
                }
            }
        }
        Ok(())
    }
}

/// The band that the kernel gives packets by their priority where no filter decides: that of their number in the map or, if
/// it is a class of another discipline, of number 0. Nothing for those with the priority of their TOS byte, and for those
/// with a class of this discipline.
fn by_number(classified: &Marked, handle: Handle, bands: &Bands) -> (Option<Option<Match>>, Option<To>) {
    let (major, number) = ((classified.value >> 16) as u16, (classified.value & 0xf) as usize);
    let number = if major == 0 { number } else { 0 };
    let band = Handle { minor: u16::from(bands.map[number]) + 1, ..handle };
    let is_by_number = classified.value != 0 && major != handle.major;
    (Some(classified.matches.clone()), is_by_number.then_some(To::Class(band)))
}

/// Where a filter sends the packets that it matches; `None` if later filters are tried.
fn target(tree: &Tree, placed: &Placed) -> Option<To> {
    let priority = placed.filter.prioritizes.filter(|_| tree.is_cake(placed.parent));
    if let (Some(priority), Verdict::Class) = (priority, placed.filter.verdict) {
        let is_own = priority >> 16 == u32::from(placed.parent.major);
        return Some(if is_own { To::Tin(priority as u16) } else { To::Rest });
    }
    match (placed.filter.verdict, placed.filter.class) {
        // A chain is looked at by the caller.
        (Verdict::Next | Verdict::Goto(_), _) => None,
        (Verdict::Drop, _) => Some(To::Drop),
        (Verdict::Class, class) => {
            Some(class.map_or(To::Rest, |class| tree.target(placed.parent.qdisc(), class)))
        }
    }
}

/// What packets of a filter of marks must have beside the mark.
fn beside_mark(placed: &Placed) -> Option<Match> {
    match &placed.filter.which {
        Which::Mark(mark) => mark.also.as_deref().cloned(),
        _ => {
            let families = protocol::written(placed.filter.families);
            Some(Match { families, ..Match::default() }).filter(|also| *also != Match::default())
        }
    }
}

/// Where a filter of marks sends packets with a mark; `None` if it does not match.
fn of_mark(tree: &Tree, placed: &Placed, mark: u32) -> Option<To> {
    match &placed.filter.which {
        Which::Mark(of) if of.is(mark) => target(tree, placed),
        // The mark is the handle of the class.
        Which::AnyMark if tree.is_cake(placed.parent) && mark != 0 => {
            let (major, minor) = ((mark >> 16) as u16, mark as u16);
            [0, placed.parent.major].contains(&major).then_some(To::Flow(Handle { major, minor }))
        }
        Which::AnyMark if mark != 0 && mark >> 16 == u32::from(placed.parent.major) => {
            Some(To::Class(Handle { minor: mark as u16, ..placed.parent }))
        }
        _ => None,
    }
}

/// Both conditions; `None` if no packet has both.
pub(super) fn joint(one: Option<&Match>, other: Option<&Match>) -> Option<Option<Match>> {
    match (one, other) {
        (None, all) | (all, None) => Some(all.cloned()),
        (Some(one), Some(other)) => both(one, other).map(Some),
    }
}

/// Sorts filters into the order in which the kernel tries them: by priority; those of `u32` by number.
pub(super) fn in_order(here: &mut [&Placed]) {
    here.sort_by_key(|placed| {
        let filter = &placed.filter;
        (filter.prio, if filter.kind == "u32" { filter.handle & NODE } else { 0 })
    });
}

/// The tables of `u32` at one place.
pub(super) struct Tables<'a> {
    filters: Vec<(&'a U32, &'a Placed)>,
    divisors: Divisors,
}

impl<'a> Tables<'a> {
    /// Checks that each filter is in a table that exists.
    pub(super) fn check(&self) -> Result<(), Problem> {
        self.filters.iter().try_for_each(|(filter, placed)| {
            check_table(filter, &self.divisors).map_err(|problem| problem.put_at(&placed.span))
        })
    }

    /// The ways through them.
    pub(super) fn ways(&self) -> Ways<'_, &'a Placed> {
        Ways::new(self.filters.iter().copied(), &self.divisors)
    }

    pub(super) fn of(here: &[&'a Placed]) -> Self {
        let mut tables = Self { filters: Vec::new(), divisors: Divisors::new() };
        for placed in here {
            let Which::Tables(filter) = &placed.filter.which else { continue };
            match filter.makes {
                Some((table, buckets)) => {
                    tables.divisors.insert(table, buckets);
                }
                None => tables.filters.push((filter, placed)),
            }
        }
        tables
    }
}
