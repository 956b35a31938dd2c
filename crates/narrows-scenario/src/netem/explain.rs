//! What a text means, in words: option by option, with what each bare number was taken as.

use std::fmt;

use narrows_core::Duration;

use super::clause::{Clause, Topic};
use super::options::{Chance, DEFAULT_LIMIT, LossOption, Netem, RateOption, Shape, Slot, SlotGap};
use super::{FedDelay, Kind, Qdisc};

/// The words for a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The options in the order in which they were written.
    pub options: Vec<ExplainedOption>,
    /// What holds because something was not said.
    pub notes: Vec<String>,
}

/// The words for an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedOption {
    /// As it was written.
    pub text: String,
    /// Numbers without a unit, and what each was taken as.
    pub bare_numbers: Vec<(String, String)>,
    /// What it does, in sentences.
    pub meaning: Vec<String>,
}

impl Qdisc {
    /// Says what each option does.
    pub fn explain(&self) -> Explanation {
        let (words, notes): (Box<dyn Fn(Topic) -> Vec<String> + '_>, _) = match &self.kind {
            Kind::Netem(netem) => (Box::new(|topic| netem.words(topic)), netem.notes(&self.clauses)),
            Kind::Delay(delay) => (Box::new(|topic| delay.words(topic)), delay.notes()),
        };
        let option = |clause: &Clause| ExplainedOption {
            text: clause.text.clone(),
            bare_numbers: clause.bare.clone(),
            meaning: words(clause.topic),
        };
        Explanation { options: self.clauses.iter().map(option).collect(), notes }
    }
}

impl Netem {
    fn words(&self, topic: Topic) -> Vec<String> {
        match topic {
            Topic::Limit => self.limit_words(self.limit.unwrap_or(DEFAULT_LIMIT)),
            Topic::Delay => self.delay_words(),
            Topic::Distribution => vec![match self.distribution.as_ref().unwrap_or(&Shape::Uniform) {
                Shape::Uniform => "Every delay within the jitter is equally likely.".into(),
                Shape::Normal => "The jitter is the standard deviation of a normal distribution; what would be below zero is zero.".into(),
                Shape::Pareto => "A Pareto distribution of shape 3 as in tc's table, which ends 4 jitters above the mean: its standard deviation is 0.82 jitters.".into(),
                Shape::ParetoNormal => "A quarter normal and three quarters Pareto, as in tc's table.".into(),
                Shape::File(name) => format!("The table in the file {name}, of which 8192 stands for one jitter."),
            }],
            Topic::Loss => self.loss.map_or(Vec::new(), |loss| {
                let place = if self.has_rate() { "before they wait for the rate" } else { "before anything else" };
                loss_words(loss, self.ecn, place)
            }),
            Topic::Ecn => vec!["A packet that `loss` would lose is marked (CE) instead, if it is ECN-capable; others are lost.".into()],
            Topic::Duplicate => chance_words(self.duplicate, "Packets that arrive twice", "Each is duplicated on the wire; the copy takes no time to send and has a delay of its own."),
            Topic::Corrupt => chance_words(self.corrupt, "Packets with one flipped bit", "The bit is at a random place; checksums are left as they are."),
            Topic::Reorder | Topic::Gap => self.reorder_words(topic),
            Topic::Rate => self.rate.map_or(Vec::new(), rate_words),
            Topic::Slot => self.slot.as_ref().map_or(Vec::new(), slot_words),
            Topic::Seed => vec!["The seed of the scenario: the same seed gives the same packets the same fate. The draws are not those of the kernel.".into()],
        }
    }

    fn has_rate(&self) -> bool {
        self.rate.is_some_and(|rate| rate.rate.bits_per_second() > 0)
    }

    fn limit_words(&self, limit: u64) -> Vec<String> {
        let limit = count(limit, "packet");
        if self.has_rate() {
            return vec![format!(
                "At most {limit} wait for the rate; one that finds them there is dropped. Packets in flight behind the rate do not count. (In tc's netem they do.)"
            )];
        }
        vec![format!(
            "There is no rate to wait for, so it bounds the delay line: at most {limit} in flight at once; one that finds them there is dropped."
        )]
    }

