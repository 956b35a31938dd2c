//! Delays streamed by another process: `{ feed = "radio", on-empty = "last", lead = "4096 values", ask =
//! "2ms" }`.

use narrows_core::Duration;
use narrows_core::model::{DelayModel, Fed, FeedConfig, OnEmpty};

use serde_json::json;

use crate::keys::kind::{ByHand, Choice, Given, text};
use crate::keys::quantity::Time;
use crate::keys::{Form, Keyed, Row, row};
use crate::node::{Key, Node, Value, check_name};
use crate::problem::Problem;
use crate::units;

/// A link's use of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedUse {
    /// Name, unique on its link.
    pub name: String,
    /// What happens to a packet if there is no value for it.
    pub on_empty: OnEmpty,
    /// Maximum number of buffered values.
    pub lead: usize,
    /// The buffer limit as a time, if given so: at most as many values as packets asked for within the last
    /// such period.
    pub span: Option<Duration>,
    /// Answer timeout if the process is asked for each packet; `None` if it is not asked.
    pub ask: Option<Duration>,
}

const ON_EMPTY: Choice<OnEmpty> = Choice {
    what: "value of `on-empty`",
    choices: &[
        ("zero", OnEmpty::Zero),
        ("last", OnEmpty::Last),
        ("repeat", OnEmpty::Repeat),
        ("drop", OnEmpty::Drop),
    ],
};
const NAME: ByHand<String> = ByHand {
    words: || "name".into(),
    schema: |_| json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" }),
    read: |node, _| {
        let name = node.text("the name of a feed")?.trim().to_owned();
        check_name(&Key { name: name.clone(), span: node.span.clone() }, "feed")?;
        Ok(name)
    },
    write: |name| Some(text(name)),
};
/// A number of values, and a time if the limit is a time.
const LEAD: ByHand<(usize, Option<Duration>)> = ByHand {
    words: || "values, such as `\"4096 values\"`, up to 1048576; or a time from 1 ms to 1 h".into(),
    schema: |_| {
        let text = r"^ *([0-9_]+ *(values?)?|\+?[0-9_.]+([eE][+-]?[0-9]+)? *(ns|us|µs|μs|ms|s|min|h)) *$";
        let number = json!({ "type": "integer", "minimum": 1, "maximum": MOST_LEAD });
        json!({ "anyOf": [{ "type": "string", "pattern": text }, number] })
    },
    read: |node, _| lead(node),
    write: |(values, span)| Some(span.map_or_else(|| text(format!("{values} values")), text)),
};

/// Maximum number of values, 8 MiB. More belong in a trace.
const MOST_LEAD: i64 = 1 << 20;
/// Maximum number of values for a limit given as a time.
const MOST_IN_TIME: usize = 1 << 16;
const SPANS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(3600));
/// Longer waits for an answer are of no use to a packet.
const ASK: Time = Time::between(Duration::from_nanos(1), Duration::from_secs(60));

impl Default for FeedUse {
    /// Has no name, which is required.
    fn default() -> Self {
        let FeedConfig { name, on_empty, lead, ask } = FeedConfig::new("");
        Self { name, on_empty, lead, span: None, ask }
    }
}

impl Keyed for FeedUse {
    const ROWS: &'static [Row<Self>] = &[
        row!("feed", name, NAME, "Name of the feed, unique on the link.").required(),
        row!(
            "on-empty",
            on_empty,
            ON_EMPTY,
            "What to do without a value: no delay, reuse the last value, repeat the last values, or drop."
        )
        .alias(&["on_empty"]),
        Row::new(
            "lead",
            &LEAD,
            "How far values may run ahead of packets.",
            |of: &Self| LEAD.write(&(of.lead, of.span)),
            |of: &mut Self, node, around| {
                (of.lead, of.span) = LEAD.read(node, around)?;
                Ok(())
            },
        ),
        row!(
            "ask",
            ask,
            Given(ASK),
            "Interactive mode: ask for each packet and wait this long for the answer."
        )
        .default("none"),
    ];
}

impl FeedUse {
    pub(super) fn build(&self) -> Box<dyn DelayModel> {
        let Self { name, on_empty, lead, ask, .. } = self.clone();
        Box::new(Fed::new(FeedConfig { name, on_empty, lead, ask }))
    }

    /// A word for what happens to a packet without a value.
    pub fn rule(&self) -> &'static str {
        ON_EMPTY.choices.iter().find(|(_, rule)| *rule == self.on_empty).map_or("zero", |(name, _)| name)
    }
}

/// Reads `"4096 values"`, a bare number, or a time.
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

/// For display.
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
