//! A table on one line, as it stands in a file.

use std::fmt::Display;

/// The entries of a table, those that are there.
#[derive(Default)]
pub(crate) struct Inline(Vec<String>);

impl Inline {
    /// A value that stands without quotes, or brings its own.
    pub(crate) fn plain(&mut self, key: &str, value: Option<impl Display>) {
        self.0.extend(value.map(|value| format!("{key} = {value}")));
    }

    /// A value in quotes, which has none inside.
    pub(crate) fn quoted(&mut self, key: &str, value: Option<impl Display>) {
        self.plain(key, value.map(|value| format!("\"{value}\"")));
    }

    pub(crate) fn finish(self) -> String {
        if self.0.is_empty() { "{}".into() } else { format!("{{ {} }}", self.0.join(", ")) }
    }
}
