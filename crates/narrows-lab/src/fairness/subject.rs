//! The algorithms as tested: their parameters and their bounds.

use narrows_core::Bytes;
use narrows_core::sched::{
    Drr, Fair, Fifo, FlowConfig, FlowId, Gfq, Kps, Priority, Qfq, Refused, Scheduler, Server, Wf2q, WorstCase,
};
use narrows_scenario::SchedulerKind as Kind;

use super::bound::{self, Bound};
use super::drive::{Subject, server};
use crate::algorithm::Algorithm::{self, Of};

/// The algorithms that can be tested.
pub(crate) const KNOWN: [Algorithm; 8] = [
    Of(Kind::Fifo),
    Of(Kind::Prio),
    Of(Kind::Drr),
    Of(Kind::Wf2q),
    Of(Kind::Qfq),
    Of(Kind::Gfq),
    Of(Kind::Kps),
    Of(Kind::Sfq),
];

/// A scheduler with its flows, and the proven bounds of each flow.
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
        Of(Kind::Prio) => (Box::new(server(Priority::default(), &by_weight(flows))?), bound::none(flows)),
        Of(Kind::Drr) => (Box::new(server(Drr::new(bytes), flows)?), bound::drr(flows, quantum)),
        Of(Kind::Wf2q) => (Box::new(server(Wf2q::default(), flows)?), bound::wf2q(flows)),
        Of(Kind::Qfq) => with_stated(server(Qfq::default(), flows)?, flows, Qfq::worst_case),
        Of(Kind::Gfq) => with_stated(server(Gfq::default(), flows)?, flows, Gfq::worst_case),
        Of(Kind::Kps) => with_stated(server(Kps::default(), flows)?, flows, Kps::worst_case),
        Of(Kind::Sfq) => (Box::new(server(Fair::round_robin(bytes), flows)?), bound::none(flows)),
        _ => (Box::new(server(Fifo::default(), flows)?), bound::none(flows)),
    };
    Ok(Claim { subject, bounds })
}

/// A scheduler that states its own bounds, because they depend on its rounding.
fn with_stated<S: Scheduler + 'static>(
    server: Server<S>,
    flows: &[FlowConfig],
    worst_case: impl Fn(&S, &S::Flow) -> WorstCase,
) -> (Box<dyn Subject>, Vec<Bound>) {
    let worst = |number| worst_case(server.scheduler(), &server.flows()[FlowId::new(number)]);
    let bounds = (0..flows.len() as u32).map(|number| bound::stated(flows, number, worst(number))).collect();
    (Box::new(server), bounds)
}

/// The smallest quantum of weight 1 that lets each flow send its longest packet in every turn, which DRR needs for
/// constant time.
fn quantum(flows: &[FlowConfig]) -> u64 {
    let least = |flow: &FlowConfig| u64::from(flow.longest).div_ceil(flow.weight.get().into());
    flows.iter().map(least).max().unwrap_or(1).max(1)
}

/// The same flows with bands: the higher the weight, the earlier.
fn by_weight(flows: &[FlowConfig]) -> Vec<FlowConfig> {
    let band = |flow: &FlowConfig| flow.weight.get().leading_zeros();
    flows.iter().map(|flow| FlowConfig { band: band(flow), ..*flow }).collect()
}
