//! The table of all directions, one line each.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use super::super::app::{App, Contact};
use super::super::model::Line;
use super::super::order::Column;
use super::super::units::{short, shorter, span};
use super::theme::Theme;
use super::{clean, late_text, shortened};

/// Content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    Name,
    Bar,
    Percent,
    Rate,
    TenSeconds,
    Configured,
    Queue,
    /// With bytes.
    WholeQueue,
    Drops,
    Delay,
    Late,
    Ends,
    Settings,
}

/// The columns for a terminal width, each with its width; `None` for the one that takes the rest.
fn columns(width: u16) -> Vec<(Shows, Option<u16>)> {
    use Shows::*;
    let fixed: &[(Shows, u16)] = match width {
        ..60 => &[(Percent, 5), (Rate, 6), (Drops, 6)],
        60..80 => &[(Percent, 5), (Rate, 6), (Configured, 5), (Queue, 8), (Drops, 8), (Delay, 6)],
        80..112 => &[
            (Bar, 4),
            (Percent, 5),
            (Rate, 6),
            (Configured, 5),
            (Queue, 10),
            (Drops, 14),
            (Delay, 6),
            (Late, 6),
        ],
        112.. => &[
            (Bar, 10),
            (Percent, 5),
            (Rate, 6),
            (TenSeconds, 5),
            (Configured, 5),
            (WholeQueue, 16),
            (Drops, 20),
            (Delay, 6),
            (Late, 6),
        ],
    };
    let rest = match width {
        150.. => vec![(Ends, Some(22)), (Settings, None)],
        _ => Vec::new(),
    };
    let name = (Name, (width >= 150).then_some(24));
    let fixed = fixed.iter().map(|(shows, width)| (*shows, Some(*width)));
    std::iter::once(name).chain(fixed).chain(rest).collect()
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, theme: Theme) {
    let (lines, model) = (app.lines(), app.model());
    if lines.is_empty() {
        let why = match (&app.contact, model.lines.is_empty()) {
            (Contact::Awaited | Contact::Silent(_), true) => "",
            (_, true) => "the run has no links",
            (_, false) => "no link or host matches; Esc shows all",
        };
        frame.render_widget(Paragraph::new(why), area);
        return;
    }
    let columns = columns(area.width);
    let taken: u16 = columns.iter().map(|(_, width)| width.unwrap_or(0) + 1).sum();
    let rest = area.width.saturating_sub(taken.saturating_sub(1));
    let widths: Vec<u16> = columns.iter().map(|(_, width)| width.unwrap_or(rest)).collect();
    let head = columns.iter().zip(&widths).map(|((shows, _), width)| {
        let is_order = shows.column().is_some_and(|column| column == app.order.column);
        let mark = match (is_order, app.order.reversed) {
            (true, false) if app.order.column != Column::Link => "▼",
            (true, true) => "▲",
            _ => "",
        };
        let title = format!("{mark}{}", shows.title());
        let style = if is_order { theme.bold() } else { Style::new() };
        Cell::new(aligned(shortened(&title, (*width).into()), *shows).style(style))
    });
    let at = app.position(&lines);
    let rows = lines.iter().enumerate().skip(app.first).take(app.room).map(|(place, line)| {
        let is_selected = place == at;
        let cells = columns.iter().zip(&widths).map(|((shows, _), width)| {
            let (text, style) = cell(line, *shows, *width, theme);
            // Reversed colours and reversed bars are hard to read.
            let style = match (is_selected, shows) {
                (true, Shows::Bar) => style.patch(theme.not_selected()),
                (true, _) => Style::new(),
                (false, _) => style,
            };
            Cell::new(aligned(Span::styled(text, style), *shows))
        });
        let style = if is_selected { theme.selected() } else { Style::new() };
        Row::new(cells.collect::<Vec<_>>()).style(style)
    });
    let head = Row::new(head.collect::<Vec<_>>()).style(theme.dim());
    let widths = widths.iter().map(|width| Constraint::Length(*width));
    frame.render_widget(Table::new(rows.collect::<Vec<_>>(), widths).header(head).column_spacing(1), area);
}

