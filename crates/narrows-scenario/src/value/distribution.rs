//! Distributions of times, such as `{ normal = { mean = "10ms", sd = "2ms" }, shift = "1ms" }`.
//!
//! A table has one shape, and optional modifiers: `shift`, `minimum` and `maximum`, `below-zero`.

mod data;
mod mixture;
mod shape;

pub use data::{Bins, Points, Samples, Table as DistributionTable};
pub use mixture::MixturePart;
pub use shape::{Exponential, Gamma, LogNormal, Normal, Pareto, ParetoNormal, Shape, Uniform, Weibull};

use std::ops::Range;
use std::sync::Arc;

use narrows_core::Duration;
use narrows_core::model::{self, BelowZero};
use serde_json::json;

use crate::keys::kind::{ByHand, Choice, Given, text};
use crate::keys::quantity::Time;
use crate::keys::{self, Choosing, Keyed, Row, row};
use crate::node::Table;
use crate::problem::Problem;
use crate::units;
use crate::value::condition::Surroundings;

/// A shape, given by its parameters.
trait Law {
    /// The engine's distribution.
    fn engine(&self) -> Result<model::Distribution, model::DistributionError>;

    /// Text for display, if the engine has none.
    fn words(&self) -> Option<String> {
        None
    }
}

/// A distribution of times, as written in the file and as the engine draws from it.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Shape.
    pub shape: Shape,
    /// Nanoseconds added to each value of the shape; may be negative.
    pub shift: i64,
    /// Truncates the distribution from below; the rest keeps its shape.
    pub minimum: Option<Duration>,
    /// Truncates the distribution from above; the rest keeps its shape.
    pub maximum: Option<Duration>,
    /// What happens to remaining negative values.
    pub below_zero: BelowZero,
    /// The engine's distribution. It is built while reading, as that checks the parameters.
    engine: Arc<model::Distribution>,
}

/// Distributions are equal if they are written alike and their files have equal contents.
impl PartialEq for Distribution {
    fn eq(&self, other: &Self) -> bool {
        let key = |of: &Self| (of.shift, of.minimum, of.maximum, of.below_zero);
        key(self) == key(other) && self.shape == other.shape
    }
}

impl Default for Distribution {
    /// Always zero.
    fn default() -> Self {
        Self::of(Shape::Constant(Duration::ZERO)).expect("zero is in range")
    }
}

const SHIFT: ByHand<i64> = ByHand {
    words: || "time, perhaps negative".into(),
    schema: |_| {
        json!({
            "type": "string",
            "pattern": r"^ *[+-]?[0-9_.]+([eE][+-]?[0-9]+)? *(ns|us|µs|μs|ms|s|min|h) *$",
        })
    },
    read: |node, _| units::signed_time(node),
    write: |nanos| Some(text(units::signed_time_text(*nanos))),
};
const BELOW_ZERO: Choice<BelowZero> = Choice {
    what: "value of `below-zero`",
    choices: &[("clamp", BelowZero::Clamp), ("truncate", BelowZero::Truncate)],
};

impl Keyed for Distribution {
    const CHOICES: &'static [Row<Self>] = Shape::ROWS;
    const CHOOSING: Choosing = Choosing {
        none: "no delay is given",
        several: "more than one delay",
        help: "keep one; a mixture of several is `mixture = [ { weight = 1, … }, { weight = 2, … } ]`",
    };
    const ROWS: &'static [Row<Self>] = &[
        row!("shift", shift, SHIFT, "Offset added to the distribution."),
        row!(
            "minimum",
            minimum,
            Given(Time::ANY),
            "Lower truncation: smaller values never occur, and the rest is scaled up in proportion."
        )
        .default("none"),
        row!(
            "maximum",
            maximum,
            Given(Time::ANY),
            "Upper truncation: larger values never occur, and the rest is scaled up in proportion."
        )
        .default("none"),
        row!("below-zero", below_zero, BELOW_ZERO, "Clamp values below zero to zero, or truncate there."),
    ];

    fn finish(&mut self, table: &Table, place: &Range<usize>, _: Surroundings<'_>) -> Result<(), Problem> {
        if let (Some(low), Some(high), Some(key)) = (self.minimum, self.maximum, table.key("maximum"))
            && low > high
        {
            return Err(
                Problem::new(format!("`minimum` is {low}, above `maximum`, which is {high}")).at(&key.span)
            );
        }
        // Builds the shape alone first, so that errors in it are reported there.
        let (key, parameters) = keys::chosen(table, place, &keys::choices::<Self>(), &Self::CHOOSING)?;
        let engine = self.shape.engine();
        let engine = engine.map_err(|error| refused(&error).at(&parameters.span).inside(&key.name))?;
        self.engine = self.adjusted(engine).map_err(|error| {
            let key =
                ["maximum", "minimum", "shift", "below-zero"].into_iter().find_map(|key| table.key(key));
            refused(&error).at(key.map_or(place, |key| &key.span))
        })?;
        Ok(())
    }
}

