//! Redirections of packets that leave: `action mirred egress redirect dev ifb0` at a discipline, or at the egress of clsact.
//!
//! Source: `act_mirred.c`, `ifb.c` and `tcf_action_exec` of Linux. A redirected packet passes the disciplines of the
//! intermediate device first. That device sends it by the first one again, where the actions of the filter that it meets
//! are skipped once: it goes on into the filter's class. So it passes two disciplines, one behind the other. A link has
//! one queue: at most one of the two may hold packets, or `netem` comes first.

use narrows_core::classify::Families;

use super::Handle;
use super::bands::Bands;
use super::filter::{Filter, Which};
use super::filters::{Filters, Placed, UNKNOWN};
use super::hooks::{Stage, Target, stages};
use super::qdisc::{self, Kind, OF_INTERMEDIATE};
use super::tree::{Qdisc, Tree};
use super::verdict::Verdict;
use crate::netem::{self, Verb};
use crate::problem::Problem;
use crate::value::Match;

/// Where the filters are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// At the egress of clsact.
    Hook,
    /// At the discipline at the root.
    Root(Handle),
}

impl Tree {
    /// The tree with the disciplines that packets are redirected to in it, and remarks. `other` finds a device.
    pub(super) fn outgoing<'a>(
        &self,
        other: impl Fn(&str) -> Target<'a>,
    ) -> Result<(Self, Vec<String>), Problem> {
        let (mut tree, mut notes) = (self.clone(), Vec::new());
        let places = [(At::Hook, &self.leaving), (At::Root(Handle::ROOT), &self.filters)];
        let is_redirecting = |placed: &&Placed| placed.filter.redirect.is_some();
        if places.iter().all(|(_, filters)| !filters.iter().any(|placed| is_redirecting(&placed))) {
            return Ok((tree, notes));
        }
        let mut inside: Vec<(String, Tree)> = Vec::new();
        let mut place: Option<(At, Placed)> = None;
        for (at, filters) in places {
            for placed in filters.iter().filter(is_redirecting) {
                let device = placed.filter.redirect.as_deref().unwrap_or_default();
                let at = if at == At::Hook { at } else { At::Root(placed.parent) };
                let Target::Disciplines(disciplines) = other(device) else { continue };
                if disciplines.holds_nothing() {
                    continue;
                }
                if let Some((known, _)) = &place
                    && *known != at
                {
                    return Err(wrong(placed, "redirections of outgoing packets at two places"));
                }
                place = Some((at, placed.clone()));
                if inside.iter().all(|(known, _)| known != device) {
                    inside.push((device.to_owned(), disciplines.intermediate()));
                }
            }
        }
        tree.filters = passing(&self.filters, false, &other, &mut notes)?;
        tree.leaving = passing(&self.leaving, true, &other, &mut notes)?;
        match place {
            None => Ok((tree, notes)),
            Some((at, first)) => Ok((tree.with_devices(at, &first, inside, &mut notes)?, notes)),
        }
    }

    /// The disciplines of an intermediate device, with its queue length.
    pub(super) fn intermediate(&self) -> Self {
        let mut tree = self.clone();
        tree.is_intermediate = true;
        if tree.length.is_none() {
            tree.set_limits(OF_INTERMEDIATE);
        }
        tree
    }

    /// Gives the device a queue length (`txqueuelen`).
    pub(super) fn set_queue_length(&mut self, length: u32) {
        self.length = Some(length);
        self.set_limits(length);
    }

    fn set_limits(&mut self, packets: u32) {
        for qdisc in &mut self.qdiscs {
            if let Kind::Managed(managed) = &mut qdisc.kind {
                managed.at_queue_length(packets);
            }
        }
    }

    /// The tree around the disciplines of devices that packets are redirected to.
    fn with_devices(
        self,
        at: At,
        first: &Placed,
        inside: Vec<(String, Self)>,
        notes: &mut Vec<String>,
    ) -> Result<Self, Problem> {
        if let At::Root(parent) = at
            && self.root().is_none_or(|root| root.handle != parent)
        {
            return Err(wrong(first, "packets of a class are redirected"));
        }
        let mut own = match at {
            At::Hook => self.leaving.clone(),
            At::Root(_) => self.filters.clone(),
        };
        if let At::Root(root) = at {
            own.retain(|placed| placed.parent == root);
        }
        let unseen = |placed: &&Placed| {
            let by_mark = matches!(placed.filter.which, Which::Mark(_) | Which::AnyMark | Which::Flow(_));
            by_mark || placed.filter.marks.is_some() || placed.filter.prioritizes.is_some()
        };
        if let Some(placed) = own.iter().find(unseen) {
            return Err(wrong(
                placed,
                "a redirection of outgoing packets, and marks or priorities beside it",
            ));
        }
        let list = stages(&own)?;
        for stage in &list {
            let filter = &stage.placed.filter;
            let acts = filter.police.is_some() || filter.set.is_some() || filter.gate.is_some();
            if acts || filter.edits {
                return Err(stage
                    .wrong("a redirection of outgoing packets, and filters that police or change packets"));
            }
        }
        let device_of = |stage: &Stage<'_>| {
            let device =
                stage.placed.filter.redirect.as_deref().filter(|_| stage.verdict == Verdict::Class)?;
            inside.iter().position(|(known, _)| known == device)
        };
        let everything =
            list.iter().position(|stage| stage.matches.is_none() && stage.verdict != Verdict::Next);
        let everything = everything.filter(|all| {
            let of = device_of(&list[*all]);
            let ends = |stage: &Stage<'_>| {
                matches!(stage.verdict, Verdict::Drop | Verdict::Next) || device_of(stage) == of
            };
            of.is_some() && list[..*all].iter().all(ends)
        });
        let redirected: Vec<&Stage<'_>> = list.iter().filter(|stage| device_of(stage).is_some()).collect();
        let Some(one) = redirected.first() else {
            return Err(wrong(first, "a redirection that no packet meets"));
        };
        let waits = redirected.iter().find(|stage| !self.holds_nothing_for(at, &stage.placed.filter));
        let (name, disciplines) = &inside[device_of(one).unwrap_or_default()];
        match (waits, everything) {
            (None, Some(all)) => {
                let mut tree = disciplines.clone();
                let before = list[..all].iter().filter(|stage| stage.verdict == Verdict::Drop);
                for (prio, stage) in (1..).zip(before) {
                    let mut placed = of_stage(stage);
                    placed.filter.prio = prio;
                    tree.leaving.add(Verb::Add, placed)?;
                }
                tree.marks = self.marks;
                notes.push(format!(
                    "Packets pass {name} first: its disciplines are those of the link. The device's own hold no packets after that."
                ));
                Ok(tree)
            }
            (None, None) => {
                let decided = list.iter().filter(|stage| stage.verdict != Verdict::Next);
                let places: Vec<_> = decided.map(|stage| (device_of(stage), of_stage(stage))).collect();
                notes.push(
                    "Redirected packets pass the disciplines of the other device, in a class here; all others pass beside them."
                        .into(),
                );
                self.around(places, inside, first)
            }
            (Some(stage), everything) => {
                let (name, disciplines) = (name.clone(), disciplines.clone());
                self.in_series(
                    at,
                    stage,
                    everything.is_some(),
                    &redirected,
                    (&name, disciplines, inside.len()),
                    notes,
                )
            }
        }
    }

    /// Both disciplines, where one of them is `netem`.
    fn in_series(
        &self,
        at: At,
        stage: &Stage<'_>,
        everything: bool,
        redirected: &[&Stage<'_>],
        (name, disciplines, devices): (&str, Self, usize),
        notes: &mut Vec<String>,
    ) -> Result<Self, Problem> {
        let twice = || Err(waits_twice(stage, name));
        let drops = self
            .leaving
            .iter()
            .chain(self.filters.iter())
            .any(|placed| placed.filter.verdict == Verdict::Drop);
        let counted =
            [self, &disciplines].iter().any(|tree| tree.qdiscs.iter().any(|qdisc| qdisc.stab.is_some()));
        let all = everything || redirected.len() == list_of_protocols(redirected);
        if devices != 1 || drops || counted {
            return twice();
        }
        if !everything && all {
            notes.push(
                "The kernel redirects packets of the filter's `protocol` alone; here all packets pass both."
                    .into(),
            );
        }
        // As `netem` with the other discipline inside, or that with `netem` in a class.
        let (mut tree, netem, parent) = match (self.only_netem(), disciplines.only_netem()) {
            (Some(own), _) if all => (disciplines, own, None),
            (None, Some(netem)) if all => (self.clone(), netem, None),
            (None, Some(netem)) => match stage.placed.filter.class {
                Some(class) if self.only_way(class, redirected) => (self.clone(), netem, Some(class)),
                _ => return twice(),
            },
            _ => return twice(),
        };
        let mut filters = Filters::default();
        for placed in if at == At::Hook { self.leaving.iter() } else { tree.filters.iter() } {
            let mut placed = placed.clone();
            placed.filter.redirect = None;
            filters.add(Verb::Replace, placed)?;
        }
        match at {
            At::Hook => tree.leaving = filters,
            At::Root(_) => tree.filters = filters,
        }
        let handle = tree.free_major();
        if parent.is_none() {
            let root = tree.qdiscs.iter_mut().find(|qdisc| qdisc.parent.is_none());
            root.into_iter().for_each(|root| root.parent = Some(Handle { minor: 1, ..handle }));
        }
        tree.qdiscs.push(Qdisc { handle, parent, kind: netem, stab: None, span: stage.placed.span.clone() });
        notes.push(format!(
            "Packets pass {name} and then the device's own discipline: one of the two is `netem`, which is around the other here: its limit counts the packets in both."
        ));
        Ok(tree)
    }

    /// Whether all packets of a class, which is a leaf without a discipline, are those that are redirected by one filter.
    fn only_way(&self, class: Handle, redirected: &[&Stage<'_>]) -> bool {
        let Some(root) = self.root() else { return false };
        let is_default = match &root.kind {
            Kind::Htb(qdisc::Htb { default, .. }) | Kind::Hfsc(default) => *default == class.minor,
            _ => true,
        };
        let ways = self.filters.iter().filter(|placed| placed.filter.class == Some(class)).count();
        let is_leaf =
            self.is_class(class) && self.below(class).next().is_none() && self.child(class).is_none();
        let beyond = !self.classified.is_empty() || !self.marks.is_empty();
        !is_default && !beyond && is_leaf && ways == 1 && redirected.len() == 1
    }

    /// `netem` that is all there is.
    fn only_netem(&self) -> Option<Kind> {
        match &self.qdiscs[..] {
            [Qdisc { kind: Kind::Netem(netem), .. }] if matches!(netem.kind, netem::Kind::Netem(_)) => {
                Some(Kind::Netem(netem.clone()))
            }
            _ => None,
        }
    }

    fn free_major(&self) -> Handle {
        let free = |major: &u16| self.qdiscs.iter().all(|qdisc| qdisc.handle.major != *major);
        Handle { major: (1..0xffff).rev().find(free).unwrap_or(1), minor: 0 }
    }

    /// Whether its disciplines keep no packet waiting on a device without a speed, and change none.
    pub(super) fn holds_nothing(&self) -> bool {
        self.filters.iter().next().is_none() && self.qdiscs.iter().all(idle)
    }

    /// The same, for packets of a filter at a place.
    fn holds_nothing_for(&self, at: At, filter: &Filter) -> bool {
        let Some(root) = self.root() else { return true };
        let all = || self.qdiscs.iter().all(idle);
        match (&root.kind, at, filter.class) {
            (Kind::Prio(_) | Kind::Ets(_), At::Root(_), Some(class)) => match self.child(class) {
                None => self.is_class(class) || all(),
                Some(child) => idle(child) && self.only_child(child.handle).is_none(),
            },
            _ => all(),
        }
    }

    /// The disciplines of devices in classes beside one for all other packets.
    fn around(
        self,
        filters: Vec<(Option<usize>, Placed)>,
        inside: Vec<(String, Self)>,
        first: &Placed,
    ) -> Result<Self, Problem> {
        let outer = self.free_major();
        let band = |minor: usize| Handle { minor: minor as u16, ..outer };
        if inside.len() > 15 {
            return Err(wrong(first, "outgoing packets are redirected to more than 15 devices"));
        }
        let mut tree = self;
        tree.names.insert(band(1), "beside".into());
        if tree.root().is_some_and(|root| root.stab.is_some()) {
            return Err(wrong(
                first,
                "a redirection of outgoing packets, and `stab` of the device's discipline",
            ));
        }
        let inner = |placed: &Placed| placed.parent.minor > 0;
        let keeps = !tree.qdiscs.iter().all(idle) || tree.filters.iter().any(inner);
        if let Some(root) = tree.qdiscs.iter_mut().find(|qdisc| qdisc.parent.is_none()) {
            root.parent = Some(band(1));
        }
        if !keeps {
            (tree.qdiscs, tree.classes, tree.filters) = Default::default();
        }
        let kind = Kind::Prio(Bands { bands: inside.len() as u8 + 1, map: [0; 16] });
        tree.qdiscs.push(Qdisc { handle: outer, parent: None, kind, stab: None, span: first.span.clone() });
        // Packets that are redirected do not come to the discipline there.
        let mut others = Filters::default();
        for placed in tree.filters.iter().filter(|placed| placed.filter.redirect.is_none()) {
            others.add(Verb::Replace, placed.clone())?;
        }
        (tree.filters, tree.leaving) = (others, Filters::default());
        for (number, (name, disciplines)) in inside.into_iter().enumerate() {
            tree.names.insert(band(number + 2), name);
            tree.put_inside(&disciplines, band(number + 2), first)?;
        }
        for (prio, (device, mut placed)) in (1..).zip(filters) {
            placed.parent = outer;
            placed.filter.prio = prio;
            if placed.filter.verdict == Verdict::Class {
                placed.filter.class = Some(band(device.map_or(1, |device| device + 2)));
            }
            tree.filters.add(Verb::Add, placed)?;
        }
        Ok(tree)
    }

    /// Puts the disciplines of another device into a class, with handles that are free here.
    fn put_inside(&mut self, other: &Self, class: Handle, first: &Placed) -> Result<(), Problem> {
        let mut majors = std::collections::BTreeMap::new();
        for qdisc in &other.qdiscs {
            let is_free = self.qdiscs.iter().all(|known| known.handle != qdisc.handle);
            let new = if is_free { qdisc.handle } else { self.free_major() };
            majors.insert(qdisc.handle.major, new.major);
            self.qdiscs.push(Qdisc { handle: new, parent: Some(class), stab: None, ..qdisc.clone() });
            if qdisc.stab.is_some() {
                return Err(wrong(first, "outgoing packets are redirected to disciplines with a `stab`"));
            }
        }
        let new = |handle: Handle| Handle {
            major: majors.get(&handle.major).copied().unwrap_or(handle.major),
            ..handle
        };
        for qdisc in &other.qdiscs {
            let parent = qdisc.parent.map_or(class, new);
            let here = self.qdiscs.iter_mut().find(|known| known.handle == new(qdisc.handle));
            here.into_iter().for_each(|here| here.parent = Some(parent));
        }
        for one in other.classes.iter() {
            let (id, parent) = (new(one.id), new(one.parent));
            if id != one.id {
                self.names.insert(id, one.id.to_string());
            }
            self.classes.push(super::tree::Class { id, parent, ..one.clone() });
        }
        for placed in other.filters.iter() {
            let mut placed = placed.clone();
            placed.parent = new(placed.parent);
            placed.filter.class = placed.filter.class.map(new);
            self.filters.add(Verb::Add, placed)?;
        }
        Ok(())
    }
}

/// How many of these filters look at nothing but the protocol.
fn list_of_protocols(redirected: &[&Stage<'_>]) -> usize {
    let plain = |stage: &&&Stage<'_>| {
        stage.matches.as_ref().is_none_or(|one| {
            Match { families: one.families.clone(), ..Match::default() } == *one
                && one.families.iter().any(|family| *family != Families::OTHER)
        })
    };
    redirected.iter().filter(plain).count()
}

/// Filters without redirections that change nothing. Those to a device that is not on the link drop; a hook does that itself.
fn passing<'a>(
    filters: &Filters,
    hook: bool,
    other: &dyn Fn(&str) -> Target<'a>,
    notes: &mut Vec<String>,
) -> Result<Filters, Problem> {
    let mut changed = Filters::default();
    for placed in filters.iter() {
        let mut placed = placed.clone();
        let filter = &mut placed.filter;
        if let Some(device) = filter.redirect.clone() {
            let target = other(&device);
            let goes_through = match &target {
                Target::Through => true,
                Target::Disciplines(disciplines) => disciplines.holds_nothing(),
                Target::Elsewhere => false,
            };
            if goes_through && filter.edits {
                return Err(wrong(&placed, "packets are changed before they are redirected"));
            }
            if goes_through {
                filter.redirect = None;
                notes.push(format!(
                    "{device} holds no packets back: packets pass through it, and go on here."
                ));
            } else if matches!(target, Target::Elsewhere) && !hook {
                (filter.redirect, filter.verdict) = (None, Verdict::Drop);
                notes.push(format!(
                    "Packets that are redirected leave by {device}, which is not an end of this link: for the link they are dropped."
                ));
            }
        }
        if !hook && placed.filter.exceeding.is_some() {
            return Err(wrong(&placed, "outgoing packets above the rate of a policer are redirected"));
        }
        changed.add(Verb::Replace, placed)?;
    }
    Ok(changed)
}

