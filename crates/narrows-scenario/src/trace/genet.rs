//! Traces of Genet (Xia et al., "Genet: automatic curriculum generation for learning adaptation in networking",
//! SIGCOMM 2022; `GenetProject/Genet`, `src/simulator/trace.py`).
//!
//! ```json
//! {"timestamps": [0, 0.5, 1], "bandwidths": [1.2, 0.6, 0.6], "delays": [78], "loss": 0, "queue": 10}
//! ```
//! Times in seconds, each with the rate in Mbit/s that holds from then on; the last one is the end. One-way delays in
//! ms: one for each time, or fewer, of which the last goes on. A loss from 0 to 1, and a queue in packets. Of
//! `delay_noise`, which is drawn for each packet, a remark tells.

use narrows_core::queue::Bound;
use narrows_core::{Duration, Probability, Rate, Time};

use super::json::{self, number};
use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::source::Source;
use crate::source::number::SHARE_ONE;
use crate::trace::column::{filled, put};
use crate::trace::format::Entry;
use crate::trace::{CannotWrite, Column, Format, MOST_POINTS, Trace};
use crate::units::{LONGEST_NANOS, MOST_BITS, MOST_PACKETS};

/// Files are JSON tables with `timestamps`.
impl Format {
    /// Traces of Genet's simulator for congestion control, in JSON. Read only.
    pub const GENET: Self = Self(&FORMAT);
}

const FORMAT: Entry = Entry {
    name: "genet",
    begins: |beginning| {
        let has = |key| beginning.text.contains(key);
        beginning.first == '{' && has("\"timestamps\"") && has("\"bandwidths\"")
    },
    always: &[],
    extensions: &[],
    read,
    write: |_, _| {
        let why = "it has one loss and one queue for all time";
        Err(CannotWrite::ReadOnly { format: Format::GENET, why })
    },
    has_opportunities: false,
    says_loop: false,
};

const KEYS: [&str; 7] = ["timestamps", "bandwidths", "delays", "loss", "queue", "delay_noise", "T_s"];

/// Parses a file.
fn read(source: &Source<'_>) -> Result<Trace, Problem> {
    if source.text.trim().is_empty() {
        return Err(source.empty());
    }
    let root = json::document(source.text)?;
    let table = root.table("a table with `timestamps` and `bandwidths`")?;
    table.only(&KEYS)?;
    let times = list(&root, table, "timestamps")?;
    let rates = list(&root, table, "bandwidths")?;
    let delays = match table.get("delays") {
        Some(_) => list(&root, table, "delays")?,
        None => &[],
    };
    if times.len() != rates.len() {
        let title = format!("{} `timestamps`, but {} `bandwidths`", times.len(), rates.len());
        return Err(Problem::new(title).at(&root.span).help("each time has a rate; the last one is the end"));
    }
    if times.len() > MOST_POINTS / 2 {
        return Err(Problem::new(format!("more than {} times", MOST_POINTS / 2)).at(&times[0].span));
    }
    let mut instants: Vec<Time> = Vec::new();
    let mut origin = None;
    for node in times {
        let nanos = number(node, 9, LONGEST_NANOS, "a time in seconds")?;
        let origin = *origin.get_or_insert(nanos);
        let before = instants.last().copied().unwrap_or_default();
        let at = nanos.checked_sub(origin).map(Time::from_nanos).filter(|at| *at >= before);
        instants.push(at.ok_or_else(|| {
            let before = before + Duration::from_nanos(origin);
            let problem = Problem::new(format!("the time goes back: the previous one is {before}"));
            problem.at(&node.span).help("times increase")
        })?);
    }
    let end = instants.pop().unwrap_or_default();
    if end == Time::ZERO {
        let problem = Problem::new("this trace has no duration").at(&root.span);
        return Err(problem.help("two times or more: the last one is the end"));
    }
    let (mut rate, mut delay): (Column<Rate>, Column<Duration>) = Default::default();
    for (index, at) in instants.iter().copied().enumerate().filter(|(_, at)| *at < end) {
        let bits = number(&rates[index], 6, MOST_BITS, "a rate in Mbit/s")?;
        put(&mut rate, at, Rate::from_bits_per_second(bits));
        if let Some(node) = delays.get(index) {
            let nanos = number(node, 6, LONGEST_NANOS, "a delay in milliseconds")?;
            put(&mut delay, at, Duration::from_nanos(nanos));
        }
    }
    let mut trace = Trace::new(Format::GENET, end.since(Time::ZERO));
    trace.rate = filled(rate);
    trace.delay = filled(delay);
    if let Some(node) = table.get("loss") {
        let loss = number(node, 19, SHARE_ONE, "a loss from 0 to 1")?;
        let loss = Probability::from_ratio(loss, SHARE_ONE).expect("it is at most one");
        trace.loss = filled(vec![(Time::ZERO, loss)]);
    }
    if let Some(node) = table.get("queue") {
        match number(node, 0, MOST_PACKETS, "a number of packets")? {
            0 => return Err(node.expected("one packet or more")),
            packets => trace.bound = filled(vec![(Time::ZERO, Bound::Packets(packets))]),
        }
    }
    if let Some(origin) = origin.filter(|origin| *origin > 0) {
        let origin = Duration::from_nanos(origin);
        trace.remarks.push(format!("the first time is {origin}; the trace begins there"));
    }
    if let Some(node) = table.get("delay_noise")
        && number(node, 6, LONGEST_NANOS, "a delay in milliseconds")? > 0
    {
        trace
            .remarks
            .push("`delay_noise` is a delay drawn for each packet, which a trace lacks: left out".into());
    }
    Ok(trace)
}

fn list<'a>(root: &Node, table: &'a Table, key: &str) -> Result<&'a [Node], Problem> {
    let node = table.get(key).ok_or_else(|| Problem::new(format!("`{key}` is missing")).at(&root.span))?;
    node.list("a list of numbers, such as [0, 0.5, 1]")
}
