//! The registry of schedulers: one line for each, with its name, what it divides packets into, and how it
//! is built.

use narrows_core::aqm::{CodelConfig, PieConfig};
use narrows_core::queue;
use narrows_core::sched::{
    CsmaCdConfig, DcfConfig, Drr, Fair, Fifo, Gfq, HhfConfig, HpdClass, PacedFqConfig, Priority, Qfq,
    Tbf as Bucket, Wf2q,
};
use narrows_core::{Bytes, sched};

use super::cbq::CbqClass;
use super::hfsc::HfscClass;
use super::htb::HtbClass;
use super::own::{OwnParameters, SchedulerParameters};
use super::plan::{Plan, Refusal};
use super::sfq::Sfq;
use super::{Cake, Cbs, Hpd, Scheduler, Tbf};
use crate::keys::{self, Key, Keyed};
use crate::value::queue::Policy;

/// What a scheduler divides packets into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serves {
    /// Classes named in the scenario.
    Classes,
    /// Classes named in the scenario, or flows by hash.
    ClassesOrFlows,
    /// Flows by hash.
    Flows,
    /// Three fixed bands.
    Bands,
    /// Two fixed colours.
    Colours,
    /// Tins by the code point, and flows in each.
    Tins,
    /// Flows that send much, and all others.
    Sizes,
}

/// Builds the engine's queue from a scheduler's settings.
type Build = fn(&Scheduler, Plan<'_>) -> Result<Box<dyn queue::Queue>, Refusal>;

/// Properties of a scheduler.
pub(crate) struct About {
    pub(crate) name: &'static str,
    /// Description that starts a line of output.
    pub(crate) words: &'static str,
    pub(crate) serves: Serves,
    pub(super) build: Build,
    /// AQM of each flow's queue, if the algorithm includes one.
    pub(super) policy: fn() -> Policy,
    /// Its specific parameters, with all defaults.
    pub(super) own: fn() -> SchedulerParameters,
    /// Whether classes have weights.
    pub(crate) weights: bool,
    /// Whether it uses the longest packet of a class.
    pub(crate) longest: bool,
    /// Default quantum of a flow of weight 1, if it has a quantum.
    pub(crate) quantum: Option<Bytes>,
    /// The keys of its specific parameters, besides `quantum`.
    pub(crate) keys: fn() -> Vec<&'static dyn Key>,
    /// Name of the table of class keys in the reference.
    pub(super) class_table: &'static str,
    /// The keys of its specific class parameters, besides `weight` and `longest`.
    pub(crate) class_keys: fn() -> Vec<&'static dyn Key>,
}

impl About {
    const fn new(
        name: &'static str,
        class_table: &'static str,
        words: &'static str,
        serves: Serves,
        build: Build,
    ) -> Self {
        Self {
            name,
            words,
            serves,
            build,
            policy: || Policy::Fifo,
            own: SchedulerParameters::default,
            weights: false,
            longest: false,
            quantum: None,
            keys: Vec::new,
            class_table,
            class_keys: Vec::new,
        }
    }

    const fn weights(self) -> Self {
        Self { weights: true, ..self }
    }

    const fn longest(self) -> Self {
        Self { longest: true, ..self }
    }

    const fn quantum(self, bytes: u64) -> Self {
        Self { quantum: Some(Bytes::new(bytes)), ..self }
    }

    const fn own<T: OwnParameters>(self) -> Self {
        Self { own: SchedulerParameters::plain::<T>, keys: keys::keys::<T>, ..self }
    }

    const fn policy<T: Keyed>(self, policy: fn() -> Policy) -> Self {
        Self { policy, keys: keys::keys::<T>, ..self }
    }

    const fn class_keys<T: Keyed>(self) -> Self {
        Self { class_keys: keys::keys::<T>, ..self }
    }
}

/// Declares the schedulers: `Variant "name" "what it does" Serves, |asked, plan| how it is built, more;`.
macro_rules! schedulers {
    ($($kind:ident $name:literal $words:literal $serves:ident, $build:expr $(, $more:ident $(::<$of:ty>)? ($($argument:expr)?))*;)+) => {
        /// A scheduling algorithm.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $(#[doc = concat!("`", $name, "`: ", $words, ".")] $kind,)+
        }

        impl Kind {
            /// All algorithms.
            pub const ALL: [Self; [$(Self::$kind),+].len()] = [$(Self::$kind),+];

            pub(crate) const fn about(self) -> &'static About {
                match self {
                    $(Self::$kind => const { &About::new($name, concat!($name, "-class"), $words, Serves::$serves, $build)$(.$more$(::<$of>)?($($argument)?))* },)+
                }
            }
        }
    };
}

