//! A screen as SVG, for the documentation.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 16.2;

/// Colours that can be read on the dark ground of a terminal.
fn colour(colour: Color) -> &'static str {
    match colour {
        Color::Green => "#7ec699",
        Color::Yellow => "#e5c07b",
        Color::Red => "#f07178",
        Color::Cyan => "#56b6c2",
        _ => "#d4d4d4",
    }
}

/// What a run of cells that look alike shares.
fn look(cell: &Cell) -> (Color, Modifier) {
    (cell.fg, cell.modifier)
}

/// A screen as a picture.
pub(super) fn svg(buffer: &Buffer) -> String {
    let (columns, rows) = (f32::from(buffer.area.width), f32::from(buffer.area.height));
    let (width, height) = (columns * WIDTH + 16.0, rows * HEIGHT + 16.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#1e1e1e\"/>\n<g font-family=\"ui-monospace, \
         'DejaVu Sans Mono', Menlo, monospace\" font-size=\"14\" xml:space=\"preserve\">\n"
    );
    for (row, cells) in buffer.content.chunks(buffer.area.width.into()).enumerate() {
        let mut at = 0;
        for run in cells.chunk_by(|a, b| look(a) == look(b)) {
            let (foreground, modifier) = look(&run[0]);
            let symbols: String = run.iter().map(Cell::symbol).collect();
            let (x, y) = (8.0 + at as f32 * WIDTH, 8.0 + row as f32 * HEIGHT);
            at += run.len();
            let is_reversed = modifier.contains(Modifier::REVERSED);
            if is_reversed {
                let width = run.len() as f32 * WIDTH;
                let fill = colour(foreground);
                writeln!(svg, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{fill}\"/>").unwrap();
            }
            if symbols.trim().is_empty() {
                continue;
            }
            let fill = if is_reversed { "#1e1e1e" } else { colour(foreground) };
            let weight = if modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
            let dim = if modifier.contains(Modifier::DIM) { " opacity=\"0.7\"" } else { "" };
            let text = symbols.trim_end().replace('&', "&amp;").replace('<', "&lt;");
            let spaces = text.len() - text.trim_start().len();
            let (x, text) = (x + spaces as f32 * WIDTH, text.trim_start());
            let length = text.replace("&amp;", "&").replace("&lt;", "<").chars().count() as f32 * WIDTH;
            let y = y + 12.8;
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
                 fill=\"{fill}\"{weight}{dim}>{text}</text>"
            )
            .unwrap();
        }
    }
    svg + "</g>\n</svg>\n"
}
