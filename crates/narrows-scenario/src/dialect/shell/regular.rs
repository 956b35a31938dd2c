//! The regular expressions that scripts check numbers and names with, behind `=~` (POSIX.1-2017, 9.4): characters, `.`, sets,
//! groups, `|`, `*`, `+`, `?` and `{N,M}`. Back references are not understood.

use super::pattern::Pattern;

/// Parts within one another.
const DEEPEST: usize = 32;
/// The most steps to fit a text.
const MOST_STEPS: usize = 1 << 16;

enum Node {
    /// A pattern of a shell for one character.
    One(Pattern),
    Start,
    End,
    /// Only at this place.
    At(usize),
    Group(Vec<Vec<Node>>),
    /// So many times one after the other.
    Times(Box<Node>, usize, usize),
}

/// Whether a part of a text fits a regular expression; `None` if that is not understood.
pub(super) fn fits(expression: &str, text: &str) -> Option<bool> {
    let text: Vec<char> = text.chars().collect();
    Some(find(&parse(expression)?, &text, 0)?.is_some())
}

/// A text with another one in place of the first part that fits, or of each; `&` in it stands for that part.
pub(super) fn replaced(expression: &str, text: &str, by: &str, all: bool) -> Option<String> {
    let expression = parse(expression)?;
    let text: Vec<char> = text.chars().collect();
    let mut out = String::new();
    let (mut at, mut last) = (0, None);
    while let Some((start, end)) = find(&expression, &text, at)? {
        out.extend(&text[at..start]);
        // Behind a part that fits, nothing is none.
        let is_none = start == end && last == Some(start);
        let part: String = text[start..end].iter().collect();
        out += &if is_none { String::new() } else { by.replace('&', &part) };
        last = Some(end);
        at = end;
        if start == end {
            let Some(c) = text.get(at) else { return Some(out) };
            out.push(*c);
            at += 1;
        }
        if !all {
            break;
        }
    }
    out.extend(text.get(at..).unwrap_or_default());
    Some(out)
}

/// A basic expression as an extended one, where other characters are special.
pub(super) fn extended(basic: &str) -> String {
    let mut out = String::new();
    let mut chars = basic.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('(' | ')' | '{' | '}' | '|' | '+' | '?')) => out.push(c),
                Some(c) => out.extend(['\\', c]),
                None => out.push('\\'),
            },
            '(' | ')' | '{' | '}' | '|' | '+' | '?' => out.extend(['\\', c]),
            '[' => {
                out.push('[');
                // A set is the same in both.
                let set: String = chars.clone().take_while(|c| *c != ']').chain([']']).collect();
                chars = chars.as_str()[(set.len()).min(chars.as_str().len())..].chars();
                out += &set;
            }
            c => out.push(c),
        }
    }
    out
}

fn parse(expression: &str) -> Option<Node> {
    let mut reader = Reader { rest: expression.chars().collect(), at: 0 };
    let alternatives = reader.alternatives(0)?;
    (reader.at == reader.rest.len()).then_some(Node::Group(alternatives))
}

/// The first part of a text that fits, the longest of those that begin there.
#[expect(clippy::option_option, reason = "whether it is understood, and what is found")]
fn find(whole: &Node, text: &[char], from: usize) -> Option<Option<(usize, usize)>> {
    let mut left = MOST_STEPS;
    for start in from..=text.len() {
        if let Some(end) = ends_of(whole, text, start, &mut left)?.into_iter().max() {
            return Some(Some((start, end)));
        }
    }
    Some(None)
}

struct Reader {
    rest: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn alternatives(&mut self, depth: usize) -> Option<Vec<Vec<Node>>> {
        if depth > DEEPEST {
            return None;
        }
        let mut all = vec![Vec::new()];
        while let Some(c) = self.peek() {
            match c {
                ')' if depth > 0 => break,
                '|' => {
                    self.at += 1;
                    all.push(Vec::new());
                }
                _ => {
                    let node = self.repeated(depth)?;
                    all.last_mut()?.push(node);
                }
            }
        }
        Some(all)
    }

    fn repeated(&mut self, depth: usize) -> Option<Node> {
        let node = self.one(depth)?;
        let (least, most) = match self.peek() {
            Some('*') => (0, usize::MAX),
            Some('+') => (1, usize::MAX),
            Some('?') => (0, 1),
            Some('{') => {
                let close = self.rest[self.at..].iter().position(|c| *c == '}')?;
                let inside: String = self.rest[self.at + 1..self.at + close].iter().collect();
                self.at += close;
                match inside.split_once(',') {
                    None => (inside.parse().ok()?, inside.parse().ok()?),
                    Some((least, "")) => (least.parse().ok()?, usize::MAX),
                    Some((least, most)) => (least.parse().ok()?, most.parse().ok()?),
                }
            }
            _ => return Some(node),
        };
        self.at += 1;
        Some(Node::Times(Box::new(node), least, most))
    }

