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
    /// A line that a program reads itself: of the here-document of the one before, as in `tc -batch - <<EOF`, or what
    /// [`Lines::own`] says.
    Batch,
}

/// What lines of a script mean that is not a shell's alone.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'a> {
    /// The length of what starts at this line start, with its line end, if a program reads that itself.
    pub(crate) own: &'a dyn Fn(usize) -> Option<usize>,
    /// Whether the line behind this line end continues the command that starts at the first place.
    pub(crate) continued: &'a dyn Fn(usize, usize) -> bool,
}

impl Lines<'_> {
    const OF_SHELL: Self = Self { own: &|_| None, continued: &|_, _| false };
}

/// The commands of a text. A backslash at the end of a line continues it. If every relevant line starts
/// with the prompt of a root shell, `#` does not start a comment.
///
/// # Errors
/// If a quote is not closed.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece>, Problem> {
    let all = divided(text, false, Lines::OF_SHELL)?;
    if all.is_empty() { divided(text, true, Lines::OF_SHELL) } else { Ok(all) }
}

/// The same for a text that not only a shell reads.
pub(crate) fn pieces_among(lines: Lines<'_>, text: &str) -> Result<Vec<Piece>, Problem> {
    divided(text, false, lines)
}

/// With `prompts`, `# tc` at the start of a line is a command.
fn divided(text: &str, prompts: bool, lines: Lines<'_>) -> Result<Vec<Piece>, Problem> {
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(b'\n');
    let mut all = Vec::new();
    let mut joined = Joined::After;
    let mut open: Option<Range<usize>> = None;
    let mut in_word = false;
    // The words at which here-documents end that begin on the next line.
    let mut documents: Vec<Document<'_>> = Vec::new();
    let mut index = 0;
    while index < bytes.len() {
        let is_free = open.is_none() && joined == Joined::After && (index == 0 || at(index - 1) == b'\n');
        if let Some(length) = is_free.then(|| (lines.own)(index)).flatten() {
            let own = &text[index..index + length];
            let start = index + own.len() - own.trim_start().len();
            all.push(Piece { span: start..start + own.trim().len(), joined: Joined::Batch });
            index += length;
            continue;
        }
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
                None => (1 + char_at(text, index + 1), Part::Word),
            },
            b'$' if at(index + 1) == b'(' => (parenthesis(text, index + 1) - index, Part::Word),
            b'(' if at(index + 1) == b'(' && !in_word => (parenthesis(text, index) - index, Part::Word),
            b'`' => {
                let close = text[index + 1..].find('`');
                (close.map_or(1, |close| close + 2), Part::Word)
            }
            // `<<< TEXT` is no here-document.
            b'<' if text[index..].starts_with("<<<") => (3, Part::Word),
            b'<' if at(index + 1) == b'<' => {
                let (document, length) = Document::named(text, index + 2);
                let executes = open.as_ref().is_some_and(|span| is_batch(&text[span.start..index]));
                documents.extend(document.map(|document| Document { executes, ..document }));
                (2 + length, Part::Word)
            }
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
            // Behind `||` and `|` the command follows on another line.
            b'\n' if open.is_none() && documents.is_empty() => (1, Part::Space),
            b'\n'
                if open.as_ref().is_some_and(|span| {
                    text[span.end..index].trim().is_empty() && (lines.continued)(span.start, index)
                }) =>
            {
                (1, Part::Space)
            }
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
                if bytes[index] == b'\n' {
                    for document in documents.drain(..) {
                        index = document.read(text, index, &mut all);
                    }
                    index += 1;
                    continue;
                }
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

/// A here-document that begins on the next line.
struct Document<'a> {
    end: &'a str,
    /// `<<-`: white space before its lines does not count.
    indented: bool,
    /// Whether the command executes its lines.
    executes: bool,
}

