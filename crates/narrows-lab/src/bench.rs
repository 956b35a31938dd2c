//! What a scheduler costs: the load of Dummynet's scheduler tests, and how long a packet takes under it.
//!
//! Source: `sys/netpfil/ipfw/test` in FreeBSD, described in L. Rizzo's slides on Dummynet and QFQ (2010). The load has two
//! phases. In FILL each iteration makes a packet, for a flow with the smallest backlog, and enqueues it, until `qmax`
//! packets wait; in DRAIN each iteration dequeues one, until `qmin` wait. Nothing is random, and packets of a flow have
//! one length. The figure is the time of the loop divided by the number of packets enqueued. NONE has no scheduler: its
//! packets wait in one chain through their records, and its figure is what the harness itself costs.
//!
//! Departures: packets' records stand in one array, and those that are free are used again, the last one first: their
//! numbers are a stack (the reference allocates each record, and chains those that are free through themselves, in the same
//! order). The number of packets is
//! that of packets, where the reference counts iterations, of which there are about two for each packet. Time goes by,
//! one nanosecond with each iteration, for those that look at it. What the reference gets wrong is not repeated: no cap
//! of 200 packets a queue, DRR's quantum is its quantum, any number of priorities, weights as they are.
//!
//! ```
//! # use narrows_core::sched::{FlowConfig, FlowId, Flows, Refused, Scheduler, Selection, Weight};
//! # use narrows_core::Time;
//! use narrows_lab::bench::{Column, PerFlow, Workload, columns, quantity, time};
//!
//! /// Serves whatever flow got a packet last.
//! #[derive(Debug, Default)]
//! struct Latest(Vec<FlowId>);
//! impl Scheduler for Latest {
//!     // …
//! #   type Flow = ();
//! #   fn join(&mut self, _: FlowConfig) -> Result<(), Refused> { Ok(()) }
//! #   fn leave(&mut self, _: FlowId, _: &mut Flows<()>) {}
//! #   fn set_weight(&mut self, _: Time, _: FlowId, _: Weight, _: &mut Flows<()>) -> Result<(), Refused> { Ok(()) }
//! #   fn enqueue(&mut self, _: Time, flow: FlowId, _: &mut Flows<()>) { self.0.push(flow) }
//! #   fn select(&mut self, _: Time, _: &mut Flows<()>) -> Selection {
//! #       self.0.last().map_or(Selection::Empty, |&flow| Selection::Flow(flow))
//! #   }
//! #   fn sent(&mut self, _: Time, _: FlowId, _: u32, _: &mut Flows<()>) { self.0.pop(); }
//! #   fn head_dropped(&mut self, _: Time, _: FlowId, _: &mut Flows<()>) {}
//! }
//! let column = columns("1::512,8::64")?.remove(0);
//! let workload = Workload::new(&column, quantity("4n")?, quantity("30n")?)?;
//! let timing = time(&workload, 100_000, &mut PerFlow::join(Latest::default(), &workload)?)?;
//! assert_eq!(timing.counts.enqueued, 100_000);
//! println!("{:.1} ns a packet", timing.nanoseconds_per_packet());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod flowsets;
mod load;
mod plan;
mod subject;
mod table;
#[cfg(test)]
mod tests;

pub use flowsets::{Column, Flowset, Quantity, WordError, columns, quantity};
pub use load::{Record, Records};
pub use plan::{BENCHED, BenchError, Failed, Figure, Plan, Plugin, run};
pub use subject::{Behind, Chain, Grouped, NotTaken, PerFlow, Subject, Unserved};
pub use table::{json, table};

use narrows_core::sched::{FlowConfig, Weight};
use narrows_core::{Duration, Time};

use load::Load;

/// Flows and how much of their packets waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    flowsets: Vec<Flowset>,
    flows: u64,
    qmin: u64,
    qmax: u64,
}

/// Why a load cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// FILL would never end, or never begin.
    #[error("qmin ({qmin} packets) must be less than qmax ({qmax} packets)")]
    Order {
        /// Where DRAIN ends.
        qmin: u64,
        /// Where FILL ends.
        qmax: u64,
    },
    /// Too many to number.
    #[error("{what} are {found}; the maximum is {}", Workload::MOST)]
    TooMany {
        /// Flows or packets.
        what: &'static str,
        /// How many were asked for.
        found: u64,
    },
    /// Too many for this machine.
    #[error(
        "{flows} flows and up to {qmax} packets take about {needed} MiB, and {available} MiB are free here"
    )]
    Memory {
        /// How many flows.
        flows: u64,
        /// How many packets wait at most.
        qmax: u64,
        /// What they take.
        needed: u64,
        /// What there is.
        available: u64,
    },
}

impl Workload {
    /// Flows and packets are numbered with 32 bits, of which the harness needs some for its lists.
    pub const MOST: u64 = 1 << 31;

    /// What a packet and a flow take, about: a record, a share of a chunk, and a packet's state where there is one; a
    /// list entry, a flow and what a scheduler may keep beside it.
    const PACKET: u64 = 64 + 16 + 128;
    const FLOW: u64 = 16 + 128 + 128;
    const LEVEL: u64 = 16;

