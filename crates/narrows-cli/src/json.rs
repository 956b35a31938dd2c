//! The `--json` option, the same in all commands.
//!
//! `--json` alone and `--json -` print JSON instead of text; `--json FILE` writes it in addition to the
//! text. The output has a version, `schema`, which increases when a key changes.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use serde::Serialize;

use crate::output::{Failure, print, print_coloured, probe_writable, write_json};

/// The standard output.
const STDOUT: &str = "-";

/// Where results go as JSON.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Json {
    /// Write the result as JSON to FILE, in addition to the text; without FILE (or with -) to stdout, instead
    #[arg(
        long = "json",
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = STDOUT,
        value_hint = ValueHint::FilePath
    )]
    to: Option<PathBuf>,
}

/// JSON output with the version of its keys.
#[derive(Serialize)]
struct Versioned<'a, T> {
    schema: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    #[serde(flatten)]
    found: &'a T,
}

impl Json {
    /// The output file, if any.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.to.as_deref()
    }

    /// As `--json` alone.
    pub(crate) fn to_stdout() -> Self {
        Self { to: Some(STDOUT.into()) }
    }

    /// Whether standard output is used for JSON.
    pub(crate) fn takes_stdout(&self) -> bool {
        is_stdout(self.path())
    }

    /// Fails early if the file cannot be written.
    pub(crate) fn probe(&self) -> Result<(), Failure> {
        probe_writable(self.path())
    }

    /// Writes the JSON, or the text, or both.
    pub(crate) fn put(
        &self,
        schema: u32,
        found: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        self.put_part(schema, found, false, text)
    }

    /// Same for an interrupted operation; the JSON says so, too.
    pub(crate) fn put_part(
        &self,
        schema: u32,
        found: &impl Serialize,
        interrupted: bool,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        self.write(schema, found, interrupted)?;
        if self.takes_stdout() { Ok(()) } else { print(&text()) }
    }

    /// The same of a text that was made fit for a terminal and may have colours.
    pub(crate) fn put_coloured(
        &self,
        schema: u32,
        found: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        self.write(schema, found, false)?;
        if self.takes_stdout() { Ok(()) } else { print_coloured(&text()) }
    }

    fn write(&self, schema: u32, found: &impl Serialize, interrupted: bool) -> Result<(), Failure> {
        let versioned = Versioned { schema, interrupted, found };
        self.path().map_or(Ok(()), |path| write_json(path, &versioned))
    }
}

/// Whether this is the standard output.
pub(crate) fn is_stdout(path: Option<&Path>) -> bool {
    path.is_some_and(|path| path == Path::new(STDOUT))
}
