//! Splits a script as a shell does: into commands, and words with quotes. Nothing is executed or expanded.

use std::ops::Range;

use crate::problem::Problem;

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) span: Range<usize>,
    pub(crate) joined: Joined,
}

/// How a command is connected to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// Sequentially: a new line, `;`, `&&` or `&`.
    After,
    /// On failure of the one before: `||`.
    OnFailure,
    /// It reads the output of the one before: `|`.
    Piped,
}

/// The commands of a text. A backslash at the end of a line continues it. If every relevant line starts
/// with the prompt of a root shell, `#` does not start a comment.
///
/// # Errors
/// If a quote is not closed.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece>, Problem> {
    let all = divided(text, false)?;
    if all.is_empty() { divided(text, true) } else { Ok(all) }
}

/// With `prompts`, `# tc` at the start of a line is a command.
fn divided(text: &str, prompts: bool) -> Result<Vec<Piece>, Problem> {
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(b'\n');
    let mut all = Vec::new();
    let mut joined = Joined::After;
    let mut open: Option<Range<usize>> = None;
    let mut in_word = false;
    let mut index = 0;
    while index < bytes.len() {
        // The length in bytes, and whether this is part of a word, or ends the command and how it connects
        // the next one.
        let (length, what) = match at(index) {
            quote @ (b'"' | b'\'') => {
                let close = text[index + 1..]
                    .find(char::from(quote))
                    .ok_or_else(|| Problem::new("a quote that is not closed").at(&(index..index + 1)))?;
                (close + 2, Part::Word)
            }
            b'\\' => match line_end(&text[index + 1..]) {
                Some(length) => (1 + length, Part::Space),
                None => (2, Part::Word),
            },
            b'#' if !in_word => {
                let line = &text[index..][..text[index..].find('\n').unwrap_or(text.len() - index)];
                let is_first =
                    text[..index].rsplit('\n').next().is_some_and(|before| before.trim().is_empty());
                let command = line.trim_start_matches('#').trim_start().starts_with("tc ");
                if prompts && is_first && command { (1, Part::Space) } else { (line.len(), Part::Space) }
            }
            b'&' if at(index + 1) == b'&' => (2, Part::End(Joined::After)),
            b'&' if at(index + 1) == b'>' || index > 0 && matches!(at(index - 1), b'>' | b'<') => {
                (1, Part::Word)
            }
            b'|' if at(index + 1) == b'|' => (2, Part::End(Joined::OnFailure)),
            b'|' => (1, Part::End(Joined::Piped)),
            b'\n' | b';' | b'&' => (1, Part::End(Joined::After)),
            space if space.is_ascii_whitespace() => (1, Part::Space),
            _ => (1, Part::Word),
        };
        let end = (index + length).min(bytes.len());
        in_word = what == Part::Word;
        match what {
            Part::Word => open = Some(open.map_or(index, |span| span.start)..end),
            Part::Space => {}
            Part::End(next) => {
                all.extend(open.take().map(|span| Piece { span, joined }));
                joined = next;
            }
        }
        index = end;
    }
    all.extend(open.map(|span| Piece { span, joined }));
    Ok(all)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Word,
    Space,
    End(Joined),
}

/// The number of bytes through the end of the line, if only white space precedes it. The end of the text
/// also ends a line.
fn line_end(text: &str) -> Option<usize> {
    let blank = text.len() - text.trim_start_matches([' ', '\t', '\r']).len();
    match text.as_bytes().get(blank) {
        Some(b'\n') => Some(blank + 1),
        None => Some(blank),
        Some(_) => None,
    }
}

