//! Plots service curves and lags.

use narrows_core::Rate;

use super::recording::{Curves, Recording};
use super::{Fairness, FairnessError, Pattern, Trial, trial};
use crate::plot::{Axis, Figure, Line, Panel, Style};

/// The number of transmissions of mean length drawn.
const SHOWN: u64 = 150;
/// The number of flows drawn.
const FLOWS: usize = 4;
/// A bound this many times larger than the measurements is not drawn, because it would hide everything else.
const TOO_FAR: f64 = 5.0;

impl Fairness {
    /// For each algorithm under one pattern: the service of a few flows next to that of the fluid system, their lag
    /// behind it, and their shortfall, with the bounds. The time shown is around the worst moment under the first
    /// algorithm; the flow that it concerns is among those drawn.
    ///
    /// This repeats the runs.
    ///
    /// # Errors
    /// As for [`fairness`](super::fairness).
    pub fn figure(&self, pattern: Pattern) -> Result<Figure, FairnessError> {
        let options = &self.options;
        let once = |&algorithm| trial(algorithm, pattern, options, None);
        let found: Vec<Trial> = options.algorithms.iter().map(once).collect::<Result<_, _>>()?;
        // Every run sends at least this much.
        let end = found.iter().map(|trial| trial.bytes).min().unwrap_or(0);
        let mut drawn: Vec<(Trial, Recording)> = Vec::new();
        for &algorithm in &options.algorithms {
            let (from, to) = window(&found[0], end);
            let mut recording = Recording::new(from, to, chosen(&found[0]));
            drawn.push((trial(algorithm, pattern, options, Some(&mut recording))?, recording));
        }
        let columns = drawn.iter().map(|(trial, recording)| Draw { trial, rate: options.rate, recording });
        let rows: [Vec<Panel>; 3] = [
            columns.clone().map(|column| column.service()).collect(),
            columns.clone().map(|column| column.lag()).collect(),
            columns.map(|column| column.shortfall()).collect(),
        ];
        let panels = rows.into_iter().flat_map(alike);
        let names: Vec<&str> = options.algorithms.iter().map(|algorithm| algorithm.name()).collect();
        Ok(Figure {
            title: format!("{} and the fluid system", names.join(", ")),
            subtitle: format!(
                "traffic “{}”, {} flows, packets of up to {}, {}, seed {}",
                pattern.name(),
                options.flows,
                options.longest,
                options.rate,
                options.seed.0
            ),
            columns: names.len(),
            panels: panels.collect(),
        })
    }
}

/// The interval in which the worst flow was worst, with a margin, before `end`; no longer than can be distinguished.
fn window(trial: &Trial, end: u64) -> (u64, u64) {
    let length = trial.bytes / trial.packets.max(1) * SHOWN;
    let (from, to) = trial.worst_shortfall().shortfall.interval;
    let to = (to + length / 10).min(end);
    let from =
        from.saturating_sub(length / 5).clamp(to.saturating_sub(length), to.saturating_sub(length / 2));
    (from, to.max((from + length).min(end)))
}

/// The worst flow, the heaviest and the lightest one, and the next worst.
fn chosen(trial: &Trial) -> Vec<usize> {
    let mut order: Vec<usize> = (0..trial.flows.len()).collect();
    let rank = |flow: usize| {
        let index = trial.flows[flow].shortfall;
        index.share().unwrap_or(index.worst)
    };
    order.sort_by(|&a, &b| rank(b).total_cmp(&rank(a)));
    let weight = |flow: &&usize| trial.flows[**flow].weight;
    let ends = [order.iter().max_by_key(weight), order.iter().min_by_key(weight)];
    let mut chosen = Vec::new();
    for &flow in order.first().into_iter().chain(ends.into_iter().flatten()).chain(&order) {
        if chosen.len() < FLOWS && !chosen.contains(&flow) {
            chosen.push(flow);
        }
    }
    chosen.sort_unstable();
    chosen
}

/// The panels of a row, with the same y axis.
fn alike(mut row: Vec<Panel>) -> Vec<Panel> {
    let values =
        || row.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points).map(|point| point.1);
    let (least, most) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    row.iter_mut().for_each(|panel| panel.y = panel.y.clone().covering(least, most));
    row
}

struct Draw<'a> {
    trial: &'a Trial,
    rate: Rate,
    recording: &'a Recording,
}

impl Draw<'_> {
    fn service(&self) -> Panel {
        let lines = self.curves().flat_map(|(colour, curves)| {
            // Relative to the fluid system's service of each flow at the left edge.
            let start = curves.fluid.first().map_or(0.0, |point| point.1);
            let fluid = Line::new("", colour, self.points(&curves.fluid, |bytes| bytes - start));
            let packets = self.points(&curves.packets, |bytes| bytes - start);
            [fluid.styled(Style::Dotted), Line::new(self.name(curves.flow), colour, packets)]
        });
        self.panel("served (dotted: by the fluid system)", "served", lines.collect())
    }

    fn lag(&self) -> Panel {
        let lines = self.curves().map(|(colour, curves)| {
            let pairs = curves.fluid.iter().zip(&curves.packets);
            let lag: Vec<_> = pairs.map(|(fluid, packets)| (fluid.0, fluid.1 - packets.1)).collect();
            Line::new("", colour, self.points(&lag, |lag| lag))
        });
        self.panel("behind the fluid system", "lag", lines.collect())
    }

    fn shortfall(&self) -> Panel {
        let (mut lines, mut bounds) = (Vec::new(), Vec::new());
        for (colour, curves) in self.curves() {
            lines.push(Line::new("", colour, self.points(&curves.shortfall, |bytes| bytes)));
            if let Some(bound) = self.trial.flows[curves.flow].shortfall.bound {
                let ends = [self.recording.from, self.recording.to].map(|at| (at as f64, bound));
                bounds.push(Line::new("", colour, self.points(&ends, |bytes| bytes)).styled(Style::Dashed));
            }
        }
        let most = lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(0.0, f64::max);
        let all = bounds.len();
        bounds.retain(|line| line.points.iter().all(|point| point.1 <= TOO_FAR * most));
        let title = match (all, bounds.len()) {
            (0, _) => "behind its share (no bound)",
            (_, 0) => "behind its share (bounds far above)",
            _ => "behind its share (dashed: bounds)",
        };
        lines.extend(bounds);
        self.panel(title, "shortfall", lines)
    }

    fn panel(&self, title: &str, what: &str, lines: Vec<Line>) -> Panel {
        let [from, to] = [self.recording.from, self.recording.to].map(|at| self.seconds(at as f64));
        Panel {
            title: format!("{}: {title}", self.trial.algorithm),
            x: Axis::linear("time", "s").within(from, to),
            y: Axis::linear(what, "B"),
            lines,
        }
    }

    fn curves(&self) -> impl Iterator<Item = (usize, &Curves)> {
        self.recording.curves.iter().enumerate()
    }

    fn name(&self, flow: usize) -> String {
        let weight = self.trial.flows[flow].weight;
        let share = f64::from(weight) / self.trial.weights as f64 * 100.0;
        let digits = if share < 0.1 { 4 } else { 1 };
        format!("flow {flow}: weight {weight} ({share:.digits$} %)")
    }

    fn points(&self, points: &[(f64, f64)], value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        points.iter().map(|&(at, bytes)| (self.seconds(at), value(bytes))).collect()
    }

    fn seconds(&self, byte_times: f64) -> f64 {
        byte_times * 8.0 / self.rate.bits_per_second() as f64
    }
}
