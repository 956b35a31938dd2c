//! Axes: map values to positions, with ticks at round numbers.

/// An axis as specified.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    label: String,
    unit: String,
    logarithmic: bool,
    range: Option<(f64, f64)>,
    covers: Option<(f64, f64)>,
}

impl Axis {
    /// Values in `unit`, with a suitable prefix (`s` becomes `ms`); without a unit, plain numbers.
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), logarithmic: false, range: None, covers: None }
    }

    /// The same on a logarithmic scale. Values that are not positive are not shown.
    pub fn logarithmic(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { logarithmic: true, ..Self::linear(label, unit) }
    }

    /// Fixes the range, whatever the values of the lines.
    #[must_use]
    pub fn within(self, least: f64, most: f64) -> Self {
        Self { range: Some((least, most)), ..self }
    }

    /// The range covers at least these values, so that neighbouring panels can have the same axis.
    #[must_use]
    pub fn covering(self, least: f64, most: f64) -> Self {
        Self { covers: Some((least, most)), ..self }
    }
}

/// An axis with its range and position.
#[derive(Debug)]
pub(super) struct Scaled<'a> {
    axis: &'a Axis,
    /// The values at its ends; on a logarithmic axis their decimal logarithms.
    from: f64,
    to: f64,
    /// The positions of its ends.
    places: (f64, f64),
    ticks: Vec<f64>,
    prefix: (f64, &'static str),
}

const PREFIXES: [(f64, &str); 7] =
    [(1e-9, "n"), (1e-6, "µ"), (1e-3, "m"), (1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")];

impl<'a> Scaled<'a> {
    pub(super) fn new(axis: &'a Axis, values: impl Iterator<Item = f64>, places: (f64, f64)) -> Self {
        let covers = axis.covers.map(|(least, most)| [least, most]);
        let usable =
            values.chain(covers.into_iter().flatten()).filter(|&value| !axis.logarithmic || value > 0.0);
        let found =
            usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| (a.min(value), b.max(value)));
        let (mut least, mut most) = axis.range.unwrap_or(found);
        if !(least.is_finite() && most.is_finite()) {
            (least, most) = (1.0, 10.0);
        }
        let (from, to, ticks) =
            if axis.logarithmic { decades(least, most) } else { round(least, most, axis.range) };
        let greatest = if axis.logarithmic { 1.0 } else { from.abs().max(to.abs()) };
        let prefix = PREFIXES.into_iter().rev().find(|&(factor, _)| greatest >= factor * 0.9999);
        let prefix = if axis.unit.is_empty() { (1.0, "") } else { prefix.unwrap_or(PREFIXES[0]) };
        Self { axis, from, to, places, ticks, prefix }
    }

    /// The position of a value.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = if self.axis.logarithmic {
            if value > 0.0 { libm::log10(value) } else { self.from - 1.0 }
        } else {
            value
        };
        let (first, last) = self.places;
        first + (value - self.from) / (self.to - self.from) * (last - first)
    }

    /// The position of 0, if inside the axis.
    pub(super) fn zero(&self) -> Option<f64> {
        (!self.axis.logarithmic && self.from < 0.0 && self.to > 0.0).then(|| self.place(0.0))
    }

    /// What is measured, and its unit.
    pub(super) fn label(&self) -> String {
        match self.axis.unit.as_str() {
            "" => self.axis.label.clone(),
            _ if self.axis.logarithmic => self.axis.label.clone(),
            unit => format!("{} ({}{unit})", self.axis.label, self.prefix.1),
        }
    }

    /// Ticks at round values: their positions and labels.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (f64, String)> + '_ {
        let text = |tick: f64| {
            if self.axis.logarithmic {
                let prefix = PREFIXES.into_iter().rev().find(|&(factor, _)| tick >= factor * 0.9999);
                return match (self.axis.unit.as_str(), prefix) {
                    ("", _) | (_, None) => number(tick, tick),
                    (unit, Some((factor, prefix))) => {
                        format!("{} {prefix}{unit}", number(tick / factor, tick / factor))
                    }
                };
            }
            let step = self.ticks.get(1).map_or(tick, |second| second - self.ticks[0]);
            number(tick / self.prefix.0, step / self.prefix.0)
        };
        self.ticks.iter().map(move |&tick| (self.place(tick), text(tick)))
    }
}