    fn delay_words(&self) -> Vec<String> {
        let Self { delay, jitter, .. } = *self;
        if jitter == Duration::ZERO {
            return vec![format!("Each packet propagates for {delay}.")];
        }
        let spread = match self.distribution.as_ref().unwrap_or(&Shape::Uniform) {
            Shape::Uniform if delay >= jitter => {
                format!("{delay} ± {jitter}: uniform from {} to {}.", delay - jitter, delay + jitter)
            }
            Shape::Uniform => format!(
                "{delay} ± {jitter}: uniform up to {}; what would be below zero is zero.",
                delay + jitter
            ),
            shape => format!("{delay} on average, spread by {jitter} ({}).", shape.word()),
        };
        let mut words = vec![spread];
        if !self.delay_correlation.is_zero() {
            words.push(format!(
                "A packet's delay and the next one's have a rank correlation (Spearman's) of {}, and the distribution stays what it is. (NetEm's formula makes it narrower.)",
                self.delay_correlation
            ));
        }
        words.push(if self.overtakes() {
            "A packet that draws less than the one before it may overtake it, as in NetEm.".into()
        } else {
            "No packet overtakes another, as in NetEm where a rate is given.".into()
        });
        words
    }

    fn reorder_words(&self, topic: Topic) -> Vec<String> {
        let Some((chance, gap)) = self.reordering() else { return vec!["No packet skips the delay.".into()] };
        let alone = self.reorder.share.is_zero();
        match topic {
            Topic::Gap if alone => vec![
                format!("Every {} packet skips the delay.", ordinal(gap)),
                "Without `reorder` today's tc refuses `gap`; it is taken as older kernels had it: reorder 100%.".into(),
            ],
            Topic::Gap => vec![match gap {
                1 => "Every packet may skip the delay.".into(),
                2 => "After a packet that skipped the delay the next one has it.".into(),
                _ => format!("After a packet that skipped the delay the next {} have it.", gap - 1),
            }],
            _ if alone => vec!["No packet is chosen by `reorder` itself.".into()],
            _ => chance_words(chance, "Packets that skip the delay and leave at once", "They overtake those in flight."),
        }
    }

    /// What was not said.
    fn notes(&self, clauses: &[Clause]) -> Vec<String> {
        let said = |topic| clauses.iter().any(|clause| clause.topic == topic);
        let mut notes = Vec::new();
        if clauses.is_empty() {
            notes.push("No option is given: the link does nothing to packets.".into());
        }
        if !said(Topic::Limit) {
            notes.push(if self.has_rate() {
                format!("No limit is given: {DEFAULT_LIMIT} packets may wait for the rate, tc's default.")
            } else {
                format!("No limit is given and there is no rate to wait for: nothing is dropped for want of room. (tc's netem holds {DEFAULT_LIMIT} packets at most.)")
            });
        }
        if said(Topic::Delay) && !said(Topic::Distribution) && self.jitter > Duration::ZERO {
            notes.push(
                "No distribution is named: the jitter is uniform, whatever the manual page says.".into(),
            );
        }
        notes
    }
}

impl FedDelay {
    fn words(self, topic: Topic) -> Vec<String> {
        match topic {
            Topic::Limit => vec![format!(
                "At most {} are in flight at once; one that finds them there is dropped.",
                count(self.limit, "packet")
            )],
            _ if self.reorder => vec!["Packets leave by their delays, and overtake one another.".into()],
            _ => vec!["Packets leave in the order in which they came.".into()],
        }
    }

    fn notes(self) -> Vec<String> {
        vec![format!(
            "Each packet takes the next delay that another program has handed in (`narrows feed`); where none is left it has no delay, as with sch_delay. Values come by a socket, the feed `{}`, not by a device.",
            super::translation::FEED
        )]
    }
}

fn rate_words(rate: RateOption) -> Vec<String> {
    let RateOption { rate, packet_overhead, cell_size, cell_overhead } = rate;
    if rate.bits_per_second() == 0 {
        return vec!["A rate of zero is none to netem: packets take no time to send.".into()];
    }
    let mut length = "A packet counts with its link header (14 bytes on Ethernet)".to_owned();
    match packet_overhead {
        0 => {}
        more if more > 0 => length += &format!(" and {more} bytes more"),
        less => length += &format!(", less {} bytes", less.unsigned_abs()),
    }
    if cell_size > 0 {
        let size = i64::from(cell_size) + i64::from(cell_overhead);
        length += &format!(", in cells of {cell_size} bytes that take {size} on the wire");
    }
    vec![format!("The wire takes {rate} a second, one packet after another, without bursts. {length}.")]
}

