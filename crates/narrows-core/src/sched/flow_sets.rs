//! Flow sets: flows that share one scheduler and are created on first use. This is `queue N config sched M mask …
//! weight …` of ipfw(8).
//!
//! A set defines the parameters of its flows: weight, band, bound and queue management, each per flow. Its mask
//! decides which packets belong to the same flow ([`FlowMask`](crate::classify::FlowMask)). A packet's mark
//! ([`FlowKey::mark`]) is the index of its set, from 0. A packet without such a set is dropped
//! ([`DropReason::NoClass`]).
//!
//! # Flow lifetime
//! The first packet of a flow creates it. A flow that has been idle for `idle` no longer exists for any later packet:
//! its next packet creates it again, with new counters and new queue management state. The result does not depend on
//! when the network is polled.
//!
//! One exception: a flow that has received more than its share ([`Scheduler::owes`]) stays for another `idle` period
//! while other flows are backlogged. Otherwise it would escape its debt, and virtual time would stop for it. But
//! virtual time also counts the weights of idle flows. With many flows that send once and never again, it would slow
//! down with each flow that stays, and their debts would never be paid. So at most half of all flows, or 64 if that
//! is more, stay.
//!
//! Arriving packets do the cleanup: each removes up to four expired flows, so that the cost per packet stays constant
//! even when a hundred thousand flows expire at once. Until it is removed, an expired flow counts in the scheduler's
//! sum of weights.
//!
//! A set has at most [`FlowSet::most`] flows. Packets of further flows share one additional flow of the set's weight,
//! and are counted. When such a flow later gets its own queue, its new packets may overtake those in the shared flow.
//! If the scheduler refuses the shared flow as well (sum of weights too large), the packets are dropped with
//! [`DropReason::NoClass`].
//!
//! # Order of processing
//! As in the reference: count the packet, apply losses, apply the flow's policy, then the flow's bound.
//!
//! # Differences from the reference
//! Once more than 50 queues are idle, Dummynet inspects about ten of them at each tick, and removes those that have
//! been idle for more than 1000 ticks and that the scheduler can release. How long a queue stays depends on its
//! position in a hash table. Dummynet does not limit the number of queues. It clamps the weights of WF2Q+ to 1 to
//! 100; here a scheduler accepts the weights that it can handle and refuses others.
//!
//! # Cost
//! A flow takes 200 to 250 bytes, without its packets and policy: 64 to 100 in the scheduler, 70 to 83 in the lookup
//! table, 64 here.
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

/// Flow sets served by a scheduler, as a link's queue.
#[derive(Debug)]
pub struct FlowSets<S: Scheduler> {
    server: Server<S>,
    sets: Vec<Set>,
    /// By set.
    counters: Vec<ClassCounters>,
    /// The flows, by their scheduler numbers. The queue number in each is the index of its set.
    known: Known,
    /// By flow number.
    rows: Vec<Row>,
    /// How many of them have been idle beyond their idle period.
    staying: u32,
    idle: Duration,
    backlog: Backlog,
    /// Since when there has been a backlog, if there is one.
    busy_since: Time,
    bound: Bound,
    wire: Option<Wire>,
    seed: Seed,
    name: String,
}

#[derive(Debug)]
struct Set {
    config: FlowSet,
    /// Its only flow, if it has no mask.
    fixed: Option<FlowId>,
    /// Its number of flows, without the shared one.
    flows: u32,
    counts: FlowSetCounts,
    losses: Stream,
}

/// Per-flow state in addition to the scheduler's.
#[derive(Debug, Default)]
struct Row {
    policy: Option<Box<dyn Aqm>>,
    arrived: Tally,
    dropped: Tally,
    set: u32,
    /// Whether it has been idle beyond its idle period.
    stays: bool,
}

impl<S: Scheduler> FlowSets<S> {
    /// A queue without sets. It has no bound for all flows together; one can be set. Flows that have been idle for
    /// `idle` (at least one nanosecond) are removed. `seed` and `name`, the link's, are part of the keys of random
    /// draws.
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

    /// Adds a set, which gets the next index.
    ///
    /// # Errors
    /// If the scheduler does not accept one flow of this set in addition to the existing flows. Then nothing has
    /// changed.
    pub fn add_set(&mut self, mut set: FlowSet) -> Result<(), Refused> {
        set.most = set.most.max(1);
        let losses = Stream::new(self.seed, &self.name, &format!("loss of queue {}", set.number));
        let counts = FlowSetCounts { number: set.number, ..FlowSetCounts::default() };
        let (place, has_mask) = (self.sets.len() as u32, !set.mask.is_none());
        self.sets.push(Set { config: set, fixed: None, flows: 0, counts, losses });
        match self.add_flow(Time::ZERO, Flow { queue: place, ..Flow::default() }) {
            // Added only to check that the scheduler accepts it.
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
