//! The grammar: words in, options out.
//!
//! It is that of iproute2 (`tc/q_netem.c`, 6.9), and takes besides what tc prints: `p13`, `p`, `r`, `1-h`, `1-k`,
//! `packetoverhead`, `cellsize` and `celloverhead` before their numbers.

use narrows_core::Duration;

use super::clause::{Clause, Topic};
use super::options::{Chance, LossOption, Netem, RateOption, Shape, Slot, SlotGap};
use super::units;
use crate::dialect::{Read, Word, Words, keyword};
use crate::problem::{Found, Problem, nearest, one_of};
use crate::units::Share;

const OPTIONS: &[(&str, Topic)] = &[
    ("limit", Topic::Limit),
    ("delay", Topic::Delay),
    ("latency", Topic::Delay),
    ("loss", Topic::Loss),
    ("drop", Topic::Loss),
    ("seed", Topic::Seed),
    ("ecn", Topic::Ecn),
    ("reorder", Topic::Reorder),
    ("corrupt", Topic::Corrupt),
    ("gap", Topic::Gap),
    ("duplicate", Topic::Duplicate),
    ("distribution", Topic::Distribution),
    ("rate", Topic::Rate),
    ("slot", Topic::Slot),
];

const PERCENTAGE: &str = "a percentage";
const TIME: &str = "a time";

/// Reads all options up to the end of the text.
pub(super) fn options(words: &mut Words<'_>) -> Result<(Netem, Vec<Clause>), Problem> {
    let mut reader = Reader { netem: Netem::default(), bare: Vec::new() };
    let mut clauses: Vec<Clause> = Vec::new();
    let mut places: Vec<Word<'_>> = Vec::new();
    while let Some(word) = words.take() {
        let position = words.position() - 1;
        let topic = keyword(word, "option of netem", OPTIONS).map_err(|problem| hint(word, problem))?;
        if let Some(index) = clauses.iter().position(|clause| clause.topic == topic) {
            return Err(word
                .problem(format!("{} is said twice", Found(word.text)))
                .also(&places[index].span(), "the first time")
                .help(
                    "keep one of the two: of most options tc takes the last, and of a second `loss` none",
                ));
        }
        reader.option(topic, word, words)?;
        let bare = std::mem::take(&mut reader.bare);
        clauses.push(Clause { topic, text: words.since(position), bare });
        places.push(word);
    }
    let place = |topic| clauses.iter().position(|clause| clause.topic == topic).map(|index| places[index]);
    check(&reader.netem, place)?;
    Ok((reader.netem, clauses))
}

/// What goes together, as tc has it.
fn check<'a>(netem: &Netem, place: impl Fn(Topic) -> Option<Word<'a>>) -> Result<(), Problem> {
    let without_delay = netem.delay == Duration::ZERO;
    let reorders = !netem.reorder.share.is_zero() || netem.gap.is_some();
    if let Some(word) = place(Topic::Reorder).or(place(Topic::Gap))
        && reorders
        && without_delay
    {
        return Err(word
            .problem(format!("{} without a delay to skip", Found(word.text)))
            .help("give a delay, too, as in: delay 10ms reorder 25% 50%"));
    }
    if let Some(word) = place(Topic::Distribution)
        && (without_delay || netem.jitter == Duration::ZERO)
    {
        return Err(word
            .problem("a distribution of a delay that does not vary")
            .help("give a delay and its jitter, as in: delay 100ms 20ms distribution normal"));
    }
    if let Some(word) = place(Topic::Ecn)
        && netem.loss.is_none()
    {
        return Err(word
            .problem("`ecn` without `loss`")
            .help("it marks the packets that `loss` would have lost, as in: loss 1% ecn"));
    }
    Ok(())
}

/// Words that people take for options.
fn hint(word: Word<'_>, problem: Problem) -> Problem {
    match word.text {
        "jitter" => word
            .problem("netem has no option `jitter`")
            .help("the jitter follows the delay, as in: delay 100ms 10ms"),
        "tc" | "qdisc" | "netem" | "root" | "dev" => word
            .problem(format!("{} does not belong among the options", Found(word.text)))
            .help("give what follows `netem` alone, as in: delay 100ms loss 1%"),
        "bandwidth" | "bw" => {
            word.problem(format!("{} is no option of netem", Found(word.text))).help("did you mean `rate`?")
        }
        _ => problem,
    }
}

