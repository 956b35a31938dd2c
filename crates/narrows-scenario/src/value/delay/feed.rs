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
    /// The lead in time, where it is given so: no more values than packets asked for within that time of late.
    pub span: Option<Duration>,
    /// Whether the process is asked for each packet, and how long it may take to answer.
    pub ask: Option<Duration>,
}

const ON_EMPTY: &[(&str, OnEmpty)] =
    &[("zero", OnEmpty::Zero), ("last", OnEmpty::Last), ("repeat", OnEmpty::Repeat), ("drop", OnEmpty::Drop)];

/// More values than that are no feed but a trace: 8 MiB.
const MOST_LEAD: i64 = 1 << 20;
/// A lead in time holds no more values than that, and is within these.
const MOST_IN_TIME: usize = 1 << 16;
const SPANS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(3600));
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
        let (lead, span) = table.optional("lead", lead)?.unwrap_or((plain.lead, None));
        Ok(Self {
            lead,
            span,
            on_empty: table.optional(key, |node| node.choice("rule", ON_EMPTY))?.unwrap_or(plain.on_empty),
            ask: table
                .optional("ask", |node| units::time_between(node, Duration::from_nanos(1), LONGEST_ASK))?,
            name: plain.name,
        })
    }

    pub(super) fn build(&self) -> Box<dyn DelayModel> {
        let Self { name, on_empty, lead, ask, .. } = self.clone();
        Box::new(Fed::new(FeedConfig { name, on_empty, lead, ask }))
    }

    pub(super) fn write(&self, table: &mut Inline) {
        let plain = FeedConfig::new("");
        table.quoted("feed", Some(&self.name));
        table.quoted("on-empty", Some(self.rule()));
        let lead = match self.span {
            Some(span) => Some(span.to_string()),
            None => (self.lead != plain.lead).then(|| format!("{} values", self.lead)),
        };
        table.quoted("lead", lead);
        table.quoted("ask", self.ask);
    }

    /// What becomes of a packet for which there is no value, in a word.
    pub fn rule(&self) -> &'static str {
        ON_EMPTY.iter().find(|(_, rule)| *rule == self.on_empty).map_or("zero", |(name, _)| name)
    }
}

/// Reads `"4096 values"`, or the number alone, or a time.
fn lead(node: &Node) -> Result<(usize, Option<Duration>), Problem> {
    let allowed = format!(
        "a number of values from 1 to {MOST_LEAD}, such as \"4096 values\", or a time, such as \"100ms\""
    );
    let text = match &node.value {
        Value::Integer(text) => text.as_str(),
        Value::String(text) => text.trim(),
        _ => "",
    };
    if text.ends_with(|c: char| c.is_ascii_alphabetic())
        && !text.ends_with("value")
        && !text.ends_with("values")
    {
        let span = units::time_between(node, SPANS.0, SPANS.1).map_err(|_| node.expected(&allowed))?;
        return Ok((MOST_IN_TIME, Some(span)));
    }
    let number = text.trim_end_matches("values").trim_end_matches("value").trim();
    let number =
        number.replace('_', "").parse::<i64>().ok().filter(|number| (1..=MOST_LEAD).contains(number));
    number.map(|number| (number as usize, None)).ok_or_else(|| node.expected(&allowed))
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
            None => {
                write!(f, "fed as `{}`, at most ", self.name)?;
                match self.span {
                    Some(span) => write!(f, "{span}")?,
                    None => write!(f, "{} values", self.lead)?,
                }
                write!(f, " ahead, {rule} when there are none")
            }
            Some(patience) => {
                write!(f, "asked of the feed `{}`, {rule} without an answer within {patience}", self.name)
            }
        }
    }
}
