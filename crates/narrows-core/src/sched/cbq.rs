//! Class-based queueing: S. Floyd and V. Jacobson, "Link-sharing and resource management models for packet networks",
//! IEEE/ACM Transactions on Networking 3(4), 1995, with the parameters of Linux's sch_cbq (A. Kuznetsov) and tc.
//!
//! Classes form a tree below the link, which sends at `bandwidth`. A class is regulated by its idle time. For a class
//! of rate r that sends packets of L bits, that is how much longer than L/r it took from the end of one packet to the
//! end of the next. Its average, with W = 2⁻ᵉʷᵐᵃ,
//!
//! ```text
//! idle = end − previous end − L/r          avgidle ← (1 − W)·avgidle + W·idle, minidle ≤ avgidle ≤ maxidle
//! ```
//!
//! tells whether the class is at its limit. With avgidle ≤ 0 the class is over its limit until the instant at which a
//! packet sent then would bring the average back to zero, end + (1 − W)/W·(−avgidle) + L/r − L/bandwidth. `maxidle`
//! is how much unused time counts, and so how long a burst may be. It follows from `maxburst`, a number of average
//! packets after a long idle time, as tc computes it. A class that is at its limit and cannot borrow sleeps for that
//! time, without the average's part, which it is forgiven, plus `offtime`. `offtime` follows from `minburst`: the
//! class then sends in bursts of that many packets.
//!
//! A packet is charged to its class and all its ancestors. The paper's formal link-sharing guidelines (section IV)
//! decide which class may send: a class may send if it is under its limit. Otherwise it needs an ancestor that is
//! under its limit, reached through classes none of which is `bounded`, and no class lower in the tree than that
//! ancestor may be under its limit while it or one of its descendants is backlogged. This is evaluated at every
//! packet, for all backlogged classes. (Linux uses the "top-level" approximation of it, whose state lags behind.) Of
//! the classes that may send, the highest priority is served first, 1 before 8. Within a priority, service is
//! weighted round robin by bytes, with a quantum of
//!
//! ```text
//! quantum_i = allot_i·weight_i / (mean weight of the leaves of that priority)
//! ```
//!
//! - A **bounded** class never borrows.
//! - An **isolated** class neither borrows nor lends. What it sends is not charged to its ancestors, and what it
//!   leaves unused is lost: its ancestors, including the link, have its rate less for their other descendants. (In
//!   Linux the flag means only the first half, so other classes may use its rate.)
//! - An **exempt** class may always send, whatever its ancestors have used. (Linux has no such flag.)
//!
//! The link itself lends without limit, as in Linux, unless a class is isolated: packets beyond its capacity wait for
//! its transmitter. So use CBQ on a link whose rate is `bandwidth`.
//!
//! Other differences from Linux: The end of a packet is computed when it starts, at `bandwidth`, and counts
//! immediately, not at the next check. Quanta are not "repaired", do not overflow, and depend on the leaves only.
//! There is no second priority for classes over their limit, which current tc cannot set either. Times have a
//! resolution of 2⁻³² ns, to which L/r is rounded for each bit.
//!
//! The cost of a packet grows with the number of backlogged leaves.
//!
//! ```
//! # use narrows_core::{Bytes, PacketRef, Rate, Time, Duration};
//! # use narrows_core::sched::{Cbq, CbqClass, FlowConfig, Served, Server};
//! let rate = |mbit: u64| Rate::from_bits_per_second(mbit * 1_000_000);
//! let class = |mbit, bounded| CbqClass { rate: rate(mbit), bounded, maxburst: 20, ..CbqClass::default() };
//! let cbq = Cbq::new(rate(10), Bytes::new(1000), vec![class(2, true), class(4, false)]).expect("in range");
//! let mut server = Server::new(cbq);
//! let [bounded, other] = [(); 2].map(|()| server.join(FlowConfig::default()).expect("there are two leaves"));
//! for number in 0..10_000 {
//!     let flow = if number % 2 == 0 { bounded } else { other };
//!     server.enqueue(Time::ZERO, flow, PacketRef::from_number(number), 1000);
//! }
//! let (mut now, mut sent) = (Time::ZERO, [0, 0]);
//! while now < Time::from_nanos(2_000_000_000) {
//!     match server.dequeue(now) {
//!         // 8000 bits at 10 Mbit/s.
//!         Served::Packet(flow, _) => (sent[flow.number() as usize] += 1, now = now + Duration::from_micros(800)).1,
//!         Served::NotBefore(at) => now = at,
//!         _ => break,
//!     }
//! }
//! // Two seconds at 2 Mbit/s and the burst; the other one has all the rest.
//! assert_eq!(sent.iter().sum::<u32>(), 2500);
//! assert!((500..=525).contains(&sent[0]), "{sent:?}");
//! ```

