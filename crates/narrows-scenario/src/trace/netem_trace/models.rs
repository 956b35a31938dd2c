//! The crate's models, unrolled into values with durations.

use narrows_core::model::quantile;
use narrows_core::{Duration, Rate, Seed, Stream};

use super::values::{pattern, rate, ratio, repetition, time, whole};
use super::{Quantity, Step, Steps, tagged, too_long, unknown};
use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::trace::MOST_POINTS;
use crate::units::MOST_BITS;

const MODELS: &[&str] = &[
    "StaticBwConfig",
    "NormalizedBwConfig",
    "SawtoothBwConfig",
    "TraceBwConfig",
    "RepeatedBwPatternConfig",
    "StaticDelayConfig",
    "RepeatedDelayPatternConfig",
    "StaticLossConfig",
    "RepeatedLossPatternConfig",
    "StaticDuplicateConfig",
    "RepeatedDuplicatePatternConfig",
];

/// The crate's defaults.
const DEFAULT_RATE: Rate = Rate::from_bits_per_second(12_000_000);
const DEFAULT_DELAY: Duration = Duration::from_millis(10);
const DEFAULT_DURATION: Duration = Duration::from_secs(1);
const DEFAULT_STEP: Duration = Duration::from_millis(1);
const DEFAULT_SEED: u64 = 42;

/// Unrolls a model. `depth` is its nesting depth in patterns.
pub(super) fn model(node: &Node, steps: &mut Steps, depth: u32) -> Result<(), Problem> {
    let (name, tag, inner) = tagged(node)?;
    let quantity = match name {
        _ if !MODELS.contains(&name) => return Err(unknown(&tag, name, MODELS)),
        _ if name.contains("Delay") => Quantity::Delay,
        _ if name.contains("Loss") => Quantity::Loss,
        _ if name.contains("Duplicate") => Quantity::Duplicate,
        _ => Quantity::Rate,
    };
    steps.about(quantity, &tag)?;
    let table = inner.table("a table of the model's parameters")?;
    let unrolled = match name {
        "NormalizedBwConfig" => normalized(inner, table, steps),
        "SawtoothBwConfig" => sawtooth(inner, table, steps),
        "TraceBwConfig" => trace_config(inner, table, steps),
        name if name.starts_with("Repeated") => repeated(inner, table, steps, depth),
        _ => fixed(inner, table, steps, quantity),
    };
    unrolled.map_err(|problem| problem.inside(name))
}

fn duration(table: &Table) -> Result<Duration, Problem> {
    Ok(table.optional("duration", time)?.unwrap_or(DEFAULT_DURATION))
}

fn step(table: &Table) -> Result<Duration, Problem> {
    let positive = |node: &Node| match time(node)? {
        Duration::ZERO => Err(node.expected("a time above zero")),
        step => Ok(step),
    };
    Ok(table.optional("step", positive)?.unwrap_or(DEFAULT_STEP))
}

/// One constant value.
fn fixed(node: &Node, table: &Table, steps: &mut Steps, quantity: Quantity) -> Result<(), Problem> {
    let key = match quantity {
        Quantity::Rate => "bw",
        Quantity::Delay => "delay",
        Quantity::Loss => "loss",
        Quantity::Duplicate => "duplicate",
    };
    table.only(&[key, "duration"])?;
    let step = match quantity {
        Quantity::Rate => Step::Rate(table.optional(key, rate)?.unwrap_or(DEFAULT_RATE)),
        Quantity::Delay => Step::Delay(table.optional(key, time)?.unwrap_or(DEFAULT_DELAY)),
        Quantity::Loss | Quantity::Duplicate => {
            let list = table.get(key).ok_or_else(|| {
                // The key is required here: the crate's default, [0.1, 0.2], is unlikely to be intended.
                Problem::new(format!("`{key}` is missing")).at(&node.span).help("such as [0.01]")
            })?;
            steps.patterns |= list.list("a list of probabilities")?.len() > 1;
            Step::Share(pattern(list).map_err(|problem| problem.inside(key))?)
        }
    };
    steps.push(step, duration(table)?, node)
}

/// A normal draw for each step, within bounds.
fn normalized(node: &Node, table: &Table, steps: &mut Steps) -> Result<(), Problem> {
    const KEYS: &[&str] = &["mean", "std_dev", "upper_bound", "lower_bound", "duration", "step", "seed"];
    table.only(KEYS)?;
    let bits = |key: &str| table.optional(key, rate).map(|rate| rate.map(as_f64));
    let mean = bits("mean")?.unwrap_or(as_f64(DEFAULT_RATE));
    let sd = bits("std_dev")?.unwrap_or(0.0);
    let (low, high) = (bits("lower_bound")?.unwrap_or(0.0), bits("upper_bound")?);
    let seed = table.optional("seed", whole)?.unwrap_or(DEFAULT_SEED);
    let draws = Stream::new(Seed(seed), "netem-trace", "normalized");
    steps.drawn |= sd > 0.0;
    in_steps(node, table, |number, _, lasts| {
        let drawn = mean + sd * quantile(draws.nth(number).uniform());
        // As in the crate: truncate to a whole number (zero if negative), then apply the bounds, the upper
        // one last.
        let value = whole_part(drawn).max(low);
        let value = high.map_or(value, |high| value.min(high));
        steps.push(Step::Rate(Rate::from_bits_per_second(value as u64)), lasts, node)
    })
}

