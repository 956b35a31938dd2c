//! The proven bounds of each algorithm.
//!
//! [`measure`](super::measure) describes the bounded quantities. All bounds are exact integers, without rounding.
//!
//! A bound B on the B-WFI of flow k implies one on its T-WFI: from the arrival of a packet until it is sent, itself
//! included, the link begins to send at most `(B + Q_k)/φ_k` bytes. Before these there may be the rest of a packet
//! that is on the wire and has already been counted. So `T ≤ B/(φ_k·R) + L/R`, where L is the maximum packet length
//! of any flow.

use narrows_core::sched::{FlowConfig, WorstCase};

/// The bounds of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bound {
    /// On B-WFI: bytes times the sum of weights.
    pub(crate) service: Option<i128>,
    /// On the shortfall: bytes times the sum of weights.
    pub(crate) shortfall: Option<i128>,
    /// On the delay beyond the guaranteed one: byte-times times the weight of the flow.
    pub(crate) delay: Option<i128>,
}

/// A flow among others, with the sums used in bounds.
#[derive(Clone, Copy, Debug)]
struct Place {
    weight: i128,
    longest: i128,
    /// Over all flows: the sum of weights, the maximum packet length, the sum of maximum packet lengths, and the
    /// number of flows.
    sum: i128,
    longest_of_all: i128,
    longest_together: i128,
    flows: i128,
}

/// No bound is proven.
pub(crate) fn none(flows: &[FlowConfig]) -> Vec<Bound> {
    vec![Bound::default(); flows.len()]
}

/// WF2Q+: `L_k + (L − L_k)·φ_k`, with the flow's maximum packet length L_k and the overall maximum L: never more than
/// L, and little more than L_k for a light flow (Bennett and Zhang 1997, theorem 4). The shortfall just before a
/// packet may be larger by `(1 − φ_k)·L_k`.
///
/// Their delay bound, `B/(φ_k·R)`, assumes a V that advances while a packet is being sent. Here V advances when
/// transmission begins, as in every implementation, so L/R is added as for all others.
pub(crate) fn wf2q(flows: &[FlowConfig]) -> Vec<Bound> {
    each(flows, |Place { weight, longest, sum, longest_of_all, .. }| {
        let service = longest * sum + (longest_of_all - longest) * weight;
        Bound {
            service: Some(service),
            shortfall: Some(service + (sum - weight) * longest),
            delay: Some(service + longest_of_all * weight),
        }
    })
}

/// The bounds that the scheduler itself states for a flow, with the σ that it uses, rounded up to whole bytes; over
/// all intervals.
///
/// QFQ: `3·φ_k·σ + 2·φ_k·L`, and `(3·σ + 2·L)/R` for delay (Checconi, Rizzo and Valente 2013). GFQ:
/// `2·L_k + 2·w_k·δ + 2·φ_k·L`, and KPS: `L_k + 6·w_k·δ + 2·φ_k·L`, with slots of δ; their source files contain the
/// proofs.
pub(crate) fn stated(flows: &[FlowConfig], number: u32, worst: WorstCase) -> Bound {
    let sum: i128 = flows.iter().map(|flow| i128::from(flow.weight.get())).sum();
    let weight = i128::from(flows[number as usize].weight.get());
    let WorstCase { bytes, work } = worst;
    let service = Some(i128::from(bytes.get()) * sum);
    Bound { service, shortfall: service, delay: Some(i128::from(work.get()) * weight) }
}

/// DRR, with a quantum of `quantum` bytes for weight 1. Let Q_k = quantum·w_k. In m turns while it is backlogged,
/// flow k sends at least `m·Q_k − (L_k − 1)`, since less than a packet's length is left over at the end and nothing
/// is owed at the beginning. Every other flow j has at most m + 1 turns and sends at most `(m + 1)·Q_j + (L_j − 1)`.
/// Substituted into `φ_k·W − W_k` with φ_k = Q_k/ΣQ, all terms with m cancel:
///
/// `B = (1 − φ_k)·(Q_k + L_k − 1) + φ_k·Σ_{j≠k} (L_j − 1)`
///
/// This bounds the shortfall, and therefore the B-WFI.
pub(crate) fn drr(flows: &[FlowConfig], quantum: u64) -> Vec<Bound> {
    let quantum = i128::from(quantum);
    each(flows, |place| {
        let Place { weight, longest, sum, longest_of_all, longest_together, flows } = place;
        let others = longest_together - longest - (flows - 1);
        let service = (sum - weight) * (quantum * weight + longest - 1) + weight * others;
        let bound = Some(service);
        Bound { service: bound, shortfall: bound, delay: Some(service + longest_of_all * weight) }
    })
}

fn each(flows: &[FlowConfig], bound: impl Fn(Place) -> Bound) -> Vec<Bound> {
    let longest = || flows.iter().map(|flow| i128::from(flow.longest));
    let place = |flow: &FlowConfig| Place {
        weight: flow.weight.get().into(),
        longest: flow.longest.into(),
        sum: flows.iter().map(|flow| i128::from(flow.weight.get())).sum(),
        longest_of_all: longest().max().unwrap_or(0),
        longest_together: longest().sum(),
        flows: flows.len() as i128,
    };
    let common = flows.first().map(place);
    let own = |flow: &FlowConfig| {
        let common = common.expect("there is a flow, so there is a first one");
        bound(Place { weight: flow.weight.get().into(), longest: flow.longest.into(), ..common })
    };
    flows.iter().map(own).collect()
}