mod class;
mod parameters;

use alloc::vec::Vec;

use crate::queue::Wire;
use crate::sched::bucket;
use crate::sched::list::{Linked, Links, List};
use crate::sched::shaping::{Leaves, ShapingError, ShapingFault};
use crate::sched::{ClassState, FlowConfig, FlowId, Flows, Refused, Scheduler, Selection};
use crate::service::Overhead;
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};
use class::{Charge, Class, Span};

/// A class of a CBQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CbqClass {
    /// Index of the parent class, which must come before this one. `None`: the link.
    pub parent: Option<usize>,
    /// The rate of the class; not zero.
    pub rate: Rate,
    /// Leaves only: the priority. 1 is served before 2, and so on to 8.
    pub priority: u8,
    /// Leaves only: bytes per turn at the mean weight; not zero.
    pub allot: Bytes,
    /// Mean packet length, used for `maxburst` and `minburst`; not zero.
    pub average_packet: Bytes,
    /// Leaves only: the weight relative to other leaves of the same priority; not zero. Default as in tc: the rate in
    /// bytes per second.
    pub weight: Option<u64>,
    /// Never borrows.
    pub bounded: bool,
    /// Neither borrows nor lends.
    pub isolated: bool,
    /// May always borrow.
    pub exempt: bool,
    /// Burst after idle time, in average packets.
    pub maxburst: u32,
    /// Burst of a class that stays at its limit, in average packets.
    pub minburst: u32,
    /// How far the average may fall below zero, in tc's notation: the average divided by W. `None`: no limit.
    pub minidle: Option<Duration>,
    /// W is 2 to the power of minus this value: 0 to 31.
    pub ewma: u8,
    /// The minimum cost of a packet.
    pub mpu: Bytes,
}

impl Default for CbqClass {
    /// 1 Mbit/s, priority 8, packets of 1000 bytes and turns of 1.5 packets, like tc's defaults.
    fn default() -> Self {
        Self {
            parent: None,
            rate: Rate::from_bits_per_second(1_000_000),
            priority: Cbq::LAST_PRIORITY,
            allot: Bytes::new(1500),
            average_packet: Bytes::new(1000),
            weight: None,
            bounded: false,
            isolated: false,
            exempt: false,
            maxburst: 0,
            minburst: 0,
            minidle: None,
            ewma: Cbq::EWMA,
            mpu: Bytes::new(0),
        }
    }
}

/// Class-based queueing. Its flows are the leaves of the tree, in configuration order.
#[derive(Debug)]
pub struct Cbq {
    /// The configured classes, then the link.
    classes: Vec<Class>,
    leaves: Leaves,
    /// The backlogged leaves by priority, in the order of their turns.
    active: [List; PRIORITIES],
    overhead: Overhead,
    /// Transmission time of a bit on the link.
    bit: Span,
    /// The flow chosen last, and the lending class.
    chosen: Option<(FlowId, u32)>,
}

/// Per-flow state of [`Cbq`].
#[derive(Debug, Default)]
pub struct CbqFlow {
    links: Links,
    active: bool,
}

impl Linked for CbqFlow {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

const PRIORITIES: usize = Cbq::LAST_PRIORITY as usize;

impl Cbq {
    /// The lowest priority, served last. The first is 1.
    pub const LAST_PRIORITY: u8 = 8;
    /// The default time constant of the average: 2⁵ packets.
    pub const EWMA: u8 = 5;
    /// The longest time constant of the average.
    pub const MOST_EWMA: u8 = 31;
    /// The maximum number of classes.
    pub const MOST: usize = 1 << 16;

