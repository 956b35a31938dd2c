//! Reports on runs, live or in virtual time.
//!
//! A [`Meter`] watches an engine's events as they are polled and, in a live run, how late packets were released. A
//! [`Report`] combines the run's configuration ([`RunInfo`]), the engine's counters and the meter's measurements: as
//! JSON with stable field names for programs, as [`Report::text`] for people.

#![forbid(unsafe_code)]

mod app;
mod asked;
mod build;
mod capture;
mod certified;
mod certify;
mod class;
mod feed;
mod figures;
mod flows;
mod generated;
mod histogram;
mod host;
pub mod human;
mod info;
mod meter;
mod now;
mod packet_row;
mod part;
mod probe;
mod report;
mod router;
mod rules;
mod rules_text;
mod series;
mod series_file;
mod shaped;
mod summary;
mod switch;
mod text;
mod totals;
mod trains;
mod trust;
mod watch;

pub use app::{AppMeter, ApplicationInfo, ApplicationReport, MessagesReport};
pub use asked::{OneWay, one_ways};
pub use capture::CaptureReport;
pub use certify::{Certificate, LatenessViolation};
pub use class::{ClassDelayReport, ClassReport};
pub use feed::{FeedReport, FeedWriters};
pub use figures::Quantiles;
pub use flows::{FlowReport, FlowsReport};
pub use generated::{SourceInfo, SourceMeter, SourceReport};
pub use host::{HostReport, KernelVerdicts, ThreadReport};
pub use info::{ClassInfo, DirectionInfo, Kind, QueueInfo, RoundTrip, RulesInfo, RunInfo, Word};
pub use meter::{HISTOGRAM_BOUNDS, LATENESS_BOUNDS, Meter};
pub use now::{LinkNow, Now, Recent, RecentRates, Snapshot};
pub use packet_row::{PACKETS_HEAD, PacketRow, Path};
pub use part::{Counts, Part, Place};
pub use probe::{ProbeMeter, ProbePacket, ProbeReport};
pub use report::{
    Conservation, Direction, Drop, Lateness, Losses, Pair, PortReport, Report, SCHEMA, Share, Step,
    Throughput,
};
pub use router::RouterReport;
pub use rules::{Bounds, Count, DynamicRule, RuleReport, RulesReport};
pub use series::{LinkCounts, SERIES_HEAD, SeriesRow, bits_per_second, csv_field, rounded};
pub use series_file::{LinkInterval, SeriesFileError, read_series};
pub use shaped::ShapedClassReport;
pub use summary::{LINES, Look};
pub use switch::SwitchReport;
pub use trains::TrainsReport;
pub use trust::Trust;
pub use watch::{LatenessBound, Quantile, ViolationInterval};
