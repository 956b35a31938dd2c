//! Hierarchical fair service curves: `hfsc default 20`, and classes `hfsc rt umax 250b dmax 5ms rate 100kbit ls m2
//! 1mbit ul m2 2mbit`.

use narrows_core::Duration;
use narrows_core::sched::HfscCurve;

use super::abbreviation;
use super::unit::{CLASS, RATE, SIZE, SLOPE, TIME, missing, rate_letters};
use crate::dialect::{Opt, Options, Word, Words, is_zero, number_of, text_of};
use crate::node::{Key, Node, Table, Value, suggest};
use crate::problem::{Found, Problem, one_of};
use crate::value::{HfscClass, ServiceCurve};

const QDISC: Options = Options(&[&[Opt::value(&["default"], "default", CLASS)]]);

/// The minor number of the class of packets that no filter matches; 0 drops them.
pub(super) fn qdisc(words: &mut Words<'_>) -> Result<u16, Problem> {
    let keys = abbreviation::read_all(QDISC, &["default"], "hfsc", words)?;
    Ok(number_of(&keys, "default").unwrap_or(0))
}

/// A curve by its slopes, and by the delay of a packet. tc reads the words in this order, and the last ends the curve.
const SLOPES: [Opt; 3] =
    [Opt::value(&["m1"], "m1", SLOPE), Opt::value(&["d"], "d", TIME), Opt::value(&["m2"], "m2", RATE)];
const DELAYS: [Opt; 3] = [
    Opt::value(&["umax"], "umax", SIZE),
    Opt::value(&["dmax"], "dmax", TIME),
    Opt::value(&["rate"], "rate", RATE),
];
const BY_SLOPES: Options = Options(&[&SLOPES]);
const BY_DELAYS: Options = Options(&[&DELAYS]);

/// The curves of a class. `sc` sets both `rt` and `ls`.
pub(super) fn class(name: Word<'_>, words: &mut Words<'_>) -> Result<Table, Problem> {
    const KNOWN: [&str; 4] = ["rt", "ls", "sc", "ul"];
    let mut keys = Table::default();
    while let Some(word) = words.take() {
        let Some(known) = KNOWN.into_iter().find(|known| *known == word.text) else {
            let problem = word.problem(format!("{} is not an option of `hfsc`", Found(word.text)));
            return Err(suggest(problem, word.text, &KNOWN));
        };
        let curve = curve(word, words)?;
        match known {
            "sc" => ["rt", "ls"].into_iter().for_each(|key| set(key, word, curve.clone(), &mut keys)),
            key => set(key, word, curve, &mut keys),
        }
    }
    if keys.iter().next().is_none() {
        return Err(missing(name, "rt`, `ls` or `sc", "hfsc sc rate 1mbit ul rate 2mbit"));
    }
    if let (Some(limit), None) = (keys.key("ul"), keys.get("ls")) {
        return Err(Problem::new("`ul` without `ls` or `sc`")
            .at(&limit.span)
            .help("an upper limit applies to link sharing: hfsc ls m2 1mbit ul m2 2mbit"));
    }
    Ok(keys)
}

fn set(key: &str, word: Word<'_>, curve: Value, keys: &mut Table) {
    keys.insert(Key { name: key.into(), span: word.span() }, Node { span: word.span(), value: curve });
}