impl Distribution {
    /// This shape without modifiers.
    ///
    /// # Errors
    /// If its parameters are out of range.
    pub(crate) fn of(shape: Shape) -> Result<Self, Problem> {
        let engine = Arc::new(shape.engine().map_err(|error| refused(&error))?);
        let below_zero = BelowZero::default();
        Ok(Self { shape, shift: 0, minimum: None, maximum: None, below_zero, engine })
    }

    /// The engine's distribution with the modifiers applied.
    fn adjusted(
        &self,
        mut engine: model::Distribution,
    ) -> Result<Arc<model::Distribution>, model::DistributionError> {
        if self.shift != 0 {
            engine = engine.shifted(self.shift)?;
        }
        if self.minimum.is_some() || self.maximum.is_some() {
            engine = engine.truncated(self.minimum, self.maximum)?;
        }
        engine.below_zero(self.below_zero).map(Arc::new)
    }

    /// The engine's distribution.
    pub fn engine(&self) -> &model::Distribution {
        &self.engine
    }

    /// The mean, with modifiers applied.
    pub fn mean(&self) -> Option<Duration> {
        nanos(self.engine.mean())
    }

    /// The standard deviation; `None` if infinite.
    pub fn sd(&self) -> Option<Duration> {
        nanos(self.engine.sd())
    }

    /// The `p`-quantile.
    pub fn quantile(&self, p: f64) -> Duration {
        nanos(self.engine.quantile(p)).unwrap_or(Duration::MAX)
    }

    /// Whether it has no modifiers.
    pub fn is_plain(&self) -> bool {
        self.shift == 0
            && self.minimum.is_none()
            && self.maximum.is_none()
            && self.below_zero == BelowZero::Clamp
    }
}

/// The problem for a distribution that the engine rejects.
fn refused(error: &model::DistributionError) -> Problem {
    Problem::new(error.to_string())
}

/// Rounds to nanoseconds; `None` if the value has no such representation.
fn nanos(value: f64) -> Option<Duration> {
    value.is_finite().then(|| Duration::from_nanos((value + 0.5) as u64))
}

/// For display.
impl std::fmt::Display for Distribution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = match &self.shape {
            Shape::Uniform(Uniform { low, high }) if self.is_plain() => {
                return write!(f, "uniform from {low} to {high}");
            }
            Shape::Normal(Normal { mean, sd }) if self.is_plain() => {
                return write!(f, "normal, {mean} ± {sd}");
            }
            shape => shape.words(),
        };
        // For numbers in a list, the engine knows only that they exist.
        let Some(words) = words else { return write!(f, "{}", self.engine()) };
        f.write_str(&words)?;
        if self.shift != 0 {
            write!(f, ", shifted by {}", units::signed_time_text(self.shift))?;
        }
        match (self.minimum, self.maximum) {
            (None, None) => {}
            (Some(low), None) => write!(f, ", of which {low} or more")?,
            (None, Some(high)) => write!(f, ", of which {high} or less")?,
            (Some(low), Some(high)) => write!(f, ", of which {low} to {high}")?,
        }
        if self.below_zero == BelowZero::Truncate { write!(f, ", below zero truncated") } else { Ok(()) }
    }
}
