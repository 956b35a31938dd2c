//! Disciplines without classes: queues with and without management, and flows by a hash.

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration};

use super::{Fifo, Kind, missing, number, packets, size, time, unknown, whole};
use crate::netem::units;
use crate::netem::words::{Word, Words};
use crate::problem::{Found, Problem};

pub(super) fn fifo(name: &'static str, words: &mut Words<'_>) -> Result<Kind, Problem> {
    let mut limit = None;
    while let Some(word) = words.take() {
        match word.text {
            "limit" => {
                let number = words.expect(word, "a number")?;
                // tc prints `limit 3000b` and `limit 100p`.
                let mut plain = number;
                plain.text = if name == "bfifo" { number.text } else { number.text.trim_end_matches('p') };
                let value = u64::from(
                    units::size(plain, "a limit", if name == "bfifo" { "bytes" } else { "packets" })?.value,
                );
                if value == 0 {
                    return Err(number.problem("a limit of 0 lets nothing through"));
                }
                limit = Some(if name == "bfifo" {
                    Bound::Bytes(Bytes::new(value))
                } else {
                    Bound::Packets(value)
                });
            }
            _ => return Err(unknown(word, name, &["limit"])),
        }
    }
    Ok(Kind::Fifo(Fifo { name, limit, head: name == "pfifo_head_drop" }))
}

/// Options that are written as the entries of a table.
pub(super) struct Table(Vec<String>);

impl Table {
    pub(super) fn of(kind: &str) -> Self {
        Self(vec![format!("type = \"{kind}\"")])
    }

    pub(super) fn put(&mut self, key: &str, value: impl std::fmt::Display) {
        self.0.push(format!("{key} = {value}"));
    }

    pub(super) fn quoted(&mut self, key: &str, value: impl std::fmt::Display) {
        self.put(key, format!("\"{value}\""));
    }

    pub(super) fn text(self) -> String {
        format!("{{ {} }}", self.0.join(", "))
    }
}

pub(super) fn red(name: Word<'_>, words: &mut Words<'_>) -> Result<Kind, Problem> {
    let known = ["limit", "min", "max", "probability", "avpkt", "burst", "bandwidth", "ecn", "harddrop"];
    let mut table = Table::of("red");
    let (mut limit, mut min, mut max, mut packet, mut burst) = (None, None, None, None, None);
    let mut probability = None;
    let mut ecn = false;
    while let Some(word) = words.take() {
        match word.text {
            "limit" => limit = Some(size(word, words)?),
            "min" => min = Some((word, size(word, words)?)),
            "max" => max = Some(size(word, words)?),
            "avpkt" => packet = Some(size(word, words)?),
            "probability" => {
                let number = words.expect(word, "a probability")?;
                probability = Some(
                    number.text.parse::<f64>().ok().filter(|p| *p > 0.0 && *p <= 1.0).ok_or_else(|| {
                        number
                            .problem(format!("{} is no probability", Found(number.text)))
                            .help("from 0 to 1, such as 0.02")
                    })?,
                );
            }
            "ecn" => ecn = true,
            "harddrop" | "nodrop" | "adaptive" => {}
            "burst" => burst = Some((word, number(word, words, 1, 1 << 20)?)),
            // By which the kernel lets the average of an empty queue fall; here it is the link's rate.
            "bandwidth" => {
                words.expect(word, "a value")?;
            }
            _ => return Err(unknown(word, "red", &known)),
        }
    }
    const EXAMPLE: &str = "red limit 60000 min 15000 max 45000 avpkt 1000 burst 25 probability 0.02";
    let (place, min) = min.ok_or_else(|| missing(name, "min", EXAMPLE))?;
    let max = max.ok_or_else(|| missing(name, "max", EXAMPLE))?;
    if min >= max {
        return Err(place.problem(format!("`min` is {min}, which is not below `max`, which is {max}")));
    }
    table.quoted("min", min);
    table.quoted("max", max);
    if let Some(limit) = limit {
        table.quoted("bound", limit);
    }
    table.put("probability", probability.unwrap_or(USUAL_PROBABILITY));
    if let Some(packet) = packet {
        table.quoted("typical-packet", packet);
        // The kernel's probability is the same for packets of any length; here it is for this one.
        table.quoted("longest-packet", packet);
        let usual = (2 * min.get() + max.get()) / (3 * packet.get().max(1));
        let weight = red_weight(min, burst.map_or(usual, |(_, burst)| burst as u64), packet);
        let weight = weight.ok_or_else(|| {
            let (place, what) = match burst {
                Some((word, burst)) => (word, burst as u64),
                None => (place, usual),
            };
            place
                .problem(format!("a burst of {what} packets is too short for `min`, which is {min}"))
                .help(format!("it takes at least {} packets of `avpkt`", min.get() / packet.get().max(1)))
        })?;
        table.put("weight", weight);
    }
    if !ecn {
        table.put("ecn", false);
    }
    Ok(whole("red", "queue", table.text()))
}

/// What tc takes where none is given.
const USUAL_PROBABILITY: f64 = 0.02;

