//! The action `gate`: packets pass at certain times.
//!
//! Sources: `m_gate.c` of iproute2, `act_gate.c` of Linux. An entry is `sched-entry open|close INTERVAL [IPV [BYTES]]`,
//! where -1 stands for no priority and for any number of bytes.

use narrows_core::{Bytes, Duration};

use super::unit;
use crate::dialect::{Word, Words};
use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem};

/// What the clock of a run is to the schedule of a script.
pub(super) const CLOCK: &str = "The clock of the gate is that of the run, which begins at zero: of `base-time` only the place in the cycle counts.";

/// Parses the options; the keys of a filter of the action `gate`, and its number.
pub(super) fn read(action: Word<'_>, words: &mut Words<'_>) -> Result<(Table, Option<u32>), Problem> {
    let mut index = None;
    let (mut base, mut said_cycle, mut entries) = (Duration::ZERO, None, Vec::new());
    let mut cycle = Duration::ZERO;
    while let Some(word) = words.peek() {
        match word.text {
            "base-time" => {
                words.take();
                base = time(words.expect(word, "a time")?)?;
            }
            "cycle-time" => {
                words.take();
                let value = words.expect(word, "a time")?;
                said_cycle = Some((value, time(value)?));
            }
            "index" => {
                words.take();
                index = Some(unit::index(word, words)?);
            }
            // The clock, and what concerns hardware.
            "clockid" | "cycle-time-ext" | "flags" | "priority" => {
                words.take();
                words.expect(word, "a value")?;
            }
            "sched-entry" => {
                words.take();
                let (lasts, entry) = entry(word, words)?;
                cycle = Duration::from_nanos(cycle.nanos().saturating_add(lasts.nanos()));
                entries.push(Node::new(Value::Table(entry)));
            }
            _ => break,
        }
    }
    if entries.is_empty() {
        return Err(action
            .problem("`gate` without a schedule")
            .help("as in: gate sched-entry open 200000000ns sched-entry close 100000000ns"));
    }
    if let Some((word, said)) = said_cycle.filter(|(_, said)| *said != Duration::ZERO && *said != cycle) {
        return Err(word
            .problem(format!("the entries last {cycle}, `cycle-time` is {said}"))
            .help("the kernel repeats the entries; a cycle of another length only moves their begin"));
    }
    let mut keys = Table::default();
    keys.put("schedule", Value::Array(entries));
    let begin = base.nanos() % cycle.nanos().max(1);
    if begin > 0 {
        keys.put("begin", text(Duration::from_nanos(begin)));
    }
    Ok((keys, index))
}

/// One entry, and how long it lasts.
fn entry(word: Word<'_>, words: &mut Words<'_>) -> Result<(Duration, Table), Problem> {
    let state = words.expect(word, "open or close")?;
    let lasts = words.expect(state, "a time")?;
    let interval = time(lasts)?;
    if interval == Duration::ZERO {
        return Err(lasts.problem("an entry that lasts no time").help("nanoseconds, as in 200000000ns"));
    }
    let mut table = Table::default();
    let key = match state.text {
        "open" | "OPEN" => "open",
        "close" | "CLOSE" => "closed",
        other => return Err(state.problem(format!("{} is neither open nor close", Found(other)))),
    };
    table.put(key, text(interval));
    if let Some(priority) = words.take_number(true).filter(|priority| priority.text != "-1") {
        return Err(priority
            .problem("a gate that gives packets a priority")
            .help("-1 leaves the priority as it is"));
    }
    if let Some(most) = words.take_number(true).filter(|most| most.text != "-1") {
        let digits = most.text.trim_end_matches('b');
        let bytes: u64 = digits.parse().map_err(|_| {
            most.problem(format!("{} is not a number of bytes", Found(most.text)))
                .help("as in 8000000b, or -1")
        })?;
        if key == "open" {
            table.put("most", text(Bytes::new(bytes)));
        }
    }
    Ok((interval, table))
}

/// Nanoseconds, or with a unit.
fn time(word: Word<'_>) -> Result<Duration, Problem> {
    let (digits, scale) = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)]
        .into_iter()
        .find_map(|(unit, scale)| Some((word.text.strip_suffix(unit)?, scale)))
        .unwrap_or((word.text, 1));
    let nanos = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
    nanos.map(Duration::from_nanos).ok_or_else(|| {
        word.problem(format!("{} is not a time", Found(word.text)))
            .help("nanoseconds, or with a unit: 200000000ns, 200ms")
    })
}
