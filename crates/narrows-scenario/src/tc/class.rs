//! Classes and their options.

use narrows_core::Bytes;
use narrows_core::sched::{ErrorWidth, Estimator};

use super::abbreviation;
use super::unit::{
    BYTES, ESTIMATOR, GAMMA, MICROS, PACKET, PACKETS, PLAIN_QUANTUM, QUANTUM, RATE, SHARE_OF_1024, SIZE,
    TIME, WEIGHT, missing, size_of, whole,
};
use super::{bucket, hfsc};
use crate::dialect::{Follows, Opt, Options, Unit, Word, Words, number, number_of, text_of};
use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem, one_of};

/// A class of a qdisc.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kind {
    pub(super) of: Of,
    /// Its keys as a class in a scenario.
    pub(super) keys: Table,
    /// For `hpd`: its number.
    pub(super) num: Option<u16>,
    /// For `hpd`: whether it is the class of unclassified packets.
    pub(super) is_default: bool,
}

/// The qdiscs that have classes with options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Htb,
    Cbq,
    Hfsc,
    Hpd,
    Drr,
    Qfq,
    /// Its classes exist by themselves, and can be changed.
    Ets,
}

/// Their names.
pub(super) const NAMES: &[&str] = &["htb", "cbq", "hfsc", "hpd", "drr", "qfq", "ets"];

/// The kernel has eight priorities, and takes higher numbers for the last one.
const PRIORITY: Unit = Unit {
    read: |word, of| {
        let given = whole::<0, { u32::MAX as i64 }>();
        (given.read)(word, of).map(|read| {
            read.map(|value| match value {
                Value::Integer(priority) => number(priority.parse().unwrap_or(7).min(7)),
                other => other,
            })
        })
    },
    ..whole::<0, 7>()
};

pub(super) const HTB: Options = Options(&[&[
    Opt::value(&["prio"], "priority", PRIORITY),
    Opt::value(&["quantum"], "quantum", BYTES),
    Opt::value(&["rate"], "rate", RATE),
    Opt::value(&["ceil"], "ceil", RATE),
    Opt::value(&["burst", "buffer"], "burst", SIZE),
    Opt::value(&["cburst", "cbuffer"], "cburst", SIZE),
    Opt::value(&["mpu"], "mpu", SIZE).zero_is_none(),
    Opt::value(&["overhead"], bucket::OVERHEAD, whole::<0, 1500>()).zero_is_none(),
    Opt::value(&["linklayer"], bucket::LINK_LAYER, bucket::LAYER),
    // What a burst is that is not said.
    Opt::value(&["mtu"], "mtu", SIZE),
    // As in tc's output.
    Opt::nothing(&["level"], Follows::One("a number")),
]]);

pub(super) const CBQ: Options = Options(&[&[
    Opt::value(&["rate"], "rate", RATE),
    Opt::value(&["prio"], "priority", whole::<1, 8>()),
    Opt::value(&["allot"], "allot", SIZE),
    Opt::value(&["avpkt"], "avpkt", SIZE),
    Opt::value(&["weight"], "weight", WEIGHT),
    Opt::value(&["maxburst"], "maxburst", whole::<0, { 1 << 20 }>()).zero_is_none(),
    Opt::value(&["minburst"], "minburst", whole::<0, { 1 << 20 }>()).zero_is_none(),
    Opt::value(&["minidle"], "minidle", TIME),
    Opt::value(&["ewma"], "ewma", whole::<0, 31>()),
    Opt::switch(&["bounded"], &["sharing", "borrow"], "bounded"),
    Opt::switch(&["isolated"], &[], "isolated"),
    Opt::switch(&["exempt"], &[], "exempt"),
    Opt::value(&["mpu"], "mpu", SIZE).zero_is_none(),
    // Properties of the wire, which belong to the qdisc; and the resolution of a rate table that does not
    // exist here.
    Opt::nothing(&["bandwidth", "cell", "split", "defmap", "estimator"], Follows::One("a value")),
]]);

/// `num` and `default` exist in tc only; the options of the estimator are keys of a nested table.
pub(super) const HPD: Options = Options(&[&[
    Opt::value(&["num"], "num", whole::<1, 32>()),
    Opt::switch(&["default"], &[], "default"),
    Opt::value(&["ewma"], "estimator", ESTIMATOR),
    Opt::value(&["limit"], "limit", MICROS).zero_is_none(),
    Opt::value(&["qlen"], "queue", PACKETS),
    Opt::value(&["ddp"], "ddp", whole::<1, { u32::MAX as i64 }>()),
    Opt::value(&["gamma"], "gamma", GAMMA),
    Opt::value(&["weight"], "g", SHARE_OF_1024),
    Opt::value(&["restart"], "threshold", whole::<0, { u32::MAX as i64 }>()),
    Opt::value(&["cycle"], "cycle", MICROS),
    Opt::value(&["properr"], "steps", whole::<1, 255>()),
]]);

pub(super) const DRR: Options = Options(&[&[Opt::value(&["quantum"], "quantum", QUANTUM)]]);

