//! `taprio num_tc 3 map 2 2 1 0 queues 1@0 1@1 1@2 base-time 0 sched-entry S 01 300000 sched-entry S 06 700000 clockid
//! CLOCK_TAI`: the time-aware shaper (IEEE 802.1Qbv).

use narrows_core::Duration;

use super::bands::Bands;
use super::unit::{missing, number, unknown};
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::problem::Problem;

/// The time-aware shaper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taprio {
    /// The traffic classes, from 0, of which the last goes first.
    pub(super) bands: Bands,
    /// How long each entry lasts, and the traffic classes whose gates are open in it, one bit each.
    pub(super) entries: Vec<(Duration, u32)>,
    pub(super) cycle: Option<Duration>,
    /// The most bytes of a packet in each traffic class, without its link header; 0 for any.
    pub(super) longest: Vec<u32>,
    /// Whether packets get times to leave instead of gates (`flags 0x1`), for which `etf` holds them.
    pub(super) gives_times: bool,
    /// Whether all traffic classes then have one transmit queue.
    pub(super) has_one_queue: bool,
    /// Assumptions made.
    pub(super) notes: Vec<String>,
}

/// The kernel's limit of traffic classes.
const MOST: i64 = 16;
/// More entries make no sense for a device.
const MOST_ENTRIES: usize = 1024;

pub(super) fn read(name: Word<'_>, words: &mut Words<'_>) -> Result<Taprio, Problem> {
    const EXAMPLE: &str =
        "taprio num_tc 2 map 1 0 queues 1@0 1@1 base-time 0 sched-entry S 01 300000 sched-entry S 02 700000";
    const KNOWN: &[&str] = &[
        "num_tc",
        "map",
        "queues",
        "base-time",
        "cycle-time",
        "cycle-time-extension",
        "sched-entry",
        "clockid",
        "flags",
        "txtime-delay",
        "max-sdu",
    ];
    let (mut longest, mut gives_times, mut launch) = (Vec::new(), false, 0);
    let (mut classes, mut map, mut queues) = (None, Vec::new(), Vec::new());
    let (mut entries, mut cycle, mut notes) = (Vec::new(), None, Vec::new());
    while let Some(word) = words.take() {
        match word.text {
            "num_tc" => classes = Some(number(word, words, 1, MOST)?),
            "map" => {
                while let Some(class) = words.take_number(false) {
                    map.push((units::integer(class, "a number", 0, MOST - 1)?, class));
                }
            }
            "queues" => {
                while let Some(queue) = words.peek().filter(|word| word.text.contains('@')) {
                    words.take();
                    queues.push(queue);
                }
            }
            "sched-entry" => {
                let command = words.expect(word, "a command, such as S")?;
                if command.text != "S" {
                    return Err(command.expected("`S`, which sets the gates").help(
                        "`H` and `R` are for frame preemption, which neither Linux's taprio nor a link here has",
                    ));
                }
                let mask = words.expect(command, "the gates that are open, a hexadecimal number")?;
                let gates = mask.text.trim_start_matches("0x");
                let gates = u32::from_str_radix(gates, 16)
                    .map_err(|_| mask.expected("the gates that are open, as a hexadecimal number"))?;
                let lasts = number(mask, words, 1, u32::MAX.into())?;
                entries.push((Duration::from_nanos(lasts as u64), gates));
                if entries.len() > MOST_ENTRIES {
                    return Err(word.problem(format!("more than {MOST_ENTRIES} entries")));
                }
            }
            "cycle-time" => {
                cycle = Some(number(word, words, 0, i64::MAX - 1)?).filter(|cycle| *cycle > 0);
            }
            "base-time" => {
                if number(word, words, 0, i64::MAX - 1)? > 0 {
                    notes.push(
                        "`base-time` is of the host's clock: here the schedule starts with the link.".into(),
                    );
                }
            }
            "clockid" => drop(words.expect(word, "a clock")?),
            "cycle-time-extension" => {
                number(word, words, 0, i64::MAX - 1)?;
            }
            "txtime-delay" => launch = number(word, words, 0, i64::MAX - 1)?,
            "flags" => {
                let flags = words.expect(word, "a number")?;
                let bits = match flags.text.strip_prefix("0x") {
                    Some(digits) => u32::from_str_radix(digits, 16).ok(),
                    None => flags.text.parse().ok(),
                };
                match bits {
                    Some(0) => {}
                    Some(1) => gives_times = true,
                    Some(2) => notes.push(format!(
                        "`flags {}` say how the device does it: the link sends at the same times.",
                        flags.text
                    )),
                    _ => return Err(flags.expected("0, 1 or 2")),
                }
            }
            "max-sdu" => {
                while let Some(most) = words.take_number(false) {
                    longest.push(units::integer(most, "a number of bytes", 0, u32::MAX.into())? as u32);
                }
            }
            "fp" => {
                return Err(word
                    .problem("`fp` of `taprio`: frames are not interrupted here")
                    .help("leave it out"));
            }
            _ => return Err(unknown(word, "taprio", KNOWN)),
        }
    }
    let Some(classes) = classes else { return Err(missing(name, "num_tc", EXAMPLE)) };
    if entries.is_empty() {
        return Err(missing(name, "sched-entry", EXAMPLE));
    }
    if let Some((class, word)) = map.iter().find(|(class, _)| *class >= classes) {
        return Err(word
            .problem(format!("the traffic class {class} is none of {classes}"))
            .help("they count from 0"));
    }
    if let Some((_, word)) = map.get(16) {
        return Err(word
            .problem(format!("`map` has {} numbers", map.len()))
            .help("16 are allowed, one for each priority from 0 to 15"));
    }
    if gives_times {
        if let Some((_, gates)) = entries.iter().find(|(_, gates)| gates.count_ones() > 1) {
            return Err(name
                .problem(format!(
                    "`flags 0x1` of `taprio`, and the gates {gates:x} open together: their packets leave as they come, not by priority"
                ))
                .help("open one gate in each entry, or leave `flags` out"));
        }
        notes.push("`flags 0x1`: packets get the times at which their gates let them leave, and `etf` holds them until then: here the gates do.".into());
        if launch > 0 {
            notes.push(format!(
                "In the kernel each packet leaves {} after it came, or later (`txtime-delay`): add that to the `delay` of the link.",
                Duration::from_nanos(launch as u64)
            ));
        }
    }
    let has_one_queue = gives_times && queues.len() > 1 && queues.iter().all(|queue| queue.text == "1@0");
    if has_one_queue {
        queues.clear();
    }
    // A class in it is named after its first transmit queue.
    for (class, queue) in queues.iter().enumerate() {
        let first = queue.text.split_once('@').map(|(_, first)| first);
        if first.and_then(|first| first.parse().ok()) != Some(class) {
            return Err(queue
                .problem(format!("the traffic class {class} begins at another transmit queue than {class}"))
                .help("a link has one transmit queue for each class, as in: queues 1@0 1@1 1@2"));
        }
    }
    let mut bands = Bands { bands: classes as u8, map: [0; 16] }; // at most 16
    bands.map.iter_mut().zip(map).for_each(|(band, (class, _))| *band = class as u8);
    let cycle = cycle.map(|cycle| Duration::from_nanos(cycle as u64));
    Ok(Taprio { bands, entries, cycle, longest, gives_times, has_one_queue, notes })
}
