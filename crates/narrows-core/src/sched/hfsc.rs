//! Hierarchical fair service curves: I. Stoica, H. Zhang, T. S. E. Ng, "A hierarchical fair service curve algorithm for
//! link-sharing, real-time, and priority services", SIGCOMM 1997 and IEEE/ACM Transactions on Networking 8(2), 2000;
//! with the upper limits and the virtual times of Linux's sch_hfsc (P. McHardy and others, 6.12).
//!
//! Classes form a tree, and packets wait in its leaves. A service curve S(t) is the work that a class gets in the time
//! t after it became backlogged. It has two linear pieces: slope `m1` for the time `d`, then slope `m2`. A concave curve
//! (m1 above m2) serves the first packets early and so gives a low delay at a low rate. A class has up to three curves:
//!
//! ```text
//! rt   real time    leaves only: the least service, whatever the tree says
//! ls   link share   the share of what real time leaves, relative to siblings
//! ul   upper limit  the most service by link sharing, in real time
//! ```
//!
//! **Real time.** A backlogged period that starts at a, when the leaf has had work c by this criterion, changes its
//! deadline curve D(t) ← min(D(t), c + S(t − a)). With c now, and the first packet of length L,
//!
//! ```text
//! eligible  e = E⁻¹(c)      E = D if S is concave, or else D with m2 from its start on
//! deadline  d = D⁻¹(c + L)
//! ```
//!
//! Among leaves with e ≤ now, the one with the earliest deadline sends. If the curves of all leaves add up to no more
//! than the link can do, in any time from 0 on, every packet is sent by its deadline plus the time of one packet of
//! maximum length on the link (theorem 1 of the paper). That does not hold after two convex curves of one leaf cross: of
//! these the one that is lower at a stays as D, as in Linux, where the definition has the lower of both at any time.
//!
//! **Link sharing.** If no leaf is eligible, the tree is searched from the root: at each level the child with the least
//! virtual time sends, v = V⁻¹(w), where w is all its work and V follows from `ls` as D from `rt`, with the parent's
//! virtual time as its clock. A child that becomes backlogged starts halfway between its siblings' least and greatest
//! virtual times. If it is the first, it starts where the last one ended. The work of both criteria counts.
//!
//! **Upper limit.** A class is passed over until its fit time U⁻¹(w), or that of all backlogged children. Its virtual
//! time moves on meanwhile. Real time has no upper limit.
//!
//! Curves are exact: work in billionths of a bit, times in nanoseconds, rounded up where a curve is inverted. Linux has
//! ticks of 64 ns, and inverse slopes of few digits above some 100 Mbit/s. A class with children shares by `rt` if it
//! has no `ls`, as in Linux. Departures from it: The second slope of a curve is not zero, because the class could stop for
//! good. (There, an overflow makes it unlimited.) Packets of no class are dropped or go to the default class, as the
//! classifier says.
//!
//! The cost of a packet grows with the depth of the tree, which is at most 16, with the logarithm of the number of
//! siblings, and with the number of siblings that are passed over because they do not fit.
//!
//! ```
//! # use narrows_core::{Duration, PacketRef, Rate, Time};
//! # use narrows_core::sched::{FlowConfig, Hfsc, HfscClass, HfscCurve, Served, Server};
//! let rate = |kbit: u64| Rate::from_bits_per_second(kbit * 1_000);
//! // A packet of 1000 bytes within 5 ms, at 400 kbit/s. Alone, a rate of 400 kbit/s would mean 20 ms.
//! let voice = HfscCurve { m1: rate(1_600), d: Duration::from_millis(5), m2: rate(400) };
//! let class = |curve| HfscClass { rt: Some(curve), ls: Some(curve), ..HfscClass::default() };
//! let classes = vec![class(voice), class(HfscCurve::linear(rate(400)))];
//! let mut server = Server::new(Hfsc::new(classes).expect("a tree"));
//! let [voice, bulk] = [(); 2].map(|()| server.join(FlowConfig::default()).expect("there are two leaves"));
//! for number in 0..100 {
//!     server.enqueue(Time::ZERO, bulk, PacketRef::from_number(number), 1000);
//! }
//! // The link takes 4 ms for a packet.
//! for packet in 0..3 {
//!     let now = Time::ZERO + Duration::from_millis(4 * packet);
//!     assert!(matches!(server.dequeue(now), Served::Packet(flow, _) if flow == bulk));
//! }
//! server.enqueue(Time::ZERO + Duration::from_millis(11), voice, PacketRef::from_number(100), 1000);
//! let now = Time::ZERO + Duration::from_millis(12);
//! assert!(matches!(server.dequeue(now), Served::Packet(flow, _) if flow == voice));
//! ```

