//! What a scenario says of a delay: read as a distribution, and written from one.

use narrows_core::model::Distribution;
use narrows_scenario::{DelaySource, Direction, Scenario, ScenarioError, Way};

use super::shape::{number, rounded_time, time};

/// Why a text is no distribution of delays.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EntryError {
    /// It is no delay at all.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// It is one, but none with a distribution.
    #[error("a {0} has no distribution that could be drawn or made into a table")]
    NoDistribution(&'static str),
}

/// Reads `{ gamma = { … }, shift = "5ms" }`, `10ms`, or a whole line `delay = …`, as it stands in a scenario. `origin`
/// is what errors name as its place; files that it names are looked for in the working folder.
///
/// # Errors
/// Where it is none.
pub fn read_entry(text: &str, origin: &str) -> Result<Distribution, EntryError> {
    let text = text.trim();
    let value = text.strip_prefix("delay").map(str::trim_start).and_then(|rest| rest.strip_prefix('='));
    let value = value.unwrap_or(text).trim();
    let quote = if value.starts_with(['{', '"', '\'']) { "" } else { "\"" };
    // The line of the delay comes first, so that an error's line number is that of the text.
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
        Some(DelaySource::Feed(_)) => Err(EntryError::NoDistribution("feed")),
        Some(_) | None => Err(EntryError::NoDistribution("list of classes")),
    }
}

/// So many points give a distribution function to half a per cent of probability.
const POINTS: u32 = 200;
const BINS: u32 = 100;

/// `delay = { cdf = … }` by points of equal steps of probability. `quantile(p)` is in nanoseconds, from the least at 0
/// to the greatest at 1; both have to be finite.
pub fn cdf_entry(quantile: impl Fn(f64) -> f64) -> String {
    let point = |step: u32| {
        let share = f64::from(step) / f64::from(POINTS);
        format!("[\"{}\", {}]", time(quantile(share)), number(share))
    };
    let points: Vec<String> = (0..=POINTS).map(point).collect();
    format!("delay = {{ cdf = {{ points = [{}] }} }}", points.join(", "))
}

/// `delay = { histogram = … }` of bins of equal width from the least to the greatest value, weighted with the share in
/// them. `cdf(x)` is of nanoseconds. Where both ends are one, so is the delay.
pub fn histogram_entry(least: f64, greatest: f64, cdf: impl Fn(f64) -> f64) -> String {
    let (least, greatest) = (rounded_time(least), rounded_time(greatest));
    let width = (greatest - least) / f64::from(BINS);
    if width <= 0.0 {
        return format!("delay = \"{}\"", time(least));
    }
    // Bins of less than a nanosecond would have no width.
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
