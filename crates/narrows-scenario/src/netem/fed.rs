//! `delay [limit N] [reorder true|false]`: delays supplied by another program, in the syntax of the tc of
//! reference "sch_delay". Without `reorder`, packets keep their order.

use narrows_core::queue::Bound;

use super::options::DEFAULT_LIMIT;
use super::row::{self, Row};
use super::{units, words};
use crate::dialect::Read;
use crate::keys::kind::text;
use crate::node::{Table, Value};
use crate::problem::Found;

/// Name of the feed that replaces the device of `sch_delay`.
const FEED: &str = "delay";

/// The options of `delay [limit N] [reorder true|false]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FedDelay {
    /// Maximum number of packets held.
    pub limit: u64,
    /// Whether packets leave by their due times instead of in order of arrival.
    pub reorder: bool,
}

impl Default for FedDelay {
    fn default() -> Self {
        Self { limit: DEFAULT_LIMIT, reorder: false }
    }
}

pub(super) const OPTIONS: &[Row<FedDelay>] = &[
    Row {
        words: &["limit"],
        read: |fed, word, reader| {
            let number = reader.words.expect(word, "a number of packets")?;
            let limit = reader.value(number, |word| units::size(word, "a number of packets", "packets"))?;
            if limit == 0 {
                return Err(number.problem("a limit of 0 packets passes nothing"));
            }
            fed.limit = limit.into();
            Ok(())
        },
        show: |fed| Some(fed.limit.to_string()),
        explain: |fed| {
            vec![format!(
                "At most {} are in flight at once; further ones are dropped.",
                words::count(fed.limit, "packet")
            )]
        },
    },
    Row {
        words: &["reorder"],
        read: |fed, word, reader| {
            fed.reorder = reader.expect(word, "`true` or `false`", |word| match word.text {
                "true" | "1" => Ok(Read::plain(true)),
                "false" | "0" => Ok(Read::plain(false)),
                other => Err(word.problem(format!("found {}, expected `true` or `false`", Found(other)))),
            })?;
            Ok(())
        },
        show: |fed| Some(fed.reorder.to_string()),
        explain: |fed| {
            vec![if fed.reorder {
                "Packets leave by their delays and may be reordered.".into()
            } else {
                "Packets leave in order of arrival.".into()
            }]
        },
    },
];

/// Delays from a feed, and none without a value.
fn fed(feed: &str) -> Table {
    Table::default().and("feed", text(feed)).and("on-empty", text("zero"))
}

impl FedDelay {
    /// The equivalent keys of a direction.
    pub(super) fn keys(self) -> Vec<(&'static str, Value)> {
        let mut keys = vec![("delay", Value::Table(fed(FEED))), ("line-limit", self.line_limit())];
        if self.reorder {
            keys.push(("order", text("allow")));
        }
        keys
    }

    /// The equivalent keys of a class; the feed has this name.
    pub(crate) fn class_keys(self, feed: &str) -> [(&'static str, Value); 2] {
        let delay = fed(feed);
        let delay = if self.reorder { delay.and("order", text("allow")) } else { delay };
        [("delay", Value::Table(delay)), ("line-limit", self.line_limit())]
    }

    /// The options, as tc shows them.
    pub(crate) fn options(&self) -> String {
        row::show(OPTIONS, self)
    }

    fn line_limit(self) -> Value {
        text(Bound::Packets(self.limit))
    }

    pub(super) fn notes() -> Vec<String> {
        vec![format!(
            "Each packet takes the next delay from another program (`narrows feed`); without one it has no delay, as with sch_delay. Values come through a socket, the feed `{FEED}`, not a device."
        )]
    }
}
