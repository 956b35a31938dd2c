//! Alternative best effort: a low delay for green packets, at no cost to the blue ones.
//!
//! Sources: P. Hurley, M. Kara, J. Y. Le Boudec and P. Thiran, "ABE: providing a low-delay service within best effort",
//! IEEE Network 15(3), 2001, for the service; P. Hurley, J. Y. Le Boudec, P. Thiran and M. Kara, "A novel scheduler for a
//! low delay service within best effort", IWQoS 2001, for the scheduler, duplicate scheduling with deadlines (DSD).
//!
//! A green packet waits for `max_delay` at most, and is dropped instead of waiting longer. A blue packet gets what a single
//! first-in first-out queue would have given it. To that end a duplicate of every packet, of either colour, joins a virtual
//! queue that is served in order of arrival at the rate of the link. A packet whose duplicate finds that queue full is
//! dropped. The end of its duplicate's service is a blue packet's deadline. With W(t) for what is left to serve of the
//! duplicates up to and including that of the first blue packet, and c for what a packet costs on the wire:
//!
//! ```text
//! blue can wait     W(now) ≥ c(green) + c(blue)
//! green can wait    now + c(blue) / rate ≤ arrival + max_delay
//! ```
//!
//! of the first packet of each colour. If blue cannot wait, blue goes; else if green cannot, green; if both can, green goes
//! at the share `bias` of such decisions. All is counted in work, in billionths of a bit, and nothing is rounded, so that a
//! change of the rate moves packet and duplicate alike.
//!
//! **Blue is not hurt.** The link serves some of what the virtual queue serves and is idle only when nothing waits, so at
//! any instant it has no more left to do. A blue packet that finds no other has thus at least its own cost and all that
//! the link still has to do before it until its deadline, and the slack of blue packets never falls from one to the next,
//! because the duplicate of each lies between. So each blue packet is sent by the time at which the last bit of its
//! duplicate is, and none is dropped that the single queue would have sent. What a queue that is replaced by this one had on
//! the wire has no duplicate; then a blue packet may be late by the rest of that one packet.
//!
//! Where this departs, as far as the published abstracts and descriptions tell: the texts themselves were not at hand.
//! - A green packet whose duplicate is dropped is dropped, too. So green has never less loss than it would have had in a
//!   single queue, which is the price of its delay.
//! - Lateness of a green packet is found when it would be sent. No estimate refuses it when it comes.
//! - `bias` is a probability there. Here the decisions are spread evenly, so that no draw is needed.
//! - The control of `bias` by the throughput of TCP flows is left out: it is what is configured.
//!
//! A packet costs constant time, but for packets and duplicates that leave, each of which does so once.
//!
//! ```
//! # use narrows_core::queue::Wire;
//! # use narrows_core::sched::{Abe, AbeConfig, FlowConfig, Served, Server};
//! # use narrows_core::{Overhead, PacketRef, Rate, Time};
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

/// What alternative best effort is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbeConfig {
    /// The longest that a green packet waits: one that would wait longer is dropped.
    pub max_delay: Duration,
    /// Of the decisions at which the first packet of either colour could wait for the other, the share that green wins.
    pub bias: Probability,
}

impl Default for AbeConfig {
    /// Twenty milliseconds; green goes whenever blue can wait.
    fn default() -> Self {
        Self { max_delay: Duration::from_millis(20), bias: Probability::ONE }
    }
}

/// Serves two flows: the one that joins first is green, the other one is blue.
#[derive(Debug)]
pub struct Abe {
    config: AbeConfig,
    overhead: Overhead,
    /// What a single queue would hold.
    duplicates: Duplicates,
    bound: Bound,
    /// When each green packet came that waits, in order.
    greens: VecDeque<Time>,
    /// Up to which of all work ever the virtual queue has to come to have served the duplicate of each blue packet that
    /// waits, in order.
    blues: VecDeque<u128>,
    /// The flow of each colour.
    flows: [Option<FlowId>; 2],
    joined: [bool; 2],
    /// What green has in hand of decisions that were open, in multiples of 2⁻⁶³; below 1.
    credit: u64,
    /// Whether at the last answer both could have waited.
    open: bool,
}

/// What [`Abe`] keeps of a flow.
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
    /// How many flows it serves.
    pub const FLOWS: u32 = 2;

    /// Without flows. Nothing bounds the virtual queue until [`Scheduler::set_bound`] does.
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
        // Packets that were dropped at the end of the flow are not told of.
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

    /// The first packets of a flow have gone.
    fn forget(&mut self, flow: FlowId, flows: &Flows<AbeFlow>) {
        let waiting = flows.packets(flow) as usize;
        match flows[flow].colour {
            Colour::Green => drop(self.greens.drain(..self.greens.len().saturating_sub(waiting))),
            Colour::Blue => drop(self.blues.drain(..self.blues.len().saturating_sub(waiting))),
        }
    }

    /// Which colour goes where one of each waits, and whether both could have waited.
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

/// How long this takes at a rate; for ever where it is zero.
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
