//! What live runs reach on this host, each figure beside what the host gives without narrows, in one run: ratios, not figures,
//! are what a busy host can tell.
//!
//! ```text
//! cargo bench -p narrows-cli --bench beside -- [tcp] [rate] [udp] [buffers] [lateness] [ping] [idle] [control] [links] [--long]
//! cargo bench -p narrows-cli --bench beside -- --soak 10m [--backend af_xdp]
//! ```
//!
//! `scripts/bench-live` builds what it needs first. Needs root, iperf3, ping and tc. Nothing is asserted; what this host cannot
//! do is left out by name.

mod control;
mod inside;
mod lateness;
mod links;
mod row;
mod soak;
mod tcp;
mod udp;
mod way;

use std::env;
use std::error::Error;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// How long each measurement takes.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Of one measurement, in seconds.
    seconds: u32,
}

type Section = (&'static str, fn(Effort) -> Outcome<()>);

const SECTIONS: [Section; 9] = [
    ("tcp", tcp::unlimited),
    ("rate", tcp::at_a_rate),
    ("udp", udp::small_packets),
    ("buffers", udp::default_buffers),
    ("lateness", lateness::lateness),
    ("ping", lateness::round_trips),
    ("idle", lateness::idle),
    ("control", control::control),
    ("links", links::many),
];

fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // What this program does inside of the hosts of a measurement.
    if inside::is_meant(&words) {
        return inside::run(&words);
    }
    if let ["--soak", span, flags @ ..] = &words[..] {
        return soak::soak(span, flags);
    }
    let effort = Effort { seconds: if words.contains(&"--long") { 20 } else { 3 } };
    let wanted: Vec<&str> = words.into_iter().filter(|word| *word != "--long").collect();
    if let Some(unknown) = wanted.iter().find(|word| !SECTIONS.iter().any(|(name, _)| name == *word)) {
        let names = SECTIONS.map(|(name, _)| name).join(", ");
        return Err(format!("`{unknown}` is none of {names}, --long, --soak SPAN").into());
    }
    for (name, section) in SECTIONS {
        if wanted.is_empty() || wanted.contains(&name) {
            section(effort)?;
        }
    }
    Ok(())
}
