//! The graph of a group: its nodes on an ellipse, and its links with what crosses them.

use std::collections::BTreeSet;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::Span;
use ratatui::widgets::canvas::{Canvas, Line as Stroke};

use super::super::app::{App, Page};
use super::super::graph::{Edge, Graph};
use super::super::model::Line;
use super::super::units::short;
use super::clean;
use super::theme::Theme;

/// Rows of the table that stay visible, and bounds on the height of the graph.
const ROWS: u16 = 6;
const LOWEST: u16 = 7;
const HIGHEST: u16 = 20;
/// Dots of a character.
const WIDE: f64 = 2.0;
const HIGH: f64 = 4.0;

/// The areas of the graph, empty without a group or room, and of the table.
pub(super) fn split(body: Rect, app: &App) -> [Rect; 2] {
    let has_graph = app.page == Page::Table && app.model().graph.is_some();
    let height = match body.height.saturating_sub(ROWS).min(HIGHEST) {
        height if has_graph && height >= LOWEST => height,
        _ => 0,
    };
    Layout::vertical([Constraint::Length(height), Constraint::Min(1)]).areas(body)
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, theme: Theme) {
    let Some(graph) = app.model().graph.as_ref().filter(|_| area.height > 0) else { return };
    let (width, height) = (f64::from(area.width) * WIDE, f64::from(area.height) * HIGH);
    let places = places(graph, width, height);
    let at = |node: &String| graph.nodes.iter().position(|other| other == node).map(|at| places[at]);
    let chosen = app.line();
    let canvas = Canvas::default().x_bounds([0.0, width]).y_bounds([0.0, height]).paint(|picture| {
        let ends = |edge: &Edge| Some((at(&edge.nodes[0])?, at(&edge.nodes[1])?));
        for edge in &graph.edges {
            let Some(((x1, y1), (x2, y2))) = ends(edge) else { continue };
            picture.draw(&Stroke::new(x1, y1, x2, y2, colour(app, edge, theme)));
        }
        picture.layer();
        let mut print = |(x, y): (f64, f64), text: String, style| {
            let text = clean(&text);
            let left = x - text.chars().count() as f64 * WIDE / 2.0;
            // Otherwise it has the colour of the line below it.
            let style = Style::new().fg(Color::Reset).patch(style);
            picture.print(left.clamp(0.0, width), y, Span::styled(text, style));
        };
        for edge in &graph.edges {
            let Some((a, b)) = ends(edge) else { continue };
            let is_chosen = chosen.is_some_and(|line| Some(&line.run) == edge.run.as_ref());
            let style = if is_chosen { theme.selected() } else { theme.dim() };
            for (from, (here, there)) in edge.nodes.iter().zip([(a, b), (b, a)]) {
                let Some(words) = words(app, edge, from, there.0 >= here.0) else { continue };
                print((here.0 + (there.0 - here.0) / 3.0, here.1 + (there.1 - here.1) / 3.0), words, style);
            }
        }
        for (node, place) in graph.nodes.iter().zip(&places) {
            print(*place, format!("[{node}]"), theme.bold());
        }
    });
    frame.render_widget(canvas, area);
}

/// The places of the nodes: on an ellipse, from the left. One that is beside all others is in the middle.
fn places(graph: &Graph, width: f64, height: f64) -> Vec<(f64, f64)> {
    let beside = |node: &String| {
        let of_node = graph.edges.iter().filter(|edge| edge.nodes.contains(node));
        let others = of_node.flat_map(|edge| &edge.nodes).filter(|other| *other != node);
        others.collect::<BTreeSet<_>>().len()
    };
    let count = graph.nodes.len();
    let hub = graph.nodes.iter().position(|node| count > 3 && beside(node) == count - 1);
    let around = (count - usize::from(hub.is_some())).max(1) as f64;
    let mut next = 0.0;
    let place = |number| {
        if Some(number) == hub {
            return (width / 2.0, height / 2.0);
        }
        let angle = std::f64::consts::PI * (1.0 + 2.0 * next / around);
        next += 1.0;
        (width * (0.5 + 0.4 * libm::cos(angle)), height * (0.5 - 0.42 * libm::sin(angle)))
    };
    (0..count).map(place).collect()
}

/// The directions of a link.
fn lines<'a>(app: &'a App, edge: &'a Edge) -> impl Iterator<Item = &'a Line> {
    let is_its = |line: &&Line| edge.run.as_deref().is_some_and(|run| line.run == run);
    app.model().lines.iter().filter(is_its)
}

/// What a node sends into a link, with an arrow away from it: `1.2M→`; `None` for nothing.
fn words(app: &App, edge: &Edge, from: &String, is_to_the_right: bool) -> Option<String> {
    if lines(app, edge).any(|line| line.settings.outage && line.from == *from) {
        return Some("DOWN".into());
    }
    let bps: u64 = lines(app, edge).filter(|line| line.from == *from).map(|line| line.bps).sum();
    let rate = short(bps);
    (bps > 0).then(|| if is_to_the_right { format!("{rate}→") } else { format!("←{rate}") })
}

/// By the utilisation of the busier direction.
fn colour(app: &App, edge: &Edge, theme: Theme) -> Color {
    let used = lines(app, edge).filter_map(|line| line.utilisation).reduce(f64::max);
    let is_down = lines(app, edge).any(|line| line.settings.outage);
    let style = match used {
        _ if edge.run.is_none() => theme.dim(),
        _ if is_down => theme.bad(),
        None => theme.bar(),
        Some(used) if used > 0.9 => theme.bad(),
        Some(used) if used > 0.5 => theme.warning(),
        Some(_) => theme.good(),
    };
    style.fg.unwrap_or(Color::Reset)
}