struct Reader {
    netem: Netem,
    bare: Vec<(String, String)>,
}

impl Reader {
    fn option(&mut self, topic: Topic, word: Word<'_>, words: &mut Words<'_>) -> Result<(), Problem> {
        match topic {
            Topic::Limit => {
                let number = words.expect(word, "a number of packets")?;
                let limit = units::size(number, "a number of packets", "packets")?;
                let limit = self.keep(number, limit);
                if limit == 0 {
                    return Err(number
                        .problem("a limit of 0 packets lets nothing through")
                        .help("the least is 1 packet; to lose every packet write: loss 100%"));
                }
                self.netem.limit = Some(limit.into());
            }
            Topic::Delay => {
                let mean = words.expect(word, TIME)?;
                self.netem.delay = self.read(mean, units::time)?;
                if let Some(jitter) = words.take_number(false) {
                    self.netem.jitter = self.read(jitter, units::time).map_err(|p| {
                        let percent = jitter.text.ends_with('%');
                        let help = "a correlation follows the jitter, as in: delay 100ms 10ms 25%";
                        if percent { p.help(help) } else { p }
                    })?;
                    let correlation = self.correlation(words)?;
                    // What does not vary has none.
                    let varies = self.netem.jitter > Duration::ZERO;
                    self.netem.delay_correlation = if varies { correlation } else { Share::ZERO };
                }
            }
            Topic::Loss => self.netem.loss = Some(self.loss(word, words)?),
            Topic::Corrupt => self.netem.corrupt = self.chance(word, words)?,
            Topic::Duplicate => self.netem.duplicate = self.chance(word, words)?,
            Topic::Ecn => self.netem.ecn = true,
            Topic::Reorder => self.netem.reorder = self.chance(word, words)?,
            Topic::Gap => {
                let number = words.expect(word, "a number of packets")?;
                let gap = units::integer(number, "a number of packets", 0, u32::MAX.into())?;
                self.bare.push((number.text.into(), format!("{gap} packets")));
                self.netem.gap = Some(gap as u32).filter(|gap| *gap > 0);
            }
            Topic::Distribution => self.netem.distribution = Some(shape(word, words)?),
            Topic::Rate => self.netem.rate = Some(self.rate(word, words)?),
            Topic::Slot => self.netem.slot = Some(self.slot(word, words)?),
            Topic::Seed => {
                let number = words.expect(word, "a number")?;
                let seed = number.text.parse().map_err(|_| {
                    number
                        .problem(format!("found {}, expected a seed", Found(number.text)))
                        .help(format!("a whole number from 0 to {}", u64::MAX))
                })?;
                self.netem.seed = Some(seed);
            }
        }
        Ok(())
    }

    fn loss(&mut self, word: Word<'_>, words: &mut Words<'_>) -> Result<LossOption, Problem> {
        if let Some(number) = words.take_number(false) {
            return self.chance_of(number, words).map(LossOption::Random);
        }
        const MODELS: [&str; 3] = ["random", "state", "gemodel"];
        let model = words.expect(word, "a percentage or a model")?;
        match model.text {
            "random" => self.chance(model, words).map(LossOption::Random),
            "state" => {
                words.take_if("p13");
                let first = words.expect(model, PERCENTAGE)?;
                let p13 = self.read(first, units::percent)?;
                let [p31, p32, p23, p14] = self.labelled(["p31", "p32", "p23", "p14"], words)?;
                Ok(LossOption::State {
                    p13,
                    p31: p31.unwrap_or(p13.complement()),
                    p32: p32.unwrap_or(Share::ZERO),
                    p23: p23.unwrap_or(Share::ZERO.complement()),
                    p14: p14.unwrap_or(Share::ZERO),
                })
            }
            "gemodel" => {
                words.take_if("p");
                let first = words.expect(model, PERCENTAGE)?;
                let p = self.read(first, units::percent)?;
                let [r, loss_bad, loss_good] = self.labelled(["r", "1-h", "1-k"], words)?;
                Ok(LossOption::GilbertElliott {
                    p,
                    r: r.unwrap_or(p.complement()),
                    loss_bad: loss_bad.unwrap_or(Share::ZERO.complement()),
                    loss_good: loss_good.unwrap_or(Share::ZERO),
                })
            }
            _ => {
                let problem = model.problem(format!("{} is no model of loss", Found(model.text)));
                Err(problem
                    .did_you_mean(model.text, MODELS)
                    .help(format!("allowed: a percentage, or {}", one_of(&MODELS))))
            }
        }
    }

