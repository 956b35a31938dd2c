//! The host's noise floor, without narrows.

use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::wait::wait;
use serde::Serialize;

use crate::bed::Bed;
use crate::measured::Spread;
use crate::{CalibrateError, Effort};

/// The distance between instants.
const GAP: u64 = 10_000;
const TIMER_GAP: u64 = 1_000_000;
/// The number of frames sent in a row to measure the cost of sending.
const FRAMES: u32 = 20_000;

/// The host's noise floor, without narrows.
#[derive(Clone, Debug, Serialize)]
pub struct Floor {
    /// How late a program is that busy-polls the clock, at instants 10 µs apart: the effect of interrupts, other
    /// programs and a hypervisor.
    pub spin: Spread,
    /// How late a timer wakes a sleeping program, at instants 1 ms apart.
    pub timer: Spread,
    /// The kernel's time per frame when sending without pause, receiver's part included.
    pub send_ns: f64,
}

pub(crate) fn measure(bed: &mut Bed, effort: Effort) -> Result<Floor, CalibrateError> {
    let (instants, timers) = match effort {
        Effort::Full => (100_000, 1_000),
        Effort::Quick => (2_000, 20),
    };
    let start = clock_monotonic().as_nanos();
    let mut late = Vec::with_capacity(instants as usize);
    for instant in 1..=instants {
        let due = start + instant * GAP;
        let mut now = clock_monotonic().as_nanos();
        while now < due {
            now = clock_monotonic().as_nanos();
        }
        late.push((now - due) as i64);
    }
    let spin = Spread::of(late);
    let start = clock_monotonic().as_nanos();
    let mut late = Vec::with_capacity(timers as usize);
    for instant in 1..=timers {
        let due = start + instant * TIMER_GAP;
        wait(&mut [], Some(MonotonicTime::from_nanos(due))).map_err(CalibrateError::System)?;
        late.push(clock_monotonic().as_nanos() as i64 - due as i64);
    }
    let timer = Spread::of(late);
    let seen = bed.cable(None, |mut ends| ends.stream(0, FRAMES, true))?;
    Ok(Floor { spin, timer, send_ns: seen.span as f64 / (seen.sent.max(2) - 1) as f64 })
}
