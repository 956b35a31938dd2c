//! Filters of the hooks of a device, `ingress` and `clsact`: they drop, pass, police or redirect packets before any queueing
//! discipline sees them.
//!
//! Source: `sch_ingress.c` and `cls_api.c` of Linux. The first filter that decides counts; a packet about which none
//! decides passes.

use std::collections::BTreeMap;

use narrows_core::classify::Families;

use super::Handle;
use super::bands::Bands;
use super::filter::{Filter, Runs, Which};
use super::filters::{Filters, Placed, UNKNOWN};
use super::netfilter::Marked;
use super::rules::joint;
use super::translate::{Draft, Keys, add};
use super::tree::{Qdisc, Tree};
use super::verdict::Verdict;
use super::{qdisc, rules};
use crate::keys::kind::text;
use crate::netem::Verb;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::value::Match;

/// A device that packets are redirected to.
pub(super) enum Target<'a> {
    /// Its disciplines apply before packets go on.
    Disciplines(&'a Tree),
    /// An intermediate device (ifb) without a discipline: packets pass through it.
    Through,
    /// Another device: packets leave by it.
    Elsewhere,
}

/// What a filter does with packets that have a condition.
pub(super) struct Stage<'a> {
    pub(super) matches: Option<Match>,
    pub(super) placed: &'a Placed,
    pub(super) verdict: Verdict,
    /// Whether the actions of the filter are executed: not behind a chain that it led to.
    acts: bool,
}

impl Stage<'_> {
    fn with(&self, action: &str) -> Table {
        let mut table = Table::default();
        if let Some(matches) = &self.matches {
            table.put("match", matches.value());
        }
        table.put("action", text(action));
        table
    }

    pub(super) fn wrong(&self, title: &str) -> Problem {
        Problem::new(title).put_at(&self.placed.span)
    }

    /// The keys of an edit or a gate.
    fn action(&self, action: &str, keys: Table) -> Table {
        let mut table = self.with(action);
        add(&keys, &mut table);
        if self.verdict == Verdict::Next {
            table.put("conform", text("next"));
        }
        table
    }

    /// The keys of a policer.
    fn police(&self, police: &Table, base: &str) -> Table {
        let mut table = self.with("police");
        let mut bucket = police.clone();
        let overhead = match bucket.get("overhead").map(|node| &node.value) {
            Some(Value::Table(parts)) => {
                let mut parts = parts.clone();
                parts.remove("base");
                parts.put("base", text(base));
                Value::Table(parts)
            }
            _ => text(base),
        };
        let exceed = bucket.take("exceed");
        bucket.remove("overhead");
        add(&bucket, &mut table);
        table.put("overhead", overhead);
        exceed.into_iter().for_each(|(_, node)| table.put("exceed", node.value));
        if self.verdict == Verdict::Next {
            table.put("conform", text("next"));
        }
        table
    }
}

/// The filters in the order in which they are tried, with what they match.
pub(super) fn stages(filters: &Filters) -> Result<Vec<Stage<'_>>, Problem> {
    let mut chains: BTreeMap<u32, Vec<&Placed>> = BTreeMap::new();
    filters.iter().for_each(|placed| chains.entry(placed.filter.chain).or_default().push(placed));
    chains.values_mut().for_each(|chain| rules::in_order(chain));
    let mut found = Vec::new();
    Chains(&chains).follow(0, None, 0, &mut found)?;
    check_hardware(&found)?;
    Ok(found)
}

