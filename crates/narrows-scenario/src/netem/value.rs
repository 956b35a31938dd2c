//! Key values that several options share.

use narrows_core::Duration;

use super::options::{Chance, Shape};
use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::units::{self, Share};

pub(super) fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let mut table = Table::default();
    entries.into_iter().for_each(|(key, value)| table.put(key, value));
    Value::Table(table)
}

pub(super) fn correlate(table: &mut Table, correlation: Share) {
    if !correlation.is_zero() {
        table.put("correlation", text(correlation));
    }
}

/// The table of a distribution of times.
pub(super) fn distribution(shape: &Shape, mean: Duration, jitter: Duration) -> Table {
    let mut own = Table::default();
    match shape {
        Shape::Uniform if mean >= jitter => {
            own.put("uniform", table([("low", text(mean - jitter)), ("high", text(mean + jitter))]));
        }
        // Values below zero become zero.
        Shape::Uniform => {
            own.put("uniform", table([("low", text("0ns")), ("high", text(jitter + jitter))]));
            own.put("shift", text(format!("-{}", jitter - mean)));
        }
        Shape::Normal => own.put("normal", table([("mean", text(mean)), ("sd", text(jitter))])),
        Shape::Pareto | Shape::ParetoNormal | Shape::File(_) => {
            let key = if matches!(shape, Shape::File(_)) { "file" } else { "name" };
            own.put("table", table([(key, text(shape.word())), ("mean", text(mean)), ("sd", text(jitter))]));
        }
    }
    own
}

/// The inverse: shape, mean and jitter of a distribution that NetEm has.
pub(super) fn distribution_of(table: &Table) -> Option<(Shape, Duration, Duration)> {
    let shift = table.get("shift").map_or(Some(0), |node| units::signed_time(node).ok())?;
    if let Some(uniform) = table.get("uniform") {
        let uniform = uniform.table("").ok()?;
        let (low, high) =
            (time(uniform, "low")?.nanos() as i64 + shift, time(uniform, "high")?.nanos() as i64 + shift);
        let (mean, jitter) = (low.checked_add(high)? / 2, (high - low) / 2);
        let even = (low + high) % 2 == 0 && (high - low) % 2 == 0;
        let nanos = |value: i64| u64::try_from(value).ok().map(Duration::from_nanos);
        return if even { Some((Shape::Uniform, nanos(mean)?, nanos(jitter)?)) } else { None };
    }
    if shift != 0 {
        return None;
    }
    if let Some(normal) = table.get("normal") {
        let normal = normal.table("").ok()?;
        return Some((Shape::Normal, time(normal, "mean")?, time(normal, "sd")?));
    }
    let inner = table.get("table")?.table("").ok()?;
    let shape = match (inner.get("name"), inner.get("file")) {
        (Some(name), None) => {
            let name = name.text("").ok()?;
            Shape::NAMED.into_iter().find(|(known, _)| *known == name)?.1
        }
        (None, Some(file)) => Shape::File(file.text("").ok()?.into()),
        _ => return None,
    };
    Some((shape, time(inner, "mean")?, time(inner, "sd")?))
}

pub(super) fn time(table: &Table, key: &str) -> Option<Duration> {
    units::time(table.get(key)?).ok()
}

pub(super) fn share(node: &Node) -> Option<Share> {
    Share::read(node).ok()
}

pub(super) fn number_of(node: &Node) -> Option<u32> {
    node.integer("", 0..1 << 32).ok().map(|number| number as u32)
}

pub(super) fn chance(Chance { share, correlation }: Chance) -> Value {
    match correlation.is_zero() {
        true => text(share),
        false => table([("rate", text(share)), ("correlation", text(correlation))]),
    }
}

/// `"1%"` or `{ rate, correlation }`.
pub(super) fn chance_of(node: &Node) -> Option<Chance> {
    let Value::Table(table) = &node.value else {
        return Some(Chance { share: share(node)?, correlation: Share::ZERO });
    };
    let correlation = table.get("correlation").map_or(Some(Share::ZERO), share)?;
    Some(Chance { share: share(table.get("rate")?)?, correlation })
}

impl Chance {
    /// In tc syntax.
    pub(super) fn show(self) -> Option<String> {
        match (self.share.is_zero(), self.correlation.is_zero()) {
            (true, _) => None,
            (false, true) => Some(self.share.to_string()),
            (false, false) => Some(format!("{} {}", self.share, self.correlation)),
        }
    }
}
