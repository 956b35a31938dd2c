//! A tree of rules by their fields.

use alloc::vec::Vec;

use super::address::Address;
use super::filter::{Filter, View};
use super::intervals::{Intervals, Row};

/// Rules by what their fields begin with.
///
/// A node is a leaf, a row of filters, or asks for one field. Its values fall into intervals, each with a group of rules
/// whose prefix is the longest around the interval, which knows the group of the next longer prefix around it. A packet
/// goes into all groups around its value, so no rule is in the tree more often than its own prefixes are, but for small
/// groups: they stand in those of longer prefixes, too, so that there is one group to go into in place of several.
#[derive(Debug)]
pub(super) struct Tree<A: Address> {
    pub(super) filters: Vec<Filter<A>>,
    /// The values of fields, with groups' numbers.
    pub(super) intervals: Intervals<A>,
    pub(super) groups: Vec<Group>,
    pub(super) root: Node,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    Leaf {
        /// Filters, in the order of their rules.
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
    /// The group that is around this one.
    pub(super) around: u32,
    /// Its first and its last rule.
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Group {
    pub(super) const NONE: u32 = u32::MAX;
}

/// A search for the rules that a packet may match.
pub(super) struct Search<'a, A: Address> {
    pub(super) packet: View<A>,
    /// The first rule that counts, and the last one, which comes nearer when a rule is found that decides.
    pub(super) from: u32,
    pub(super) last: u32,
    pub(super) found: &'a mut Vec<super::Found>,
    /// Whether nothing was asked that is not in `packet`.
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

    /// Goes into all groups around the value of a field.
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
                // The others of this leaf come behind it.
                break;
            }
        }
    }

    /// How many filters there are.
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
    /// Takes a rule whose filter a packet got through, and says whether that decides.
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
