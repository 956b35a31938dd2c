//! Plots a sample and fitted distributions.

use narrows_core::model::Distribution;

use super::shape::short_time;
use crate::plot::{Axis, Figure, Line, Panel, Style};
use crate::statistics::Sample;

/// The number of points of a distribution function: as many as can be distinguished.
const STEPS: usize = 500;
/// The share at either end of the sample that the first two panels may omit, so that the rest can be seen.
const HIDDEN: f64 = 0.001;
/// The same for a long tail.
const HIDDEN_TAIL: f64 = 0.01;
/// A tail is long if the maximum is this many times the median: its axes are logarithmic.
const LONG: f64 = 20.0;
/// The maximum number of bins in a histogram.
const MOST_BINS: f64 = 120.0;
/// The number of bins that enough values can fill even if the interquartile range spans two modes.
const PLAIN_BINS: f64 = 40.0;
/// This many values at each end of the sample are drawn individually; further in, as many for each doubling of the
/// share.
const ENDS: usize = 60;
const STYLES: [Style; 3] = [Style::Solid, Style::Dashed, Style::Dotted];

/// Four panels: a histogram of the sample (nanoseconds) with each distribution's expected counts; distribution
/// functions; the complementary distribution on a logarithmic axis, which distinguishes tails; and, if there are
/// distributions, a Q-Q plot, in which a perfect fit is the diagonal.
pub fn figure(title: &str, sample: &Sample, distributions: &[(String, &Distribution)]) -> Figure {
    let draw = Draw { sample, distributions, view: view(sample) };
    let [lower, middle, upper] = sample.quartiles().map(short_time);
    let quantiles = (!distributions.is_empty()).then(|| draw.quantiles());
    Figure {
        title: title.into(),
        subtitle: format!(
            "{} values, mean {}, standard deviation {}, quartiles {lower}, {middle}, {upper}",
            sample.len(),
            short_time(sample.mean()),
            short_time(sample.sd()),
        ),
        columns: 2,
        panels: [draw.histogram(), draw.cumulative(), draw.longer()].into_iter().chain(quantiles).collect(),
    }
}

struct Draw<'a> {
    sample: &'a Sample,
    distributions: &'a [(String, &'a Distribution)],
    view: (f64, f64),
}

/// The part of the axis that contains the bulk of the sample.
fn view(sample: &Sample) -> (f64, f64) {
    let hidden = if is_long(sample) { HIDDEN_TAIL } else { HIDDEN };
    let (low, high) = (sample.quantile(HIDDEN), sample.quantile(1.0 - hidden));
    let margin = (high - low).max(high.abs() * 1e-6) * 0.15;
    let (low, high) = (low - margin, high + margin);
    (low.max(sample.least().min(low + margin) - margin).max(0.0), high)
}

/// Whether a logarithmic axis is better.
fn is_long(sample: &Sample) -> bool {
    sample.least() > 0.0 && sample.greatest() > LONG * sample.median()
}

fn seconds(nanos: f64) -> f64 {
    nanos / 1e9
}