/// Packets meet the filters of the device before those of the kernel, which then sees what the device has passed: here they
/// are one list, so a filter that only one of the two applies must not come between.
fn check_hardware(stages: &[Stage<'_>]) -> Result<(), Problem> {
    let Some(first) = stages.first() else { return Ok(()) };
    let Some(other) = stages.iter().find(|stage| stage.placed.filter.runs != first.placed.filter.runs) else {
        return Ok(());
    };
    if stages.len() > MOST_MIXED {
        return Err(other.wrong("`skip_sw` or `skip_hw` of some filters, among more than a thousand"));
    }
    for (at, first) in stages.iter().enumerate() {
        let passes = first.verdict == Verdict::Class && first.placed.filter.redirect.is_none();
        let apart: fn(Runs) -> bool = match first.placed.filter.runs {
            Runs::Anywhere => continue,
            Runs::Hardware if !passes => continue,
            Runs::Hardware => |runs| runs != Runs::Hardware,
            Runs::Software => |runs| runs == Runs::Hardware,
        };
        let behind = stages[at + 1..].iter().find(|stage| {
            apart(stage.placed.filter.runs) && joint(first.matches.as_ref(), stage.matches.as_ref()).is_some()
        });
        if let Some(stage) = behind {
            return Err(stage
                .wrong("packets meet this filter beside an earlier one: `skip_sw` and `skip_hw` give one of them to the device and the other to the kernel")
                .help("leave these words out: then the first filter decides"));
        }
    }
    Ok(())
}

/// The most filters of which some are for the device alone, or for the kernel.
const MOST_MIXED: usize = 1000;

/// The most stages, and the most chains on the way to one.
const MOST: usize = 1 << 16;
const DEEPEST: usize = 16;

/// The filters of each chain, in order.
#[derive(Clone, Copy)]
struct Chains<'s, 'a>(&'s BTreeMap<u32, Vec<&'a Placed>>);

impl<'a> Chains<'_, 'a> {
    /// Adds the stages of a chain for packets that have a condition.
    fn follow(
        self,
        chain: u32,
        before: Option<&Match>,
        depth: usize,
        found: &mut Vec<Stage<'a>>,
    ) -> Result<(), Problem> {
        let here = self.0.get(&chain).map_or(&[][..], Vec::as_slice);
        let tables = rules::Tables::of(here);
        tables.check()?;
        let mut ways = tables.ways();
        for placed in here {
            match &placed.filter.which {
                Which::Match(own) => self.decided(placed, joint(before, own.as_deref()), depth, found)?,
                Which::Any(any) => {
                    for own in any {
                        self.decided(placed, joint(before, Some(own)), depth, found)?;
                    }
                }
                Which::Tables(table) if table.is_at_root() && table.makes.is_none() => {
                    let ends = |placed: &Placed| {
                        let filter = &placed.filter;
                        filter.verdict != Verdict::Next
                            || filter.police.is_some()
                            || filter.too_long.is_some()
                    };
                    let here = ways.of((&**table, *placed), ends);
                    for (condition, placed) in here.map_err(|(problem, at)| problem.put_at(&at.span))? {
                        let own = Some(&condition).filter(|one| **one != Match::default());
                        self.decided(placed, joint(before, own), depth, found)?;
                    }
                }
                // No packet has a mark before it meets the firewall.
                Which::Tables(_) | Which::Nothing | Which::Flow(_) | Which::Mark(_) | Which::AnyMark => {}
            }
        }
        Ok(())
    }

    /// Adds the stages of a filter that matches these packets, if it can match any.
    fn decided(
        self,
        placed: &'a Placed,
        matches: Option<Option<Match>>,
        depth: usize,
        found: &mut Vec<Stage<'a>>,
    ) -> Result<(), Problem> {
        let Some(matches) = matches else { return Ok(()) };
        let filter = &placed.filter;
        if let Some(matches) = joint_if(matches.as_ref(), filter.too_long.as_deref()) {
            found.push(Stage { matches, placed, verdict: Verdict::Drop, acts: true });
        }
        let wrong = |title: String| Err(Problem::new(title).put_at(&placed.span));
        if found.len() >= MOST {
            return wrong(format!("filters that come to more than {MOST} conditions"));
        }
        let Verdict::Goto(chain) = filter.verdict else {
            let verdict = filter.verdict;
            let changed = filter.only.as_deref().map(|only| joint(matches.as_ref(), Some(only)));
            match changed {
                None => found.push(Stage { matches, placed, verdict, acts: true }),
                // Those that are not changed pass, or meet the next filters, too.
                Some(changed) => {
                    let all = changed.as_ref() == Some(&matches);
                    found.extend(changed.map(|matches| Stage { matches, placed, verdict, acts: true }));
                    if !all && verdict == Verdict::Class {
                        found.push(Stage { matches, placed, verdict, acts: false });
                    }
                }
            }
            return Ok(());
        };
        if depth == DEEPEST {
            return wrong(format!("chains of filters that lead to one another more than {DEEPEST} deep"));
        }
        if filter.set.is_some() || filter.prioritizes.is_some() {
            return wrong(
                "packets are changed before they come to another chain: let a filter of that chain do so"
                    .into(),
            );
        }
        if filter.police.is_some() || filter.gate.is_some() {
            found.push(Stage { matches: matches.clone(), placed, verdict: Verdict::Next, acts: true });
        }
        self.follow(chain, matches.as_ref(), depth + 1, found)?;
        // Packets that no filter of the chain matches pass, in the kernel without coming back.
        found.push(Stage { matches, placed, verdict: Verdict::Class, acts: false });
        Ok(())
    }
}

