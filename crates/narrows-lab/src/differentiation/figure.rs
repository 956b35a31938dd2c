//! Plots ratios over load.

use super::report::{average, list};
use super::{Differentiation, Point};
use crate::plot::{Axis, Figure, Line, Panel, Style};

impl Differentiation {
    /// A panel for each arrival process and each list of δ, with a line for each g and class.
    pub fn figure(&self) -> Figure {
        let same = |one: &Point, other: &Point| one.traffic == other.traffic && one.ddps == other.ddps;
        Figure {
            title: "Ratios of mean waits under hybrid proportional delay".into(),
            subtitle: format!(
                "{} packets a run, {}, seed {}; dashed: asked, dotted: Kleinrock's theory for g = 0",
                self.options.packets,
                average(self.options.average),
                self.options.seed.0
            ),
            columns: self.options.ddps.len().clamp(1, 2),
            panels: self.points.chunk_by(same).map(panel).collect(),
        }
    }
}

fn panel(points: &[Point]) -> Panel {
    let Some(first) = points.first() else {
        unreachable!("a chunk is never empty");
    };
    let loads = || points.iter().map(|point| point.load);
    let (least, most) = (loads().fold(100.0, f64::min), loads().fold(0.0, f64::max));
    let mut lines = Vec::new();
    for (class, asked) in first.asked().into_iter().enumerate() {
        lines.push(Line::new("", 6, vec![(least, asked), (most, asked)]).styled(Style::Dashed));
        for (colour, of_g) in points.chunk_by(|one, other| one.g == other.g).enumerate() {
            let along = |value: &dyn Fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
                of_g.iter().filter_map(|point| Some((point.load, value(point)?))).collect()
            };
            let theory = along(&|point| point.theory.as_ref().map(|theory| theory[class]));
            if !theory.is_empty() {
                lines.push(Line::new("", colour, theory).styled(Style::Dotted));
            }
            let name = if class == 0 { format!("g = {}/1024", of_g[0].g) } else { String::new() };
            lines.push(Line::new(name, colour, along(&|point| Some(point.ratios()[class]))));
        }
    }
    Panel {
        title: format!("{}, ddp {}", first.traffic.name(), list(&first.ddps)),
        x: Axis::linear("load, %", "").within(least, most),
        y: Axis::linear("wait, of the first class's", ""),
        lines,
    }
}
