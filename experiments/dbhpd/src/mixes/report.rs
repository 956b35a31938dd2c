//! The tables of the thesis beside ours, and what follows from both.

use std::fmt::Write;

use super::{CLASSES, Load, MOST, Medium, Section};

/// A table of the thesis, in hundredths: by scheduler (FIFO, PRIQ, CBQ, HPD) the loss of packets, that from the client, that
/// from the server; and the transactions that succeeded by class (VoIP, WWW, FTP, noise).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThesisTable {
    /// Its number.
    pub number: &'static str,
    lost: [[f64; 3]; 4],
    succeeded: [[f64; 4]; 4],
}

const LOW_NOISE: ThesisTable = ThesisTable {
    number: "7.2",
    lost: [[5.03, 6.90, 3.42], [5.81, 8.30, 3.63], [5.51, 7.88, 3.45], [5.65, 8.27, 3.35]],
    succeeded: [
        [100.0, 99.77, 100.0, 99.51],
        [100.0, 99.81, 100.0, 99.72],
        [100.0, 99.73, 100.0, 99.47],
        [100.0, 99.78, 100.0, 99.45],
    ],
};
const HIGH_NOISE: ThesisTable = ThesisTable {
    number: "7.3",
    lost: [[4.43, 5.15, 3.81], [3.94, 4.32, 3.62], [3.73, 4.12, 3.42], [3.80, 4.39, 3.32]],
    succeeded: [
        [100.0, 88.46, 100.0, 90.13],
        [100.0, 99.76, 100.0, 88.62],
        [100.0, 99.66, 100.0, 88.63],
        [100.0, 99.64, 100.0, 86.73],
    ],
};

/// Differences of so many hundredths are called agreement.
const CLOSE: f64 = 2.0;
/// A share of successes below this, in hundredths, is called trouble.
const WELL: f64 = 99.0;

/// A line of a table: what it is, and for each scheduler the thesis's value and ours, in hundredths.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// The thesis's, where it has one, and ours, where there is one.
    pub values: Vec<(Option<f64>, Option<f64>)>,
}

/// All simulations in short, for a terminal: what was lost, and VoIP's delays.
pub fn text(sections: &[Section]) -> String {
    let mut text = format!(
        "{:<76}{:>8}",
        "packets lost, and the delay that 99.9 % of VoIP's packets had at most", "Mbit/s"
    );
    for run in sections.first().map_or(&[][..], |section| &section.runs[..4]) {
        write!(text, "{:>18}", run.name).expect("a string takes everything");
    }
    for section in sections {
        let setting = &section.setting;
        let name = format!("mix {}, {}, {}", setting.mix, setting.name, setting.medium.name());
        write!(text, "\n{name:<76}{:>8.1}", section.bits / 1e6).expect("a string takes everything");
        for run in section.runs.iter().take(4) {
            let voip = run.classes[0].quantile(0.999).map_or("-".into(), milliseconds);
            let cell = format!("{:.1} %, {voip}", run.loss() * 100.0);
            write!(text, "{cell:>18}").expect("a string takes everything");
        }
    }
    text + "\n"
}