impl<'a> Document<'a> {
    /// Reads the word behind `<<`; also returns its length.
    fn named(text: &'a str, at: usize) -> (Option<Self>, usize) {
        let left = &text[at..];
        let indented = left.starts_with('-');
        let rest = left.trim_start_matches('-').trim_start_matches([' ', '\t']);
        let word = &rest
            [..rest.find(|c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&')).unwrap_or(rest.len())];
        let end = word.trim_matches(['"', '\'', '\\']);
        let length = left.len() - rest.len() + word.len();
        ((!end.is_empty()).then_some(Self { end, indented, executes: false }), length)
    }

    /// Reads the lines behind a line end, and returns where they end. If the command executes them, they are
    /// pieces.
    fn read(&self, text: &str, line_end: usize, all: &mut Vec<Piece>) -> usize {
        let mut start = line_end + 1;
        while start < text.len() {
            let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
            let line = &text[start..end];
            let line = if self.indented { line.trim_start_matches('\t') } else { line };
            if line.trim_end_matches('\r') == self.end {
                return end;
            }
            let code = line.split('#').next().unwrap_or_default();
            if self.executes && !code.trim().is_empty() {
                let first = end - line.len();
                all.push(Piece { span: first..first + code.len(), joined: Joined::Batch });
            }
            start = end + 1;
        }
        text.len()
    }
}

/// Whether it is a program that runs another one as another user.
pub(crate) fn raises_rights(word: &str) -> bool {
    matches!(word, "sudo" | "doas")
}

/// Whether a command executes lines that it reads: `tc -batch -`, `ipfw -q /dev/stdin`.
pub(crate) fn is_batch(command: &str) -> bool {
    let mut words = command.split_whitespace().skip_while(|word| raises_rights(word));
    match words.next().and_then(|word| word.rsplit('/').next()) {
        Some("tc") => words.take_while(|word| word.starts_with('-')).any(is_batch_flag),
        Some("ipfw" | "dnctl") => words.find(|word| !word.starts_with('-')) == Some("/dev/stdin"),
        _ => false,
    }
}

/// `-b`, `-batch` or `--batch`.
pub(crate) fn is_batch_flag(word: &str) -> bool {
    let bare = word.trim_start_matches('-');
    word.starts_with('-') && !bare.is_empty() && "batch".starts_with(bare)
}

/// `exec >log 2>&1`: it only redirects what the shell prints.
pub(crate) fn redirects(command: &str) -> bool {
    let behind = command.strip_prefix("exec").filter(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()));
    let rest = behind.map(|rest| rest.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.is_some_and(|rest| rest.starts_with(['<', '>']) || rest.starts_with("&>"))
}

/// The length of the character at an index; 1 at the end.
fn char_at(text: &str, index: usize) -> usize {
    text.get(index..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
}

/// Where parentheses end that open at an index: behind the one that closes them, or the end of the text.
pub(crate) fn parenthesis(text: &str, open: usize) -> usize {
    let (mut deep, mut quote) = (0_u32, None);
    for (at, c) in text[open..].char_indices() {
        match (quote, c) {
            (Some(close), _) if c == close => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => deep += 1,
            (None, ')') => {
                deep -= 1;
                if deep == 0 {
                    return open + at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// The spans of the words of a command, with their quotes and without redirections.
pub(crate) fn words(text: &str, command: Range<usize>) -> Vec<Range<usize>> {
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
            return all;
        }
        let word = word(text, rest.clone());
        rest.start = word.end;
        let bare = text[word.clone()].trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        if std::mem::take(&mut target_follows) {
            continue;
        }
        if bare.starts_with(['>', '<']) {
            // As in `> FILE`, `2>/dev/null`, `2>&1`, `<<EOF`.
            target_follows = bare.trim_start_matches(['>', '<', '|', '-']).is_empty();
            continue;
        }
        all.push(word);
    }
}

/// The word at the start of a range, with its quotes.
fn word(text: &str, range: Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let mut at = range.start;
    while at < range.end {
        at = match bytes[at] {
            quote @ (b'"' | b'\'' | b'`') => {
                text[at + 1..range.end].find(char::from(quote)).map_or(range.end, |close| at + close + 2)
            }
            b'\\' if at > range.start && line_end(&text[at + 1..range.end]).is_some() => break,
            b'\\' => at + 1 + char_at(text, at + 1),
            b'$' if bytes.get(at + 1) == Some(&b'(') => parenthesis(&text[..range.end], at + 1),
            space if space.is_ascii_whitespace() => break,
            _ => at + char_at(text, at),
        };
    }
    range.start..at.min(range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Vec<(&str, Joined)> {
        pieces(text).unwrap().into_iter().map(|piece| (&text[piece.span], piece.joined)).collect()
    }

    fn words_of(text: &str) -> Vec<&str> {
        words(text, 0..text.len()).into_iter().map(|range| &text[range]).collect()
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
        assert_eq!(
            commands("for ((i=0; i<3; i++)); do a; done"),
            [("for ((i=0; i<3; i++))", After), ("do a", After), ("done", After)]
        );
        assert!(pieces("a 'b\nc").is_err());
    }

    #[test]
    fn prompts_of_a_root_shell_are_no_comments_where_nothing_else_stands() {
        assert_eq!(commands("# tc a\n  # tc b"), [("tc a", Joined::After), ("tc b", Joined::After)]);
        assert_eq!(commands("# tc a\ntc b"), [("tc b", Joined::After)]);
        assert_eq!(commands("# nothing\n"), []);
    }

    #[test]
    fn redirections_go() {
        assert_eq!(words_of("a \"b c\" 'd' \\\n e\\\n f"), ["a", "\"b c\"", "'d'", "e", "f"]);
        assert_eq!(words_of("a 2>/dev/null b > x c 2>&1 d >> y"), ["a", "b", "c", "d"]);
        assert_eq!(
            words_of("a\"b c\"d $(e f) `g h` $((1 + 2))x"),
            ["a\"b c\"d", "$(e f)", "`g h`", "$((1 + 2))x"]
        );
    }

    #[test]
    fn lines_of_a_here_document_are_commands_of_a_batch() {
        use Joined::*;
        assert_eq!(
            commands("tc -b - <<EOF\nqdisc a\n # x\nclass b # y\nEOF\ntc c"),
            [("tc -b - <<EOF", After), ("qdisc a", Batch), ("class b ", Batch), ("tc c", After)]
        );
        assert_eq!(
            commands("sudo tc -batch <<-'X' ; d\n\tqdisc a\n\tX\ne"),
            [("sudo tc -batch <<-'X'", After), ("d", After), ("qdisc a", Batch), ("e", After)]
        );
        assert_eq!(commands("cat <<EOF > x\na; b\nEOF"), [("cat <<EOF > x", After)]);
        assert_eq!(commands("tc -b - <<EOF\nqdisc a"), [("tc -b - <<EOF", After), ("qdisc a", Batch)]);
        assert_eq!(commands("grep x <<< \"a\"\ntc c"), [("grep x <<< \"a\"", After), ("tc c", After)]);
        assert_eq!(commands("A=$(b | c; d)\ne `f; g`"), [("A=$(b | c; d)", After), ("e `f; g`", After)]);
    }
}
