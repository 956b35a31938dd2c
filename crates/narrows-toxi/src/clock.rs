//! The clock of the server: tokio's, so that tests can pause it.

use narrows_core::Time;
use tokio::time::Instant;

/// Reads the time since the server started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Time {
        Time::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The instant of the runtime's timer at this time. A time beyond the timer's range is a day ahead: whoever
    /// waits for it asks again then.
    pub(crate) fn instant(self, at: Time) -> Instant {
        let span = std::time::Duration::from_nanos(at.nanos());
        let most = self.0.elapsed() + std::time::Duration::from_secs(86_400);
        self.0 + span.min(most)
    }
}
