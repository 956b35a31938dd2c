//! Distributions of times: `{ normal = { mean = "10ms", sd = "2ms" }, shift = "1ms" }` and its kin.
//!
//! A table has one shape and, beside it, what changes that: `shift`, `minimum` and `maximum`, `below-zero`.

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

/// What a shape is by its parameters.
trait Law {
    /// The engine's distribution.
    fn engine(&self) -> Result<model::Distribution, model::DistributionError>;

    /// For people, where the engine has no words.
    fn words(&self) -> Option<String> {
        None
    }
}

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
const BELOW_ZERO: Choice<BelowZero> =
    Choice { what: "rule", choices: &[("clamp", BelowZero::Clamp), ("truncate", BelowZero::Truncate)] };

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
        // The shape alone is tried first, so that what is wrong with it is said there.
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
    /// This shape, with nothing beside it.
    ///
    /// # Errors
    /// When its parameters are out of range.
    pub(crate) fn of(shape: Shape) -> Result<Self, Problem> {
        let engine = Arc::new(shape.engine().map_err(|error| refused(&error))?);
        let below_zero = BelowZero::default();
        Ok(Self { shape, shift: 0, minimum: None, maximum: None, below_zero, engine })
    }

    /// The engine's, with what stands beside the shape.
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

/// For people.
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
        // Of numbers in a list the engine knows only that there are some.
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
