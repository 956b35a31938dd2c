//! What a queue with classes is made of, for those who decide the same elsewhere, such as a program inside the kernel.

use alloc::vec::Vec;

use crate::class::SchedulerPlan;
use crate::classify::Classifier;
use crate::queue::Bound;

/// Classes that are plain FIFOs which drop arriving packets, and their scheduler.
#[derive(Clone, Debug)]
pub struct ClassesPlan {
    /// The scheduler.
    pub scheduler: SchedulerPlan,
    /// Sorts packets into classes.
    pub classifier: Classifier,
    /// The bound of each class.
    pub bounds: Vec<Bound>,
    /// The bound of all together.
    pub bound: Bound,
}
