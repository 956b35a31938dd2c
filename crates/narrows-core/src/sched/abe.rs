//! Alternative best effort (ABE): low delay for green packets, at no cost to blue packets.
//!
//! Sources: P. Hurley, M. Kara, J. Y. Le Boudec and P. Thiran, "ABE: providing a low-delay service within best
//! effort", IEEE Network 15(3), 2001, for the service; P. Hurley, J. Y. Le Boudec, P. Thiran and M. Kara, "A novel
//! scheduler for a low delay service within best effort", IWQoS 2001, for the scheduler, duplicate scheduling with
//! deadlines (DSD).
//!
//! A green packet waits for at most `max_delay`, and is dropped instead of waiting longer. A blue packet gets the
//! service that a single FIFO queue would have given it. To ensure that, a duplicate of every packet, of either
//! colour, joins a virtual queue that is served in order of arrival at the link's rate. If the virtual queue is full,
//! the packet is dropped. The end of its duplicate's service is a blue packet's deadline. Let W(t) be the work left
//! in the virtual queue up to and including the duplicate of the first blue packet, and c the cost of a packet on the
//! wire:
//!
//! ```text
//! blue can wait     W(now) ≥ c(green) + c(blue)
//! green can wait    now + c(blue) / rate ≤ arrival + max_delay
//! ```
//!
//! for the first packet of each colour. If blue cannot wait, blue is sent. Otherwise, if green cannot wait, green is
//! sent. If both can wait, green is sent in a fraction `bias` of these decisions. Everything is counted in work, in
//! billionths of a bit, without rounding, so that a change of the rate affects packets and duplicates alike.
//!
//! **Blue is not hurt.** The link serves a subset of what the virtual queue serves and is idle only when nothing
//! waits. So at any instant it has no more work left than the virtual queue. A blue packet that arrives when no other
//! blue packet waits therefore has, until its deadline, at least time for its own cost and all the work that the link
//! still has to do before it. The slack of blue packets never falls from one to the next, because the duplicate of
//! each lies between. So each blue packet is sent no later than the last bit of its duplicate, and none is dropped
//! that the single queue would have sent. If this queue replaces another one, the packet that was on the wire has no
//! duplicate. A blue packet may then be late by the rest of that one packet.
//!
//! Differences from the source, as far as the published abstracts and descriptions tell (the full texts were not
//! available):
//! - A green packet whose duplicate is dropped is dropped, too. So the loss of green packets is never lower than in a
//!   single queue, which is the price of the low delay.
//! - Whether a green packet is too late is decided when it would be sent. No estimate refuses it on arrival.
//! - `bias` is a probability there. Here the decisions are spread evenly, so no draw is needed.
//! - The control of `bias` by the throughput of TCP flows is omitted: `bias` is the configured value.
//!
//! A packet costs constant time, plus the removal of packets and duplicates that leave, each of which happens once.
//!
//! ```
//! # use narrows_core::queue::Wire;
//! # use narrows_core::sched::{Abe, AbeConfig, FlowConfig, Served, Server};
//! # use narrows_core::service::Overhead;
//! # use narrows_core::{PacketRef, Rate, Time};
//! let mut server = Server::new(Abe::new(AbeConfig::default()));
//! server.set_wire(Time::ZERO, Wire { rate: Rate::from_bits_per_second(8_000_000), overhead: Overhead::IP });
//! let [green, blue] = [(); 2].map(|()| server.join(FlowConfig::default()).expect("one of each colour"));
//! for (number, flow) in [blue, blue, green, blue].into_iter().enumerate() {
//!     server.enqueue(Time::ZERO, flow, PacketRef::from_number(number as u32), 1000);
//! }
//! let order: Vec<u32> = (0..4)
//!     .map(|sent| match server.dequeue(Time::from_nanos(sent * 1_000_000)) {
//!         Served::Packet(_, waits) => waits.packet.number(),
//!         other => panic!("{other:?}"),
//!     })
//!     .collect();
//! // The blue packets that came before the green one are due when a single queue would have sent them.
//! assert_eq!(order, [0, 1, 2, 3]);
//! ```