mod curve;
mod realtime;
mod sharing;

use alloc::vec::Vec;

use crate::queue::Wire;
use crate::sched::bucket;
use crate::sched::shaping::{Leaves, ShapingError, ShapingFault};
use crate::sched::{ClassState, FlowConfig, FlowId, Flows, Refused, Scheduler, Selection};
use crate::service::{Overhead, Work};
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};
use realtime::{Guarantee, Guarantees};
use sharing::Tree;

/// A service curve of two linear pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HfscCurve {
    /// The slope of the first piece.
    pub m1: Rate,
    /// The length of the first piece in time.
    pub d: Duration,
    /// The slope of the second piece, which has no end.
    pub m2: Rate,
}

impl HfscCurve {
    /// A curve of one slope.
    pub const fn linear(rate: Rate) -> Self {
        Self { m1: Rate::DOWN, d: Duration::ZERO, m2: rate }
    }

    /// Whether the second slope is at least the first.
    fn is_convex(&self) -> bool {
        self.m1 <= self.m2
    }
}

/// A class of an HFSC tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HfscClass {
    /// Index of the parent class, which must come before this one.
    pub parent: Option<usize>,
    /// Leaves only: the guaranteed service. For a class with children it is its `ls`, if it has no other.
    pub rt: Option<HfscCurve>,
    /// The share in what real time leaves, relative to siblings.
    pub ls: Option<HfscCurve>,
    /// The limit of the service by link sharing.
    pub ul: Option<HfscCurve>,
}

/// Hierarchical fair service curves. Its flows are the leaves of the tree, in configuration order.
#[derive(Debug)]
pub struct Hfsc {
    tree: Tree,
    guarantees: Guarantees,
    /// What leaves have besides, by class.
    own: Vec<Leaf>,
    leaves: Leaves,
    overhead: Overhead,
    /// The leaf chosen last, and whether by the real-time criterion.
    chosen: Option<(u32, bool)>,
}

#[derive(Debug)]
struct Leaf {
    flow: FlowId,
    guarantee: Option<Guarantee>,
    is_backlogged: bool,
}

impl Hfsc {
    /// The maximum number of classes from the root to a leaf, both counted.
    pub const DEPTH: usize = 16;
    /// The maximum number of classes.
    pub const MOST: usize = 1 << 16;

    /// A tree without backlog.
    ///
    /// # Errors
    /// If there are no classes, a parent does not come before its child, the tree is too deep, or the curves of a class
    /// do not go together.
    pub fn new(classes: Vec<HfscClass>) -> Result<Self, ShapingError> {
        ShapingFault::of_count(classes.len(), Self::MOST)?;
        let (mut is_inner, mut depths) = (alloc::vec![false; classes.len()], alloc::vec![1; classes.len()]);
        for (place, class) in classes.iter().enumerate() {
            class.check(place).map_err(|fault| fault.of(place))?;
            if let Some(parent) = class.parent {
                is_inner[parent] = true;
                depths[place] = depths[parent] + 1;
            }
            if depths[place] > Self::DEPTH {
                return Err(ShapingFault::TooDeep { most: Self::DEPTH }.of(place));
            }
        }
        let leaves =
            Leaves::new((0..).zip(&is_inner).filter(|(_, inner)| !**inner).map(|(at, _)| at).collect());
        let mut own: Vec<Leaf> = Vec::with_capacity(classes.len());
        let mut flow = 0;
        for (class, is_inner) in classes.iter().zip(&is_inner) {
            let guarantee = class.rt.filter(|_| !is_inner).map(Guarantee::new);
            own.push(Leaf { flow: FlowId::new(flow), guarantee, is_backlogged: false });
            flow += u32::from(!is_inner);
        }
        Ok(Self {
            tree: Tree::new(&classes, &is_inner),
            guarantees: Guarantees::default(),
            own,
            leaves,
            overhead: Overhead::IP,
            chosen: None,
        })
    }

    fn cost(&self, length: u32) -> Work {
        bucket::cost(length, &self.overhead, Bytes::new(0))
    }