    fn one(&mut self, depth: usize) -> Option<Node> {
        let c = self.peek()?;
        self.at += 1;
        Some(match c {
            '^' => Node::Start,
            '$' => Node::End,
            '.' => Node::One(Pattern::new("?")?),
            '(' => {
                let inside = self.alternatives(depth + 1)?;
                (self.peek()? == ')').then_some(())?;
                self.at += 1;
                Node::Group(inside)
            }
            '[' => {
                let start = self.at - 1;
                // A `]` at the beginning is one of its characters.
                self.at += usize::from(matches!(self.peek(), Some('^')));
                self.at += usize::from(matches!(self.peek(), Some(']')));
                while self.peek()? != ']' {
                    let is_class = self.peek() == Some('[') && self.rest.get(self.at + 1) == Some(&':');
                    self.at += match is_class {
                        true => self.rest[self.at + 1..].iter().position(|c| *c == ']')? + 2,
                        false => 1,
                    };
                }
                self.at += 1;
                Node::One(Pattern::new(&self.rest[start..self.at].iter().collect::<String>())?)
            }
            '\\' => {
                let escaped = self.peek()?;
                self.at += 1;
                if escaped.is_ascii_alphanumeric() || "<>`'".contains(escaped) {
                    return None;
                }
                literal(escaped)?
            }
            '*' | '+' | '?' | '{' => return None,
            c => literal(c)?,
        })
    }
}

fn literal(c: char) -> Option<Node> {
    Some(Node::One(Pattern::new(&format!("\\{c}"))?))
}

/// Whether nodes fit from a place on; `None` after too many steps.
fn follows(nodes: &[&Node], text: &[char], at: usize, left: &mut usize) -> Option<bool> {
    *left = left.checked_sub(1)?;
    let Some((first, rest)) = nodes.split_first() else { return Some(true) };
    match first {
        Node::Start => Some(at == 0 && follows(rest, text, at, left)?),
        Node::End => Some(at == text.len() && follows(rest, text, at, left)?),
        Node::At(place) => Some(at == *place && follows(rest, text, at, left)?),
        Node::One(pattern) => {
            let is_one = text.get(at).is_some_and(|c| pattern.fits(c.encode_utf8(&mut [0; 4])));
            Some(is_one && follows(rest, text, at + 1, left)?)
        }
        Node::Group(alternatives) => {
            for alternative in alternatives {
                let all: Vec<&Node> = alternative.iter().chain(rest.iter().copied()).collect();
                if follows(&all, text, at, left)? {
                    return Some(true);
                }
            }
            Some(false)
        }
        Node::Times(node, least, most) => {
            // The ends of so many times, each once.
            let mut ends = vec![at];
            for times in 0..=text.len().min(*most) {
                if times >= *least {
                    for end in &ends {
                        if follows(rest, text, *end, left)? {
                            return Some(true);
                        }
                    }
                }
                let mut next = Vec::new();
                for end in ends {
                    next.extend(
                        ends_of(node, text, end, left)?
                            .into_iter()
                            .filter(|new| *new > end || times < *least),
                    );
                }
                next.sort_unstable();
                next.dedup();
                ends = next;
                if ends.is_empty() {
                    break;
                }
            }
            Some(false)
        }
    }
}

/// Where a node can end that begins at a place.
fn ends_of(node: &Node, text: &[char], at: usize, left: &mut usize) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    match node {
        Node::One(pattern) => {
            *left = left.checked_sub(1)?;
            if text.get(at).is_some_and(|c| pattern.fits(c.encode_utf8(&mut [0; 4]))) {
                all.push(at + 1);
            }
        }
        node => {
            for end in at..=text.len() {
                *left = left.checked_sub(1)?;
                if follows(&[node, &Node::At(end)], text, at, left)? {
                    all.push(end);
                }
            }
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::{extended, fits, replaced};

    #[test]
    fn expressions_of_numbers_and_names() {
        for (expression, text, expected) in [
            ("^[0-9]+$", "120", Some(true)),
            ("^[0-9]+$", "12a", Some(false)),
            ("^[0-9]+([.][0-9]+)?$", "1.5", Some(true)),
            ("^[0-9]+(\\.[0-9]+)?$", "1.", Some(false)),
            ("^(eth|wlan)[0-9]{1,2}$", "eth12", Some(true)),
            ("^(eth|wlan)[0-9]{1,2}$", "eth123", Some(false)),
            ("mbit", "5mbit", Some(true)),
            ("^[[:alpha:]_]*:?$", "ab_:", Some(true)),
            ("^([0-9]{1,3}\\.){3}[0-9]{1,3}$", "10.0.0.12", Some(true)),
            ("^([0-9]{1,3}\\.){3}[0-9]{1,3}$", "10.0.0", Some(false)),
            ("a|^b$", "b", Some(true)),
            ("^-?[^0-9]$", "-x", Some(true)),
            ("", "", Some(true)),
            ("\\d", "1", None),
            ("*", "1", None),
            ("(a", "a", None),
            ("(a*)*b", &"a".repeat(300), None),
        ] {
            assert_eq!(fits(expression, text), expected, "{expression} {text}");
        }
    }

    #[test]
    fn parts_are_replaced() {
        for (basic, text, by, all, expected) in [
            ("[^0-9]", "10mbit", "", true, "10"),
            ("[0-9]*", "10mbit", "", false, "mbit"),
            ("m.*$", "10mbit", "k", false, "10k"),
            ("\\(a\\|b\\)+", "xa+y", "<&>", false, "x<a+>y"),
            ("b*", "abc", "-", true, "-a-c-"),
        ] {
            let found = replaced(&extended(basic), text, by, all);
            assert_eq!(found.as_deref(), Some(expected), "{basic} {text}");
        }
    }
}
