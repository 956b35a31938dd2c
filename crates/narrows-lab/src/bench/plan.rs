//! Which algorithms are timed under which loads, and the runs.

use std::num::NonZero;
use std::sync::Arc;

use narrows_core::aqm::{Codel, Pie};
use narrows_core::queue::{Bound, DropAt};
use narrows_core::sched::{
    Abe, AbeConfig, Cbq, CbqClass, Class, Drr, Fair, Fifo, FlowConfig, FqCodelConfig, FqPieConfig, Gamma,
    Gfq, Hpd, HpdClass, HpdConfig, Htb, HtbClass, Kps, Overload, Per1024, Priority, Qfq, Scheduled,
    SfqConfig, ShapingError, Store, Tbf, TbfConfig, Wf2q,
};
use narrows_core::{Bytes, Duration, FlowKey, Rate, classify};
use narrows_plugin::{Loaded, Module, abi};
use narrows_scenario::SchedulerKind as Kind;

use super::{Behind, Chain, Column, Grouped, PerFlow, Quantity, Timing, Workload, WorkloadError, time};
use crate::Algorithm::{self, Of};
use crate::watch::{Step, Watch};

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
    Of(Kind::Kps),
    Of(Kind::Sfq),
    Of(Kind::FqCodel),
    Of(Kind::FqPie),
    Of(Kind::Hpd),
    Of(Kind::Abe),
    Of(Kind::Tbf),
    Of(Kind::Htb),
    Of(Kind::Cbq),
];

/// The most flows that an algorithm serves, where that is few: it is not run under loads of more.
pub(super) fn most_flows(algorithm: Algorithm) -> Option<u64> {
    match algorithm {
        Of(Kind::Hpd) => Some(u64::from(Hpd::CLASSES)),
        Of(Kind::Abe) => Some(u64::from(Abe::FLOWS)),
        Of(Kind::Htb) => Some(Htb::MOST as u64 - 1),
        // It looks at all of them for each packet.
        Of(Kind::Cbq) => Some(128),
        _ => None,
    }
}

/// A scheduler that is loaded, for the algorithm `plugin`.
#[derive(Clone, Debug)]
pub struct Plugin {
    /// The module.
    pub module: Module,
    /// The values of its parameters.
    pub parameters: Vec<(String, i64)>,
}

impl Plugin {
    /// One with a memory of its own.
    fn scheduler(&self) -> Result<Loaded, Failed> {
        Ok(self.module.scheduler(&self.parameters, abi::FUEL)?)
    }
}

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the algorithm `plugin` is, if it is among them.
    pub plugin: Option<Plugin>,
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
        Ok(Self { plugin: None, algorithms, columns, packets, runs })
    }

    /// Runs all: load by load; in each, round by round; in each round, every algorithm once, so that a machine that
    /// becomes slower does so for all. `watch` is told before each run which is next, and may break off: the figures are then
    /// of the runs until that.
    ///
    /// # Errors
    /// When an algorithm does not take the flows of a load.
    pub fn run(&self, watch: Watch<'_>) -> Result<Vec<Figure>, BenchError> {
        let mut figures = Vec::new();
        let possible = |workload: &Workload, algorithm| {
            most_flows(algorithm).is_none_or(|most| workload.flows() <= most)
        };
        let pairs = self
            .columns
            .iter()
            .flat_map(|(_, workload)| self.algorithms.iter().map(move |one| (workload, *one)));
        let total = pairs.filter(|&(workload, one)| possible(workload, one)).count() * self.runs as usize;
        let (mut done, mut broken_off) = (0, false);
        for (number, (column, workload)) in self.columns.iter().enumerate() {
            let mut runs = vec![Vec::new(); self.algorithms.len()];
            'load: for round in 0..self.runs {
                for (&algorithm, runs) in self.algorithms.iter().zip(&mut runs) {
                    if !possible(workload, algorithm) {
                        continue;
                    }
                    let what = format!("{algorithm}, {}, round {}", column.name, round + 1);
                    if watch(&Step { done, total, what }).is_break() {
                        broken_off = true;
                        break 'load;
                    }
                    done += 1;
                    let failed =
                        |cause| BenchError::Subject { algorithm, column: column.name.clone(), cause };
                    runs.push(
                        nanoseconds(algorithm, self.plugin.as_ref(), workload, self.packets)
                            .map_err(failed)?,
                    );
                }
            }
            let figure = |(&algorithm, runs)| Figure::new(algorithm, number, runs);
            let with_runs = self.algorithms.iter().zip(runs).filter(|(_, runs)| !runs.is_empty());
            figures.extend(with_runs.map(figure));
            if broken_off {
                break;
            }
        }
        Ok(figures)
    }
}

