//! Traces of the NYU METropolitan mobile bandwidth data set (Mei et al., "Realtime mobile bandwidth prediction using
//! LSTM neural network", PAM 2019; `NYU-METS/Main`).
//!
//! ```text
//! 3.97,Mbits/sec
//! 812,Kbits/sec
//! ```
//! A rate and its unit, as iPerf prints them: prefixes are powers of 1000. Each row holds for a second.

use narrows_core::{Duration, Rate, Time};

use super::table;
use crate::problem::{Problem, one_of};
use crate::source::Source;
use crate::trace::column::{points, put};
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Column, Format, MOST_POINTS, Trace};
use crate::units::MOST_BITS;

/// Rows have a number and a unit of iPerf.
impl Format {
    /// Rates in New York with iPerf's units, one per second. Read only.
    pub const NYU_METS: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "nyu-mets",
    begins: |beginning| {
        let cells = beginning.line.split_once(',');
        cells.is_some_and(|(_, unit)| power(unit.trim()).is_some()) && beginning.first.is_ascii_digit()
    },
    always: &[],
    extensions: &[],
    read,
    write: |_, _| Err(CannotWrite::ReadOnly { format: Format::NYU_METS, why: "it is a log of iPerf" }),
    has_opportunities: false,
    says_loop: false,
};

const UNITS: [(&str, i32); 4] = [("bits/sec", 0), ("Kbits/sec", 3), ("Mbits/sec", 6), ("Gbits/sec", 9)];

/// How long a row holds.
const ROW: Duration = Duration::from_secs(1);

fn power(unit: &str) -> Option<i32> {
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, power)| *power)
}

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let mut rate: Column<Rate> = Vec::new();
    let mut now = Time::ZERO;
    for line in table::lines(source) {
        let Some((number, unit)) = line.split_once(',') else {
            return Err(source.expected(line.trim(), "a rate and its unit, such as `3.97,Mbits/sec`"));
        };
        let (number, unit) = (number.trim(), unit.trim());
        let power = power(unit).ok_or_else(|| {
            let units = UNITS.map(|(name, _)| name);
            source.expected(unit, &one_of(&units))
        })?;
        let bits = source.number(number, power, MOST_BITS, "a rate")?;
        put(&mut rate, now, Rate::from_bits_per_second(bits));
        now = now + ROW;
        if rate.len() > MOST_POINTS {
            return Err(Problem::new(format!("more than {MOST_POINTS} rows")).at(&source.span(line)));
        }
    }
    if rate.is_empty() {
        return Err(source.empty());
    }
    let mut trace = Trace::new(Format::NYU_METS, now.since(Time::ZERO));
    trace.rate = Some(points(rate));
    Ok(trace)
}