impl Tree {
    /// The keys for packets that arrive there. `other` finds the device that they may be redirected to.
    pub(super) fn arriving<'a>(
        &self,
        exact: bool,
        other: impl Fn(&str) -> Target<'a>,
    ) -> Result<Keys, Problem> {
        let mut draft = Draft::default();
        draft.notes.extend(self.arriving.iter().filter_map(marked_on_arrival));
        let stages = stages(&self.arriving)?;
        let inside = |stage: &&Stage<'_>| {
            let device = stage.placed.filter.redirect.as_ref();
            device.is_some_and(|device| !matches!(other(device), Target::Elsewhere))
        };
        let Some(at) = stages.iter().position(|stage| inside(&stage)) else {
            let filters = draft.filters(&stages, "ip", &other)?;
            draft.hook(self.behind_filters(filters, &stages)?);
            if !draft.keys.is_empty() {
                draft.notes.push(
                    "Filters of packets that arrive at the device apply before the queue and delay of that direction."
                        .into(),
                );
            }
            return Ok(draft.finish());
        };
        let (before, behind) = stages.split_at(at);
        let first = &behind[0];
        if self.dropped_arriving.iter().any(|dropped| dropped.value == 1) {
            return Err(first
                .wrong("packets are redirected, and then dropped by iptables")
                .help("drop them before by a filter of tc: action drop"));
        }
        if !self.written_arriving.is_empty() {
            draft.notes.push(
                "What iptables writes into headers of packets that arrive it writes behind the disciplines of the other device; on a link nothing is behind them, so the receiver gets them unchanged."
                    .into(),
            );
        }
        if let Some(stage) = behind.iter().find(|stage| stage.placed.filter.edits) {
            return Err(stage
                .wrong("packets are changed before the disciplines of another device")
                .help("packets are not changed on a link: leave the action that changes them out"));
        }
        if first.placed.filter.police.is_some() {
            return Err(first
                .wrong("arriving packets are both policed and redirected")
                .help("police them, or limit them by the disciplines of the device they are redirected to"));
        }
        let device = first.placed.filter.redirect.as_deref().unwrap_or_default();
        let Target::Disciplines(tree) = other(device) else {
            let filters = draft.filters(before, "ip", &other)?;
            draft.hook(filters);
            draft.notes.push(format!("{device} has no discipline: packets pass through it."));
            return Ok(draft.finish());
        };
        let mut tree = if device.contains("ifb") { tree.intermediate() } else { tree.clone() };
        tree.marks = marks(&stages, &self.connections)?;
        if let Err(problem) = draft.redirected(before, behind)
            && !takes_all(before, behind, device)
        {
            tree = around(tree, &stages, device).ok_or(problem)?;
            draft.notes.push(format!(
                "Packets that are not redirected to {device} pass beside its disciplines, through a class of their own."
            ));
        }
        let filters = draft.filters(before, "ip", &other)?;
        draft.hook(filters);
        let mut keys = tree.egress(exact)?;
        draft.notes.push(format!(
            "Packets that arrive pass {device} first: its disciplines are those of that direction of the link, so packets wait before their propagation delay, not after it."
        ));
        let own = draft.finish();
        keys.notes.splice(0..0, own.notes);
        keys.keys.extend(own.keys);
        Ok(keys)
    }

    /// Adds the keys of the filters that packets meet before the disciplines of the device, and what they note. Returns the
    /// classes that such filters put packets into.
    pub(super) fn leaving_hook(&self, draft: &mut Draft) -> Result<Vec<Marked>, Problem> {
        let stages = stages(&self.leaving)?;
        let filters = draft.filters(&stages, "frame", &|_| Target::Elsewhere)?;
        draft.hook(self.before_filters(&stages, filters)?);
        let mut classified = Vec::new();
        for stage in &stages {
            let filter = &stage.placed.filter;
            match (filter.prioritizes, stage.verdict) {
                (Some(value), Verdict::Class) => {
                    // Zero stands for the priority that packets have anyway; 16 is the same place in a map of 16.
                    let value = if value == 0 { 16 } else { value };
                    classified.push(Marked { matches: stage.matches.clone(), value });
                }
                (Some(_), _) => {
                    return Err(stage.wrong("`skbedit priority` of a filter that decides nothing"));
                }
                // Packets that a filter passes keep the priority that they have; later filters do not see them.
                (None, Verdict::Class) if filter.police.is_none() || !stage.acts => {
                    classified.push(Marked { matches: stage.matches.clone(), value: 0 });
                }
                _ => {}
            }
        }
        if classified.iter().all(|marked| marked.value == 0) {
            classified.clear();
        }
        Ok(classified)
    }
}

