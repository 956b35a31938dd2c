//! Values of the crate's models: with units, or as the tables that the crate writes without its `human`
//! feature.

use narrows_core::{Duration, Probability, Rate};

use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem};
use crate::source::number::SHARE_ONE;
use crate::source::number::scaled;
use crate::units::{LONGEST_NANOS, MOST_BITS};

const RATES: &[(&str, u64)] =
    &[("bps", 1), ("kbps", 1_000), ("mbps", 1_000_000), ("gbps", 1_000_000_000), ("tbps", 1_000_000_000_000)];

/// Names of the humantime crate. Its months and years have 30.44 and 365.25 days.
const TIMES: &[(&[&str], u64)] = &[
    (&["nanos", "nsec", "ns"], 1),
    (&["micros", "usec", "us", "µs", "μs"], 1_000),
    (&["millis", "msec", "ms"], 1_000_000),
    (&["seconds", "second", "secs", "sec", "s"], SECOND),
    (&["minutes", "minute", "mins", "min", "m"], 60 * SECOND),
    (&["hours", "hour", "hrs", "hr", "h"], 3600 * SECOND),
    (&["days", "day", "d"], DAY),
    (&["weeks", "week", "wks", "wk", "w"], 7 * DAY),
    (&["months", "month", "M"], 2_630_016 * SECOND),
    (&["years", "year", "yrs", "yr", "y"], 31_557_600 * SECOND),
];
const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

/// A rate: `"12Mbps"`, or `{ gbps = 0, bps = 12000000 }`.
pub(super) fn rate(node: &Node) -> Result<Rate, Problem> {
    const ALLOWED: &str = "a rate, such as \"12Mbps\"";
    let units = |unit: &str| {
        let unit = unit.to_lowercase().replace("bit/s", "bps").replace("b/s", "bps");
        RATES.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
    };
    let bits = match &node.value {
        Value::Table(_) => parts(node, ("gbps", "bps"), ALLOWED)?,
        _ => sum(node, node.text(ALLOWED)?, units, ALLOWED, "bps, kbps, Mbps, Gbps, Tbps")?,
    };
    match u64::try_from(bits) {
        Ok(bits) if bits <= MOST_BITS => Ok(Rate::from_bits_per_second(bits)),
        _ => Err(Problem::new(format!("{} is too large for a rate", node.found()))
            .at(&node.span)
            .help("at most 1000Tbps")),
    }
}

/// A duration: `"1s 500ms"`, or `{ secs = 1, nanos = 500000000 }`.
pub(super) fn time(node: &Node) -> Result<Duration, Problem> {
    const ALLOWED: &str = "a time, such as \"1s 500ms\"";
    let units = |unit: &str| TIMES.iter().find(|(names, _)| names.contains(&unit)).map(|(_, factor)| *factor);
    let nanos = match &node.value {
        Value::Table(_) => parts(node, ("secs", "nanos"), ALLOWED)?,
        _ => sum(node, node.text(ALLOWED)?, units, ALLOWED, "ns, us, ms, s, min, h, days, weeks")?,
    };
    match u64::try_from(nanos) {
        Ok(nanos) if nanos <= LONGEST_NANOS => Ok(Duration::from_nanos(nanos)),
        _ => Err(Problem::new(format!("{} is too large for a time", node.found()))
            .at(&node.span)
            .help("at most 876000h")),
    }
}

/// A list of probabilities, each after as many consecutive hits as there are elements before it; returns
/// the long-run share of hits.
pub(super) fn pattern(node: &Node) -> Result<Probability, Problem> {
    let items = node.list("a list of probabilities, such as [0.1, 0.2]")?;
    if items.is_empty() {
        return Ok(Probability::ZERO);
    }
    let mut probabilities = Vec::with_capacity(items.len());
    for item in items {
        probabilities.push(probability(item)?);
    }
    if let [alone] = probabilities[..] {
        return Ok(alone);
    }
    // q_k is the share of packets with k hits before them, per packet that ends a run.
    let (mut q, mut all) = (1.0, 1.0);
    let (last, others) = probabilities.split_last().expect("there are two or more");
    for probability in others {
        q *= probability.as_f64();
        all += q;
    }
    // The last probability repeats: q·p + q·p² + … A last one of 1 is never left once reached.
    if last.as_f64() >= 1.0 && q > 0.0 {
        return Ok(Probability::ONE);
    }
    if q > 0.0 {
        all += q * last.as_f64() / (1.0 - last.as_f64());
    }
    let share = (all - 1.0) / all;
    const PARTS: u64 = 1 << 53;
    Ok(Probability::from_ratio((share * PARTS as f64 + 0.5) as u64, PARTS).expect("it is below one"))
}

fn probability(node: &Node) -> Result<Probability, Problem> {
    const ALLOWED: &str = "a probability from 0 to 1";
    let (Value::Integer(text) | Value::Float(text)) = &node.value else { return Err(node.expected(ALLOWED)) };
    let parts = scaled(text, 19).ok().and_then(|parts| u64::try_from(parts).ok());
    let share = parts.and_then(|parts| Probability::from_ratio(parts, SHARE_ONE));
    share.ok_or_else(|| node.expected(ALLOWED))
}