/// With as many decimals as the step needs, at most six.
fn number(value: f64, step: f64) -> String {
    let mut digits = 0;
    let mut scaled = step.abs();
    while digits < 6 && (scaled - scaled.round()).abs() > 1e-6 * scaled {
        scaled *= 10.0;
        digits += 1;
    }
    let text = format!("{value:.digits$}");
    if text.trim_start_matches('-').chars().all(|c| "0.".contains(c)) {
        "0".into()
    } else {
        text.replace('-', "−")
    }
}

/// The ends and ticks of a linear axis: about six steps of 1, 2 or 5 times a power of ten; the ends are ticks unless
/// the range is fixed.
fn round(least: f64, most: f64, given: Option<(f64, f64)>) -> (f64, f64, Vec<f64>) {
    let (least, most) = match most > least {
        true => (least, most),
        false if least == 0.0 => (0.0, 1.0),
        false => (least.min(0.0), least.max(0.0)),
    };
    // An axis that comes close to 0 starts there.
    let least = if given.is_none() && least > 0.0 && least < most * 0.4 { 0.0 } else { least };
    let wide = (most - least) / 6.0;
    let power = libm::pow(10.0, libm::floor(libm::log10(wide)));
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|&step| step >= wide * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = (libm::floor(least / step + 1e-9), libm::ceil(most / step - 1e-9));
    let ticks = (0..=(last - first) as u32).map(|number| (first + f64::from(number)) * step);
    match given {
        Some((from, to)) => {
            (from, to, ticks.filter(|&tick| tick >= from - step * 1e-6 && tick <= to + step * 1e-6).collect())
        }
        None => (first * step, last * step, ticks.collect()),
    }
}

/// The logarithms of the ends, and the ticks, of a logarithmic axis: at powers of ten, and at 2 and 5 times these if
/// there are few.
fn decades(least: f64, most: f64) -> (f64, f64, Vec<f64>) {
    let (low, high) = (libm::floor(libm::log10(least)), libm::ceil(libm::log10(most)));
    let (from, to) = (libm::log10(least), libm::log10(most));
    let (from, to) = if to - from < 0.5 { (low, high.max(low + 1.0)) } else { (from - 0.03, to + 0.03) };
    let steps: &[f64] = if to - from < 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let power = |exponent: u32| libm::pow(10.0, low + f64::from(exponent));
    let ticks =
        (0..=(high - low) as u32).flat_map(|exponent| steps.iter().map(move |step| step * power(exponent)));
    (from, to, ticks.filter(|tick| (from - 1e-9..=to + 1e-9).contains(&libm::log10(*tick))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        Scaled::new(axis, values.iter().copied(), (0.0, 1.0)).ticks().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        let axis = Axis::linear("time", "s");
        assert_eq!(labels(&axis, &[0.0, 0.0123]), ["0", "5", "10", "15"]); // ms
        assert_eq!(Scaled::new(&axis, [0.0123].into_iter(), (0.0, 1.0)).label(), "time (ms)");
        assert_eq!(
            labels(&Axis::linear("share", ""), &[0.0, 1.0]),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"].map(|label| if label == "0.0" { "0" } else { label })
        );
        assert_eq!(
            labels(&Axis::linear("lag", "B"), &[-900.0, 2100.0]),
            ["−1.0", "−0.5", "0", "0.5", "1.0", "1.5", "2.0", "2.5"]
        );
        assert_eq!(
            labels(&Axis::linear("n", "").within(0.0, 1.1), &[]),
            ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
    }

    #[test]
    fn logarithmic_ticks_have_their_own_prefixes() {
        let axis = Axis::logarithmic("delay", "s");
        assert_eq!(labels(&axis, &[0.000_08, 0.3]), ["100 µs", "1 ms", "10 ms", "100 ms"]);
        assert_eq!(labels(&axis, &[0.001, 0.05]), ["1 ms", "2 ms", "5 ms", "10 ms", "20 ms", "50 ms"]);
        let scaled = Scaled::new(&axis, [0.001, 0.1].into_iter(), (0.0, 100.0));
        assert!((scaled.place(0.01) - 50.0).abs() < 1e-9);
        assert!(scaled.place(0.0) < 0.0);
    }
}
