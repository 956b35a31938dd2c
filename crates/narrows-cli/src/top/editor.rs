//! A line editor with completion of a link's keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Maximum length of a line.
const LONGEST: usize = 2000;

/// A line with a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Editor {
    text: Vec<char>,
    cursor: usize,
    /// The typed part of a key before the first Tab, and the number of keys offered since.
    offered: Option<(String, usize)>,
}

impl Editor {
    /// A line with this text, and the cursor at its end.
    pub(super) fn new(text: &str) -> Self {
        let text: Vec<char> = text.chars().collect();
        Self { cursor: text.len(), text, offered: None }
    }

    pub(super) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// The text before the cursor.
    pub(super) fn before_cursor(&self) -> String {
        self.text[..self.cursor].iter().collect()
    }

    /// Processes a key; returns whether the editor uses it.
    pub(super) fn press(&mut self, key: KeyEvent) -> bool {
        let (control, count) = (key.modifiers.contains(KeyModifiers::CONTROL), self.text.len());
        match key.code {
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(count),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = count,
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = count,
            KeyCode::Char('u') if control => drop(self.text.drain(..std::mem::take(&mut self.cursor))),
            KeyCode::Char('k') if control => self.text.truncate(self.cursor),
            KeyCode::Char('w') if control => {
                let before = &self.text[..self.cursor];
                let word = |c: &char| !c.is_whitespace() && !['.', '='].contains(c);
                let start = before.iter().rposition(word).unwrap_or(0);
                let start = before[..start].iter().rposition(|c| !word(c)).map_or(0, |at| at + 1);
                self.text.drain(start..self.cursor);
                self.cursor = start;
            }
            KeyCode::Char(c) if !control && !c.is_control() => {
                if count < LONGEST {
                    self.text.insert(self.cursor, c);
                    self.cursor += 1;
                }
            }
            KeyCode::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.cursor);
            }
            KeyCode::Delete if self.cursor < count => drop(self.text.remove(self.cursor)),
            KeyCode::Backspace | KeyCode::Delete => {}
            _ => return false,
        }
        self.offered = None;
        true
    }

    /// Completes `LINK.KEY`; the next Tab offers the next key. `keys` are those of a link, each with its
    /// current value if known.
    pub(super) fn complete(&mut self, link: &str, keys: &[(String, Option<String>)]) {
        let text = self.text();
        let Some(rest) = text.strip_prefix(link).and_then(|rest| rest.strip_prefix('.')) else { return };
        let typed = rest.split('=').next().unwrap_or_default();
        let (prefix, times) = match self.offered.take() {
            Some((prefix, times)) => (prefix, times + 1),
            // A complete key is replaced by the next one.
            None => match keys.iter().position(|(key, _)| key == typed) {
                Some(at) if rest.contains('=') => (String::new(), at + 1),
                _ => (typed.to_owned(), 0),
            },
        };
        let fitting: Vec<_> = keys.iter().filter(|(key, _)| key.starts_with(&prefix)).collect();
        let Some((key, value)) = fitting.get(times % fitting.len().max(1)) else { return };
        *self = Self::new(&format!("{link}.{key}={}", value.as_deref().unwrap_or_default()));
        self.offered = Some((prefix, times));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(editor: &mut Editor, code: KeyCode, modifiers: KeyModifiers) {
        assert!(editor.press(KeyEvent::new(code, modifiers)), "{code:?}");
    }

    #[test]
    fn keys_edit_the_line() {
        let mut editor = Editor::new("access.rate=10mbit");
        press(&mut editor, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(editor.text(), "access.rate=");
        "2µ".chars().for_each(|c| press(&mut editor, KeyCode::Char(c), KeyModifiers::NONE));
        press(&mut editor, KeyCode::Left, KeyModifiers::NONE);
        assert_eq!(
            (editor.text().as_str(), editor.before_cursor().as_str()),
            ("access.rate=2µ", "access.rate=2")
        );
        press(&mut editor, KeyCode::Delete, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(editor.text(), "access.rate=");
        press(&mut editor, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(editor.text(), "");
        press(&mut editor, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert!(!editor.press(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE)));
    }

    #[test]
    fn tab_goes_through_the_keys_that_fit() {
        let key = |key: &str, value: Option<&str>| (key.to_owned(), value.map(str::to_owned));
        let keys = [key("rate", Some("10mbit")), key("delay", None), key("duplicate", None)];
        let mut editor = Editor::new("a.up.d");
        let tab = |editor: &mut Editor| {
            editor.complete("a.up", &keys);
            editor.text()
        };
        assert_eq!(tab(&mut editor), "a.up.delay=");
        assert_eq!(tab(&mut editor), "a.up.duplicate=");
        assert_eq!(tab(&mut editor), "a.up.delay=");
        let mut editor = Editor::new("a.up.duplicate=1%");
        assert_eq!(tab(&mut editor), "a.up.rate=10mbit");
        let mut editor = Editor::new("a.up.x");
        assert_eq!(tab(&mut editor), "a.up.x", "nothing fits");
    }
}
