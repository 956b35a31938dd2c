//! The link-sharing criterion: from the root downwards, the backlogged child with the least virtual time among those
//! whose fit time has come.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::curve::Path;
use super::{HfscClass, HfscCurve};
use crate::sched::{Mode, ShapedState};
use crate::service::Work;
use crate::time::Time;

/// A class in the tree; the root is the last one.
#[derive(Debug)]
struct Node {
    parent: Option<u32>,
    /// The link-sharing curve, and its virtual curve: virtual time by work.
    share: Option<(HfscCurve, Path)>,
    /// The upper limit, and when which work fits below it.
    limit: Option<(HfscCurve, Path)>,
    /// All work done.
    work: Work,
    /// The number of backlogged children; of a leaf, 1 if it is backlogged.
    active: u32,
    virtual_time: u64,
    /// Added to what the virtual curve says, since it was passed over because it did not fit.
    adjustment: u64,
    /// Counts its backlogged periods, and the parent's period of the last one.
    period: u64,
    parent_period: u64,
    /// By its own limit, and with those below it.
    own_fit: u64,
    fit: u64,
    /// When its virtual time was set, relative to siblings.
    order: u64,
    children: Children,
    /// Its counters.
    state: ShapedState,
}

/// The backlogged children of a class.
#[derive(Debug, Default)]
struct Children {
    /// By virtual time; of equals, the one set first.
    by_time: BTreeSet<(u64, u64, u32)>,
    by_fit: BTreeSet<(u64, u32)>,
    /// The virtual time of the last one that was served.
    least: u64,
    /// The greatest virtual time of any that became idle.
    most: u64,
}

impl Children {
    /// When one of them fits.
    fn fit(&self) -> u64 {
        self.by_fit.first().map_or(0, |(fit, _)| *fit)
    }
}

/// The class tree.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    orders: u64,
}

impl Tree {
    /// The classes, whose parents come before them, and a root.
    pub(super) fn new(classes: &[HfscClass], is_inner: &[bool]) -> Self {
        let root = classes.len() as u32;
        let with_path = |curve: Option<HfscCurve>| curve.map(|curve| (curve, Path::new(&curve)));
        let node = |parent, share, limit| Node {
            parent,
            share: with_path(share),
            limit: with_path(limit),
            work: Work(0),
            active: 0,
            virtual_time: 0,
            adjustment: 0,
            period: 0,
            parent_period: 0,
            own_fit: 0,
            fit: 0,
            order: 0,
            children: Children::default(),
            state: ShapedState::default(),
        };
        let of = |(class, is_inner): (&HfscClass, &bool)| {
            let parent = class.parent.map_or(root, |parent| parent as u32);
            // The curve of an inner class is for sharing, whatever it is called.
            let share = class.ls.or(class.rt.filter(|_| *is_inner));
            node(Some(parent), share, class.ul)
        };
        let mut nodes: Vec<Node> = classes.iter().zip(is_inner).map(of).collect();
        nodes.push(node(None, None, None));
        Self { nodes, orders: 0 }
    }

    fn root(&self) -> &Node {
        &self.nodes[self.nodes.len() - 1]
    }

    /// When a packet may be sent next by this criterion.
    pub(super) fn next(&self) -> Option<u64> {
        self.root().children.by_fit.first().map(|(fit, _)| *fit)
    }

    /// The leaf that sends now.
    pub(super) fn first(&self, now: Time) -> Option<u32> {
        let mut chosen = None;
        let mut node = self.root();
        // A class fits only if one of its backlogged children does, so this ends at a leaf.
        while !node.children.by_time.is_empty() {
            let fits = |child: &u32| self.nodes[*child as usize].fit <= now.nanos();
            let child = node.children.by_time.iter().map(|(.., child)| *child).find(fits)?;
            chosen = Some(child);
            node = &self.nodes[child as usize];
        }
        chosen
    }

    /// A leaf becomes backlogged.
    pub(super) fn activate(&mut self, now: Time, leaf: u32) {
        if self.nodes[leaf as usize].share.is_none() {
            return;
        }
        let (mut place, mut joins) = (leaf, true);
        while let Some(parent) = self.nodes[place as usize].parent {
            if joins {
                joins = self.nodes[place as usize].active == 0;
                self.nodes[place as usize].active += 1;
            }
            if joins {
                self.join(now, place, parent);
            }
            self.set_fit(place, parent);
            place = parent;
        }
    }

