//! The options of pipes, queues and schedulers, and their keys. Values are printed as in `ipfw pipe show`
//! and similar commands.

use std::ops::RangeInclusive;

use narrows_core::queue::Bound;

use super::Object;
use crate::dialect::{Follows, Opt, Options, Read, Unit, Word, number, number_of, shown_as_is};
use crate::ipfw::{numbers, quantity};
use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::units::{self, Number, Share};

/// The options of an object that consist of a word and a value. Masks and options with sub-options are
/// parsed by hand.
pub(super) const fn of(object: Object) -> Options {
    match object {
        Object::Pipe => Options(&[PIPE, COMMON_ROWS, BUCKETS]),
        Object::Queue => Options(&[QUEUE, COMMON_ROWS, BUCKETS]),
        Object::Scheduler => Options(&[BUCKETS]),
    }
}

/// Options of both pipes and queues.
pub(in crate::ipfw) const COMMON: Options = Options(&[COMMON_ROWS]);

const PIPE: &[Opt] = &[
    Opt::value(
        &["bw", "bandwidth"],
        "rate",
        Unit { what: "a rate", read: |word, _| Ok(quantity::rate(word)?.map(text)), show: shown_as_is },
    ),
    Opt::value(
        &["delay"],
        "delay",
        Unit { what: "a time", read: |word, _| Ok(quantity::delay(word)?.map(text)), show: shown_as_is },
    ),
    Opt::value(
        &["burst"],
        "burst",
        Unit { what: "a size", read: |word, _| Ok(quantity::size(word)?.map(text)), show: shown_as_is },
    )
    .remark("after idle time, what the rate would have sent meanwhile passes at once, up to the burst"),
    Opt::value(
        &["profile"],
        "profile",
        Unit {
            what: "the file of a profile",
            read: |word, _| Ok(Read::plain(text(word.text))),
            show: shown_as_is,
        },
    ),
];

const COMMON_ROWS: &[Opt] = &[
    Opt::value(
        &["queue"],
        "bound",
        Unit {
            what: "a number of slots or bytes",
            read: |word, _| Ok(quantity::bound(word)?.map(text)),
            show: shown_as_is,
        },
    ),
    Opt::value(&["plr"], "loss", Unit { what: "a probability", read: |word, _| loss(word), show: show_loss }),
    Opt::nothing(&["noerror"], Follows::Nothing)
        .remark("`noerror` has no effect: senders are not told of drops"),
];

const QUEUE: &[Opt] = &[
    Opt::value(
        &["weight"],
        "weight",
        Unit { what: "a weight", read: |word, _| whole(word, "a weight", 1, 65_536), show: shown_as_is },
    ),
    Opt::value(
        &["lmax", "maxlen"],
        "longest",
        Unit {
            what: "the length of a packet",
            read: |word, _| counted(word, "the length of a packet", 65_535, "bytes"),
            show: show_number,
        },
    ),
    Opt::value(
        &["pri", "priority"],
        "priority",
        Unit { what: "a priority", read: |word, _| whole(word, "a priority", 0, 255), show: shown_as_is },
    ),
];

const BUCKETS: &[Opt] = &[Opt::value(
    &["buckets"],
    "",
    Unit {
        what: "a number of buckets",
        read: |word, _| whole(word, "a number of buckets", 1, 65_536),
        show: shown_as_is,
    },
)
.remark("`buckets` has no effect: flow tables grow as needed")];

const TIME: Unit =
    Unit { what: "a time", read: |word, _| Ok(quantity::time(word)?.map(text)), show: shown_as_is };
const POSITIVE_TIME: Unit =
    Unit { what: "a time", read: |word, _| Ok(quantity::positive_time(word)?.map(text)), show: shown_as_is };
const INTERVAL: Unit =
    Unit { what: "a time", read: |word, _| Ok(quantity::interval(word)?.map(text)), show: shown_as_is };
const GAIN: Unit = Unit {
    what: "a gain",
    read: |word, _| Ok(Read::plain(plain(word, "a gain")?)),
    show: |node| Some(shown_as_is(node)?.parse::<f64>().ok()?.to_string()),
};

const CODEL: &[Opt] =
    &[Opt::value(&["target"], "target", POSITIVE_TIME), Opt::value(&["interval"], "interval", INTERVAL)];
const ECN: &[Opt] = &[Opt::switch(&["ecn"], &["noecn"], "ecn").both("ECN", "NoECN")];

