//! Builds a tree of rules.

use alloc::vec::Vec;

use super::address::Address;
use super::field;
use super::intervals::Intervals;
use super::item::Item;
use super::pieces::{Piece, hull};
use super::tree::{Group, Node, Tree};

/// This many filters are tested linearly as fast as any search.
const LEAF: usize = 8;
/// A split must save a packet at least this many filters in the worst case.
const GAIN: usize = 4;

struct Builder<'a, A: Address> {
    items: &'a [Item<A>],
    tree: Tree<A>,
    /// How many more copies of rules in several groups of a node are allowed.
    copies: usize,
}

/// A rule in a group: the group's prefix, and the rule.
type Entry<A> = (Piece<A>, u32);

/// How the rules of a node would be split.
struct Plan<A> {
    field: usize,
    entries: Vec<Entry<A>>,
    /// The number of additional entries beyond one per rule.
    copies: usize,
    /// The maximum number of rules against which a packet may have to be tested.
    worst: usize,
}

/// A prefix of rules.
struct Prefix<A> {
    piece: Piece<A>,
    /// Its entries.
    first: usize,
    count: usize,
    /// The next shorter prefix that contains it.
    around: Option<usize>,
    /// The number of rules of all prefixes that contain it, and its own.
    sum: usize,
}

/// Builds the tree of these rules, which must be in order.
pub(super) fn build<A: Address>(items: &[Item<A>]) -> Tree<A> {
    let root = Node::Leaf { first: 0, count: 0 };
    let tree = Tree { filters: Vec::new(), intervals: Intervals::new(), groups: Vec::new(), root };
    let mut builder = Builder { items, tree, copies: 4 * items.len() + 1_000 };
    let all: Vec<u32> = (0..items.len() as u32).collect();
    builder.tree.root = builder.node(&all, 0);
    let mut tree = builder.tree;
    tree.filters.shrink_to_fit();
    tree.intervals.shrink();
    tree.groups.shrink_to_fit();
    tree
}

impl<A: Address> Builder<'_, A> {
    /// Makes a node of rules. `used` has a bit for each field tested above.
    fn node(&mut self, rules: &[u32], used: u8) -> Node {
        if rules.len() > LEAF {
            let fields = (0..field::COUNT).filter(|field| used >> field & 1 == 0);
            let plans = fields.filter_map(|field| self.plan(field, rules));
            let best = plans.min_by_key(|plan| plan.worst);
            if let Some(plan) = best.filter(|plan| plan.worst + GAIN <= rules.len()) {
                return self.split(&plan, used | 1 << plan.field);
            }
        }
        let (first, count) = (self.tree.filters.len() as u32, rules.len() as u32);
        self.tree.filters.extend(rules.iter().map(|&rule| self.items[rule as usize].filter));
        Node::Leaf { first, count }
    }

    fn plan(&self, field: usize, rules: &[u32]) -> Option<Plan<A>> {
        let pieces = |rule: u32| &*self.items[rule as usize].pieces[field];
        if rules.iter().all(|&rule| pieces(rule).is_empty()) {
            return None;
        }
        let copies: usize = rules.iter().map(|&rule| pieces(rule).len().saturating_sub(1)).sum();
        let mut entries = Vec::with_capacity(rules.len() + copies);
        for &rule in rules {
            match pieces(rule) {
                several @ [_, _, ..] if copies <= self.copies => {
                    entries.extend(several.iter().map(|&piece| (piece, rule)));
                }
                pieces => entries.push((hull(pieces), rule)),
            }
        }
        let copies = entries.len() - rules.len();
        entries.sort_unstable();
        let worst = prefixes(&entries).iter().map(|prefix| prefix.sum).max()?;
        Some(Plan { field, entries, copies, worst })
    }

    fn split(&mut self, plan: &Plan<A>, used: u8) -> Node {
        self.copies -= plan.copies;
        let prefixes = prefixes(&plan.entries);
        let base = self.tree.groups.len() as u32;
        let none = Group { node: self.tree.root, around: Group::NONE, first: 0, last: 0 };
        self.tree.groups.extend(prefixes.iter().map(|_| none));
        for (nth, prefix) in prefixes.iter().enumerate() {
            let own = |prefix: &Prefix<A>| {
                let entries = &plan.entries[prefix.first..][..prefix.count];
                entries.iter().map(|&(_, rule)| rule)
            };
            let mut rules: Vec<u32> = own(prefix).collect();
            let mut around = prefix.around;
            if prefix.sum <= LEAF {
                while let Some(next) = around {
                    rules.extend(own(&prefixes[next]));
                    around = prefixes[next].around;
                }
                rules.sort_unstable();
            }
            let at = |nth: usize| self.items[rules[nth] as usize].filter.rule;
            let (first, last) = (at(0), at(rules.len() - 1));
            let node = self.node(&rules, used);
            let around = around.map_or(Group::NONE, |around| base + around as u32);
            self.tree.groups[base as usize + nth] = Group { node, around, first, last };
        }
        let row = self.tree.intervals.add(&intervals(&prefixes, base));
        Node::Split { field: plan.field as u8, row }
    }
}

/// The longest prefix of each value, for all values. Groups are numbered from `base` on.
fn intervals<A: Address>(prefixes: &[Prefix<A>], base: u32) -> Vec<(A, u32)> {
    let mut intervals: Vec<(A, u32)> = Vec::new();
    let mut begin = |start: A, prefix: Option<usize>| {
        // What began at the same value is empty.
        intervals.pop_if(|last| last.0 == start);
        intervals.push((start, prefix.map_or(Group::NONE, |prefix| base + prefix as u32)));
    };
    begin(A::default(), None);
    let mut open: Vec<usize> = Vec::new();
    for next in 0..=prefixes.len() {
        let prefix = prefixes.get(next);
        // Prefixes that do not contain the next one end here.
        while let Some(last) =
            open.pop_if(|last| prefix.is_none_or(|next| !prefixes[*last].piece.has(next.piece)))
        {
            let Prefix { piece, around, .. } = prefixes[last];
            if let Some(start) = piece.value.behind(piece.bits) {
                begin(start, around);
            }
        }
        if let Some(prefix) = prefix {
            open.push(next);
            begin(prefix.piece.value, Some(next));
        }
    }
    intervals
}

/// The prefixes of entries in order: each comes after all those that contain it.
fn prefixes<A: Address>(entries: &[Entry<A>]) -> Vec<Prefix<A>> {
    let mut prefixes: Vec<Prefix<A>> = Vec::new();
    let mut first = 0;
    for same in entries.chunk_by(|a, b| a.0 == b.0) {
        let piece = same[0].0;
        let mut around = prefixes.len().checked_sub(1);
        while let Some(other) = around.filter(|&other| !prefixes[other].piece.has(piece)) {
            around = prefixes[other].around;
        }
        let sum = same.len() + around.map_or(0, |around| prefixes[around].sum);
        prefixes.push(Prefix { piece, first, count: same.len(), around, sum });
        first += same.len();
    }
    prefixes
}
