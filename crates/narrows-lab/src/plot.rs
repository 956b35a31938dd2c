//! Plots as SVG: panels with axes, lines and a legend, readable on light and dark backgrounds.
//!
//! A figure contains its colours as a style sheet, with alternatives for readers who prefer dark; it needs no
//! particular font, no script and no other file.
//!
//! ```
//! use narrows_lab::plot::{Axis, Figure, Line, Panel};
//!
//! let panel = Panel {
//!     title: "A straight line".into(),
//!     x: Axis::linear("time", "s"),
//!     y: Axis::linear("served", "B"),
//!     lines: vec![Line::new("flow 1", 0, vec![(0.0, 0.0), (0.01, 1500.0)])],
//! };
//! let figure = Figure { title: "Example".into(), subtitle: String::new(), columns: 1, panels: vec![panel] };
//! assert!(figure.svg().starts_with("<svg"));
//! ```

mod axis;

pub use axis::Axis;

use std::fmt::Write;

use axis::Scaled;

/// Panels arranged in rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The title.
    pub title: String,
    /// The conditions; may be empty.
    pub subtitle: String,
    /// The number of panels per row, at least 1.
    pub columns: usize,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
}

/// Lines in one coordinate system.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines; later ones are drawn over earlier ones.
    pub lines: Vec<Line>,
}

/// Points connected by straight lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name in the legend; an empty name leaves it out of the legend.
    pub name: String,
    /// The number of its colour, modulo [`COLOURS`].
    pub colour: usize,
    /// Its style.
    pub style: Style,
    /// The points, in the units of the axes.
    pub points: Vec<(f64, f64)>,
}

/// The style of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Solid: a measurement.
    #[default]
    Solid,
    /// Long dashes: a bound.
    Dashed,
    /// Dots: a reference.
    Dotted,
    /// The filled area between the line and its starting value, as in a histogram.
    Filled,
    /// A mark at each point, without a line.
    Points,
}

/// The number of distinguishable colours: those of Okabe and Ito, which colour-blind readers can distinguish, too.
pub const COLOURS: usize = LIGHT.len();

const LIGHT: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#b35c94", "#b8860b", "#4a9ed8", "#6b6b6b"];
const DARK: [&str; 7] = ["#5ab0f2", "#ff8c42", "#2fd0a0", "#e59bca", "#f0c24b", "#9ad4ff", "#b4b4b4"];

const PANEL_WIDTH: f64 = 860.0;
const PLOT_HEIGHT: f64 = 260.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 22.0;
const BELOW: f64 = 58.0;
/// The mean width of a letter, relative to the font size.
const LETTER: f64 = 0.56;
const TYPE: f64 = 14.0;
const LEGEND_LINE: f64 = 20.0;

impl Line {
    /// A solid line.
    pub fn new(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), colour, style: Style::Solid, points }
    }

    /// The same line in another style.
    #[must_use]
    pub fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }
}

impl Figure {
    /// The figure as SVG text.
    pub fn svg(&self) -> String {
        let columns = self.columns.max(1);
        let widest = self.panels.len().clamp(1, columns) as f64;
        let width = if columns == 1 { PANEL_WIDTH } else { PANEL_WIDTH * 0.62 };
        let mut body = String::new();
        let mut top = if self.subtitle.is_empty() { 52.0 } else { 74.0 };
        for (number, row) in self.panels.chunks(columns).enumerate() {
            let legend = row.iter().map(|panel| panel.legend_height(width)).fold(0.0, f64::max);
            for (column, panel) in row.iter().enumerate() {
                let identity = number * columns + column;
                panel.draw(&mut body, identity, column as f64 * width, top, width, legend);
            }
            top += 34.0 + legend + PLOT_HEIGHT + BELOW;
        }
        let (width, height) = (width * widest, top);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" font-family=\"Inter, 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif\" \
             font-size=\"{TYPE}\">\n{}",
            style_sheet(),
        );
        write(
            &mut svg,
            format_args!("<rect class=\"ground\" width=\"{width:.0}\" height=\"{height:.0}\"/>\n"),
        );
        text(&mut svg, "title", 20.0, 34.0, &self.title);
        text(&mut svg, "note", 20.0, 58.0, &self.subtitle);
        svg + &body + "</svg>\n"
    }
}

