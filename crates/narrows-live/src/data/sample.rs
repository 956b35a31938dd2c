//! What a packet thread has counted, as it is: raw, for the director to add up and to put into words.

use narrows_core::rules::{Rule, RuleCounters, RuleView, StateView};
use narrows_core::{Element, LinkView, Time};
use narrows_io::clock::thread_processor_time;
use narrows_report::{Counts, Meter, RunInfo, Snapshot, ThreadReport, TrainsReport};

use super::DataLoop;
use super::traffic::TrafficSample;

/// What a sample is taken with.
pub(crate) struct Sample {
    /// What is reported on.
    pub(crate) info: RunInfo,
    /// What the loop goes on with as its meter.
    pub(crate) meter: Meter,
}

/// What a packet thread has counted.
pub(crate) struct Sampled {
    pub(crate) info: RunInfo,
    pub(crate) counts: Counts,
    /// What was seen since the sample before.
    pub(crate) meter: Meter,
    pub(crate) thread: ThreadReport,
    pub(crate) trains: Option<TrainsReport>,
    pub(crate) traffic: TrafficSample,
    /// Frames that were answered at its ports.
    pub(crate) answered: u64,
    /// Routers that had more to say than they may: their names, and how many messages.
    pub(crate) silenced: Vec<(String, u64)>,
    /// Where the engine is.
    pub(crate) engine_at: Time,
}

/// What rules have counted.
#[derive(Debug, Default)]
pub(crate) struct RulesSample {
    pub(crate) rules: Vec<(Rule, RuleCounters, bool)>,
    pub(crate) states: Vec<StateView>,
    /// The engine's links that begin with the name of the rules.
    pub(crate) pipes: Vec<PipeSample>,
}

/// What a pipe has counted, in its flows.
#[derive(Debug)]
pub(crate) struct PipeSample {
    pub(crate) link: String,
    pub(crate) whole: FlowSample,
    /// The links that a mask made.
    pub(crate) instances: Vec<FlowSample>,
    /// The queues within, by their numbers.
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
    /// What this loop has counted; the engine has been brought up to `now`.
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
            silenced: self.routers.silenced(),
            engine_at: self.engine.now(),
        }
    }

    /// What the links of this loop have let out, and what waits.
    pub(super) fn snapshot(&self, now: Time, counts: bool) -> Snapshot {
        let has = |place| self.share.has(place);
        if counts {
            return Snapshot::with_counts(&self.engine, &has, now);
        }
        Snapshot::of(&self.engine, &has, now)
    }

    /// What the thread has used.
    fn thread_report(&self, info: &RunInfo) -> ThreadReport {
        let used = thread_processor_time().saturating_sub(self.processor_time_before);
        let span = info.span.1.since(info.span.0).nanos().max(1);
        ThreadReport {
            ports: self.ports.iter().filter(|port| port.cable.is_some()).count() as u64,
            processor: self.pace.processor,
            processor_ns: used,
            processor_share: used as f64 / span as f64,
            rested_ns: self.rest.rested.nanos(),
        }
    }

    /// How frames come and go at its ports.
    pub(super) fn backends(&self) -> Vec<String> {
        let cables = self.ports.iter().filter_map(|port| port.cable.as_ref());
        cables.map(|cable| cable.end.description()).collect()
    }

    /// What the rules of this name have counted, and the pipes beside them.
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