/// The marks that the filters of a hook have given to packets when they leave it: the first condition that holds counts.
fn marks(stages: &[Stage<'_>], connections: &[Marked]) -> Result<Vec<Marked>, Problem> {
    // From the last filter to the first: what becomes of packets that come to a filter. `None` keeps their mark.
    let mut list: Vec<(Option<Match>, Option<u32>)> = Vec::new();
    let gives = |filter: &Filter| filter.marks.is_some() || filter.restores && !connections.is_empty();
    if stages.iter().all(|stage| !gives(&stage.placed.filter)) {
        return Ok(Vec::new());
    }
    for stage in stages.iter().rev() {
        // What the filter gives to its packets.
        let filter = &stage.placed.filter;
        let of_connections =
            connections.iter().filter(|_| stage.acts && filter.restores && filter.marks.is_none());
        let mut given: Vec<(Option<Match>, Option<u32>)> = of_connections
            .filter_map(|marked| {
                Some((joint(stage.matches.as_ref(), marked.matches.as_ref())?, Some(marked.value)))
            })
            .collect();
        given.push((stage.matches.clone(), filter.marks.filter(|_| stage.acts)));
        if stage.verdict != Verdict::Next {
            list.splice(0..0, given);
        } else if stage.acts && gives(filter) {
            let mut all = Vec::new();
            for (own, mark) in given {
                all.extend(list.iter().filter_map(|(matches, later)| {
                    Some((joint(own.as_ref(), matches.as_ref())?, later.or(mark)))
                }));
                // Behind one that takes all packets, none counts.
                if list.iter().all(|(matches, _)| matches.is_some()) {
                    all.push((own, mark));
                }
            }
            all.append(&mut list);
            list = all;
        }
        if list.len() > MOST {
            return Err(stage.wrong("filters that give too many different marks"));
        }
    }
    Ok(list.into_iter().map(|(matches, mark)| Marked { matches, value: mark.unwrap_or(0) }).collect())
}

/// Those of these packets that are too long, if there are any.
fn joint_if(matches: Option<&Match>, too_long: Option<&Match>) -> Option<Option<Match>> {
    joint(matches, Some(too_long?))
}

/// Whether each packet that no filter drops is redirected to a device, by one filter or another.
fn takes_all(before: &[Stage<'_>], behind: &[Stage<'_>], device: &str) -> bool {
    let drops = before.len();
    for (at, stage) in before.iter().chain(behind).enumerate() {
        let filter = &stage.placed.filter;
        let acts = filter.police.is_some() || filter.set.is_some() || filter.gate.is_some();
        match stage.verdict {
            Verdict::Next if !acts => {}
            // Packets meet those before the first redirection at the ingress of the link.
            Verdict::Drop if !acts && at < drops => {}
            Verdict::Class if filter.redirect.as_deref() == Some(device) && !acts => {
                if stage.matches.is_none() {
                    return true;
                }
            }
            _ => return false,
        }
    }
    false
}

/// The disciplines of a device that some arriving packets are redirected to, in a class beside that of the others. `None` if
/// the filters do more.
fn around(mut inner: Tree, stages: &[Stage<'_>], device: &str) -> Option<Tree> {
    let outer = Handle {
        major: (1..0xffff)
            .rev()
            .find(|major| inner.qdiscs.iter().all(|qdisc| qdisc.handle.major != *major))?,
        minor: 0,
    };
    let [beside, redirected] = [1, 2].map(|minor| Handle { minor, ..outer });
    let root =
        inner.qdiscs.iter_mut().find(|qdisc| qdisc.parent.is_none()).filter(|root| root.stab.is_none())?;
    root.parent = Some(redirected);
    let span = root.span.clone();
    let kind = qdisc::Kind::Prio(Bands { bands: 2, map: [0; 16] });
    inner.qdiscs.push(Qdisc { handle: outer, parent: None, kind, stab: None, span });
    inner.names.insert(beside, "beside".into());
    inner.names.insert(redirected, "redirected".into());
    for (stage, prio) in stages.iter().zip(1..) {
        let filter = &stage.placed.filter;
        let ours = filter.redirect.as_deref() == Some(device);
        let acts = filter.police.is_some() || filter.set.is_some() || filter.gate.is_some();
        let (class, verdict) = match stage.verdict {
            Verdict::Class if ours => (Some(redirected), Verdict::Class),
            Verdict::Class if filter.redirect.is_none() && (!acts || !stage.acts) => {
                (Some(beside), Verdict::Class)
            }
            // Packets have met it before.
            Verdict::Drop | Verdict::Next if filter.redirect.is_none() && !acts => {
                if stage.verdict == Verdict::Next {
                    continue;
                }
                (None, Verdict::Drop)
            }
            _ => return None,
        };
        let filter = Filter {
            kind: UNKNOWN,
            prio,
            chain: 0,
            handle: 0,
            which: stage.matches.clone().map_or(Which::Match(None), Which::of),
            class,
            verdict,
            redirect: None,
            police: None,
            marks: None,
            restores: false,
            notices: Vec::new(),
            ..filter.clone()
        };
        let placed = Placed { parent: outer, filter, span: stage.placed.span.clone() };
        inner.filters.add(Verb::Add, placed).ok()?;
    }
    Some(inner)
}

impl Tree {
    /// The marks that filters at the hook of leaving packets give.
    pub(super) fn leaving_marks(&self) -> Result<Vec<Marked>, Problem> {
        let marks = marks(&stages(&self.leaving)?, &[])?;
        let first = self.leaving.iter().find(|placed| placed.filter.marks.is_some());
        match first.filter(|_| !self.marks.is_empty()) {
            Some(placed) => Err(Problem::new("marks by `skbedit` and by iptables")
                .put_at(&placed.span)
                .help("give all marks in one place")),
            None => Ok(marks),
        }
    }
}

/// A remark about a filter of marks, which arriving packets do not have.
fn marked_on_arrival(placed: &Placed) -> Option<String> {
    match placed.filter.which {
        Which::Mark(_) | Which::AnyMark => Some(
            "A filter `fw` of arriving packets matches none: the firewall, which marks packets, comes later, as in the kernel."
                .into(),
        ),
        _ => None,
    }
}

impl Draft {
    /// Checks that a link can have a redirection of arriving packets: all of them that come so far.
    fn redirected(&mut self, before: &[Stage<'_>], behind: &[Stage<'_>]) -> Result<(), Problem> {
        let first = &behind[0];
        let family = |stage: &Stage<'_>| match &stage.matches {
            None => Some(Families::ALL),
            Some(one) => {
                let families = one.families.iter().copied().reduce(Families::or)?;
                (Match { families: one.families.clone(), ..Match::default() } == *one).then_some(families)
            }
        };
        let passes = |stage: &&Stage<'_>| {
            let filter = &stage.placed.filter;
            match &filter.police {
                Some(police) if stage.acts => {
                    stage.verdict == Verdict::Class
                        || police.get("exceed").is_some_and(|node| node.value == text("pass"))
                }
                _ => stage.verdict == Verdict::Class && filter.redirect.is_none(),
            }
        };
        if let Some(stage) = before.iter().find(passes) {
            return Err(stage
                .wrong("some arriving packets pass and others are redirected")
                .help("here a redirection applies to all packets of a direction, except those that are dropped before"));
        }
        let Some(mut seen) = family(first) else {
            return Err(first.wrong("a redirection of some arriving packets").help(
                "here it applies to all packets of a direction: match all, as in: u32 match u32 0 0 …",
            ));
        };
        if seen == Families::ALL {
            if behind.len() > 1 {
                self.notes.push("The first filter takes every packet; later filters see none.".into());
            }
            return Ok(());
        }
        for stage in &behind[1..] {
            match family(stage).filter(|_| stage.placed.filter.redirect == first.placed.filter.redirect) {
                Some(families) => seen = seen.or(families),
                None => return Err(stage.wrong("a second filter of arriving packets, behind a redirection").help(
                    "here a redirection applies to all packets of a direction: put filters that drop before it",
                )),
            }
        }
        if seen != Families::ALL {
            self.notes.push(
                "The kernel redirects packets of the filter's `protocol` alone; here the disciplines are for all packets of this direction (`protocol all` means them all)."
                    .into(),
            );
        }
        Ok(())
    }

    /// The filters of a hook. `base` is what a packet counts.
    fn filters<'a>(
        &mut self,
        stages: &[Stage<'_>],
        base: &str,
        other: &dyn Fn(&str) -> Target<'a>,
    ) -> Result<Vec<Table>, Problem> {
        let mut list = Vec::new();
        for stage in stages {
            let filter = &stage.placed.filter;
            let leaves = [&filter.redirect, &filter.exceeding].into_iter().flatten().next();
            if let Some(device) = leaves {
                if !matches!(other(device), Target::Elsewhere) {
                    return Err(stage.wrong("a redirection of packets that exceed a policer").help(
                        "drop them, or limit all packets by the disciplines of the device they are redirected to",
                    ));
                }
                self.notes.push(format!(
                    "Packets that are redirected leave by {device}, which is not an end of this link: for the link they are dropped."
                ));
            }
            if !stage.acts {
                list.push(stage.with("pass"));
            } else if let (Some(keys), true) = (&filter.gate, stage.verdict != Verdict::Drop) {
                list.push(stage.action("gate", keys.clone()));
            } else if let (Some(set), true, None) = (&filter.set, stage.verdict != Verdict::Drop, leaves) {
                list.push(stage.action("edit", Table::default().and("set", Value::Table(set.clone()))));
            } else {
                match (&filter.police, stage.verdict, &filter.redirect) {
                    (Some(police), _, None) => list.push(stage.police(police, base)),
                    (Some(_), _, Some(_)) => {
                        return Err(stage.wrong("packets are both policed and redirected"));
                    }
                    (None, _, Some(_)) | (None, Verdict::Drop, _) => list.push(stage.with("drop")),
                    (None, Verdict::Class, None) => list.push(stage.with("pass")),
                    // The stages of a chain stand for the way to it.
                    (None, Verdict::Next | Verdict::Goto(_), None) => continue,
                }
            }
            if stage.matches.is_none() && list.last().is_some_and(|table| table.get("conform").is_none()) {
                break;
            }
        }
        Ok(list)
    }

    /// The key for filters of a hook: `policer` for a single one, else `ingress`.
    fn hook(&mut self, mut list: Vec<Table>) {
        // Without a decision a packet passes anyway.
        while list
            .last()
            .is_some_and(|table| table.get("action").is_some_and(|node| node.value == text("pass")))
        {
            list.pop();
        }
        match &mut list[..] {
            [] => {}
            [one] if one.get("rate").is_some() => {
                let mut policer = one.clone();
                policer.remove("action");
                policer.remove("conform");
                if policer.get("exceed").is_some_and(|node| node.value == text("next")) {
                    policer.put("exceed", text("pass"));
                }
                self.keys.push(("policer", Value::Table(policer)));
            }
            _ => {
                let list = list.into_iter().map(|table| Node::new(Value::Table(table))).collect();
                self.keys.push(("ingress", Value::Array(list)));
            }
        }
    }
}

