//! Parameters of enhanced transmission selection (ETS): `{ type = "ets", strict = 1, classes = [{ name = "voice" }, { name =
//! "web", quantum = "3000 bytes" }, …] }`.

use super::own::OwnParameters;
use crate::keys::kind::Integer;
use crate::keys::{Keyed, Row, row};

/// Parameters of enhanced transmission selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ets {
    /// The number of classes, from the first, that are served in strict priority.
    pub(super) strict: u32,
}

impl Keyed for Ets {
    const ROWS: &'static [Row<Self>] = &[row!(
        "strict",
        strict,
        Integer { what: "a number of classes", low: 0, high: 65_535 },
        "How many of the first classes are served in strict priority, before the others."
    )];
}

impl OwnParameters for Ets {
    fn effective(&self) -> String {
        match self.strict {
            0 => String::new(),
            1 => "; the first class before all others".into(),
            strict => format!("; the first {strict} classes before the others, in strict priority"),
        }
    }
}
