//! Where words, quotes and what is in parentheses end.

use std::ops::Range;

use crate::problem::Problem;

/// Quotes, parentheses and braces within one another.
pub(super) const DEEPEST: usize = 32;

fn open(what: &str, at: Range<usize>) -> Problem {
    Problem::new(format!("{what} that is not closed")).at(&at)
}

pub(super) fn byte(text: &str, at: usize) -> u8 {
    text.as_bytes().get(at).copied().unwrap_or(b'\n')
}

/// The length of the character at an index; 1 at the end.
pub(super) fn char_length(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
}

pub(super) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The length of the name at the start of a text: of a variable or function.
pub(super) fn name_length(text: &str) -> usize {
    let length = text.len() - text.trim_start_matches(is_name).len();
    if text.starts_with(|c: char| c.is_ascii_digit()) { 0 } else { length }
}

pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && name_length(name) == name.len()
}

/// The length of a backslash and the line end behind it, at this place; blanks may stand between them.
pub(super) fn continuation(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?.strip_prefix('\\')?;
    let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
    match rest.as_bytes().get(blank) {
        Some(b'\n') => Some(blank + 2),
        None => Some(blank + 1),
        Some(_) => None,
    }
}

/// The place of the bracket that closes the one at the start of a text.
pub(super) fn brackets(text: &str) -> Option<usize> {
    let (mut at, mut deep) = (0, 0_usize);
    while text.starts_with('[') && at < text.len() {
        match byte(text, at) {
            b'[' => deep += 1,
            b']' if deep == 1 => return Some(at),
            b']' => deep -= 1,
            _ => {
                at = unit(text, at, 0).ok()?;
                continue;
            }
        }
        at += 1;
    }
    None
}

/// Where the word ends that starts at this place. An unquoted `)` ends it if `closes`.
pub(super) fn word(text: &str, start: usize, closes: bool) -> Result<usize, Problem> {
    let mut at = start;
    while at < text.len() {
        at = match byte(text, at) {
            b'(' if at > start && byte(text, at - 1) == b'=' => parentheses(text, at, 0)?,
            // `<(…)` is the name of a file.
            b'<' | b'>' if byte(text, at + 1) == b'(' => parentheses(text, at + 1, 0)?,
            b')' if closes => break,
            b';' | b'|' | b'&' | b'<' | b'>' => break,
            b'\\' => match continuation(text, at) {
                // Within a word, it goes on without a gap.
                Some(2) if at > start && !byte(text, at + 2).is_ascii_whitespace() => at + 2,
                Some(_) => break,
                None => at + 1 + char_length(text, at + 1),
            },
            space if space.is_ascii_whitespace() => break,
            _ => unit(text, at, 0)?,
        };
    }
    Ok(at.min(text.len()))
}

/// The end of a quoted text, an expansion or a character at this place.
pub(super) fn unit(text: &str, at: usize, depth: usize) -> Result<usize, Problem> {
    if depth > DEEPEST {
        return Err(Problem::new(format!(
            "more than {DEEPEST} quotes, parentheses or braces within one another"
        ))
        .at(&(at..at + char_length(text, at))));
    }
    Ok(match (byte(text, at), byte(text, at + 1)) {
        (b'\'', _) => match text[at + 1..].find('\'') {
            Some(close) => at + close + 2,
            None => return Err(open("a quote", at..at + 1)),
        },
        (b'"', _) => double_quotes(text, at, depth + 1)?,
        (b'`', _) => match backquote(&text[at + 1..]) {
            Some(close) => at + close + 2,
            None => return Err(open("a backquote", at..at + 1)),
        },
        (b'$', b'(') => parentheses(text, at + 1, depth + 1)?,
        (b'$', b'{') => braces(text, at + 1, depth + 1)?,
        (b'$', b'[') => match bracket(&text[at + 1..]) {
            Some(close) => at + close + 2,
            None => return Err(open("`$[`", at..at + 2)),
        },
        (b'$', b'\'') => match ansi_quote(&text[at + 2..]) {
            Some(close) => at + close + 3,
            None => return Err(open("a quote", at + 1..at + 2)),
        },
        (b'\\', _) => (at + 1 + char_length(text, at + 1)).min(text.len()),
        _ => at + char_length(text, at),
    })
}

/// As deep as calculations of the old kind may be within one another.
const DEEPEST_BRACKET: usize = 16;

/// Where the bracket closes with which a text begins; `None` also if brackets are nested too deep.
pub(super) fn bracket(text: &str) -> Option<usize> {
    let mut open = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' if open == DEEPEST_BRACKET => return None,
            b'[' => open += 1,
            b']' if open == 1 => return Some(at),
            b']' => open -= 1,
            _ => {}
        }
    }
    None
}