fn loss_words(loss: LossOption, ecn: bool, place: &str) -> Vec<String> {
    let where_lost = format!("It happens {place}.");
    let verb = if ecn { "marked or lost" } else { "lost" };
    match loss {
        _ if loss.is_none() => vec!["No packet is lost.".into()],
        LossOption::Random(chance) => chance_words(chance, &format!("Packets that are {verb}"), &where_lost),
        LossOption::State { p13, p31, p32, p23, p14 } => vec![
            format!(
                "Packets are {verb} by a Markov chain of four states that makes a step at each packet: from good to a burst of losses {p13} and back {p31}; within the burst from lost to received {p32} and back {p23}; from good to a single loss {p14}."
            ),
            where_lost,
        ],
        LossOption::GilbertElliott { p, r, loss_bad, loss_good } => vec![
            format!(
                "Packets are {verb} by Gilbert and Elliott's model, in two states: from good to bad {p}, from bad to good {r} at each packet. In the bad state {loss_bad} of the packets are {verb}, in the good one {loss_good}."
            ),
            where_lost,
        ],
    }
}

fn slot_words(slot: &Slot) -> Vec<String> {
    if !slot.is_some() {
        return vec!["A gap of zero: packets leave when they are due.".into()];
    }
    let gap = match &slot.gap {
        SlotGap::Between { low, high } if low == high => format!("{low}"),
        SlotGap::Between { low, high } => format!("{low} to {high}"),
        SlotGap::Distribution { shape, delay, jitter } => format!("{delay} ± {jitter} ({})", shape.word()),
    };
    let mut most: Vec<String> = Vec::new();
    if slot.packets > 0 {
        most.push(count(slot.packets.into(), "packet"));
    }
    if slot.bytes > 0 {
        most.push(format!("{} bytes", slot.bytes));
    }
    let most =
        if most.is_empty() { "all that are due".into() } else { format!("at most {}", most.join(" and ")) };
    vec![
        format!("Packets that are due wait for a slot, and leave together when it opens: {most}. A slot opens {gap} after it was asked for."),
        "It is asked for when a packet falls due, whenever anybody looks. (NetEm's slots also depend on when it is polled.)".into(),
    ]
}

fn chance_words(Chance { share, correlation }: Chance, what: &str, more: &str) -> Vec<String> {
    if share.is_zero() {
        return vec![format!("{what}: none.")];
    }
    let first = if correlation.is_zero() {
        format!("{what}: {share}, independently of one another. {more}")
    } else {
        format!("{what}: {share}. {more}")
    };
    let mut words = vec![first];
    if !correlation.is_zero() {
        words.push(format!(
            "The draws of a packet and the next have a rank correlation (Spearman's) of {correlation}, and the share stays {share}. (NetEm's formula changes it.)"
        ));
    }
    words
}

fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (1, teen) if teen != 11 => "st",
        (2, teen) if teen != 12 => "nd",
        (3, teen) if teen != 13 => "rd",
        _ => "th",
    };
    if number == 1 { "single".into() } else { format!("{number}{ending}") }
}

/// A paragraph for each option, as a person reads it.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for option in &self.options {
            writeln!(f, "{}", option.text)?;
            for (number, taken) in &option.bare_numbers {
                writeln!(f, "    {number} is taken as {taken}")?;
            }
            option.meaning.iter().try_for_each(|words| wrapped(f, words))?;
        }
        if !self.notes.is_empty() {
            writeln!(f, "not said")?;
            self.notes.iter().try_for_each(|note| wrapped(f, note))?;
        }
        Ok(())
    }
}

/// Lines of a hundred characters at most, indented.
fn wrapped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    const WIDTH: usize = 100;
    let mut line = String::from("   ");
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(f, "{line}")?;
            line = "   ".into();
        }
        line.push(' ');
        line += word;
    }
    writeln!(f, "{line}")
}
