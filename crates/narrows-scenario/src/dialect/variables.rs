//! Variables of a shell script: `DEV=eth0`, and `$DEV` or `${DEV:-eth0}` in later words. Commands are not
//! run, so a variable that takes their output has no value.

use std::collections::BTreeMap;
use std::ops::Range;

use super::shell;
use super::{Word, Words};
use crate::problem::{Found, Problem};

/// Maximum length of a value: variables that contain one another twice would grow without bound.
const LONGEST: usize = 1 << 16;

/// The variables known so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    /// `None` if the value is not in the script.
    values: BTreeMap<String, Option<String>>,
}

/// A word after expansion, and its span in the script.
pub(crate) struct Expanded {
    text: String,
    span: Range<usize>,
}

/// The words of a command, for a reader of `end` bytes of text.
pub(crate) fn as_words(words: &[Expanded], end: usize) -> Words<'_> {
    Words::of_words(words.iter().map(|word| Word::new(&word.text, &word.span)).collect(), end)
}

impl Variables {
    /// Takes the assignments at the start of a command; returns the rest of the command.
    ///
    /// # Errors
    /// If a value refers to a variable that is not set.
    pub(crate) fn assign(&mut self, text: &str, command: Range<usize>) -> Result<Range<usize>, Problem> {
        let mut rest = command;
        let mut exports = false;
        loop {
            let left = &text[rest.clone()];
            let blank = left.len() - left.trim_start().len();
            rest.start += blank;
            let left = &left[blank..];
            if let Some(keyword) = ["export", "local", "readonly", "declare", "typeset"]
                .into_iter()
                .find(|keyword| left.strip_prefix(*keyword).is_some_and(|rest| rest.starts_with(' ')))
            {
                rest.start += keyword.len();
                exports = true;
                continue;
            }
            let name = left.len() - left.trim_start_matches(is_name).len();
            if name == 0 || left.as_bytes()[0].is_ascii_digit() {
                return Ok(rest);
            }
            if left.as_bytes().get(name) != Some(&b'=') {
                // `export NAME` assigns nothing.
                let ends = left[name..].chars().next().is_none_or(char::is_whitespace);
                if !(exports && ends) {
                    return Ok(rest);
                }
                rest.start += name;
                continue;
            }
            let start = rest.start + name + 1;
            let value = start..start + value_length(&text[start..rest.end]);
            let expanded = self.value(text, value.clone())?;
            self.values.insert(left[..name].into(), expanded);
            rest.start = value.end;
        }
    }

    /// The value of an assignment; `None` if a command or a calculation gives it.
    fn value(&self, text: &str, value: Range<usize>) -> Result<Option<String>, Problem> {
        let raw = &text[value.clone()];
        let quote = raw.chars().next().filter(|first| matches!(first, '"' | '\''));
        let inside = match quote {
            Some(quote) => match raw[1..].find(quote) {
                Some(close) if close + 2 == raw.len() => value.start + 1..value.end - 1,
                _ => return Ok(None),
            },
            None if raw.contains(['"', '\'']) => return Ok(None),
            None => value,
        };
        let raw = &text[inside.clone()];
        match quote {
            Some('\'') => Ok(Some(raw.into())),
            _ if raw.contains("$(") || raw.contains('`') => Ok(None),
            _ => self.expand(text, inside).map(Some),
        }
    }

    /// The words of a command, with the values of variables. A value without quotes may be several words.
    ///
    /// # Errors
    /// If a variable is not set, or its value is not in the script.
    pub(crate) fn words(&self, text: &str, command: Range<usize>) -> Result<Vec<Expanded>, Problem> {
        let mut all = Vec::new();
        for span in shell::words(text, command)? {
            let quote = span.start.checked_sub(1).map_or(b' ', |before| text.as_bytes()[before]);
            let raw = &text[span.clone()];
            if quote == b'\'' || !raw.contains(['$', '`']) {
                all.push(Expanded { text: raw.into(), span });
                continue;
            }
            let expanded = self.expand(text, span.clone())?;
            if quote == b'"' {
                all.push(Expanded { text: expanded, span });
                continue;
            }
            let words = expanded.split_whitespace().map(str::to_owned);
            all.extend(words.map(|text| Expanded { text, span: span.clone() }));
        }
        Ok(all)
    }

    /// A part of the text with the values of its variables.
    fn expand(&self, text: &str, span: Range<usize>) -> Result<String, Problem> {
        let mut out = String::new();
        let mut at = span.start;
        while at < span.end {
            let left = &text[at..span.end];
            let Some(dollar) = left.find(['$', '`']) else {
                out += left;
                break;
            };
            out += &left[..dollar];
            at += dollar;
            let left = &text[at..span.end];
            let (length, value) =
                self.variable(left).map_err(|problem| problem.at(&(at..at + end_of(left))))?;
            out += &value;
            at += length;
            if out.len() > LONGEST {
                return Err(Problem::new(format!("variables of more than {LONGEST} bytes")).at(&span));
            }
        }
        Ok(out)
    }