pub(super) const QFQ: Options = Options(&[&[
    Opt::value(&["weight"], "weight", whole::<1, 1024>()),
    Opt::value(&["maxpkt"], "longest", PACKET),
]]);

const ETS: Options = Options(&[&[Opt::value(&["quantum"], "quantum", PLAIN_QUANTUM)]]);

impl Kind {
    /// The class after a change to it. As in the kernel, an HFSC class keeps the curves that are not named, and a
    /// class of `drr` its quantum; all others get all options each time.
    pub(super) fn changed_from(self, before: &Self) -> Self {
        if !matches!(self.of, Of::Hfsc | Of::Drr) {
            return self;
        }
        let mut keys = before.keys.clone();
        self.keys.iter().for_each(|(key, node)| keys.set(&key.name, node.clone()));
        Self { keys, ..self }
    }
}

pub(super) fn read(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let word = words.take().expect("the caller looked");
    let plain = |of, keys| Kind { of, keys, num: None, is_default: false };
    match word.text {
        "htb" => htb(word, words).map(|keys| plain(Of::Htb, keys)),
        "hfsc" => hfsc::class(word, words).map(|keys| plain(Of::Hfsc, keys)),
        "cbq" => cbq(words).map(|keys| plain(Of::Cbq, keys)),
        "hpd" => hpd(words),
        "drr" => DRR.read_all("drr", words).map(|keys| plain(Of::Drr, keys)),
        "ets" => ETS.read_all("ets", words).map(|keys| plain(Of::Ets, keys)),
        "qfq" => {
            abbreviation::read_all(QFQ, &["weight", "maxpkt"], "qfq", words).map(|keys| plain(Of::Qfq, keys))
        }
        "prio" => Err(word
            .problem("`prio` creates its classes itself: its bands")
            .help("the first is 1:1 for the discipline 1:")),
        other => Err(word
            .problem(format!("classes of {} are not supported", Found(other)))
            .did_you_mean(other, NAMES.iter().copied())
            .help(format!("understood: {}", one_of(NAMES)))),
    }
}

/// tc's default for `burst` and `cburst`: its `mtu`, by default 1600 bytes, and what the rate is in a tick of the kernel's
/// clock. The kernel says in /proc/net/psched that a tick is a nanosecond, which is less than two bytes below 16 Gbit/s.
const USUAL_BURST: Bytes = Bytes::new(1600);

fn htb(name: Word<'_>, words: &mut Words<'_>) -> Result<Table, Problem> {
    const SHORT: &[&str] = &["prio", "mtu", "mpu", "overhead", "linklayer", "quantum", "burst", "cburst"];
    let mut keys = abbreviation::read_all(HTB, SHORT, "htb", words)?;
    if keys.get("rate").is_none() {
        return Err(missing(name, "rate", "htb rate 1mbit ceil 2mbit"));
    }
    // Below one packet, the kernel lets a class go into debt. So a burst as small as tc's own default
    // becomes one packet.
    let usual = size_of(&keys, "mtu").unwrap_or(USUAL_BURST);
    keys.remove("mtu");
    for key in ["burst", "cburst"] {
        let burst = size_of(&keys, key).unwrap_or(usual);
        keys.set(key, Node::new(text(burst.max(Bytes::new(1500)))));
    }
    if number_of(&keys, "priority") == Some(0) {
        keys.remove("priority");
    }
    Ok(keys)
}

fn cbq(words: &mut Words<'_>) -> Result<Table, Problem> {
    let mut keys = CBQ.read_all("cbq", words)?;
    if keys.get("bounded").is_some_and(|node| node.value == Value::Boolean(false)) {
        keys.remove("bounded");
    }
    Ok(keys)
}

fn hpd(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let said = HPD.read_all("hpd", words)?;
    let or = |key: &str, usual: Value| said.get(key).map_or(usual, |node| node.value.clone());
    let mut keys = Table::default();
    for (key, usual) in [("ddp", 1), ("gamma", 512), ("g", 512)] {
        keys.put(key, or(key, number(usual)));
    }
    let copy = |key: &str, keys: &mut Table| {
        if let Some(node) = said.get(key) {
            keys.put(key, node.value.clone());
        }
    };
    copy("limit", &mut keys);
    let mut estimator = Table::default();
    let name = text_of(&said, "estimator");
    estimator.put("type", text(&name));
    match name.as_str() {
        "ewma-r" => {
            estimator.put("threshold", or("threshold", number(Estimator::THRESHOLD)));
            estimator.put("cycle", or("cycle", text(Estimator::CYCLE)));
            keys.put("estimator", Value::Table(estimator));
        }
        "ewma-pe" => {
            estimator.put("steps", or("steps", number(ErrorWidth::Eighth.steps())));
            estimator.put("width", text("12.5%"));
            keys.put("estimator", Value::Table(estimator));
        }
        _ => {}
    }
    copy("queue", &mut keys);
    let (num, is_default) = (number_of(&said, "num"), said.get("default").is_some());
    Ok(Kind { of: Of::Hpd, keys, num, is_default })
}