mod duplicates;

use alloc::collections::VecDeque;

use crate::counters::DropReason;
use crate::queue::{Bound, Wire};
use crate::sched::bucket;
use crate::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, Selection};
use crate::service::{Overhead, Work};
use crate::time::{Duration, Time};
use crate::units::{Bytes, Probability, Rate};
use duplicates::Duplicates;

/// The parameters of alternative best effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbeConfig {
    /// Maximum waiting time of a green packet. A packet that would wait longer is dropped.
    pub max_delay: Duration,
    /// Fraction of decisions in favour of green, when the first packet of either colour could wait for the other.
    pub bias: Probability,
}

impl Default for AbeConfig {
    /// 20 ms; green is sent whenever blue can wait.
    fn default() -> Self {
        Self { max_delay: Duration::from_millis(20), bias: Probability::ONE }
    }
}

/// Serves two flows: the first to join is green, the second is blue.
#[derive(Debug)]
pub struct Abe {
    config: AbeConfig,
    overhead: Overhead,
    /// What a single queue would hold.
    duplicates: Duplicates,
    bound: Bound,
    /// When each waiting green packet arrived, in order.
    greens: VecDeque<Time>,
    /// For each waiting blue packet, in order: the total work at which the virtual queue has served its duplicate.
    blues: VecDeque<u128>,
    /// The flow of each colour.
    flows: [Option<FlowId>; 2],
    joined: [bool; 2],
    /// Credit of green from open decisions, in multiples of 2⁻⁶³; below 1.
    credit: u64,
    /// Whether both could have waited at the last answer.
    open: bool,
}

/// Per-flow state of [`Abe`].
#[derive(Debug)]
pub struct AbeFlow {
    colour: Colour,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Green,
    Blue,
}

impl Abe {
    /// The number of flows that it serves.
    pub const FLOWS: u32 = 2;

    /// A scheduler without flows. The virtual queue is unbounded until [`Scheduler::set_bound`] is called.
    pub fn new(config: AbeConfig) -> Self {
        Self {
            config,
            overhead: Overhead::IP,
            duplicates: Duplicates::default(),
            bound: Bound::Packets(u64::MAX),
            greens: VecDeque::new(),
            blues: VecDeque::new(),
            flows: [None; 2],
            joined: [false; 2],
            credit: 0,
            open: false,
        }
    }

    fn cost(&self, length: u32) -> Work {
        bucket::cost(length, &self.overhead, Bytes::new(0))
    }

    fn first(&self, colour: Colour, flows: &Flows<AbeFlow>) -> Option<(FlowId, u32)> {
        let flow = self.flows[colour as usize]?;
        flows.first(flow).map(|first| (flow, first.length))
    }

    fn join_at(&mut self, now: Time, since: Time, flow: FlowId, flows: &mut Flows<AbeFlow>) {
        let (state, last) = flows.state_and_last(flow);
        let colour = state.colour;
        let waited = flows.packets(flow) as usize - 1;
        self.flows[colour as usize] = Some(flow);
        let end = self.duplicates.push(now, last.map_or(0, |last| last.length), &self.overhead);
        // The scheduler is not told about packets dropped at the tail of the flow.
        match colour {
            Colour::Green => {
                self.greens.truncate(waited);
                self.greens.push_back(since);
            }
            Colour::Blue => {
                self.blues.truncate(waited);
                self.blues.push_back(end);
            }
        }
    }

    /// Forgets the first packets of a flow, which have gone.
    fn forget(&mut self, flow: FlowId, flows: &Flows<AbeFlow>) {
        let waiting = flows.packets(flow) as usize;
        match flows[flow].colour {
            Colour::Green => drop(self.greens.drain(..self.greens.len().saturating_sub(waiting))),
            Colour::Blue => drop(self.blues.drain(..self.blues.len().saturating_sub(waiting))),
        }
    }

