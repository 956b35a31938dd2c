//! Delay-bounded hybrid proportional delay (DBHPD): classes whose delays are proportional, some of them bounded.
//!
//! Sources: C. Dovrolis, D. Stiliadis and P. Ramanathan, "Proportional differentiated services: delay differentiation
//! and packet scheduling", IEEE/ACM Transactions on Networking 10(1), 2002, for the hybrid delay; J. Antila and M.
//! Luoma for the estimators and the bound; all of it as in O.-P. Lamminen's thesis on a DBHPD for Linux (Helsinki,
//! 2007), whose equations are numbered here.
//!
//! For class i, let w be how long its first packet has waited, d̄ the average delay of the packets that have left it,
//! and δ its delay differentiation parameter. When the transmitter is free, the backlogged class with the largest
//!
//! ```text
//! h = g·d̄/δ + (1 − g)·w/δ            (3.1, 3.2)
//! ```
//!
//! is served; on a tie, the one with the lowest number. With g = 0 this is waiting time priority: the ratios of
//! delays approach those of the δ as the load grows. With g = 1 it is proportional average delay: it keeps the ratios
//! whenever some order of service can, but ignores how long a packet has waited.
//!
//! d̄ is updated when a packet departs, with its delay d, the time from arrival to departure here:
//!
//! ```text
//! d̄ ← γ·d + (1 − γ)·d̄               EWMA, from d̄ = 0 on (3.3)
//! γ(q) = 1 / (N·√q·ln q), at most 1   (3.4)
//! ```
//!
//! N is the number of classes, and q is the number of packets in the class just before one departs, that one
//! included. With q = 1, the delay replaces the average. **EWMA-r** uses the exact mean of the first `threshold`
//! delays instead, and restarts with the packet that ends an idle time of the class of `cycle` or more (3.5).
//! **EWMA-pe** multiplies γ by n, and the product is at most 1:
//!
//! ```text
//! d̄ ← n·γ·d + (1 − n·γ)·d̄           (3.6)
//! n = ⌈ |d − d̄| / (width·d̄) ⌉, at least 1, at most `steps`
//! ```
//!
//! This is table 3.7 with seven steps of 10 %; the published implementation has steps of 12.5 %.
//!
//! **Bounds.** A class may have a limit on the waiting time of its packets. It is served before all others when its
//! bound is at stake. With [`BoundReading::AboutToViolate`], the default, that is when its first packet would have
//! waited longer than the limit after the transmission of the packet that would be sent otherwise. With
//! [`BoundReading::HasViolated`], that is when its first packet has already waited longer. With the first reading the
//! bound holds for every packet that finds its class empty, if no other class has a bound and the packet on the wire
//! does not take longer than the limit. With the second, it may be missed by the transmission time of one packet.
//! Packets of a burst also wait for the packets of their class before them. So a packet of a single bounded class
//! waits no longer than
//!
//! ```text
//! limit + the packets of its class before it, at the wire's rate + one packet of another class
//! ```
//!
//! as long as the wire's rate does not fall in the meantime. If the bounds of several classes are at stake, the class
//! with the highest number is served ([`BoundOrder::Reference`]). If no bound can be kept, this amounts to strict
//! priorities, the highest number first, as the thesis says. Alternatively, the class whose bound is reached first is
//! served ([`BoundOrder::EarliestDeadline`]). This keeps all bounds whenever any order can, except for the packet on
//! the wire.
//!
//! Differences from the published listing, which has errors; this implementation follows the equations and the
//! accompanying text:
//! - The listing divides γ by 1024 only where γ is set. The average grows by a factor of a thousand with each packet,
//!   and wraps around.
//! - It compares a tentative average that includes the first packet's waiting time. Here d̄ is of departed packets
//!   only.
//! - For EWMA-r it uses the remainder as the mean, and the sum is lost. The idle time begins when all classes are
//!   idle. A class served for its bound counts a delay of another class, or none.
//! - For EWMA-pe neither version of the loops that search for n yields table 3.7: one ends at the first step or
//!   never; the other counts upward errors as one step less than downward errors.
//! - It ignores γ(n) for a class that is served for its bound. Here all departures are treated alike.
//!
//! **Numbers.** In an average a delay counts as at most 39 hours, 2⁴⁷ ns. Averages have 16 additional fraction bits,
//! and are rounded to nearest at each departure. γ is in units of 2⁻³². Hybrid delays are compared as integers (see
//! `largest.rs`), so equal delays compare equal. There is no overflow. γ(q) is computed with `libm`, so it is the
//! same on all machines.
//!
//! If the packets of a class wait in a nested queue that reorders them, delays are counted as if it did not. If that
//! queue delays packets, as a shaper does, their waiting time starts at the instant at which one may be sent.
//!
//! Cost: one multiplication for each backlogged class, of up to 32; one division if a bounded class is backlogged;
//! eight bytes of memory for each waiting packet.
//!
//! ```
//! # use narrows_core::{Duration, PacketRef, Time};
//! # use narrows_core::sched::{FlowConfig, Hpd, HpdClass, HpdConfig, Per1024, Served, Server};
//! let class = |ddp: u32| HpdClass { ddp: ddp.try_into().expect("not 0"), g: Per1024::ZERO, ..HpdClass::default() };
//! let classes = vec![class(1), class(4)];
//! let mut server = Server::new(Hpd::new(HpdConfig { classes, ..HpdConfig::default() }));
//! let [quick, slow] = [(); 2].map(|()| server.join(FlowConfig::default()).expect("two of 32"));
//! let at = |millis| Time::ZERO + Duration::from_millis(millis);
//! server.enqueue(at(0), slow, PacketRef::from_number(0), 1000);
//! server.enqueue(at(3), quick, PacketRef::from_number(1), 1000);
//! // 4/4 against 1/1: a tie. A moment later the quick class is ahead, and a moment before it the slow one was.
//! assert!(matches!(server.dequeue(at(4)), Served::Packet(flow, _) if flow == quick));
//! ```