    /// The length and value of the variable at the start of a text.
    fn variable(&self, text: &str) -> Result<(usize, String), Problem> {
        const NOT_RUN: &str = "scripts are read and not run: write the value itself";
        let bare = text.strip_prefix('$').unwrap_or("");
        let (name, default, length) = match bare.strip_prefix('{') {
            Some(braced) => {
                let inside = braced.find('}').map(|end| &braced[..end]);
                let Some(inside) = inside else { return Err(Problem::new("`${` without `}`")) };
                let (name, default) = match inside.split_once(":-") {
                    Some((name, default)) => (name, Some(default)),
                    None => (inside, None),
                };
                (name, default, inside.len() + 3)
            }
            None => {
                let name = &bare[..bare.len() - bare.trim_start_matches(is_name).len()];
                (name, None, name.len() + 1)
            }
        };
        if name.is_empty() || !name.chars().all(is_name) {
            let what = &text[..end_of(text)];
            return Err(Problem::new(format!("{} is a command or an expansion of a shell", Found(what)))
                .help(NOT_RUN));
        }
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(
                Problem::new(format!("`${name}` is an argument of the script, which has none")).help(NOT_RUN)
            );
        }
        match (self.values.get(name), default) {
            (Some(Some(value)), _) => Ok((length, value.clone())),
            (None, Some(default)) => Ok((length, default.into())),
            (Some(None), _) => {
                Err(Problem::new(format!("`${name}` has the output of a command as its value")).help(NOT_RUN))
            }
            (None, None) => Err(Problem::new(format!("`${name}` is a variable of a shell that is not set"))
                .help(format!("set it above, as in: {name}=eth0"))),
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The length of an assigned value: up to white space outside quotes and parentheses.
fn value_length(text: &str) -> usize {
    let (mut quote, mut deep) = (None, 0_u32);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(') => deep += 1,
            (None, ')') => deep = deep.saturating_sub(1),
            (None, c) if c.is_whitespace() && deep == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

/// Where an expansion that is not understood ends, for its error.
fn end_of(text: &str) -> usize {
    text.find([' ', '\t', '\n', '"']).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(problem: Problem) -> String {
        crate::ScenarioError::new("", "", vec![problem]).to_string()
    }

    fn read(text: &str) -> Result<Vec<String>, String> {
        let mut variables = Variables::default();
        let mut last = Vec::new();
        for piece in shell::pieces(text).unwrap() {
            let rest = variables.assign(text, piece.span).map_err(said)?;
            let words = variables.words(text, rest).map_err(said)?;
            last = words.into_iter().map(|word| word.text).collect();
        }
        Ok(last)
    }

    #[test]
    fn variables_have_their_last_value() {
        for (text, words) in [
            ("A=b\nx $A", &["x", "b"][..]),
            ("A='b c'\nx $A \"$A\" '$A'", &["x", "b", "c", "b c", "$A"]),
            ("export A=1 B=\"${A}2\"\nx $B${A}", &["x", "121"]),
            ("A=1\nA=2; x dev$A", &["x", "dev2"]),
            ("x ${A:-eth0}", &["x", "eth0"]),
            ("A=1 x $B", &[][..]),
            ("export A\nexport B=$(ls -l)\nx", &["x"]),
        ] {
            match words {
                [] => {
                    assert!(read(text).unwrap_err().contains("`$B` is a variable of a shell that is not set"))
                }
                _ => assert_eq!(
                    read(text).as_deref(),
                    Ok(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
                    "{text}"
                ),
            }
        }
    }

    #[test]
    fn values_that_are_not_in_the_script() {
        for (text, error) in [
            ("A=$(ip route)\nx $A", "`$A` has the output of a command as its value"),
            ("A=`ls`\nx $A", "`$A` has the output of a command as its value"),
            ("x $1", "`$1` is an argument of the script"),
            ("x $(date)", "`$(date)` is a command or an expansion of a shell"),
            ("x ${A", "`${` without `}`"),
            ("x ${A#b}", "is a command or an expansion of a shell"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.contains(error), "{text}: {found}");
        }
    }

    #[test]
    fn values_do_not_grow_without_bound() {
        let mut text = "A=aaaaaaaaaaaaaaaa\n".to_owned();
        (0..40).for_each(|_| text += "A=$A$A\n");
        assert!(read(&text).unwrap_err().contains("bytes"));
    }
}