/// How much an arrival counts in the average, as tc has it (`tc_red_eval_ewma`): the greatest power of two with which `burst`
/// packets can come at once into an empty queue before the average is at `min`. Nothing where they never could.
fn red_weight(min: Bytes, burst: u64, packet: Bytes) -> Option<f64> {
    let above = burst as f64 + 1.0 - min.get() as f64 / packet.get() as f64;
    let weight = |log: i32| 1.0 / f64::from(1u32 << log);
    let holds = |weight: f64| above <= (1.0 - libm::pow(1.0 - weight, burst as f64)) / weight;
    if above < 1.0 { None } else { (1..30).map(weight).find(|weight| holds(*weight)) }
}

pub(super) fn fq_codel(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let mut table = Table::of("fq_codel");
    while let Some(word) = words.take() {
        match word.text {
            "limit" => table.quoted("bound", packets(word, words)?),
            "flows" => table.put("flows", number(word, words, 1, 65536)?),
            "quantum" => table.quoted("quantum", size(word, words)?),
            "target" => table.quoted("target", time(word, words)?),
            "interval" => table.quoted("interval", time(word, words)?),
            "ecn" => table.put("ecn", true),
            "noecn" => table.put("ecn", false),
            "memory_limit" | "drop_batch" => {
                words.expect(word, "a number")?;
            }
            _ => {
                return Err(unknown(
                    word,
                    "fq_codel",
                    &["limit", "flows", "quantum", "target", "interval", "ecn", "noecn"],
                ));
            }
        }
    }
    Ok(whole("fq_codel", "scheduler", table.text()))
}

pub(super) fn codel(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let mut table = Table::of("codel");
    let mut ecn = false;
    while let Some(word) = words.take() {
        match word.text {
            "limit" => table.quoted("bound", packets(word, words)?),
            "target" | "interval" => table.quoted(word.text, time(word, words)?),
            "ecn" => ecn = true,
            "noecn" => ecn = false,
            _ => return Err(unknown(word, "codel", &["limit", "target", "interval", "ecn", "noecn"])),
        }
    }
    table.put("ecn", ecn);
    Ok(whole("codel", "queue", table.text()))
}

pub(super) fn pie(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let mut table = Table::of("pie");
    let mut ecn = false;
    while let Some(word) = words.take() {
        if !pie_option(word, words, &mut table, &mut ecn)? {
            return Err(unknown(word, "pie", &PIE));
        }
    }
    Ok(whole("pie", "queue", refined(table, ecn)))
}

pub(super) fn fq_pie(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let mut table = Table::of("fq_pie");
    let mut ecn = false;
    while let Some(word) = words.take() {
        match word.text {
            "flows" => table.put("flows", number(word, words, 1, 65536)?),
            "quantum" => table.quoted("quantum", size(word, words)?),
            "ecn_prob" => table.quoted("mark-below", format!("{}%", number(word, words, 0, 100)?)),
            "memory_limit" => {
                words.expect(word, "a number")?;
            }
            _ => {
                if !pie_option(word, words, &mut table, &mut ecn)? {
                    let own = ["flows", "quantum", "ecn_prob", "memory_limit"];
                    return Err(unknown(word, "fq_pie", &[&PIE[..], &own[..]].concat()));
                }
            }
        }
    }
    Ok(whole("fq_pie", "scheduler", refined(table, ecn)))
}

const PIE: [&str; 7] = ["limit", "target", "tupdate", "alpha", "beta", "ecn", "noecn"];

/// Reads what `pie` and `fq_pie` both have; whether it was that.
fn pie_option(
    word: Word<'_>,
    words: &mut Words<'_>,
    table: &mut Table,
    ecn: &mut bool,
) -> Result<bool, Problem> {
    match word.text {
        "limit" => table.quoted("bound", packets(word, words)?),
        "target" => table.quoted("target", time(word, words)?),
        "tupdate" => table.quoted("update", time(word, words)?),
        // In sixteenths of a hertz.
        "alpha" => table.put("alpha", number(word, words, 1, 32)? as f64 / 16.0),
        "beta" => table.put("beta", number(word, words, 0, 32)? as f64 / 16.0),
        "ecn" => *ecn = true,
        "noecn" => *ecn = false,
        _ => return Ok(false),
    }
    Ok(true)
}

/// With what the kernel's PIE always has, beyond the RFC's base.
fn refined(mut table: Table, ecn: bool) -> String {
    table.put("ecn", ecn);
    table.quoted("mean-packet", "1500 bytes");
    table.put("derandomize", true);
    table.put("cap-drop", true);
    table.quoted("steep-above", Duration::from_millis(250));
    table.text()
}

pub(super) fn sfq(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let mut table = Table::of("sfq");
    while let Some(word) = words.take() {
        match word.text {
            "limit" => table.quoted("bound", packets(word, words)?),
            "quantum" => table.quoted("quantum", size(word, words)?),
            "flows" | "divisor" => table.put("flows", number(word, words, 1, 65536)?),
            // Hashes are perturbed to part flows that met by chance; here 1024 flows meet seldom enough.
            "perturb" | "depth" => {
                words.expect(word, "a number")?;
            }
            "headdrop" => {
                return Err(word
                    .problem("`headdrop` of `sfq` has no place in a script")
                    .help("in a scenario it is `queue = { drop = \"head\" }` beside the scheduler"));
            }
            _ => return Err(unknown(word, "sfq", &["limit", "quantum", "flows", "divisor", "perturb"])),
        }
    }
    Ok(whole("sfq", "scheduler", table.text()))
}
