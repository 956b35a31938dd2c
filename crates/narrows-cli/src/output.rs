//! Output of results and errors.

use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use narrows_calibrate::CalibrateError;
use narrows_guest::kernel::KernelError;
use narrows_guest::machine::MachineError;
use narrows_io::user_namespace::UserNamespaceError;
use narrows_live::control::ControlError;
use narrows_live::exec::ExecError;
use narrows_live::run::RunError;
use narrows_scenario::{ScenarioError, printable};
use narrows_sim::SimError;
use serde::Serialize;

/// Why a command failed; each text is a paragraph with the place and the remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Sim(SimError),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Exec(#[from] ExecError),
    #[error(transparent)]
    Calibrate(#[from] CalibrateError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error(transparent)]
    UserNamespace(#[from] UserNamespaceError),
    #[error("cannot write {}: {}", path.display(), why(path, cause))]
    Write { path: PathBuf, cause: io::Error },
    #[error("{0}")]
    Other(String),
    /// Standard output was closed by its reader.
    #[error("the standard output was closed")]
    Closed,
}

/// The kernel's error, or a clearer text where the error is ambiguous.
fn why(path: &Path, cause: &io::Error) -> String {
    match path.parent() {
        Some(folder) if cause.kind() == ErrorKind::NotFound && !folder.as_os_str().is_empty() => {
            format!("there is no folder {}", folder.display())
        }
        _ => cause.to_string(),
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Self {
        if error.is_broken_pipe() { Self::Closed } else { Self::Sim(error) }
    }
}

/// Prints to standard output, sanitised for terminals.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_coloured(&printable(text))
}

/// Prints a message to stderr; ignores a closed stderr.
pub(crate) fn say(text: impl Display) {
    let _ = io::stderr().write_all(printable(&format!("{text}\n")).as_bytes());
}

/// Prints text that is already sanitised, including colours.
pub(crate) fn print_coloured(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|cause| match cause.kind() {
        ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::Write { path: "the standard output".into(), cause },
    })
}

/// Words on the left, and next to them text wrapped at `width`, starting at column `indent`.
pub(crate) fn columns(indent: usize, width: usize, left: &str, right: &str) -> String {
    let (mut text, mut start, mut line) = (String::new(), left.to_owned(), String::new());
    for word in right.split_whitespace() {
        if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > width {
            text += &format!("{start:indent$}{line}\n");
            (start, line) = (String::new(), String::new());
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    text + &format!("{start:indent$}{line}\n")
}

/// Writes a value as JSON to a file, or to standard output for `-`.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| Failure::Other(error.to_string()))?;
    text.push('\n');
    if path == Path::new("-") {
        return print(&text);
    }
    fs::write(path, text).map_err(|cause| Failure::Write { path: path.into(), cause })
}

/// As [`probe_writable`] for a figure, which must be SVG.
pub(crate) fn probe_plot(path: Option<&Path>) -> Result<(), Failure> {
    let is_svg =
        |path: &Path| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    match path {
        Some(other) if !is_svg(other) && other != Path::new("-") => Err(Failure::Other(format!(
            "--plot {}: plots are SVG, and are written to a file whose name ends in .svg, or to the standard output (-)",
            other.display()
        ))),
        path => probe_writable(path),
    }
}

/// Writes a text, such as a figure, to a file or to standard output.
pub(crate) fn put(path: &Path, text: &str) -> Result<(), Failure> {
    match path == Path::new("-") {
        true => print(text),
        false => fs::write(path, text).map_err(|cause| Failure::Write { path: path.into(), cause }),
    }
}

/// Fails early if a file cannot be written, before a long run ends with that error. Does not leave a new
/// file behind.
pub(crate) fn probe_writable(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path.filter(|path| *path != Path::new("-")) else { return Ok(()) };
    let existed = path.exists();
    let tried = fs::OpenOptions::new().append(true).create(true).open(path);
    tried.map_err(|cause| Failure::Write { path: path.into(), cause })?;
    if !existed {
        // If it cannot be created again, writing the report fails with an error.
        let _ = fs::remove_file(path);
    }
    Ok(())
}
