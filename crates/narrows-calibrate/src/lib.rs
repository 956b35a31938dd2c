//! What accuracy this host can give: narrows runs live, as it always does, between two hosts, and the time that packets
//! take is measured from just before they are handed to the kernel to the kernel's own stamp at the receiver's interface.
//!
//! The measurements are those of Grohmann, "Design and Implementation of a Network Emulator with Stochastic Network Delay
//! Support" (Stuttgart 2023, chapter 6), and of Carbone and Rizzo, "Dummynet Revisited" (CCR 40(2), 2010, section 5),
//! each beside the floor of this host in the same run: a clock that is looked at without pause, a bare timer, a plain
//! cable, and a forwarder that does nothing but hold packets.
#![forbid(unsafe_code)]

mod accuracy;
mod asked;
mod bed;
mod floor;
mod kernel;
mod measured;
mod numbers;
mod page;
mod round_trip;
mod table;
mod timers;
mod together;
mod traffic;
mod verdict;

pub use accuracy::Accuracy;
pub use asked::{Path, Setting};
pub use floor::Floor;
pub use measured::Spread;
pub use round_trip::{Load, RoundTrip};
pub use timers::{Sender, Timing};
pub use together::Together;

use narrows_io::namespace::NamespaceError;
use narrows_io::offload::OffloadError;
use narrows_io::packet_socket::PacketSocketError;
use narrows_io::route_socket::NetlinkError;
use narrows_io::stack::StackError;
use narrows_live::director::LoopError;
use narrows_live::testbed::TestbedError;
use narrows_scenario::ScenarioError;
use serde::Serialize;

/// The version of the fields in JSON.
pub const SCHEMA: u32 = 3;

/// How much is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Some seventy seconds.
    #[default]
    Full,
    /// Everything once, for a few seconds in all: to see that it works, not to believe the figures.
    Quick,
}

/// All that was measured. Times are in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Processors that this program may use.
    pub processors: usize,
    /// What the host does without narrows; nothing where it was interrupted before that was known.
    pub floor: Option<Floor>,
    /// One-way times.
    pub accuracy: Vec<Accuracy>,
    /// The kernel's queueing disciplines that this host lacks, and so have no rows.
    pub lacking: Vec<Path>,
    /// Packets a second at most, of those tried, at which all but one packet in a hundred came within 50 µs of their
    /// time with a constant delay of 100 µs; nothing where there is no such rate.
    pub knee_per_second: Option<u32>,
    /// Round trips through several links and under load.
    pub round_trips: Vec<RoundTrip>,
    /// A delay of 10 ms, by the way of waiting and the kind of sender.
    pub timers: Vec<Timing>,
    /// Packets of several links that fall due at one instant.
    pub together: Vec<Together>,
    /// Whether it was interrupted: what came later than that is missing.
    pub interrupted: bool,
    /// In a sentence.
    pub verdict: String,
}

/// Why a host cannot be calibrated.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The hosts.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// A namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// An interface.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A packet socket.
    #[error(transparent)]
    PacketSocket(#[from] PacketSocketError),
    /// A cable.
    #[error(transparent)]
    CableEnd(#[from] narrows_io::cable_end::CableEndError),
    /// An interface's offloads.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// The kernel's stack.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The loop.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// The scenario of a measurement.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Its network.
    #[error(transparent)]
    Build(#[from] narrows_core::BuildError),
    /// A scenario without two hosts.
    #[error("a measurement needs two hosts with a link each")]
    Hosts,
    /// A packet could not be sent.
    #[error("cannot send: {0}")]
    Send(String),
    /// A call to the system failed.
    #[error("cannot measure: {0}")]
    System(std::io::Error),
    /// A signal asked us to end.
    #[error("interrupted: nothing is left behind")]
    Interrupted,
}

/// Measurements beside those of one-way times: the floor, round trips, timers, packets that fall due together.
const PARTS: usize = 4;

/// Measures; `progress` hears how many measurements are done, of how many, and what is going on. To be called from the main
/// thread, before there are others. What asks us to end ends it early, with what was measured until then.
///
/// # Errors
/// When hosts cannot be made; nothing is left behind then.
pub fn calibrate(
    effort: Effort,
    mut progress: impl FnMut(usize, usize, &str),
) -> Result<Calibration, CalibrateError> {
    let mut bed = bed::Bed::new()?;
    let mut all = Calibration {
        schema: SCHEMA,
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        floor: None,
        accuracy: Vec::new(),
        lacking: Vec::new(),
        knee_per_second: None,
        round_trips: Vec::new(),
        timers: Vec::new(),
        together: Vec::new(),
        interrupted: false,
        verdict: String::new(),
    };
    match all.measure(&mut bed, effort, &mut progress) {
        Ok(()) => {}
        Err(CalibrateError::Interrupted) => all.interrupted = true,
        Err(error) => return Err(error),
    }
    all.knee_per_second = accuracy::knee(&all.accuracy);
    all.verdict = verdict::verdict(&all);
    Ok(all)
}

impl Calibration {
    fn measure(
        &mut self,
        bed: &mut bed::Bed,
        effort: Effort,
        progress: &mut impl FnMut(usize, usize, &str),
    ) -> Result<(), CalibrateError> {
        self.lacking = kernel::lacking();
        let cases = accuracy::cases(&self.lacking);
        let total = cases.len() + PARTS;
        progress(0, total, "the host's floor");
        let floor = self.floor.insert(floor::measure(bed, effort)?);
        let send_ns = floor.send_ns;
        for (done, case) in (1..).zip(cases) {
            progress(done, total, &case.to_string());
            self.accuracy.push(accuracy::measure(bed, effort, case)?);
        }
        progress(total - 3, total, "round trips");
        self.round_trips = round_trip::measure(bed, effort)?;
        progress(total - 2, total, "timers");
        self.timers = timers::measure(bed, effort)?;
        progress(total - 1, total, "packets that fall due together");
        self.together = together::measure(bed, effort, send_ns)?;
        Ok(())
    }
}
