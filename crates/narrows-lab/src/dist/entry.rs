//! Delay entries of scenarios: parsed into distributions, and written from distributions.

use narrows_core::model::Distribution;
use narrows_scenario::{DelaySource, Direction, Scenario, ScenarioError, Way};

use super::shape::{number, rounded_time, time};

/// Why a text is not a delay distribution.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EntryError {
    /// It is not a valid delay.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// It is a valid delay without a distribution.
    #[error("a {0} has no distribution that could be drawn or made into a table")]
    NoDistribution(&'static str),
}

/// Parses `{ gamma = { … }, shift = "5ms" }`, `10ms`, or a whole line `delay = …`, as in a scenario. `origin` is the
/// location named in errors; files that it names are searched in the working directory.
///
/// # Errors
/// If it is invalid.
pub fn read_entry(text: &str, origin: &str) -> Result<Distribution, EntryError> {
    let text = text.trim();
    let value = text.strip_prefix("delay").map(str::trim_start).and_then(|rest| rest.strip_prefix('='));
    let value = value.unwrap_or(text).trim();
    let quote = if value.starts_with(['{', '"', '\'']) { "" } else { "\"" };
    // The delay is on the first line, so that an error's line number is that of the text.
    let scenario = format!(
        "links.link.delay = {quote}{value}{quote}\nlinks.link.between = [\"a\", \"b\"]\nhosts.a = {{}}\nhosts.b = {{}}\n"
    );
    let scenario = Scenario::parse(&scenario, origin)?;
    let up = scenario.links.first().and_then(|link| link.direction(Way::Up));
    let delay = up.map(Direction::effective_delay);
    match delay.map(|delay| delay.source) {
        Some(DelaySource::Constant(value)) => {
            Ok(Distribution::constant(value.nanos() as f64).expect("a delay of a scenario is in range"))
        }
        Some(DelaySource::Drawn { distribution, .. }) => Ok(distribution.engine().clone()),
        Some(DelaySource::Pattern(_)) => Err(EntryError::NoDistribution("pattern")),
        Some(DelaySource::Cell(_)) => Err(EntryError::NoDistribution("cell")),
        Some(DelaySource::Feed(_)) => Err(EntryError::NoDistribution("feed")),
        Some(_) | None => Err(EntryError::NoDistribution("list of classes")),
    }
}

/// With this many points a distribution function is accurate to half a percent of probability.
const POINTS: u32 = 200;
const BINS: u32 = 100;

/// `delay = { cdf = … }` from points at equal steps of probability. `quantile(p)` is in nanoseconds, from the minimum
/// at 0 to the maximum at 1; both must be finite.
pub fn cdf_entry(quantile: impl Fn(f64) -> f64) -> String {
    let point = |step: u32| {
        let share = f64::from(step) / f64::from(POINTS);
        format!("[\"{}\", {}]", time(quantile(share)), number(share))
    };
    let points: Vec<String> = (0..=POINTS).map(point).collect();
    format!("delay = {{ cdf = {{ points = [{}] }} }}", points.join(", "))
}

/// `delay = { histogram = … }` from bins of equal width between minimum and maximum, weighted with the share in each.
/// `cdf(x)` takes nanoseconds. If minimum and maximum are equal, the result is a constant delay.
pub fn histogram_entry(least: f64, greatest: f64, cdf: impl Fn(f64) -> f64) -> String {
    let (least, greatest) = (rounded_time(least), rounded_time(greatest));
    let width = (greatest - least) / f64::from(BINS);
    if width <= 0.0 {
        return format!("delay = \"{}\"", time(least));
    }
    // Bins narrower than a nanosecond would have zero width.
    let mut edges: Vec<f64> = (0..=BINS).map(|edge| rounded_time(least + f64::from(edge) * width)).collect();
    edges.dedup();
    let mut bins = Vec::new();
    let mut below = 0.0;
    for pair in edges.windows(2) {
        let share = cdf(pair[1]) - below;
        below += share;
        if share > 0.0 {
            bins.push(format!("[\"{}\", \"{}\", {}]", time(pair[0]), time(pair[1]), number(share)));
        }
    }
    format!("delay = {{ histogram = {{ bins = [{}] }} }}", bins.join(", "))
}
