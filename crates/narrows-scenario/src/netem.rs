//! NetEm options in tc syntax: `delay 100ms 20ms 25% loss 1% rate 1mbit limit 50`.
//!
//! [`parse`] reads a text into a [`Qdisc`], which converts to the keys of a link's direction
//! ([`Qdisc::assignments`]), to an explanation ([`Qdisc::explain`]), or back to text ([`Qdisc::text`]). The
//! keys model a **double queue** (Moe, "Implementing rate control in NetEm: untying the NetEm/tc tangle",
//! 2013): `limit` bounds the packets waiting for the `rate`, not those in flight after it. `docs/netem.md`
//! lists what matches the kernel and what differs.
//!
//! ```
//! let qdisc = narrows_scenario::netem::parse("delay 100ms loss 1% rate 1mbit limit 50")?;
//! let keys: Vec<String> =
//!     qdisc.assignments()?.iter().map(|(key, value)| format!("{key} = {value}")).collect();
//! assert_eq!(
//!     keys,
//!     [
//!         r#"rate = "1mbit""#,
//!         r#"overhead = "frame""#,
//!         r#"queue = "50 packets""#,
//!         r#"delay = "100ms""#,
//!         r#"loss = { ingress = "1%" }"#,
//!     ]
//! );
//! # Ok::<(), narrows_scenario::ScenarioError>(())
//! ```

mod chance;
mod change;
pub(crate) mod command;
mod delay;
mod exact;
mod explain;
mod fed;
mod kernel;
mod keys;
mod limit;
mod loss;
mod options;
mod rate;
mod release;
mod row;
mod shape;
mod slot;
pub(crate) mod units;
mod value;
mod words;

pub(crate) use chance::COPIES;
pub(crate) use command::skip_prompt;
pub use command::{Command, Verb};
pub use explain::{ExplainedOption, Explanation};
pub use fed::FedDelay;
pub use keys::{Assignment, CurrentConfig, replacement};
pub(crate) use keys::{current_config, plain, reset};
use narrows_core::Duration;
pub use options::{Chance, DEFAULT_LIMIT, LossOption, Netem, RateOption, Shape, Slot, SlotGap};
pub use release::Linux;
pub(crate) use row::Around;
use row::{Clause, Row, Said};

use crate::dialect::{Word, Words};
use crate::node::{Node, Value};
use crate::problem::{Found, Problem, ScenarioError, one_of};
use crate::two_hosts;

/// The options, in the order in which tc shows them.
///
/// The grammar is that of iproute2 (`tc/q_netem.c`, 6.9). It also accepts the labels that tc prints: `p13`,
/// `p`, `r`, `1-h`, `1-k`, `packetoverhead`, `cellsize` and `celloverhead` before their numbers. `kernel` is
/// not tc's.
const OPTIONS: &[Row<Netem>] = &[
    limit::LIMIT,
    delay::DELAY,
    delay::DISTRIBUTION,
    loss::LOSS,
    chance::DUPLICATE,
    chance::REORDER,
    chance::CORRUPT,
    limit::SEED,
    rate::RATE,
    slot::SLOT,
    loss::ECN,
    chance::GAP,
    kernel::KERNEL,
];

/// A root queueing discipline that narrows supports.
#[derive(Clone, Debug)]
pub struct Qdisc {
    /// The kind of qdisc.
    pub kind: Kind,
    /// The options as written.
    clauses: Vec<Clause>,
}

/// Qdiscs are equal if they have the same meaning.
impl PartialEq for Qdisc {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// The kinds of qdiscs.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `netem`
    Netem(Box<Netem>),
    /// `delay`: delays supplied by another program (`sch_delay`).
    Delay(FedDelay),
}

/// Name of the text in errors.
const NAME: &str = "netem";
/// How delays are explained that have a jitter, and no distribution.
pub(crate) const UNIFORM: &str = "No distribution is named: the jitter is uniform, despite the manual page.";
/// How those are explained that do not keep packets in order.
pub(crate) const OVERTAKES: &str =
    "A packet with a shorter delay may overtake the one before it, as in NetEm.";

/// Parses options, optionally preceded by `root` and `netem`.
///
/// # Errors
/// The error points at the word, and says what is allowed there.
pub fn parse(text: &str) -> Result<Qdisc, ScenarioError> {
    read_text(text).map_err(|problem| ScenarioError::new(NAME, text, vec![problem]))
}

