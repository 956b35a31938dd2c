//! Formats results as a table and as JSON.

use std::fmt;

use narrows_core::Rate;
use serde::Serialize;

use super::{Fairness, FlowResult, Index, Trial};

impl Fairness {
    /// A table for people, with details on every broken bound.
    pub fn text(&self) -> impl fmt::Display + '_ {
        Text(self)
    }

    /// As JSON: `trials`, with an entry for each algorithm and pattern.
    pub fn json(&self) -> impl Serialize + '_ {
        Whole { trials: self.trials.iter().map(|trial| Entry::new(trial, self.options.rate)).collect() }
    }
}

struct Text<'a>(&'a Fairness);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Fairness { options, trials }) = self;
        writeln!(
            f,
            "Worst-case fair indices at {}: {} flows, {} packets of up to {} a run, seed {}",
            options.rate, options.flows, options.packets, options.longest, options.seed.0
        )?;
        writeln!(f, "Of each index: the flow that comes nearest to its bound, or is worst without one.\n")?;
        writeln!(f, "{:32}{:<35}T-WFI, us", "", "B-WFI, bytes")?;
        let columns = format!("{:>5} {:>10} {:>10} {:>5}", "flow", "worst", "bound", "of it");
        writeln!(f, "{:<10} {:<9}{columns}  {columns}  bounds", "algorithm", "traffic")?;
        trials.iter().try_for_each(|trial| promises(f, trial, options.rate))?;
        writeln!(
            f,
            "\nShortfall: B-WFI over any interval. Lag and lead: the most of any flow, against the fluid system.\n"
        )?;
        writeln!(f, "{:32}shortfall, bytes", "")?;
        writeln!(f, "{:<10} {:<9}{columns} {:>10} {:>10}", "algorithm", "traffic", "lag/B", "lead/B")?;
        trials.iter().try_for_each(|trial| distances(f, trial))?;
        let broken = || {
            trials.iter().flat_map(|trial| {
                trial.flows.iter().filter(|flow| flow.is_broken()).map(move |flow| (trial, flow))
            })
        };
        if broken().next().is_some() {
            writeln!(f)?;
        }
        for (trial, flow) in broken().take(SHOWN) {
            Broken { trial, flow, rate: options.rate }.fmt(f)?;
        }
        let more = broken().count().saturating_sub(SHOWN);
        if more > 0 {
            writeln!(f, "… and {more} more flows")?;
        }
        Ok(())
    }
}

/// The maximum number of flows with broken bounds that are listed individually.
const SHOWN: usize = 20;

fn promises(f: &mut fmt::Formatter<'_>, trial: &Trial, rate: Rate) -> fmt::Result {
    let service = trial.worst_service();
    write!(f, "{:<10} {:<9}", trial.algorithm, trial.pattern.name())?;
    index(f, Some((service, service.service)), 1.0)?;
    write!(f, "  ")?;
    index(f, trial.worst_delay(), micros(1.0, rate))?;
    let verdict = match trial.holds() {
        None => "none",
        Some(true) => "hold",
        Some(false) => "BROKEN",
    };
    writeln!(f, "  {verdict}")
}

fn distances(f: &mut fmt::Formatter<'_>, trial: &Trial) -> fmt::Result {
    let shortfall = trial.worst_shortfall();
    write!(f, "{:<10} {:<9}", trial.algorithm, trial.pattern.name())?;
    index(f, Some((shortfall, shortfall.shortfall)), 1.0)?;
    let most = |of: fn(&FlowResult) -> f64| trial.flows.iter().map(of).fold(0.0, f64::max);
    writeln!(f, " {:>10.0} {:>10.0}", most(|flow| flow.lag), most(|flow| flow.lead))
}

fn index(f: &mut fmt::Formatter<'_>, worst: Option<(&FlowResult, Index)>, unit: f64) -> fmt::Result {
    let Some((flow, index)) = worst else {
        return write!(f, "{:>5} {:>10} {:>10} {:>5}", "-", "-", "-", "-");
    };
    let number =
        |value: f64| if value.abs() < 1000.0 { format!("{value:.2}") } else { format!("{value:.0}") };
    let bound = index.bound.map_or("none".into(), |bound| number(bound * unit));
    let share = index.share().map_or("-".into(), |share| format!("{:.0}%", share * 100.0));
    write!(f, "{:>5} {:>10} {bound:>10} {share:>5}", flow.flow, number(index.worst * unit))
}

/// A flow with broken bounds: where, and by how much.
struct Broken<'a> {
    trial: &'a Trial,
    flow: &'a FlowResult,
    rate: Rate,
}