impl Section {
    /// The thesis's table for this simulation, if it has one.
    pub fn table(&self) -> Option<&'static ThesisTable> {
        match (self.setting.mix, self.setting.load) {
            (1, _) => Some(&LOW_NOISE),
            (2, Load::Bits(bits)) if bits < 5e6 => Some(&HIGH_NOISE),
            (2, Load::Loss(loss)) if loss < 0.1 => Some(&HIGH_NOISE),
            _ => None,
        }
    }

    /// The rows of tables 7.2 and 7.3, for the four schedulers.
    pub fn rows(&self) -> Vec<Row> {
        let table = self.table();
        let four = || self.runs.iter().take(4).enumerate();
        let percent = |part: Option<f64>| part.map(|part| part * 100.0);
        let mut rows = Vec::new();
        for (place, name) in
            ["packets lost", "– from the client", "– from the server"].into_iter().enumerate()
        {
            let ours = |run: &super::MixRun| match place {
                0 => Some(run.loss()),
                way => run.lost[way - 1],
            };
            let values = four()
                .map(|(number, run)| (table.map(|table| table.lost[number][place]), percent(ours(run))));
            rows.push(Row { name: name.into(), values: values.collect() });
        }
        for (class, name) in CLASSES.iter().enumerate() {
            let values = four().map(|(number, run)| {
                (table.map(|table| table.succeeded[number][class]), percent(run.succeeded[class]))
            });
            rows.push(Row { name: format!("transactions: {name}"), values: values.collect() });
        }
        rows
    }

    /// What the tables and the distributions say, in sentences.
    pub fn findings(&self) -> Vec<String> {
        let mut all = vec![self.loads()];
        if self.table().is_some() {
            all.extend([self.losses(), self.successes()]);
        }
        all.push(self.certainty());
        all.push(self.tails_in_words());
        all.extend(self.linear());
        all
    }

    fn loads(&self) -> String {
        let fifo = &self.runs[0];
        let name = match self.setting.load {
            Load::Bits(_) => "The thesis's load is".into(),
            Load::Loss(loss) => {
                let reached = fifo.loss() * 100.0;
                if self.bits > 0.95 * MOST {
                    format!(
                        "Nothing that was tried makes FIFO lose {:.0} %, as TCP gives way; it loses {reached:.1} % at",
                        loss * 100.0
                    )
                } else {
                    format!("FIFO loses {reached:.1} % at")
                }
            }
        };
        format!(
            "{name} {:.1} Mbit/s on the wire, both ways together. Through FIFO the hosts sent {:.1} Mbit/s, with what they had to \
             send again and without what did not come about.",
            self.bits / 1e6,
            fifo.sent / 1e6
        )
    }

    fn losses(&self) -> String {
        let row = &self.rows()[0];
        let (theirs, ours): (Vec<f64>, Vec<f64>) =
            row.values.iter().filter_map(|&(theirs, ours)| theirs.zip(ours)).unzip();
        let span = |values: &[f64]| {
            let (least, most) =
                values.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &value| (a.min(value), b.max(value)));
            (least, most, format!("{least:.1} to {most:.1} %"))
        };
        let ((.., their_most, their_text), (our_least, our_most, our_text)) = (span(&theirs), span(&ours));
        let verdict = if our_most < their_most - CLOSE {
            match self.setting.medium {
                Medium::Half => {
                    "less: this load fills the queues in bursts only. On the thesis's Ethernet collisions took a part of the \
                     link, which they do not here"
                }
                Medium::Collisions => {
                    "less: this load fills the queues in bursts only, though collisions take a part of the link, as they did there"
                }
                Medium::Full => {
                    "less: this load fills the queues in bursts only, with a wire for each direction"
                }
            }
        } else if our_least > their_most + CLOSE {
            "more: clients that keep to a load whatever becomes of it go on opening connections on a full link"
        } else if our_most > their_most + CLOSE {
            "which agrees for the scheduler with the least, and is more for others: queues of 50 packets for each class hold \
             less of a burst than one of 100"
        } else {
            "which agrees"
        };
        let way = |values: &dyn Fn(&Row) -> Vec<f64>| {
            let rows = self.rows();
            let [client, server] = [1, 2].map(|row| values(&rows[row]).iter().sum::<f64>());
            if client > server { "from the client" } else { "from the server" }
        };
        let theirs = way(&|row| row.values.iter().filter_map(|value| value.0).collect());
        let ours = way(&|row| row.values.iter().filter_map(|value| value.1).collect());
        format!(
            "Packets lost: in the thesis {their_text}, here {our_text}, {verdict}. More are lost {theirs} there, and {ours} here."
        )
    }

    fn successes(&self) -> String {
        let rows = self.rows();
        let mut both = [Vec::new(), Vec::new()];
        for row in &rows[3..] {
            for (number, &(theirs, ours)) in row.values.iter().enumerate() {
                let class = row.name.trim_start_matches("transactions: ");
                for (value, list) in [theirs, ours].into_iter().zip(&mut both) {
                    if value.is_some_and(|value| value < WELL) {
                        list.push(format!("{class} under {}", self.runs[number].name));
                    }
                }
            }
        }
        let text = |list: &Vec<String>| if list.is_empty() { "none".into() } else { list.join(", ") };
        let [theirs, ours] = &both;
        let verdict = if theirs == ours {
            "They agree.".into()
        } else {
            let only = |list: &[String], other: &[String]| {
                list.iter().filter(|entry| !other.contains(entry)).cloned().collect::<Vec<_>>()
            };
            let (missing, more) = (only(theirs, ours), only(ours, theirs));
            format!("In the thesis only: {}. Here only: {}.", text(&missing), text(&more))
        };
        format!(
            "Transactions of which less than {WELL:.0} % succeeded: in the thesis {}; here {}. {verdict}",
            text(theirs),
            text(ours)
        )
    }

    /// How much stands behind the figures: the calls, and intervals of 95 %.
    fn certainty(&self) -> String {
        let mut text = String::from("How certain that is (95 %):");
        for (number, run) in self.runs.iter().take(4).enumerate() {
            let answered = run.succeeded[0].map_or(0.0, |share| share * run.calls as f64);
            let (least, most) = wilson(answered, run.calls as f64);
            let separator = if number == 0 { "" } else { ";" };
            let calls = if run.calls == 1 { "call" } else { "calls" };
            write!(
                text,
                "{separator} {}: {} {calls} of VoIP, so that {:.0} to {:.0} % succeed",
                run.name,
                run.calls,
                least * 100.0,
                most * 100.0
            )
            .expect("a string takes everything");
            if let Some((least, most)) = interval(&run.tenths) {
                write!(text, ", and {:.1} to {:.1} % of all packets are lost", least * 100.0, most * 100.0)
                    .expect("a string takes everything");
            }
        }
        text + ". Losses by the tenths of a run; calls by Wilson's interval, as if they failed independently. VoIP's delays are \
                those of the packets of so few calls, which lie close together: no interval is given for them."
    }

    /// Whose delays have the longest tail.
    fn tails_in_words(&self) -> String {
        let mut text = String::from("Delays that 99.9 % of the packets had at most: ");
        let (mut longest, mut count) = (Vec::new(), 0);
        for (class, name) in CLASSES.iter().enumerate() {
            let tails: Vec<(f64, &str)> = self
                .runs
                .iter()
                .take(4)
                .filter_map(|run| Some((run.classes[class].quantile(0.999)?, run.name)))
                .collect();
            let list: Vec<String> =
                tails.iter().map(|(delay, name)| format!("{name} {}", milliseconds(*delay))).collect();
            if class > 0 {
                text.push_str("; ");
            }
            write!(text, "{name}: {}", list.join(", ")).expect("a string takes everything");
            let most = tails.iter().max_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((_, "HPD")) = most {
                longest.push(*name);
            }
            count += usize::from(most.is_some());
        }
        let verdict = match longest.len() {
            0 => "the thesis has HPD's as the longest in every class; here it is in none".into(),
            all if all == count => "HPD has the longest in every class, as in the thesis".into(),
            _ => format!(
                "the thesis has HPD's as the longest in every class; here it is for {}",
                longest.join(" and ")
            ),
        };
        format!("{text}. So {verdict}.")
    }

    /// Under overload the thesis sees a distribution that is "almost linear" under HPD.
    fn linear(&self) -> Option<String> {
        let overload = match self.setting.load {
            Load::Bits(bits) => bits > 6e6 && self.setting.mix > 1,
            Load::Loss(loss) => loss > 0.2,
        };
        let hpd = self.of("HPD")?;
        let far: Vec<String> = CLASSES
            .iter()
            .zip(&hpd.classes)
            .filter_map(|(name, delays)| Some(format!("{name} {:.2}", from_a_line(&delays.distribution())?)))
            .collect();
        overload.then(|| {
            format!(
                "The thesis says that HPD's distribution becomes almost linear here. The greatest distance of the share from \
                 a straight line that goes from 0 to the 99 % point: {} (0.5 and more is a step, 0 the line).",
                far.join(", ")
            )
        })
    }
}

