//! Sets of flows that share one scheduler, the flows being made on first use: `queue N config sched M mask … weight …` of
//! ipfw(8).
//!
//! A set says what its flows are like: weight, band, bound, queue management, each flow for itself. Its mask says which
//! packets belong to one flow ([`FlowMask`](crate::classify::FlowMask)). The mark of a packet ([`FlowKey::mark`]) says to
//! which set it belongs, by place from 0 on; without such a set it is dropped ([`DropReason::NoClass`]).
//!
//! # When flows come and go
//! A packet of a flow that is not there makes the flow. A flow in which nothing has waited for `idle` is there no longer for
//! any packet that comes after that: its next packet makes it anew, with counters and queue management from the start.
//! Nothing of this depends on when anybody polls. Only a flow that has had more than its share so far
//! ([`Scheduler::owes`]) stays for another term while others wait, lest it get that for nothing and virtual time halt for it.
//! But where flows are many that send once and never again, virtual time, which counts idle flows' weights too, would go the
//! slower the more of them stay, and they would never owe nothing: so those that stay are no more than half of all flows, or
//! 64.
//!
//! Work is done by packets that come: each takes up to four expired flows away, so that a packet's cost stays the same
//! when a hundred thousand flows expire at once. Until their turn comes, they are in the scheduler's sum of
//! weights.
//!
//! No set has more than [`FlowSet::most`] flows. The packets of flows beyond share one more, which is of the set's weight as
//! any other, and are counted; when one of those flows gets its own later, it may overtake what it has there. Where the
//! scheduler refuses the shared one, too (a sum of weights beyond its greatest), they are dropped with
//! [`DropReason::NoClass`].
//!
//! # Order
//! As in the reference: counted, lost, judged by the flow's policy, and then the flow's bound.
//!
//! # Where this departs from the reference
//! Once more than 50 queues are idle, Dummynet looks at some ten of them at each tick, and takes away those that have been
//! idle for more than 1000 ticks and that the scheduler can do without; how long one stays depends on where it is in a hash
//! table. It has no bound for their number. It clamps the weights of WF2Q+ to 1 to 100; here a scheduler takes the weights
//! that it can work with, and refuses others.
//!
//! # Cost
//! A flow takes 200 to 250 bytes beside its packets and its policy: 64 to 100 with the scheduler, 70 to 83 to be found, 64
//! here.
//!
//! ```
//! use narrows_core::classify::FlowMask;
//! use narrows_core::queue::{Queue, Stand};
//! use narrows_core::sched::{FlowConfig, FlowSet, FlowSets, Weight, Wf2q};
//! use narrows_core::{Duration, FlowKey, Protocol, Seed, Time};
//!
//! // One flow of weight 10, and one of weight 1 for each source address.
//! let heavy = FlowConfig { weight: Weight::new(10).unwrap(), ..FlowConfig::default() };
//! let sources = FlowMask { source_v4: u32::MAX, ..FlowMask::NONE };
//! let mut queue = FlowSets::new(Wf2q::default(), Duration::from_secs(1), Seed(1), "sched 5");
//! queue.add_set(FlowSet::new(1, FlowMask::NONE, heavy))?;
//! queue.add_set(FlowSet::new(2, sources, FlowConfig::default()))?;
//!
//! let mut stand = Stand::new(Seed(1));
//! for last in 1..=3 {
//!     let source = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last];
//!     let key = FlowKey { source, mark: 1, network: Protocol::Ipv4, ..FlowKey::default() };
//!     let packet = stand.insert(Time::ZERO, key, 1000);
//!     queue.enqueue(Time::ZERO, packet, &mut stand.context());
//! }
//! assert_eq!(queue.masked_flows(Time::ZERO).len(), 4);
//! # Ok::<(), narrows_core::sched::Refused>(())
//! ```
//!
//! [`FlowKey::mark`]: crate::FlowKey::mark
//! [`DropReason::NoClass`]: crate::DropReason::NoClass

mod made;
mod queue;
mod set;

pub use set::{FlowSet, PolicyPerFlow};

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::aqm::Aqm;
use crate::classify::{Flow, Known};
use crate::counters::Tally;
use crate::queue::{Backlog, Bound, ClassCounters, FlowSetCounts, Wire};
use crate::random::{Seed, Stream};
use crate::sched::{FlowId, Refused, Scheduler, Server};
use crate::time::{Duration, Time};

/// Flow sets behind a scheduler, as a link's queue.
#[derive(Debug)]
pub struct FlowSets<S: Scheduler> {
    server: Server<S>,
    sets: Vec<Set>,
    /// By set.
    counters: Vec<ClassCounters>,
    /// The flows, by the numbers that the scheduler knows them by. The queue number of each is the place of its set.
    known: Known,
    /// By number of the flow.
    rows: Vec<Row>,
    /// How many of them are idle for longer than their term.
    staying: u32,
    idle: Duration,
    backlog: Backlog,
    /// Since when something has waited all the time, if something does.
    busy_since: Time,
    bound: Bound,
    wire: Option<Wire>,
    seed: Seed,
    name: String,
}

#[derive(Debug)]
struct Set {
    config: FlowSet,
    /// Its one flow, if it has no mask.
    fixed: Option<FlowId>,
    /// How many flows it has, but for the one of those beyond the most.
    flows: u32,
    counts: FlowSetCounts,
    losses: Stream,
}

/// What is kept of a flow beside what the scheduler does.
#[derive(Debug, Default)]
struct Row {
    policy: Option<Box<dyn Aqm>>,
    arrived: Tally,
    dropped: Tally,
    set: u32,
    /// Whether it is idle for longer than its term.
    stays: bool,
}

impl<S: Scheduler> FlowSets<S> {
    /// A queue without sets, and without a bound for all of them together, which may be set. Flows that have been idle for
    /// `idle`, at least a nanosecond, go. `seed` and `name`, the link's, are part of the keys of draws.
    pub fn new(scheduler: S, idle: Duration, seed: Seed, name: &str) -> Self {
        Self {
            server: Server::new(scheduler),
            sets: Vec::new(),
            counters: Vec::new(),
            known: Known::new(seed, name, Known::MOST),
            rows: Vec::new(),
            staying: 0,
            idle: idle.max(Duration::from_nanos(1)),
            backlog: Backlog::default(),
            busy_since: Time::ZERO,
            bound: Bound::Packets(u64::MAX),
            wire: None,
            seed,
            name: name.into(),
        }
    }

    /// Adds a set, which gets the next place.
    ///
    /// # Errors
    /// When the scheduler does not take one such flow beside those that there are; then nothing has changed.
    pub fn add_set(&mut self, mut set: FlowSet) -> Result<(), Refused> {
        set.most = set.most.max(1);
        let losses = Stream::new(self.seed, &self.name, &format!("loss of queue {}", set.number));
        let counts = FlowSetCounts { number: set.number, ..FlowSetCounts::default() };
        let (place, has_mask) = (self.sets.len() as u32, !set.mask.is_none());
        self.sets.push(Set { config: set, fixed: None, flows: 0, counts, losses });
        match self.add_flow(Time::ZERO, Flow { queue: place, ..Flow::default() }) {
            // Only to see whether it can be.
            Ok(flow) if has_mask => self.remove_flow(flow),
            Ok(flow) => self.sets[place as usize].fixed = Some(flow),
            Err(refused) => {
                self.sets.pop();
                return Err(refused);
            }
        }
        self.sets[place as usize].counts = FlowSetCounts { made: u64::from(!has_mask), ..counts };
        self.counters.push(ClassCounters::default());
        Ok(())
    }
}
