//! Reads narrows scenario files and flags, and turns them into validated values for the engine.
//!
//! Build a [`Scenario`] from a file ([`Scenario::load`]), from text ([`Scenario::parse`]) or from flags
//! ([`Scenario::from_flags`]). [`Scenario::network`] returns the engine's configuration;
//! [`Scenario::timeline`] and [`Scenario::assign`] return changes for a running network;
//! [`Scenario::explain`] reports the effective settings in words and numbers; [`schema`] describes the file
//! format for editors. Errors are [`ScenarioError`]s, which point at the offending place in the text.
#![forbid(unsafe_code)]

mod assign;
mod bound;
mod dialect;
mod direction;
mod embedded;
mod engine_change;
mod explain;
mod files;
mod flags;
mod generate;
mod host;
pub mod interop;
pub mod ipfw;
mod ipfw_script;
mod keys;
mod link;
pub mod netem;
mod node;
mod part;
pub mod pattern;
mod placement;
mod preset;
mod printable;
mod problem;
mod profile;
mod reference;
mod router;
mod rules_link;
mod said_twice;
mod scenario;
mod source;
mod surroundings;
mod switch;
pub mod tables;
pub mod tc;
mod timeline;
mod topology;
pub mod trace;
mod traffic;
mod two_hosts;
pub mod typed;
mod units;
mod value;
mod way;

pub use bound::DefaultBound;
pub use dialect::shell::Start;
pub use direction::Direction;
pub use embedded::preset_trace;
pub use engine_change::EngineChange;
pub use explain::{
    ClassExplanation, DelayExplanation, Expected, Explanation, FeedExplanation, LinkExplanation,
    LossExplanation, PathExplanation, QueueExplanation, RuleExplanation, RulesExplanation,
    SchedulerExplanation, TraceExplanation, WayExplanation,
};
pub use files::{
    Files, LONGEST_SCRIPT, LONGEST_TEXT, MOST_BYTES, NamedFile, read_bytes, read_script, read_text,
};
pub use flags::{LinkFlag, LinkFlags, code_point, span_of_time};
pub use generate::{LinkValues, NetworkFormat, NetworkPlan, NetworkShape};
pub use host::{Address, Host, HostAddress, Place};
pub use ipfw_script::{Interfaces, Ports};
pub use link::{Lane, Link, Medium, Way};
pub use part::{tunnel_link, tunnel_port};
pub use placement::{CutLink, Placement};
pub use preset::{Preset, PresetFigures, PresetSource, presets_page};
pub use printable::printable;
pub use problem::{Fault, ScenarioError, nearest};
pub use profile::{Profile, ProfileInfo, ProfileThroughput};
pub use reference::{reference, schema};
pub use router::{Destination, ExplicitRoute, Router};
pub use rules_link::{Pipe, PipeQueue, Queues, RulesLink, Sharing};
pub use scenario::{CommandsAt, Difference, Differing, IpfwChange, Scenario};
pub use switch::{PortVlans, Switch, Tagged};
pub use timeline::{Timeline, TimelineEvent};
pub use topology::{HostRoute, Interface, Neighbour, Port};
pub use traffic::{
    AimdConfig, AppConfig, AppKind, Call, Congestion, Demand, Dialogue, Exchanges, Marks, Query, TcpConfig,
    Traffic, TrafficSource, Transfer,
};
pub use units::{Number, Share};
pub use value::{
    Abe, After, Around, Bins, Cbq, CbqClass, CellUse, Chance, Child, Choke, Class, Correlation, Corrupt,
    Delay, DelayClass, DelaySource, Delayed, DirectionClass, Distribution, DistributionTable, Division,
    EditUse, ExactNetem, Exponential, FeedUse, Filter, Gamma, Gap, GateUse, GilbertElliott, HfscClass, Hpd,
    HtbClass, IngressAction, IngressConform, IngressExceed, IngressUse, LogNormal, Loss, LossModel, Losses,
    Markov, Match, MixturePart, Normal, Pareto, ParetoNormal, Party, PatternUse, Plugin, Points,
    PolicerExceed, PolicerUse, Policy, ProfileUse, Queue, Red, Reorder, Samples, Scheduler, SchedulerKind,
    SchedulerParameters, Sender, ServiceCurve, Shape, ShapedBy, Slots, Station, Tbf, TokenBucket,
    TraceColumns, TraceUse, Uniform, Weibull, mask_words,
};
