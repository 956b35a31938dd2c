//! Formats a comparison as a table and as JSON.

use std::fmt;

use serde::Serialize;

use super::{Comparison, FlowStats, Run};

impl Comparison {
    /// A table for people.
    pub fn text(&self) -> impl fmt::Display + '_ {
        Text(self)
    }

    /// The same for programs.
    pub fn json(&self) -> impl Serialize + '_ {
        Whole {
            scenario: &self.scenario,
            link: &self.link,
            seed: self.seed,
            algorithms: self.runs.iter().map(Entry::new).collect(),
            left_out: self
                .left_out
                .iter()
                .map(|(algorithm, why)| LeftOut { algorithm: algorithm.name(), why })
                .collect(),
        }
    }
}

struct Text<'a>(&'a Comparison);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Comparison { scenario, link, seed, runs, left_out }) = self;
        writeln!(f, "Schedulers at {link} of {scenario}, seed {seed}: the same traffic through each")?;
        writeln!(
            f,
            "(delays in ms through the whole network; fair: what its weight and what it offers entitle a flow to)\n"
        )?;
        let names = runs.iter().flat_map(|run| &run.flows).map(|flow| flow.name.chars().count());
        let wide = names.max().unwrap_or(0).max(4);
        writeln!(
            f,
            "{:<11}{:<wide$} {:>6} {:>8} {:>7} {:>7} {:>7}  {:>8} {:>8} {:>8} {:>8} {:>8}  {:>6}",
            "scheduler",
            "flow",
            "weight",
            "Mbit/s",
            "share",
            "fair",
            "lost",
            "p1",
            "p50",
            "p90",
            "p99",
            "max",
            "Jain"
        )?;
        for run in runs {
            for (number, flow) in run.flows.iter().enumerate() {
                let name = if number == 0 { run.algorithm.name() } else { "" };
                let all: f64 = run.flows.iter().map(|flow| flow.delivered as f64).sum();
                let fair = (all > 0.0).then(|| flow.fair / all);
                write!(
                    f,
                    "{name:<11}{:<wide$} {:>6} {:>8.3} {:>7} {:>7} {:>7} ",
                    flow.name,
                    flow.weight,
                    flow.throughput(run.span) / 1e6,
                    percent(run.share(flow)),
                    percent(fair),
                    percent(flow.loss())
                )?;
                for q in [0.01, 0.5, 0.9, 0.99, 1.0] {
                    let delay =
                        flow.delay(q).map_or("-".into(), |nanos| format!("{:.2}", nanos as f64 / 1e6));
                    write!(f, " {delay:>8}")?;
                }
                match run.jain {
                    Some(jain) if number == 0 => writeln!(f, "  {jain:>6.3}")?,
                    _ => writeln!(f)?,
                }
            }
        }
        if !left_out.is_empty() {
            writeln!(f)?;
        }
        for (algorithm, why) in left_out {
            writeln!(f, "{algorithm} is left out: {why}")?;
        }
        Ok(())
    }
}

fn percent(part: Option<f64>) -> String {
    part.map_or("-".into(), |part| format!("{:.1}%", part * 100.0))
}

#[derive(Debug, Serialize)]
struct Whole<'a> {
    scenario: &'a str,
    link: &'a str,
    seed: u64,
    algorithms: Vec<Entry<'a>>,
    left_out: Vec<LeftOut<'a>>,
}

#[derive(Debug, Serialize)]
struct LeftOut<'a> {
    algorithm: &'static str,
    why: &'a str,
}

#[derive(Debug, Serialize)]
struct Entry<'a> {
    algorithm: &'static str,
    duration_ns: u64,
    jain: Option<f64>,
    flows: Vec<FlowEntry<'a>>,
}

#[derive(Debug, Serialize)]
struct FlowEntry<'a> {
    name: &'a str,
    weight: u32,
    offered_bytes: u64,
    delivered_bytes: u64,
    delivered_packets: u64,
    dropped_packets: u64,
    throughput_bps: f64,
    share: Option<f64>,
    fair_bytes: f64,
    delay: Quantiles,
}

/// Null without packets.
#[derive(Debug, Serialize)]
struct Quantiles {
    min_ns: Option<u64>,
    p1_ns: Option<u64>,
    p10_ns: Option<u64>,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    max_ns: Option<u64>,
}

impl<'a> Entry<'a> {
    fn new(run: &'a Run) -> Self {
        let flow = |flow: &'a FlowStats| FlowEntry {
            name: &flow.name,
            weight: flow.weight,
            offered_bytes: flow.offered,
            delivered_bytes: flow.delivered,
            delivered_packets: flow.packets,
            dropped_packets: flow.dropped,
            throughput_bps: flow.throughput(run.span),
            share: run.share(flow),
            fair_bytes: flow.fair,
            delay: Quantiles {
                min_ns: flow.delay(0.0),
                p1_ns: flow.delay(0.01),
                p10_ns: flow.delay(0.1),
                p50_ns: flow.delay(0.5),
                p90_ns: flow.delay(0.9),
                p99_ns: flow.delay(0.99),
                p999_ns: flow.delay(0.999),
                max_ns: flow.delay(1.0),
            },
        };
        Self {
            algorithm: run.algorithm.name(),
            duration_ns: run.span.nanos(),
            jain: run.jain,
            flows: run.flows.iter().map(flow).collect(),
        }
    }
}
