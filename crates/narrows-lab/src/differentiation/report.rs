//! Formats results as a table and as JSON.

use std::fmt;

use serde::Serialize;

use super::{Average, Differentiation, Point};
use narrows_core::sched::Gamma;

impl Differentiation {
    /// A table for people.
    pub fn text(&self) -> impl fmt::Display + '_ {
        Text(self)
    }

    /// As JSON: `points`, with an entry for each run.
    pub fn json(&self) -> impl Serialize + '_ {
        Whole { points: self.points.iter().map(Entry::new).collect() }
    }
}

struct Text<'a>(&'a Differentiation);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Differentiation { options, points }) = self;
        writeln!(
            f,
            "Mean waits under hybrid proportional delay at 10 Mbit/s: equal loads, {} packets a run, {}, seed {}",
            options.packets,
            average(options.average),
            options.seed.0
        )?;
        writeln!(
            f,
            "Ratios are to the first class; `theory` is Kleinrock's for g = 0; out of reach: no service order achieves it."
        )?;
        for part in points.chunk_by(|one, other| one.traffic == other.traffic && one.ddps == other.ddps) {
            let Some(first) = part.first() else { continue };
            let asked: Vec<String> = first.asked().iter().map(|ratio| format!("{ratio:.2}")).collect();
            writeln!(
                f,
                "\n{}, ddp {}: asked {}",
                first.traffic.name(),
                list(&first.ddps),
                asked.join(" and ")
            )?;
            let (ratios, waits) = (8 * asked.len(), 10 * first.ddps.len());
            writeln!(
                f,
                "{:>6}{:>7} {:>waits$} {:>ratios$}{:>8} {:>ratios$}",
                "g", "load", "mean waits, ms", "ratios", "off", "theory"
            )?;
            part.iter().try_for_each(|point| row(f, point))?;
        }
        Ok(())
    }
}

fn row(f: &mut fmt::Formatter<'_>, point: &Point) -> fmt::Result {
    write!(f, "{:>6}{:>6.1}% ", point.g, point.load)?;
    point.waits.iter().try_for_each(|wait| write!(f, "{:>10.3}", wait * 1e3))?;
    write!(f, " ")?;
    point.ratios().iter().try_for_each(|ratio| write!(f, "{ratio:>8.3}"))?;
    write!(f, "{:>7.1}%", point.worst() * 100.0)?;
    if let Some(theory) = &point.theory {
        write!(f, " ")?;
        theory.iter().try_for_each(|ratio| write!(f, "{ratio:>8.3}"))?;
    }
    writeln!(f, "{}", if point.within_reach { "" } else { "  out of reach" })
}

pub(super) fn average(average: Average) -> String {
    match average {
        Average::Exact => "averages exact".into(),
        Average::Moving(Gamma::Fixed(parts)) => format!("gamma {parts}/1024"),
        Average::Moving(Gamma::OfBacklog) => "gamma by the backlog".into(),
    }
}

pub(super) fn list(ddps: &[u32]) -> String {
    ddps.iter().map(u32::to_string).collect::<Vec<_>>().join(":")
}

#[derive(Debug, Serialize)]
struct Whole {
    points: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Entry {
    traffic: &'static str,
    ddps: Vec<u32>,
    g: u16,
    load_share: f64,
    mean_wait_ns: Vec<f64>,
    ratios: Vec<f64>,
    asked: Vec<f64>,
    within_reach: bool,
    theory: Option<Vec<f64>>,
}

impl Entry {
    fn new(point: &Point) -> Self {
        Self {
            traffic: point.traffic.name(),
            ddps: point.ddps.clone(),
            g: point.g,
            load_share: point.load / 100.0,
            mean_wait_ns: point.waits.iter().map(|wait| wait * 1e9).collect(),
            ratios: point.ratios(),
            asked: point.asked(),
            within_reach: point.within_reach,
            theory: point.theory.clone(),
        }
    }
}
