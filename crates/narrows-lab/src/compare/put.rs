//! Replaces the scheduler of a link.

use narrows_scenario::{Link, Scenario, ScenarioError};

use crate::algorithm::Algorithm;

/// The scenario with another scheduler at a link, by the assignment that a user would make. Classes are kept if the
/// algorithm supports them; an algorithm without classes separates flows itself.
pub(super) fn put(scenario: &Scenario, link: &str, algorithm: Algorithm) -> Result<Scenario, ScenarioError> {
    let mut changed = scenario.clone();
    let key = if has_scheduler(scenario, link) { "scheduler.type" } else { "scheduler" };
    changed.assign(&format!("{link}.{key}={algorithm}"))?;
    Ok(changed)
}

fn has_scheduler(scenario: &Scenario, link: &str) -> bool {
    let mut links = scenario.links.iter().flat_map(Link::directions);
    links.any(|(name, direction)| name == link && direction.scheduler.is_some())
}
