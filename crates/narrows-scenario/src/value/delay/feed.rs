//! Delays that another process streams in: `{ feed = "radio", on-empty = "last", lead = "4096 values", ask = "2ms" }`.

use narrows_core::Duration;
use narrows_core::model::{DelayModel, Fed, FeedConfig, OnEmpty};

use crate::node::{Key, Node, Table, Value, check_name};
use crate::problem::Problem;
use crate::units;
use crate::value::inline::Inline;

/// A feed, as a link uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedUse {
    /// Unique on its link.
    pub name: String,
    /// What becomes of a packet for which there is no value.
    pub on_empty: OnEmpty,
    /// How many values are held at most.
    pub lead: usize,
    /// Whether the process is asked for each packet, and how long it may take to answer.
    pub ask: Option<Duration>,
}

const ON_EMPTY: &[(&str, OnEmpty)] =
    &[("zero", OnEmpty::Zero), ("last", OnEmpty::Last), ("repeat", OnEmpty::Repeat), ("drop", OnEmpty::Drop)];

/// More values than that are no feed but a trace: 8 MiB.
const MOST_LEAD: i64 = 1 << 20;
/// A packet that waits longer for its answer has no use.
const LONGEST_ASK: Duration = Duration::from_secs(60);

impl FeedUse {
    /// Reads the keys of a feed.
    pub(super) fn read(node: &Node, table: &Table) -> Result<Self, Problem> {
        let name = table.required("feed", &node.span, |node| {
            let name = node.text("the name of a feed")?.trim().to_owned();
            check_name(&Key { name: name.clone(), span: node.span.clone() }, "feed")?;
            Ok(name)
        })?;
        if let (Some(_), Some(key)) = (table.key("on-empty"), table.key("on_empty")) {
            return Err(Problem::new("both `on-empty` and `on_empty`, which are the same").at(&key.span));
        }
        let key = if table.get("on_empty").is_some() { "on_empty" } else { "on-empty" };
        let plain = FeedConfig::new(name);
        Ok(Self {
            on_empty: table.optional(key, |node| node.choice("rule", ON_EMPTY))?.unwrap_or(plain.on_empty),
            lead: table.optional("lead", lead)?.unwrap_or(plain.lead),
            ask: table
                .optional("ask", |node| units::time_between(node, Duration::from_nanos(1), LONGEST_ASK))?,
            name: plain.name,
        })
    }

    pub(super) fn build(&self) -> Box<dyn DelayModel> {
        let Self { name, on_empty, lead, ask } = self.clone();
        Box::new(Fed::new(FeedConfig { name, on_empty, lead, ask }))
    }

    pub(super) fn write(&self, table: &mut Inline) {
        let plain = FeedConfig::new("");
        table.quoted("feed", Some(&self.name));
        table.quoted("on-empty", Some(self.rule()));
        table.quoted("lead", (self.lead != plain.lead).then(|| format!("{} values", self.lead)));
        table.quoted("ask", self.ask);
    }

    /// What becomes of a packet for which there is no value, in a word.
    pub fn rule(&self) -> &'static str {
        ON_EMPTY.iter().find(|(_, rule)| *rule == self.on_empty).map_or("zero", |(name, _)| name)
    }
}

/// Reads `"4096 values"`, or the number alone.
fn lead(node: &Node) -> Result<usize, Problem> {
    let allowed = format!("a number of values from 1 to {MOST_LEAD}, such as \"4096 values\"");
    let text = match &node.value {
        Value::Integer(text) => text.as_str(),
        Value::String(text) => text.trim().trim_end_matches("values").trim_end_matches("value").trim(),
        _ => "",
    };
    let number = text.replace('_', "").parse::<i64>().ok().filter(|number| (1..=MOST_LEAD).contains(number));
    number.map(|number| number as usize).ok_or_else(|| node.expected(&allowed))
}

/// For people.
impl std::fmt::Display for FeedUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rule = match self.on_empty {
            OnEmpty::Zero => "no delay",
            OnEmpty::Last => "the last delay",
            OnEmpty::Repeat => "the last values again",
            OnEmpty::Drop => "loss",
        };
        match self.ask {
            None => write!(
                f,
                "fed as `{}`, at most {} values ahead, {rule} when there are none",
                self.name, self.lead
            ),
            Some(patience) => {
                write!(f, "asked of the feed `{}`, {rule} without an answer within {patience}", self.name)
            }
        }
    }
}
