//! A line of a table: a ratio, what it should be, and the figures that it comes from.

/// What a figure is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    AtLeast(f64),
    AtMost(f64),
    /// It is a baseline, or for information.
    None,
}

/// Prints a table's title and head; `figure` says what the last column is.
pub(crate) fn head(title: &str, value: &str, figure: &str) {
    println!("\n{title}\n{value:>10} {:>10} {:>8}  {figure:<28}", "aim", "");
}

/// Prints a line. A value of NaN is left empty.
pub(crate) fn row(name: &str, value: f64, aim: Aim, figure: &str) {
    let (aim_text, kept) = match aim {
        Aim::AtLeast(least) => (format!("≥ {least}"), value >= least),
        Aim::AtMost(most) => (format!("≤ {most}"), value <= most),
        Aim::None => (String::new(), true),
    };
    let verdict = match aim {
        Aim::None => "",
        _ if kept => "reached",
        _ => "MISSED",
    };
    let value = if value.is_nan() { String::new() } else { format!("{value:.2}") };
    println!("{value:>10} {aim_text:>10} {verdict:>8}  {figure:<28} {name}");
}

/// Says what could not be measured here.
pub(crate) fn left_out(name: &str, why: &dyn std::fmt::Display) {
    let why = why.to_string();
    let line = why.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    println!("{:>10} {:>10} {:>8}  left out: {name}: {line}", "", "", "");
}
