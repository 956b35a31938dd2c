//! The lab's only clock: measures the duration of a loop.

use std::time::Instant;

/// The nanoseconds that `work` took, and its result.
#[expect(clippy::disallowed_methods, reason = "only benches use the wall clock")]
pub(super) fn nanoseconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_nanos() as f64, result)
}
