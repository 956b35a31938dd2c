//! Mixtures: `mixture = [ { weight = 9, normal = { … } }, { weight = 1, constant = "50ms" } ]`.

use narrows_core::model::{Distribution as Model, DistributionError};

use super::{Distribution, Law};
use crate::keys::compound::{Group, List};
use crate::keys::kind::{ByHand, Like};
use crate::keys::quantity::PLAIN_NUMBER;
use crate::keys::{self, Form, Key, Keyed, Row, Tabled, row, schema};
use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::units::Number;
use crate::value::condition::Surroundings;

/// A distribution and its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct MixturePart {
    /// Relative weight, above zero.
    pub weight: Number,
    /// The distribution of this part.
    pub distribution: Distribution,
}

/// The keys of a part other than those of its distribution.
#[derive(Default)]
struct Weight {
    weight: Number,
}

const ABOVE_ZERO: ByHand<Number> = ByHand {
    words: || "number above zero".into(),
    schema: schema::number,
    read: |node, _| match Number::read(node)? {
        weight if weight.as_f64() > 0.0 => Ok(weight),
        _ => Err(node.expected("a weight above zero")),
    },
    write: |weight| PLAIN_NUMBER.write(weight),
};

impl Keyed for Weight {
    const ROWS: &'static [Row<Self>] = &[row!("weight", weight, ABOVE_ZERO, "Relative weight.").required()];
}

impl Tabled for MixturePart {
    fn keys() -> Vec<&'static dyn Key> {
        [keys::keys::<Weight>(), keys::keys::<Distribution>()].concat()
    }

    fn from_table(node: &Node, table: &Table, around: Surroundings<'_>) -> Result<Self, Problem> {
        let Weight { weight } = keys::read(node, table, around)?;
        Ok(Self { weight, distribution: keys::read(node, table, around)? })
    }

    fn to_table(&self) -> Table {
        let mut table = Weight { weight: self.weight }.to_table();
        keys::Parameters::write(&self.distribution, &mut table);
        table
    }
}

const PARTS: List<Group<MixturePart>> = List {
    what: "a list of distributions, each with its weight",
    most: 1000,
    one: Group::new("MixturePart", "A distribution and its weight.", "{ weight = 1, constant = \"50ms\" }"),
};
const EXAMPLE: &str = "mixture = [ { weight = 9, normal = { mean = \"10ms\", sd = \"1ms\" } }, { weight = 1, constant = \"50ms\" } ]";

pub(super) const MIXTURE: Like<List<Group<MixturePart>>, Vec<MixturePart>> = Like {
    kind: PARTS,
    read: |node, around| {
        let parts: Result<Vec<MixturePart>, Problem> = PARTS.read(node, around);
        parts.map_err(|problem| problem.help(format!("write it like {EXAMPLE}")))
    },
    write: |parts| PARTS.write(parts),
};

impl Law for Vec<MixturePart> {
    fn engine(&self) -> Result<Model, DistributionError> {
        let parts = self.iter().map(|part| (part.weight.as_f64(), part.distribution.engine().clone()));
        Model::mixture(parts.collect())
    }
}
