//! A packet thread's raw counters, which the director aggregates and formats.

use narrows_core::rules::{Rule, RuleCounters, RuleView, StateView};
use narrows_core::{Element, LinkView, Time};
use narrows_io::clock::thread_processor_time;
use narrows_report::{Counts, Meter, RouterReport, RunInfo, Snapshot, ThreadReport, TrainsReport};

use super::DataLoop;
use super::traffic::TrafficSample;

/// What a packet thread needs to take a sample.
pub(crate) struct Sample {
    /// What to report on.
    pub(crate) info: RunInfo,
    /// The meter that the loop continues with.
    pub(crate) meter: Meter,
}

/// The counters of a packet thread.
pub(crate) struct Sampled {
    pub(crate) info: RunInfo,
    pub(crate) counts: Counts,
    /// Measurements since the previous sample.
    pub(crate) meter: Meter,
    pub(crate) thread: ThreadReport,
    pub(crate) trains: Option<TrainsReport>,
    pub(crate) traffic: TrafficSample,
    /// Frames answered at its ports.
    pub(crate) answered: u64,
    /// Answers to senders whose packets rules rejected.
    pub(crate) rejections: u64,
    /// Routers that exceeded their message rate limit: their names, and how many messages were suppressed.
    pub(crate) silenced: Vec<(String, u64)>,
    /// The counters of the router at its ports.
    pub(crate) gateway: Option<RouterReport>,
    /// The engine's present instant.
    pub(crate) engine_at: Time,
}

/// The counters of rules.
#[derive(Debug, Default)]
pub(crate) struct RulesSample {
    pub(crate) rules: Vec<(Rule, RuleCounters, bool)>,
    pub(crate) states: Vec<StateView>,
    /// The numbers of flows of each translator: ICMP, UDP, TCP, others.
    pub(crate) nats: Vec<(u32, [usize; 4])>,
    /// The engine's links whose names begin with the name of the rules.
    pub(crate) pipes: Vec<PipeSample>,
}

/// The counters of a pipe, by flow.
#[derive(Debug)]
pub(crate) struct PipeSample {
    pub(crate) link: String,
    pub(crate) whole: FlowSample,
    /// The links created by a mask.
    pub(crate) instances: Vec<FlowSample>,
    /// Its queues, by number.
    pub(crate) queues: Vec<(u32, FlowSample)>,
}

/// One flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowSample {
    pub(crate) flow: narrows_core::classify::Flow,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) waiting: u64,
    pub(crate) waiting_bytes: u64,
    pub(crate) dropped: u64,
}

impl DataLoop {
    /// This loop's counters; the engine has been advanced to `now`.
    pub(super) fn sample(&mut self, sample: Sample, now: Time) -> Sampled {
        let Sample { mut info, meter } = sample;
        info.span = (Time::ZERO, now);
        let counts = Counts::of(&info, &self.engine, &|place| self.share.has(place));
        Sampled {
            counts,
            thread: self.thread_report(&info),
            meter: std::mem::replace(&mut self.meter, meter),
            info,
            trains: self.trains(),
            traffic: self.traffic.as_mut().map(|traffic| traffic.sample()).unwrap_or_default(),
            answered: self.ports.iter().map(|port| port.answered).sum(),
            rejections: self.rejections,
            silenced: self.silenced(),
            gateway: self.gateway.as_ref().map(|gateway| gateway.counts(self.inputs.len() as u64)),
            engine_at: self.engine.now(),
        }
    }

    fn silenced(&self) -> Vec<(String, u64)> {
        let own = self.gateway.as_ref().and_then(|gateway| gateway.silenced());
        self.routers.silenced().into_iter().chain(own).collect()
    }

    /// What this loop's links have delivered, and their backlogs.
    pub(super) fn snapshot(&self, now: Time, counts: bool) -> Snapshot {
        let has = |place| self.share.has(place);
        if counts {
            return Snapshot::with_counts(&self.engine, &has, now);
        }
        Snapshot::of(&self.engine, &has, now)
    }

    /// The thread's resource use.
    fn thread_report(&self, info: &RunInfo) -> ThreadReport {
        let used = thread_processor_time().saturating_sub(self.processor_time_before);
        let span = info.span.1.since(info.span.0).nanos().max(1);
        ThreadReport {
            ports: self.ports.iter().filter(|port| port.plugged.is_some()).count() as u64,
            processor: self.pace.processor,
            processor_ns: used,
            processor_share: used as f64 / span as f64,
            throttle_pause_ns: self.rest.rested.nanos(),
            gather_ns: self.rivals.gathered.nanos(),
        }
    }

    /// The packet I/O backends of its ports.
    pub(super) fn backends(&self) -> Vec<String> {
        self.lines.iter().map(|line| line.end.description()).collect()
    }

    /// The counters of the rules with this name and of their pipes.
    pub(super) fn rules_sample(&self, name: &str) -> RulesSample {
        let Some(rules) = self.engine.rules_of(name) else { return RulesSample::default() };
        if !self.share.has_element(Element::Rules(rules)) {
            return RulesSample::default();
        }
        let now = self.clock.now();
        let set = self.engine.rule_set(rules);
        let rule = |view: RuleView<'_>| (view.rule.clone(), view.counters, view.enabled);
        let pipes = self.engine.links().filter_map(|link| {
            let view = self.engine.view(link);
            view.name().strip_prefix(name)?.strip_prefix('.')?;
            let flows = view.masked_flows(now).into_iter().map(|flow| {
                let of_flow = FlowSample {
                    flow: flow.flow.unwrap_or_default(),
                    packets: flow.arrived.packets,
                    bytes: flow.arrived.bytes,
                    waiting: flow.backlog.packets,
                    waiting_bytes: flow.backlog.bytes,
                    dropped: flow.dropped.packets,
                };
                (flow.number, of_flow)
            });
            let instances = view.instances(now);
            Some(PipeSample {
                link: view.name().to_owned(),
                whole: of_view(&view),
                instances: instances
                    .iter()
                    .map(|instance| FlowSample { flow: instance.flow, ..of_view(&instance.link) })
                    .collect(),
                queues: flows.collect(),
            })
        });
        RulesSample {
            rules: set.rules().map(rule).collect(),
            states: set.states(now),
            nats: set.nats(now).map(|nat| (nat.number, nat.flows)).collect(),
            pipes: pipes.collect(),
        }
    }
}

fn of_view(view: &LinkView<'_>) -> FlowSample {
    let (counters, backlog) = (view.counters(), view.backlog());
    FlowSample {
        flow: Default::default(),
        packets: counters.iter().map(|lane| lane.arrived.packets).sum(),
        bytes: counters.iter().map(|lane| lane.arrived.bytes).sum(),
        waiting: backlog.packets,
        waiting_bytes: backlog.bytes,
        dropped: counters.iter().map(|lane| lane.dropped_in_all().packets).sum(),
    }
}
