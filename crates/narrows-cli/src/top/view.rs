//! Draws `top`.

mod graph;
mod link;
mod table;
mod theme;

use narrows_io::clock::clock_realtime;
use narrows_report::Trust;
use narrows_scenario::printable;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use super::app::{App, Contact, Page, Prompt};
use super::keys::HELP;
use super::units::{age, counted, short, span};
pub(super) use theme::Theme;

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App, theme: Theme, now_ns: u64) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(3), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    let [picture, rows] = graph::split(body, app);
    // One line of the table is its header.
    app.scroll(usize::from(rows.height).saturating_sub(1).max(1));
    frame.render_widget(Paragraph::new(header(app, theme, now_ns, head.width.into())), head);
    match app.page {
        Page::Table => {
            graph::draw(frame, picture, app, theme);
            table::draw(frame, rows, app, theme);
        }
        Page::Link => link::draw(frame, body, app, theme),
        Page::Help => help(frame, body, theme),
    }
    footer(frame, foot, app, theme);
    if let Some(why) = &app.refusal {
        refusal(frame, body, why, theme);
    }
}

/// Current Unix time.
pub(super) fn now() -> u64 {
    clock_realtime()
}

/// The run, its trustworthiness, and its totals.
fn header(app: &App, theme: Theme, now_ns: u64, width: usize) -> Vec<Text<'static>> {
    let (about, model) = (&app.about, app.model());
    let of_group = model.graph.as_ref().map(|graph| graph.name.clone());
    let name = about.name.as_ref().map(ToString::to_string).or(of_group).unwrap_or_else(|| "a run".into());
    // A run of an older version has no record.
    let mut facts = if about.hosts > 0 { vec![about.kind.to_string()] } else { Vec::new() };
    if about.since_ns > 0 {
        facts.push(age(now_ns.saturating_sub(about.since_ns) / 1_000_000_000));
    }
    if about.hosts > 0 {
        facts.push(format!("{}, {}", counted(about.hosts, "host"), counted(about.links, "link")));
    }
    if let Some(graph) = &model.graph {
        let shaped = graph.edges.iter().filter(|edge| edge.run.is_some()).count();
        let links = counted(graph.edges.len(), "link");
        facts.push(format!("{}, {links}, {shaped} of them shaped", counted(graph.nodes.len(), "node")));
    }
    if model.generation > 0 {
        facts.push(format!("generation {}", model.generation));
    }
    let mut first = vec![
        Span::styled("narrows top ", theme.dim()),
        Span::styled(clean(&name), theme.bold()),
        Span::raw("  "),
    ];
    match &app.contact {
        Contact::Ended if model.graph.is_some() => {
            first.push(Span::styled("ALL RUNS HAVE ENDED  ", theme.bad().patch(theme.bold())));
        }
        Contact::Ended => first.push(Span::styled("THE RUN HAS ENDED  ", theme.bad().patch(theme.bold()))),
        Contact::Silent(_) => first.push(Span::styled("NO ANSWER  ", theme.bad().patch(theme.bold()))),
        Contact::Awaited => first.push(Span::styled("waiting for the first answer  ", theme.dim())),
        Contact::Answers => {}
    }
    if app.is_paused() {
        first.push(Span::styled("PAUSED  ", theme.warning().patch(theme.bold())));
    }
    first.push(Span::raw(facts.join(" · ")));
    let second = match (&app.contact, &model.trust) {
        (Contact::Silent(why), _) => vec![Span::styled(shortened(&clean(why), width), theme.bad())],
        (_, Some((trust, line))) => {
            let light = match trust {
                Trust::Good => theme.good(),
                Trust::Fair => theme.warning(),
                Trust::Poor => theme.bad(),
            };
            vec![
                Span::styled("● ", light.patch(theme.bold())),
                Span::raw(shortened(&clean(line), width.saturating_sub(2))),
            ]
        }
        (_, None) => Vec::new(),
    };
    let mut now = vec![
        format!("delivered {}bit/s", short(model.delivered_bps)),
        format!("inside {}", model.inside_packets),
    ];
    if let Some(late) = model.late {
        now.push(format!("p99 lateness now {}", late_text(late.p99_ns)));
    }
    let shown = app.lines().len();
    let arrow = if app.order.reversed { "▲" } else { "▼" };
    if app.order.reversed || app.order.column != super::order::Column::Link {
        now.push(format!("by {} {arrow}", app.order.column.name()));
    }
    if !app.order.filter.is_empty() {
        now.push(format!("filter “{}”: {shown} of {}", app.order.filter, model.lines.len()));
    }
    vec![Text::from(first), Text::from(second), Text::from(shortened(&clean(&now.join(" · ")), width))]
}