    /// A load of the flows of `column`.
    ///
    /// # Errors
    /// When `qmin` is not below `qmax`, or the flows or packets are too many to number or for the memory that is free.
    pub fn new(column: &Column, qmin: Quantity, qmax: Quantity) -> Result<Self, WorkloadError> {
        let flows = column.flows();
        let (qmin, qmax) = (qmin.packets(flows), qmax.packets(flows));
        if qmin >= qmax {
            return Err(WorkloadError::Order { qmin, qmax });
        }
        for (what, found) in [("flows", flows), ("waiting packets", qmax)] {
            if found > Self::MOST {
                return Err(WorkloadError::TooMany { what, found });
            }
        }
        let needed = (flows * Self::FLOW + qmax * Self::PACKET + qmax / flows * Self::LEVEL) >> 20;
        match available_mebibytes() {
            Some(available) if available < needed => {
                Err(WorkloadError::Memory { flows, qmax, needed, available })
            }
            _ => Ok(Self { flowsets: column.flowsets.clone(), flows, qmin, qmax }),
        }
    }

    /// How many flows there are.
    pub const fn flows(&self) -> u64 {
        self.flows
    }

    /// DRAIN ends when so many packets wait.
    pub const fn qmin(&self) -> u64 {
        self.qmin
    }

    /// FILL ends when so many packets wait.
    pub const fn qmax(&self) -> u64 {
        self.qmax
    }

    /// The same with weight 1 for every flow, for schedulers that know no weights.
    pub fn unweighted(&self) -> Self {
        let mut unweighted = self.clone();
        unweighted.flowsets.iter_mut().for_each(|set| set.weight = Weight::ONE);
        unweighted
    }

    /// The length of the longest packets, in bytes.
    pub fn longest(&self) -> u32 {
        self.flowsets.iter().map(|set| set.length).max().unwrap_or(0)
    }

    /// What a scheduler is told of each flow, in order, with the flow set that it is of. As in the reference, the weight
    /// is the priority, too, and the lowest goes first.
    pub fn configs(&self) -> impl Iterator<Item = (FlowConfig, &Flowset)> {
        self.flowsets.iter().flat_map(|set| {
            let config = FlowConfig { weight: set.weight, longest: set.length, band: set.weight.get() };
            (0..set.flows).map(move |_| (config, set))
        })
    }
}

/// What the kernel says could be given to a program; nothing where it does not say.
fn available_mebibytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes >> 10)
}

/// What a run counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets made and handed in.
    pub enqueued: u64,
    /// Packets served.
    pub dequeued: u64,
    /// Packets that queue management dropped.
    pub dropped: u64,
    /// Packets that waited at the end.
    pub waiting: u64,
}

/// How long a run took.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// What happened.
    pub counts: Counts,
    /// The time of the loop.
    pub nanoseconds: f64,
}

impl Timing {
    /// The figure: the time of the loop divided by the number of packets enqueued.
    pub fn nanoseconds_per_packet(&self) -> f64 {
        self.nanoseconds / self.counts.enqueued as f64
    }
}

/// Puts `subject`, which is empty, under the load until `packets` have been enqueued.
///
/// # Errors
/// When it serves nothing though packets wait, which is a fault of a scheduler that may not wait.
pub fn time<S: Subject>(workload: &Workload, packets: u64, subject: &mut S) -> Result<Timing, Unserved> {
    let mut harness = Harness::new(workload);
    let (nanoseconds, counts) = clock::nanoseconds(|| harness.drive(packets, subject));
    Ok(Timing { counts: counts?, nanoseconds })
}

/// The load, and where it is.
#[derive(Debug)]
struct Harness {
    load: Load,
    qmin: u64,
    qmax: u64,
    filling: bool,
    now: Time,
    counts: Counts,
}

impl Harness {
    fn new(workload: &Workload) -> Self {
        Self {
            load: Load::new(workload),
            qmin: workload.qmin,
            qmax: workload.qmax,
            filling: true,
            now: Time::ZERO,
            counts: Counts::default(),
        }
    }

    fn drive<S: Subject>(&mut self, packets: u64, subject: &mut S) -> Result<Counts, Unserved> {
        while self.counts.enqueued < packets {
            self.iterate(subject)?;
        }
        Ok(self.counts)
    }

    /// One packet in or one packet out.
    #[inline]
    fn iterate<S: Subject>(&mut self, subject: &mut S) -> Result<(), Unserved> {
        if self.filling && self.counts.waiting >= self.qmax {
            self.filling = false;
        } else if !self.filling && self.counts.waiting <= self.qmin {
            self.filling = true;
        }
        self.now = self.now + Duration::from_nanos(1);
        if self.filling {
            let packet = self.load.make();
            self.counts.enqueued += 1;
            self.counts.waiting += 1;
            subject.enqueue(self.now, packet, &mut self.load.records);
            self.take_drops(subject);
        } else {
            let before = self.counts.waiting;
            if let Some(packet) = subject.dequeue(self.now, &mut self.load.records) {
                self.counts.dequeued += 1;
                self.counts.waiting -= 1;
                self.load.give_back(packet);
            }
            self.take_drops(subject);
            if self.counts.waiting == before {
                return Err(Unserved { waiting: before });
            }
        }
        Ok(())
    }

    #[inline]
    fn take_drops<S: Subject>(&mut self, subject: &mut S) {
        while let Some(packet) = subject.dropped() {
            self.counts.dropped += 1;
            self.counts.waiting -= 1;
            self.load.give_back(packet);
        }
    }
}