/// `[ [ m1 BPS ] d SEC ] m2 BPS`, or `[ [ umax BYTE ] dmax SEC ] rate BPS`.
fn curve(of: Word<'_>, words: &mut Words<'_>) -> Result<Value, Problem> {
    let by_delay = words.peek().is_some_and(|word| BY_DELAYS.find(word.text).is_some());
    let (options, order) = match by_delay {
        true => (BY_DELAYS, ["umax", "dmax", "rate"]),
        false => (BY_SLOPES, ["m1", "d", "m2"]),
    };
    let mut keys = Table::default();
    for key in order {
        if words.peek().is_some_and(|word| word.text == key) {
            options.read_one(words, &mut keys, &mut Vec::new())?;
        }
    }
    let [first, span, last] = order;
    if keys.get(last).is_none() {
        let problem = match words.peek() {
            Some(word) if order.contains(&word.text) => {
                word.problem(format!("`{}` is out of order in the curve of `{}`", word.text, of.text))
            }
            _ => of.problem(format!("the curve of `{}` has no `{last}`, which ends it", of.text)),
        };
        return Err(problem.help(format!(
            "a curve is [ [ m1 RATE ] d TIME ] m2 RATE or [ [ umax BYTES ] dmax TIME ] rate RATE; {} come in this order",
            one_of(&order).replace(" or ", " and ")
        )));
    }
    let is_zero = |key: &str, keys: &Table| keys.get(key).is_some_and(|node| is_zero(&node.value));
    if is_zero(first, &keys) {
        keys.remove(first);
    }
    let needs_span = keys.get(span).is_none() || by_delay && is_zero(span, &keys);
    if let Some(key) = keys.key(first).filter(|_| needs_span) {
        return Err(Problem::new(format!("`{first}` without `{span}`"))
            .at(&key.span)
            .help(format!("as in: {} {first} … {span} 10ms {last} 1mbit", of.text)));
    }
    // As in tc's output: `m1 0bit d 0us m2 1Mbit`.
    if is_zero(span, &keys) {
        [first, span].into_iter().for_each(|key| keys.remove(key));
    }
    Ok(match keys.get(span) {
        Some(_) => Value::Table(keys),
        None => Value::String(text_of(&keys, last)),
    })
}

/// The keys of a class in a scenario: a guarantee and a share by one curve are `sc`.
pub(super) fn as_written(keys: &Table) -> Table {
    let value = |key: &str| keys.get(key).map(|node| &node.value);
    let names = match value("rt") == value("ls") {
        true => [("sc", "rt"), ("", ""), ("ul", "ul")],
        false => [("rt", "rt"), ("ls", "ls"), ("ul", "ul")],
    };
    let mut written = Table::default();
    for (name, key) in names {
        value(key).into_iter().for_each(|curve| written.put(name, curve.clone()));
    }
    written
}

/// In tc's layout.
pub(super) fn shown(class: &HfscClass) -> String {
    let (rt, ls) = (class.rt(), class.ls());
    let curves = match rt == ls {
        true => vec![("sc", rt)],
        false => vec![("rt", rt), ("ls", ls)],
    };
    let all = curves.into_iter().chain([("ul", class.ul)]);
    let words: Vec<String> = all.filter_map(|(name, curve)| Some(shown_curve(name, curve?))).collect();
    words.join(" ")
}

fn shown_curve(name: &str, curve: ServiceCurve) -> String {
    let HfscCurve { m1, d, m2 } = curve.pieces();
    let d = if d == Duration::ZERO { "0us".to_owned() } else { d.to_string() };
    format!("{name} m1 {} d {d} m2 {}", rate_letters(m1), rate_letters(m2))
}

/// The curves in words.
pub(super) fn explained(keys: &Table) -> String {
    let says = [("rt", "guaranteed"), ("ls", "share"), ("ul", "at most")];
    let one = |(key, what): (&str, &str)| Some(format!("{what} {}", in_words(&keys.get(key)?.value)));
    let all: Vec<String> = says.into_iter().filter_map(one).collect();
    let mut text = all.join("; ");
    text[..1].make_ascii_uppercase();
    text + "."
}

fn in_words(curve: &Value) -> String {
    match curve {
        Value::Table(keys) if keys.get("rate").is_some() => format!(
            "{} within {}, then {}",
            keys.get("umax").map_or("nothing".into(), |_| text_of(keys, "umax")),
            text_of(keys, "dmax"),
            text_of(keys, "rate")
        ),
        Value::Table(keys) => format!(
            "{} for {}, then {}",
            keys.get("m1").map_or("nothing".into(), |_| text_of(keys, "m1")),
            text_of(keys, "d"),
            text_of(keys, "m2")
        ),
        Value::String(rate) => rate.clone(),
        _ => String::new(),
    }
}
