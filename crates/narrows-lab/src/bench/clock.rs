//! The lab's one clock: how long a loop took.

use std::time::Instant;

/// Nanoseconds that `work` took, and what it gave.
#[expect(clippy::disallowed_methods, reason = "only benches use the wall clock")]
pub(super) fn nanoseconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_nanos() as f64, result)
}
