//! Patterns of a shell: `*`, `?`, `[a-z]`, and a backslash before what stands for itself.

/// One place of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Any,
    One(char),
    /// Ranges, or all but them.
    Set(Vec<(char, char)>, bool),
}

/// A pattern, divided at `*`.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    parts: Vec<Vec<Place>>,
}

impl Pattern {
    /// `None` if it has lists such as `@(a|b)`, which are not understood.
    pub(super) fn new(text: &str) -> Option<Self> {
        let mut parts = vec![Vec::new()];
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            let place = match c {
                '?' | '*' | '+' | '@' | '!' if rest.peek() == Some(&'(') => return None,
                '*' => {
                    parts.push(Vec::new());
                    continue;
                }
                '?' => Place::Any,
                '\\' => Place::One(rest.next().unwrap_or('\\')),
                '[' => match set(&mut rest.clone()) {
                    Some((set, length)) => {
                        for _ in 0..length {
                            rest.next();
                        }
                        set
                    }
                    None => Place::One('['),
                },
                c => Place::One(c),
            };
            if let Some(last) = parts.last_mut() {
                last.push(place);
            }
        }
        Some(Self { parts })
    }

    /// Whether the whole word fits.
    pub(super) fn fits(&self, word: &str) -> bool {
        let word: Vec<char> = word.chars().collect();
        self.fits_chars(&word)
    }

    fn fits_chars(&self, word: &[char]) -> bool {
        let [first, middle @ .., last] = &self.parts[..] else {
            return self.parts.iter().all(|only| only.len() == word.len() && alike(only, word));
        };
        if word.len() < first.len() + last.len() {
            return false;
        }
        let (start, rest) = word.split_at(first.len());
        let (mut rest, end) = rest.split_at(rest.len() - last.len());
        if !alike(first, start) || !alike(last, end) {
            return false;
        }
        // The first place where each of the others fits leaves most to those behind.
        middle.iter().all(|part| {
            let place = (0..(rest.len() + 1).saturating_sub(part.len())).find(|at| alike(part, &rest[*at..]));
            place.inspect(|at| rest = &rest[at + part.len()..]).is_some()
        })
    }

    /// How many comparisons it takes to look for it in a text of such a length: as a part of it, or at an end.
    pub(super) fn cost(&self, length: usize, is_part: bool) -> usize {
        let places = if is_part { length.saturating_mul(length) } else { length };
        match self.parts.len() {
            1 => length,
            parts => places.saturating_mul(length + parts),
        }
    }

    /// The word without a start that fits: the shortest, or the longest.
    pub(super) fn without_start(&self, word: &str, longest: bool) -> String {
        let chars: Vec<char> = word.chars().collect();
        let fits = |length: &usize| self.fits_chars(&chars[..*length]);
        let length = match longest {
            false => (0..=chars.len()).find(fits),
            true => (0..=chars.len()).rev().find(fits),
        };
        chars[length.unwrap_or(0)..].iter().collect()
    }

    /// The same for an end.
    pub(super) fn without_end(&self, word: &str, longest: bool) -> String {
        let chars: Vec<char> = word.chars().collect();
        let fits = |start: &usize| self.fits_chars(&chars[*start..]);
        let start = match longest {
            false => (0..=chars.len()).rev().find(fits),
            true => (0..=chars.len()).find(fits),
        };
        chars[..start.unwrap_or(chars.len())].iter().collect()
    }

    /// The word with another text in place of the first, or of each, longest part that fits.
    pub(super) fn replaced(&self, word: &str, by: &str, all: bool) -> String {
        let chars: Vec<char> = word.chars().collect();
        let mut out = String::new();
        let mut at = 0;
        if chars.is_empty() && self.fits_chars(&chars) {
            out += by;
        }
        while at < chars.len() {
            // Without `*`, there is one length that can fit.
            let lengths = match &self.parts[..] {
                [only] => only.len().max(1)..=only.len(),
                _ => 1..=chars.len(),
            };
            let fits = |length: &usize| chars.get(at..at + length).is_some_and(|part| self.fits_chars(part));
            let end = lengths.rev().find(fits).map(|length| at + length);
            match end {
                Some(end) => {
                    out += by;
                    at = end;
                    if !all {
                        break;
                    }
                }
                None => {
                    out.push(chars[at]);
                    at += 1;
                }
            }
        }
        out.extend(&chars[at..]);
        out
    }
}

fn alike(part: &[Place], at: &[char]) -> bool {
    part.iter().zip(at).all(|(place, c)| match place {
        Place::Any => true,
        Place::One(one) => one == c,
        Place::Set(ranges, is_negated) => {
            ranges.iter().any(|(first, last)| (first..=last).contains(&c)) != *is_negated
        }
    })
}

/// The set behind `[`, and its length.
fn set(rest: &mut dyn Iterator<Item = char>) -> Option<(Place, usize)> {
    let all: Vec<char> = rest.take(1 << 8).collect();
    let is_negated = matches!(all.first(), Some('!' | '^'));
    let mut at = usize::from(is_negated);
    let first = at;
    let mut ranges = Vec::new();
    loop {
        let c = *all.get(at)?;
        if c == ']' && at > first {
            return Some((Place::Set(ranges, is_negated), at + 1));
        }
        // `[:digit:]`
        if c == '[' && all.get(at + 1) == Some(&':') {
            let close = (at + 2..all.len()).find(|close| all[*close..].starts_with(&[':', ']']))?;
            let name: String = all[at + 2..close].iter().collect();
            ranges.extend_from_slice(match name.as_str() {
                "digit" => &[('0', '9')],
                "alpha" => &[('a', 'z'), ('A', 'Z')],
                "alnum" => &[('a', 'z'), ('A', 'Z'), ('0', '9')],
                "lower" => &[('a', 'z')],
                "upper" => &[('A', 'Z')],
                "space" => &[(' ', ' '), ('\t', '\r')],
                "blank" => &[(' ', ' '), ('\t', '\t')],
                "xdigit" => &[('0', '9'), ('a', 'f'), ('A', 'F')],
                _ => return None,
            });
            at = close + 2;
            continue;
        }
        let c = if c == '\\' {
            at += 1;
            *all.get(at)?
        } else {
            c
        };
        match (all.get(at + 1), all.get(at + 2)) {
            (Some('-'), Some(last)) if *last != ']' => {
                ranges.push((c, *last));
                at += 3;
            }
            _ => {
                ranges.push((c, c));
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_a_shell() {
        for (pattern, word, expected) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("ab*ba", "aba", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[[:digit:].]*", "7a", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("[a", "[a", true),
            ("*a*a*a*a*a*a*a*b", &"a".repeat(5_000), false),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().fits(word), expected, "{pattern} {word}");
        }
        assert!(Pattern::new("@(a|b)").is_none());
    }

    #[test]
    fn parts_of_words() {
        let of = |text: &str| Pattern::new(text).unwrap();
        assert_eq!(of("*/").without_start("a/b/c", false), "b/c");
        assert_eq!(of("*/").without_start("a/b/c", true), "c");
        assert_eq!(of(".*").without_end("a.b.c", false), "a.b");
        assert_eq!(of(".*").without_end("a.b.c", true), "a");
        assert_eq!(of("[0-9]").replaced("a1b22", "", true), "ab");
        assert_eq!(of("b").replaced("abab", "x", false), "axab");
    }
}
