//! Files of no known format: what they look like, and how to read them nevertheless.

use super::Format;
use super::look::{Look, Ragged, WORDS, how};
use super::pensieve::Sample;
use crate::problem::{Problem, one_of};
use crate::source::Source;

/// The error for a file whose first line with content is this.
pub(super) fn unknown(source: &Source<'_>, line: &str) -> Problem {
    or_of_tools(source, of_shape(source, line))
}

fn of_shape(source: &Source<'_>, line: &str) -> Problem {
    let place = source.span(line);
    let text = &source.text[place.start..];
    let names = one_of(&Format::names());
    if let Some(ragged) = Ragged::at(source) {
        return ragged.problem(source).help(format!("or name the format: {names}"));
    }
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
    let problem = Problem::new(title).at(&place).help(how(&columns)).help(WORDS);
    let problem = match !look.is_header && look.is_dtp() {
        true => problem.help(
            "such are the columns of AItrans' DTP emulator: seconds, megabytes per second, a loss from 0 to 1, a one-way \
             delay in seconds; if the rates are in Mbit/s, say `unit=mbit`",
        ),
        false => problem,
    };
    problem.help(names)
}

/// Adds to an error what is read of the output of tools that a text seems to have.
pub(super) fn or_of_tools(source: &Source<'_>, problem: Problem) -> Problem {
    const IPERF: &str = "of iPerf's text, lines such as `[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec` are read \
        (`iperf3 -i 1`), and its JSON (`iperf3 --json`)";
    const PING: &str = "of ping's output, lines such as `64 bytes from …: icmp_seq=1 ttl=54 time=13.2 ms` and \
        `Reply from …: bytes=32 time=13ms TTL=54` are read, in English";
    let text = source.text;
    let mut end = text.len().min(1 << 16);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let has = |words: &[&str]| words.iter().any(|word| text[..end].contains(word));
    let problem = match has(&["iperf", "bits/sec", "Bytes/sec"]) {
        true => problem.help(IPERF),
        false => problem,
    };
    match has(&["icmp_seq", "bytes from", "TTL=", "ttl=", "packets transmitted"]) {
        true => problem.help(PING),
        false => problem,
    }
}
