//! The settings of a direction of a link, one module per kind: the value in the file (plain, comparable,
//! printable) and its conversion to the engine's type.

mod chance;
mod condition;
mod corrupt;
mod delay;
mod distribution;
mod edit;
mod exact_netem;
mod file;
mod ingress;
mod loss;
mod mask;
pub(crate) mod mtu;
mod overhead;
mod pattern;
mod policer;
mod profile;
mod queue;
mod reorder;
mod scheduler;
mod slots;
mod trace;

use narrows_core::classify::FlowMask;

use crate::keys::kind::Compound;
use crate::keys::{Key, Kind, keys};

pub use chance::Chance;
pub use condition::{Match, Party, Sender};
pub use corrupt::Corrupt;
pub use delay::{CellUse, Correlation, Delay, DelayClass, DelaySource, FeedUse};
pub use distribution::{
    Bins, Distribution, DistributionTable, Exponential, Gamma, LogNormal, MixturePart, Normal, Pareto,
    ParetoNormal, Points, Samples, Shape, Uniform, Weibull,
};
pub use edit::EditUse;
pub use exact_netem::ExactNetem;
pub use ingress::{GateUse, IngressAction, IngressConform, IngressExceed, IngressUse};
pub use loss::{After, GilbertElliott, Loss, LossModel, Losses, Markov};
pub use pattern::PatternUse;
pub use policer::{PolicerExceed, PolicerUse, TokenBucket};
pub use profile::ProfileUse;
pub use queue::{Choke, Policy, Queue, Red};
pub use reorder::Reorder;
pub use scheduler::{
    Abe, Around, Cbq, CbqClass, Child, Class, Delayed, DirectionClass, Division, Filter, HfscClass, Hpd,
    HtbClass, Plugin, Scheduler, SchedulerKind, SchedulerParameters, ServiceCurve, ShapedBy, Station, Tbf,
};
pub use slots::{Gap, Slots};
pub use trace::{TraceColumns, TraceUse};

pub(crate) use chance::CHANCE;
pub(crate) use condition::{
    ECN, Surroundings, code_point, link_address, link_address_text, link_pattern, link_pattern_text, party,
    protocol, protocol_name,
};

pub(crate) use corrupt::CORRUPT;
pub(crate) use delay::{DELAY, ORDER, read as read_delay};
pub(crate) use exact_netem::EXACT_NETEM;
pub(crate) use ingress::{FILTER as INGRESS_FILTER, INGRESS};
pub(crate) use loss::Losing;
pub use mask::words as mask_words;
pub(crate) use mask::{read as read_mask, schema as mask_schema, value as mask_value};
pub(crate) use mtu::MTU;
pub(crate) use overhead::{OVERHEAD, words as overhead_words};
pub(crate) use policer::POLICER;
pub(crate) use profile::PROFILE;
pub(crate) use queue::all_keys as queue_keys;
pub(crate) use reorder::ReorderOrNone;
pub(crate) use scheduler::{
    Cbs, DCF_RATES, DROP, Plan, Tree, all_keys as scheduler_keys, class_keys, hpd_words, identity_name,
    registry as schedulers,
};
pub(crate) use slots::SLOTS;
pub(crate) use trace::TRACE;

/// The keys of these values, by the names of their tables in the reference.
pub(crate) fn tables() -> Vec<(&'static str, Vec<&'static dyn Key>)> {
    let of = |kind: &dyn Kind| kind.compound().map(Compound::keys).unwrap_or_default();
    let own = [
        ("overhead", of(&OVERHEAD)),
        ("modifiers", delay::modifiers()),
        ("cell", delay::cell_keys()),
        ("feed", keys::<FeedUse>()),
        ("gilbert-elliott", keys::<GilbertElliott>()),
        ("markov", keys::<Markov>()),
        ("reorder", of(&ReorderOrNone)),
        ("slots", of(&SLOTS)),
        ("trace", of(&TRACE)),
        ("ingress", of(&INGRESS_FILTER)),
        ("gate", keys::<GateUse>()),
        ("edit", keys::<EditUse>()),
        ("policer", of(&POLICER)),
        ("mtu", of(&MTU)),
        ("mask", keys::<FlowMask>()),
    ];
    own.into_iter().chain(queue::tables()).chain(scheduler::tables()).collect()
}
