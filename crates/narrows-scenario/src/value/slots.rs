//! Slots in which alone packets leave the delay line: `{ gap = "10ms", packets = 8, bytes = 9000 }`, or `"none"`.

use narrows_core::{Bytes, Duration, SlotGap};

use crate::files::Files;
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::units;
use crate::value::distribution::{Distribution, MODIFIERS, SHAPES, Shape};
use crate::value::inline::Inline;

/// When packets may leave, and how many.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    /// From when a slot is asked for to when it opens.
    pub gap: Gap,
    /// The most packets in one; nothing for no limit.
    pub packets: Option<u32>,
    /// The most bytes in one; nothing for no limit.
    pub bytes: Option<u32>,
}

/// How long a slot is waited for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Gap {
    /// Always the same.
    Fixed(Duration),
    /// Drawn for each slot.
    Drawn(Distribution),
}

impl Slots {
    /// The keys of its table.
    pub(crate) const KEYS: &[&str] = &["gap", "packets", "bytes"];

    pub(crate) fn read(node: &Node, files: &Files) -> Result<Option<Self>, Problem> {
        if matches!(&node.value, Value::String(text) if text.trim() == "none") {
            return Ok(None);
        }
        const ALLOWED: &str = "a table such as { gap = \"10ms\", packets = 8 }, or \"none\"";
        let table = node.table(ALLOWED)?;
        table.only(Self::KEYS)?;
        if table.get("gap").is_none() {
            let problem = Problem::new("`gap` is missing").at(&node.span);
            return Err(problem.help("say how long a slot is waited for: gap = \"10ms\""));
        }
        let most = |key, what: &str| {
            let read = |node: &Node| match &node.value {
                Value::String(text) if what == "bytes" && text.trim().ends_with(char::is_alphabetic) => {
                    let size = units::size(node)?.get();
                    u32::try_from(size)
                        .ok()
                        .filter(|size| *size > 0)
                        .ok_or_else(|| node.expected("1 byte to 4 GB"))
                }
                _ => node.integer(&format!("a number of {what}"), 1..1 << 32).map(|most| most as u32),
            };
            table.optional(key, read)
        };
        Ok(Some(Self {
            gap: table.required("gap", &node.span, |node| Gap::read(node, files))?,
            packets: most("packets", "packets")?,
            bytes: most("bytes", "bytes")?,
        }))
    }

    /// The engine's.
    pub(crate) fn build(&self) -> narrows_core::Slots {
        narrows_core::Slots {
            gap: self.gap.build(),
            packets: self.packets.map_or(0, u64::from),
            bytes: Bytes::new(self.bytes.map_or(0, u64::from)),
        }
    }

    /// As it stands in a file.
    pub(crate) fn text(&self) -> String {
        let mut table = Inline::default();
        table.plain("gap", Some(self.gap.text()));
        table.plain("packets", self.packets);
        table.plain("bytes", self.bytes);
        table.finish()
    }
}

impl Gap {
    fn read(node: &Node, files: &Files) -> Result<Self, Problem> {
        let Value::Table(table) = &node.value else { return units::positive_time(node).map(Self::Fixed) };
        table.only(&[SHAPES, MODIFIERS].concat())?;
        Distribution::read(node, table, files).map(Self::Drawn)
    }

    fn text(&self) -> String {
        match self {
            Self::Fixed(gap) => format!("\"{gap}\""),
            Self::Drawn(distribution) => {
                let mut table = Inline::default();
                distribution.write(&mut table);
                table.finish()
            }
        }
    }

    /// The engine's.
    fn build(&self) -> SlotGap {
        match self {
            Self::Fixed(gap) => SlotGap::Between(*gap, *gap),
            Self::Drawn(distribution) => match distribution.shape {
                Shape::Uniform { low, high } if distribution.is_plain() => SlotGap::Between(low, high),
                _ => SlotGap::Drawn(Box::new(distribution.engine().clone())),
            },
        }
    }
}

/// For people.
impl std::fmt::Display for Slots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.gap {
            Gap::Fixed(gap) => write!(f, "slots {gap} after they are asked for")?,
            Gap::Drawn(gap) => write!(f, "slots after {gap}")?,
        }
        match (self.packets, self.bytes) {
            (None, None) => write!(f, ", for all that waits"),
            (Some(packets), None) => write!(f, ", for {packets} packets each"),
            (None, Some(bytes)) => write!(f, ", for {bytes} bytes each"),
            (Some(packets), Some(bytes)) => write!(f, ", for {packets} packets and {bytes} bytes each"),
        }
    }
}
