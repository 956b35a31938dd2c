//! The cost of a scheduler: the load of Dummynet's scheduler tests, and the time per packet.
//!
//! Source: `sys/netpfil/ipfw/test` in FreeBSD, described in L. Rizzo's slides on Dummynet and QFQ (2010). The load
//! has two phases. In FILL each iteration creates a packet for a flow with the smallest backlog and enqueues it,
//! until the total backlog is `qmax` packets; in DRAIN each iteration dequeues one, until the backlog is `qmin`.
//! Nothing is random, and packets of a flow have one length. The result is the time of the loop divided by the number
//! of packets enqueued. NONE has no scheduler: its packets wait in one linked list through their records, and its
//! result is the cost of the harness itself.
//!
//! Differences: packet records are in one array, and free ones are reused, last one first: their numbers form a stack
//! (the reference allocates each record, and links free ones through themselves, in the same order). The number of
//! packets is a number of packets; the reference counts iterations, of which there are about two per packet. Time
//! advances by one nanosecond with each iteration, for schedulers that use it. Errors of the reference are not
//! repeated: there is no cap of 200 packets per queue, DRR's quantum is the configured quantum, any number of
//! priorities is possible, and weights are not changed.
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

/// The flows of a load, and the bounds of their total backlog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    flowsets: Vec<Flowset>,
    flows: u64,
    qmin: u64,
    qmax: u64,
}

/// Why a load is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// FILL would never end or never begin.
    #[error("qmin ({qmin} packets) must be less than qmax ({qmax} packets)")]
    Order {
        /// The backlog at which DRAIN ends.
        qmin: u64,
        /// The backlog at which FILL ends.
        qmax: u64,
    },
    /// Too many flows or packets to number.
    #[error("{what} are {found}; the maximum is {}", Workload::MOST)]
    TooMany {
        /// Flows or packets.
        what: &'static str,
        /// The requested number.
        found: u64,
    },
    /// Not enough memory on this machine.
    #[error(
        "{flows} flows and up to {qmax} packets take about {needed} MiB, and {available} MiB are free here"
    )]
    Memory {
        /// The number of flows.
        flows: u64,
        /// The maximum backlog, in packets.
        qmax: u64,
        /// The memory needed.
        needed: u64,
        /// The memory available.
        available: u64,
    },
}

impl Workload {
    /// Flows and packets have 32-bit numbers, some of which the harness needs for its lists.
    pub const MOST: u64 = 1 << 31;

    /// The approximate memory of a packet and of a flow: a record, a share of a chunk, and the packet's state where
    /// there is one; a list entry, a flow, and the scheduler's state for it.
    const PACKET: u64 = 64 + 16 + 128;
    const FLOW: u64 = 16 + 128 + 128;
    const LEVEL: u64 = 16;

    /// A load with the flows of `column`.
    ///
    /// # Errors
    /// If `qmin` is not below `qmax`, or there are too many flows or packets to number or for the available memory.
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

    /// The number of flows.
    pub const fn flows(&self) -> u64 {
        self.flows
    }

    /// DRAIN ends at this backlog, in packets.
    pub const fn qmin(&self) -> u64 {
        self.qmin
    }

    /// FILL ends at this backlog, in packets.
    pub const fn qmax(&self) -> u64 {
        self.qmax
    }

    /// The same load with weight 1 for every flow, for schedulers without weights.
    pub fn unweighted(&self) -> Self {
        let mut unweighted = self.clone();
        unweighted.flowsets.iter_mut().for_each(|set| set.weight = Weight::ONE);
        unweighted
    }

    /// The maximum packet length, in bytes.
    pub fn longest(&self) -> u32 {
        self.flowsets.iter().map(|set| set.length).max().unwrap_or(0)
    }

    /// The configuration of each flow, in order, with its flow set. As in the reference, the weight is also the
    /// priority, and the lowest is served first.
    pub fn configs(&self) -> impl Iterator<Item = (FlowConfig, &Flowset)> {
        self.flowsets.iter().flat_map(|set| {
            let config =
                FlowConfig { weight: set.weight, longest: set.length, band: set.weight.get(), quantum: None };
            (0..set.flows).map(move |_| (config, set))
        })
    }
}

/// The memory that the kernel reports as available; `None` if it does not report it.
fn available_mebibytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes >> 10)
}

/// The counters of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets created and enqueued.
    pub enqueued: u64,
    /// Packets dequeued.
    pub dequeued: u64,
    /// Packets that queue management dropped.
    pub dropped: u64,
    /// Packets waiting at the end.
    pub waiting: u64,
}

/// The duration of a run.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The counters.
    pub counts: Counts,
    /// The time of the loop.
    pub nanoseconds: f64,
}

impl Timing {
    /// The result: the time of the loop divided by the number of packets enqueued.
    pub fn nanoseconds_per_packet(&self) -> f64 {
        self.nanoseconds / self.counts.enqueued as f64
    }
}

/// Puts `subject`, which must be empty, under the load until `packets` have been enqueued.
///
/// # Errors
/// If it serves nothing although packets wait: a fault in a work-conserving scheduler.
pub fn time<S: Subject>(workload: &Workload, packets: u64, subject: &mut S) -> Result<Timing, Unserved> {
    let mut harness = Harness::new(workload);
    let (nanoseconds, counts) = clock::nanoseconds(|| harness.drive(packets, subject));
    Ok(Timing { counts: counts?, nanoseconds })
}

/// The load and its current state.
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

    /// Enqueues or dequeues one packet.
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