    /// A CBQ with all classes under their limits. `average_packet` is the mean packet length of the whole link, used
    /// for the link's own average.
    ///
    /// # Errors
    /// If there are no classes, a parent does not come before its child, or a parameter of a class or the link is out
    /// of range.
    pub fn new(bandwidth: Rate, average_packet: Bytes, classes: Vec<CbqClass>) -> Result<Self, ShapingError> {
        ShapingFault::of_count(classes.len(), Self::MOST)?;
        let classes = class::tree(bandwidth, average_packet, &classes)?;
        let link = classes.len() as u32 - 1;
        let no_children = |&class: &u32| classes[class as usize].level == 0;
        let leaves = Leaves::new((0..link).filter(no_children).collect());
        Ok(Self {
            classes,
            leaves,
            active: [List::default(); PRIORITIES],
            overhead: Overhead::IP,
            bit: Span::of_bit(bandwidth.bits_per_second()),
            chosen: None,
        })
    }

    fn leaf(&mut self, flow: FlowId) -> &mut Class {
        &mut self.classes[self.leaves.class_of(flow) as usize]
    }

    /// The lowest class under its limit, from this one upwards, as far as it may borrow.
    fn lender(&self, now: Span, class: u32) -> Option<Lender> {
        let mut place = class;
        loop {
            let class = &self.classes[place as usize];
            if class.is_under_limit(now) {
                return Some(Lender { class: place, level: Some(class.level) });
            }
            let parent = class.parent?;
            if class.exempt {
                return Some(Lender { class: parent, level: None });
            }
            if !class.borrows {
                return None;
            }
            place = parent;
        }
    }

    /// The first instant at which a class, or one that lends to it, is under its limit if nothing is sent until then.
    fn next_chance(&self, class: u32) -> Span {
        let mut place = class;
        let mut least = Span::NEVER;
        loop {
            let class = &self.classes[place as usize];
            least = least.min(class.under_limit_from());
            match class.parent {
                Some(parent) if class.borrows => place = parent,
                _ => return least,
            }
        }
    }

    /// The level from which on no class borrows: that of the lowest class under its limit that is backlogged or has a
    /// backlogged descendant. Puts classes that cannot borrow to sleep.
    fn top_level(&mut self, now: Span, flows: &Flows<CbqFlow>) -> Option<u32> {
        let mut top = None;
        for priority in 0..PRIORITIES {
            for flow in around(self.active[priority], flows) {
                let place = self.leaves.class_of(flow);
                match self.lender(now, place) {
                    None => self.classes[place as usize].sleep(now),
                    Some(Lender { level: None, .. }) => {}
                    Some(Lender { level: Some(level), .. }) => {
                        top = Some(top.map_or(level, |top: u32| top.min(level)));
                    }
                }
            }
        }
        top
    }

    /// The flow of a priority that sends, and the lending class.
    fn choose(
        &mut self,
        now: Span,
        priority: usize,
        top: Option<u32>,
        flows: &Flows<CbqFlow>,
    ) -> Option<(FlowId, u32)> {
        let mut rounds = i64::MAX;
        for flow in around(self.active[priority], flows) {
            let Some(lender) = self.eligible(now, flow, top) else { continue };
            let class = &self.classes[self.leaves.class_of(flow) as usize];
            if class.deficit > 0 {
                return Some((flow, lender));
            }
            rounds = rounds.min(1 - class.deficit.div_euclid(class.quantum));
        }
        if rounds == i64::MAX {
            return None;
        }
        // All flows that may send have used up their turns. Start as many new rounds as it takes until one of them
        // may send.
        let eligible: Vec<FlowId> = around(self.active[priority], flows)
            .filter(|&flow| self.eligible(now, flow, top).is_some())
            .collect();
        for &flow in &eligible {
            let class = self.leaf(flow);
            class.deficit += (rounds - 1) * class.quantum;
            class.deficit = class.deficit.saturating_add(class.quantum);
        }
        let first = eligible.into_iter().find(|&flow| self.leaf(flow).deficit > 0)?;
        let lender = self.eligible(now, first, top)?;
        Some((first, lender))
    }

