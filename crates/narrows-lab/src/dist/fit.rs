//! Fits named distributions to a sample and ranks them.
//!
//! Each is fitted by maximum likelihood. They are ranked by Akaike's criterion, `AIC = 2k − 2·ln L` with k parameters
//! (1974, doi:10.1109/TAC.1974.1100705): lower is better, and a fit 10 above the best has almost no support. The
//! Kolmogorov-Smirnov distance is between the sample and the distribution as written in a scenario, with times
//! rounded to a nanosecond and numbers to nine digits. Its p-value assumes a distribution that was not fitted to the
//! sample, so it is too large: a small one refutes the distribution, a large one does not prove it.
//!
//! The derivation of the criterion assumes a likelihood that is smooth in the parameters. For uniform and Pareto
//! distributions, and for the shift of an exponential one, it is not; there the criterion is only a guide.

use narrows_core::model::{Distribution, DistributionError};
use serde::Serialize;

use super::estimate::{Kind, ln_likelihood};
use super::mixture;
use super::shape::{Shape, Value, number, rounded_number, rounded_time, time};
use crate::statistics::{KolmogorovSmirnov, Sample};

/// The fits to a sample.
#[derive(Clone, Debug)]
pub struct Fits {
    /// Best first; may be empty.
    pub fits: Vec<Fit>,
    /// What was not fitted, and why.
    pub left_out: Vec<(String, String)>,
}

/// A fitted distribution.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Its name.
    pub name: &'static str,
    /// The weight and shape of each component; one, or two for a mixture.
    pub parts: Vec<(f64, Shape)>,
    /// The shift, in nanoseconds.
    pub shift: f64,
    /// The number of fitted parameters.
    pub parameters: u32,
    /// The log-likelihood, of densities per nanosecond.
    pub ln_likelihood: f64,
    /// The distance between sample and fit.
    pub kolmogorov_smirnov: KolmogorovSmirnov,
    /// The engine's distribution, with the parameters as written by [`Fit::entry`].
    pub distribution: Distribution,
}

/// Weights and shapes.
type Parts = Vec<(f64, Shape)>;

/// Kinds, their names, and whether a shift makes sense: normal, uniform and Pareto distributions already have a
/// location or free ends.
const KINDS: [(Kind, &str, Option<&str>); 7] = [
    (Kind::Normal, "normal", None),
    (Kind::LogNormal, "log-normal", Some("log-normal, shifted")),
    (Kind::Exponential, "exponential", Some("exponential, shifted")),
    (Kind::Gamma, "gamma", Some("gamma, shifted")),
    (Kind::Weibull, "Weibull", Some("Weibull, shifted")),
    (Kind::Pareto, "Pareto", None),
    (Kind::Uniform, "uniform", None),
];

/// Fits all named distributions to delays in nanoseconds. A sample whose values are all equal gets no fits; callers
/// must check that there are at least as many values as parameters.
pub fn fit(sample: &Sample) -> Fits {
    let mut fits = Fits { fits: Vec::new(), left_out: Vec::new() };
    for (kind, name, shifted) in KINDS {
        let found = kind.best(sample.values()).map(|shape| (vec![(1.0, shape)], 0.0));
        fits.take(sample, name, found);
        if let Some(name) = shifted {
            let found = kind.best_shifted(sample).map(|(shift, shape)| (vec![(1.0, shape)], shift));
            fits.take(sample, name, found);
        }
    }
    for (name, of_logs) in [("mixture of two normals", false), ("mixture of two log-normals", true)] {
        let found = mixture::best(sample.values(), of_logs).map(|parts| (parts.to_vec(), 0.0));
        fits.take(sample, name, found);
    }
    fits.fits.sort_by(|a, b| a.aic().total_cmp(&b.aic()));
    fits
}

impl Fits {
    /// The fit with the lowest AIC.
    pub fn best(&self) -> Option<&Fit> {
        self.fits.first()
    }

    fn take(&mut self, sample: &Sample, name: &'static str, found: Result<(Parts, f64), &'static str>) {
        let fit = found.map_err(str::to_owned).and_then(|(parts, shift)| {
            Fit::new(name, sample, parts, shift).map_err(|error| error.to_string())
        });
        match fit {
            Ok(fit) if fit.ln_likelihood.is_finite() => self.fits.push(fit),
            Ok(_) => self.left_out.push((name.into(), "its likelihood is beyond all numbers".into())),
            Err(why) => self.left_out.push((name.into(), why)),
        }
    }
}