impl Shows {
    fn title(self) -> &'static str {
        match self {
            Self::Name => "LINK",
            Self::Bar => "",
            Self::Percent => "UTIL",
            Self::Rate => "BIT/S",
            Self::TenSeconds => "10 S",
            Self::Configured => "OF",
            Self::Queue | Self::WholeQueue => "QUEUE",
            Self::Drops => "DROPS/S",
            Self::Delay => "DELAY",
            Self::Late => "LATE",
            Self::Ends => "FROM → TO",
            Self::Settings => "SETTINGS",
        }
    }

    fn column(self) -> Option<Column> {
        match self {
            Self::Name => Some(Column::Link),
            Self::Percent => Some(Column::Utilisation),
            Self::Rate => Some(Column::Rate),
            Self::Configured => Some(Column::Configured),
            Self::Queue | Self::WholeQueue => Some(Column::Queue),
            Self::Drops => Some(Column::Drops),
            Self::Delay => Some(Column::Delay),
            Self::Late => Some(Column::Late),
            Self::Bar | Self::TenSeconds | Self::Ends | Self::Settings => None,
        }
    }
}

/// Names left-aligned, numbers right-aligned.
fn aligned<'a>(text: impl Into<Span<'a>>, shows: Shows) -> Text<'a> {
    let line = Text::from(text.into());
    match shows {
        Shows::Name | Shows::Bar | Shows::Drops | Shows::Ends | Shows::Settings => line,
        _ => line.right_aligned(),
    }
}

fn cell(line: &Line, shows: Shows, width: u16, theme: Theme) -> (String, Style) {
    let settings = &line.settings;
    let (text, style) = match shows {
        Shows::Name => (clean(&line.name), Style::new()),
        Shows::Bar if line.is_unshaped => (String::new(), Style::new()),
        Shows::Settings | Shows::Drops if line.is_unshaped => ("not shaped".into(), theme.dim()),
        Shows::Ends => (clean(&format!("{} → {}", line.from, line.to)), Style::new()),
        _ if line.is_unshaped => ("-".into(), theme.dim()),
        Shows::Bar => (bar(line.utilisation, width), theme.bar()),
        Shows::Percent if settings.outage => ("DOWN".into(), theme.bad().patch(theme.bold())),
        Shows::Percent => (
            line.utilisation.map_or("-".into(), |share| format!("{:.0}%", (share * 100.0).min(999.0))),
            Style::new(),
        ),
        Shows::Rate => (short(line.bps), Style::new()),
        Shows::TenSeconds => (short(line.ten_seconds_bps), Style::new()),
        Shows::Configured => (settings.rate_bps.map_or("-".into(), short), Style::new()),
        Shows::Queue => (queue(line), Style::new()),
        Shows::WholeQueue => match line.backlog_bytes {
            0 => (queue(line), Style::new()),
            bytes if settings.bound_bytes.is_none() => {
                (format!("{} {}B", queue(line), short(bytes)), Style::new())
            }
            _ => (format!("{}p {}", short(line.backlog_packets), queue(line)), Style::new()),
        },
        Shows::Drops if line.drops == 0 => ("0".into(), Style::new()),
        Shows::Drops => (drops(line), theme.bad()),
        Shows::Delay => (settings.delay_ns.map_or("-".into(), span), Style::new()),
        Shows::Late => match line.late {
            None => ("-".into(), Style::new()),
            Some(late) => (late_text(late.p99_ns), lateness(late.p99_ns, theme)),
        },
        Shows::Settings => (clean(&settings.configured), theme.dim()),
    };
    (shortened(&text, width.into()), style)
}

/// Green up to 100 µs, red from 1 ms.
pub(super) fn lateness(nanos: u64, theme: Theme) -> Style {
    match nanos {
        ..=100_000 => theme.good(),
        100_001..=1_000_000 => theme.warning(),
        _ => theme.bad(),
    }
}

/// Backlog and bound: `12/50p`, or in bytes `18k/64kB`.
fn queue(line: &Line) -> String {
    let (packets, bytes) = (shorter(line.backlog_packets), shorter(line.backlog_bytes));
    match (line.settings.bound_packets, line.settings.bound_bytes) {
        (Some(bound), _) => format!("{packets}/{}p", shorter(bound)),
        (None, Some(bound)) => format!("{bytes}/{}B", shorter(bound)),
        (None, None) => format!("{packets}p"),
    }
}

/// `12 queue full`, with the number for other reasons: `12 queue full +3`.
pub(super) fn drops(line: &Line) -> String {
    let Some((reason, main)) = line.reasons.first() else { return short(line.drops) };
    let rest: u64 = line.reasons[1..].iter().map(|(_, packets)| packets).sum();
    let more = if rest > 0 { format!(" +{}", short(rest)) } else { String::new() };
    format!("{} {reason}{more}", short(*main))
}

/// A bar in steps of an eighth of a character.
fn bar(share: Option<f64>, width: u16) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.unwrap_or(0.0).clamp(0.0, 1.0) * f64::from(width) * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}
