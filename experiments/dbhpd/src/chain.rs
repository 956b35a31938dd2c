//! The thesis's delay tests (section 6.2): a chain of four routers, at each of which 2.5 Mbit/s come in that leave at the end.
//!
//! The thesis measured what the router's processor adds, and found no difference between schedulers. In virtual time a
//! processor adds nothing: what is left is the transmission and what packets wait for one another. Its rates for CBQ (8, 1
//! and 1 Mbit/s) and its delays of less than two milliseconds go with links of 100 Mbit/s. Packets come at random, not evenly as
//! the thesis's: even streams of one pace keep their places among one another for good, and their delays say nothing else.

use std::cell::RefCell;
use std::rc::Rc;

use narrows_core::Duration;
use narrows_report::PacketRow;
use narrows_scenario::Scenario;
use narrows_sim::{SimOptions, observe};

use super::mixes::MixError;
use super::parallel::each;
use super::scenarios;
use super::setup::Contender;
use narrows_lab::plot::{Axis, Figure, Line, Panel, Style};

/// Bytes of the packets.
pub const LENGTHS: [u32; 5] = [80, 160, 320, 640, 1280];

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainTests {
    /// Length by length, scheduler by scheduler.
    pub rows: Vec<ChainRow>,
}

/// What came of one scheduler with packets of one length.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChainRow {
    /// Bytes.
    pub length: u32,
    /// The scheduler.
    pub contender: Contender,
    /// How many classes of traffic there are, 1 or 3.
    pub classes: usize,
    /// The mean delay over 1 to 4 hops, in seconds.
    pub means: [f64; 4],
    /// The scenario.
    pub scenario: String,
}

/// Runs all of them.
///
/// # Errors
/// When a run fails.
pub fn run(seed: u64, span: Duration) -> Result<ChainTests, MixError> {
    let mut jobs = Vec::new();
    for length in LENGTHS {
        for contender in Contender::FOUR {
            let counts: &[usize] = if contender == Contender::Fifo { &[1] } else { &[1, 3] };
            jobs.extend(counts.iter().map(|&classes| (length, contender, classes)));
        }
    }
    let rows = each(&jobs, |&(length, contender, classes)| one(length, contender, classes, seed, span));
    Ok(ChainTests { rows: rows.into_iter().collect::<Result<_, _>>()? })
}

fn one(
    length: u32,
    contender: Contender,
    classes: usize,
    seed: u64,
    span: Duration,
) -> Result<ChainRow, MixError> {
    let text = scenarios::chain(length, contender, classes, seed, span);
    let scenario = Scenario::parse(&text, "chain.toml")?;
    let sums: Rc<RefCell<[(u128, u64); 4]>> = Rc::default();
    let theirs = Rc::clone(&sums);
    let observer = move |packet: &PacketRow<'_>| {
        // `source-3-class-2` crosses three hops.
        let hops = packet.feed.strip_prefix("source-").and_then(|rest| rest[..1].parse::<usize>().ok());
        if let Some(hops) = hops.filter(|_| packet.delivered) {
            let (sum, count) = &mut theirs.borrow_mut()[hops - 1];
            *sum += u128::from(packet.at.since(packet.arrival).nanos());
            *count += 1;
        }
    };
    observe(&scenario, &SimOptions::default(), Box::new(observer))?;
    let mean = |(sum, count): (u128, u64)| sum as f64 / count.max(1) as f64 / 1e9;
    Ok(ChainRow { length, contender, classes, means: sums.take().map(mean), scenario: text })
}

impl ChainTests {
    /// Delays over the number of hops, a line for each length: HPD with three classes, as figure 6.3.
    pub fn figure(&self) -> Figure {
        let hpd = |row: &&ChainRow| row.contender == Contender::Hpd && row.classes == 3;
        let by_hops = self.rows.iter().filter(hpd).enumerate().map(|(colour, row)| {
            let points = row.means.iter().zip(1..).map(|(&mean, hops)| (f64::from(hops), mean));
            Line::new(format!("{} bytes", row.length), colour, points.collect())
        });
        let by_length = Contender::FOUR.into_iter().enumerate().map(|(colour, contender)| {
            let classes = if contender == Contender::Fifo { 1 } else { 3 };
            let rows = self.rows.iter().filter(|row| (row.contender, row.classes) == (contender, classes));
            let points = rows.map(|row| (f64::from(row.length), row.means[3])).collect();
            let style = [Style::Solid, Style::Dashed, Style::Dotted][colour % 3];
            Line::new(contender.name(), colour, points).styled(style)
        });
        let panel = |title: &str, x: Axis, lines: Vec<Line>| Panel {
            title: title.into(),
            x,
            y: Axis::linear("mean delay", "s"),
            lines,
        };
        Figure {
            title: "Delay tests".into(),
            subtitle: "2.5 Mbit/s more at each of four routers, links of 100 Mbit/s".into(),
            columns: 2,
            panels: vec![
                panel("HPD by hops", Axis::linear("hops", ""), by_hops.collect()),
                panel("Over four hops by length", Axis::linear("length in bytes", ""), by_length.collect()),
            ],
        }
    }

    /// What it says, beside the thesis.
    pub fn findings(&self) -> Vec<String> {
        let mut spread: f64 = 0.0;
        for length in LENGTHS {
            let rows = || self.rows.iter().filter(|row| row.length == length);
            for hops in 0..4 {
                let means = || rows().map(|row| row.means[hops]);
                let (least, most) =
                    means().fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), x| (a.min(x), b.max(x)));
                if least > 0.0 {
                    spread = spread.max(most / least - 1.0);
                }
            }
        }
        let hpd = |length| {
            self.rows
                .iter()
                .find(|row| row.length == length && row.contender == Contender::Hpd && row.classes == 3)
        };
        let slope =
            hpd(1280).zip(hpd(80)).map(|(long, short)| (long.means[3] - short.means[3]) / (1200.0 * 4.0));
        let verdict = if spread < 0.1 { "agrees" } else { "does not agree" };
        let mut all = vec![format!(
            "The thesis finds the delays of the schedulers very close together, and on one line by length and by hops. Here the \
             mean delays of schedulers, with one class or three, are at most {:.1} % apart, which {verdict}.",
            spread * 100.0
        )];
        all.extend(slope.map(|slope| {
            format!(
                "Each byte adds {:.3} µs at a hop, where its transmission takes 0.080 µs. The thesis's delays are longer, up to 2 ms, \
                 for they have the router's processor in them, and switches; virtual time has neither.",
                slope * 1e6
            )
        }));
        all
    }
}
