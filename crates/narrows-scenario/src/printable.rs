//! Makes text safe to print to a terminal.
//!
//! Names, comments and excerpts come from files, interfaces, containers and other programs. They are shown
//! to people and must not control their terminals. All output of narrows for people passes through this
//! module last, so that no other part has to sanitise it.

use std::borrow::Cow;

/// Replaces each character that controls a terminal or changes the direction of text by its code: `\u001b`.
/// Keeps line feeds and tabs; removes the carriage return at the end of a line. In JSON, and in most TOML
/// strings, the escape means the same character.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match steers(character) {
            true => safe.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => safe.push(character),
        }
    }
    Cow::Owned(safe)
}

/// Control characters (C0 and C1), line and paragraph separators, and characters that change the direction
/// of text.
fn steers(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal_and_all_else_stays() {
        let plain = "a line\twith ümläuts, 日本, 🙂 and a zero\u{200d}joiner\n";
        assert_eq!(printable(plain), plain);
        assert_eq!(printable("ends\r\nnext\r"), "ends\nnext\\u000d");
        assert_eq!(printable("\x1b[31m\u{9b}2J\x07\x7f\0"), "\\u001b[31m\\u009b2J\\u0007\\u007f\\u0000");
        assert_eq!(printable("\u{202e}txt.exe\u{2066}\u{2028}"), "\\u202etxt.exe\\u2066\\u2028");
        for character in (0..=0x10_ffff).filter_map(char::from_u32) {
            let text = format!("x{character}y");
            let safe = printable(&text);
            assert!(safe.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{safe:?}");
        }
    }

    #[test]
    fn in_strings_it_is_still_the_same() {
        let text = "\"a\u{9b}b\u{7f}c\u{202e}\"";
        let read: toml::Table = format!("x = {}", printable(text)).parse().unwrap();
        assert_eq!(read["x"].as_str(), Some("a\u{9b}b\u{7f}c\u{202e}"));
    }
}
