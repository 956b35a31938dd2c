//! Parameters of 802.11 DCF: `{ type = "dcf", preamble = "short", basic-rate = "2mbit", rts-threshold =
//! "500 bytes" }`, and which of its stations hear each other.

use std::ops::Range;

use narrows_core::sched::DcfConfig;
use narrows_core::{Bytes, Duration, Rate};
use serde_json::json;

use super::class::place;
use super::own::OwnParameters;
use super::station::RATE;
use super::{Class, Scheduler};
use crate::keys::Parameters;
use crate::keys::kind::{ByHand, Choice, Integer, Or, text};
use crate::keys::{Keyed, Row, row, schema};
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem, one_of};
use crate::units;

const PREAMBLE: Choice<Duration> = Choice {
    what: "preamble",
    choices: &[("long", DcfConfig::LONG_PREAMBLE), ("short", DcfConfig::SHORT_PREAMBLE)],
};
const WINDOW: ByHand<u32> = ByHand {
    words: || "one less than a power of two, up to 65535".into(),
    schema: |_| json!({ "type": "integer", "minimum": 1, "maximum": 65535 }),
    read: |node, _| window(node),
    write: |window| Some(Value::Integer(window.to_string())),
};
const FRAME: ByHand<u32> = ByHand {
    words: || "size".into(),
    schema: schema::size,
    // At most 65,535.
    read: |node, _| units::packet_size(node).map(|bytes| bytes.get() as u32),
    write: |bytes| Some(text(Bytes::new(u64::from(*bytes)))),
};

impl Scheduler {
    /// The pairs of classes whose stations do not hear each other, by their numbers.
    pub(super) fn hidden_pairs(&self) -> Vec<(u32, u32)> {
        let classes = self.named();
        let mut pairs = Vec::new();
        for (one, class) in classes.iter().enumerate() {
            let names = |(_, other): &(usize, &Class)| class.station.hidden_from.contains(&other.name);
            let hidden = classes.iter().enumerate().filter(names);
            pairs.extend(hidden.map(|(other, _)| (one as u32, other as u32))); // far fewer than 2³²
        }
        pairs
    }

    /// A station in one line, for display; `None` if it has nothing of its own.
    pub(crate) fn station_words(&self, class: &Class) -> Option<String> {
        let is_hidden = |other: &&Class| {
            let names = |one: &Class, two: &Class| one.station.hidden_from.contains(&two.name);
            names(class, other) || names(other, class)
        };
        let hidden: Vec<&str> =
            self.named().iter().filter(is_hidden).map(|other| other.name.as_str()).collect();
        let rate = class.station.rate.map(|rate| format!("rate {rate}"));
        let hidden = (!hidden.is_empty()).then(|| format!("hidden from {}", hidden.join(", ")));
        let words: Vec<String> = [rate, hidden].into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// The first station that is faster than the link, and its rate.
    pub(crate) fn faster_station(&self, link: Rate) -> Option<(&str, Rate)> {
        let rate = |class: &Class| class.station.rate.filter(|rate| *rate > link);
        self.named().iter().find_map(|class| rate(class).map(|rate| (class.name.as_str(), rate)))
    }
}

/// Checks that stations are hidden from other stations of the cell.
pub(super) fn check_hidden(classes: &[Class], nodes: &[Node]) -> Result<(), Problem> {
    for (class, node) in classes.iter().zip(nodes) {
        for name in &class.station.hidden_from {
            let problem =
                |what: String| Problem::new(what).at(place(node, "hidden-from")).inside("hidden-from");
            if *name == class.name {
                return Err(problem(format!("the station `{name}` is hidden from itself"))
                    .help("name the other stations that it does not hear"));
            }
            if !classes.iter().any(|other| other.name == *name) {
                let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
                return Err(problem(format!("there is no class {}", Found(name)))
                    .did_you_mean(name, names.iter().copied())
                    .help(format!("classes: {}", one_of(&names))));
            }
        }
    }
    Ok(())
}

impl Keyed for DcfConfig {
    const ROWS: &'static [Row<Self>] = &[
        row!("preamble", preamble, PREAMBLE, "PLCP preamble and header before each frame: 192 or 96 µs."),
        row!("basic-rate", basic_rate, RATE, "Rate of ACK, RTS and CTS frames, at most the link's."),
        row!("window-min", window_min, WINDOW, "Initial contention window."),
        row!("window-max", window_max, WINDOW, "Maximum contention window."),
        row!(
            "retry-limit",
            retry_limit,
            Integer { what: "a number of collisions", low: 1, high: 255 },
            "Collisions after which a packet is dropped with the reason `retry limit`."
        ),
        row!("rts-threshold", rts_threshold, Or("none", FRAME), "Protect longer frames by RTS and CTS."),
    ];

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let Self { window_min, window_max, .. } = self;
        if window_min <= window_max {
            return Ok(());
        }
        let key = table.key("window-min").or(table.key("window-max"));
        Err(Problem::new(format!(
            "the minimum contention window, {window_min}, is above the maximum, {window_max}"
        ))
        .at(key.map_or(place, |key| &key.span)))
    }
}

impl OwnParameters for DcfConfig {
    fn effective(&self) -> String {
        format!(", {}", Parameters::words(self))
    }
}

/// Reads a contention window: a power of two minus one.
fn window(node: &Node) -> Result<u32, Problem> {
    let window = node.integer("a contention window", 1..65_536)? as u32;
    if (window + 1).is_power_of_two() {
        return Ok(window);
    }
    Err(node.expected("one less than a power of two: 1, 3, 7, 15, 31, … 65535"))
}
