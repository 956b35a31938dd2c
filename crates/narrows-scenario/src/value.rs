//! The values that a direction of a link is made of: one module for each kind, with what the file says (a plain value
//! that can be compared and printed back) and what it becomes in the engine.

mod assigned;
mod chance;
mod condition;
mod corrupt;
mod delay;
mod distribution;
mod exact_netem;
pub(crate) mod inline;
mod loss;
mod mask;
mod mtu;
mod overhead;
mod pattern;
mod policer;
mod profile;
mod queue;
mod reorder;
mod scheduler;
mod slots;
mod trace;

pub use chance::Chance;
pub use condition::{Match, Party};
pub use corrupt::Corrupt;
pub use delay::{Correlation, Delay, DelayClass, DelaySource, FeedUse};
pub use distribution::{Bins, Distribution, DistributionTable, Points, Samples, Shape};
pub use exact_netem::ExactNetem;
pub use loss::{Loss, LossModel, Losses};
pub use pattern::PatternUse;
pub use policer::{PolicerExceed, PolicerUse};
pub use profile::ProfileUse;
pub use queue::{Policy, Queue, Red};
pub use reorder::Reorder;
pub use scheduler::{
    Cbq, CbqClass, Child, Class, Division, Filter, Hpd, HtbClass, Scheduler, SchedulerKind, ShapedBy, Tbf,
};
pub use slots::{Gap, Slots};
pub use trace::TraceUse;

pub(crate) use assigned::{allowed as allowed_parts, is_part, with_part};
pub(crate) use condition::{Surroundings, code_point, party, protocol, protocol_name};

pub(crate) use delay::{ORDERS, read as read_delay};
pub use mask::words as mask_words;
pub(crate) use mask::{read as read_mask, text as mask_text};
pub(crate) use mtu::{read as read_mtu, text as mtu_text};
pub(crate) use overhead::{read as read_overhead, text as overhead_text, words as overhead_words};
pub(crate) use queue::tables as queue_tables;
pub(crate) use scheduler::{
    DCF_RATES, Plan, depth, hpd_words, identity_name, parent, registry as schedulers,
    tables as scheduler_tables,
};
