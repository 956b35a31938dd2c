//! What happened to a run, as clients hear of it.

use serde::{Deserialize, Serialize};

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Happening {
    /// Packets cross the network from here on.
    Started,
    /// Somebody changed it.
    Changed,
    /// A step of the timeline did.
    Timeline,
    /// Packets were released later than a bound on lateness.
    Late,
    /// A writer of a feed came.
    FeedConnected,
    /// A writer of a feed went.
    FeedGone,
    /// Somebody starts a program in a host.
    Entered,
    /// Somebody asked the run to end.
    Ending,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number, from 1.
    pub number: u64,
    /// When it was noted, on the run's clock.
    pub at_ns: u64,
    /// The same in nanoseconds since 1970.
    pub wall_ns: u64,
    /// What kind of thing.
    pub what: Happening,
    /// What exactly, in words.
    pub text: String,
    /// The run's generation then.
    pub generation: u64,
    /// The command line of whoever asked for it.
    #[serde(default)]
    pub by: Option<String>,
}

/// The events after one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsSince {
    /// The oldest first.
    pub events: Vec<Event>,
    /// How many more there were that are not kept any more.
    pub missed: u64,
}