/// A plain number from 0 to 1.
pub(super) fn ratio(node: &Node) -> Result<f64, Problem> {
    probability(node).map(Probability::as_f64)
}

/// A whole number that is not negative.
pub(super) fn whole(node: &Node) -> Result<u64, Problem> {
    match &node.value {
        Value::Integer(text) => text.parse().map_err(|_| node.expected("a whole number from 0 to 2⁶⁴ − 1")),
        _ => Err(node.expected("a whole number")),
    }
}

/// `{ secs = 1, nanos = 5 }`: a multiple of 10⁹, and a number below that.
fn parts(node: &Node, names: (&str, &str), allowed: &str) -> Result<u128, Problem> {
    let table = node.table(allowed)?;
    table.only(&[names.0, names.1])?;
    let part = |name| table.required(name, &node.span, whole);
    Ok(u128::from(part(names.0)?) * 1_000_000_000 + u128::from(part(names.1)?))
}

/// `"1s 500ms"`: the sum of numbers with units.
fn sum(
    node: &Node,
    text: &str,
    factor: impl Fn(&str) -> Option<u64>,
    allowed: &str,
    units: &str,
) -> Result<u128, Problem> {
    let (mut rest, mut total) = (text.trim(), 0u128);
    if rest.is_empty() {
        return Err(node.expected(allowed));
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let after = after.trim_start();
        let end = after.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let Some(factor) = factor(unit) else {
            let problem = Problem::new(format!("found {}, expected {allowed}", node.found())).at(&node.span);
            return Err(match unit.is_empty() || number.is_empty() {
                true => problem,
                false => problem.help(format!("{} is not a unit of it; units: {units}", Found(unit))),
            });
        };
        // Fractions are kept to 10⁻⁹ of a unit; beyond 128 bits the number is too large in any case.
        let billionths = scaled(number, 9).map_err(|_| node.expected(allowed))?;
        let value = billionths.checked_mul(u128::from(factor)).ok_or_else(|| node.expected(allowed))?;
        total = total.saturating_add((value + 500_000_000) / 1_000_000_000);
        rest = after.trim_start();
    }
    Ok(total)
}

/// Maximum nesting of patterns.
const DEEPEST: u32 = 64;

/// The `count` of a pattern, and its models.
pub(super) fn repetition<'a>(
    node: &Node,
    table: &'a Table,
    depth: u32,
) -> Result<(u64, &'a [Node]), Problem> {
    table.only(&["pattern", "count"])?;
    if depth >= DEEPEST {
        return Err(Problem::new(format!("patterns nested more than {DEEPEST} deep")).at(&node.span));
    }
    let count = table.optional("count", whole)?.unwrap_or(0);
    let models = match table.get("pattern") {
        Some(list) => list.list("a list of models")?,
        None => &[],
    };
    Ok((count, models))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> Node {
        Node { span: 0..text.len(), value: Value::String(text.into()) }
    }

    #[test]
    fn units_are_those_of_the_crates() {
        for (text, bits) in [("12Mbps", 12_000_000), ("150.024kbps", 150_024), ("9Gbps 5bps", 9_000_000_005)]
        {
            assert_eq!(rate(&node(text)).unwrap().bits_per_second(), bits, "{text}");
        }
        assert_eq!(rate(&node("2 Mbit/s")).unwrap().bits_per_second(), 2_000_000);
        for (text, nanos) in
            [("1s 500ms", 1_500_000_000), ("2m", 120 * SECOND), ("1.5us", 1_500), ("1d1ns", DAY + 1)]
        {
            assert_eq!(time(&node(text)).unwrap().nanos(), nanos, "{text}");
        }
        for text in ["", "12", "Mbps", "12Mbytes", "-1Mbps", "1..2bps", "9999999999999999999999999999999Tbps"]
        {
            assert!(rate(&node(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn a_pattern_comes_to_its_share_in_the_long_run() {
        let list = |text: &str| {
            let table = Node::document(&format!("a = {text}")).unwrap();
            pattern(table.get("a").unwrap()).unwrap().as_f64()
        };
        // With 1 packet in 10 lost after a delivered one and 1 in 5 after a lost one: 0.1 ⁄ (1 − 0.2 + 0.1).
        assert!((list("[0.1, 0.2]") - 1.0 / 9.0).abs() < 1e-15);
        // Never two in a row: 0.5 ⁄ 1.5.
        assert!((list("[0.5, 0]") - 1.0 / 3.0).abs() < 1e-15);
        assert!((list("[0.1, 0.1, 0.1]") - 0.1).abs() < 1e-15);
        assert_eq!(list("[0.1, 1]"), 1.0);
        assert_eq!(list("[0, 1]"), 0.0);
        assert_eq!(list("[]"), 0.0);
        assert_eq!(list("[1]"), 1.0);
    }
}
