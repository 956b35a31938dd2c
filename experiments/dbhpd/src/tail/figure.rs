//! The tails as figures: for each class, which share of the packets waited longer.

use super::{CLASSES, Part, SUBJECTS, TailStudy};
use narrows_lab::plot::{Axis, Figure, Line, Panel, Style};

/// The last share that is drawn.
const LEAST: f64 = 1e-4;

/// What one figure compares.
struct View {
    file: &'static str,
    title: &'static str,
    subjects: &'static [(&'static str, Style)],
}

const VIEWS: [View; 3] = [
    View {
        file: "schedulers",
        title: "Delays by scheduler",
        subjects: &[
            ("FIFO", Style::Solid),
            ("PRIQ", Style::Solid),
            ("CBQ", Style::Solid),
            ("HPD", Style::Solid),
            ("as printed", Style::Dashed),
            ("as printed, 32 bits", Style::Dashed),
            ("×1024, else no fault", Style::Dashed),
        ],
    },
    View {
        file: "faults",
        title: "Delays with each fault of the listing alone",
        subjects: &[
            ("published, no fault", Style::Solid),
            ("average never divided", Style::Solid),
            ("remainder for quotient", Style::Dotted),
            ("idle when all are", Style::Dotted),
            ("tentative average", Style::Solid),
            ("limit forgets its wait", Style::Dotted),
            ("32 bits", Style::Dashed),
        ],
    },
    View {
        file: "clock",
        title: "Delays by what the clock counts",
        subjects: &[
            ("published, no fault", Style::Solid),
            ("no fault, jiffies", Style::Dashed),
            ("as printed", Style::Solid),
            ("as printed, jiffies", Style::Dashed),
            ("as printed, 32 bits", Style::Solid),
            ("as printed, 32 bits, jiffies", Style::Dashed),
        ],
    },
];

impl TailStudy {
    /// Figures with the names of their files, without a suffix.
    pub fn figures(&self) -> Vec<(String, Figure)> {
        let of = |part: &Part| {
            let name =
                |view: &View| format!("mix-{}-{:.0}-percent-{}", part.mix, part.loss * 100.0, view.file);
            VIEWS.iter().map(|view| (name(view), self.figure(part, view))).collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(of).collect()
    }

    fn figure(&self, part: &Part, view: &View) -> Figure {
        let panel = |class: usize| {
            let lines = view.subjects.iter().enumerate().filter_map(|(colour, &(name, style))| {
                let number = SUBJECTS.iter().position(|subject| subject.name == name)?;
                let points = part.runs[number][class].tail();
                Some(Line::new(name, colour, points).styled(style))
            });
            Panel {
                title: CLASSES[class].into(),
                x: Axis::logarithmic("delay", "s"),
                y: Axis::logarithmic("share of packets with more", "").within(LEAST, 1.0),
                lines: lines.collect(),
            }
        };
        Figure {
            title: format!("{}: mix {}, {:.0} % loss", view.title, part.mix, part.loss * 100.0),
            subtitle: format!(
                "{:.1} Mbit/s of open-loop traffic on 10 Mbit/s, {} s, seed {}",
                part.offered as f64 / 1e6,
                self.span.seconds(),
                self.seed
            ),
            columns: 2,
            panels: (0..CLASSES.len()).map(panel).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Contender;
    use crate::tail::SOUND;

    #[test]
    fn every_line_of_a_figure_is_a_subject() {
        for view in VIEWS {
            for (name, _) in view.subjects {
                assert!(SUBJECTS.iter().any(|subject| subject.name == *name), "{name}");
            }
        }
        let sound = SUBJECTS[SOUND].contender;
        assert!(matches!(sound, Contender::Published(faults, _) if faults == Default::default()));
    }
}
