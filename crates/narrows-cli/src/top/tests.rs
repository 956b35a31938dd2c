//! What is shown of fixed answers, and what keys do.

mod fixture;
mod picture;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use narrows_live::control::Stale;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{App, Contact, Effect};
use super::source::{Event, Made, Refused, Wanted};
use super::view::{Theme, draw};
use super::{keys, order::Column};
use fixture::{NOW, app, lab, many, settings, stats};

fn drawn(app: &mut App, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, app, Theme { colours: true }, NOW)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let rows = buffer.content.chunks(buffer.area.width.into());
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned() + "\n")
        .collect()
}

fn shown(app: &mut App, width: u16, height: u16) -> String {
    text(&drawn(app, width, height))
}

/// Compares with a file; `NARROWS_BLESS=1` writes it instead.
fn golden(path: &Path, text: &str) {
    if std::env::var_os("NARROWS_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        return fs::write(path, text).unwrap();
    }
    let wanted = fs::read_to_string(path).unwrap_or_default();
    assert!(wanted == text, "{} differs (NARROWS_BLESS=1 writes it); shown is\n{text}", path.display());
}

fn own(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/top/tests").join(name)
}

fn press(app: &mut App, keys: &str) -> Option<Effect> {
    let mut last = None;
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\x1b' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            '⇓' => KeyCode::PageDown,
            c => KeyCode::Char(c),
        };
        last = keys::press(app, KeyEvent::new(code, KeyModifiers::NONE));
    }
    last
}

