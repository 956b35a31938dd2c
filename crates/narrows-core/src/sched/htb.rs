//! Hierarchical token bucket: M. Devera, "Hierarchical token bucket theory", 2002; Linux's sch_htb; as explained by
//! A. G. Moe, "Implementing Rate Control in NetEm", 2013, section 2.3.4.
//!
//! Classes form a tree, and packets wait in its leaves. Each class has two buckets: one fills at its assured `rate`
//! up to `burst`, the other at its `ceil` up to `cburst`. They determine the mode of the class:
//!
//! ```text
//! ceil bucket in debt    red     it may not send, nor lend
//! rate bucket in debt    yellow  it may borrow from its parent
//! neither                green   it may send, and lend
//! ```
//!
//! A backlogged leaf sends if it is green, or if all classes from it up to a green ancestor are yellow. Leaves that
//! borrow from the lowest green class are served first: green leaves before all others, then leaves that borrow from
//! deep classes, then those that borrow near the root. Among these, the lowest priority number is served first.
//! Classes of one priority take turns in configuration order, as in deficit round robin: a turn lasts until `quantum`
//! bytes have been sent. The children of a class take one round in each turn of their parent.
//!
//! The cost of a packet is taken from the buckets of the leaf and all its ancestors: from the ceil bucket always,
//! from the rate bucket starting with the class that lent, and upwards. A bucket may go into debt by the packet that
//! it admitted. So in any span d a class sends at most
//!
//! ```text
//! cburst + ceil·d + one packet,   and of its own   burst + rate·d + one packet
//! ```
//!
//! There is one exception: a green leaf sends whatever the modes of its ancestors, because its rate is assured. If
//! the rates of the leaves below a class add up to more than the class's ceil, that ceil is exceeded.
//!
//! Tokens are exact, in billionths of a bit. A class changes its mode at the first nanosecond at which its bucket is
//! out of debt; the kernel's timer is coarser. As in the kernel, debt beyond one minute is forgiven. Differences from
//! the kernel: A class whose quantum is smaller than a packet waits for as many turns as it owes, up to 64. (In the
//! kernel a turn is worth at least a packet, and the deficit runs away.) There is no direct queue: packets of no
//! class are dropped or go to the default class, as the classifier says. A ceiling below the rate limits the
//! class to the ceiling.
//!
//! The cost of a packet grows with the depth of the tree, which is at most 8, and with the logarithm of the number of
//! classes. A tournament tree finds the next change of a mode, and a bit set finds the next class.
//!
//! ```
//! # use narrows_core::{Bytes, PacketRef, Rate, Time};
//! # use narrows_core::sched::{FlowConfig, Htb, HtbClass, Served, Server};
//! let rate = |mbit: u64| Rate::from_bits_per_second(mbit * 1_000_000);
//! let class = |parent, mbit| HtbClass {
//!     parent,
//!     rate: rate(mbit),
//!     ceil: rate(8),
//!     burst: Bytes::new(1_500),
//!     cburst: Bytes::new(1_500),
//!     ..HtbClass::default()
//! };
//! let classes = vec![class(None, 8), class(Some(0), 6), class(Some(0), 2)];
//! let mut server = Server::new(Htb::new(classes).expect("a tree"));
//! let [first, second] = [(); 2].map(|()| server.join(FlowConfig::default()).expect("there are two leaves"));
//! for number in 0..8000 {
//!     let flow = if number % 2 == 0 { first } else { second };
//!     server.enqueue(Time::ZERO, flow, PacketRef::from_number(number), 1000);
//! }
//! let (mut now, mut sent) = (Time::ZERO, [0, 0]);
//! while now < Time::from_nanos(2_000_000_000) {
//!     match server.dequeue(now) {
//!         Served::Packet(flow, _) => sent[flow.number() as usize] += 1,
//!         Served::NotBefore(at) => now = at,
//!         _ => break,
//!     }
//! }
//! // Two seconds at 6 and 2 Mbit/s, a burst of 1500 bytes each, and half a packet on credit.
//! assert_eq!(sent, [1502, 502]);
//! ```

mod class;
mod feeds;
mod ring;

use alloc::vec::Vec;

use crate::queue::Wire;
use crate::sched::shaping::{Leaves, ShapingError, ShapingFault};
use crate::sched::tournament::Tournament;
use crate::sched::{ClassState, FlowConfig, FlowId, Flows, Mode, Refused, Scheduler, Selection, ShapedState};
use crate::service::Overhead;
use crate::time::Time;
use crate::units::{Bytes, Rate};
use class::Class;
use feeds::Feeds;

