//! Key bindings.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{App, Effect, Page, Prompt};
use super::editor::Editor;
use super::order::Column;

/// The keys, for the help page.
pub(super) const HELP: &[(&str, &str)] = &[
    ("↑ ↓ PgUp PgDn Home End", "go to a link (also k, j, g, G)"),
    ("Enter", "the link's last minutes, classes, drops, settings"),
    ("Esc", "back to all links; end the filter"),
    ("/", "show only links and hosts with this in their names"),
    ("s S", "sort by the next or the previous column"),
    ("1 … 8", "sort by this column: link, utilisation, rate,"),
    ("", "configured rate, queue, drops, delay, lateness"),
    ("r", "reverse the order"),
    ("Space", "pause, or continue"),
    ("e", "set a value of this direction; Tab completes keys"),
    ("o O", "take this direction, or the whole link, down or up"),
    ("u", "undo the last change"),
    ("?", "this page"),
    ("q Ctrl-C", "quit; the run continues"),
];

/// Processes a key. Returns the action to perform outside.
pub(super) fn press(app: &mut App, key: KeyEvent) -> Option<Effect> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control && key.code == KeyCode::Char('c') {
        return Some(Effect::Quit);
    }
    // The message of a refusal is dismissed first; an open editor stays open.
    if app.refusal.take().is_some() && matches!(key.code, KeyCode::Esc | KeyCode::Enter | KeyCode::Char(' '))
    {
        return None;
    }
    match app.prompt.take() {
        Some(Prompt::Filter(editor)) => {
            filter(app, editor, key);
            None
        }
        Some(Prompt::Change(editor)) => edit(app, editor, key),
        None if app.page == Page::Help => {
            app.page = Page::Table;
            matches!(key.code, KeyCode::Char('q')).then_some(Effect::Quit)
        }
        None => command(app, key),
    }
}

fn filter(app: &mut App, mut editor: Editor, key: KeyEvent) {
    match key.code {
        KeyCode::Enter => {}
        KeyCode::Esc => app.order.filter.clear(),
        _ => {
            editor.press(key);
            app.order.filter = editor.text();
            app.prompt = Some(Prompt::Filter(editor));
        }
    }
}

fn edit(app: &mut App, mut editor: Editor, key: KeyEvent) -> Option<Effect> {
    match key.code {
        KeyCode::Esc => {
            app.message = "nothing was set".into();
            return None;
        }
        KeyCode::Enter => {
            // The editor stays open until the run has accepted the change, so that it can be corrected.
            let effect = app.change(&editor.text());
            app.prompt = Some(Prompt::Change(editor));
            return effect;
        }
        KeyCode::Tab => {
            let link = app.line().map(|line| line.settings.link.clone()).unwrap_or_default();
            editor.complete(&link, &app.keys());
        }
        _ => drop(editor.press(key)),
    }
    app.prompt = Some(Prompt::Change(editor));
    None
}

fn command(app: &mut App, key: KeyEvent) -> Option<Effect> {
    app.message.clear();
    let page = app.room.max(1) as isize;
    match key.code {
        KeyCode::Char('q') => return Some(Effect::Quit),
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => app.page = Page::Help,
        KeyCode::Up | KeyCode::Char('k') => app.go(-1),
        KeyCode::Down | KeyCode::Char('j') => app.go(1),
        KeyCode::PageUp if app.page == Page::Link => app.scrolled = app.scrolled.saturating_sub(5),
        KeyCode::PageDown if app.page == Page::Link => app.scrolled = app.scrolled.saturating_add(5),
        KeyCode::PageUp => app.go(-page),
        KeyCode::PageDown => app.go(page),
        KeyCode::Home | KeyCode::Char('g') => app.go(isize::MIN),
        KeyCode::End | KeyCode::Char('G') => app.go(isize::MAX),
        KeyCode::Enter if app.page == Page::Table && app.line().is_some_and(|line| !line.is_unshaped) => {
            app.go(0);
            app.page = Page::Link;
        }
        KeyCode::Esc | KeyCode::Backspace | KeyCode::Enter if app.page == Page::Link => {
            app.page = Page::Table
        }
        KeyCode::Esc => app.order.filter.clear(),
        KeyCode::Char('/') => {
            app.page = Page::Table;
            app.prompt = Some(Prompt::Filter(Editor::new(&app.order.filter)));
        }
        KeyCode::Char('s') => app.order.column = app.order.column.further(1),
        KeyCode::Char('S') => app.order.column = app.order.column.further(-1),
        KeyCode::Char(digit @ '1'..='8') => {
            app.order.column = Column::ALL[digit as usize - '1' as usize];
        }
        KeyCode::Char('r') => app.order.reversed = !app.order.reversed,
        KeyCode::Char(' ') => app.pause(),
        KeyCode::Char('e') => {
            let present = app.keys().into_iter().next().and_then(|(_, value)| value).unwrap_or_default();
            let line = app.line().filter(|line| !line.is_unshaped);
            let text = line.map(|line| format!("{}.rate={present}", line.settings.link));
            app.prompt = text.map(|text| Prompt::Change(Editor::new(&text)));
        }
        KeyCode::Char(key @ ('o' | 'O')) => {
            app.prompt = app.outage(key == 'O').map(|text| Prompt::Change(Editor::new(&text)));
        }
        KeyCode::Char('u') => return app.take_back(),
        _ => {}
    }
    None
}