mod config;
mod estimate;
mod gamma;
mod largest;
mod ring;

pub use crate::class::{BoundOrder, BoundReading, ErrorWidth, Estimator, Gamma, HpdClass, Per1024};
pub use config::HpdConfig;
pub use gamma::weight_by_backlog;

use alloc::vec::Vec;
use core::num::NonZero;

use crate::bits::Bits;
use crate::queue::Wire;
use crate::sched::bucket;
use crate::sched::{
    ClassSettings, ClassState, DelayPlan, DelayState, FlowConfig, FlowId, Flows, Refused, Scheduler,
    SchedulerPlan, Selection,
};
use crate::service::{ConstantRate, Overhead, ServiceCurve};
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};
use estimate::Estimate;
use gamma::Gammas;
use largest::{Part, Parts};
use ring::Ring;

/// Hybrid proportional delay with delay bounds.
#[derive(Debug)]
pub struct Hpd {
    config: HpdConfig,
    /// The classes of the flows, by number. Classes that have left are skipped.
    classes: Vec<Class>,
    parts: Parts,
    /// Sets of classes, one bit each: those with a flow, those that are backlogged, those with a bound.
    taken: u32,
    waiting: u32,
    bounded: u32,
    /// Whether the class chosen last was chosen for its bound.
    for_its_bound: bool,
    gammas: Gammas,
    wire: Wire,
}

/// Per-flow state of [`Hpd`]: the flow's class.
#[derive(Debug)]
pub struct HpdFlow {
    class: u32,
}

#[derive(Debug)]
struct Class {
    settings: HpdClass,
    /// The arrival instants of its waiting packets, as far as the scheduler has been told.
    arrivals: Ring,
    estimate: Estimate,
    over_limit: u64,
}

impl Class {
    fn new(settings: HpdClass) -> Self {
        Self {
            settings,
            arrivals: Ring::default(),
            estimate: Estimate::new(settings.estimator),
            over_limit: 0,
        }
    }

    /// Another packet is the first now. Returns whether there is none.
    #[inline]
    fn first_is_another(&mut self, now: Time, part: &mut Part) -> bool {
        match self.arrivals.front() {
            Some(head) => part.head = head,
            None => self.estimate.idle(now),
        }
        self.arrivals.len() == 0
    }

    /// Several packets have joined at once, because the class was parked with them.
    #[cold]
    fn complete(&mut self, since: Time, packets: u32) {
        while self.arrivals.len() < packets as usize {
            self.arrivals.push(since);
        }
    }
}

impl Default for Hpd {
    fn default() -> Self {
        Self::new(HpdConfig::default())
    }
}

