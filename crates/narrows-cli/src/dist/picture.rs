//! Writes figures to files: SVG, or PNG if a converter from SVG is installed.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use narrows_lab::plot::Figure;

use crate::output::{Failure, probe_writable};

/// Converters from SVG to PNG, with arguments to read standard input and write a file.
const CONVERTERS: [(&str, &[&str]); 3] = [
    ("rsvg-convert", &["--zoom=1.5", "--format=png", "--output"]),
    ("inkscape", &["--pipe", "--export-type=png", "--export-dpi=144", "--export-filename"]),
    ("magick", &["-density", "144", "svg:-"]),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Svg,
    Png,
}

fn kind(path: &Path) -> Option<Kind> {
    let extension = path.extension()?.to_str()?.to_lowercase();
    [("svg", Kind::Svg), ("png", Kind::Png)]
        .into_iter()
        .find(|(name, _)| *name == extension)
        .map(|(_, kind)| kind)
}

/// Fails early if a picture cannot be written there. `option` is the option with the name.
pub(crate) fn probe(path: Option<&Path>, option: &str) -> Result<(), Failure> {
    match path {
        Some(path) if kind(path).is_none() => Err(Failure::Other(format!(
            "{option} {}: pictures go to files whose names end in .svg or .png",
            path.display()
        ))),
        path => probe_writable(path),
    }
}

/// Writes a figure to a file, in the format that the name implies.
pub(crate) fn write(path: &Path, figure: &Figure) -> Result<(), Failure> {
    let svg = figure.svg();
    match kind(path) {
        Some(Kind::Png) => write_png(path, &svg),
        _ => fs::write(path, svg).map_err(|cause| Failure::Write { path: path.into(), cause }),
    }
}

fn write_png(path: &Path, svg: &str) -> Result<(), Failure> {
    for (program, arguments) in CONVERTERS {
        let started = Command::new(program)
            .args(arguments)
            .arg(path)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = match started {
            Err(cause) if cause.kind() == ErrorKind::NotFound => continue,
            other => other.map_err(|cause| Failure::Other(format!("cannot start {program}: {cause}")))?,
        };
        // A converter that exits early reports the reason itself.
        let _ = child.stdin.take().map(|mut input| input.write_all(svg.as_bytes()));
        let ended =
            child.wait_with_output().map_err(|cause| Failure::Other(format!("{program}: {cause}")))?;
        return match ended.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&ended.stderr);
                Err(Failure::Other(format!("{program} made no {}: {}", path.display(), said.trim())))
            }
        };
    }
    Err(Failure::Other(format!(
        "{}: to make a PNG, one of rsvg-convert (Debian: librsvg2-bin), inkscape and magick is needed, but none is installed\nhelp: a name ending in .svg needs none",
        path.display()
    )))
}
