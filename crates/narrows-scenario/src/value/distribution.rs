//! Distributions of times: `{ normal = { mean = "10ms", sd = "2ms" }, shift = "1ms" }` and its kin.
//!
//! A table has one shape and, beside it, what changes that: `shift`, `minimum` and `maximum`, `below-zero`.

mod data;
mod shape;
mod text;

pub use data::{Bins, Points, Samples, Table as DistributionTable};
pub use shape::Shape;

use std::sync::Arc;

use narrows_core::Duration;
use narrows_core::model::{self, BelowZero};

use crate::files::Files;
use crate::node::{Node, Table};
use crate::problem::{Problem, one_of};
use crate::units;

/// A distribution of times, as the file says it and as the engine draws from it.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// What it is like.
    pub shape: Shape,
    /// Nanoseconds that are added to what the shape gives; perhaps fewer than none.
    pub shift: i64,
    /// Nothing is less: the rest of the distribution keeps its shape.
    pub minimum: Option<Duration>,
    /// Nothing is more: the rest of the distribution keeps its shape.
    pub maximum: Option<Duration>,
    /// What becomes of what is left below zero.
    pub below_zero: BelowZero,
    /// The engine's; made when it is read, as that is where its parameters are checked.
    engine: Arc<model::Distribution>,
}

/// Distributions are equal that are written alike and have like contents of files.
impl PartialEq for Distribution {
    fn eq(&self, other: &Self) -> bool {
        let key = |of: &Self| (of.shift, of.minimum, of.maximum, of.below_zero);
        key(self) == key(other) && self.shape == other.shape
    }
}

/// The keys that stand beside a shape.
pub(crate) const MODIFIERS: &[&str] = &["shift", "minimum", "maximum", "below-zero"];

pub(crate) use shape::SHAPES;

const BELOW_ZERO: &[(&str, BelowZero)] = &[("clamp", BelowZero::Clamp), ("truncate", BelowZero::Truncate)];

impl Distribution {
    /// A normal one.
    ///
    /// # Errors
    /// When one of them is too long.
    pub(crate) fn normal(mean: Duration, sd: Duration) -> Result<Self, Problem> {
        let shape = Shape::Normal { mean, sd };
        Self::new(shape, 0, [None, None], BelowZero::Clamp).map_err(|error| refused(&error))
    }

    fn new(
        shape: Shape,
        shift: i64,
        [minimum, maximum]: [Option<Duration>; 2],
        below_zero: BelowZero,
    ) -> Result<Self, model::DistributionError> {
        let mut engine = shape.engine()?;
        if shift != 0 {
            engine = engine.shifted(shift)?;
        }
        if minimum.is_some() || maximum.is_some() {
            engine = engine.truncated(minimum, maximum)?;
        }
        let engine = Arc::new(engine.below_zero(below_zero)?);
        Ok(Self { shape, shift, minimum, maximum, below_zero, engine })
    }

    /// Reads the shape in `table` and what stands beside it; other keys are for the caller. `node` is the table.
    pub(crate) fn read(node: &Node, table: &Table, files: &Files) -> Result<Self, Problem> {
        let keys: Vec<_> = table.iter().filter(|(key, _)| SHAPES.contains(&key.name.as_str())).collect();
        let (key, parameters) = match keys[..] {
            [one] => one,
            [] => {
                return Err(Problem::new("it is not said what the delay is")
                    .at(&node.span)
                    .help(format!("write one of {}", one_of(SHAPES))));
            }
            [(first, _), (second, _), ..] => {
                return Err(Problem::new("more than one delay")
                    .at(&second.span)
                    .also(&first.span, "the first")
                    .help("keep one; a mixture of several is `mixture = [ { weight = 1, … }, { weight = 2, … } ]`"));
            }
        };
        let shape = Shape::read(&key.name, parameters, files).map_err(|p| p.inside(&key.name))?;
        let shift = table.optional("shift", units::signed_time)?.unwrap_or(0);
        let minimum = table.optional("minimum", units::time)?;
        let maximum = table.optional("maximum", units::time)?;
        if let (Some(low), Some(high), Some(key)) = (minimum, maximum, table.key("maximum"))
            && low > high
        {
            return Err(
                Problem::new(format!("`minimum` is {low}, above `maximum`, which is {high}")).at(&key.span)
            );
        }
        let below_zero = table.optional("below-zero", |node| node.choice("rule", BELOW_ZERO))?;
        // The shape alone is tried first, so that what is wrong with it is said there.
        shape.engine().map_err(|error| refused(&error).at(&parameters.span).inside(&key.name))?;
        Self::new(shape, shift, [minimum, maximum], below_zero.unwrap_or(BelowZero::Clamp)).map_err(|error| {
            let place =
                ["maximum", "minimum", "shift", "below-zero"].into_iter().find_map(|key| table.key(key));
            refused(&error).at(place.map_or(&node.span, |key| &key.span))
        })
    }

    /// The engine's.
    pub fn engine(&self) -> &model::Distribution {
        &self.engine
    }

    /// Its mean, after what stands beside the shape.
    pub fn mean(&self) -> Option<Duration> {
        nanos(self.engine.mean())
    }

    /// Its standard deviation; nothing where it is infinite.
    pub fn sd(&self) -> Option<Duration> {
        nanos(self.engine.sd())
    }

    /// What a share `p` of the values does not exceed.
    pub fn quantile(&self, p: f64) -> Duration {
        nanos(self.engine.quantile(p)).unwrap_or(Duration::MAX)
    }

    /// Whether nothing stands beside the shape.
    pub fn is_plain(&self) -> bool {
        self.shift == 0
            && self.minimum.is_none()
            && self.maximum.is_none()
            && self.below_zero == BelowZero::Clamp
    }
}

/// What the engine says of a distribution that is none.
fn refused(error: &model::DistributionError) -> Problem {
    Problem::new(error.to_string())
}

/// Rounded to nanoseconds; nothing where there is no such number.
fn nanos(value: f64) -> Option<Duration> {
    value.is_finite().then(|| Duration::from_nanos((value + 0.5) as u64))
}