    /// The class that lends to a leaf, if the leaf may send.
    fn eligible(&self, now: Span, flow: FlowId, top: Option<u32>) -> Option<u32> {
        let lender = self.lender(now, self.leaves.class_of(flow))?;
        (lender.level.is_none() || lender.level == top).then_some(lender.class)
    }

    fn deactivate(&mut self, flow: FlowId, flows: &mut Flows<CbqFlow>) {
        let priority = self.leaf(flow).priority;
        self.active[priority].remove(flow, flows);
        flows[flow].active = false;
    }
}

/// The flows of a list, in the order of their turns.
fn around(list: List, flows: &Flows<CbqFlow>) -> impl Iterator<Item = FlowId> {
    let front = list.front();
    let mut next = front;
    core::iter::from_fn(move || {
        let flow = next?;
        let after = flows[flow].links.next();
        next = (Some(after) != front).then_some(after);
        Some(flow)
    })
}

/// The lending class.
#[derive(Clone, Copy, Debug)]
struct Lender {
    class: u32,
    /// Its level. `None` if the level does not matter, because the borrower is exempt.
    level: Option<u32>,
}

impl Scheduler for Cbq {
    type Flow = CbqFlow;
    const COUNTS_PACKETS: bool = false;

    fn join(&mut self, _flow: FlowConfig) -> Result<CbqFlow, Refused> {
        self.leaves.join()?;
        Ok(CbqFlow::default())
    }

    fn leave(&mut self, _flow: FlowId, _flows: &mut Flows<CbqFlow>) {
        self.leaves.leave();
    }

    fn enqueue(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<CbqFlow>) {
        if !flows[flow].active {
            flows[flow].active = true;
            let priority = self.leaf(flow).priority;
            self.active[priority].push_back(flow, flows);
        }
    }

    fn select(&mut self, now: Time, flows: &mut Flows<CbqFlow>) -> Selection {
        if flows.waiting() == 0 {
            return Selection::Empty;
        }
        let at = Span::of(now);
        let top = self.top_level(at, flows);
        self.chosen = (0..PRIORITIES).find_map(|priority| self.choose(at, priority, top, flows));
        if let Some((flow, _)) = self.chosen {
            return Selection::Flow(flow);
        }
        let waiting = (0..PRIORITIES).flat_map(|priority| around(self.active[priority], flows));
        let chances = waiting.map(|flow| self.next_chance(self.leaves.class_of(flow)));
        Selection::NotBefore(chances.min().unwrap_or(Span::NEVER).time())
    }

    fn sent(&mut self, now: Time, flow: FlowId, length: u32, flows: &mut Flows<CbqFlow>) {
        let place = self.leaves.class_of(flow);
        let lender = match self.chosen.take() {
            Some((chosen, lender)) if chosen == flow => lender,
            _ => place,
        };
        let cost = bucket::cost(length, &self.overhead, self.classes[place as usize].mpu);
        let bits = i64::try_from(cost.0 / 1_000_000_000).unwrap_or(i64::MAX >> 20);
        let charge = Charge { leaf: place, lender, bits, bit: self.bit, length };
        class::charge(&mut self.classes, Span::of(now), charge);
        let class = self.leaf(flow);
        class.deficit = class.deficit.saturating_sub(bits);
        let (over, priority) = (class.deficit <= 0, class.priority);
        if flows.packets(flow) == 0 {
            self.deactivate(flow, flows);
        } else if over {
            self.active[priority].remove(flow, flows);
            self.active[priority].push_back(flow, flows);
        }
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<CbqFlow>) {
        if flows.packets(flow) == 0 && flows[flow].active {
            self.deactivate(flow, flows);
        }
    }

    fn set_wire(&mut self, _now: Time, wire: Wire) {
        self.overhead = wire.overhead;
    }

    fn states(&self, now: Time, _flows: &Flows<CbqFlow>) -> Vec<ClassState> {
        let at = Span::of(now);
        let configured = 0..self.classes.len() as u32 - 1;
        configured
            .map(|place| {
                let lends = self.lender(at, place).map(|lender| lender.class);
                ClassState::Shaped(self.classes[place as usize].state(place, lends))
            })
            .collect()
    }
}