    /// The cost of a flow's first packet, if it has one.
    fn next(&self, flow: FlowId, flows: &Flows<()>) -> Option<Work> {
        flows.first(flow).map(|first| self.cost(first.length))
    }
}

impl HfscClass {
    fn check(&self, place: usize) -> Result<(), ShapingFault> {
        if let Some(parent) = self.parent.filter(|parent| *parent >= place) {
            return Err(ShapingFault::Parent { found: parent });
        }
        if self.rt.is_none() && self.ls.is_none() {
            return Err(ShapingFault::NoCurve);
        }
        if self.ul.is_some() && self.ls.is_none() {
            return Err(ShapingFault::LimitWithoutShare);
        }
        if [self.rt, self.ls, self.ul].into_iter().flatten().any(|curve| curve.m2 == Rate::DOWN) {
            return Err(ShapingFault::CurveEnds);
        }
        Ok(())
    }
}

impl Scheduler for Hfsc {
    type Flow = ();
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, _flow: FlowConfig) -> Result<(), Refused> {
        self.leaves.join()
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<()>) {
        self.leaves.leave();
    }

    fn enqueue(&mut self, now: Time, flow: FlowId, flows: &mut Flows<()>) {
        let leaf = self.leaves.class_of(flow);
        let Some(next) = self.next(flow, flows) else { return };
        let own = &mut self.own[leaf as usize];
        if core::mem::replace(&mut own.is_backlogged, true) {
            return;
        }
        if let Some(guarantee) = &mut own.guarantee {
            self.guarantees.activate(now, leaf, guarantee, next);
        }
        self.tree.activate(now, leaf);
    }

    fn select(&mut self, now: Time, flows: &mut Flows<()>) -> Selection {
        while let Some(leaf) = self.guarantees.take_due(now) {
            if let Some(guarantee) = &mut self.own[leaf as usize].guarantee {
                self.guarantees.make_ready(leaf, guarantee);
            }
        }
        let real_time = self.guarantees.first().map(|leaf| (leaf, true));
        self.chosen = real_time.or_else(|| self.tree.first(now).map(|leaf| (leaf, false)));
        match self.chosen {
            Some((leaf, _)) => Selection::Flow(self.own[leaf as usize].flow),
            None if flows.waiting() == 0 => Selection::Empty,
            None => {
                let next = [self.guarantees.next(), self.tree.next()].into_iter().flatten().min();
                Selection::NotBefore(next.map_or(Time::NEVER, Time::from_nanos))
            }
        }
    }

    fn sent(&mut self, now: Time, flow: FlowId, length: u32, flows: &mut Flows<()>) {
        let leaf = self.leaves.class_of(flow);
        let cost = self.cost(length);
        let next = self.next(flow, flows);
        let is_real_time = self.chosen.take() == Some((leaf, true));
        if !is_real_time {
            self.tree.served(leaf);
        }
        self.tree.charge(leaf, cost, next.is_none());
        self.tree.count(now, leaf, length, is_real_time);
        let own = &mut self.own[leaf as usize];
        own.is_backlogged = next.is_some();
        if let Some(guarantee) = &mut own.guarantee {
            match next {
                _ if is_real_time => self.guarantees.served(leaf, guarantee, cost, next),
                Some(next) => self.guarantees.next_is(leaf, guarantee, next),
                None => self.guarantees.remove(leaf, guarantee),
            }
        }
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<()>) {
        let leaf = self.leaves.class_of(flow);
        let next = self.next(flow, flows);
        let own = &mut self.own[leaf as usize];
        let was_backlogged = core::mem::replace(&mut own.is_backlogged, next.is_some());
        if !was_backlogged {
            return;
        }
        match (&mut own.guarantee, next) {
            (Some(guarantee), Some(next)) => self.guarantees.next_is(leaf, guarantee, next),
            (Some(guarantee), None) => self.guarantees.remove(leaf, guarantee),
            (None, _) => {}
        }
        if next.is_none() {
            self.tree.charge(leaf, Work(0), true);
        }
    }

    fn set_wire(&mut self, _now: Time, wire: Wire) {
        self.overhead = wire.overhead;
    }

    fn states(&self, now: Time, _flows: &Flows<()>) -> Vec<ClassState> {
        self.tree.states(now).map(ClassState::Shaped).collect()
    }
}