    /// Percentages, each of which may have its name before it, up to the first that is missing.
    fn labelled<const N: usize>(
        &mut self,
        labels: [&str; N],
        words: &mut Words<'_>,
    ) -> Result<[Option<Share>; N], Problem> {
        let mut all = [None; N];
        for (slot, label) in all.iter_mut().zip(labels) {
            let labelled = words.peek().filter(|word| word.text == label);
            let number = match labelled {
                Some(word) => {
                    words.take();
                    words.expect(word, PERCENTAGE)?
                }
                None => match words.take_number(false) {
                    Some(number) => number,
                    None => break,
                },
            };
            *slot = Some(self.read(number, units::percent)?);
        }
        Ok(all)
    }

    fn rate(&mut self, word: Word<'_>, words: &mut Words<'_>) -> Result<RateOption, Problem> {
        let number = words.expect(word, "a rate")?;
        let rate = self.read(number, units::rate)?;
        let mut bytes = |label: &str, low: i64, high: i64| -> Result<i64, Problem> {
            let labelled = words.peek().filter(|word| word.text == label);
            let number = match labelled {
                Some(word) => {
                    words.take();
                    words.expect(word, "a number of bytes")?
                }
                None => match words.take_number(low < 0) {
                    Some(number) => number,
                    None => return Ok(0),
                },
            };
            let value = units::integer(number, "a number of bytes", low, high)?;
            let what = match label {
                "packetoverhead" => format!("{value} bytes more for each packet"),
                "cellsize" => format!("cells with {value} bytes of payload"),
                _ => format!("{value} bytes more for each cell"),
            };
            self.bare.push((number.text.into(), what));
            Ok(value)
        };
        /// Far more than any link layer adds, as in a scenario.
        const MOST: i64 = 65_536;
        let packet_overhead = bytes("packetoverhead", -MOST, MOST)? as i32;
        let cell_size = bytes("cellsize", 0, MOST)? as u32;
        let cell_overhead = bytes("celloverhead", -MOST, MOST)? as i32;
        if cell_size > 0 && i64::from(cell_size) + i64::from(cell_overhead) < 1 {
            return Err(number.problem(format!(
                "cells of {cell_size} bytes less {} have nothing left on the wire",
                cell_overhead.unsigned_abs()
            )));
        }
        Ok(RateOption { rate, packet_overhead, cell_size, cell_overhead })
    }