    /// The colour to send when packets of both wait, and whether both could have waited.
    fn choose(&self, now: Time, came: Time, green: u32, blue: u32) -> (Colour, bool) {
        let (green, blue) = (self.cost(green), self.cost(blue));
        let due = self.blues.front().copied().unwrap_or_default();
        if self.duplicates.left(due) < green.0 + blue.0 {
            return (Colour::Blue, false);
        }
        if now.since(came) + span(blue, self.duplicates.rate()) > self.config.max_delay {
            return (Colour::Green, false);
        }
        let wins = self.credit + self.config.bias.raw() >= Probability::ONE.raw();
        (if wins { Colour::Green } else { Colour::Blue }, true)
    }
}

/// The time that this cost takes at a rate. Unlimited if the rate is zero.
fn span(cost: Work, rate: Rate) -> Duration {
    match rate {
        Rate::UNLIMITED => Duration::ZERO,
        Rate::DOWN => Duration::MAX,
        rate => {
            let nanos = cost.0.div_ceil(rate.bits_per_second().into());
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        }
    }
}

impl Scheduler for Abe {
    type Flow = AbeFlow;

    fn join(&mut self, _flow: FlowConfig) -> Result<AbeFlow, Refused> {
        let colour = match self.joined {
            [false, _] => Colour::Green,
            [true, false] => Colour::Blue,
            [true, true] => return Err(Refused::Flows { most: Self::FLOWS.into() }),
        };
        self.joined[colour as usize] = true;
        Ok(AbeFlow { colour })
    }

    fn leave(&mut self, flow: FlowId, flows: &mut Flows<AbeFlow>) {
        self.forget(flow, flows);
        let colour = flows[flow].colour as usize;
        (self.joined[colour], self.flows[colour]) = (false, None);
    }

    fn enqueue(&mut self, now: Time, flow: FlowId, flows: &mut Flows<AbeFlow>) {
        self.join_at(now, now, flow, flows);
    }

    fn take_over(&mut self, now: Time, flow: FlowId, since: Time, flows: &mut Flows<AbeFlow>) {
        self.join_at(now, since, flow, flows);
    }

    fn refuses(&mut self, now: Time, length: u32) -> Option<DropReason> {
        self.duplicates.advance(now);
        (!self.bound.admits(self.duplicates.waiting(), length)).then_some(DropReason::QueueFull)
    }

    fn select(&mut self, now: Time, flows: &mut Flows<AbeFlow>) -> Selection {
        self.duplicates.advance(now);
        self.open = false;
        let (green, blue) = (self.first(Colour::Green, flows), self.first(Colour::Blue, flows));
        let Some((green, green_length)) = green else {
            return blue.map_or(Selection::Empty, |(blue, _)| Selection::Flow(blue));
        };
        let came = self.greens.front().copied().unwrap_or(now);
        if now.since(came) > self.config.max_delay {
            return Selection::GiveUp(green, DropReason::TooLate);
        }
        let Some((blue, blue_length)) = blue else { return Selection::Flow(green) };
        let (colour, open) = self.choose(now, came, green_length, blue_length);
        self.open = open;
        Selection::Flow(if colour == Colour::Green { green } else { blue })
    }

    fn sent(&mut self, _now: Time, flow: FlowId, _length: u32, flows: &mut Flows<AbeFlow>) {
        if self.open {
            self.open = false;
            self.credit += self.config.bias.raw(); // at most 2⁶³ more than what is below 2⁶³
            if flows[flow].colour == Colour::Green {
                self.credit -= Probability::ONE.raw();
            }
        }
        self.forget(flow, flows);
    }

    fn head_dropped(&mut self, _now: Time, flow: FlowId, flows: &mut Flows<AbeFlow>) {
        self.open = false;
        self.forget(flow, flows);
    }

    fn set_wire(&mut self, now: Time, wire: Wire) {
        self.duplicates.set_rate(now, wire.rate);
        self.overhead = wire.overhead;
    }

    fn set_bound(&mut self, bound: Bound) {
        self.bound = bound;
    }
}