impl Panel {
    fn draw(&self, out: &mut String, identity: usize, left: f64, top: f64, width: f64, legend: f64) {
        text(out, "heading", left + 20.0, top + 20.0, &self.title);
        self.draw_legend(out, left + 20.0, top + 34.0, width - 40.0);
        let (x0, x1) = (left + LEFT, left + width - RIGHT);
        let y1 = top + 34.0 + legend;
        let y0 = y1 + PLOT_HEIGHT;
        let values = |of: fn(&(f64, f64)) -> f64| {
            self.lines
                .iter()
                .flat_map(move |line| line.points.iter().map(of))
                .filter(|value| value.is_finite())
        };
        let x = Scaled::new(&self.x, values(|point| point.0), (x0, x1));
        let y = Scaled::new(&self.y, values(|point| point.1), (y0, y1));
        for (at, label) in x.ticks() {
            write(out, format_args!("<path class=\"grid\" d=\"M{at:.1} {y0:.1}V{y1:.1}\"/>\n"));
            text(out, "tick middle", at, y0 + 20.0, &label);
        }
        for (at, label) in y.ticks() {
            write(out, format_args!("<path class=\"grid\" d=\"M{x0:.1} {at:.1}H{x1:.1}\"/>\n"));
            text(out, "tick end", x0 - 8.0, at + 5.0, &label);
        }
        if let Some(zero) = y.zero() {
            write(out, format_args!("<path class=\"axis\" d=\"M{x0:.1} {zero:.1}H{x1:.1}\"/>\n"));
        }
        write(out, format_args!("<path class=\"axis\" d=\"M{x0:.1} {y1:.1}V{y0:.1}H{x1:.1}\"/>\n"));
        text(out, "label middle", (x0 + x1) / 2.0, y0 + 42.0, &x.label());
        let (label_x, label_y) = (left + 20.0, (y0 + y1) / 2.0);
        write(
            out,
            format_args!(
                "<text class=\"label middle\" transform=\"translate({label_x:.1} {label_y:.1}) rotate(-90)\">{}</text>\n",
                escaped(&y.label())
            ),
        );
        let (clip_width, clip_height) = (x1 - x0, y0 - y1);
        write(
            out,
            format_args!(
                "<clipPath id=\"p{identity}\"><rect x=\"{x0:.1}\" y=\"{:.1}\" width=\"{clip_width:.1}\" height=\"{:.1}\"/>\
                 </clipPath>\n<g clip-path=\"url(#p{identity})\">\n",
                y1 - 2.0,
                clip_height + 4.0,
            ),
        );
        for line in &self.lines {
            write(out, format_args!("<path class=\"line {} ", line.class()));
            let places = line.points.iter().map(|&(a, b)| (x.place(a), y.place(b)));
            match line.style {
                Style::Points => marks(out, places),
                _ => path(out, places),
            }
        }
        out.push_str("</g>\n");
    }

    /// The legend's entries: x position and line of each.
    fn legend(&self, width: f64) -> Vec<(f64, usize, &Line)> {
        let (mut x, mut row, mut entries) = (0.0, 0, Vec::new());
        for line in self.lines.iter().filter(|line| !line.name.is_empty()) {
            let wide = 34.0 + line.name.chars().count() as f64 * LETTER * (TYPE - 1.0) + 16.0;
            if x > 0.0 && x + wide > width {
                (x, row) = (0.0, row + 1);
            }
            entries.push((x, row, line));
            x += wide;
        }
        entries
    }

    fn legend_height(&self, width: f64) -> f64 {
        self.legend(width - 40.0).last().map_or(0.0, |&(_, row, _)| (row + 1) as f64 * LEGEND_LINE) + 8.0
    }

    fn draw_legend(&self, out: &mut String, left: f64, top: f64, width: f64) {
        for (x, row, line) in self.legend(width) {
            let (x, y) = (left + x, top + row as f64 * LEGEND_LINE + 6.0);
            let drawn = match line.style {
                Style::Filled => "m0 -6h26v12h-26z",
                Style::Points => "m3 0h0m10 0h0m10 0h0",
                Style::Solid | Style::Dashed | Style::Dotted => "h26",
            };
            write(out, format_args!("<path class=\"line {}\" d=\"M{x:.1} {y:.1}{drawn}\"/>\n", line.class()));
            text(out, "tick", x + 33.0, y + 5.0, &line.name);
        }
    }
}

impl Line {
    fn class(&self) -> String {
        let style = match self.style {
            Style::Solid => "",
            Style::Dashed => " dashed",
            Style::Dotted => " dotted",
            Style::Filled => " filled",
            Style::Points => " points",
        };
        format!("c{}{style}", self.colour % COLOURS)
    }
}

/// The rest of a path element. Points at the same position as the previous one are omitted.
fn path(out: &mut String, points: impl Iterator<Item = (f64, f64)>) {
    out.push_str("\" d=\"");
    let mut before = None;
    for (x, y) in points.filter(|(x, y)| x.is_finite() && y.is_finite()) {
        let place = (format!("{x:.1}"), format!("{y:.1}"));
        if before.as_ref() != Some(&place) {
            let letter = if before.is_none() { 'M' } else { 'L' };
            write(out, format_args!("{letter}{} {}", place.0, place.1));
            before = Some(place);
        }
    }
    out.push_str("\"/>\n");
}

/// The rest of a path element with a mark at each position. Marks at the same position as the previous one are
/// omitted.
fn marks(out: &mut String, points: impl Iterator<Item = (f64, f64)>) {
    out.push_str("\" d=\"");
    let mut before = String::new();
    for (x, y) in points.filter(|(x, y)| x.is_finite() && y.is_finite()) {
        // A line of zero length still has round ends.
        let mark = format!("M{x:.1} {y:.1}h0");
        if mark != before {
            out.push_str(&mark);
            before = mark;
        }
    }
    out.push_str("\"/>\n");
}

