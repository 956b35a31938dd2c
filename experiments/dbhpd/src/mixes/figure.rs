//! Cumulative distributions of delays by class, as the thesis's figures 7.1 to 7.4.

use super::{CLASSES, MixRun, Section};
use narrows_lab::plot::{Axis, Figure, Line, Panel, Style};

/// The thesis's axes end here.
const AXIS: f64 = 0.1;

impl Section {
    /// A panel for each class, with a line for each of the four schedulers.
    pub fn figure(&self) -> Figure {
        let panel = |class: usize| {
            let line = |(colour, run): (usize, &MixRun)| {
                Line::new(run.name, colour, run.classes[class].distribution())
            };
            Panel {
                title: CLASSES[class].into(),
                x: Axis::linear("delay", "s").within(0.0, AXIS),
                y: Axis::linear("share of packets", "").within(0.0, 1.0),
                lines: self.runs.iter().take(4).enumerate().map(line).collect(),
            }
        };
        self.with(String::new(), (0..CLASSES.len()).map(panel).collect())
    }

    /// VoIP under CBQ and HPD, as figure 7.2, where that is about this mix.
    pub fn voip(&self) -> Option<Figure> {
        let line = |colour: usize, name: &str| {
            Some(Line::new(self.of(name)?.name, colour, self.of(name)?.classes[0].distribution()))
        };
        let panel = Panel {
            title: "VoIP, CBQ and HPD".into(),
            x: Axis::linear("delay", "s"),
            y: Axis::linear("share of packets", "").within(0.0, 1.0),
            lines: vec![line(2, "CBQ")?, line(3, "HPD")?],
        };
        let figure = Figure { columns: 1, ..self.with(String::new(), vec![panel]) };
        (self.setting.mix == 1).then_some(figure)
    }

    /// The tails, in powers of ten, with the published arithmetic beside the schedulers.
    pub fn tails(&self) -> Figure {
        let panel = |class: usize| {
            let line = |(colour, run): (usize, &MixRun)| {
                let style = if colour < 4 { Style::Solid } else { Style::Dashed };
                Line::new(run.name, colour, run.classes[class].tail()).styled(style)
            };
            Panel {
                title: CLASSES[class].into(),
                x: Axis::logarithmic("delay", "s"),
                y: Axis::logarithmic("share of packets with more", "").within(1e-4, 1.0),
                lines: self.runs.iter().take(7).enumerate().map(line).collect(),
            }
        };
        self.with(": tails".into(), (0..CLASSES.len()).map(panel).collect())
    }

    fn with(&self, more: String, panels: Vec<Panel>) -> Figure {
        let name = self.setting.name;
        let title = format!("Mix {}, {name}{more}", self.setting.mix);
        let load = format!("{:.1} Mbit/s", self.bits / 1e6);
        let subtitle = format!("{load} offered on 10 Mbit/s, {}", self.setting.medium.name());
        Figure { title, subtitle, columns: 2, panels }
    }
}