impl Tree {
    /// Packets that leave meet the firewall first.
    fn before_filters(&self, stages: &[Stage<'_>], filters: Vec<Table>) -> Result<Vec<Table>, Problem> {
        let firewall = self.written_leaving.iter().cloned().chain(of_firewall(&self.dropped_leaving));
        match stages.first() {
            // What the firewall accepts would pass by the filters.
            Some(stage) if self.dropped_leaving.iter().any(|one| one.value == 0) => {
                Err(beside_firewall(stage))
            }
            _ => Ok(firewall.chain(filters).collect()),
        }
    }

    /// Packets that arrive meet the filters first.
    fn behind_filters(&self, filters: Vec<Table>, stages: &[Stage<'_>]) -> Result<Vec<Table>, Problem> {
        let passes = |stage: &&Stage<'_>| stage.verdict == Verdict::Class;
        let firewall = self.written_arriving.iter().cloned().chain(of_firewall(&self.dropped_arriving));
        let firewall: Vec<Table> = firewall.collect();
        match stages.iter().find(passes) {
            // What a filter passes would pass by the firewall.
            Some(stage) if !firewall.is_empty() => Err(beside_firewall(stage)),
            _ => Ok(filters.into_iter().chain(firewall).collect()),
        }
    }
}

/// What the firewall decides about packets, as filters.
fn of_firewall(dropped: &[Marked]) -> impl Iterator<Item = Table> {
    dropped.iter().map(|one| {
        let mut table = Table::default();
        if let Some(matches) = &one.matches {
            table.put("match", matches.value());
        }
        table.put("action", text(if one.value == 1 { "drop" } else { "pass" }));
        table
    })
}

fn beside_firewall(stage: &Stage<'_>) -> Problem {
    stage
        .wrong("filters of tc that pass packets, and rules of iptables that drop or change packets")
        .help("drop and change packets by filters alone: action drop, action pedit")
}
