//! The accuracy that this host can reach: runs narrows live, in normal operation, between two hosts. Measures the
//! time from just before a packet is handed to the kernel to the kernel's timestamp at the receiver's interface.
//!
//! The measurements are those of Grohmann, "Design and Implementation of a Network Emulator with Stochastic Network
//! Delay Support" (Stuttgart 2023, chapter 6), and of Carbone and Rizzo, "Dummynet Revisited" (CCR 40(2), 2010,
//! section 5), each next to this host's noise floor in the same run: a busy-polled clock, a bare timer, a plain
//! cable, and a forwarder that only delays packets.
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

/// The version of the JSON fields.
pub const SCHEMA: u32 = 3;

/// The extent of the measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Takes about seventy seconds.
    #[default]
    Full,
    /// Everything once, for a few seconds in total: a functional test, without reliable figures.
    Quick,
}

/// All measurements. Times are in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Processors that this program may use.
    pub processors: usize,
    /// The host's noise floor, without narrows; `None` if interrupted before it was measured.
    pub floor: Option<Floor>,
    /// One-way times.
    pub accuracy: Vec<Accuracy>,
    /// The kernel's queueing disciplines that this host lacks; they have no rows.
    pub lacking: Vec<Path>,
    /// The highest tested rate, in packets per second, at which p99 of the error was within 50 µs with a constant
    /// delay of 100 µs; `None` if there is none.
    pub knee_per_second: Option<u32>,
    /// Round trips through several links and under load.
    pub round_trips: Vec<RoundTrip>,
    /// A delay of 10 ms, by wait mode and sender.
    pub timers: Vec<Timing>,
    /// Packets of several links that are due at the same instant.
    pub together: Vec<Together>,
    /// Whether it was interrupted: later measurements are missing.
    pub interrupted: bool,
    /// By which signal.
    #[serde(skip)]
    pub signal: Option<i32>,
    /// The verdict in one sentence.
    pub verdict: String,
}

/// Why a host cannot be calibrated.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The hosts cannot be created.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// A namespace failed.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// An interface failed.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A packet socket failed.
    #[error(transparent)]
    PacketSocket(#[from] PacketSocketError),
    /// A cable failed.
    #[error(transparent)]
    CableEnd(#[from] narrows_io::cable_end::CableEndError),
    /// An interface's offloads cannot be changed.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// The kernel's stack cannot be configured.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The packet loop failed.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// The scenario of a measurement is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Its network cannot be built.
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
    /// A signal with this number asked us to end.
    #[error("interrupted: nothing is left behind")]
    Interrupted(i32),
}

/// Measurements other than one-way times: the floor, round trips, timers, packets due together.
const PARTS: usize = 4;

/// Makes all measurements; `progress` receives the number of measurements done, their total, and the current one.
/// Call it from the main thread, before others are started. A signal ends it early, with the measurements made so
/// far.
///
/// # Errors
/// If hosts cannot be created; nothing is left behind.
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
        signal: None,
        verdict: String::new(),
    };
    match all.measure(&mut bed, effort, &mut progress) {
        Ok(()) => {}
        Err(CalibrateError::Interrupted(signal)) => (all.interrupted, all.signal) = (true, Some(signal)),
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
