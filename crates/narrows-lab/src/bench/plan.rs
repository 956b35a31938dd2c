//! Which algorithms are timed under which loads, and how they are run.

use std::num::NonZero;
use std::sync::Arc;

use narrows_core::aqm::{Codel, Pie};
use narrows_core::queue::{Bound, DropAt};
use narrows_core::sched::{
    Abe, AbeConfig, Cbq, CbqClass, Class, Drr, Fair, Fifo, FlowConfig, FqCodelConfig, FqPieConfig, Gamma,
    Gfq, Hfsc, HfscClass, HfscCurve, Hpd, HpdClass, HpdConfig, Htb, HtbClass, Kps, Overload, Per1024,
    Priority, Qfq, Scheduled, SfqConfig, ShapingError, Store, Tbf, TbfConfig, Wf2q,
};
use narrows_core::{Bytes, Duration, FlowKey, Protocol, Rate, classify};
use narrows_plugin::{Loaded, Module, abi};
use narrows_scenario::SchedulerKind as Kind;

use super::{Behind, Chain, Column, Grouped, PerFlow, Quantity, Timing, Workload, WorkloadError, time};
use crate::Algorithm::{self, Of};
use crate::watch::{Step, Watch};

/// The algorithms that can be timed. DCF is not among them: it idles while packets wait, so the time per packet there
/// is air time, not work.
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
    Of(Kind::Hfsc),
    Of(Kind::Cbq),
];

/// The maximum number of flows of an algorithm, if that is small: it is skipped for loads with more.
pub(super) fn most_flows(algorithm: Algorithm) -> Option<u64> {
    match algorithm {
        Of(Kind::Hpd) => Some(u64::from(Hpd::CLASSES)),
        Of(Kind::Abe) => Some(u64::from(Abe::FLOWS)),
        Of(Kind::Htb) => Some(Htb::MOST as u64 - 1),
        Of(Kind::Hfsc) => Some(Hfsc::MOST as u64 - 1),
        // It inspects all flows for each packet.
        Of(Kind::Cbq) => Some(128),
        _ => None,
    }
}

/// A loaded scheduler, for the algorithm `plugin`.
#[derive(Clone, Debug)]
pub struct Plugin {
    /// The module.
    pub module: Module,
    /// The values of its parameters.
    pub parameters: Vec<(String, i64)>,
}

impl Plugin {
    /// An instance with separate memory.
    fn scheduler(&self) -> Result<Loaded, Failed> {
        Ok(self.module.scheduler(&self.parameters, abi::FUEL)?)
    }
}

/// The runs to make.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The loaded scheduler, if `plugin` is among the algorithms.
    pub plugin: Option<Plugin>,
    /// The algorithms, in table order.
    pub algorithms: Vec<Algorithm>,
    /// The loads.
    pub columns: Vec<(Column, Workload)>,
    /// Packets in each run.
    pub packets: u64,
    /// The number of runs of each algorithm under each load.
    pub runs: u32,
}

/// The cost of an algorithm under a load.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The index of the load in [`Plan::columns`].
    pub column: usize,
    /// Nanoseconds per packet of each run, ascending. At least one.
    runs: Vec<f64>,
}

impl Figure {
    /// From the nanoseconds per packet of at least one run.
    pub(super) fn new(algorithm: Algorithm, column: usize, mut runs: Vec<f64>) -> Self {
        assert!(!runs.is_empty(), "a figure is of at least one run");
        runs.sort_by(f64::total_cmp);
        Self { algorithm, column, runs }
    }

    /// The median run's nanoseconds per packet; for an even number of runs, the faster of the middle two.
    pub fn median(&self) -> f64 {
        self.runs[(self.runs.len() - 1) / 2]
    }

