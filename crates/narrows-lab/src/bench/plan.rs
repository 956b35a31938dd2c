//! Which algorithms are timed under which loads, and the runs.

use std::sync::Arc;

use narrows_core::aqm::{Codel, Pie};
use narrows_core::queue::{Bound, DropAt};
use narrows_core::sched::{
    Class, Drr, Fair, Fifo, FlowConfig, FqCodelConfig, FqPieConfig, Gfq, Overload, Priority, Qfq, Scheduled,
    SfqConfig, Store, Wf2q,
};
use narrows_core::{Bytes, FlowKey, classify};
use narrows_scenario::SchedulerKind as Kind;

use super::{Behind, Chain, Column, Grouped, PerFlow, Quantity, Timing, Workload, WorkloadError, time};
use crate::Algorithm::{self, Of};

/// The algorithms that can be timed. DCF is not among them: it lets the medium be idle while packets wait, so what a
/// packet takes there is air time, not work.
pub const BENCHED: &[Algorithm] = &[
    Algorithm::None,
    Of(Kind::Fifo),
    Of(Kind::Prio),
    Of(Kind::PfifoFast),
    Of(Kind::Drr),
    Of(Kind::Wf2q),
    Of(Kind::Qfq),
    Of(Kind::Gfq),
    Of(Kind::Sfq),
    Of(Kind::FqCodel),
    Of(Kind::FqPie),
];

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The algorithms, in the order of the table.
    pub algorithms: Vec<Algorithm>,
    /// The loads.
    pub columns: Vec<(Column, Workload)>,
    /// Packets in each run.
    pub packets: u64,
    /// How often each algorithm runs under each load.
    pub runs: u32,
}

/// What an algorithm costs under a load.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The place of the load among [`Plan::columns`].
    pub column: usize,
    /// Nanoseconds a packet of each run, the least first. At least one.
    runs: Vec<f64>,
}

impl Figure {
    /// From the nanoseconds a packet of at least one run.
    pub(super) fn new(algorithm: Algorithm, column: usize, mut runs: Vec<f64>) -> Self {
        assert!(!runs.is_empty(), "a figure is of at least one run");
        runs.sort_by(f64::total_cmp);
        Self { algorithm, column, runs }
    }

    /// Nanoseconds a packet of the run in the middle; of an even number of runs, of the quicker of the two.
    pub fn median(&self) -> f64 {
        self.runs[(self.runs.len() - 1) / 2]
    }

    /// Nanoseconds a packet of the quickest run.
    pub fn minimum(&self) -> f64 {
        self.runs[0]
    }
}

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A load that cannot be.
    #[error("the load `{column}`: {cause}")]
    Workload {
        /// As it was asked for.
        column: String,
        /// Why not.
        cause: WorkloadError,
    },
    /// An algorithm that does not take the flows or serves none.
    #[error("the load `{column}`: {algorithm} {cause}")]
    Subject {
        /// Which algorithm.
        algorithm: Algorithm,
        /// As the load was asked for.
        column: String,
        /// Why not.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Plan {
    /// Each algorithm under each load.
    ///
    /// # Errors
    /// When a load cannot be.
    pub fn new(
        algorithms: Vec<Algorithm>,
        columns: Vec<Column>,
        (qmin, qmax): (Quantity, Quantity),
        packets: u64,
        runs: u32,
    ) -> Result<Self, BenchError> {
        let with_workload = |column: Column| match Workload::new(&column, qmin, qmax) {
            Ok(workload) => Ok((column, workload)),
            Err(cause) => Err(BenchError::Workload { column: column.name, cause }),
        };
        let columns = columns.into_iter().map(with_workload).collect::<Result<_, _>>()?;
        Ok(Self { algorithms, columns, packets, runs })
    }

    /// Runs all: load by load; in each, round by round; in each round, every algorithm once, so that a machine that
    /// becomes slower does so for all. `progress` is told before each run which load, round and algorithm is next.
    ///
    /// # Errors
    /// When an algorithm does not take the flows of a load.
    pub fn run(&self, mut progress: impl FnMut(&Column, u32, Algorithm)) -> Result<Vec<Figure>, BenchError> {
        let mut figures = Vec::new();
        for (number, (column, workload)) in self.columns.iter().enumerate() {
            let mut runs = vec![Vec::new(); self.algorithms.len()];
            for round in 0..self.runs {
                for (&algorithm, runs) in self.algorithms.iter().zip(&mut runs) {
                    progress(column, round, algorithm);
                    let failed =
                        |cause| BenchError::Subject { algorithm, column: column.name.clone(), cause };
                    runs.push(nanoseconds(algorithm, workload, self.packets).map_err(failed)?);
                }
            }
            let figure = |(&algorithm, runs)| Figure::new(algorithm, number, runs);
            figures.extend(self.algorithms.iter().zip(runs).map(figure));
        }
        Ok(figures)
    }
}

