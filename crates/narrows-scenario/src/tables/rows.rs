//! Lines with content, with their numbers, and their fields.

use super::error::TableError;
use super::quantity::is_name;

/// A line's number, from 1, and its text.
pub(super) type Line<'a> = (usize, &'a str);

/// The file's text, without the byte order mark that spreadsheets write at its start.
pub(super) fn text<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, TableError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        TableError::line_of(file, line, "not a text")
    })
}

/// Lines that are not empty and do not start with `#`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// The field separator of a file, the same in all its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    Character(char),
    Space,
}

impl Separator {
    /// The separator that this line uses.
    pub(super) fn of(line: &str) -> Self {
        [',', ';', '\t'].into_iter().find(|c| line.contains(*c)).map_or(Self::Space, Self::Character)
    }

    /// The fields of a line, without quotes. A space between a number and its unit does not separate
    /// fields.
    pub(super) fn fields(self, line: &str) -> Vec<&str> {
        match self {
            Self::Character(separator) => {
                line.split(separator).map(|field| field.trim().trim_matches('"')).collect()
            }
            Self::Space => {
                let words: Vec<&str> = line.split_whitespace().collect();
                match words[..] {
                    [number, unit] if super::TimeUnit::named(unit).is_some() && !is_name(number) => {
                        vec![line]
                    }
                    _ => words,
                }
            }
        }
    }
}