/// Why a run cannot be.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Nanoseconds a packet of one run.
fn nanoseconds(
    algorithm: Algorithm,
    plugin: Option<&Plugin>,
    workload: &Workload,
    packets: u64,
) -> Result<f64, Failed> {
    let timing = run(algorithm, plugin, workload, packets)?;
    Ok(timing.nanoseconds_per_packet())
}

/// One run of an algorithm under a load. It begins with nothing waiting.
///
/// # Errors
/// When it does not take the flows of the load, or a plugin is none or fails.
pub fn run(
    algorithm: Algorithm,
    plugin: Option<&Plugin>,
    workload: &Workload,
    packets: u64,
) -> Result<Timing, Failed> {
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
        Of(Kind::Kps) => time(workload, packets, &mut PerFlow::join(Kps::default(), workload)?)?,
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
        Of(Kind::Hpd) => time(workload, packets, &mut PerFlow::join(Hpd::new(hpd()), workload)?)?,
        // No packet takes time here, so its virtual queue is one without a rate, and nothing is too late.
        Of(Kind::Abe) => time(workload, packets, &mut PerFlow::join(abe(), workload)?)?,
        Of(Kind::Tbf) => time(workload, packets, &mut Grouped::join(tbf()?, workload, |_| ())?)?,
        Of(Kind::Htb) => time(workload, packets, &mut PerFlow::join(htb(workload)?, workload)?)?,
        Of(Kind::Cbq) => time(workload, packets, &mut PerFlow::join(cbq(workload)?, workload)?)?,
        Of(Kind::Plugin) => {
            let scheduler = plugin.ok_or("no module is given")?.scheduler()?;
            let mut subject = PerFlow::join(scheduler, workload)?;
            let timing = time(workload, packets, &mut subject)?;
            match subject.scheduler().failure() {
                Some(failure) => return Err(failure.to_string().into()),
                None => timing,
            }
        }
        // `dcf` lets the medium be idle while packets wait.
        Of(kind) => return Err(format!("`{}` is not timed", kind.name()).into()),
    };
    Ok(timing)
}

/// Of any age.
fn abe() -> Abe {
    Abe::new(AbeConfig { max_delay: Duration::MAX, ..AbeConfig::default() })
}

/// More than all packets that there will be, so that a bucket never holds anybody up.
const ENDLESS: Bytes = Bytes::new(1 << 60);
const FAST: Rate = Rate::from_bits_per_second(1_000_000_000_000);
/// What no packet is earned at.
const SLOW: Rate = Rate::from_bits_per_second(1_000);

/// A bucket that is paid from for each packet and never empty.
fn tbf() -> Result<Tbf, ShapingError> {
    Tbf::new(TbfConfig { rate: FAST, burst: ENDLESS, ..TbfConfig::default() })
}

/// A leaf for each flow below one class; each has used up its own rate, and sends by turns what that class lends.
fn htb(workload: &Workload) -> Result<Htb, ShapingError> {
    let root = HtbClass { rate: FAST, ceil: FAST, burst: ENDLESS, cburst: ENDLESS, ..HtbClass::default() };
    let leaf = |weight: u32| HtbClass {
        parent: Some(0),
        rate: SLOW,
        burst: Bytes::new(0),
        quantum: Bytes::new(u64::from(workload.longest()) * u64::from(weight)),
        ..root
    };
    let leaves = workload.configs().map(|(config, _)| leaf(config.weight.get()));
    Htb::new(std::iter::once(root).chain(leaves).collect())
}

/// The same: each borrows from the link.
fn cbq(workload: &Workload) -> Result<Cbq, ShapingError> {
    let average_packet = Bytes::new(workload.longest().into());
    let leaf = |weight: u32| CbqClass {
        rate: SLOW,
        allot: average_packet,
        average_packet,
        weight: Some(weight.into()),
        ..CbqClass::default()
    };
    let leaves = workload.configs().map(|(config, _)| leaf(config.weight.get()));
    Cbq::new(FAST, average_packet, leaves.collect())
}

/// Classes by turns as the thesis's three, with the delay differentiation parameters 1, 4 and 16 and its own γ and g.
fn hpd() -> HpdConfig {
    const CLASSES: [(u32, u16, u16); 3] = [(1, 512, 512), (4, 256, 768), (16, 768, 256)];
    let class = |(ddp, gamma, g): (u32, u16, u16)| HpdClass {
        ddp: ddp.try_into().unwrap_or(NonZero::<u32>::MIN),
        gamma: Per1024::new(gamma).map_or(Gamma::OfBacklog, Gamma::Fixed),
        g: Per1024::new(g).unwrap_or(Per1024::HALF),
        ..HpdClass::default()
    };
    let classes = CLASSES.into_iter().cycle().take(Hpd::CLASSES as usize).map(class).collect();
    HpdConfig { classes, ..HpdConfig::default() }
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
