//! The results as a page of plots, in the order of the papers.

use narrows_core::model::quantile;
use narrows_lab::plot::{Axis, Figure, Line, Panel, Style};

use crate::accuracy::{Accuracy, COMMON};
use crate::asked::{Path, Setting};
use crate::numbers::thousands;
use crate::together::Together;
use crate::{Calibration, Sender, Spread};

impl Calibration {
    /// The page: distributions of times and errors as in figures 6.2 to 6.6 of Grohmann 2023, and the timers as in
    /// figure 6 of Carbone and Rizzo.
    pub fn page(&self) -> Figure {
        let base = self.accuracy.iter().map(|row| row.asked_per_second).min().unwrap_or_default();
        let at_base: Vec<&Accuracy> =
            self.accuracy.iter().filter(|row| row.asked_per_second == base).collect();
        let rate = format!("{} packets a second", thousands(base));
        let mut panels = vec![
            overhead(&at_base, &rate),
            constant(&at_base, &rate),
            distribution(&at_base, &rate),
            self.by_rate(),
            self.distribution_by_rate(),
            self.round_trips(),
        ];
        panels.extend(self.waits());
        panels.push(together(&self.together));
        Figure { title: "Accuracy of this host".into(), subtitle: self.in_short(), columns: 2, panels }
    }

    /// Figure 6.5: quartiles and p99 of the error by rate.
    fn by_rate(&self) -> Panel {
        let mut lines = Vec::new();
        let paths = [Path::Narrows, Path::Forwarder, Path::Netem];
        for (colour, path) in paths.into_iter().filter(|path| !self.lacking.contains(path)).enumerate() {
            let mut rows: Vec<&Accuracy> =
                self.accuracy.iter().filter(|row| row.path == path && row.setting == COMMON).collect();
            rows.sort_by_key(|row| row.asked_per_second);
            for (percent, style) in [(50, Style::Solid), (99, Style::Dashed)] {
                let points = rows
                    .iter()
                    .map(|row| (f64::from(row.asked_per_second) / 1e3, row.error.percentile(percent) / 1e9));
                let what = if percent == 50 { "p50" } else { "p99" };
                lines.push(Line::new(format!("{path}, {what}"), colour, points.collect()).styled(style));
            }
        }
        Panel {
            title: "A delay of 100 µs at higher rates".into(),
            x: Axis::linear("packets a second", "thousands"),
            y: Axis::linear("too late", "s"),
            lines,
        }
    }

    /// Figure 6.6: the distribution at each rate.
    fn distribution_by_rate(&self) -> Panel {
        let narrows = self.accuracy.iter().filter(|row| row.path == Path::Narrows);
        let rows = narrows.filter(|row| matches!(row.setting, Setting::Reordering { .. }));
        let mut lines: Vec<Line> = rows
            .enumerate()
            .map(|(colour, row)| {
                cumulative(format!("{}/s", thousands(row.asked_per_second)), colour, &row.one_way)
            })
            .collect();
        lines.push(asked());
        Panel {
            title: "The distribution at higher rates".into(),
            x: Axis::linear("one-way time", "s"),
            y: Axis::linear("packets", "%"),
            lines,
        }
    }

    fn round_trips(&self) -> Panel {
        let line = |(colour, row): (usize, &crate::RoundTrip)| {
            let style = [Style::Solid, Style::Dashed, Style::Dotted][colour / 3 % 3];
            let links = match row.links {
                0 => "cable".into(),
                1 => "1 link".into(),
                more => format!("{more} links"),
            };
            cumulative(format!("{links}, {}", row.load.name()), colour % 3, &row.times).styled(style)
        };
        Panel {
            title: "Round trips without a delay".into(),
            x: Axis::logarithmic("round trip", "s"),
            y: Axis::linear("packets", "%"),
            lines: self.round_trips.iter().enumerate().map(line).collect(),
        }
    }