/// A class of an HTB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbClass {
    /// Index of the parent class, which must come before this one.
    pub parent: Option<usize>,
    /// The assured rate; not zero.
    pub rate: Rate,
    /// The maximum rate, borrowing included; not below the rate.
    pub ceil: Rate,
    /// Maximum number of bytes sent at once at the assured rate after idle time, plus one packet. May be zero.
    pub burst: Bytes,
    /// Like `burst`, for the ceiling.
    pub cburst: Bytes,
    /// Leaves only: the priority, 0 to 7. Lower numbers are served first, among leaves that borrow from the same
    /// level.
    pub priority: u8,
    /// Leaves only: bytes per turn; not zero. Use at least the longest packet.
    pub quantum: Bytes,
    /// The minimum cost of a packet.
    pub mpu: Bytes,
    /// What a packet costs this class; `None` for the link's overhead.
    pub overhead: Option<Overhead>,
}

impl Default for HtbClass {
    /// 1 Mbit/s without borrowing, and a burst of one packet.
    fn default() -> Self {
        let rate = Rate::from_bits_per_second(1_000_000);
        Self {
            parent: None,
            rate,
            ceil: rate,
            burst: Bytes::new(1600),
            cburst: Bytes::new(1600),
            priority: 0,
            quantum: Bytes::new(1600),
            mpu: Bytes::new(0),
            overhead: None,
        }
    }
}

/// Hierarchical token bucket. Its flows are the leaves of the tree, in configuration order.
#[derive(Debug)]
pub struct Htb {
    classes: Vec<Class>,
    leaves: Leaves,
    feeds: Feeds,
    /// When the modes of classes with backlogged leaves change next.
    changes: Tournament,
    overhead: Overhead,
    /// The leaf chosen last, and the level of the lending class.
    chosen: Option<(u32, u8)>,
}

/// The number of priorities.
const PRIORITIES: usize = 8;
/// The number of levels. A leaf is at level 0 wherever it is. A root class with children is at level 7, its children
/// with children at level 6.
const LEVELS: usize = 8;

impl Htb {
    /// The maximum number of classes from the root to a leaf, both counted.
    pub const DEPTH: usize = LEVELS;
    /// The maximum number of classes.
    pub const MOST: usize = 1 << 18;
    /// The maximum priority number.
    pub const LAST_PRIORITY: u8 = PRIORITIES as u8 - 1;

    /// An HTB with full buckets.
    ///
    /// # Errors
    /// If there are no classes, a parent does not come before its child, the tree is too deep, or a parameter of a
    /// class is out of range.
    pub fn new(classes: Vec<HtbClass>) -> Result<Self, ShapingError> {
        ShapingFault::of_count(classes.len(), Self::MOST)?;
        let mut made: Vec<Class> = Vec::with_capacity(classes.len());
        for (place, config) in classes.iter().enumerate() {
            let class = Class::new(config, place, &mut made).map_err(|fault| fault.of(place))?;
            made.push(class);
        }
        let no_children = |&class: &u32| made[class as usize].children == 0;
        let leaves = Leaves::new((0..made.len() as u32).filter(no_children).collect());
        for (leaf, class) in (0..).zip(leaves.iter()) {
            made[class as usize].become_leaf(leaf);
        }
        let mut changes = Tournament::default();
        changes.make_room(FlowId::new(made.len() as u32 - 1));
        let feeds = Feeds::new(&made);
        Ok(Self { classes: made, leaves, feeds, changes, overhead: Overhead::IP, chosen: None })
    }

    /// A leaf becomes backlogged.
    fn activate(&mut self, now: Time, leaf: u32) {
        let class = &mut self.classes[leaf as usize];
        class.active = 1 << class.priority;
        self.wake(now, leaf);
        let mask = self.classes[leaf as usize].active;
        self.link(now, leaf, mask);
    }

    /// A leaf becomes idle.
    fn deactivate(&mut self, leaf: u32) {
        let mask = self.classes[leaf as usize].active;
        self.unlink(leaf, mask);
        self.classes[leaf as usize].active = 0;
        self.changes.clear(FlowId::new(leaf));
    }

    /// Updates the mode of a class that becomes active, because idle classes are not updated.
    fn wake(&mut self, now: Time, class: u32) {
        let state = &mut self.classes[class as usize];
        state.mode = state.mode_at(now);
        self.await_change(class);
    }

    /// Schedules the next mode change of a class.
    fn await_change(&mut self, class: u32) {
        match self.classes[class as usize].next_change() {
            Some(at) => self.changes.set(FlowId::new(class), at.nanos()),
            None => self.changes.clear(FlowId::new(class)),
        }
    }

