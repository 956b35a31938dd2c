//! What a queue is made of, for those who decide the same elsewhere, such as a program inside the kernel.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::aqm::{CodelConfig, PieConfig, RedConfig};
use crate::class::SchedulerPlan;
use crate::classify::Classifier;
use crate::queue::{Aqm, Bound, DropAt};

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
    /// What else drops packets.
    pub policy: Option<AqmPlan>,
}

/// A queue management policy.
#[derive(Clone, Debug)]
pub enum AqmPlan {
    /// [`Codel`](crate::aqm::Codel).
    Codel(Arc<CodelConfig>),
    /// [`Pie`](crate::aqm::Pie).
    Pie(Arc<PieConfig>),
    /// [`Red`](crate::aqm::Red).
    Red(Arc<RedConfig>),
}

impl FifoPlan {
    /// `None` for a FIFO that drops at the head, or has a policy without a plan.
    pub(crate) fn new(bound: Bound, drop_at: DropAt, policy: Option<&dyn Aqm>) -> Option<Self> {
        let policy = match policy {
            Some(policy) => Some(policy.plan()?),
            None => None,
        };
        (drop_at == DropAt::Tail).then_some(Self { bound, policy })
    }
}
