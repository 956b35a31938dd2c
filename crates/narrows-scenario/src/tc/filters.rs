//! The filters of a device: adding and deleting them, as the kernel does.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use narrows_core::classify::Families;

use super::Handle;
use super::filter::{Filter, Head, Name, Which};
use super::u32::{FIRST_NODE, NODE};
use crate::netem::Verb;
use crate::problem::{Problem, one_of};

/// A filter and its place.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    /// The qdisc or class whose packets it examines.
    pub(super) parent: Handle,
    pub(super) filter: Filter,
    pub(super) span: Range<usize>,
}

/// Filters, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub(super) struct Filters {
    all: Vec<Placed>,
    /// Those at one place, in one chain, with one priority.
    groups: BTreeMap<(Handle, u32, u32), Group>,
}

/// What filters with one priority have in common.
#[derive(Clone, Debug)]
struct Group {
    kind: &'static str,
    families: Families,
    /// The first of them.
    span: Range<usize>,
    /// Positions by handle.
    handles: BTreeMap<u32, usize>,
}

/// The kind of filters that no command has made.
pub(super) const UNKNOWN: &str = "";

/// The range of the priorities that the kernel chooses: downwards from its end.
const CHOSEN: RangeInclusive<u32> = 0x8000..=0xc000;

impl Filters {
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Placed> {
        self.all.iter()
    }

    /// Adds a filter, or changes the one with the same handle.
    pub(super) fn add(&mut self, verb: Verb, mut new: Placed) -> Result<(), Problem> {
        let parent = new.parent;
        let filter = &mut new.filter;
        if filter.prio == 0 {
            // A filter without a priority gets its own, before the others without.
            let key = |prio: &u32| (parent, filter.chain, *prio);
            let mut chosen = self.groups.range(key(CHOSEN.start())..=key(CHOSEN.end()));
            filter.prio = chosen.next().map_or(*CHOSEN.end(), |((_, _, first), _)| first - 1);
        }
        let group = self.groups.entry((parent, filter.chain, filter.prio)).or_insert_with(|| Group {
            kind: filter.kind,
            families: filter.families,
            span: new.span.clone(),
            handles: BTreeMap::new(),
        });
        group.check(filter)?;
        let given = is_numbered(filter);
        if let Some(at) = group.handles.get(&filter.handle).copied().filter(|_| given) {
            if verb == Verb::Add {
                return Err(Problem::new("a filter with this handle already exists")
                    .also(&self.all[at].span, "put there")
                    .help("use `replace`"));
            }
            self.all[at] = new;
            return Ok(());
        }
        if !given {
            let twin = group.handles.values().map(|at| &self.all[*at]).find(|placed| {
                filter.kind == "flower"
                    && placed.filter.kind == "flower"
                    && placed.filter.which == filter.which
            });
            if let Some(twin) = twin {
                return Err(Problem::new("a filter `flower` with these keys and this `prio` already exists")
                    .also(&twin.span, "put there")
                    .help("the kernel keeps one; `replace` with its `handle` changes it"));
            }
            group.number(filter);
        }
        group.handles.insert(filter.handle, self.all.len());
        self.all.push(new);
        Ok(())
    }

    /// Deletes the filters with a priority and a handle, or all of them at a place. `exist` says whether
    /// there must be one.
    pub(super) fn delete(&mut self, parent: Handle, head: &Head, exist: bool) -> Result<(), Problem> {
        let handle = head.handle.as_ref().map(Name::number).transpose()?;
        let before = self.all.len();
        self.retain(|placed| {
            placed.parent != parent
                || placed.filter.chain != head.chain
                || head.prio.is_some_and(|prio| placed.filter.prio != prio)
                || handle.is_some_and(|handle| placed.filter.handle != handle)
        });
        if !exist || before != self.all.len() {
            return Ok(());
        }
        match (head.prio, handle) {
            (Some(prio), None) => Err(Problem::new(format!("there is no filter of the priority {prio}"))
                .help(self.known(parent, head.chain))),
            (_, Some(_)) => Err(Problem::new("there is no filter with this handle")),
            (None, None) => Ok(()),
        }
    }

    pub(super) fn retain(&mut self, stays: impl Fn(&Placed) -> bool) {
        self.all.retain(stays);
        let mut groups: BTreeMap<(Handle, u32, u32), Group> = BTreeMap::new();
        for (at, Placed { parent, filter, span }) in self.all.iter().enumerate() {
            let group = groups.entry((*parent, filter.chain, filter.prio)).or_insert_with(|| Group {
                kind: filter.kind,
                families: filter.families,
                span: span.clone(),
                handles: BTreeMap::new(),
            });
            group.handles.insert(filter.handle, at);
        }
        self.groups = groups;
    }

    /// Lists the priorities at a place.
    fn known(&self, parent: Handle, chain: u32) -> String {
        let known: Vec<String> = self
            .groups
            .range((parent, chain, 0)..=(parent, chain, u32::MAX))
            .map(|((_, _, prio), _)| prio.to_string())
            .collect();
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        if names.is_empty() {
            format!("there is none at {parent}")
        } else {
            format!("there is {}", one_of(&names))
        }
    }
}

impl Group {
    /// Checks that a filter may have this priority.
    fn check(&self, filter: &Filter) -> Result<(), Problem> {
        let prio = filter.prio;
        // The filters of a run have no kind.
        let what = if self.kind == UNKNOWN {
            return Ok(());
        } else if self.kind != filter.kind {
            format!("a filter `{}` has the priority {prio} already", self.kind)
        } else if self.families != filter.families {
            format!("a filter of another `protocol` has the priority {prio} already")
        } else {
            return Ok(());
        };
        Err(Problem::new(what)
            .also(&self.span, "the other filter")
            .help("the kernel has one kind and one protocol for each priority: use another `prio`"))
    }

    /// Gives a filter the next number.
    fn number(&self, filter: &mut Filter) {
        if filter.kind != "u32" {
            filter.handle = self.handles.last_key_value().map_or(1, |(last, _)| last.saturating_add(1));
            return;
        }
        if matches!(&filter.which, Which::Tables(table) if table.makes.is_some()) {
            return;
        }
        let bucket = filter.handle & !NODE;
        let last = self.handles.range(bucket..=bucket | NODE).next_back();
        let last = last.map_or(0, |(last, _)| last & NODE);
        filter.handle = bucket | (last + 1).clamp(FIRST_NODE, NODE);
    }
}

/// Whether the handle of a filter is given.
fn is_numbered(filter: &Filter) -> bool {
    match filter.kind {
        "u32" => filter.handle & NODE != 0,
        _ => filter.handle != 0,
    }
}