    /// Nanoseconds per packet of the fastest run.
    pub fn minimum(&self) -> f64 {
        self.runs[0]
    }
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// An invalid load.
    #[error("the load `{column}`: {cause}")]
    Workload {
        /// Its text on the command line.
        column: String,
        /// The reason.
        cause: WorkloadError,
    },
    /// An algorithm that rejects the flows or serves none.
    #[error("the load `{column}`: {algorithm} {cause}")]
    Subject {
        /// The algorithm.
        algorithm: Algorithm,
        /// The load's text on the command line.
        column: String,
        /// The reason.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Plan {
    /// A plan that runs each algorithm under each load.
    ///
    /// # Errors
    /// If a load is invalid.
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

    /// Makes all runs: load by load, in rounds in which every algorithm runs once, so that a slowdown of the machine
    /// affects all. `watch` is called before each run and may stop; the figures then cover the runs made.
    ///
    /// # Errors
    /// If an algorithm rejects the flows of a load.
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

/// Why a run is impossible.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Nanoseconds per packet of one run.
fn nanoseconds(
    algorithm: Algorithm,
    plugin: Option<&Plugin>,
    workload: &Workload,
    packets: u64,
) -> Result<f64, Failed> {
    let timing = run(algorithm, plugin, workload, packets)?;
    Ok(timing.nanoseconds_per_packet())
}

/// Runs an algorithm once under a load, starting with empty queues.
///
/// # Errors
/// If it rejects the flows of the load, or a plugin is missing or fails.
pub fn run(
    algorithm: Algorithm,
    plugin: Option<&Plugin>,
    workload: &Workload,
    packets: u64,
) -> Result<Timing, Failed> {
    let timing = match algorithm {
        Algorithm::None => time(workload, packets, &mut Chain::default())?,
        // A single queue, as in the reference, not one per flow.
        Of(Kind::Fifo) => time(workload, packets, &mut Grouped::join(Fifo::default(), workload, |_| ())?)?,
        // One queue per priority, as in the reference.
        Of(Kind::Prio) => {
            time(workload, packets, &mut Grouped::join(Priority::default(), workload, |flow| flow.band)?)?
        }
        Of(Kind::PfifoFast) => time(workload, packets, &mut pfifo_fast()?)?,
        Of(Kind::Drr) => {
            // As in the reference, a flow of weight 1 sends one packet per turn if all packets have the same length.
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
        // Transmission takes no time here, so its virtual queue has no rate, and nothing is too late.
        Of(Kind::Abe) => time(workload, packets, &mut PerFlow::join(abe(), workload)?)?,
        Of(Kind::Tbf) => time(workload, packets, &mut Grouped::join(tbf()?, workload, |_| ())?)?,
        Of(Kind::Htb) => time(workload, packets, &mut PerFlow::join(htb(workload)?, workload)?)?,
        Of(Kind::Hfsc) => time(workload, packets, &mut PerFlow::join(hfsc(workload)?, workload)?)?,
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
        // `dcf` idles while packets wait.
        Of(kind) => return Err(format!("`{}` is not timed", kind.name()).into()),
    };
    Ok(timing)
}

/// Accepts packets of any age.
fn abe() -> Abe {
    Abe::new(AbeConfig { max_delay: Duration::MAX, ..AbeConfig::default() })
}

/// More than all packets together, so that the bucket never delays anything.
const ENDLESS: Bytes = Bytes::new(1 << 60);
const FAST: Rate = Rate::from_bits_per_second(1_000_000_000_000);
/// A rate too low to earn tokens for a single packet.
const SLOW: Rate = Rate::from_bits_per_second(1_000);

/// A token bucket that pays for each packet and never runs empty.
fn tbf() -> Result<Tbf, ShapingError> {
    Tbf::new(TbfConfig { rate: FAST, burst: ENDLESS, ..TbfConfig::default() })
}

/// A leaf for each flow below one inner class; all leaves have exhausted their own rates and borrow from that class
/// in turn.
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

/// A leaf for each flow below one inner class, which share by their weights.
fn hfsc(workload: &Workload) -> Result<Hfsc, ShapingError> {
    let of = |parent, rate: u64| HfscClass {
        parent,
        ls: Some(HfscCurve::linear(Rate::from_bits_per_second(rate))),
        ..HfscClass::default()
    };
    let leaves =
        workload.configs().map(|(config, _)| of(Some(0), u64::from(config.weight.get()) * 1_000_000));
    Hfsc::new(std::iter::once(of(None, 1_000_000)).chain(leaves).collect())
}

/// A leaf for each flow with CBQ: each class borrows from the link.
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

/// Flows are assigned in turn to three classes as in the thesis, with delay differentiation parameters 1, 4 and 16
/// and the thesis's γ and g.
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

/// Three bands selected by the type of service: a third of the flows asks for low delay, a third for nothing, a third
/// for high throughput.
fn pfifo_fast() -> Result<Behind<Priority>, Failed> {
    let (bound, drop_at) = (Bound::Packets(u64::MAX), DropAt::Tail);
    let mut queue = Scheduled::new(Priority::default(), classify::pfifo_fast(), bound, Overload::Arriving);
    for band in 0..3 {
        let flow = FlowConfig { band, ..FlowConfig::default() };
        queue.add_class(Class { flow, bound, drop_at, store: Store::Plain })?;
    }
    let key = |flow| FlowKey {
        network: Protocol::Ipv4,
        traffic_class: [0x10, 0, 0x08][flow as usize % 3],
        ..FlowKey::default()
    };
    Ok(Behind::new(queue, key))
}
