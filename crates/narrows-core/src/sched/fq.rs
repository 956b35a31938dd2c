//! Fair queueing put together: flows by hash, [`Fair`] among them, and queue management in each.
//!
//! | | among flows | in a flow | when full |
//! |---|---|---|---|
//! | SFQ (McKenney 1990) | round robin by bytes | nothing | the longest flow loses its last packet, or its first |
//! | FQ-CoDel (RFC 8290) | new flows first | CoDel | the longest flow loses its first packets: half, up to 64 |
//! | FQ-PIE (FreeBSD, Linux) | new flows first | PIE | the longest flow loses its first packet |
//!
//! Flows that hash alike share a queue. SFQ as published takes turns by packets and drops from the tail of the longest
//! flow; as in Linux turns are counted in bytes here, and the head may go instead, which the sender learns of a queue
//! earlier (Linux's `headdrop`). The longest flow is the one with the most bytes, in Linux's SFQ that with the most packets. FreeBSD's FQ-PIE drops from the longest flow, as here; Linux's the packet that arrives.
//!
//! A flow takes 64 bytes of the scheduler's and 24 for its policy, with 40 of CoDel or 40 of PIE behind that. From
//! the first overload on there are also up to two notes of 16 bytes for each packet that waits, by which the longest flow is
//! found however many flows there are.
//!
//! ```
//! use narrows_core::classify::{FlowHash, Identity};
//! use narrows_core::sched::{FqCodelConfig, fq_codel};
//! use narrows_core::{LinkConfig, Seed, Target};
//!
//! let mut link = LinkConfig::new("wire", Target::Port("b".into()));
//! let flows = FlowHash::new(Seed(1), "wire", 1024, Identity::FiveTuple);
//! link.queue = Box::new(fq_codel(FqCodelConfig::default(), flows)?);
//! # Ok::<(), narrows_core::sched::Refused>(())
//! ```

use alloc::boxed::Box;
use alloc::sync::Arc;

use crate::aqm::{Codel, CodelConfig, Pie, PieConfig};
use crate::classify::{Classifier, FlowHash};
use crate::queue::{Bound, DropAt};
use crate::sched::{Fair, FlowConfig, Overload, Refused, Scheduled, Store};
use crate::units::Bytes;

/// The parameters of SFQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SfqConfig {
    /// Bytes of a turn, 256 to 2²⁰. 1514.
    pub quantum: Bytes,
    /// How much waits in all flows together. 127 packets, as in Linux.
    pub bound: Bound,
    /// Which packet of the longest flow goes when that is reached: the last, as published.
    pub drop_at: DropAt,
}

/// The parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelConfig {
    /// Bytes of a turn, 256 to 2²⁰. 1514: a full Ethernet frame.
    pub quantum: Bytes,
    /// How much waits in all flows together. 10,240 packets.
    pub bound: Bound,
    /// The most packets that the longest flow loses at once when that is reached, at least 1. 64.
    pub batch: u32,
    /// CoDel in each flow.
    pub codel: CodelConfig,
}

/// The parameters of FQ-PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqPieConfig {
    /// Bytes of a turn, 256 to 2²⁰. 1514.
    pub quantum: Bytes,
    /// How much waits in all flows together. 10,240 packets.
    pub bound: Bound,
    /// PIE in each flow.
    pub pie: PieConfig,
}

impl Default for SfqConfig {
    fn default() -> Self {
        Self { quantum: Bytes::new(1514), bound: Bound::Packets(127), drop_at: DropAt::Tail }
    }
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        let (quantum, bound) = (Bytes::new(1514), Bound::Packets(10_240));
        Self { quantum, bound, batch: 64, codel: CodelConfig::default() }
    }
}

impl Default for FqPieConfig {
    fn default() -> Self {
        Self { quantum: Bytes::new(1514), bound: Bound::Packets(10_240), pie: PieConfig::default() }
    }
}

/// Stochastic fairness queueing.
///
/// # Errors
/// Never at present; the scheduler may refuse flows.
pub fn sfq(config: SfqConfig, flows: FlowHash) -> Result<Scheduled<Fair>, Refused> {
    let scheduler = Fair::round_robin(config.quantum);
    let overload = Overload::Longest { batch: 1, drop_at: config.drop_at };
    compose(scheduler, flows, config.bound, overload, || Store::Plain)
}

/// Fair queueing with CoDel.
///
/// # Errors
/// Never at present; the scheduler may refuse flows.
pub fn fq_codel(config: FqCodelConfig, flows: FlowHash) -> Result<Scheduled<Fair>, Refused> {
    let shared = Arc::new(config.codel);
    let store = || Store::Managed(Box::new(Codel::new(Arc::clone(&shared))));
    let overload = Overload::Longest { batch: config.batch.max(1), drop_at: DropAt::Head };
    compose(Fair::new(config.quantum), flows, config.bound, overload, store)
}

/// Fair queueing with PIE.
///
/// # Errors
/// Never at present; the scheduler may refuse flows.
pub fn fq_pie(config: FqPieConfig, flows: FlowHash) -> Result<Scheduled<Fair>, Refused> {
    let shared = Arc::new(config.pie);
    let store = || Store::Managed(Box::new(Pie::new(Arc::clone(&shared))));
    let overload = Overload::Longest { batch: 1, drop_at: DropAt::Head };
    compose(Fair::new(config.quantum), flows, config.bound, overload, store)
}

fn compose(
    scheduler: Fair,
    flows: FlowHash,
    bound: Bound,
    overload: Overload,
    store: impl Fn() -> Store,
) -> Result<Scheduled<Fair>, Refused> {
    let mut queue = Scheduled::new(scheduler, Classifier::Flows(flows), bound, overload);
    for _ in 0..flows.classes() {
        queue.add_flow(FlowConfig::default(), store())?;
    }
    Ok(queue)
}

#[cfg(test)]
mod tests;