/// The spans of the words of a command, without surrounding quotes and without redirections.
///
/// # Errors
/// If there are quotes within a word.
pub(crate) fn words(text: &str, command: Range<usize>) -> Result<Vec<Range<usize>>, Problem> {
    let mut all = Vec::new();
    let mut rest = command;
    let mut target_follows = false;
    loop {
        let left = &text[rest.clone()];
        let blank = left.len() - left.trim_start().len();
        // A backslash that continues the line.
        let gap = match left[blank..].strip_prefix('\\').map(line_end) {
            Some(Some(length)) => blank + 1 + length,
            _ => blank,
        };
        if gap > 0 {
            rest.start += gap;
            continue;
        }
        if left.is_empty() {
            return Ok(all);
        }
        let word = word(text, rest.clone())?;
        rest.start = word.end;
        let inside = &text[word.clone()];
        let bare = inside.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        if std::mem::take(&mut target_follows) {
            continue;
        }
        if bare.starts_with(['>', '<']) {
            // As in `> FILE`, `2>/dev/null`, `2>&1`.
            target_follows = bare.trim_start_matches(['>', '<', '|']).is_empty();
            continue;
        }
        all.push(match inside.as_bytes()[0] {
            b'"' | b'\'' => word.start + 1..word.end - 1,
            _ => word,
        });
    }
}

/// The word at the start of a range, with its quotes.
fn word(text: &str, range: Range<usize>) -> Result<Range<usize>, Problem> {
    let left = &text[range.clone()];
    let ends = |c: char| c.is_whitespace();
    let length = match left.as_bytes()[0] {
        quote @ (b'"' | b'\'') => left[1..].find(char::from(quote)).map_or(left.len(), |close| close + 2),
        _ => left.find(ends).unwrap_or(left.len()),
    };
    let quoted = left.starts_with(['"', '\'']);
    let more = quoted && left[length..].chars().next().is_some_and(|c| !ends(c));
    if more || !quoted && left[..length].contains(['"', '\'']) {
        let whole = range.start..range.start + left.find(ends).unwrap_or(left.len()).max(length);
        return Err(Problem::new("quotes within a word")
            .at(&whole)
            .help("write them around the whole word, or leave them out"));
    }
    let end = range.start + length;
    // A line continuation at its end is not part of the word.
    let trimmed =
        if quoted { end } else { range.start + text[range.start..end].trim_end_matches('\\').len().max(1) };
    Ok(range.start..trimmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Vec<(&str, Joined)> {
        pieces(text).unwrap().into_iter().map(|piece| (&text[piece.span], piece.joined)).collect()
    }

    fn words_of(text: &str) -> Vec<&str> {
        words(text, 0..text.len()).unwrap().into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn commands_end_where_a_shell_ends_them() {
        use Joined::*;
        assert_eq!(
            commands("a b\nc;d && e || f | g & h"),
            [
                ("a b", After),
                ("c", After),
                ("d", After),
                ("e", After),
                ("f", OnFailure),
                ("g", Piped),
                ("h", After),
            ]
        );
        assert_eq!(commands("a \\\n  b \\  \n c\nd \\"), [("a \\\n  b \\  \n c", After), ("d", After)]);
        assert_eq!(
            commands("a 'x;y' \"p && q\" # c; d\n# e\n  #f\ng#h"),
            [("a 'x;y' \"p && q\"", After), ("g#h", After),]
        );
        assert_eq!(commands("a 2>&1 >/dev/null\nb &>x"), [("a 2>&1 >/dev/null", After), ("b &>x", After)]);
        assert_eq!(commands(" \n;;\n"), []);
        assert!(pieces("a 'b\nc").is_err());
    }

    #[test]
    fn prompts_of_a_root_shell_are_no_comments_where_nothing_else_stands() {
        assert_eq!(commands("# tc a\n  # tc b"), [("tc a", Joined::After), ("tc b", Joined::After)]);
        assert_eq!(commands("# tc a\ntc b"), [("tc b", Joined::After)]);
        assert_eq!(commands("# nothing\n"), []);
    }

    #[test]
    fn words_have_no_quotes_and_redirections_go() {
        assert_eq!(words_of("a \"b c\" 'd' \\\n e\\\n f"), ["a", "b c", "d", "e", "f"]);
        assert_eq!(words_of("a 2>/dev/null b > x c 2>&1 d >> y"), ["a", "b", "c", "d"]);
        assert!(words("a\"b\"", 0..4).is_err());
        assert!(words("\"a\"b", 0..4).is_err());
    }
}
