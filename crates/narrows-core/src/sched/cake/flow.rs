//! The state of one of CAKE's queues.

use super::cobalt::Cobalt;
use crate::sched::list::{Linked, Links};

/// A queue.
#[derive(Debug, Default)]
pub(super) struct CakeFlow {
    pub(super) cobalt: Cobalt,
    /// Bytes that it may still send in this turn; negative after more than that.
    pub(super) deficit: i64,
    pub(super) links: Links,
    /// 2⁻¹⁶ bytes that it got in earlier turns and has not used.
    pub(super) rest: u16,
    pub(super) source: u16,
    pub(super) destination: u16,
    pub(super) set: Set,
}

/// Where it is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Set {
    /// It is not in use.
    #[default]
    Idle,
    /// It has just become active, and is among the new flows.
    Sparse,
    /// It was sparse until it was empty, and waits among the old flows for its turn.
    SparseWait,
    /// It has sent more than a quantum at a time, and is among the old flows.
    Bulk,
    /// It is empty, but its queue management is not at rest.
    Decaying,
}

impl Linked for CakeFlow {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}