/// The interval of 95 % of a share, of which `good` of `all` were (E. B. Wilson, JASA 22, 1927); everything without any.
fn wilson(good: f64, all: f64) -> (f64, f64) {
    if all == 0.0 {
        return (0.0, 1.0);
    }
    const Z: f64 = 1.96;
    let (share, square) = (good / all, Z * Z / all);
    let middle = share + square / 2.0;
    let half = Z * libm::sqrt(share * (1.0 - share) / all + square / (4.0 * all));
    (((middle - half) / (1.0 + square)).max(0.0), ((middle + half) / (1.0 + square)).min(1.0))
}

/// The interval of 95 % of the mean of ten batches, by Student's t; nothing where there are not ten.
fn interval(batches: &[f64]) -> Option<(f64, f64)> {
    /// 97.5 % with nine degrees of freedom.
    const T: f64 = 2.262;
    if batches.len() != 10 {
        return None;
    }
    let mean = batches.iter().sum::<f64>() / 10.0;
    let variance = batches.iter().map(|batch| (batch - mean) * (batch - mean)).sum::<f64>() / 9.0;
    let half = T * libm::sqrt(variance / 10.0);
    Some(((mean - half).max(0.0), (mean + half).min(1.0)))
}

/// The greatest distance of a distribution from a straight line, up to its point of 99 %.
fn from_a_line(points: &[(f64, f64)]) -> Option<f64> {
    let &(end, share) = points.iter().find(|(_, share)| *share >= 0.99)?;
    let distance = |&(delay, share_there): &(f64, f64)| (share_there - delay / end * share).abs();
    let below = points.iter().take_while(|(delay, _)| *delay <= end);
    (end > 0.0).then(|| below.map(distance).fold(0.0, f64::max))
}