fn change(effect: Option<Effect>) -> Wanted {
    match effect {
        Some(Effect::Change(wanted)) => wanted,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_table_is_the_same_at_each_width() {
    let mut app = app(12);
    golden(&own("table-80x24.txt"), &shown(&mut app, 80, 24));
    golden(&own("table-200x50.txt"), &shown(&mut app, 200, 50).replace("\n\n\n", "\n"));
    golden(&own("table-40x12.txt"), &shown(&mut app, 40, 12));
    // Neither does a terminal without room break anything.
    for (width, height) in [(1, 1), (10, 2), (19, 4), (59, 5), (79, 9), (400, 120)] {
        for keys in ["", "\n", "?", "e", "\x1b", "\x1b"] {
            press(&mut app, keys);
            shown(&mut app, width, height);
        }
    }
}

#[test]
fn a_link_shows_its_last_minutes_classes_drops_and_settings() {
    let mut app = app(40);
    press(&mut app, "\n");
    golden(&own("link-80x24.txt"), &shown(&mut app, 80, 24));
    press(&mut app, "?");
    golden(&own("help-80x24.txt"), &shown(&mut app, 80, 24));
}

#[test]
fn a_lab_is_a_graph_and_the_table_of_its_links() {
    let mut app = lab(12);
    golden(&own("lab-80x24.txt"), &shown(&mut app, 80, 24));
    // Without room there is only the table.
    let low = shown(&mut app, 80, 12);
    assert!(low.contains("b:eth2 – c:eth1") && !low.contains("[a]"), "{low}");
    for (width, height) in [(1, 1), (10, 2), (19, 30), (400, 120)] {
        shown(&mut app, width, height);
    }
    // A link without a run has nothing to show or set.
    press(&mut app, "↓↓");
    assert_eq!(app.line().unwrap().name, "b:eth2 – c:eth1");
    assert!(press(&mut app, "\n").is_none() && app.page == super::app::Page::Table);
    press(&mut app, "e");
    assert_eq!(app.prompt, None);
    // Changes are of the run that is the link.
    press(&mut app, "↓e");
    let prompt = shown(&mut app, 120, 24);
    assert!(prompt.contains("narrows set --run clab-ring-c-eth2 access.down.rate=10mbit"), "{prompt}");
    let wanted = change(press(&mut app, "\n"));
    assert_eq!(
        (wanted.run.as_str(), wanted.assignments[0].as_str()),
        ("clab-ring-c-eth2", "access.down.rate=10mbit")
    );
    press(&mut app, "\x1b\n");
    let details = shown(&mut app, 100, 30);
    assert!(details.contains("d:eth1 → c:eth2") && details.contains("voip"), "{details}");
    assert_eq!(app.model().origin(app.line().unwrap()).0.history(&("access.down".into(), 0)).len(), 12);
}

#[test]
fn the_pictures_of_the_documentation_are_these() {
    let pictures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    let mut app = app(90);
    press(&mut app, "2");
    golden(&pictures.join("top.svg"), &picture::svg(&drawn(&mut app, 112, 14)));
    press(&mut app, "\n");
    golden(&pictures.join("top-lab.svg"), &picture::svg(&drawn(&mut lab(90), 100, 24)));
    golden(&pictures.join("top-link.svg"), &picture::svg(&drawn(&mut app, 100, 26)));
}

#[test]
fn rates_are_differences_by_the_run_s_own_clock() {
    let mut app = app(1);
    // The first answer has what the run knows itself.
    assert_eq!(app.model().lines[0].bps, 9_000_000);
    // Two seconds later on its clock, whenever that is on ours.
    app.take(Event::Answer(Box::new(stats(3)), Arc::new(settings())));
    let line = &app.model().lines[0];
    assert_eq!((line.bps, line.drops, line.reasons[0].1), (9_600_000, 40, 30));
    assert_eq!(line.utilisation, Some(1.0));
    assert_eq!(line.late.unwrap().p99_ns, 100_000);
    assert_eq!(line.classes[0].bps, 6_400_000);
    // What is asked for right behind it changes no rate.
    let mut soon = stats(3);
    soon.report.end_ns += 1_000_000;
    app.take(Event::Answer(Box::new(soon), Arc::new(settings())));
    assert_eq!(app.model().lines[0].bps, 9_600_000);
    // A clock that went back is that of another run.
    app.take(Event::Answer(Box::new(stats(1)), Arc::new(settings())));
    assert_eq!(app.model().history(&("access.down".into(), 0)).len(), 1);
}

#[test]
fn links_come_go_and_are_ordered_filtered_and_scrolled() {
    let mut app = many(1000);
    assert!(shown(&mut app, 80, 24).contains("l0000.up"));
    press(&mut app, "⇓⇓");
    assert_eq!(app.line().unwrap().name, "l0019.up");
    let text = shown(&mut app, 80, 24);
    assert!(text.contains("l0019.up") && !text.contains("l0000.up"), "{text}");
    press(&mut app, "G");
    assert!(shown(&mut app, 80, 24).contains("l0999.down"));
    // The line on which one is stays that where the order changes.
    press(&mut app, "3");
    assert_eq!(app.order.column, Column::Rate);
    assert_eq!(app.line().unwrap().name, "l0999.down");
    assert_eq!(app.lines()[0].name, "l0999.up", "the fastest first");
    press(&mut app, "r");
    assert_eq!(app.lines()[0].name, "l0000.down", "the slowest first, those alike as in the scenario");
    press(&mut app, "/L0123\n");
    let names: Vec<_> = app.lines().iter().map(|line| line.name.clone()).collect();
    assert_eq!(names, ["l0123.down", "l0123.up"]);
    press(&mut app, "/nowhere\n");
    assert!(shown(&mut app, 80, 24).contains("no link or host matches"));
    press(&mut app, "\x1b");
    assert_eq!(app.lines().len(), 2000);
    // Fewer links than before.
    press(&mut app, "g\n");
    let name = app.line().unwrap().name.clone();
    app.take(Event::Answer(Box::new(stats(30)), Arc::new(settings())));
    let text = shown(&mut app, 80, 24);
    assert!(app.model().line(&(name, 0)).is_none() && text.contains("core.up"), "{text}");
}

#[test]
fn the_picture_stands_still_while_paused() {
    let mut app = app(5);
    press(&mut app, " ");
    let before = shown(&mut app, 80, 24);
    assert!(before.contains("PAUSED"), "{before}");
    app.take(Event::Answer(Box::new(stats(9)), Arc::new(settings())));
    assert_eq!(shown(&mut app, 80, 24), before);
    press(&mut app, " ");
    assert_eq!(app.model().at_ns, 9_000_000_000);
}

#[test]
fn a_value_is_set_refused_in_words_and_taken_back() {
    let mut app = app(5);
    // Tab goes on to the next key, with its present value.
    press(&mut app, "e");
    let text = shown(&mut app, 80, 24);
    assert!(text.contains("narrows set --run dsl access.down.rate=10mbit"), "{text}");
    press(&mut app, "\t");
    assert!(shown(&mut app, 80, 24).contains("access.down.delay=20ms"));
    let wanted = change(press(&mut app, "x\n"));
    assert_eq!((&wanted.assignments[0][..], wanted.settings.generation), ("access.down.delay=20msx", 3));
    // Nothing else is set meanwhile.
    assert!(press(&mut app, "\n").is_none());
    app.take(Event::Changed(Box::new(wanted), Err(Refused::Other("error: `msx` is not a unit".into()))));
    assert!(shown(&mut app, 80, 24).contains("`msx` is not a unit"));
    // The line is still there to be corrected.
    press(&mut app, "\n");
    let mut erase = || keys::press(&mut app, KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE));
    erase();
    let wanted = change(press(&mut app, "\n"));
    assert_eq!(wanted.assignments, ["access.down.delay=20ms"]);

    // Somebody else was faster: it is said, read again, and then set all the same.
    let stale = Stale { generation: 4, changes: vec!["changed at 5s: core.up.rate=1mbit".into()] };
    let look = app.take(Event::Changed(Box::new(wanted), Err(Refused::Stale(stale))));
    assert!(matches!(look, Some(Effect::Look)));
    assert!(shown(&mut app, 80, 24).contains("core.up.rate=1mbit"));
    assert!(matches!(press(&mut app, "\n\n"), Some(Effect::Look)), "not before it has been read again");
    let mut newer = settings();
    newer.generation = 4;
    let wanted = change(app.take(Event::Answer(Box::new(stats(6)), Arc::new(newer))));
    assert_eq!(wanted.settings.generation, 4);
    let made = Made { generation: 5, undo: vec!["access.down.delay=9ms".into()] };
    app.take(Event::Changed(Box::new(wanted), Ok(made)));
    let text = shown(&mut app, 80, 24);
    assert!(text.contains("done: narrows set --run dsl access.down.delay=20ms"), "{text}");

    assert!(matches!(press(&mut app, "u"), Some(Effect::Look)));
    let mut newest = settings();
    newest.generation = 5;
    let wanted = change(app.take(Event::Answer(Box::new(stats(7)), Arc::new(newest))));
    assert!(wanted.is_undo && wanted.assignments == ["access.down.delay=9ms"]);
    app.take(Event::Changed(Box::new(wanted), Ok(Made { generation: 6, undo: Vec::new() })));
    assert!(press(&mut app, "u").is_none());
    assert!(shown(&mut app, 80, 24).contains("nothing to undo"));
}

#[test]
fn outages_are_assignments_that_are_shown_first() {
    let mut app = app(5);
    press(&mut app, "o");
    assert!(shown(&mut app, 80, 24).contains("narrows set --run dsl access.down.outage=true"));
    assert_eq!(change(press(&mut app, "\n")).assignments, ["access.down.outage=true"]);
    press(&mut app, "\x1bO");
    assert!(shown(&mut app, 80, 24).contains("narrows set --run dsl access.outage=true"));
    // The one that is down comes up again.
    press(&mut app, "\x1b↓↓o");
    assert!(shown(&mut app, 80, 24).contains("core.up.outage=false"));
}

#[test]
fn a_run_that_ended_or_is_silent_is_said_beside_its_last_picture() {
    let mut app = app(5);
    app.take(Event::Silent("run 4711 does not answer within 5 s: is it stopped?".into()));
    let text = shown(&mut app, 80, 24);
    assert!(
        text.contains("NO ANSWER") && text.contains("is it stopped?") && text.contains("access.down"),
        "{text}"
    );
    app.take(Event::Gone);
    let text = shown(&mut app, 80, 24);
    assert!(text.contains("THE RUN HAS ENDED") && text.contains("access.down"), "{text}");
    assert!(press(&mut app, "u").is_none() && press(&mut app, "e\n").is_none());
    press(&mut app, "\x1b");
    assert!(matches!(press(&mut app, "q"), Some(Effect::Quit)));
    app.take(Event::Back(Box::default()));
    assert_eq!(app.contact, Contact::Awaited);
}

#[test]
fn names_from_files_steer_no_terminal() {
    let mut app = App::default();
    let (mut stats, mut settings) = (stats(1), settings());
    stats.report.directions[0].link = "evil\x1b[2J\u{202e}".into();
    settings.directions[0].configured = "\x1b]0;title\x07".into();
    app.take(Event::Answer(Box::new(stats), Arc::new(settings)));
    for keys in ["", "\n", "e"] {
        press(&mut app, keys);
        let text = shown(&mut app, 200, 30);
        assert!(!text.contains(['\x1b', '\x07', '\u{202e}']), "{text}");
    }
}

#[test]
fn without_colours_words_say_it() {
    let mut app = app(5);
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(frame, &mut app, Theme { colours: false }, NOW)).unwrap();
    let buffer = terminal.backend().buffer();
    assert!(buffer.content.iter().all(|cell| cell.fg == ratatui::style::Color::Reset));
    assert!(text(buffer).contains("mostly accurate") && text(buffer).contains("DOWN"));
}
