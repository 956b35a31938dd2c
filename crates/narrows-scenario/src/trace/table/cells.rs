//! Lines and cells of a table.

use std::fmt;

use crate::problem::Problem;
use crate::source::Source;

/// Cells that say that there is no value.
const NONE: &[&str] = &["", "-", "--", "na", "n/a", "nan", "null", "none", "?"];

/// The lines that have content.
pub(in crate::trace) fn lines<'a>(source: &Source<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    source.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

/// Whether a cell has no value.
pub(in crate::trace) fn says_nothing(cell: &str) -> bool {
    // None of the words is longer.
    cell.len() < 5 && NONE.iter().any(|none| none.eq_ignore_ascii_case(cell))
}

/// What stands between cells.
#[derive(Clone, Copy)]
pub(in crate::trace) enum Separator {
    Char(char),
    Blanks,
}

impl Separator {
    pub(in crate::trace) fn of(line: &str) -> Self {
        let has = |separator: &char| line.contains(*separator);
        ['\t', ';', ','].into_iter().find(has).map_or(Self::Blanks, Self::Char)
    }

    /// The cells of a line.
    pub(in crate::trace) fn cells<'a>(
        self,
        source: &Source<'_>,
        line: &'a str,
        cells: &mut Vec<&'a str>,
    ) -> Result<(), Problem> {
        cells.clear();
        match self {
            Self::Blanks => cells.extend(line.split_ascii_whitespace()),
            Self::Char(separator) if line.contains('"') => {
                let mut rest = Some(line);
                while let Some(text) = rest {
                    let (cell, after) = quoted(source, text, separator)?;
                    cells.push(unlisted(cell));
                    rest = after;
                }
            }
            Self::Char(separator) => {
                cells.extend(line.split(separator).map(|cell| unlisted(cell.trim())));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Separator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Char('\t') => "tabs",
            Self::Char(';') => "semicolons",
            Self::Char(_) => "commas",
            Self::Blanks => "blanks",
        })
    }
}

/// The only value of a list, as Python prints it (`['8.37']`, `[8.37]`, `[]`), or else the cell. Names such as `[ms]`
/// stay.
fn unlisted(cell: &str) -> &str {
    let Some(inside) = cell.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else { return cell };
    let inside = inside.trim();
    let quotes = ['\'', '"'];
    let is_number =
        |text: &str| text.trim_start_matches(['-', '+', '.']).starts_with(|c: char| c.is_ascii_digit());
    match quotes.iter().find_map(|quote| inside.strip_prefix(*quote)?.strip_suffix(*quote)) {
        Some(text) if !text.contains(quotes) => text.trim(),
        None if is_number(inside) || says_nothing(inside) => inside,
        _ => cell,
    }
}

/// The first cell of a text, without its quotes, and what follows its separator.
fn quoted<'a>(
    source: &Source<'_>,
    text: &'a str,
    separator: char,
) -> Result<(&'a str, Option<&'a str>), Problem> {
    let begin = text.trim_start_matches(' ');
    let Some(inside) = begin.strip_prefix('"') else {
        return Ok(match text.split_once(separator) {
            Some((cell, after)) => (cell.trim(), Some(after)),
            None => (text.trim(), None),
        });
    };
    // A doubled quote stays doubled: such cells are names of places, never numbers.
    let mut end = inside.find('"');
    while let Some(at) = end.filter(|at| inside[at + 1..].starts_with('"')) {
        end = inside[at + 2..].find('"').map(|next| at + 2 + next);
    }
    let Some(end) = end else {
        return Err(Problem::new("a quote without an end").at(&source.span(begin)));
    };
    let after = inside[end + 1..].trim_start_matches(' ');
    match after.strip_prefix(separator) {
        Some(rest) => Ok((&inside[..end], Some(rest))),
        None if after.is_empty() => Ok((&inside[..end], None)),
        None => Err(source.expected(after, &format!("{separator:?} after a quoted cell"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_one_are_their_values() {
        for (cell, value) in [
            ("['8.37']", "8.37"),
            ("[\"8.37\"]", "8.37"),
            ("[8.37]", "8.37"),
            ("[ -1 ]", "-1"),
            ("[]", ""),
            ("['']", ""),
            ("[None]", "None"),
            ("['a', 'b']", "['a', 'b']"),
            ("[ms]", "[ms]"),
            ("[", "["),
            ("['", "['"),
            ("[']", "[']"),
            ("8.37", "8.37"),
        ] {
            assert_eq!(unlisted(cell), value, "{cell}");
        }
    }
}
