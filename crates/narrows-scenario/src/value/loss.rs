//! Loss other than queue overflow: `"1%"` or another model on the wire, `{ ingress = MODEL, wire = MODEL
//! }`, and `with-delay` for loss that depends on the delay.

mod model;

pub use model::{After, GilbertElliott, LossModel, Losses, Markov};

use narrows_core::Duration;
use serde_json::{Value as Json, json};

use crate::keys::compound::List;
use crate::keys::kind::{ByHand, Compound, Like, text};
use crate::keys::schema::{self, Definitions};
use crate::keys::{self, Form, Key, Keyed, Kind, Row, Tabled, row};
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::units::{self, Share};
use crate::value::condition::Surroundings;
use model::MODEL;

/// Which packets are lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loss {
    /// Loss before the queue.
    pub ingress: Option<LossModel>,
    /// Loss after the transmitter.
    pub wire: Option<LossModel>,
    /// Loss that depends on the delay drawn for the packet: loss probabilities at increasing delays,
    /// interpolated linearly.
    pub with_delay: Vec<(Duration, Share)>,
}

/// A delay, and its loss probability.
type Point = (Duration, Share);

const POINTS: List<ByHand<Point>> = List {
    what: "a list of delays and probabilities, such as [[\"20ms\", \"0%\"], [\"100ms\", \"10%\"]]",
    most: 1000,
    one: ByHand {
        words: || "delay and probability".into(),
        schema: |_| schema::tuple(2),
        read: |node, _| match node.list(POINTS.what)? {
            [delay, share] => Ok((units::time(delay)?, Share::read(share)?)),
            _ => Err(node.expected(POINTS.what)),
        },
        write: |(delay, share)| Some(Value::Array([text(delay), text(share)].map(Node::new).into())),
    },
};
/// Increasing delays with their loss probabilities.
const CURVE: Like<List<ByHand<Point>>, Vec<Point>> = Like {
    kind: POINTS,
    read: |node, around| {
        let points: Vec<Point> = POINTS.read(node, around)?;
        for (pair, item) in points.windows(2).zip(node.list(POINTS.what)?.iter().skip(1)) {
            if let [(before, _), (delay, _)] = pair
                && before >= delay
            {
                let title = format!("the delay {delay} is not above the previous one, {before}");
                return Err(Problem::new(title).at(&item.span));
            }
        }
        Ok(points)
    },
    write: |points| POINTS.write(points),
};

impl Keyed for Loss {
    const ROWS: &'static [Row<Self>] = &[
        row!("ingress", ingress, MODEL, "Loss before the queue."),
        row!("wire", wire, MODEL, "Loss on the wire, after the transmitter."),
        row!(
            "with-delay",
            with_delay,
            CURVE,
            "Loss probability as a function of the packet's delay: ascending delays with probabilities, interpolated linearly."
        ),
    ];
}

impl Loss {
    pub(crate) fn read(node: &Node, around: Surroundings<'_>) -> Result<Self, Problem> {
        Losing.read(node, around)
    }
}

/// A probability, a loss model on the wire, or a table by place.
pub(crate) struct Losing;

/// All keys of a table: the places, and the keys of a model on the wire.
fn all_keys() -> Vec<&'static dyn Key> {
    [keys::keys::<Loss>(), keys::keys::<LossModel>()].concat()
}

impl Kind for Losing {
    fn schema(&self, definitions: &mut Definitions) -> Json {
        const DOC: &str = "A model on the wire, or `ingress` and `wire`; `with-delay` beside either.";
        let table = schema::define(definitions, "LossParts", |definitions| {
            schema::object(DOC, &all_keys(), definitions)
        });
        json!({ "anyOf": [schema::share(definitions), table] })
    }

    fn words(&self) -> String {
        "probability or table".into()
    }

    fn compound(&self) -> Option<&dyn Compound> {
        Some(self)
    }
}

impl Compound for Losing {
    fn keys(&self) -> Vec<&'static dyn Key> {
        all_keys()
    }

    fn example(&self) -> &'static str {
        "{ ingress = \"1%\" }"
    }

    /// Always returns the table by place.
    fn table(&self, value: Value) -> Option<Table> {
        match value {
            Value::Table(table) if keys::keys::<Loss>().iter().any(|key| table.get(key.name()).is_some()) => {
                Some(table)
            }
            model => Some(Table::default().and("wire", model)),
        }
    }
}

impl Form<Loss> for Losing {
    fn read(&self, node: &Node, around: Surroundings<'_>) -> Result<Loss, Problem> {
        let Value::Table(table) = &node.value else {
            return Ok(Loss { wire: MODEL.read(node, around)?, ..Loss::default() });
        };
        keys::only(table, &all_keys())?;
        let loss: Loss = keys::read(node, table, around)?;
        // A table without a place is a loss model on the wire.
        let is_of_place = |name: &str| keys::named::<Loss>(name).is_some();
        let Some((model, _)) = table.iter().find(|(key, _)| !is_of_place(&key.name)) else { return Ok(loss) };
        if let Some(place) = ["ingress", "wire"].into_iter().find_map(|key| table.key(key)) {
            return Err(Problem::new(format!("`{}` beside `{}`", model.name, place.name))
                .at(&model.span)
                .also(&place.span, "this table selects where packets are lost")
                .help(format!("write {} = {{ {} = … }}", place.name, model.name)));
        }
        let wire: LossModel = keys::read(node, table, around)?;
        Ok(Loss { wire: wire.unless_never(), ..loss })
    }

    fn write(&self, loss: &Loss) -> Option<Value> {
        match loss {
            Loss { ingress: None, with_delay, wire } if with_delay.is_empty() => {
                Some(MODEL.write(wire).unwrap_or_else(|| text(Share::ZERO)))
            }
            _ => Some(Value::Table(loss.to_table())),
        }
    }
}
