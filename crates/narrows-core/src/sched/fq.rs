//! Complete fair queueing disciplines: flows by hash, [`Fair`] among them, and queue management in each.
//!
//! | | among flows | in a flow | when full |
//! |---|---|---|---|
//! | SFQ (McKenney 1990) | round robin by bytes | none | drops the last packet of the longest flow, or its first |
//! | FQ-CoDel (RFC 8290) | new flows first | CoDel | drops the first packets of the longest flow: half, up to 64 |
//! | FQ-PIE (FreeBSD, Linux) | new flows first | PIE | drops the first packet of the longest flow |
//!
//! Flows with the same hash share a queue. SFQ as published takes turns by packets and drops at the tail of the
//! longest flow. Here, as in Linux, turns are counted in bytes, and it can drop at the head instead, which tells the
//! sender earlier by one queueing delay (Linux's `headdrop`). The longest flow is the one with the most bytes; in
//! Linux's SFQ it is the one with the most packets. FreeBSD's FQ-PIE drops from the longest flow, as here; Linux's
//! drops the arriving packet.
//!
//! A flow takes 64 bytes in the scheduler and 24 for its policy, plus 40 for the state of CoDel or PIE. From the
//! first overload on, there are also up to two 16-byte entries for each waiting packet, which find the longest flow
//! whatever the number of flows.
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

use crate::aqm::{Codel, CodelConfig, PieConfig};
use crate::classify::{Classifier, FlowHash};
use crate::queue::{Bound, DropAt};
use crate::sched::{Fair, FlowConfig, Overload, Refused, Scheduled, Store};
use crate::units::Bytes;

/// The parameters of SFQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SfqConfig {
    /// Bytes per turn, 256 to 2²⁰. Default: 1514.
    pub quantum: Bytes,
    /// Maximum backlog of all flows together. Default: 127 packets, as in Linux.
    pub bound: Bound,
    /// Which packet of the longest flow to drop when the bound is reached. Default: the last, as published.
    pub drop_at: DropAt,
}

/// The parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelConfig {
    /// Bytes per turn, 256 to 2²⁰. Default: 1514, a full Ethernet frame.
    pub quantum: Bytes,
    /// Maximum backlog of all flows together. Default: 10,240 packets.
    pub bound: Bound,
    /// Maximum number of packets to drop from the longest flow at once when the bound is reached. At least 1.
    /// Default: 64.
    pub batch: u32,
    /// CoDel parameters of each flow.
    pub codel: CodelConfig,
}

/// The parameters of FQ-PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqPieConfig {
    /// Bytes per turn, 256 to 2²⁰. Default: 1514.
    pub quantum: Bytes,
    /// Maximum backlog of all flows together. Default: 10,240 packets.
    pub bound: Bound,
    /// PIE parameters of each flow.
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
/// If the scheduler refuses a flow, which does not happen at present.
pub fn sfq(config: SfqConfig, flows: FlowHash) -> Result<Scheduled<Fair>, Refused> {
    let scheduler = Fair::round_robin(config.quantum);
    let overload = Overload::Longest { batch: 1, drop_at: config.drop_at };
    compose(scheduler, flows, config.bound, overload, || Store::Plain)
}

/// Fair queueing with CoDel.
///
/// # Errors
/// If the scheduler refuses a flow, which does not happen at present.
pub fn fq_codel(config: FqCodelConfig, flows: FlowHash) -> Result<Scheduled<Fair>, Refused> {
    let shared = Arc::new(config.codel);
    let store = || Store::Managed(Box::new(Codel::new(Arc::clone(&shared))));
    let overload = Overload::Longest { batch: config.batch.max(1), drop_at: DropAt::Head };
    compose(Fair::new(config.quantum), flows, config.bound, overload, store)
}

/// Fair queueing with PIE.
///
/// # Errors
/// If the scheduler refuses a flow, which does not happen at present.
pub fn fq_pie(config: FqPieConfig, flows: FlowHash) -> Result<Scheduled<Fair>, Refused> {
    let shared = Arc::new(config.pie);
    let store = || Store::Managed(shared.policy());
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
