//! Another scheduler for a link.

use narrows_scenario::{Medium, Scenario, ScenarioError};

use crate::algorithm::Algorithm;

/// The scenario with another scheduler at a link, by the same assignment as a user would make. Classes stay where the
/// algorithm can serve classes; one that knows none tells flows apart by itself.
pub(super) fn put(scenario: &Scenario, link: &str, algorithm: Algorithm) -> Result<Scenario, ScenarioError> {
    let mut changed = scenario.clone();
    let key = if has_scheduler(scenario, link) { "scheduler.type" } else { "scheduler" };
    changed.assign(&format!("{link}.{key}={algorithm}"))?;
    Ok(changed)
}

fn has_scheduler(scenario: &Scenario, link: &str) -> bool {
    scenario.links.iter().any(|candidate| match &candidate.medium {
        Medium::Shared(only) => candidate.name == link && only.scheduler.is_some(),
        Medium::Duplex { up, down } => {
            let is = |way: &str| link.strip_suffix(way) == Some(candidate.name.as_str());
            is(".up") && up.scheduler.is_some() || is(".down") && down.scheduler.is_some()
        }
    })
}
