//! A tree of rules by their fields.

use alloc::vec::Vec;

use super::address::Address;
use super::filter::{Filter, View};
use super::intervals::{Intervals, Row};

/// Rules by field prefix.
///
/// A node is a leaf (a row of filters) or tests one field. The field's values are divided into intervals. Each
/// interval has the group of rules of the longest prefix that contains it, and each group refers to the group of the
/// next shorter prefix around it. A packet visits all groups around its value, so a rule is stored once per prefix.
/// Exception: small groups also contain the rules of the groups around them, so that a packet visits one group
/// instead of several.
#[derive(Debug)]
pub(super) struct Tree<A: Address> {
    pub(super) filters: Vec<Filter<A>>,
    /// The values of fields, with group numbers.
    pub(super) intervals: Intervals<A>,
    pub(super) groups: Vec<Group>,
    pub(super) root: Node,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    Leaf {
        /// Filters, in rule order.
        first: u32,
        count: u32,
    },
    Split {
        field: u8,
        row: Row,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) node: Node,
    /// The group around this one.
    pub(super) around: u32,
    /// Its first and last rule.
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Group {
    pub(super) const NONE: u32 = u32::MAX;
}

/// A search for the rules that a packet may match.
pub(super) struct Search<'a, A: Address> {
    pub(super) packet: View<A>,
    /// The first rule of the search, and the last one. The last one moves forward when a rule is found that decides.
    pub(super) from: u32,
    pub(super) last: u32,
    pub(super) found: &'a mut Vec<super::Found>,
    /// Whether nothing beyond `packet` was tested.
    pub(super) in_view: bool,
    /// Whether a rule matches.
    pub(super) matches: &'a dyn Fn(u32) -> bool,
}

impl<A: Address> Tree<A> {
    #[inline]
    pub(super) fn search(&self, search: &mut Search<'_, A>) {
        match self.root {
            Node::Leaf { first, count } => self.sift(first, count, search),
            Node::Split { field, row } => self.visit(field, row, search),
        }
    }

    /// Visits all groups around the value of a field.
    fn visit(&self, field: u8, row: Row, search: &mut Search<'_, A>) {
        let mut group = self.intervals.find(row, search.packet.fields[usize::from(field)]);
        while group != Group::NONE {
            let Group { node, around, first, last } = self.groups[group as usize];
            if first <= search.last && last >= search.from {
                match node {
                    Node::Leaf { first, count } => self.sift(first, count, search),
                    Node::Split { field, row } => self.visit(field, row, search),
                }
            }
            group = around;
        }
    }

    #[inline]
    fn sift(&self, first: u32, count: u32, search: &mut Search<'_, A>) {
        for filter in &self.filters[first as usize..][..count as usize] {
            if filter.fits(&search.packet) && search.take(filter) {
                // The other filters of this leaf come after it.
                break;
            }
        }
    }

    /// The number of filters.
    pub(super) fn len(&self) -> usize {
        self.filters.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.intervals.bytes()
            + self.filters.capacity() * size_of::<Filter<A>>()
            + self.groups.capacity() * size_of::<Group>()
    }
}

impl<A: Address> Search<'_, A> {
    /// Takes a rule whose filter a packet passed. Returns whether that ends the search of the leaf.
    fn take(&mut self, filter: &Filter<A>) -> bool {
        let rule = filter.rule;
        if rule < self.from || rule > self.last {
            return rule > self.last;
        }
        let is_sure = filter.whole || filter.settled;
        if !filter.whole {
            self.in_view &= filter.in_view;
            if filter.settled && !(self.matches)(rule) {
                return false;
            }
        }
        self.found.push(super::Found::new(rule, is_sure));
        let decides = is_sure && filter.decides;
        if decides {
            self.last = rule;
        }
        decides
    }
}