/// Where a text ends that a backquote opened: the place of the other one.
pub(super) fn backquote(text: &str) -> Option<usize> {
    unescaped(text, '`')
}

/// The same for `$'…'`.
pub(super) fn ansi_quote(text: &str) -> Option<usize> {
    unescaped(text, '\'')
}

/// Where a text in double quotes ends, behind the first of them, if nothing in it is expanded.
pub(super) fn quote_end(text: &str) -> Option<usize> {
    unescaped(text, '"')
}

fn unescaped(text: &str, close: char) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let was_escaped = is_escaped;
        is_escaped = c == '\\' && !was_escaped;
        (c == close && !was_escaped).then_some(at)
    })
}

/// The place behind double quotes that open here.
pub(super) fn double_quotes(text: &str, start: usize, depth: usize) -> Result<usize, Problem> {
    let mut at = start + 1;
    while at < text.len() {
        at = match byte(text, at) {
            b'"' => return Ok(at + 1),
            b'\'' => at + 1,
            b'$' if byte(text, at + 1) == b'\'' => at + 1,
            _ => unit(text, at, depth)?,
        };
    }
    Err(open("a quote", start..start + 1))
}

/// The place behind the parentheses that open here.
pub(super) fn parentheses(text: &str, start: usize, depth: usize) -> Result<usize, Problem> {
    let mut deep = 0_usize;
    let mut at = start;
    while at < text.len() {
        match byte(text, at) {
            b'(' => deep += 1,
            b')' => deep -= 1,
            // A comment.
            b'#' if byte(text, at.saturating_sub(1)).is_ascii_whitespace() => {
                at += text[at..].find('\n').unwrap_or(text.len() - at);
                continue;
            }
            _ => {
                at = unit(text, at, depth)?;
                continue;
            }
        }
        at += 1;
        if deep == 0 {
            return Ok(at);
        }
    }
    Err(open("a parenthesis", start..start + 1))
}

/// The place behind the braces of `${…}` that open here.
pub(super) fn braces(text: &str, start: usize, depth: usize) -> Result<usize, Problem> {
    let mut at = start + 1;
    while at < text.len() {
        at = match byte(text, at) {
            b'}' => return Ok(at + 1),
            _ => unit(text, at, depth)?,
        };
    }
    Err(Problem::new("`${` without `}`").at(&(start.saturating_sub(1)..start + 1)))
}

/// The length of a prompt at the start of a line: `$ `, `% `, `user@host:~# `, `[user@host dir]$ `, `mininet> h1 `; and `#` before a
/// command, where that is one.
pub(super) fn prompt(line: &str, has_prompts: bool) -> usize {
    if line.starts_with("$ ") || line.starts_with("% ") {
        return 2;
    }
    // As `set -x` prints commands.
    let traced = line.trim_start_matches('+');
    if traced.len() < line.len()
        && traced.strip_prefix(' ').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    {
        return line.len() - traced.len() + 1;
    }
    if line.starts_with('#') {
        let command = line.trim_start_matches('#').trim_start();
        let is_assigned = name_length(command) > 0
            && command[name_length(command)..].starts_with('=')
            && !command.trim_end().contains(char::is_whitespace);
        let bare = command.strip_prefix("sudo ").map_or(command, str::trim_start);
        let is_command = ["tc ", "iptables -", "ip link "].iter().any(|start| bare.starts_with(start));
        return if has_prompts && (is_command || is_assigned) { line.len() - command.len() } else { 0 };
    }
    if let Some(rest) = line.strip_prefix("mininet> ") {
        // The host, before its command.
        let host = rest.split_whitespace().next().unwrap_or_default();
        let is_host = host.len() > 1 && host[1..].bytes().all(|byte| byte.is_ascii_digit());
        let start = line.len() - rest.trim_start().len();
        return start + if is_host { host.len() } else { 0 };
    }
    // `bash-3.2# `
    if let Some((name, rest)) =
        line.split_once("sh-").filter(|(name, _)| name.len() < 4 && !name.contains(' '))
    {
        let version = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        if version > 0 && (rest[version..].starts_with("# ") || rest[version..].starts_with("$ ")) {
            return name.len() + 3 + version + 2;
        }
    }
    let is_host = |word: &str| {
        let (user, host) = word.trim_start_matches('[').split_once('@').unwrap_or_default();
        let is_plain = |text: &str| {
            text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-:~/#$]".contains(c)) && !text.is_empty()
        };
        is_plain(user) && is_plain(host)
    };
    if !line.split_whitespace().next().is_some_and(is_host) {
        return 0;
    }
    let end =
        line.match_indices(['#', '$', '%']).map(|(at, _)| at + 1).find(|at| line[*at..].starts_with(' '));
    end.filter(|end| *end < 80 && !line[..*end].contains(['"', '\'', '=', ';', '|', '('])).unwrap_or(0)
}
