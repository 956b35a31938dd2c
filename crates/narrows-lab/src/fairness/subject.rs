//! The algorithms as they are judged: with which parameters, and under which bounds.

use narrows_core::Bytes;
use narrows_core::sched::{Drr, Fair, Fifo, FlowConfig, FlowId, Priority, Qfq, Refused, Server, Wf2q};

use super::bound::{self, Bound};
use super::drive::{Subject, server};
use crate::algorithm::Algorithm;

/// Those that can be judged.
pub(crate) const KNOWN: [Algorithm; 6] =
    [Algorithm::Fifo, Algorithm::Prio, Algorithm::Drr, Algorithm::Wf2q, Algorithm::Qfq, Algorithm::Sfq];

/// A scheduler with its flows, and what is proven of each of them.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) subject: Box<dyn Subject>,
    pub(crate) bounds: Vec<Bound>,
}

/// An algorithm with these flows.
pub(crate) fn claim(algorithm: Algorithm, flows: &[FlowConfig]) -> Result<Claim, Refused> {
    let quantum = quantum(flows);
    let bytes = Bytes::new(quantum);
    let (subject, bounds): (Box<dyn Subject>, _) = match algorithm {
        Algorithm::Prio => (Box::new(server(Priority::default(), &by_weight(flows))?), bound::none(flows)),
        Algorithm::Drr => (Box::new(server(Drr::new(bytes), flows)?), bound::drr(flows, quantum)),
        Algorithm::Wf2q => (Box::new(server(Wf2q::default(), flows)?), bound::wf2q(flows)),
        Algorithm::Qfq => {
            let server = server(Qfq::default(), flows)?;
            let bounds = qfq_bounds(&server, flows);
            (Box::new(server), bounds)
        }
        Algorithm::Sfq => (Box::new(server(Fair::round_robin(bytes), flows)?), bound::none(flows)),
        _ => (Box::new(server(Fifo::default(), flows)?), bound::none(flows)),
    };
    Ok(Claim { subject, bounds })
}

/// QFQ says itself by which σ it keeps what it keeps.
fn qfq_bounds(server: &Server<Qfq>, flows: &[FlowConfig]) -> Vec<Bound> {
    let worst = |number| server.scheduler().worst_case(&server.flows()[FlowId::new(number)]);
    (0..flows.len() as u32).map(|number| bound::qfq(flows, number, worst(number))).collect()
}

/// The least quantum of weight 1 by which each flow may send its longest packet at each of its turns, which is what makes
/// DRR a matter of constant time.
fn quantum(flows: &[FlowConfig]) -> u64 {
    let least = |flow: &FlowConfig| u64::from(flow.longest).div_ceil(flow.weight.get().into());
    flows.iter().map(least).max().unwrap_or(1).max(1)
}

/// The same flows with bands: the greater the weight, the earlier.
fn by_weight(flows: &[FlowConfig]) -> Vec<FlowConfig> {
    let band = |flow: &FlowConfig| flow.weight.get().leading_zeros();
    flows.iter().map(|flow| FlowConfig { band: band(flow), ..*flow }).collect()
}
