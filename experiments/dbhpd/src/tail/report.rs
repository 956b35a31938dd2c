//! The study as Markdown: a table for each mix and load, and what follows from it.

use std::fmt::{self, Write};

use super::{CLASSES, Part, SOUND, SUBJECTS, TailStudy};

/// By how much a quantile of the tail must differ to be called another one.
const NOTABLE: f64 = 1.5;

impl TailStudy {
    /// Tables and findings.
    pub fn text(&self) -> impl fmt::Display + '_ {
        Text(self)
    }
}

struct Text<'a>(&'a TailStudy);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(study) = self;
        let seconds = study.span.seconds();
        writeln!(f, "# The tail of DBHPD's delays: {seconds} s of open-loop traffic, seed {}", study.seed)?;
        for part in &study.parts {
            writeln!(f, "\n{part}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "## Mix {}, {:.2} Mbit/s offered: FIFO loses {:.0} %\n",
            self.mix,
            self.offered as f64 / 1e6,
            self.loss * 100.0
        )?;
        writeln!(f, "Delays in ms: the median, 99 %, 99.9 %, the longest; and the packets lost.\n")?;
        write!(f, "| |")?;
        for class in CLASSES {
            write!(f, " {class} p50 | p99 | p99.9 | most | lost |")?;
        }
        writeln!(f, "\n|---|{}", "---:|".repeat(5 * CLASSES.len()))?;
        for (subject, run) in SUBJECTS.iter().zip(&self.runs) {
            write!(f, "| {} |", subject.name)?;
            for delays in run {
                for q in [0.5, 0.99, 0.999, 1.0] {
                    let delay = delays.quantile(q).map_or("-".into(), |delay| format!("{:.1}", delay * 1e3));
                    write!(f, " {delay} |")?;
                }
                let lost = delays.loss().map_or("-".into(), |lost| format!("{:.1} %", lost * 100.0));
                write!(f, " {lost} |")?;
            }
            writeln!(f)?;
        }
        writeln!(f)?;
        for (number, class) in CLASSES.iter().enumerate() {
            writeln!(f, "- {class}: {}", self.finding(number))?;
        }
        Ok(())
    }
}

impl Part {
    /// Which arithmetics change the tail of a class, by their 99.9 %.
    fn finding(&self, class: usize) -> String {
        let tail = |subject: usize| self.runs[subject][class].quantile(0.999);
        let Some(sound) = tail(SOUND) else { return "nothing came through.".into() };
        let ratios =
            || (SOUND + 1..SUBJECTS.len()).filter_map(|subject| Some((subject, tail(subject)? / sound)));
        let list = |chosen: &dyn Fn(f64) -> bool| {
            let mut text = String::new();
            for (subject, ratio) in ratios().filter(|&(_, ratio)| chosen(ratio)) {
                let comma = if text.is_empty() { "" } else { ", " };
                write!(text, "{comma}{} (×{ratio:.2})", SUBJECTS[subject].name)
                    .expect("a string takes everything");
            }
            if text.is_empty() { "none".into() } else { text }
        };
        format!(
            "99.9 % without faults {:.1} ms. Longer by half or more: {}. Shorter by a third or more: {}.",
            sound * 1e3,
            list(&|ratio| ratio >= NOTABLE),
            list(&|ratio| ratio <= 1.0 / NOTABLE),
        )
    }
}
