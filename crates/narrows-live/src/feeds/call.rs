//! The call by which a packet loop wakes the thread of a feed, which sleeps while enough values are queued.
//!
//! Each side writes its own number before it reads the other's, so one of the two sees what the other has written, and no
//! call is lost. `models/` tries every order of these steps.

use super::sync::atomic::{AtomicU64, Ordering};

/// No call is requested.
const NEVER: u64 = u64::MAX;

/// What both sides see.
#[derive(Debug)]
pub(super) struct Call {
    /// Values no longer queued: all taken out of the ring, minus those queued in the engine.
    gone: AtomicU64,
    /// The number of gone values at which the thread wants to be called.
    due: AtomicU64,
}

impl Call {
    pub(super) fn new() -> Self {
        Self { gone: AtomicU64::new(0), due: AtomicU64::new(NEVER) }
    }

    /// For the packet loop: so many values are gone.
    pub(super) fn tell(&self, gone: u64) {
        // Paired with `want`.
        self.gone.store(gone, Ordering::SeqCst);
    }

    /// For the packet loop: whether it must call the thread now.
    pub(super) fn is_due(&self) -> bool {
        let due = self.due.load(Ordering::SeqCst);
        let is_due = due != NEVER && due <= self.gone.load(Ordering::Relaxed);
        if is_due {
            // If the thread wants another call meanwhile, it gets this one and looks again.
            self.due.store(NEVER, Ordering::Relaxed);
        }
        is_due
    }

    /// For the thread: how many values are gone.
    pub(super) fn gone(&self) -> u64 {
        self.gone.load(Ordering::Relaxed)
    }

    /// For the thread: requests a call when so many values are gone; `false` if they are already.
    pub(super) fn want(&self, due: u64) -> bool {
        self.due.store(due, Ordering::SeqCst);
        // Paired with `tell`.
        self.gone.load(Ordering::SeqCst) < due
    }

    /// For the thread: cancels the request.
    pub(super) fn cancel(&self) {
        self.due.store(NEVER, Ordering::Relaxed);
    }
}
