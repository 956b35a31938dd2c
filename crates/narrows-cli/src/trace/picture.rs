//! Plots a trace, with a panel for each column over time.

use narrows_core::queue::Bound;
use narrows_core::{Duration, Rate, Time};
use narrows_lab::plot::{Axis, Figure, Line, Panel};
use narrows_scenario::trace::Trace;

/// Number of intervals of a long trace, each plotted by its minimum and maximum.
const STRETCHES: u64 = 1000;

pub(super) fn figure(name: &str, trace: &Trace) -> Figure {
    let end = trace.length().seconds();
    let mut panels = Vec::new();
    let mut panel = |title: &str, label: &str, unit: &str, colour: usize, stretches: Vec<Vec<(f64, f64)>>| {
        let lines = stretches.into_iter().map(|points| Line::new("", colour, points)).collect();
        let y = Axis::linear(label, unit).covering(0.0, 0.0);
        panels.push(Panel { title: title.into(), x: Axis::linear("time", "s").within(0.0, end), y, lines });
    };
    // Opportunities have no rate: it is plotted in steps long enough to contain some.
    let step = Duration::from_nanos((trace.length().nanos() / (STRETCHES / 8)).max(20_000_000));
    let spread = trace.opportunities().and_then(|_| trace.resample(step));
    let rates = spread.as_ref().unwrap_or(trace).rate();
    if let Some(rates) = rates {
        let title = match &spread {
            Some(_) => format!("opportunities, as a rate in steps of {step}"),
            None => "rate".into(),
        };
        let value = |rate: Rate| (rate != Rate::UNLIMITED).then_some(rate.bits_per_second() as f64);
        panel(&title, "rate", "bit/s", 0, stairs(rates, trace.length(), value));
    }
    if let Some(delays) = trace.delay() {
        panel(
            "delay, one way",
            "delay",
            "s",
            1,
            stairs(delays, trace.length(), |delay| Some(delay.seconds())),
        );
    }
    if let Some(losses) = trace.loss() {
        panel("packets lost", "share", "", 2, stairs(losses, trace.length(), |share| Some(share.as_f64())));
    }
    if let Some(shares) = trace.duplicate() {
        panel(
            "packets duplicated",
            "share",
            "",
            3,
            stairs(shares, trace.length(), |share| Some(share.as_f64())),
        );
    }
    if let Some(bounds) = trace.bound() {
        let bytes = matches!(bounds[0].1, Bound::Bytes(_));
        let value = |bound: Bound| match bound {
            Bound::Packets(packets) => Some(packets as f64),
            Bound::Bytes(bytes) => Some(bytes.get() as f64),
        };
        let (title, unit) = if bytes { ("bound", "B") } else { ("packets", "") };
        panel("queue bound", title, unit, 4, stairs(bounds, trace.length(), value));
    }
    let unlimited = rates.is_some_and(|rates| rates.iter().any(|(_, rate)| *rate == Rate::UNLIMITED));
    let gaps = if unlimited { "; no line where the rate is unlimited" } else { "" };
    let crowded = trace.info().columns.iter().any(|column| column.points as u64 > STRETCHES);
    let stretch = Duration::from_nanos(trace.length().nanos() / STRETCHES);
    let bars = match crowded && spread.is_none() {
        true => format!(
            "; where more changes than can be drawn, from the least to the greatest value in {stretch}"
        ),
        false => String::new(),
    };
    let subtitle = format!("{} trace, {}{gaps}{bars}", trace.format(), trace.length());
    Figure { title: name.into(), subtitle, columns: 1, panels }
}

/// A step line of a column's values, interrupted where there are none.
fn stairs<T: Copy>(
    column: &[(Time, T)],
    length: Duration,
    value: impl Fn(T) -> Option<f64>,
) -> Vec<Vec<(f64, f64)>> {
    let ends = column.iter().skip(1).map(|point| point.0).chain([Time::ZERO + length]);
    let stretch = (length.nanos() / STRETCHES).max(1);
    let mut lines = vec![Vec::new()];
    // For the current interval: its number, the minimum and maximum, and the last value.
    let mut within: Option<(u64, f64, f64, f64)> = None;
    for (point, end) in column.iter().zip(ends) {
        let Some(value) = value(point.1) else {
            flush(&mut lines, &mut within, stretch);
            lines.push(Vec::new());
            continue;
        };
        let (first, last) = (point.0.nanos() / stretch, end.nanos() / stretch);
        if let Some(open) = within.as_mut().filter(|open| open.0 == first) {
            *open = (first, open.1.min(value), open.2.max(value), value);
        } else {
            flush(&mut lines, &mut within, stretch);
            within = Some((first, value, value, value));
        }
        if last > first {
            let many = within.is_some_and(|open| open.1 != open.2);
            if many {
                flush(&mut lines, &mut within, stretch);
            }
            within = None;
            let line = lines.last_mut().expect("there is a first line");
            line.push((point.0.seconds(), value));
            line.push((end.seconds(), value));
        }
    }
    flush(&mut lines, &mut within, stretch);
    lines.retain(|line| !line.is_empty());
    lines
}

/// Plots an interval as a bar from its minimum to its maximum.
fn flush(lines: &mut [Vec<(f64, f64)>], within: &mut Option<(u64, f64, f64, f64)>, stretch: u64) {
    let Some((number, least, greatest, last)) = within.take() else { return };
    let at = Time::from_nanos(number * stretch).seconds();
    let line = lines.last_mut().expect("there is a first line");
    line.extend([(at, least), (at, greatest), (at, last)]);
}