    /// A class becomes one of its parent's backlogged children.
    fn join(&mut self, now: Time, place: u32, parent: u32) {
        let above = &mut self.nodes[parent as usize];
        let (period, is_first) = (above.period, above.active == 0);
        let latest = above.children.by_time.last().map(|(time, ..)| *time);
        if latest.is_none() {
            above.children.least = 0;
        }
        let (least, most) = (above.children.least, above.children.most);
        let order = self.next_order();
        let node = &mut self.nodes[place as usize];
        match latest {
            // Halfway between the least and the greatest of its siblings, but in one period of the parent never back.
            Some(latest) => {
                let middle = if least == 0 { latest } else { least.midpoint(latest) };
                if period != node.parent_period || middle > node.virtual_time {
                    node.virtual_time = middle;
                }
            }
            // After all that there was, like the clock of the real-time criterion.
            None => node.virtual_time = most,
        }
        if let Some((curve, path)) = &mut node.share {
            path.lower(curve, node.virtual_time, node.work);
        }
        node.adjustment = 0;
        node.period += 1;
        node.parent_period = period + u64::from(is_first);
        node.fit = 0;
        node.order = order;
        if let Some((curve, path)) = &mut node.limit {
            path.lower(curve, now.nanos(), node.work);
            node.own_fit = path.when(node.work);
        }
        let (time, fit) = (node.virtual_time, node.fit);
        let children = &mut self.nodes[parent as usize].children;
        children.by_time.insert((time, order, place));
        children.by_fit.insert((fit, place));
    }

    /// Updates when a class fits, if it is backlogged.
    fn set_fit(&mut self, place: u32, parent: u32) {
        let node = &mut self.nodes[place as usize];
        let fit = node.own_fit.max(node.children.fit());
        let before = core::mem::replace(&mut node.fit, fit);
        let children = &mut self.nodes[parent as usize].children;
        if fit != before && children.by_fit.remove(&(before, place)) {
            children.by_fit.insert((fit, place));
        }
    }

    /// A leaf was chosen by this criterion: its virtual time, and that of its ancestors, is the least among siblings.
    pub(super) fn served(&mut self, leaf: u32) {
        let mut place = leaf;
        while let Some(parent) = self.nodes[place as usize].parent {
            let time = self.nodes[place as usize].virtual_time;
            let children = &mut self.nodes[parent as usize].children;
            children.least = children.least.max(time);
            place = parent;
        }
    }

    /// Charges work to a leaf, which is idle from now on if `leaves`, and to its ancestors.
    pub(super) fn charge(&mut self, leaf: u32, cost: Work, leaves: bool) {
        let (mut place, mut leaves) = (leaf, leaves && self.nodes[leaf as usize].share.is_some());
        while let Some(parent) = self.nodes[place as usize].parent {
            let order = self.next_order();
            let least = self.nodes[parent as usize].children.least;
            let node = &mut self.nodes[place as usize];
            node.work.0 += cost.0;
            if let Some((_, path)) = &node.share
                && node.active > 0
            {
                if leaves {
                    node.active -= 1;
                    leaves = node.active == 0;
                }
                let before = (node.virtual_time, node.order, place);
                // A class that did not fit when it was its turn does not catch up.
                let time = path.when(node.work).saturating_add(node.adjustment);
                node.adjustment = node.adjustment.saturating_add(least.saturating_sub(time));
                node.virtual_time = time.max(least);
                node.order = order;
                if let Some((_, path)) = &node.limit {
                    node.own_fit = path.when(node.work);
                }
                let after = (node.virtual_time, order, place);
                let fit = node.fit;
                let children = &mut self.nodes[parent as usize].children;
                children.by_time.remove(&before);
                if leaves {
                    children.by_fit.remove(&(fit, place));
                    children.most = children.most.max(after.0);
                } else {
                    children.by_time.insert(after);
                    self.set_fit(place, parent);
                }
            }
            place = parent;
        }
    }

    /// Counts a packet that was charged.
    pub(super) fn count(&mut self, now: Time, leaf: u32, length: u32, is_real_time: bool) {
        let mut place = Some(leaf);
        while let Some(of) = place.filter(|of| self.nodes[*of as usize].parent.is_some()) {
            let node = &mut self.nodes[of as usize];
            node.state.sent.add(length);
            let by = if is_real_time { &mut node.state.lent } else { &mut node.state.borrowed };
            *by += 1;
            node.state.over_limit += u64::from(node.active > 0 && node.own_fit > now.nanos());
            place = node.parent;
        }
    }

    /// The state of each class.
    pub(super) fn states(&self, now: Time) -> impl Iterator<Item = ShapedState> {
        self.nodes.iter().filter(|node| node.parent.is_some()).map(move |node| ShapedState {
            mode: if node.own_fit > now.nanos() { Mode::CannotSend } else { Mode::MaySend },
            ..node.state
        })
    }

    const fn next_order(&mut self) -> u64 {
        self.orders += 1;
        self.orders
    }
}
