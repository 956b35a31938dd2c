//! Formats the fits as text.

use std::fmt::Write;

use super::fit::Fits;
use super::shape::short_time;
use crate::statistics::Sample;

/// The values in nanoseconds, where they come from, and the unit of densities.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The values.
    pub sample: &'a Sample,
    /// The name of their origin.
    pub name: &'a str,
    /// The unit of densities, as in a likelihood per millisecond, and its length in nanoseconds.
    pub unit: (&'a str, f64),
}

/// Since p-values are too large, this is far below the usual significance levels.
const REFUTED: f64 = 0.001;

const HEAD: [&str; 6] = ["", "ln L", "AIC", "ΔAIC", "KS", "p"];

impl Fits {
    /// A table of the fits, what was left out and why, and the scenario entry of the best.
    pub fn text(&self, source: Source<'_>) -> String {
        let sample = source.sample;
        let [lower, middle, upper] = sample.quartiles().map(short_time);
        let mut text = format!(
            "{} delays of {}: {} to {}, mean {}, standard deviation {}, quartiles {lower}, {middle}, {upper}\n\n",
            sample.len(),
            source.name,
            short_time(sample.least()),
            short_time(sample.greatest()),
            short_time(sample.mean()),
            short_time(sample.sd()),
        );
        self.table(&mut text, source);
        for (name, why) in &self.left_out {
            line(&mut text, format_args!("{name}: left out, {why}"));
        }
        line(
            &mut text,
            format_args!(
                "\nln L and AIC are of densities per {}. p is for a distribution that was not fitted: small values refute it,\nlarge ones do not prove it. KS and p assume independent values.",
                source.unit.0
            ),
        );
        if self.fits.iter().all(|fit| fit.kolmogorov_smirnov.p_value < REFUTED) {
            line(
                &mut text,
                format_args!(
                    "\nAll are refuted: the samples have another shape, or are not independent.\nThe values themselves can be drawn: narrows dist make --toml=samples, or --toml=cdf."
                ),
            );
        }
        if let Some(best) = self.best() {
            line(&mut text, format_args!("\nThe best by AIC, for a scenario:\n{}", best.entry()));
        }
        text
    }

    fn table(&self, text: &mut String, source: Source<'_>) {
        // A density per unit is the density per nanosecond times the nanoseconds in the unit.
        let scale = source.sample.len() as f64 * libm::log(source.unit.1);
        let least = self.best().map_or(0.0, |best| best.aic());
        let mut rows = vec![HEAD.map(str::to_owned)];
        rows.extend(self.fits.iter().map(|fit| {
            [
                fit.name.to_owned(),
                format!("{:.1}", fit.ln_likelihood + scale),
                format!("{:.1}", fit.aic() - 2.0 * scale),
                format!("{:.1}", fit.aic() - least),
                format!("{:.4}", fit.kolmogorov_smirnov.distance),
                p_value(fit.kolmogorov_smirnov.p_value),
            ]
        }));
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
        for (number, row) in rows.iter().enumerate() {
            let mut out = format!("{:<1$}", row[0], widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                out += &format!("  {cell:>width$}");
            }
            if number > 0 {
                out += &format!("  {}", self.fits[number - 1].words());
            }
            line(text, format_args!("{out}"));
        }
    }
}

fn p_value(p: f64) -> String {
    match p {
        _ if p < 1e-9 => "<1e-9".into(),
        _ if p < 0.001 => format!("{p:.0e}"),
        _ => format!("{p:.3}"),
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    writeln!(text, "{arguments}").expect("a string takes everything");
}