const PIE: &[Opt] = &[
    Opt::value(&["target"], "target", POSITIVE_TIME),
    Opt::value(&["tupdate"], "update", POSITIVE_TIME),
    Opt::value(&["alpha"], "alpha", GAIN),
    Opt::value(&["beta"], "beta", GAIN),
    Opt::value(&["max_burst"], "burst", TIME),
    Opt::value(
        &["max_ecnth"],
        "max-ecn-threshold",
        Unit {
            what: "a probability",
            read: |word, _| Ok(Read::plain(text(share(word)?))),
            show: |node| Some(format!("{:.3}", Share::read_of_several(node).ok()?.as_f64())),
        },
    ),
];
const PIE_SWITCHES: &[Opt] = &[
    // `TS` is always on: delays are measured with timestamps.
    Opt::switch(&["capdrop"], &["nocapdrop"], "cap-drop").both("CapDrop TS", "NoCapDrop TS"),
    Opt::switch(&["derand"], &["noderand"], "derandomize").both("Derand", "NoDerand"),
    Opt::nothing(&["dre"], Follows::Nothing)
        .remark("`dre` changes nothing: delays are measured by time stamps"),
    Opt::nothing(&["ts"], Follows::Nothing)
        .remark("`ts` changes nothing: delays are measured by time stamps"),
    Opt::refused(
        &["onoff"],
        "is known to ipfw and not to narrows",
        "PIE follows RFC 8033: it is always on and drops nothing while the queue is short",
    ),
];

/// Options for flows distinguished by hash.
const HASHED: &[Opt] = &[
    Opt::value(
        &["quantum"],
        "quantum",
        Unit {
            what: "a number of bytes",
            read: |word, _| bounded(word, "a number of bytes", 256..=9000, "bytes"),
            show: show_number,
        },
    ),
    Opt::value(
        &["limit"],
        "bound",
        Unit {
            what: "a number of packets",
            read: |word, _| bounded(word, "a number of packets", 1..=20_480, "packets"),
            show: show_number,
        },
    ),
    Opt::value(
        &["flows"],
        "flows",
        Unit {
            what: "a number of flows",
            read: |word, _| whole(word, "a number of flows", 1, 65_536),
            show: shown_as_is,
        },
    ),
];

/// Default values of keys.
type Usual = &'static [(&'static str, &'static str)];

/// An AQM other than RED.
pub(in crate::ipfw) struct Aqm {
    /// Its word, and its type in a scenario.
    pub(in crate::ipfw) name: &'static str,
    pub(in crate::ipfw) printed: &'static str,
    pub(in crate::ipfw) options: Options,
    /// FreeBSD's defaults that are also narrows'.
    pub(in crate::ipfw) usual: Usual,
    /// FreeBSD's defaults that differ from narrows'.
    pub(in crate::ipfw) own: Usual,
}

pub(in crate::ipfw) static AQMS: &[Aqm] = &[
    Aqm {
        name: "codel",
        printed: "CoDel",
        options: Options(&[CODEL, ECN]),
        usual: CODEL_USUAL,
        own: &[("ecn", "false")],
    },
    Aqm {
        name: "pie",
        printed: "type PIE",
        options: Options(&[PIE, ECN, PIE_SWITCHES]),
        usual: PIE_USUAL,
        own: &[("ecn", "false"), ("derandomize", "true"), ("cap-drop", "true")],
    },
];

const CODEL_USUAL: Usual = &[("target", "5ms"), ("interval", "100ms")];
const PIE_USUAL: Usual = &[
    ("target", "15ms"),
    ("update", "15ms"),
    ("alpha", "0.125"),
    ("beta", "1.25"),
    ("burst", "150ms"),
    ("max-ecn-threshold", "10%"),
];
const HASHED_USUAL: Usual = &[("quantum", "1514 bytes"), ("flows", "1024")];

/// A type of scheduler.
pub(in crate::ipfw) struct SchedulerType {
    /// Its word after `type`.
    pub(super) word: &'static str,
    /// Its type in a scenario.
    pub(in crate::ipfw) name: &'static str,
    pub(in crate::ipfw) printed: &'static str,
    /// Description for display.
    pub(in crate::ipfw) words: &'static str,
    pub(in crate::ipfw) options: Options,
    /// FreeBSD's defaults that are also narrows'.
    pub(in crate::ipfw) usual: &'static [Usual],
    /// FreeBSD's defaults that differ from narrows'.
    pub(in crate::ipfw) own: Usual,
}

impl SchedulerType {
    const fn new(word: &'static str, name: &'static str, printed: &'static str, words: &'static str) -> Self {
        Self { word, name, printed, words, options: Options(&[]), usual: &[], own: &[] }
    }

    /// Whether it includes an AQM.
    pub(in crate::ipfw) const fn manages(&self) -> bool {
        !self.own.is_empty()
    }
}

/// All types. The second one is the default.
pub(in crate::ipfw) static SCHEDULERS: &[SchedulerType] = &[
    SchedulerType::new("fifo", "fifo", "FIFO", "first in, first out"),
    SchedulerType::new("wf2q+", "wf2q+", "WF2Q+", "WF2Q+, fair by weights"),
    SchedulerType::new("rr", "drr", "RR", "deficit round robin, by weights"),
    SchedulerType::new("qfq", "qfq", "QFQ", "QFQ, fair by weights"),
    SchedulerType::new("kps", "kps", "KPS", "KPS, fair by weights"),
    SchedulerType::new("prio", "prio", "PRIO", "strict priority, the lowest first"),
    SchedulerType {
        options: Options(&[CODEL, HASHED, ECN]),
        usual: &[CODEL_USUAL, HASHED_USUAL],
        own: &[("bound", "10240 packets"), ("ecn", "true")],
        ..SchedulerType::new("fq_codel", "fq_codel", "FQ_CODEL", "FQ-CoDel")
    },
    SchedulerType {
        options: Options(&[PIE, HASHED, ECN, PIE_SWITCHES]),
        usual: &[PIE_USUAL, HASHED_USUAL],
        own: &[("bound", "10240 packets"), ("ecn", "true"), ("derandomize", "true"), ("cap-drop", "true")],
        ..SchedulerType::new("fq_pie", "fq_pie", "FQ_PIE", "FQ-PIE")
    },
];