impl Draw<'_> {
    fn histogram(&self) -> Panel {
        let (low, high) = self.view;
        let values = self.sample.values();
        let [lower, _, upper] = self.sample.quartiles();
        // Freedman and Diaconis (1981); if half of the sample is one value, based on the view alone.
        let width = 2.0 * (upper - lower) / libm::cbrt(values.len() as f64);
        let plain = libm::sqrt(values.len() as f64).min(PLAIN_BINS);
        let bins = ((high - low) / width).max(plain).ceil().clamp(12.0, MOST_BINS);
        let width = (high - low) / bins;
        let mut outline = vec![(seconds(low), 0.0)];
        for bin in 0..bins as usize {
            let (from, to) = (low + bin as f64 * width, low + (bin + 1) as f64 * width);
            let inside = self.sample.cdf(to.next_down()) - self.sample.cdf(from.next_down());
            outline.extend([(seconds(from), inside), (seconds(to), inside), (seconds(to), 0.0)]);
        }
        let mut lines = vec![Line::new("sample", 0, outline).styled(Style::Filled)];
        lines.extend(self.curves(|distribution| {
            let inside = |x: f64| distribution.cdf(x + width / 2.0) - distribution.cdf(x - width / 2.0);
            self.across().map(|x| (seconds(x), inside(x))).collect()
        }));
        Panel {
            title: "Histogram".into(),
            x: self.delays(),
            y: Axis::linear(format!("share in a bin of {}", short_time(width)), ""),
            lines,
        }
    }

    fn cumulative(&self) -> Panel {
        let mut lines = vec![Line::new("sample", 0, self.steps(|share| share)).styled(Style::Solid)];
        let points =
            |distribution: &Distribution| self.across().map(|x| (seconds(x), distribution.cdf(x))).collect();
        lines.extend(self.curves(points));
        Panel {
            title: "Distribution function".into(),
            x: self.delays(),
            y: Axis::linear("share of delays up to this", "").within(0.0, 1.0),
            lines,
        }
    }

    fn longer(&self) -> Panel {
        let smallest = 0.5 / self.sample.len() as f64;
        let mut lines = vec![Line::new("sample", 0, self.steps(|share| 1.0 - share))];
        let (low, high) = (self.sample.least(), self.sample.greatest());
        let long = is_long(self.sample);
        let beyond = if long { high * 1.3 } else { high + (high - low) * 0.05 };
        lines.extend(self.curves(|distribution| {
            let across = (0..=STEPS).map(|step| {
                let part = step as f64 / STEPS as f64;
                if long { low * libm::pow(beyond / low, part) } else { low + (beyond - low) * part }
            });
            let points = across.map(|x| (seconds(x), distribution.survival(x)));
            points.take_while(|&(_, share)| share > smallest).collect()
        }));
        Panel {
            title: "Longer delays".into(),
            x: self.axis("delay").within(seconds(low), seconds(beyond)),
            y: Axis::logarithmic("share of delays beyond this", "").within(smallest * 1.4, 1.0),
            lines,
        }
    }

    fn quantiles(&self) -> Panel {
        let values = self.sample.values();
        let count = values.len();
        let chosen = || ranks(count, STEPS);
        let (low, high) = (seconds(self.sample.least()), seconds(self.sample.greatest()));
        let points = |distribution: &Distribution| -> Vec<(f64, f64)> {
            let share = |rank: usize| (rank as f64 + 0.5) / count as f64;
            chosen()
                .map(|rank| (seconds(distribution.quantile(share(rank))), seconds(values[rank])))
                .collect()
        };
        let mut lines = vec![Line::new("", 6, vec![(low, low), (high, high)])];
        for (number, (name, distribution)) in self.distributions.iter().enumerate() {
            lines.push(Line::new(name.clone(), number + 1, points(distribution)).styled(Style::Points));
        }
        // A fit that goes far beyond the sample would make the others invisible.
        let room = (high - low).max(high * 1e-6) * 0.08;
        let (least, most) = match is_long(self.sample) {
            true => (low / 1.3, high * 1.3),
            false => ((low - room).max(0.0), high + room),
        };
        Panel {
            title: "Quantiles against quantiles".into(),
            x: self.axis("by the distribution").within(least, most),
            y: self.axis("in the sample").within(least, most),
            lines,
        }
    }

    fn delays(&self) -> Axis {
        Axis::linear("delay", "s").within(seconds(self.view.0), seconds(self.view.1))
    }

    /// For delays up to the end of the tail.
    fn axis(&self, label: &str) -> Axis {
        if is_long(self.sample) { Axis::logarithmic(label, "s") } else { Axis::linear(label, "s") }
    }

    fn across(&self) -> impl Iterator<Item = f64> {
        let (low, high) = self.view;
        (0..=STEPS).map(move |step| low + (high - low) * step as f64 / STEPS as f64)
    }

    fn curves(&self, points: impl Fn(&Distribution) -> Vec<(f64, f64)>) -> Vec<Line> {
        let line = |(number, (name, distribution)): (usize, &(String, &Distribution))| {
            Line::new(name.clone(), number + 1, points(distribution)).styled(STYLES[number % STYLES.len()])
        };
        self.distributions.iter().enumerate().map(line).collect()
    }

    /// The sample's distribution function as steps.
    fn steps(&self, of: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let values = self.sample.values();
        let count = values.len();
        let mut points = Vec::new();
        let mut share = 0.0;
        for rank in ranks(count, 2 * STEPS) {
            points.push((seconds(values[rank]), of(share)));
            share = (rank + 1) as f64 / count as f64;
            points.push((seconds(values[rank]), of(share)));
        }
        points
    }
}

/// The ranks of the values drawn from a sorted sample: about `about` at equal steps, and denser towards both ends, so
/// that no step is visible on a logarithmic axis either.
fn ranks(count: usize, about: usize) -> impl Iterator<Item = usize> {
    let every = count.div_ceil(about).max(1);
    (0..count).filter(move |&rank| {
        // Steps double, so that the ranks at one step size are a subset of those at the size below.
        let finer = 1 << (rank.min(count - 1 - rank) / ENDS).max(1).ilog2();
        rank % every.min(finer) == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_shown_without_steps_and_the_bulk_in_few_points() {
        for count in [1, 2, 100, 5_000, 50_028, 1_000_000] {
            let shown: Vec<_> = ranks(count, 1000).collect();
            // At equal steps a thousand; and of each size of steps that is smaller, 60 at either end.
            let sizes = count.div_ceil(1000).ilog2() as usize + 1;
            assert!(shown.len() <= 1000 + 2 * ENDS * sizes, "{count}: {}", shown.len());
            assert_eq!((shown.first(), shown.last()), (Some(&0), Some(&(count - 1))));
            for pair in shown.windows(2) {
                // The share beyond falls by no more than a twentieth at once, or by one value.
                let [more, fewer] = [pair[0], pair[1]].map(|rank| count - rank);
                assert!(more - fewer == 1 || (more - fewer) * 20 <= more, "{count}: {more} to {fewer}");
            }
        }
    }
}
