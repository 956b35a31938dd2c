//! Files of no known format: what they look like, and how to read them nevertheless.

use super::Format;
use super::look::{Look, how};
use super::pensieve::Sample;
use crate::problem::{Problem, one_of};
use crate::source::Source;

/// The error for a file whose first line with content is this.
pub(super) fn unknown(source: &Source<'_>, line: &str) -> Problem {
    let place = source.span(line);
    let text = &source.text[place.start..];
    let names = one_of(&Format::names());
    let look = Look::at(source);
    let Some((look, columns)) = look.and_then(|look| look.columns().map(|columns| (look, columns))) else {
        return Problem::new("unknown format").at(&place).help(format!("name it: {names}"));
    };
    let doubt = Sample::of(text).filter(|_| look.first.len() == 2).and_then(|sample| sample.doubt());
    let (title, names) = match doubt {
        Some(doubt) => (
            format!("two columns of numbers of unknown units: in Pensieve's seconds and Mbit/s, {doubt}"),
            "or insist on seconds and Mbit/s with `--from pensieve` (in a scenario, `format = \"pensieve\"`)"
                .into(),
        ),
        None => (
            format!("unknown format: {}, without a header", look.shape()),
            format!("or name the format: {names}"),
        ),
    };
    let problem = Problem::new(title).at(&place).help(how(&columns));
    let problem = match !look.is_header && look.is_dtp() {
        true => problem.help(
            "such are the columns of AItrans' DTP emulator: seconds, megabytes per second, a loss from 0 to 1, a one-way \
             delay in seconds; if the rates are in Mbit/s, say `unit=mbit`",
        ),
        false => problem,
    };
    problem.help(names)
}