/// A filter of the classes that stand for devices.
fn of_stage(stage: &Stage<'_>) -> Placed {
    let filter = Filter {
        kind: UNKNOWN,
        chain: 0,
        handle: 0,
        which: stage.matches.clone().map_or(Which::Match(None), Which::of),
        verdict: stage.verdict,
        redirect: None,
        notices: Vec::new(),
        ..stage.placed.filter.clone()
    };
    Placed { parent: Handle::ROOT, filter, span: stage.placed.span.clone() }
}

/// Whether a discipline holds no packet on a device without a speed.
fn idle(qdisc: &Qdisc) -> bool {
    match &qdisc.kind {
        Kind::Prio(_)
        | Kind::Ets(_)
        | Kind::Mq
        | Kind::Mqprio { .. }
        | Kind::Multiq
        | Kind::Gred(_)
        | Kind::Ingress => true,
        Kind::Managed(managed) => !managed.has_a_rate(),
        _ => false,
    }
}

fn wrong(placed: &Placed, title: &str) -> Problem {
    Problem::new(title)
        .put_at(&placed.span)
        .help("a link has one queue in a direction: put the disciplines at the device itself")
}

fn waits_twice(stage: &Stage<'_>, device: &str) -> Problem {
    stage
        .wrong(&format!(
            "redirected packets wait in the disciplines of {device}, and then in those of the device itself"
        ))
        .help("a link has one queue in a direction: keep one of the two, or write two links in a scenario")
}