fn text(out: &mut String, class: &str, x: f64, y: f64, content: &str) {
    if !content.is_empty() {
        write(
            out,
            format_args!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n", escaped(content)),
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn write(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("a string takes everything");
}

fn style_sheet() -> String {
    let colours = |names: &[&str]| -> String {
        let rules = |(number, colour): (usize, &&str)| {
            format!(".c{number}{{stroke:{colour}}}.filled.c{number}{{fill:{colour}}}")
        };
        names.iter().enumerate().map(rules).collect()
    };
    format!(
        "<style>\n.ground{{fill:#fff}}text{{fill:#222}}.title{{font-size:20px;font-weight:600}}\
         .heading{{font-size:16px;font-weight:600}}.note{{fill:#555}}.tick{{font-size:13px;fill:#444}}\
         .middle{{text-anchor:middle}}.end{{text-anchor:end}}.grid{{stroke:#e4e4e4;fill:none}}\
         .axis{{stroke:#777;fill:none}}.line{{fill:none;stroke-width:2;stroke-linejoin:round}}\
         .dashed{{stroke-dasharray:9 5;stroke-width:1.6}}.dotted{{stroke-dasharray:2 4;stroke-width:2}}\
         .filled{{fill-opacity:.25;stroke-width:1;stroke-opacity:.6}}\
         .points{{stroke-width:4.5;stroke-linecap:round;stroke-opacity:.7}}{}\n\
         @media (prefers-color-scheme: dark){{.ground{{fill:#16181c}}text{{fill:#eee}}.note{{fill:#aaa}}\
         .tick{{fill:#bbb}}.grid{{stroke:#30343a}}.axis{{stroke:#888}}{}}}\n</style>\n",
        colours(&LIGHT),
        colours(&DARK),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(lines: Vec<Line>) -> Panel {
        Panel { title: "a < b".into(), x: Axis::linear("time", "s"), y: Axis::linear("lag", "B"), lines }
    }

    #[test]
    fn a_point_lands_where_its_axes_put_it() {
        let line = Line::new("one & two", 1, vec![(0.0, 0.0), (1.0, 10.0), (1.0, 10.0)]);
        let figure =
            Figure { title: "t".into(), subtitle: "s".into(), columns: 1, panels: vec![panel(vec![line])] };
        let svg = figure.svg();
        // The origin is the lower left corner of the panel, (1, 10) the upper right one; the third point is the second.
        let (left, right) = (LEFT, PANEL_WIDTH - RIGHT);
        let bottom = 74.0 + 34.0 + LEGEND_LINE + 8.0 + PLOT_HEIGHT;
        let expected = format!("d=\"M{left:.1} {bottom:.1}L{right:.1} {:.1}\"", bottom - PLOT_HEIGHT);
        assert!(svg.contains(&expected), "{expected} is not in {svg}");
        assert!(svg.contains("one &amp; two") && svg.contains("a &lt; b"));
    }

    #[test]
    fn areas_and_marks_are_drawn_and_named_as_such() {
        let area = Line::new("share", 0, vec![(0.0, 1.0), (1.0, 1.0)]).styled(Style::Filled);
        let marks = Line::new("ranks", 1, vec![(0.0, 0.0), (1.0, 1.0), (1.0, 1.0)]).styled(Style::Points);
        let figure = Figure {
            title: "t".into(),
            subtitle: "s".into(),
            columns: 1,
            panels: vec![panel(vec![area, marks])],
        };
        let svg = figure.svg();
        assert!(svg.contains("class=\"line c0 filled\"") && svg.contains("h26v12h-26z"));
        // Two places, each marked once.
        let path = svg.lines().rfind(|line| line.contains("c1 points")).unwrap();
        assert_eq!(path.matches("h0").count(), 2, "{path}");
    }

    #[test]
    fn a_legend_that_is_too_long_goes_on_below() {
        let lines = (0..12).map(|number| Line::new("twenty letters of it", number, Vec::new())).collect();
        let panel = panel(lines);
        let rows: Vec<usize> = panel.legend(800.0).iter().map(|entry| entry.1).collect();
        assert_eq!(rows.first(), Some(&0));
        assert!(rows.is_sorted() && rows[11] >= 2);
        assert!(panel.legend(800.0).iter().all(|entry| entry.0 < 800.0));
    }

    #[test]
    fn figures_without_a_finite_point_can_be_drawn() {
        let lines = vec![Line::new("", 0, vec![(f64::NAN, 1.0)]), Line::new("flat", 1, vec![(2.0, 5.0)])];
        let figure =
            Figure { title: String::new(), subtitle: String::new(), columns: 2, panels: vec![panel(lines)] };
        assert!(!figure.svg().contains("NaN"));
    }
}
