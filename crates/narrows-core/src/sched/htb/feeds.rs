//! Finds the classes that may send.
//!
//! A green class is in the row of its level. A yellow class is in a feed of its parent. Each is listed once for each
//! priority at which it or a descendant is backlogged. So the feeds lead from each member of a row down to the leaves
//! that send by what that member lends.

use alloc::vec;
use alloc::vec::Vec;

use super::class::Class;
use super::ring::Ring;
use super::{LEVELS, PRIORITIES};
use crate::bits::Bits;
use crate::sched::FlowId;
use crate::sched::shaping::Leaves;

#[derive(Debug)]
pub(super) struct Feeds {
    /// By level, then by priority: the numbers of leaves at level 0, the numbers of inner classes at the others.
    rows: Vec<[Ring; PRIORITIES]>,
    /// The priorities at which the row of a level is not empty, one bit each.
    in_use: [u8; LEVELS],
    /// For each inner class, by priority: the ranks of its children.
    feeds: Vec<[Ring; PRIORITIES]>,
    /// The numbers of inner classes: classes with children, counted.
    number: Vec<u32>,
    /// For each inner class: its children.
    children: Vec<Vec<u32>>,
}

impl Feeds {
    pub(super) fn new(classes: &[Class]) -> Self {
        let mut number = vec![u32::MAX; classes.len()];
        let inner = classes.iter().filter(|class| class.children > 0);
        for (n, class) in (0..).zip(inner) {
            number[class.place as usize] = n;
        }
        let inner = classes.iter().filter(|class| class.children > 0).count();
        let mut children = vec![Vec::new(); inner];
        for (place, class) in (0..).zip(classes) {
            if let Some(parent) = class.parent {
                children[number[parent as usize] as usize].push(place);
            }
        }
        Self {
            rows: vec![Default::default(); LEVELS],
            in_use: [0; LEVELS],
            feeds: vec![Default::default(); inner],
            number,
            children,
        }
    }

    /// The number of a class in the row of its level.
    fn in_row(&self, class: &Class) -> u32 {
        if class.children == 0 { class.leaf } else { self.number[class.place as usize] }
    }

    pub(super) fn enter_row(&mut self, class: &Class, mask: u8) {
        let (level, number) = (usize::from(class.level), self.in_row(class));
        let most = if level == 0 { self.number.len() - self.feeds.len() } else { self.feeds.len() };
        for priority in priorities(mask) {
            let row = &mut self.rows[level][priority];
            if !row.has_room() {
                *row = Ring::new(most);
            }
            row.insert(number);
        }
        self.in_use[level] |= mask;
    }

    pub(super) fn leave_row(&mut self, class: &Class, mask: u8) {
        let (level, number) = (usize::from(class.level), self.in_row(class));
        for priority in priorities(mask) {
            let row = &mut self.rows[level][priority];
            row.remove(number);
            if row.is_empty() {
                self.in_use[level] &= !(1 << priority);
            }
        }
    }

    /// Returns the priorities at which the feed was empty.
    pub(super) fn enter_feed(&mut self, class: &Class, parent: &Class, mask: u8) -> u8 {
        let feeds = &mut self.feeds[self.number[parent.place as usize] as usize];
        let mut fresh = 0;
        for priority in priorities(mask) {
            let feed = &mut feeds[priority];
            if !feed.has_room() {
                *feed = Ring::new(parent.children as usize);
            }
            fresh |= u8::from(feed.is_empty()) << priority;
            feed.insert(class.rank);
        }
        fresh
    }

    /// Returns the priorities at which the feed is now empty.
    pub(super) fn leave_feed(&mut self, class: &Class, parent: &Class, mask: u8) -> u8 {
        let feeds = &mut self.feeds[self.number[parent.place as usize] as usize];
        let mut last = 0;
        for priority in priorities(mask) {
            let feed = &mut feeds[priority];
            feed.remove(class.rank);
            last |= u8::from(feed.is_empty()) << priority;
        }
        last
    }

    /// The leaf to serve first, and the level of the lending class.
    pub(super) fn choose(&mut self, classes: &mut [Class], leaves: &Leaves) -> Option<(u32, u8)> {
        let level = self.in_use.iter().position(|&in_use| in_use != 0)?;
        let priority = self.in_use[level].trailing_zeros() as usize;
        // Each pass over a leaf in debt reduces its debt by a quantum, and the debt is bounded.
        loop {
            let leaf = self.descend(level, priority, leaves);
            if classes[leaf as usize].takes_turn(level as u8) {
                return Some((leaf, level as u8));
            }
            self.end_turn(classes, leaf, level as u8);
        }
    }

    /// The leaf whose turn it is, below the row member whose turn it is. A class passes the turn on when all its
    /// children have had theirs.
    fn descend(&mut self, level: usize, priority: usize, leaves: &Leaves) -> u32 {
        let row = &mut self.rows[level][priority];
        loop {
            let member = row.next(row.turn).or_else(|| row.next(0)).expect("the row is in use");
            row.turn = member;
            if level == 0 {
                return leaves.class_of(FlowId::new(member));
            }
            // Descend from the member. At the end of a feed, go back up to the one above it.
            let mut number = member;
            let mut above: [u32; LEVELS] = [0; LEVELS];
            let mut depth = 0;
            loop {
                let feed = &mut self.feeds[number as usize][priority];
                match feed.next(feed.turn) {
                    Some(rank) => {
                        feed.turn = rank;
                        let child = self.children[number as usize][rank as usize];
                        let inner = self.number[child as usize];
                        if inner == u32::MAX {
                            return child;
                        }
                        above[depth] = number;
                        depth += 1;
                        number = inner;
                    }
                    None => {
                        feed.turn = 0;
                        if depth == 0 {
                            break;
                        }
                        depth -= 1;
                        number = above[depth];
                        self.feeds[number as usize][priority].turn += 1;
                    }
                }
            }
            row.turn = member + 1;
        }
    }

    /// Ends the turn of a leaf.
    pub(super) fn end_turn(&mut self, classes: &[Class], leaf: u32, level: u8) {
        let class = &classes[leaf as usize];
        let priority = usize::from(class.priority);
        match class.parent {
            Some(parent) if level > 0 => {
                let feed = &mut self.feeds[self.number[parent as usize] as usize][priority];
                feed.turn = class.rank + 1;
            }
            _ => self.rows[0][priority].turn = class.leaf + 1,
        }
    }
}

/// The priorities whose bits are set.
fn priorities(mask: u8) -> impl Iterator<Item = usize> {
    Bits(mask.into()).map(|bit| bit as usize)
}