impl Fit {
    fn new(name: &'static str, sample: &Sample, parts: Parts, shift: f64) -> Result<Self, DistributionError> {
        let of_parts: u32 = parts.iter().map(|(_, shape)| shape.parameters().len() as u32).sum();
        // All weights but one are free.
        let parameters = of_parts + parts.len() as u32 - 1 + u32::from(shift != 0.0);
        let ln_likelihood = ln_likelihood(sample.values(), |x| ln_density(&parts, x - shift));
        let distribution = engine(&parts, shift)?;
        let kolmogorov_smirnov = sample.kolmogorov_smirnov(|x| distribution.cdf(x));
        Ok(Self { name, parts, shift, parameters, ln_likelihood, kolmogorov_smirnov, distribution })
    }

    /// Akaike's criterion, of densities per nanosecond.
    pub fn aic(&self) -> f64 {
        2.0 * f64::from(self.parameters) - 2.0 * self.ln_likelihood
    }

    /// Its line in a scenario.
    pub fn entry(&self) -> String {
        let mut inside = match &self.parts[..] {
            [(_, shape)] => shape.entry(),
            parts => {
                let part = |(weight, shape): &(f64, Shape)| {
                    format!("{{ weight = {}, {} }}", number(*weight), shape.entry())
                };
                let parts: Vec<String> = parts.iter().map(part).collect();
                format!("mixture = [ {} ]", parts.join(", "))
            }
        };
        if self.shift != 0.0 {
            inside += &format!(", shift = \"{}\"", time(self.shift));
        }
        format!("delay = {{ {inside} }}")
    }

    /// Its parameters, as text for people.
    pub fn words(&self) -> String {
        let list = |shape: &Shape| {
            let words: Vec<String> =
                shape.parameters().iter().map(|(name, value)| format!("{name} {}", value.words())).collect();
            words.join(", ")
        };
        let mut words: Vec<String> = match &self.parts[..] {
            [(_, shape)] => vec![list(shape)],
            parts => parts
                .iter()
                .map(|(weight, shape)| format!("{:.1} %: {}", weight * 100.0, list(shape)))
                .collect(),
        };
        if self.shift != 0.0 {
            words.push(format!("shift {}", Value::Time(self.shift).words()));
        }
        words.join(if self.parts.len() > 1 { "; " } else { ", " })
    }

    /// As JSON; times in nanoseconds.
    pub fn json(&self) -> FitJson {
        let part = |(weight, shape): &(f64, Shape)| PartJson {
            distribution: shape.name(),
            weight: *weight,
            parameters: shape.parameters().into_iter().map(|(name, value)| (name, value.raw())).collect(),
        };
        FitJson {
            name: self.name,
            parts: self.parts.iter().map(part).collect(),
            shift_ns: self.shift,
            parameters: self.parameters,
            ln_likelihood: self.ln_likelihood,
            aic: self.aic(),
            ks_distance: self.kolmogorov_smirnov.distance,
            ks_p_value: self.kolmogorov_smirnov.p_value,
            entry: self.entry(),
        }
    }
}

/// A fit as JSON. Times are in nanoseconds, densities per nanosecond.
#[derive(Clone, Debug, Serialize)]
pub struct FitJson {
    name: &'static str,
    parts: Vec<PartJson>,
    shift_ns: f64,
    parameters: u32,
    ln_likelihood: f64,
    aic: f64,
    ks_distance: f64,
    ks_p_value: f64,
    entry: String,
}

#[derive(Clone, Debug, Serialize)]
struct PartJson {
    distribution: &'static str,
    weight: f64,
    parameters: std::collections::BTreeMap<&'static str, f64>,
}

/// ln of Σ weight·density.
fn ln_density(parts: &[(f64, Shape)], x: f64) -> f64 {
    if let [(_, shape)] = parts {
        return shape.ln_density(x);
    }
    let logs: Vec<f64> =
        parts.iter().map(|(weight, shape)| libm::log(*weight) + shape.ln_density(x)).collect();
    let greatest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match greatest.is_finite() {
        true => greatest + libm::log(logs.iter().map(|log| libm::exp(log - greatest)).sum()),
        false => greatest,
    }
}

/// The engine's distribution, with parameters as written in a scenario.
fn engine(parts: &[(f64, Shape)], shift: f64) -> Result<Distribution, DistributionError> {
    let distribution = match parts {
        [(_, shape)] => shape.engine()?,
        parts => {
            let parts = parts.iter().map(|(weight, shape)| Ok((rounded_number(*weight), shape.engine()?)));
            Distribution::mixture(parts.collect::<Result<_, DistributionError>>()?)?
        }
    };
    match shift {
        0.0 => Ok(distribution),
        shift => distribution.shifted(rounded_time(shift) as i64),
    }
}
