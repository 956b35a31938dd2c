//! Events of a run, for clients.

use serde::{Deserialize, Serialize};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Happening {
    /// Packets cross the network from now on.
    Started,
    /// A client changed the configuration.
    Changed,
    /// A timeline step changed the configuration.
    Timeline,
    /// Packets were released later than a bound on lateness.
    Late,
    /// A writer connected to a feed.
    FeedConnected,
    /// A writer disconnected from a feed.
    FeedGone,
    /// Somebody starts a program in a host.
    Entered,
    /// A client asked the run to end.
    Ending,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number, from 1.
    pub number: u64,
    /// When it was recorded, on the run's clock.
    pub at_ns: u64,
    /// The same on the wall clock, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// Its kind.
    pub what: Happening,
    /// A description.
    pub text: String,
    /// The run's generation at that time.
    pub generation: u64,
    /// The command line of the client that caused it.
    #[serde(default)]
    pub by: Option<String>,
}

/// The events after a given one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsSince {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// How many earlier ones are no longer kept.
    pub missed: u64,
}
