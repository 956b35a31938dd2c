//! Details of one direction of a link: history, classes, drops by reason, settings.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::{Block, Borders, Paragraph, RenderDirection, Sparkline, Wrap};

use super::super::app::App;
use super::super::model::{Class, Line, Sample};
use super::super::units::{age, short, span};
use super::table::{drops, lateness};
use super::theme::Theme;
use super::{clean, late_text};

/// Maximum number of samples shown: five minutes at one per second.
const MOST_SHOWN: usize = 300;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, theme: Theme) {
    let Some(line) = app.line() else {
        frame.render_widget(Paragraph::new("this link no longer exists; Esc shows all"), area);
        return;
    };
    let details = details(line, theme);
    // Two rows of charts, or one on a low terminal.
    let charts = match area.height {
        ..10 => 4,
        10..16 => 8,
        16..30 => 10,
        _ => 16,
    };
    let [title, charts, rest] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(charts), Constraint::Min(0)]).areas(area);
    let ends = format!("  {} → {}", line.from, line.to);
    let mut head = vec![Span::styled(clean(&line.name), theme.bold()), Span::raw(clean(&ends))];
    if line.settings.outage {
        head.push(Span::styled("  DOWN", theme.bad().patch(theme.bold())));
    }
    frame.render_widget(Paragraph::new(Text::from(head)), title);
    let [upper, lower] = Layout::vertical([Constraint::Fill(1); 2]).areas(charts);
    let [a, b] = Layout::horizontal([Constraint::Fill(1); 2]).spacing(1).areas(upper);
    let [c, d] = Layout::horizontal([Constraint::Fill(1); 2]).spacing(1).areas(lower);
    let (model, key) = app.model().origin(line);
    let samples: Vec<Sample> = model.history(&key).collect();
    let seen = model.seen();
    let window = |area: Rect, of: fn(&Sample) -> f64, joined: fn(&[f64]) -> f64| {
        let width = usize::from(area.width.max(1));
        grouped(&samples, seen, width, of, joined)
    };
    let rate = line.settings.rate_bps.unwrap_or(0);
    let utilisation = line.utilisation.map_or(String::new(), |share| format!(" ({:.0}%)", share * 100.0));
    let apart = model.apart_ns();
    let chart =
        |title: String, (values, each): (Vec<u64>, usize), most: u64, words: fn(u64) -> String, style| {
            let greatest = values.iter().copied().max().unwrap_or(0).max(most);
            let shown = age(values.len() as u64 * each as u64 * apart / 1_000_000_000);
            Chart { title, scale: format!("to {}, {shown}", words(greatest)), values, most: greatest, style }
        };
    let rates = window(a, |sample| f64::from(sample.bps), mean);
    let waiting = window(b, |sample| f64::from(sample.waiting), greatest);
    let dropped = window(c, |sample| f64::from(sample.drops), greatest);
    let late = window(d, |sample| f64::from(sample.late_ns), greatest);
    chart(format!("rate {}bit/s{utilisation}", short(line.bps)), rates, rate, short, theme.bar())
        .draw(frame, a, theme);
    let bound = line.settings.bound_packets.unwrap_or(0);
    let title = format!("queue {} packets, {}B", short(line.backlog_packets), short(line.backlog_bytes));
    chart(title, waiting, bound, short, theme.warning()).draw(frame, b, theme);
    chart(format!("drops {}/s", short(line.drops)), dropped, 1, short, theme.bad()).draw(frame, c, theme);
    let now = line.late.map_or("-".into(), |late| late_text(late.p99_ns));
    let style = line.late.map_or(Style::new(), |late| lateness(late.p99_ns, theme));
    chart(format!("p99 lateness {now}"), late, 1_000, late_text, style).draw(frame, d, theme);
    frame.render_widget(Paragraph::new(details).wrap(Wrap { trim: false }).scroll((app.scrolled, 0)), rest);
}

/// Values over time, latest on the right.
struct Chart {
    title: String,
    /// The value at its top, and its duration.
    scale: String,
    values: Vec<u64>,
    most: u64,
    style: Style,
}

impl Chart {
    fn draw(&self, frame: &mut Frame<'_>, area: Rect, theme: Theme) {
        let mut line = Block::new().borders(Borders::TOP).border_style(theme.dim()).title(self.title.clone());
        if Text::raw(&self.title).width() + Text::raw(&self.scale).width() < usize::from(area.width) {
            line = line.title(Text::styled(self.scale.clone(), theme.dim()).right_aligned());
        }
        let chart = Sparkline::default()
            .block(line)
            .data(self.values.iter().rev().copied())
            .direction(RenderDirection::RightToLeft)
            .max(self.most.max(1))
            .style(self.style);
        frame.render_widget(chart, area);
    }
}

