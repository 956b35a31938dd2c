//! Scenario files and flags of narrows: text in, validated values of the engine out.
//!
//! A [`Scenario`] comes from a file ([`Scenario::load`]), from text ([`Scenario::parse`]) or from flags
//! ([`Scenario::from_flags`]). [`Scenario::network`] is the engine's configuration, [`Scenario::timeline`] and
//! [`Scenario::assign`] are its changes, [`Scenario::explain`] says in words and numbers what it comes to, and
//! [`schema`] describes the files for editors. What is wrong is a [`ScenarioError`], which points at the place.
#![forbid(unsafe_code)]

mod assign;
mod bound;
mod direction;
mod explain;
mod files;
mod flags;
mod host;
mod link;
pub mod netem;
mod node;
pub mod pattern;
mod problem;
mod scenario;
mod schema;
pub mod tables;
mod timeline;
mod topology;
pub mod trace;
mod traffic;
pub mod typed;
mod units;
mod value;
mod write;

pub use bound::DefaultBound;
pub use direction::{Direction, DirectionClass};
pub use explain::{
    ClassExplanation, DelayExplanation, Expected, Explanation, FeedExplanation, LinkExplanation,
    LossExplanation, PathExplanation, SchedulerExplanation, TraceExplanation,
};
pub use files::{Files, MOST_BYTES, NamedFile};
pub use flags::{LinkFlags, code_point};
pub use host::{Address, Host, HostAddress, Place};
pub use link::{Link, Medium, Way};
pub use problem::ScenarioError;
pub use scenario::Scenario;
pub use schema::schema;
pub use timeline::{Timeline, TimelineEvent};
pub use topology::Port;
pub use traffic::{AimdConfig, Marks, Traffic, TrafficSource};
pub use units::{Number, Share};
pub use value::{
    Bins, Chance, Class, Codel, Correlation, Corrupt, Dcf, Delay, DelayClass, DelaySource, Distribution,
    DistributionTable, Division, DualPi2, ExactNetem, FeedUse, Gap, Loss, LossModel, Losses, Match, Party,
    PatternUse, Pie, Points, Policy, Queue, Red, Reorder, Samples, Scheduler, SchedulerKind, Shape, Slots,
    TraceUse,
};