/// A time, with three digits that count.
pub(crate) fn milliseconds(seconds: f64) -> String {
    let millis = seconds * 1e3;
    let digits = if millis >= 99.95 { 0 } else { 1 };
    format!("{millis:.digits$} ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_books() {
        // Nine of nine: 9/(9 + 1.96²).
        let (least, most) = wilson(9.0, 9.0);
        assert!((least - 9.0 / (9.0 + 1.96 * 1.96)).abs() < 1e-9 && most > 0.999_999);
        assert_eq!(wilson(0.0, 0.0), (0.0, 1.0));
        assert_eq!(interval(&[0.5; 10]), Some((0.5, 0.5)));
        let halves: Vec<f64> = (0..10).map(|n| f64::from(n % 2)).collect();
        let (least, most) = interval(&halves).unwrap();
        // s = √(10/4/9), and the mean's is a √10th.
        let half = 2.262 * (2.5_f64 / 9.0 / 10.0).sqrt();
        assert!((least - 0.5 + half).abs() < 1e-9 && (most - 0.5 - half).abs() < 1e-9);
        assert_eq!(interval(&[0.1]), None);
    }

    #[test]
    fn a_line_is_told_from_a_step() {
        let line: Vec<(f64, f64)> =
            (0..=100).map(|step| (f64::from(step), f64::from(step) / 100.0)).collect();
        assert!(from_a_line(&line).is_some_and(|far| far < 1e-9));
        let step = [(0.0, 0.0), (99.0, 0.0), (100.0, 1.0)];
        assert!(from_a_line(&step).is_some_and(|far| far > 0.9));
        assert_eq!(from_a_line(&[]), None);
    }
}
