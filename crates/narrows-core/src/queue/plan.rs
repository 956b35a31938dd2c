//! What a queue is made of, for those who decide the same elsewhere, such as a program inside the kernel.

use alloc::vec::Vec;

use crate::class::SchedulerPlan;
use crate::classify::Classifier;
use crate::queue::{AqmSettings, Bound};

/// Classes that are FIFOs which drop arriving packets, and their scheduler.
#[derive(Clone, Debug)]
pub struct ClassesPlan {
    /// The scheduler.
    pub scheduler: SchedulerPlan,
    /// Sorts packets into classes.
    pub classifier: Classifier,
    /// The classes.
    pub classes: Vec<FifoPlan>,
    /// The bound of all together.
    pub bound: Bound,
}

/// A FIFO that drops an arriving packet if it is full.
#[derive(Clone, Debug)]
pub struct FifoPlan {
    /// The bound.
    pub bound: Bound,
    /// The parameters of its queue management.
    pub policy: Option<AqmSettings>,
}