impl Hpd {
    /// The maximum number of classes.
    pub const CLASSES: u32 = u32::BITS;

    /// A scheduler without flows.
    pub fn new(config: HpdConfig) -> Self {
        Self {
            config,
            classes: Vec::new(),
            parts: Parts::default(),
            taken: 0,
            waiting: 0,
            bounded: 0,
            for_its_bound: false,
            gammas: Gammas::default(),
            wire: Wire { rate: Rate::UNLIMITED, overhead: Overhead::IP },
        }
    }

    /// Recomputes all hybrid delays after classes or their parameters have changed, because λ may have changed.
    fn classes_changed(&mut self) {
        // A class that has left counts as having the least δ, which changes nothing.
        let ddp = |(class, number): (&Class, u32)| {
            let there = self.taken >> number & 1 == 1;
            if there { class.settings.ddp } else { NonZero::<u32>::MIN }
        };
        let ddps: Vec<NonZero<u32>> = self.classes.iter().zip(0..).map(ddp).collect();
        self.parts.set_ddps(&ddps);
        self.gammas.set_classes(self.taken.count_ones());
        self.bounded = 0;
        for (class, number) in self.classes.iter().zip(0..) {
            self.parts.set_g(number, class.settings.g);
            self.parts.of_mut(number).set_average(class.estimate.scaled());
            self.bounded |= u32::from(class.settings.limit.is_some()) << number;
        }
    }

    /// A packet that arrived at `since` has joined.
    #[inline]
    fn join_queue(&mut self, since: Time, flow: FlowId, flows: &mut Flows<HpdFlow>) {
        let (state, packets) = flows.state_and_packets(flow);
        let number = state.class;
        let class = &mut self.classes[number as usize];
        if class.arrivals.len() == 0 {
            self.waiting |= 1 << number;
            let part = self.parts.of_mut(number);
            (part.flow, part.head) = (flow, since);
            if class.estimate.activate(since, class.settings.estimator) {
                part.set_average(class.estimate.scaled());
            }
        }
        class.arrivals.push(since);
        if class.arrivals.len() != packets as usize {
            class.complete(since, packets);
        }
    }

    /// The class to serve because its bound is at stake, if any. `next` would be served otherwise.
    fn violator(&self, now: Time, next: u32, flows: &Flows<HpdFlow>) -> Option<u32> {
        let instant = match self.config.bound_reading {
            BoundReading::HasViolated => now,
            BoundReading::AboutToViolate => {
                let first = flows.first(self.parts.of(next).flow);
                now + first.map_or(Duration::ZERO, |waits| self.time_on_wire(waits.length))
            }
        };
        let deadline = |number: u32| {
            let limit = self.classes[number as usize].settings.limit.unwrap_or(Duration::MAX);
            self.parts.of(number).head + limit
        };
        let mut violators =
            Bits((self.waiting & self.bounded).into()).filter(|&number| instant > deadline(number));
        match self.config.bound_order {
            BoundOrder::Reference => violators.last(),
            BoundOrder::EarliestDeadline => {
                let first = violators.next()?;
                Some(
                    violators
                        .fold(first, |one, other| if deadline(other) < deadline(one) { other } else { one }),
                )
            }
        }
    }

    /// Transmission time of a packet, rounded up to a nanosecond. Unlimited if the wire is down.
    fn time_on_wire(&self, length: u32) -> Duration {
        let work = bucket::cost(length, &self.wire.overhead, Bytes::new(0));
        let end = ConstantRate(self.wire.rate).finish(Time::ZERO, work);
        end.map_or(Duration::MAX, |end| end.at.since(Time::ZERO))
    }
}

impl Scheduler for Hpd {
    type Flow = HpdFlow;

    /// The flow gets the first class that has no flow.
    fn join(&mut self, _flow: FlowConfig) -> Result<HpdFlow, Refused> {
        let number = self.taken.trailing_ones();
        if number == Self::CLASSES {
            return Err(Refused::Flows { most: Self::CLASSES.into() });
        }
        let settings = self.config.classes.get(number as usize).copied().unwrap_or_default();
        let class = Class::new(settings);
        match self.classes.get_mut(number as usize) {
            Some(left) => *left = class,
            None => self.classes.push(class),
        }
        self.taken |= 1 << number;
        self.classes_changed();
        Ok(HpdFlow { class: number })
    }