/// The lateness of most packets as a bound; a histogram has a last bucket.
fn late_text(nanos: u64) -> String {
    if nanos == u64::MAX { ">10s".into() } else { span(nanos) }
}

/// The prompt, the last action, or the key bindings.
fn footer(frame: &mut Frame<'_>, area: Rect, app: &App, theme: Theme) {
    let prompt = |frame: &mut Frame<'_>, head: &str, editor: &super::editor::Editor, tail: &str| {
        // The end of a long line is shown.
        let before = format!("{head}{}", editor.before_cursor());
        let width = Text::raw(clean(&before)).width() as u16;
        let skipped = (width + 1).saturating_sub(area.width);
        let line = vec![
            Span::styled(head.to_owned(), theme.bold()),
            Span::raw(clean(&editor.text())),
            Span::styled(tail.to_owned(), theme.dim()),
        ];
        frame.render_widget(Paragraph::new(Text::from(line)).scroll((0, skipped)), area);
        frame.set_cursor_position(Position::new((area.x + width).saturating_sub(skipped), area.y));
    };
    match &app.prompt {
        Some(Prompt::Filter(editor)) => prompt(frame, "/", editor, "   Enter: keep, Esc: end"),
        Some(Prompt::Change(editor)) => {
            let head = app.set_line(app.line().map_or("", |line| &line.run), &[]);
            let tail = if app.is_changing { "   …" } else { "   Enter: set, Esc: cancel, Tab: keys" };
            prompt(frame, &head, editor, tail);
        }
        None if !app.message.is_empty() => {
            frame.render_widget(Paragraph::new(Span::styled(clean(&app.message), theme.bold())), area);
        }
        None => {
            let keys = match app.page {
                Page::Table => {
                    "Enter link  / filter  s sort  Space pause  e set  o down  u undo  ? help  q quit"
                }
                Page::Link => "Esc all links  ↑↓ other  e set  o down  u undo  Space pause  ? help  q quit",
                Page::Help => "any key: back",
            };
            frame.render_widget(Paragraph::new(Span::styled(keys, theme.dim())), area);
        }
    }
}

fn help(frame: &mut Frame<'_>, area: Rect, theme: Theme) {
    let line = |(keys, what): &(&'static str, &'static str)| {
        Text::from(vec![Span::styled(format!("{keys:>22}  "), theme.bold()), Span::raw(*what)])
    };
    let mut lines: Vec<_> = HELP.iter().map(line).collect();
    lines.push(Text::default());
    let notes = "Rates count from the network header on, utilisation with the link's overhead. Lateness is p99 of the last \
                 second at the port behind the link, to the next step of its histogram. docs/top.md says more.";
    lines.push(Text::raw(notes));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}

/// Shows an overlay with the reason for a refusal.
fn refusal(frame: &mut Frame<'_>, area: Rect, why: &str, theme: Theme) {
    let text = clean(why);
    let text = text.trim_end();
    let block = Block::bordered().title(" not set ").title_bottom(" Enter: go on ").border_style(theme.bad());
    let widest = text.lines().map(|line| Text::raw(line).width()).max().unwrap_or(0) as u16;
    let width = (widest + 4).clamp(30.min(area.width), area.width);
    let inside = usize::from(width.saturating_sub(4)).max(1);
    let lines: usize = text.lines().map(|line| Text::raw(line).width().div_ceil(inside).max(1)).sum();
    let height = (lines as u16 + 2).min(area.height);
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let text = Paragraph::new(text.to_owned()).wrap(Wrap { trim: false });
    let within = block.inner(place);
    frame.render_widget(block, place);
    let within = Rect { x: within.x + 1, width: within.width.saturating_sub(2), ..within };
    frame.render_widget(text, within);
}

/// Sanitises text for a terminal.
fn clean(text: &str) -> String {
    printable(text).into_owned()
}

/// Truncates a long text with a mark.
fn shortened(text: &str, width: usize) -> String {
    if Text::raw(text).width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        if Text::raw(format!("{short}{c}…")).width() > width {
            break;
        }
        short.push(c);
    }
    short + "…"
}