/// Groups the last samples into at most this many groups of equal size; returns that size, too. Groups
/// always start at the same samples, so that the chart scrolls without flicker.
fn grouped(
    samples: &[Sample],
    seen: u64,
    width: usize,
    of: fn(&Sample) -> f64,
    joined: fn(&[f64]) -> f64,
) -> (Vec<u64>, usize) {
    let each = samples.len().min(MOST_SHOWN).div_ceil(width).max(1);
    // The number of the first stored sample.
    let first = seen - samples.len() as u64;
    let skipped = (each as u64 - first % each as u64) as usize % each;
    let values: Vec<f64> = samples.iter().skip(skipped).map(of).collect();
    let groups: Vec<u64> = values.chunks(each).map(|group| joined(group).round() as u64).collect();
    let from = groups.len().saturating_sub(width.min(MOST_SHOWN.div_ceil(each)));
    (groups[from..].to_vec(), each)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn details(line: &Line, theme: Theme) -> Vec<Text<'static>> {
    let entry = |what: &str, text: String| {
        Text::from(vec![Span::styled(format!("{what:<9} "), theme.dim()), Span::raw(clean(&text))])
    };
    let mut lines = vec![entry("settings", line.settings.configured.clone())];
    if let Some(delay) = line.settings.delay_ns {
        let means =
            format!("mean {} one way; {}bit/s over ten seconds", span(delay), short(line.ten_seconds_bps));
        lines.push(entry("delay", means));
    }
    let total: Vec<String> =
        line.all_reasons.iter().map(|(reason, packets)| format!("{reason} {packets}")).collect();
    let dropped = if total.is_empty() { "nothing since the start".into() } else { total.join(", ") };
    lines.push(entry("dropped", dropped));
    if !line.reasons.is_empty() {
        lines.push(entry("now", format!("{} a second", drops(line))));
    }
    if !line.classes.is_empty() {
        lines.push(Text::default());
        lines.extend(classes(&line.classes, theme));
    }
    lines
}

fn classes(classes: &[Class], theme: Theme) -> Vec<Text<'static>> {
    let width =
        classes.iter().map(|class| Text::raw(clean(&class.name)).width()).max().unwrap_or(0).clamp(5, 24);
    let head = format!(
        "{:width$} {:>7} {:>7} {:>6} {:>8} {:>8} {:>10}",
        "CLASS", "WEIGHT", "BIT/S", "SHARE", "WAITING", "DROPS/S", "DROPPED"
    );
    let row = |class: &Class| {
        let weight = class.weight.map_or("-".into(), |weight| weight.to_string());
        Text::raw(format!(
            "{:width$} {weight:>7} {:>7} {:>5.0}% {:>8} {:>8} {:>10}",
            super::shortened(&clean(&class.name), width),
            short(class.bps),
            class.share * 100.0,
            short(class.backlog_packets),
            short(class.drops),
            class.dropped_packets,
        ))
    };
    std::iter::once(Text::styled(head, theme.dim())).chain(classes.iter().map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_their_samples_while_time_goes_on() {
        let samples: Vec<_> = (0..100).map(|at| Sample { bps: at as f32, ..Sample::default() }).collect();
        let of: fn(&Sample) -> f64 = |sample| f64::from(sample.bps);
        let (all, each) = grouped(&samples, 100, 200, of, greatest);
        assert_eq!((all.len(), each, all[99]), (100, 1, 99));
        let (ten, each) = grouped(&samples, 100, 10, of, greatest);
        assert_eq!((&ten[..], each), (&[9, 19, 29, 39, 49, 59, 69, 79, 89, 99][..], 10));
        // Five samples on, five of the first are gone: whole groups stay as they are.
        let later: Vec<_> = (5..105).map(|at| Sample { bps: at as f32, ..Sample::default() }).collect();
        let (ten, _) = grouped(&later, 105, 10, of, greatest);
        assert_eq!(ten, [19, 29, 39, 49, 59, 69, 79, 89, 99, 104]);
        assert_eq!(grouped(&[], 0, 10, of, mean), (Vec::new(), 1));
    }
}