impl fmt::Display for Broken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trial, flow, rate } = *self;
        let FlowResult { flow: number, weight, longest, service, shortfall, delay, .. } = flow;
        let head = format!(
            "{}, {}: flow {number} (weight {weight} of {}, packets of up to {longest} bytes)",
            trial.algorithm,
            trial.pattern.name(),
            trial.weights
        );
        let interval = |(from, to): (u64, u64)| {
            format!("from {:.3} us to {:.3} us", micros(from as f64, rate), micros(to as f64, rate))
        };
        for (what, index) in [("B-WFI", service), ("a shortfall of", shortfall)] {
            if let Index { worst, bound: Some(bound), broken: true, interval: at } = *index {
                let excess = worst - bound;
                writeln!(
                    f,
                    "{head}: {what} {worst:.3} bytes is {excess:.3} bytes above the bound, {}",
                    interval(at)
                )?;
            }
        }
        if let Some(Index { worst, bound: Some(bound), broken: true, interval: at }) = *delay {
            writeln!(
                f,
                "{head}: T-WFI {:.3} us is {:.3} us above the bound, with the packet that was there {}",
                micros(worst, rate),
                micros(worst - bound, rate),
                interval(at)
            )?;
        }
        Ok(())
    }
}

/// Converts byte-times to microseconds.
fn micros(byte_times: f64, rate: Rate) -> f64 {
    nanos(byte_times, rate) / 1e3
}

fn nanos(byte_times: f64, rate: Rate) -> f64 {
    byte_times * 8e9 / rate.bits_per_second() as f64
}

#[derive(Debug, Serialize)]
struct Whole {
    trials: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Entry {
    algorithm: &'static str,
    traffic: &'static str,
    flows: usize,
    packets: u64,
    bytes: u64,
    /// Whether the bounds hold; null without bounds.
    holds: Option<bool>,
    b_wfi: FlowIndex,
    shortfall: FlowIndex,
    t_wfi: Option<FlowIndex>,
    lag_bytes: f64,
    lead_bytes: f64,
    broken: Vec<FlowEntry>,
}

/// Bytes for B-WFI and shortfalls, nanoseconds for T-WFI.
#[derive(Debug, Serialize)]
struct FlowIndex {
    flow: usize,
    weight: u32,
    longest: u32,
    worst: f64,
    bound: Option<f64>,
    share: Option<f64>,
    from_ns: f64,
    to_ns: f64,
}

#[derive(Debug, Serialize)]
struct FlowEntry {
    b_wfi: FlowIndex,
    shortfall: FlowIndex,
    t_wfi: Option<FlowIndex>,
}

impl Entry {
    fn new(trial: &Trial, rate: Rate) -> Self {
        let most = |of: fn(&FlowResult) -> f64| trial.flows.iter().map(of).fold(0.0, f64::max);
        let service = |flow: &FlowResult| FlowIndex::new(flow, flow.service, 1.0, rate);
        let shortfall = |flow: &FlowResult| FlowIndex::new(flow, flow.shortfall, 1.0, rate);
        let delay = |flow: &FlowResult| Some(FlowIndex::new(flow, flow.delay?, nanos(1.0, rate), rate));
        let broken = trial.flows.iter().filter(|flow| flow.is_broken());
        Self {
            algorithm: trial.algorithm.name(),
            traffic: trial.pattern.name(),
            flows: trial.flows.len(),
            packets: trial.packets,
            bytes: trial.bytes,
            holds: trial.holds(),
            b_wfi: service(trial.worst_service()),
            shortfall: shortfall(trial.worst_shortfall()),
            t_wfi: trial.worst_delay().and_then(|(flow, _)| delay(flow)),
            lag_bytes: most(|flow| flow.lag),
            lead_bytes: most(|flow| flow.lead),
            broken: broken
                .map(|flow| FlowEntry {
                    b_wfi: service(flow),
                    shortfall: shortfall(flow),
                    t_wfi: delay(flow),
                })
                .collect(),
        }
    }
}

impl FlowIndex {
    fn new(flow: &FlowResult, index: Index, unit: f64, rate: Rate) -> Self {
        let (from, to) = index.interval;
        Self {
            flow: flow.flow,
            weight: flow.weight,
            longest: flow.longest,
            worst: index.worst * unit,
            bound: index.bound.map(|bound| bound * unit),
            share: index.share(),
            from_ns: nanos(from as f64, rate),
            to_ns: nanos(to as f64, rate),
        }
    }
}