    /// Puts a class where its mode belongs, at the newly backlogged priorities in `mask`, and continues upwards.
    fn link(&mut self, now: Time, mut class: u32, mut mask: u8) {
        while mask > 0 {
            let state = &self.classes[class as usize];
            let parent = match (state.mode, state.parent) {
                (Mode::MaySend, _) => return self.feeds.enter_row(state, mask),
                (Mode::MayBorrow, Some(parent)) => parent,
                _ => return,
            };
            // If the parent had another backlogged child, it is where it belongs.
            let fresh = self.feeds.enter_feed(state, &self.classes[parent as usize], mask);
            let above = &mut self.classes[parent as usize];
            let was_idle = above.active == 0;
            above.active |= fresh;
            if was_idle {
                self.wake(now, parent);
            }
            (class, mask) = (parent, fresh);
        }
    }

    /// Removes a class from where [`Self::link`] put it, according to its mode then.
    fn unlink(&mut self, mut class: u32, mut mask: u8) {
        while mask > 0 {
            let state = &self.classes[class as usize];
            let parent = match (state.mode, state.parent) {
                (Mode::MaySend, _) => return self.feeds.leave_row(state, mask),
                (Mode::MayBorrow, Some(parent)) => parent,
                _ => return,
            };
            mask = self.feeds.leave_feed(state, &self.classes[parent as usize], mask);
            class = parent;
            let above = &mut self.classes[parent as usize];
            above.active &= !mask;
            if above.active == 0 {
                self.changes.clear(FlowId::new(parent));
            }
        }
    }

    /// Updates the mode of a class.
    fn refresh(&mut self, now: Time, class: u32) {
        let state = &self.classes[class as usize];
        let (mode, active) = (state.mode_at(now), state.active);
        if mode != state.mode {
            self.unlink(class, active);
            let changed = &mut self.classes[class as usize];
            changed.state.over_limit += u64::from(mode == Mode::CannotSend);
            changed.mode = mode;
            self.link(now, class, active);
        }
        self.await_change(class);
    }

    /// Updates all modes that have changed by now.
    fn catch_up(&mut self, now: Time) {
        while let Some((at, class)) = self.changes.least()
            && at <= now.nanos()
        {
            self.refresh(now, class.number());
        }
    }

    /// Charges a packet to a leaf and all its ancestors.
    fn charge(&mut self, now: Time, leaf: u32, lender: u8, length: u32) {
        let mut next = Some(leaf);
        while let Some(class) = next {
            let state = &mut self.classes[class as usize];
            let cost = state.cost(length, &self.overhead);
            state.charge(now, lender, cost, length);
            next = state.parent;
            if state.active > 0 {
                self.refresh(now, class);
            }
        }
    }
}

impl Scheduler for Htb {
    type Flow = ();
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, _flow: FlowConfig) -> Result<(), Refused> {
        self.leaves.join()
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<()>) {
        self.leaves.leave();
    }

    fn enqueue(&mut self, now: Time, flow: FlowId, _flows: &mut Flows<()>) {
        let leaf = self.leaves.class_of(flow);
        if self.classes[leaf as usize].active == 0 {
            self.activate(now, leaf);
        }
    }

    fn select(&mut self, now: Time, flows: &mut Flows<()>) -> Selection {
        self.catch_up(now);
        self.chosen = self.feeds.choose(&mut self.classes, &self.leaves);
        match self.chosen {
            Some((leaf, _)) => Selection::Flow(FlowId::new(self.classes[leaf as usize].leaf)),
            None if flows.waiting() == 0 => Selection::Empty,
            None => {
                let at = self.changes.least().map_or(u64::MAX, |(at, _)| at);
                Selection::NotBefore(Time::from_nanos(at))
            }
        }
    }

    fn sent(&mut self, now: Time, flow: FlowId, length: u32, flows: &mut Flows<()>) {
        let leaf = self.leaves.class_of(flow);
        let lender = match self.chosen.take() {
            Some((chosen, lender)) if chosen == leaf => lender,
            _ => 0,
        };
        let class = &mut self.classes[leaf as usize];
        if class.spend(lender, class.cost(length, &self.overhead)) {
            self.feeds.end_turn(&self.classes, leaf, lender);
        }
        if flows.packets(flow) == 0 {
            self.deactivate(leaf);
        }
        self.charge(now, leaf, lender, length);
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<()>) {
        let leaf = self.leaves.class_of(flow);
        if flows.packets(flow) == 0 && self.classes[leaf as usize].active > 0 {
            self.deactivate(leaf);
        }
    }

    fn set_wire(&mut self, _now: Time, wire: Wire) {
        self.overhead = wire.overhead;
    }

    fn states(&self, now: Time, _flows: &Flows<()>) -> Vec<ClassState> {
        self.classes.iter().map(|class| ClassState::Shaped(class.state(now))).collect()
    }
}
