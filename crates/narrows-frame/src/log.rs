//! The input log: all inputs of a run, so that the run can be replayed in virtual time.
//!
//! A run's verdicts follow from its scenario, its seed and its inputs. The log's header holds scenario and seed; then
//! follow the inputs in the order in which the engine received them, and the verdicts for comparison.
//! `docs/input-log.md` describes the format.
//!
//! ```
//! use narrows_core::{Duration, Seed, Time};
//! use narrows_frame::{LinkLayer, WallTime};
//! use narrows_frame::log::*;
//!
//! let header = Header {
//!     program: "narrows 0.1.0".into(),
//!     started: WallTime::from_nanos(1_700_000_000_000_000_000),
//!     seed: Seed(7),
//!     keep: Keep::Headers,
//!     scenario: "seed = 7".into(),
//!     ports: vec![Port { name: "client.access".into(), layer: LinkLayer::Ethernet }],
//!     links: vec!["access.up".into()],
//! };
//! let mut writer = LogWriter::new("memory", Vec::new(), &header)?;
//! let (at, late) = (Time::from_nanos(1_000), Duration::ZERO);
//! let frame = narrows_frame::craft::Udp::new("10.0.0.1:1".parse()?, "10.0.0.2:2".parse()?)
//!     .ethernet(Default::default(), Default::default(), &[0; 1000]);
//! let parsed = narrows_frame::parse::parse(LinkLayer::Ethernet, &frame);
//! writer.arrived(at, late, PortNumber(0), &frame, parsed.examined)?;
//! writer.write(&Record::Ended(Ended { at: Time::from_nanos(2_000), arrivals: 1, ..Ended::default() }))?;
//! let file = writer.finish()?;
//!
//! let mut reader = LogReader::new("memory", &file[..])?;
//! assert_eq!(reader.header(), &header);
//! let Some(Record::Arrived(arrived)) = reader.read()? else { panic!("that was an arrival") };
//! let again = narrows_frame::parse::parse_cut(LinkLayer::Ethernet, arrived.frame, arrived.length);
//! assert_eq!(again, parsed);
//! assert!(matches!(reader.read()?, Some(Record::Ended(_))));
//! assert!(reader.read()?.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod files;
mod read;
mod record;
mod write;

pub use files::{FileError, LoggedFiles};
pub use read::LogReader;
pub use record::{
    Arrived, Changed, Decided, ElementNumber, Ended, Fed, FilePart, Generated, GeneratedHeaders, Header,
    Keep, LinkNumber, Lost, Outcome, PacketNumber, Port, PortNumber, Record, Segment,
};
pub use write::LogWriter;

/// The magic bytes of a log, and the format version.
const MAGIC: [u8; 4] = *b"narr";
const VERSION: u32 = 5;
/// The oldest supported version: it lacks some kinds of records and is otherwise the same.
const OLDEST: u32 = 1;

/// Larger than any record: a frame has slightly more than 64 KiB at most.
const MOST_RECORD: u32 = 1 << 20;
/// Larger than any header: a scenario is text written by a person, or tables written by a program.
const MOST_HEADER: u32 = 16 << 20;

#[cfg(test)]
mod tests;
