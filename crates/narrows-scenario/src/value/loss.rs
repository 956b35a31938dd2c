//! Losses that do not come from a full queue: `"1%"` or another model on the wire, `{ ingress = MODEL, wire = MODEL }`,
//! and beside them `with-delay`, losses that depend on the delay.

mod model;

pub use model::{LossModel, Losses};

use narrows_core::Duration;

use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::units::{self, Share};
use crate::value::condition::Surroundings;
use crate::value::inline::Inline;

/// Which packets are lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loss {
    /// Before the queue.
    pub ingress: Option<LossModel>,
    /// After the transmitter.
    pub wire: Option<LossModel>,
    /// With the delay that a packet drew: the probability at some delays, rising; straight lines between them.
    pub with_delay: Vec<(Duration, Share)>,
}

/// The keys that say where, or on what it depends; all others are those of a model.
const PLACES: &[&str] = &["ingress", "wire", "with-delay"];

/// The most points of a curve.
const MOST_POINTS: usize = 1000;

impl Loss {
    /// The keys of its table.
    pub(crate) fn keys() -> Vec<&'static str> {
        [PLACES, LossModel::KEYS].concat()
    }

    pub(crate) fn read(node: &Node, around: Surroundings<'_>) -> Result<Self, Problem> {
        let Value::Table(table) = &node.value else {
            return Ok(Self { wire: LossModel::read(node, around)?, ..Self::default() });
        };
        table.only(&Self::keys())?;
        let with_delay = table.optional("with-delay", curve)?.unwrap_or_default();
        // A table that says no place is a model of losses on the wire.
        let model = table.iter().find(|(key, _)| !PLACES.contains(&key.name.as_str())).map(|(key, _)| key);
        let place = ["ingress", "wire"].into_iter().find_map(|key| table.key(key));
        if let (Some(model), Some(place)) = (model, place) {
            return Err(Problem::new(format!("`{}` beside `{}`", model.name, place.name))
                .at(&model.span)
                .also(&place.span, "here it is said where packets are lost")
                .help(format!("write {} = {{ {} = … }}", place.name, model.name)));
        }
        if model.is_some() {
            let wire = LossModel::read_table(node, &without(table, PLACES), around)?;
            return Ok(Self { ingress: None, wire, with_delay });
        }
        let model = |key| table.optional(key, |node| LossModel::read(node, around)).map(Option::flatten);
        Ok(Self { ingress: model("ingress")?, wire: model("wire")?, with_delay })
    }

    /// As it stands in a file.
    pub(crate) fn text(&self) -> String {
        match self {
            Self { ingress: None, with_delay, wire } if with_delay.is_empty() => text(wire.as_ref()),
            _ => self.by_place(LossModel::text),
        }
    }

    /// The same as a table that says where, of tables that say what, always.
    pub(crate) fn table_text(&self) -> String {
        self.by_place(LossModel::table_text)
    }

    fn by_place(&self, text: fn(&LossModel) -> String) -> String {
        let mut table = Inline::default();
        table.plain("ingress", self.ingress.as_ref().map(text));
        table.plain("wire", self.wire.as_ref().map(text));
        let point = |(delay, share): &(Duration, Share)| format!("[\"{delay}\", \"{share}\"]");
        let points: Vec<String> = self.with_delay.iter().map(point).collect();
        table.plain("with-delay", (!points.is_empty()).then(|| format!("[{}]", points.join(", "))));
        table.finish()
    }
}

/// A model as it stands in a file, or that there is none.
fn text(model: Option<&LossModel>) -> String {
    model.map_or("\"0%\"".into(), LossModel::text)
}

/// The table without these keys.
fn without(table: &Table, keys: &[&str]) -> Table {
    let mut table = table.clone();
    let others: Vec<String> =
        table.iter().map(|(key, _)| key.name.clone()).filter(|name| !keys.contains(&name.as_str())).collect();
    table.keep(&others.iter().map(String::as_str).collect::<Vec<_>>());
    table
}

fn curve(node: &Node) -> Result<Vec<(Duration, Share)>, Problem> {
    const ALLOWED: &str =
        "a list of delays and probabilities, such as [[\"20ms\", \"0%\"], [\"100ms\", \"10%\"]]";
    let items = node.list(ALLOWED)?;
    if items.is_empty() || items.len() > MOST_POINTS {
        return Err(node.expected(&format!(
            "1 to {MOST_POINTS} points, such as [[\"20ms\", \"0%\"], [\"100ms\", \"10%\"]]"
        )));
    }
    let mut points: Vec<(Duration, Share)> = Vec::new();
    for item in items {
        let [delay, share] = item.list(ALLOWED)? else { return Err(item.expected(ALLOWED)) };
        let (delay, share) = (units::time(delay)?, Share::read(share)?);
        if let Some((before, _)) = points.last().filter(|(before, _)| *before >= delay) {
            return Err(Problem::new(format!(
                "the delay {delay} does not lie above {before}, the one before it"
            ))
            .at(&item.span));
        }
        points.push((delay, share));
    }
    Ok(points)
}