/// A whole number without a unit.
fn whole(word: Word<'_>, what: &str, low: u32, high: u32) -> Result<Read<Value>, Problem> {
    numbers::decimal(word, what, low..=high).map(|value| Read::plain(number(value)))
}

/// A count above zero, without a unit.
fn counted(word: Word<'_>, what: &str, most: u32, counts: &str) -> Result<Read<Value>, Problem> {
    numbers::decimal(word, what, 1..=most).map(|value| Read::plain(text(format!("{value} {counts}"))))
}

/// A count that ipfw brings into a range.
fn bounded(
    word: Word<'_>,
    what: &str,
    range: RangeInclusive<u32>,
    counts: &str,
) -> Result<Read<Value>, Problem> {
    let given = numbers::decimal(word, what, 0..=u32::MAX)?;
    let count = given.clamp(*range.start(), *range.end());
    let taken_as = (count != given)
        .then(|| format!("{count}: ipfw keeps it between {} and {}", range.start(), range.end()));
    Ok(Read { value: text(format!("{count} {counts}")), taken_as })
}

fn show_number(node: &Node) -> Option<String> {
    match units::bound(node).ok()? {
        Bound::Packets(packets) => Some(packets.to_string()),
        Bound::Bytes(bytes) => Some(bytes.get().to_string()),
    }
}

/// A share from 0 to 1.
pub(super) fn share(word: Word<'_>) -> Result<Share, Problem> {
    let node = Node { span: word.span(), value: Value::Float(word.text.into()) };
    let read = match word.text {
        "1" | "0" => Share::read_of_several(&node),
        _ => Share::read(&node),
    };
    read.map_err(|_| word.expected("a probability from 0 to 1, such as 0.05"))
}

/// A plain number.
pub(super) fn plain(word: Word<'_>, what: &str) -> Result<Value, Problem> {
    let node = Node { span: word.span(), value: Value::Float(word.text.into()) };
    let read = Number::read(&node);
    let read = read.map_err(|_| word.expected(&format!("{what}, with at most 9 digits after the point")))?;
    Ok(Value::Float(read.to_string()))
}

/// `P`, or `K,p,H,r`: K and H are the loss probabilities in the good and the bad state, p and r the
/// transition probabilities to bad and back.
const STATES: [&str; 4] = ["loss-good", "p", "loss-bad", "r"];

fn loss(word: Word<'_>) -> Result<Read<Value>, Problem> {
    let shares: Vec<Share> =
        word.text.split(',').map(|item| share(word.part(item))).collect::<Result<_, _>>()?;
    let model = match shares.as_slice() {
        [share] => text(share),
        &[loss_good, p, loss_bad, r] => gilbert_elliott([p, r, loss_bad, loss_good]),
        _ => return Err(word.expected("one probability, or four: K,p,H,r of the Gilbert-Elliott model")),
    };
    let mut table = Table::default();
    table.put("ingress", model);
    let taken_as = (word.text.contains('%')).then(|| {
        format!("{}; ipfw itself ignores the percent sign, and takes 1 and more for all packets", word.text)
    });
    Ok(Read { value: Value::Table(table), taken_as })
}

/// The Gilbert-Elliott model from `p`, `r`, `loss-bad` and `loss-good`.
pub(crate) fn gilbert_elliott(shares: [Share; 4]) -> Value {
    let mut states = Table::default();
    for (key, share) in ["p", "r", "loss-bad", "loss-good"].into_iter().zip(shares) {
        states.put(key, text(share));
    }
    let mut model = Table::default();
    model.put("gilbert-elliott", Value::Table(states));
    Value::Table(model)
}

/// The loss parameters: one probability, or those of two states in ipfw's order.
pub(in crate::ipfw) fn shares(loss: &Node) -> Option<Vec<Share>> {
    let model = loss.table("").ok()?.get("ingress")?;
    match &model.value {
        Value::Table(table) => {
            let states = table.get("gilbert-elliott")?.table("").ok()?;
            STATES.into_iter().map(|key| Share::read_of_several(states.get(key)?).ok()).collect()
        }
        _ => Some(vec![Share::read_of_several(model).ok()?]),
    }
}

fn show_loss(node: &Node) -> Option<String> {
    let shares = shares(node)?;
    Some(shares.iter().map(|share| format!("{:.6}", share.as_f64())).collect::<Vec<_>>().join(","))
}

/// The number of a RED threshold, in packets or bytes.
pub(in crate::ipfw) fn threshold(keys: &Table, key: &str) -> u64 {
    number_of(keys, key).unwrap_or_default()
}