/// Why a run cannot be.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Nanoseconds a packet of one run.
fn nanoseconds(algorithm: Algorithm, workload: &Workload, packets: u64) -> Result<f64, Failed> {
    let timing = run(algorithm, workload, packets)?;
    Ok(timing.nanoseconds_per_packet())
}

/// One run of an algorithm under a load. It begins with nothing waiting.
///
/// # Errors
/// When it does not take the flows of the load.
pub fn run(algorithm: Algorithm, workload: &Workload, packets: u64) -> Result<Timing, Failed> {
    let timing = match algorithm {
        Algorithm::None => time(workload, packets, &mut Chain::default())?,
        // One queue, as the reference's, not one for each flow.
        Of(Kind::Fifo) => time(workload, packets, &mut Grouped::join(Fifo::default(), workload, |_| ())?)?,
        // One queue for each priority, as the reference's.
        Of(Kind::Prio) => {
            time(workload, packets, &mut Grouped::join(Priority::default(), workload, |flow| flow.band)?)?
        }
        Of(Kind::PfifoFast) => time(workload, packets, &mut pfifo_fast()?)?,
        Of(Kind::Drr) => {
            // As in the reference a flow of weight 1 sends one packet at its turn, where all are of one length.
            let quantum = Bytes::new(workload.longest().into());
            time(workload, packets, &mut PerFlow::join(Drr::new(quantum), workload)?)?
        }
        Of(Kind::Wf2q) => time(workload, packets, &mut PerFlow::join(Wf2q::default(), workload)?)?,
        Of(Kind::Qfq) => time(workload, packets, &mut PerFlow::join(Qfq::default(), workload)?)?,
        Of(Kind::Gfq) => time(workload, packets, &mut PerFlow::join(Gfq::default(), workload)?)?,
        Of(Kind::Sfq) => {
            let scheduler = Fair::round_robin(SfqConfig::default().quantum);
            time(workload, packets, &mut PerFlow::join(scheduler, &workload.unweighted())?)?
        }
        Of(Kind::FqCodel) => {
            let FqCodelConfig { quantum, codel, .. } = FqCodelConfig::default();
            let shared = Arc::new(codel);
            let policy = || Codel::new(Arc::clone(&shared));
            time(
                workload,
                packets,
                &mut Behind::managed(Fair::new(quantum), &workload.unweighted(), policy)?,
            )?
        }
        Of(Kind::FqPie) => {
            let FqPieConfig { quantum, pie, .. } = FqPieConfig::default();
            let shared = Arc::new(pie);
            let policy = || Pie::new(Arc::clone(&shared));
            time(
                workload,
                packets,
                &mut Behind::managed(Fair::new(quantum), &workload.unweighted(), policy)?,
            )?
        }
        Of(Kind::Dcf) => return Err("cannot be timed: it lets the medium be idle while packets wait".into()),
    };
    Ok(timing)
}

/// Three classes behind the classifier by the type of service; of the flows a third asks for low delay, a third for
/// nothing, a third for high throughput.
fn pfifo_fast() -> Result<Behind<Priority>, Failed> {
    let (bound, drop_at) = (Bound::Packets(u64::MAX), DropAt::Tail);
    let mut queue = Scheduled::new(Priority::default(), classify::pfifo_fast(), bound, Overload::Arriving);
    for band in 0..3 {
        let flow = FlowConfig { band, ..FlowConfig::default() };
        queue.add_class(Class { flow, bound, drop_at, store: Store::Plain })?;
    }
    let key = |flow| FlowKey { traffic_class: [0x10, 0, 0x08][flow as usize % 3], ..FlowKey::default() };
    Ok(Behind::new(queue, key))
}