    fn leave(&mut self, flow: FlowId, flows: &mut Flows<HpdFlow>) {
        self.taken &= !(1 << flows[flow].class);
        self.classes_changed();
    }

    /// Waiting packets and the average are kept.
    fn set_class(
        &mut self,
        _now: Time,
        flow: FlowId,
        settings: ClassSettings,
        flows: &mut Flows<HpdFlow>,
    ) -> Result<(), Refused> {
        let ClassSettings::Delay(settings) = settings else { return Err(Refused::NoSettings) };
        let class = &mut self.classes[flows[flow].class as usize];
        class.estimate.set_estimator(class.settings.estimator, settings.estimator);
        class.settings = settings;
        self.classes_changed();
        Ok(())
    }

    #[inline]
    fn enqueue(&mut self, now: Time, flow: FlowId, flows: &mut Flows<HpdFlow>) {
        self.join_queue(now, flow, flows);
    }

    fn take_over(&mut self, _now: Time, flow: FlowId, since: Time, flows: &mut Flows<HpdFlow>) {
        self.join_queue(since, flow, flows);
    }

    #[inline]
    fn select(&mut self, now: Time, flows: &mut Flows<HpdFlow>) -> Selection {
        if self.waiting == 0 {
            return Selection::Empty;
        }
        let mut class = self.parts.largest(now, self.waiting);
        self.for_its_bound = false;
        if self.waiting & self.bounded != 0
            && let Some(violator) = self.violator(now, class, flows)
        {
            (class, self.for_its_bound) = (violator, true);
        }
        Selection::Flow(self.parts.of(class).flow)
    }

    #[inline]
    fn sent(&mut self, now: Time, flow: FlowId, _length: u32, flows: &mut Flows<HpdFlow>) {
        let (state, packets) = flows.state_and_packets(flow);
        let number = state.class;
        let class = &mut self.classes[number as usize];
        // The packets before it have been dropped by queue management.
        let gone = class.arrivals.len().saturating_sub(packets as usize + 1);
        class.arrivals.drop_front(gone);
        let part = self.parts.of_mut(number);
        if let Some(arrival) = class.arrivals.front() {
            class.arrivals.drop_front(1);
            let gamma = self.gammas.weight(class.settings.gamma, packets + 1);
            class.estimate.depart(now.since(arrival), gamma, &class.settings.estimator);
            class.over_limit += u64::from(self.for_its_bound);
            part.set_average(class.estimate.scaled());
        }
        if class.first_is_another(now, part) {
            self.waiting &= !(1 << number);
        }
    }

    fn head_dropped(&mut self, now: Time, flow: FlowId, flows: &mut Flows<HpdFlow>) {
        let (state, packets) = flows.state_and_packets(flow);
        let number = state.class;
        let class = &mut self.classes[number as usize];
        if class.arrivals.len() > packets as usize {
            let gone = class.arrivals.len() - packets as usize;
            class.arrivals.drop_front(gone);
            if class.first_is_another(now, self.parts.of_mut(number)) {
                self.waiting &= !(1 << number);
            }
        }
    }

    fn set_wire(&mut self, _now: Time, wire: Wire) {
        self.wire = wire;
    }

    fn plan(&self, flows: &Flows<HpdFlow>) -> Option<SchedulerPlan> {
        let class = |flow| {
            let number = flows[flow].class;
            let (slope, factor) = self.parts.of(number).scale();
            DelayPlan { settings: self.classes[number as usize].settings, slope, factor }
        };
        Some(SchedulerPlan::Delay {
            classes: flows.ids().map(class).collect(),
            common: self.parts.is_common(),
            bound_order: self.config.bound_order,
            bound_reading: self.config.bound_reading,
        })
    }

    fn states(&self, now: Time, _flows: &Flows<HpdFlow>) -> Vec<ClassState> {
        let there =
            self.classes.iter().zip(0..).filter(|(_, number): &(_, u32)| self.taken >> number & 1 == 1);
        let state = |(class, _): (&Class, u32)| DelayState {
            hold: class.arrivals.front().map_or(Duration::ZERO, |head| now.since(head)),
            average: class.estimate.average(),
            over_limit: class.over_limit,
        };
        there.map(state).map(ClassState::Delay).collect()
    }
}
