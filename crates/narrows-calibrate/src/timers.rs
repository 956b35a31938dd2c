//! A delay of 10 ms, by the emulator's wait mode and by sender (Carbone and Rizzo 2010, figure 6).
//!
//! A sender whose packets are aligned to a time grid of the emulator would see errors that an independent one does
//! not; a sender that responds to the emulator's deliveries is always synchronised with it.

use narrows_live::director::Wait;
use narrows_scenario::Scenario;
use serde::Serialize;

use crate::bed::Bed;
use crate::measured::Spread;
use crate::{CalibrateError, Effort};

/// The delay, in nanoseconds.
const DELAY: u64 = 10_000_000;

/// When packets are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sender {
    /// At this interval in nanoseconds.
    Every(u64),
    /// As soon as the previous one has arrived.
    Flood,
}

/// The results of a delay of 10 ms.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    /// The emulator's wait mode: hybrid, spin or timer.
    pub wait: &'static str,
    /// When packets were sent.
    pub sender: Sender,
    /// One-way times minus 10 ms.
    pub error: Spread,
    /// The error of each packet in nanoseconds, in order, for at most the first hundred.
    pub first_ns: Vec<i64>,
}

pub(crate) const WAITS: [(&str, Wait); 3] =
    [("hybrid", Wait::Hybrid), ("spin", Wait::Spin), ("timer", Wait::Timer)];

/// Pings every 10.2 and 10.5 ms, which cycle through a grid of 1 ms in five and two steps; every 9.7 ms, which is
/// unrelated to the delay; and a flood.
pub(crate) const SENDERS: [Sender; 4] =
    [Sender::Every(9_731_000), Sender::Every(10_200_000), Sender::Every(10_500_000), Sender::Flood];

pub(crate) fn measure(bed: &mut Bed, effort: Effort) -> Result<Vec<Timing>, CalibrateError> {
    let text = "[hosts.client]\n[hosts.server]\n[links.link]\nbetween = [\"client\", \"server\"]\ndelay = \"10ms\"\n";
    let scenario = Scenario::parse(text, "calibrate")?;
    let packets = match effort {
        Effort::Full => 100,
        Effort::Quick => 5,
    };
    let mut all = Vec::new();
    for (wait, how) in WAITS {
        for sender in SENDERS {
            let work = move |mut ends: crate::traffic::Ends| match sender {
                Sender::Every(gap) => ends.stream(gap, packets, false),
                Sender::Flood => ends.flood(packets),
            };
            let (mut seen, _) = bed.narrows(&scenario, how, work)?;
            seen.one_ways.sort_unstable();
            let errors: Vec<i64> = seen.one_ways.iter().map(|&(_, time)| time - DELAY as i64).collect();
            let first_ns = errors.iter().copied().take(100).collect();
            all.push(Timing { wait, sender, error: Spread::of(errors), first_ns });
        }
    }
    Ok(all)
}
