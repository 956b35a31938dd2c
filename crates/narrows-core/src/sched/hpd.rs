//! Delay-bounded hybrid proportional delay (DBHPD): classes whose delays are in proportion, some of them bounded.
//!
//! Sources: C. Dovrolis, D. Stiliadis and P. Ramanathan, "Proportional differentiated services: delay differentiation and
//! packet scheduling", IEEE/ACM Transactions on Networking 10(1), 2002, for the hybrid delay; J. Antila and M. Luoma for the
//! estimators and the bound; all of it as in O.-P. Lamminen's thesis on a DBHPD for Linux (Helsinki, 2007), whose equations
//! are numbered here.
//!
//! Of class i, w is how long its first packet has waited, d̄ the average delay of the packets that have left it, and δ its
//! delay differentiation parameter. When the transmitter is free the class goes that has the largest
//!
//! ```text
//! h = g·d̄/δ + (1 − g)·w/δ            (3.1, 3.2)
//! ```
//!
//! of those in which something waits, and the one of the lowest number among equals. With g = 0 that is waiting time
//! priority, under which the ratios of delays come near those of the δ as the load grows; with g = 1 it is proportional
//! average delay, which holds them wherever some order of service can, but has no regard to what a packet has waited.
//!
//! d̄ changes when a packet departs, with its delay d, from arrival to departure from here:
//!
//! ```text
//! d̄ ← γ·d + (1 − γ)·d̄               EWMA, from d̄ = 0 on (3.3)
//! γ(q) = 1 / (N·√q·ln q), at most 1   (3.4)
//! ```
//!
//! N is the number of classes, and q is how many packets the class has just before one departs, that one included; the only
//! one replaces the average. **EWMA-r** takes the exact mean of the first `threshold` delays instead, and begins anew with
//! the packet that ends an idle time of the class of `cycle` or more (3.5). **EWMA-pe** counts γ n times, at most as 1:
//!
//! ```text
//! d̄ ← n·γ·d + (1 − n·γ)·d̄           (3.6)
//! n = ⌈ |d − d̄| / (width·d̄) ⌉, at least 1, at most `steps`
//! ```
//!
//! which is table 3.7 with steps of 10 %, seven of them; the published implementation has steps of 12.5 %.
//!
//! **Bounds.** A class may have a limit to what its packets wait. It goes before all others when that is at stake: when its
//! first packet would have waited longer than the limit once the packet has been sent that would go otherwise
//! ([`BoundReading::AboutToViolate`], the default), or when it has waited longer already ([`BoundReading::HasViolated`]).
//! With the first reading the bound holds for every packet that finds its class empty, if no other class has a bound and the
//! packet on the wire does not take longer; with the second it may be missed by the time of one packet. Packets of a burst wait for those of their class before them in
//! any case. So a packet of a single bounded class waits no longer than
//!
//! ```text
//! limit + the packets of its class before it, at the wire's rate + one packet of another class
//! ```
//!
//! as long as the wire's rate does not fall meanwhile. Of several classes whose bound is at stake the one of the highest
//! number goes ([`BoundOrder::Reference`]): where no bound can be kept, that makes strict priorities of them, the highest
//! number first, as the thesis says. Or the one whose instant is first ([`BoundOrder::EarliestDeadline`]), which keeps all
//! bounds where any order can, but for the packet on the wire.
//!
//! Departures from the published listing, which is faulty; the equations and the text around it are followed instead:
//! - γ is divided by 1024 there only where it is set. The average grows thousandfold with each packet, and wraps.
//! - It compares a tentative average that has the first packet's wait in it. Here d̄ is of departed packets alone.
//! - Of EWMA-r it takes the remainder for the mean, and the sum is lost; the idle time begins when all classes are idle; and
//!   a class served for its bound counts a delay of another one, or none.
//! - Of EWMA-pe neither version of the loops that look for n finds table 3.7: one ends at the first step or never; the other
//!   takes errors upwards for a step less than those downwards.
//! - A class that is served for its bound leaves γ(n) aside. Here a departure is a departure.
//!
//! **Numbers.** In an average a delay counts as 39 hours at most, 2⁴⁷ ns; averages have 16 bits more of fraction, and are
//! rounded to the nearest at each departure; γ is in parts of 2³². Hybrid delays are compared as whole numbers (see `largest.rs`), so that equal ones are
//! equal. Nothing overflows. γ(q) goes through `libm`, so that it is the same everywhere.
//!
//! A class whose packets wait in a queue of their own that lets a later one overtake counts delays as if none did. Where
//! that queue holds them back, as a shaper does, they wait from the instant at which one may go.
//!
//! Cost: one multiplication for each class in which something waits, of up to 32; one division, if a bounded class has
//! packets; memory of eight bytes for each packet that waits.
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

pub use crate::class::{ErrorWidth, Estimator, Gamma, HpdClass, Per1024};
pub use config::{BoundOrder, BoundReading, HpdConfig};

use alloc::vec::Vec;
use core::num::NonZero;

use crate::bits::Bits;
use crate::queue::Wire;
use crate::sched::bucket;
use crate::sched::{
    ClassSettings, ClassState, DelayState, FlowConfig, FlowId, Flows, Refused, Scheduler, Selection,
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
    /// The classes that flows are, by number; what has left is passed over.
    classes: Vec<Class>,
    parts: Parts,
    /// Sets of classes, a bit for each: those that flows are, those in which something waits, those with a bound.
    taken: u32,
    waiting: u32,
    bounded: u32,
    /// Whether the class that was chosen last was chosen for its bound.
    for_its_bound: bool,
    gammas: Gammas,
    wire: Wire,
}

/// What [`Hpd`] keeps of a flow: which class it is.
#[derive(Debug)]
pub struct HpdFlow {
    class: u32,
}

#[derive(Debug)]
struct Class {
    settings: HpdClass,
    /// When its packets came that wait, as far as the scheduler has been told.
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

    /// Another packet is the first now; whether there is none.
    #[inline]
    fn first_is_another(&mut self, now: Time, part: &mut Part) -> bool {
        match self.arrivals.front() {
            Some(head) => part.head = head,
            None => self.estimate.idle(now),
        }
        self.arrivals.len() == 0
    }

    /// Several packets have joined at once: the class was put aside with them.
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
    /// How many classes there may be.
    pub const CLASSES: u32 = u32::BITS;

    /// Without flows.
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

    /// The classes, or their parameters, are others: λ may be another, and with it all hybrid delays.
    fn classes_changed(&mut self) {
        // A class that has left counts as if it had the least δ, which changes nothing.
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

    /// A packet that came at `since` has joined.
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

    /// The class that goes because its bound is at stake, where `next` would go otherwise.
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

    /// How long a packet takes on the wire, to the next nanosecond; for ever where that is down.
    fn time_on_wire(&self, length: u32) -> Duration {
        let work = bucket::cost(length, &self.wire.overhead, Bytes::new(0));
        let end = ConstantRate(self.wire.rate).finish(Time::ZERO, work);
        end.map_or(Duration::MAX, |end| end.at.since(Time::ZERO))
    }
}

impl Scheduler for Hpd {
    type Flow = HpdFlow;

    /// The flow is the first class that no flow is.
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

    /// What waits stays, and so does the average.
    fn set_class(
        &mut self,
        _now: Time,
        flow: FlowId,
        settings: ClassSettings,
        flows: &mut Flows<HpdFlow>,
    ) -> Result<(), Refused> {
        let ClassSettings::Delay(settings) = settings;
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
        // Those before it have been dropped by queue management.
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