    /// Figure 6, both halves: distributions with an independent sender, and consecutive packets with synchronised
    /// senders.
    fn waits(&self) -> Vec<Panel> {
        let independent = self.timers.iter().filter(|row| row.sender == crate::timers::SENDERS[0]);
        let lines =
            independent.enumerate().map(|(colour, row)| cumulative(row.wait.into(), colour, &row.error));
        let top = Panel {
            title: "A delay of 10 ms, by wait method".into(),
            x: Axis::logarithmic("too late", "s"),
            y: Axis::linear("packets", "%"),
            lines: lines.collect(),
        };
        let in_step = self.timers.iter().filter(|row| row.wait == "timer");
        let lines = in_step.enumerate().map(|(colour, row)| {
            let name = match row.sender {
                Sender::Every(gap) => format!("every {:.2} ms", gap as f64 / 1e6),
                Sender::Flood => "flood".into(),
            };
            let points =
                row.first_ns.iter().zip(1..).map(|(&error, number)| (f64::from(number), error as f64 / 1e9));
            Line::new(name, colour, points.collect())
        });
        let bottom = Panel {
            title: "The same by timer alone, packet by packet".into(),
            x: Axis::linear("packet", ""),
            y: Axis::linear("too late", "s"),
            lines: lines.collect(),
        };
        vec![top, bottom]
    }
}

/// Figure 6.2: the path's own time without a delay.
fn overhead(rows: &[&Accuracy], rate: &str) -> Panel {
    let lines = rows
        .iter()
        .filter(|row| {
            row.setting == Setting::Constant(0) || (row.path, row.setting) == (Path::Forwarder, COMMON)
        })
        .enumerate()
        .map(|(colour, row)| {
            let held = row.setting.mean() as f64;
            cumulative(row.path.to_string(), colour, &row.one_way.less(held))
        });
    Panel {
        title: format!("Overhead without a delay, {rate}"),
        x: Axis::linear("one-way time", "s"),
        y: Axis::linear("packets", "%"),
        lines: lines.collect(),
    }
}

/// Figure 6.3: constant delays.
fn constant(rows: &[&Accuracy], rate: &str) -> Panel {
    let lines = rows
        .iter()
        .filter(|row| matches!(row.path, Path::Narrows | Path::Netem))
        .filter(|row| matches!(row.setting, Setting::Constant(_)))
        .enumerate()
        .map(|(colour, row)| {
            let styles = if row.path == Path::Netem { Style::Dashed } else { Style::Solid };
            cumulative(format!("{}, {}", row.path, row.setting), colour % 4, &row.error).styled(styles)
        });
    Panel {
        title: format!("Constant delays, {rate}"),
        x: Axis::linear("too late", "s"),
        y: Axis::linear("packets", "%"),
        lines: lines.collect(),
    }
}

/// Figure 6.4: a distribution.
fn distribution(rows: &[&Accuracy], rate: &str) -> Panel {
    let emulators = rows.iter().filter(|row| matches!(row.path, Path::Narrows | Path::Netem));
    let normal = emulators.filter(|row| !matches!(row.setting, Setting::Constant(_)));
    let mut lines: Vec<Line> = normal
        .enumerate()
        .map(|(colour, row)| cumulative(format!("{}, {}", row.path, row.setting), colour, &row.one_way))
        .collect();
    lines.push(asked());
    Panel {
        title: format!("Normal, 200 ± 25 µs, {rate}"),
        x: Axis::linear("one-way time", "s"),
        y: Axis::linear("packets", "%"),
        lines,
    }
}

/// The configured normal distribution.
fn asked() -> Line {
    let points =
        (1..200).map(|step| (200e-6 + 25e-6 * quantile(f64::from(step) / 200.0), f64::from(step) / 2.0));
    Line::new("asked for", 6, points.collect()).styled(Style::Dotted)
}

fn together(rows: &[Together]) -> Panel {
    let points = |value: fn(&Together) -> f64| {
        rows.iter().map(|row| (row.links as f64, value(row) / 1e9)).collect::<Vec<_>>()
    };
    Panel {
        title: "Links whose packets fall due together".into(),
        x: Axis::linear("links", ""),
        y: Axis::linear("first to last", "s"),
        lines: vec![
            Line::new("p50", 0, points(|row| row.apart.median())),
            Line::new("99 %", 0, points(|row| row.apart.percentile(99))).styled(Style::Dashed),
            Line::new("(N − 1)·L/B", 6, points(|row| row.expected_ns)).styled(Style::Dotted),
        ],
    }
}

/// A cumulative distribution: the share of packets up to each percentile, in seconds. The last percent is omitted,
/// because one outlier would compress the rest.
fn cumulative(name: String, colour: usize, spread: &Spread) -> Line {
    let points = spread.percentiles_ns.iter().take(100).zip(0..);
    Line::new(name, colour, points.map(|(nanos, percent)| (nanos / 1e9, f64::from(percent))).collect())
}
