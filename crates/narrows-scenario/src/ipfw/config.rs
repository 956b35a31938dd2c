//! `pipe | queue | sched N config …`: what a line says of links, queues and schedulers.

mod read;

pub(super) use read::{object_number, read};

use std::path::PathBuf;

use narrows_core::classify::FlowMask;
use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration, Rate};

use crate::units::{Number, Share};

/// What can be configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Object {
    /// `pipe`, or `link`: a link.
    Pipe,
    /// `queue`, or `flowset`: a set of flows at a scheduler.
    Queue,
    /// `sched`: what shares the link of its number among its queues.
    Scheduler,
}

impl Object {
    /// `pipe`, `queue` or `sched`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Queue => "queue",
            Self::Scheduler => "sched",
        }
    }
}

/// What a line configures: what it does not say is nothing here.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What it is.
    pub object: Object,
    /// Its number, 1 to 65,534.
    pub number: u32,
    /// `bw`: bits a second.
    pub rate: Option<Rate>,
    /// `delay`: the propagation delay.
    pub delay: Option<Duration>,
    /// `burst`: what may pass at once after idling.
    pub burst: Option<Bytes>,
    /// `profile`: the file of the extra air time.
    pub profile: Option<PathBuf>,
    /// `queue`: how much may wait.
    pub bound: Option<Bound>,
    /// `plr`: losses before the queue.
    pub loss: Option<Loss>,
    /// `red`, `gred`, `codel`, `pie` or `droptail`.
    pub management: Option<Management>,
    /// `weight`: the share at the scheduler.
    pub weight: Option<u32>,
    /// `lmax`: the longest packet.
    pub longest: Option<u32>,
    /// `pri`: the band of a priority scheduler; the lowest goes first.
    pub priority: Option<u32>,
    /// `pipe` or `sched` of a queue: the scheduler that it is at.
    pub parent: Option<u32>,
    /// `type` of a scheduler.
    pub scheduler: Option<SchedulerType>,
    /// `mask`: one for each value of these bits.
    pub mask: Option<FlowMask>,
}

/// Losses before the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// `plr P`: each packet by itself.
    Independent(Share),
    /// `plr K,p,H,r`: two states.
    GilbertElliott {
        /// K: the probability of a loss in the good state.
        loss_good: Share,
        /// p: from good to bad.
        p: Share,
        /// H: that of a loss in the bad state.
        loss_bad: Share,
        /// r: from bad to good.
        r: Share,
    },
}

/// How a queue is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Management {
    /// Drops what does not fit.
    DropTail,
    /// Random early detection.
    Red {
        /// `gred`: gentle above the upper threshold.
        gentle: bool,
        /// How much an arrival counts in the average.
        weight: Number,
        /// The lower threshold, in packets or bytes as the queue counts.
        min: u64,
        /// The upper threshold.
        max: u64,
        /// The probability at the upper threshold.
        probability: Share,
        /// Whether packets that can be are marked and not dropped.
        ecn: bool,
    },
    /// CoDel.
    Codel(Codel),
    /// PIE.
    Pie(Pie),
}

/// Parameters of CoDel; nothing for the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codel {
    /// The sojourn that is good enough.
    pub target: Option<Duration>,
    /// For how long it must have been above that.
    pub interval: Option<Duration>,
    /// Whether packets are marked.
    pub ecn: Option<bool>,
}

/// Parameters of PIE; nothing for the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pie {
    /// The delay to hold.
    pub target: Option<Duration>,
    /// How often the probability moves.
    pub update: Option<Duration>,
    /// The gain of the deviation.
    pub alpha: Option<Number>,
    /// The gain of its change.
    pub beta: Option<Number>,
    /// For how long a burst is let pass.
    pub burst: Option<Duration>,
    /// From which probability on packets are dropped and not marked.
    pub mark_below: Option<Share>,
    /// Whether packets are marked.
    pub ecn: Option<bool>,
    /// Whether drops come at even distances; yes.
    pub derandomize: Option<bool>,
    /// Whether steps of the probability are bounded; yes.
    pub cap_drop: Option<bool>,
}

/// Parameters of schedulers of flows that are told apart by a hash; nothing for the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hashed {
    /// Bytes that a flow sends in its turn.
    pub quantum: Option<u32>,
    /// How many packets may wait in all.
    pub limit: Option<u32>,
    /// Into how many flows packets are hashed.
    pub flows: Option<u32>,
}

/// The types of schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerType {
    /// `fifo`
    Fifo,
    /// `wf2q+`, the default.
    Wf2q,
    /// `rr`: deficit round robin.
    RoundRobin,
    /// `qfq`
    Qfq,
    /// `prio`
    Priority,
    /// `fq_codel`
    FqCodel(Hashed, Codel),
    /// `fq_pie`
    FqPie(Hashed, Pie),
}

impl SchedulerType {
    /// The name as ipfw prints it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fifo => "FIFO",
            Self::Wf2q => "WF2Q+",
            Self::RoundRobin => "RR",
            Self::Qfq => "QFQ",
            Self::Priority => "PRIO",
            Self::FqCodel(..) => "FQ_CODEL",
            Self::FqPie(..) => "FQ_PIE",
        }
    }
}

impl Config {
    /// One that says nothing.
    pub(crate) const fn new(object: Object, number: u32) -> Self {
        Self {
            object,
            number,
            rate: None,
            delay: None,
            burst: None,
            profile: None,
            bound: None,
            loss: None,
            management: None,
            weight: None,
            longest: None,
            priority: None,
            parent: None,
            scheduler: None,
            mask: None,
        }
    }
}