/// Parses the options in a value of a scenario.
pub(crate) fn read(node: &Node) -> Result<Qdisc, Problem> {
    let text = node.text("the options of netem, such as \"delay 100ms 10ms loss 1%\"")?;
    // The value is quoted, unless it comes from a flag or an assignment. In a string with escapes, the
    // place in errors is approximate.
    let quote = node.span.len().saturating_sub(text.len()) / 2;
    read_text(text).map_err(|problem| problem.moved(node.span.start + quote))
}

/// Same for exact NetEm, which supports `netem` only.
pub(crate) fn read_exact(node: &Node) -> Result<Netem, Problem> {
    match read(node)?.kind {
        Kind::Netem(netem) => Ok(*netem),
        Kind::Delay(_) => Err(Problem::new("`delay` is a queueing discipline of its own, not NetEm's")
            .at(&node.span)
            .help("write it as `netem = \"root delay limit 1000\"`, or leave out `root` for NetEm's option")),
    }
}

fn read_text(text: &str) -> Result<Qdisc, Problem> {
    let mut words = Words::new(text);
    if words.take_if("root") {
        return kind(&mut words);
    }
    words.take_if(NAME);
    netem(&mut words)
}

fn netem(words: &mut Words<'_>) -> Result<Qdisc, Problem> {
    let mut netem = Netem::default();
    let said = row::read_all(OPTIONS, "option of netem", &mut netem, words, hint)?;
    check(&netem, &said)?;
    Ok(Qdisc { kind: Kind::Netem(Box::new(netem)), clauses: said.clauses() })
}

/// Checks combinations of options, as tc does.
fn check(netem: &Netem, said: &Said<'_>) -> Result<(), Problem> {
    let without_delay = netem.delay == Duration::ZERO;
    let reorders = !netem.reorder.share.is_zero() || netem.gap.is_some();
    if let Some(word) = said.word("reorder").or(said.word("gap"))
        && reorders
        && without_delay
    {
        return Err(word
            .problem(format!("{} without a delay to skip", Found(word.text)))
            .help("give a delay, too, as in: delay 10ms reorder 25% 50%"));
    }
    if let Some(word) = said.word("distribution")
        && (without_delay || netem.jitter == Duration::ZERO)
    {
        return Err(word
            .problem("a distribution for a constant delay")
            .help("give a delay and its jitter, as in: delay 100ms 20ms distribution normal"));
    }
    if let Some(word) = said.word("ecn")
        && netem.loss.is_none()
    {
        return Err(word
            .problem("`ecn` without `loss`")
            .help("it marks packets that `loss` would drop, as in: loss 1% ecn"));
    }
    Ok(())
}

/// Adds a hint for words that are often mistaken for options.
fn hint(word: Word<'_>, problem: Problem) -> Problem {
    match word.text {
        "jitter" => word
            .problem("netem has no option `jitter`")
            .help("the jitter follows the delay, as in: delay 100ms 10ms"),
        "tc" | "qdisc" | "netem" | "root" | "dev" => word
            .problem(format!("{} is not among the options", Found(word.text)))
            .help("give what follows `netem` alone, as in: delay 100ms loss 1%"),
        "bandwidth" | "bw" => word
            .problem(format!("{} is not an option of netem", Found(word.text)))
            .help("did you mean `rate`?"),
        _ => problem,
    }
}

/// Parses the name of a qdisc and its options.
pub(crate) fn kind(words: &mut Words<'_>) -> Result<Qdisc, Problem> {
    let Some(word) = words.take() else {
        return Err(Problem::new("the queueing discipline is missing")
            .help("after `root` write `netem` and its options"));
    };
    match word.text {
        NAME => netem(words),
        "delay" => fed_delay(words),
        _ => Err(other_kind(word)),
    }
}

