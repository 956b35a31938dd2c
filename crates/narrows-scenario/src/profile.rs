//! Link profiles in Dummynet's file format: how long a packet occupies the medium beyond its bits.
//!
//! A profile is a distribution function, given as a polyline of probabilities and times; [`AirTime`]
//! defines its effect on a link. Source: ipfw's manual and `ipfw/dummynet.c`; Carbone and Rizzo, "Dummynet
//! revisited", ACM CCR 40(2), 2010, section 3.7.
//!
//! ```text
//! name       lossy-radio
//! bw         2Mbit/s      # or bandwidth; the link's rate where it has none of its own
//! loss-level 0.95         # 1, which is no loss, if it is not said
//! samples    100          # 100 if it is not said
//! prob       delay        # or: delay prob
//! 0          0.2          # in ms, or with a unit: 200us
//! 0.8        0.2
//! 0.8        1.5
//! 1          4ms
//! ```
//!
//! Points may be in any order, but a point with a smaller probability must not have a longer time. If there
//! are as many points as `samples` says, `samples` is taken as the number of points, as in the paper, and
//! the resolution is 100. `docs/profiles.md` lists differences from the reference (whole milliseconds, at
//! most 1022 samples, at least three points, no check of the order).
//!
//! ```
//! use narrows_scenario::Profile;
//!
//! let text = "bw 2Mbit/s\nprob delay\n0 0.2\n1 0.6 # up to 600 us\n";
//! let profile = Profile::read("radio.profile", text.as_bytes())?;
//! assert_eq!(profile.rate().map(|rate| rate.to_string()), Some("2mbit".into()));
//! assert_eq!(profile.air_time().mean().to_string(), "398us");
//! # Ok::<(), narrows_scenario::ScenarioError>(())
//! ```

mod info;
mod read;

#[cfg(test)]
mod tests;

pub use info::{ProfileInfo, ProfileThroughput};

use narrows_core::{AirTime, Duration, Probability, Rate};

use crate::problem::ScenarioError;
use crate::source::Source;

/// A profile, as given in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    name: Option<String>,
    rate: Option<Rate>,
    loss_level: Probability,
    points: Vec<(Probability, Duration)>,
    air_time: AirTime,
    remarks: Vec<String>,
}

impl Profile {
    /// Maximum number of points of a profile.
    pub const MOST_POINTS: usize = 10_000;
    /// Maximum extra air time.
    pub const LONGEST: Duration = Duration::from_secs(24 * 3600);

    /// Parses a file; `file` is its name, for errors.
    ///
    /// # Errors
    /// The error has line and column: if a line is invalid, a value is out of range or repeated, there are
    /// fewer than two points, or a longer time has a smaller probability.
    pub fn read(file: &str, bytes: &[u8]) -> Result<Self, ScenarioError> {
        Source::read(file, bytes, read::read)
    }

    /// Name, if given.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Rate in bits per second, if given.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Packets with a probability at or above this are lost; one for no loss.
    pub fn loss_level(&self) -> Probability {
        self.loss_level
    }

    /// The points of the polyline, in order.
    pub fn points(&self) -> &[(Probability, Duration)] {
        &self.points
    }

    /// The air time distribution for a link.
    pub fn air_time(&self) -> &AirTime {
        &self.air_time
    }

    /// Assumptions made.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Share of packets lost.
    pub fn loss(&self) -> f64 {
        self.air_time.lost() as f64 / self.air_time.times().len() as f64
    }

    /// Mean time of a packet in seconds, including lost ones.
    pub fn mean_seconds(&self) -> f64 {
        let times = self.air_time.times();
        times.iter().map(|time| time.seconds()).sum::<f64>() / times.len() as f64
    }
}