/// Rises from the bottom to the top for a part of the interval, then falls, with normal noise within
/// bounds.
fn sawtooth(node: &Node, table: &Table, steps: &mut Steps) -> Result<(), Problem> {
    const KEYS: &[&str] = &[
        "bottom",
        "top",
        "interval",
        "duty_ratio",
        "duration",
        "step",
        "seed",
        "std_dev",
        "upper_noise_bound",
        "lower_noise_bound",
    ];
    table.only(KEYS)?;
    let bits = |key: &str| table.optional(key, rate).map(|rate| rate.map(as_f64));
    let (bottom, top) = (bits("bottom")?.unwrap_or(0.0), bits("top")?.unwrap_or(as_f64(DEFAULT_RATE)));
    if bottom > top {
        return Err(Problem::new("`bottom` is above `top`").at(&node.span));
    }
    let interval = match table.optional("interval", |node| Ok((time(node)?, node)))? {
        Some((Duration::ZERO, node)) => return Err(node.expected("a time above zero").inside("interval")),
        Some((interval, _)) => interval,
        None => DEFAULT_DURATION,
    };
    let rise = interval.nanos() as f64 * table.optional("duty_ratio", ratio)?.unwrap_or(0.5);
    let fall = interval.nanos() as f64 - rise;
    let sd = bits("std_dev")?.unwrap_or(0.0);
    let (up, down) = (bits("upper_noise_bound")?, bits("lower_noise_bound")?);
    let seed = table.optional("seed", whole)?.unwrap_or(DEFAULT_SEED);
    let draws = Stream::new(Seed(seed), "netem-trace", "sawtooth");
    steps.drawn |= sd > 0.0;
    in_steps(node, table, |number, at, lasts| {
        let at = (at.nanos() % interval.nanos()) as f64;
        let level = if at < rise { at / rise } else { 1.0 - (at - rise) / fall };
        let noise = if sd > 0.0 { sd * quantile(draws.nth(number).uniform()) } else { 0.0 };
        let noise = up.map_or(noise, |up| noise.min(up));
        let noise = down.map_or(noise, |down| noise.max(-down));
        let value = whole_part(bottom + (top - bottom) * level + noise + 0.5);
        steps.push(Step::Rate(Rate::from_bits_per_second(value as u64)), lasts, node)
    })
}

/// Calls `value` with the number, start and duration of each step.
fn in_steps(
    node: &Node,
    table: &Table,
    mut value: impl FnMut(u64, Duration, Duration) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let (duration, step) = (duration(table)?, step(table)?);
    if duration.nanos() / step.nanos() > MOST_POINTS as u64 {
        return Err(too_long(node));
    }
    let (mut at, mut number) = (Duration::ZERO, 0);
    while at < duration {
        let lasts = step.min(duration - at);
        value(number, at, lasts)?;
        at += lasts;
        number += 1;
    }
    Ok(())
}

fn trace_config(node: &Node, table: &Table, steps: &mut Steps) -> Result<(), Problem> {
    table.only(&["pattern"])?;
    table.required("pattern", &node.span, |list| trace_rates(list, steps))
}

/// `[["1ms", ["2Mbps", "4Mbps"]], …]`: each rate of a list for the duration before it.
pub(super) fn trace_rates(list: &Node, steps: &mut Steps) -> Result<(), Problem> {
    const ALLOWED: &str = "a list of pairs, such as [\"1ms\", [\"2Mbps\", \"4Mbps\"]]";
    steps.about(Quantity::Rate, list)?;
    for pair in list.list(ALLOWED)? {
        let [lasts, rates] = pair.list(ALLOWED)? else { return Err(pair.expected(ALLOWED)) };
        let lasts = time(lasts)?;
        for node in rates.list("a list of rates, such as [\"2Mbps\", \"4Mbps\"]")? {
            steps.push(Step::Rate(rate(node)?), lasts, node)?;
        }
    }
    Ok(())
}

/// Models in sequence, repeated this many times.
fn repeated(node: &Node, table: &Table, steps: &mut Steps, depth: u32) -> Result<(), Problem> {
    let (count, models) = repetition(node, table, depth)?;
    let (start, points) = (steps.now, steps.count);
    for round in 0..count.max(1) {
        for (index, inner) in models.iter().enumerate() {
            if steps.endless {
                return Err(never_ends(inner));
            }
            model(inner, steps, depth + 1).map_err(|problem| problem.inside(&format!("pattern[{index}]")))?;
        }
        if steps.endless && (round > 0 || count > 1) {
            return Err(never_ends(node));
        }
        if steps.now == start {
            break; // nothing in it lasts, so neither do repetitions
        }
    }
    if count == 0 && steps.now > start {
        // An endless pattern must be the whole trace; otherwise the values before it would be repeated,
        // too.
        if points > 0 {
            return Err(Problem::new("an endless pattern that is not the first").at(&node.span).help(
                "a trace repeats as a whole or not at all: give the pattern a `count`, or remove what precedes it",
            ));
        }
        steps.endless = true;
    }
    Ok(())
}

fn never_ends(node: &Node) -> Problem {
    let problem = Problem::new("unreachable: the previous pattern is endless").at(&node.span);
    problem.help("a `count` of 0, or none, repeats forever")
}

fn as_f64(rate: Rate) -> f64 {
    // At most 10¹⁵, which is exact.
    rate.bits_per_second() as f64
}

/// Truncates to a whole number; zero if negative, and at most the maximum rate.
fn whole_part(value: f64) -> f64 {
    (value as u64).min(MOST_BITS) as f64
}