/// The error for another qdisc, with its replacement.
fn other_kind(word: Word<'_>) -> Problem {
    const INSTEAD: &[(&str, &str)] = &[
        ("tbf", "netem's `rate`, or the keys `rate` and `queue` of a link"),
        ("fq_codel", "the key `scheduler = \"fq_codel\"` of a link"),
        ("fq_pie", "the key `scheduler = \"fq_pie\"` of a link"),
        ("sfq", "the key `scheduler = \"sfq\"` of a link"),
        ("drr", "the key `scheduler` of a link, of type `drr`"),
        ("qfq", "the key `scheduler` of a link, of type `qfq`"),
        ("prio", "the key `scheduler` of a link, of type `prio`"),
        ("pfifo_fast", "the key `scheduler = \"pfifo_fast\"` of a link"),
        ("codel", "the key `queue = \"codel\"` of a link"),
        ("pie", "the key `queue = \"pie\"` of a link"),
        ("red", "the key `queue`, of type `red`"),
        ("pfifo", "the key `queue = \"100 packets\"` of a link"),
        ("bfifo", "the key `queue = \"64kB\"` of a link"),
        ("htb", "the key `scheduler` of a link, of type `htb`, or `--tc` with the script"),
        ("cake", "the key `scheduler = \"cake\"` of a link, or a tc script (`--tc`)"),
    ];
    let problem = word.problem(format!("unknown queueing discipline {}", Found(word.text)));
    let known = ["netem", "delay"];
    match INSTEAD.iter().find(|(name, _)| *name == word.text) {
        Some((_, instead)) => problem.help(format!("use {instead}")),
        None => problem.did_you_mean(word.text, known),
    }
    .help(format!("understood: {}", one_of(&known)))
}

fn fed_delay(words: &mut Words<'_>) -> Result<Qdisc, Problem> {
    let mut delay = FedDelay::default();
    let said = row::read_all(fed::OPTIONS, "option of delay", &mut delay, words, |_, problem| problem)?;
    Ok(Qdisc { kind: Kind::Delay(delay), clauses: said.clauses() })
}

impl Netem {
    /// The options in tc syntax, in the order in which tc shows them; `limit` only if it is not the
    /// default.
    pub fn text(&self) -> String {
        row::show(OPTIONS, self)
    }
}

impl Netem {
    /// The same as tc can read it: without the release.
    pub(crate) fn text_for_tc(&self) -> String {
        Self { kernel: None, ..self.clone() }.text()
    }
}

impl Qdisc {
    /// The options in tc syntax, in the order in which tc shows them. Parsing them again gives an equal
    /// qdisc.
    pub fn text(&self) -> String {
        match &self.kind {
            Kind::Netem(netem) => netem.text(),
            Kind::Delay(delay) => format!("root delay {}", row::show(fed::OPTIONS, delay)),
        }
    }

    /// The equivalent keys of a direction, with their values as written in a file. All other keys have the
    /// value of a plain link.
    ///
    /// # Errors
    /// If a scenario cannot express the options.
    pub fn assignments(&self) -> Result<Vec<Assignment>, ScenarioError> {
        let text = self.text();
        let keys = self.keys();
        let keys =
            keys.map_err(|problem| ScenarioError::new(NAME, &text, vec![problem.put_at(&(0..text.len()))]))?;
        Ok(keys.into_iter().map(|(key, value)| (key, Node::new(value).toml())).collect())
    }

    /// A scenario file of a client, a server and a link between them with these settings in both
    /// directions; with `exact`, NetEm is its single queue.
    ///
    /// # Errors
    /// As [`Qdisc::assignments`].
    pub fn scenario_text(&self, exact: bool) -> Result<String, ScenarioError> {
        let seed = self.seed().map_or(String::new(), |seed| {
            let quote = if i64::try_from(seed).is_ok() { "" } else { "\"" };
            format!("seed = {quote}{seed}{quote}\n\n")
        });
        let keys = match exact && matches!(self.kind, Kind::Netem(_)) {
            true => vec![("exact-netem", crate::node::toml_string(&self.text()))],
            false => self.assignments()?,
        };
        Ok(seed + &two_hosts::text(keys.iter().map(|(key, value)| (*key, value.as_str())), []))
    }

    /// Whether both are of the same kind: only then can one be changed into the other.
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(&self.kind) == std::mem::discriminant(&other.kind)
    }

    /// The seed, if given.
    pub fn seed(&self) -> Option<u64> {
        match &self.kind {
            Kind::Netem(netem) => netem.seed,
            Kind::Delay(_) => None,
        }
    }

    /// Whether packets wait for a rate of its own.
    pub(crate) fn has_a_rate(&self) -> bool {
        matches!(&self.kind, Kind::Netem(netem) if netem.has_rate())
    }

    /// Whether packets wait for one another, or for a feed's next value.
    pub(crate) fn has_slots(&self) -> bool {
        match &self.kind {
            Kind::Netem(netem) => netem.slot.is_some(),
            Kind::Delay(_) => true,
        }
    }

    /// Same as values.
    pub(crate) fn keys(&self) -> Result<Vec<(&'static str, Value)>, Problem> {
        match &self.kind {
            Kind::Netem(netem) => netem.keys(),
            Kind::Delay(delay) => Ok(delay.keys()),
        }
    }
}

#[cfg(test)]
mod tests;
