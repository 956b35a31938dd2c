//! Propagation delays: `"10ms"`, `{ uniform = { low, high } }`, `{ normal = { mean, sd } }`.

use narrows_core::model::{Constant, DelayModel, Normal, Uniform};
use narrows_core::{Duration, Order};

use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::units;

/// How long packets propagate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delay {
    /// Always the same.
    Constant(Duration),
    /// Every nanosecond from `low` to `high`, both included, is equally likely.
    Uniform {
        /// The least.
        low: Duration,
        /// The most.
        high: Duration,
    },
    /// Normal; what would be below zero becomes zero.
    Normal {
        /// The mean before that.
        mean: Duration,
        /// The standard deviation before that.
        sd: Duration,
    },
}

/// The words for the order of packets.
pub(crate) const ORDERS: &[(&str, Order)] = &[("keep", Order::Keep), ("allow", Order::Allow)];

const MODELS: &[&str] = &["uniform", "normal", "order"];
const HELP: &str = "write \"10ms\", { uniform = { low = \"5ms\", high = \"15ms\" } } or { normal = { mean = \"10ms\", sd = \"2ms\" } }";

/// Reads a delay, and the order where it stands beside the model.
pub(crate) fn read(node: &Node) -> Result<(Delay, Option<Order>), Problem> {
    let Value::Table(table) = &node.value else {
        return Ok((Delay::Constant(units::time(node)?), None));
    };
    table.only(MODELS)?;
    let order = table.optional("order", |node| node.choice("order", ORDERS))?;
    let models: Vec<Delay> = [
        table.optional("uniform", uniform)?, //
        table.optional("normal", normal)?,
    ]
    .into_iter()
    .flatten()
    .collect();
    match models[..] {
        [model] => Ok((model, order)),
        [] => Err(Problem::new("the delay itself is missing").at(&node.span).help(HELP)),
        _ => Err(Problem::new("more than one delay").at(&node.span).help(HELP)),
    }
}

fn uniform(node: &Node) -> Result<Delay, Problem> {
    let table = parameters(node, &["low", "high"])?;
    let low = required(table, "low", node)?;
    let high = required(table, "high", node)?;
    if low > high {
        return Err(Problem::new(format!("`low` is {low}, above `high`, which is {high}")).at(&node.span));
    }
    Ok(Delay::Uniform { low, high })
}

fn normal(node: &Node) -> Result<Delay, Problem> {
    let table = parameters(node, &["mean", "sd"])?;
    Ok(Delay::Normal { mean: required(table, "mean", node)?, sd: required(table, "sd", node)? })
}

fn required(table: &Table, key: &str, node: &Node) -> Result<Duration, Problem> {
    table
        .optional(key, units::time)?
        .ok_or_else(|| Problem::new(format!("`{key}` is missing")).at(&node.span).help(HELP))
}

fn parameters<'a>(node: &'a Node, keys: &[&str]) -> Result<&'a Table, Problem> {
    let table = node.table("a table of parameters").map_err(|p| p.help(HELP))?;
    table.only(keys)?;
    Ok(table)
}

impl Delay {
    /// The engine's model.
    pub fn build(self) -> Box<dyn DelayModel> {
        match self {
            Self::Constant(delay) => Box::new(Constant(delay)),
            Self::Uniform { low, high } => {
                Box::new(Uniform::new(low, high.max(low)).expect("the greater of the two is not below `low`"))
            }
            Self::Normal { mean, sd } => Box::new(Normal { mean, sd }),
        }
    }

    /// The mean, where it is known.
    pub fn mean(self) -> Option<Duration> {
        self.build().mean()
    }

    /// The longest delay; for a normal one, that which one packet in a thousand exceeds: 3.09 standard deviations
    /// above the mean.
    pub fn longest(self) -> Duration {
        match self {
            Self::Constant(delay) => delay,
            Self::Uniform { high, .. } => high,
            // At most 3.09 hundred years' worth of nanoseconds: 2⁶⁴ holds 584.
            Self::Normal { mean, sd } => mean + Duration::from_nanos((sd.nanos() as f64 * 3.09) as u64),
        }
    }

    /// As it stands in a file.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Constant(delay) => format!("\"{delay}\""),
            Self::Uniform { low, high } => {
                format!("{{ uniform = {{ low = \"{low}\", high = \"{high}\" }} }}")
            }
            Self::Normal { mean, sd } => format!("{{ normal = {{ mean = \"{mean}\", sd = \"{sd}\" }} }}"),
        }
    }
}

/// For people.
impl std::fmt::Display for Delay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Constant(delay) => write!(f, "{delay}"),
            Self::Uniform { low, high } => write!(f, "uniform from {low} to {high}"),
            Self::Normal { mean, sd } => write!(f, "normal, {mean} ± {sd}"),
        }
    }
}