    fn slot(&mut self, word: Word<'_>, words: &mut Words<'_>) -> Result<Slot, Problem> {
        let gap = match words.take_number(false) {
            Some(first) => {
                let low = self.read(first, units::slot_time)?;
                let high = match words.take_number(false) {
                    None => low,
                    Some(second) => {
                        let high = self.read(second, units::slot_time)?;
                        if high < low {
                            return Err(second
                                .problem(format!("the longest gap, {high}, is below the shortest, {low}")));
                        }
                        high
                    }
                };
                SlotGap::Between { low, high }
            }
            None => {
                let distribution = words.expect(word, "a time or `distribution`")?;
                if distribution.text != "distribution" {
                    let text = Found(distribution.text);
                    return Err(distribution
                        .problem(format!("found {text}, expected a time or `distribution`"))
                        .help("as in: slot 800us 10ms packets 42, or slot distribution pareto 1ms 2ms"));
                }
                let shape = shape(distribution, words)?;
                let delay = words.expect(distribution, TIME)?;
                let delay = self.read(delay, units::slot_time)?;
                let jitter = words.expect(distribution, "a jitter")?;
                let jitter_word = jitter;
                let jitter = self.read(jitter, units::slot_time)?;
                if jitter == Duration::ZERO {
                    return Err(jitter_word
                        .problem("a distribution with a jitter of zero")
                        .help("a gap that does not vary is written: slot 5ms"));
                }
                SlotGap::Distribution { shape, delay, jitter }
            }
        };
        let mut most = |label: &str, bytes: bool| -> Result<u32, Problem> {
            let is_label = |word: &Word<'_>| word.text.len() > 1 && label.starts_with(word.text);
            let Some(word) = words.peek().filter(is_label) else { return Ok(0) };
            words.take();
            let number =
                words.expect(word, if bytes { "a number of bytes" } else { "a number of packets" })?;
            if bytes {
                return units::size(number, "a size", "bytes").map(|read| self.keep(number, read));
            }
            let value = units::integer(number, "a number of packets", 0, i32::MAX.into())?;
            self.bare.push((number.text.into(), format!("{value} packets")));
            Ok(value as u32)
        };
        // tc takes them in this order only; either order says the same.
        let mut bytes = most("bytes", true)?;
        let packets = most("packets", false)?;
        if bytes == 0 {
            bytes = most("bytes", true)?;
        }
        Ok(Slot { gap, packets, bytes })
    }

    /// A percentage that must follow, and the correlation that may.
    fn chance(&mut self, after: Word<'_>, words: &mut Words<'_>) -> Result<Chance, Problem> {
        let number = words.expect(after, PERCENTAGE)?;
        self.chance_of(number, words)
    }

    fn chance_of(&mut self, number: Word<'_>, words: &mut Words<'_>) -> Result<Chance, Problem> {
        let share = self.read(number, units::percent)?;
        let correlation = self.correlation(words)?;
        // Of what never happens nothing depends on anything.
        let correlation = if share.is_zero() { Share::ZERO } else { correlation };
        Ok(Chance { share, correlation })
    }

    fn correlation(&mut self, words: &mut Words<'_>) -> Result<Share, Problem> {
        words.take_number(false).map_or(Ok(Share::ZERO), |number| self.read(number, units::percent))
    }

    fn read<'a, T>(
        &mut self,
        word: Word<'a>,
        read: impl FnOnce(Word<'a>) -> Result<Read<T>, Problem>,
    ) -> Result<T, Problem> {
        read(word).map(|read| self.keep(word, read))
    }

    /// Notes what a bare number was taken as.
    fn keep<T>(&mut self, word: Word<'_>, read: Read<T>) -> T {
        self.bare.extend(read.taken_as.map(|taken| (word.text.to_owned(), taken)));
        read.value
    }
}

/// The name of a distribution: one of four, or that of a table's file.
fn shape(after: Word<'_>, words: &mut Words<'_>) -> Result<Shape, Problem> {
    let name = words.expect(after, "the name of a distribution")?;
    if let Some((_, shape)) = Shape::NAMED.iter().find(|(known, _)| *known == name.text) {
        return Ok(shape.clone());
    }
    // tc looks for NAME.dist in its own folder; here a name says which file.
    let is_file = name.text.ends_with(".dist") || name.text.contains('/');
    let names = Shape::NAMED.map(|(name, _)| name);
    let close = nearest(name.text, names).filter(|near| strsim::jaro_winkler(near, name.text) > 0.88);
    match close {
        Some(near) if !is_file => Err(name
            .problem(format!("{} is no distribution", Found(name.text)))
            .help(format!("did you mean `{near}`?"))
            .help(format!("allowed: {}, or the name of a table's file, such as mine.dist", one_of(&names)))),
        _ if is_file => Ok(Shape::File(name.text.into())),
        _ if name.text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            Ok(Shape::File(format!("{}.dist", name.text)))
        }
        _ => Err(name
            .problem(format!("{} is no distribution", Found(name.text)))
            .help(format!("allowed: {}, or the name of a table's file, such as mine.dist", one_of(&names)))),
    }
}
