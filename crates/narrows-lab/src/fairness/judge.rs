//! The results of a run under one pattern, flow by flow, and whether the bounds held.

use narrows_core::sched::FlowConfig;

use super::bound::Bound;
use super::drive::Watch;
use super::measure::{Measure, Worst};
use super::recording::Recording;
use crate::fluid::Fluid;

/// Observes a run: measures the worst-case fair indices and the distance to the fluid system.
#[derive(Debug)]
pub(crate) struct Judge<'a> {
    flows: &'a [FlowConfig],
    measure: Measure,
    fluid: Fluid,
    served: Vec<Served>,
    packets: u64,
    bytes: u64,
    recording: Option<&'a mut Recording>,
}

/// A flow's service, in bits that have left, compared with the fluid system.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    bytes: u64,
    lag: f64,
    lead: f64,
}

/// The results of one flow.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FlowResult {
    /// Its number.
    pub flow: usize,
    /// Its weight.
    pub weight: u32,
    /// Its maximum packet length, in bytes.
    pub longest: u32,
    /// B-WFI, in bytes: how far it was behind its share of the service, over an interval that ends with one of its
    /// packets.
    pub service: Index,
    /// The same over any interval, in bytes.
    pub shortfall: Index,
    /// T-WFI, in byte-times; `None` if it sent nothing.
    pub delay: Option<Index>,
    /// The maximum lag behind the fluid system, in bytes.
    pub lag: f64,
    /// The maximum lead over the fluid system, in bytes.
    pub lead: f64,
}

/// A measured worst-case fair index of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Index {
    /// Its worst value.
    pub worst: f64,
    /// The proven bound, if there is one.
    pub bound: Option<f64>,
    /// Whether it exceeds the bound: by exact comparison.
    pub broken: bool,
    /// The interval in which it occurred, in byte-times.
    pub interval: (u64, u64),
}

impl Index {
    /// `bound` in the unit of `worst`; both are `unit` times too large.
    fn new(worst: Worst, bound: Option<i128>, unit: i128) -> Self {
        let scaled = |value: i128| value as f64 / unit as f64;
        Self {
            worst: scaled(worst.value),
            bound: bound.map(scaled),
            broken: bound.is_some_and(|bound| worst.value > bound),
            interval: (worst.from, worst.to),
        }
    }

    /// The measured value as a share of its bound.
    pub fn share(&self) -> Option<f64> {
        self.bound.filter(|&bound| bound > 0.0).map(|bound| self.worst / bound)
    }
}

impl<'a> Judge<'a> {
    pub(crate) fn new(flows: &'a [FlowConfig], recording: Option<&'a mut Recording>) -> Self {
        let weights = || flows.iter().map(|flow| flow.weight.get());
        Self {
            flows,
            measure: Measure::new(weights()),
            fluid: Fluid::new(weights()),
            served: vec![Served::default(); flows.len()],
            packets: 0,
            bytes: 0,
            recording,
        }
    }

    /// The numbers of packets and bytes sent, and the results of each flow. `bounds` has one entry for each.
    pub(crate) fn conclude(mut self, bounds: &[Bound]) -> (u64, u64, Vec<FlowResult>) {
        self.measure.finish();
        let sum = self.measure.sum();
        let result = |(flow, config): (usize, &FlowConfig)| {
            let Bound { service, shortfall, delay } = bounds[flow];
            let weight = config.weight.get();
            FlowResult {
                flow,
                weight,
                longest: config.longest,
                service: Index::new(self.measure.worst_service(flow), service, sum),
                shortfall: Index::new(self.measure.worst_shortfall(flow), shortfall, sum),
                delay: self.measure.worst_delay(flow).map(|worst| Index::new(worst, delay, weight.into())),
                lag: self.served[flow].lag,
                lead: self.served[flow].lead,
            }
        };
        (self.packets, self.bytes, self.flows.iter().enumerate().map(result).collect())
    }

    /// The lag of a flow with no packet on the wire; positive if it is behind the fluid system.
    fn lag(&self, flow: usize) -> f64 {
        self.fluid.served(flow) - self.served[flow].bytes as f64
    }

    fn record(&mut self, now: u64) {
        if let Some(recording) = &mut self.recording
            && recording.wants(now)
        {
            let (measure, fluid, served) = (&self.measure, &self.fluid, &self.served);
            recording
                .add(now, |flow| (served[flow].bytes as f64, fluid.served(flow), measure.shortfall(flow)));
        }
    }
}

/// Between the transmissions of a flow its lag only grows, and during a transmission it only falls: so it is only
/// examined when they begin and end.
impl Watch for Judge<'_> {
    fn arrived(&mut self, now: u64, flow: usize, length: u32) {
        self.fluid.advance(now);
        self.fluid.arrive(flow, length);
        self.measure.arrive(now, flow, length);
    }

    fn begins(&mut self, now: u64, flow: usize) -> u32 {
        self.fluid.advance(now);
        self.record(now);
        let lag = self.lag(flow);
        self.served[flow].lag = self.served[flow].lag.max(lag);
        let (length, _) = self.measure.begin(now, flow);
        self.packets += 1;
        self.bytes += u64::from(length);
        self.record(now);
        length
    }

    fn ended(&mut self, now: u64, flow: usize, length: u32) {
        self.fluid.advance(now);
        self.served[flow].bytes += u64::from(length);
        let lead = -self.lag(flow);
        self.served[flow].lead = self.served[flow].lead.max(lead);
        self.record(now);
    }
}
