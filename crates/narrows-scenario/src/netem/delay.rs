//! `delay`, `distribution`.

use narrows_core::Duration;

use super::options::{Netem, Shape};
use super::row::{Key, Row, TIME};
use super::value::{correlate, distribution, distribution_of, share};
use super::{shape, units};
use crate::keys::kind::text;
use crate::node::Value;
use crate::units as scenario;
use crate::units::Share;

pub(super) const DELAY: Row<Netem> = Row {
    words: &["delay", "latency"],
    read: |netem, word, reader| {
        netem.delay = reader.expect(word, TIME, units::time)?;
        let Some(jitter) = reader.words.take_number(false) else { return Ok(()) };
        netem.jitter = reader.value(jitter, units::time).map_err(|problem| {
            let help = "a correlation follows the jitter, as in: delay 100ms 10ms 25%";
            if jitter.text.ends_with('%') { problem.help(help) } else { problem }
        })?;
        let correlation = reader.correlation()?;
        // A constant delay has no correlation.
        netem.delay_correlation = if netem.jitter > Duration::ZERO { correlation } else { Share::ZERO };
        Ok(())
    },
    show: |netem| {
        let Netem { delay, jitter, delay_correlation, .. } = netem;
        match (delay.nanos(), jitter.nanos()) {
            (0, 0) => None,
            (_, 0) => Some(delay.to_string()),
            _ if delay_correlation.is_zero() => Some(format!("{delay} {jitter}")),
            _ => Some(format!("{delay} {jitter} {delay_correlation}")),
        }
    },
    explain,
};

fn explain(netem: &Netem) -> Vec<String> {
    let Netem { delay, jitter, .. } = *netem;
    if jitter == Duration::ZERO {
        return vec![format!("Each packet propagates for {delay}.")];
    }
    let spread = match netem.distribution.as_ref().unwrap_or(&Shape::Uniform) {
        Shape::Uniform if delay >= jitter => {
            format!("{delay} ± {jitter}: uniform from {} to {}.", delay - jitter, delay + jitter)
        }
        Shape::Uniform => {
            format!("{delay} ± {jitter}: uniform up to {}; negative delays become zero.", delay + jitter)
        }
        shape => format!("{delay} on average, spread by {jitter} ({}).", shape.word()),
    };
    let mut words = vec![spread];
    if !netem.delay_correlation.is_zero() {
        words.push(format!(
            "Consecutive delays have a rank correlation (Spearman's) of {}, and the distribution is unchanged. (In NetEm the correlation of a delay has almost no effect.)",
            netem.delay_correlation
        ));
    }
    words.push(if netem.overtakes() {
        super::OVERTAKES.into()
    } else {
        "No packet overtakes another, as in NetEm where a rate is given.".into()
    });
    words
}

pub(super) const DISTRIBUTION: Row<Netem> = Row {
    words: &["distribution"],
    read: |netem, word, reader| {
        netem.distribution = Some(shape::read(word, reader.words)?);
        Ok(())
    },
    show: |netem| {
        let shape = netem.distribution.as_ref().filter(|_| netem.jitter > Duration::ZERO)?;
        Some(shape.word().into())
    },
    explain: |netem| {
        vec![match netem.distribution.as_ref().unwrap_or(&Shape::Uniform) {
            Shape::Uniform => "Every delay within the jitter is equally likely.".into(),
            Shape::Normal => "The jitter is the standard deviation of a normal distribution; negative delays become zero.".into(),
            Shape::Pareto => "A Pareto distribution of shape 3 as in tc's table, which ends 4 jitters above the mean: its standard deviation is 0.82 jitters.".into(),
            Shape::ParetoNormal => "A quarter normal and three quarters Pareto, as in tc's table.".into(),
            Shape::File(name) => format!("The table in the file {name}, where 8192 is one jitter."),
        }]
    },
};

pub(super) const DELAY_KEY: Key = Key {
    name: "delay",
    plain: "\"0ms\"",
    write: |netem| {
        if netem.jitter == Duration::ZERO {
            return Ok((netem.delay > Duration::ZERO).then(|| text(netem.delay)));
        }
        let shape = netem.distribution.as_ref().unwrap_or(&Shape::Uniform);
        let mut table = distribution(shape, netem.delay, netem.jitter);
        correlate(&mut table, netem.delay_correlation);
        Ok(Some(Value::Table(table)))
    },
    read: |reading, node| {
        let netem = &mut reading.netem;
        let Value::Table(table) = &node.value else {
            netem.delay = scenario::time(node).ok()?;
            return Some(());
        };
        if table.get("feed").is_some() {
            reading.fed = true;
            return table.get("ask").is_none().then_some(());
        }
        let known = ["uniform", "normal", "table", "shift", "correlation"];
        if table.iter().any(|(key, _)| !known.contains(&key.name.as_str())) {
            return None;
        }
        // NetEm has no correlation over time.
        let correlation = table.get("correlation").map_or(Some(Share::ZERO), share)?;
        let (shape, delay, jitter) = distribution_of(table)?;
        (netem.delay, netem.jitter, netem.delay_correlation) = (delay, jitter, correlation);
        netem.distribution = Some(shape).filter(|shape| *shape != Shape::Uniform);
        Some(())
    },
};

/// The jitter of a constant delay, which is read first.
pub(super) const JITTER: Key = Key {
    name: "jitter",
    plain: "\"0ms\"",
    write: |_| Ok(None),
    read: |reading, node| {
        reading.netem.jitter = scenario::time(node).ok()?;
        reading.netem.distribution = Some(Shape::Normal);
        Some(())
    },
};

pub(super) const ORDER: Key = Key {
    name: "order",
    plain: "\"keep\"",
    write: |netem| Ok(netem.overtakes().then(|| text("allow"))),
    read: |reading, _| {
        reading.allow = true;
        Some(())
    },
};