schedulers! {
    Fifo "fifo" "first in, first out" Classes, |it, plan| it.assemble(Fifo::default(), plan);
    Prio "prio" "strict priority, the first class first" Classes, |it, plan| it.assemble(Priority::default(), plan);
    PfifoFast "pfifo_fast" "strict priority of three bands by the TOS byte of IPv4 packets" Bands, |it, plan| it.assemble(Priority::default(), plan);
    Drr "drr" "deficit round robin" ClassesOrFlows, |it, plan| it.assemble(Drr::new(it.quantum().unwrap_or_default()), plan), weights(), quantum(1500);
    Ets "ets" "strict priority of the first classes, then deficit round robin" Classes, |it, plan| it.assemble(it.ets(), plan), quantum(1514), own::<super::Ets>();
    Taprio "taprio" "strict priority behind gates that open by a schedule, the first class first" Classes, |it, plan| it.assemble(it.taprio()?, plan), own::<super::Taprio>();
    Wf2q "wf2q+" "worst-case fair weighted fair queueing" ClassesOrFlows, |it, plan| it.assemble(Wf2q::default(), plan), weights();
    Qfq "qfq" "quick fair queueing" ClassesOrFlows, |it, plan| it.assemble(Qfq::default(), plan), weights(), longest();
    Gfq "gfq" "grouped fair queueing" ClassesOrFlows, |it, plan| it.assemble(Gfq::default(), plan), weights(), longest();
    Kps "kps" "fair queueing with interleaved stratified timer wheels" ClassesOrFlows, |it, plan| it.assemble(sched::kps::Kps::default(), plan), weights(), longest();
    Sfq "sfq" "stochastic fairness queueing" Flows, |it, plan| it.assemble(Fair::round_robin(it.quantum().unwrap_or_default()), plan), quantum(1514), own::<Sfq>();
    // RFC 8290, 5.2.4: one full Ethernet frame.
    FqCodel "fq_codel" "fair queueing with CoDel" Flows, |it, plan| it.assemble(Fair::new(it.quantum().unwrap_or_default()), plan), quantum(1514), policy::<CodelConfig>(|| Policy::Codel(CodelConfig::default()));
    Fq "fq" "fair queueing with a maximum rate for each flow" Flows, |it, plan| Ok(it.fq(plan)), quantum(3028), own::<PacedFqConfig>();
    FqPie "fq_pie" "fair queueing with PIE" Flows, |it, plan| it.assemble(Fair::new(it.quantum().unwrap_or_default()), plan), quantum(1514), policy::<PieConfig>(|| Policy::Pie(PieConfig::default()));
    Dcf "dcf" "802.11b DCF contention between stations" ClassesOrFlows, |it, plan| it.dcf(plan), own::<DcfConfig>(), class_keys::<super::Station>();
    CsmaCd "csma-cd" "CSMA/CD contention of half-duplex Ethernet" ClassesOrFlows, |it, plan| it.assemble(it.csma_cd(plan), plan), own::<CsmaCdConfig>();
    Hpd "hpd" "proportional delays, with limits" Classes, |it, plan| it.assemble(it.hpd(), plan), own::<Hpd>(), class_keys::<HpdClass>();
    Abe "abe" "alternative best effort: low delay for green packets at no cost to blue ones" Colours, |it, plan| it.assemble(it.abe(), plan), own::<super::Abe>();
    Plugin "plugin" "a scheduler loaded from a WebAssembly module" ClassesOrFlows, |it, plan| it.assemble(it.plugin().scheduler()?, plan), weights(), longest(), own::<super::Plugin>();
    Cake "cake" "shaping, priority tins, and fairness among hosts and flows with Cobalt" Tins, |it, plan| Ok(it.cake(plan)), own::<Cake>();
    Hhf "hhf" "flows that send much behind all others" Sizes, |it, plan| Ok(it.hhf(plan)), quantum(1514), own::<HhfConfig>();
    Tbf "tbf" "a token bucket" Classes, |it, plan| it.assemble(Bucket::new(it.tbf_config())?, plan), own::<Tbf>();
    Cbs "cbs" "a share of the port by credit, without bursts" Classes, |it, plan| it.assemble(sched::Cbs::new(it.own::<Cbs>().config())?, plan), own::<Cbs>();
    Htb "htb" "a tree of token buckets that borrow from their parents" Classes, |it, plan| it.assemble(sched::Htb::new(it.htb_classes())?, plan), class_keys::<HtbClass>();
    Hfsc "hfsc" "a tree of service curves: guarantees, shares and limits" Classes, |it, plan| it.assemble(sched::Hfsc::new(it.hfsc_classes())?, plan), class_keys::<HfscClass>();
    Cbq "cbq" "a tree of classes, limited to their rates by idle time" Classes, |it, plan| it.assemble(it.cbq()?, plan), own::<super::Cbq>(), class_keys::<CbqClass>();
}

impl Kind {
    /// Its name in a scenario.
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// Whether it is medium access by contending stations.
    pub(crate) fn is_medium_access(self) -> bool {
        matches!(self, Self::Dcf | Self::CsmaCd)
    }

    /// Description of what it does, for display.
    pub(crate) fn words(self) -> &'static str {
        self.about().words
    }

    /// Whether its classes, which it defines itself, share one bound.
    pub(crate) fn shares_one_bound(self) -> bool {
        matches!(self, Self::Abe | Self::Cake | Self::Hhf)
    }

    /// Whether it uses the longest packet of a class.
    pub(crate) fn wants_longest(self) -> bool {
        self.about().longest
    }

    /// Whether it shapes: delays packets to rates of its own.
    pub fn is_shaper(self) -> bool {
        matches!(self, Self::Tbf | Self::Cbs | Self::Htb | Self::Hfsc | Self::Cbq)
    }

    /// Whether all packets wait in its only class.
    pub(crate) fn has_one_class(self) -> bool {
        matches!(self, Self::Tbf | Self::Cbs)
    }

    /// Whether classes must be named because it has no default classes.
    pub(crate) fn needs_classes(self) -> bool {
        matches!(self, Self::Prio | Self::Ets | Self::Taprio | Self::Htb | Self::Hfsc | Self::Cbq)
    }

    /// Whether its name alone is a complete setting.
    pub(crate) fn is_enough_by_name(self) -> bool {
        // `prio` is, for the queues of a pipe.
        !matches!(
            self,
            Self::Ets
                | Self::Taprio
                | Self::Tbf
                | Self::Cbs
                | Self::Htb
                | Self::Hfsc
                | Self::Cbq
                | Self::Plugin
        )
    }

    /// All names.
    pub(crate) fn names() -> [&'static str; Self::ALL.len()] {
        Self::ALL.map(Self::name)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
