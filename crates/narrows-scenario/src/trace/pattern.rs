//! Patterns per millisecond as traces: rates, delays, and losses of 0 or 100%.

use narrows_core::{Duration, Probability, Time};

use crate::pattern::{About, Per};
use crate::problem::{Found, Problem};
use crate::source::Source;
use crate::trace::column::points;
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Column, Format, MILLISECOND, Then, Trace};
use crate::units::LONGEST_NANOS;

/// Files start with a header of words.
impl Format {
    /// narrows' own patterns per millisecond: see [`crate::pattern`]. Read only.
    pub const PATTERN: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "pattern",
    begins: |beginning| ["pattern ", "per ", "length "].iter().any(|word| beginning.line.starts_with(word)),
    always: &[],
    extensions: &[],
    read,
    write: |_, _| {
        Err(CannotWrite::ReadOnly { format: Format::PATTERN, why: "`narrows pattern make` makes patterns" })
    },
    has_opportunities: false,
    says_loop: false,
};

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    let pattern = crate::pattern::parse(source)?;
    let whole = 0..source.text.len();
    if pattern.per() != Per::Millisecond || pattern.about() == About::BitErrors {
        let (about, per) = (pattern.about(), pattern.per());
        let problem = Problem::new(format!("a pattern of {about} per {per} is not a trace")).at(&whole);
        return Err(
            problem.help("use losses, delays or rates per millisecond; use others as `{ pattern = … }`")
        );
    }
    let Some(length) = pattern.length().checked_mul(MILLISECOND).filter(|length| *length <= LONGEST_NANOS)
    else {
        let length = pattern.length().to_string();
        return Err(Problem::new(format!("{} ms are too long for a trace", Found(&length))).at(&whole));
    };
    let at = |place: u64| Time::from_nanos(place * MILLISECOND);
    let mut trace = Trace::new(Format::PATTERN, Duration::from_nanos(length));
    trace.then = Then::Loop;
    if let Some(changes) = pattern.rate_changes() {
        trace.rate = Some(points(changes.iter().map(|(place, rate)| (at(*place), *rate)).collect()));
    }
    if let Some(changes) = pattern.delay_changes() {
        trace.delay = Some(points(changes.iter().map(|(place, delay)| (at(*place), *delay)).collect()));
    }
    if let Some(hits) = pattern.hits() {
        let mut losses: Column<Probability> = vec![(Time::ZERO, Probability::ZERO)];
        for range in hits {
            if range.start == 0 {
                losses.clear();
            }
            losses.push((at(range.start), Probability::ONE));
            if range.end < pattern.length() {
                losses.push((at(range.end), Probability::ZERO));
            }
        }
        trace.loss = Some(points(losses));
    }
    Ok(trace)
}
