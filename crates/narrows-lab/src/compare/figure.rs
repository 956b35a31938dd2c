//! Plots the delay distributions.

use super::{Comparison, FlowStats};
use crate::plot::{Axis, Figure, Line, Panel, Style};

/// The number of steps drawn of a distribution: as many as can be distinguished.
const STEPS: usize = 500;
/// Used in turn: lines often coincide, and the gaps of one show the other.
const STYLES: [Style; 3] = [Style::Solid, Style::Dashed, Style::Dotted];

impl Comparison {
    /// A panel for each flow, with its packets' delay distribution under each scheduler; and one with the flows'
    /// throughput under each.
    pub fn figure(&self) -> Figure {
        let flows = self.runs.first().map_or(0, |run| run.flows.len());
        let names: Vec<&str> = self.runs.iter().map(|run| run.algorithm.name()).collect();
        let all = || {
            self.runs.iter().flat_map(|run| &run.flows).flat_map(|flow| [flow.delay(0.0), flow.delay(1.0)])
        };
        let seconds = || all().flatten().map(|nanos| nanos as f64 / 1e9).filter(|&delay| delay > 0.0);
        let (least, most) = (seconds().fold(f64::INFINITY, f64::min), seconds().fold(0.0, f64::max));
        let axis = || {
            let axis = Axis::logarithmic("delay through the network", "s");
            if most > 0.0 { axis.covering(least, most) } else { axis }
        };
        let panel = |number: usize| {
            let lines = self.runs.iter().enumerate().map(|(colour, run)| {
                let flow = &run.flows[number];
                let rate = flow.throughput(run.span) / 1e6;
                let lost = flow.loss().map_or(String::new(), |lost| format!(", {:.1} % lost", lost * 100.0));
                let name = format!("{}: {rate:.2} Mbit/s{lost}", run.algorithm);
                Line::new(name, colour, distribution(flow)).styled(STYLES[colour % STYLES.len()])
            });
            Panel {
                title: self.runs[0].flows[number].name.clone(),
                x: axis(),
                y: Axis::linear("share of packets", "").within(0.0, 1.0),
                lines: lines.collect(),
            }
        };
        Figure {
            title: format!("Delays under {}", names.join(", ")),
            subtitle: format!(
                "{} of {}, seed {}: the same traffic through each",
                self.link, self.scenario, self.seed
            ),
            columns: if flows > 1 { 2 } else { 1 },
            panels: (0..flows).map(panel).collect(),
        }
    }
}

/// The share of packets with at most each delay (in seconds), as steps.
fn distribution(flow: &FlowStats) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let count = flow.delays.len();
    let steps = count.min(STEPS);
    let mut share = 0.0;
    for step in 1..=steps {
        let rank = count * step / steps;
        let delay = flow.delays[rank - 1] as f64 / 1e9;
        points.push((delay, share));
        share = rank as f64 / count as f64;
        points.push((delay, share));
    }
    points
}
