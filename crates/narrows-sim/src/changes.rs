//! Changes during a run.

use narrows_core::Time;
use narrows_report::RunInfo;
use narrows_scenario::{EngineChange, Scenario, Timeline};

use crate::error::SimError;

/// Changes of the network, in order of time.
pub(crate) trait Changes {
    /// The instant of the next changes.
    fn peek(&mut self) -> Option<Time>;

    /// The changes at that instant.
    fn take(&mut self) -> Result<Vec<EngineChange>, SimError>;

    /// Updates the report's information on classes with the changes taken so far.
    fn update(&self, _info: &mut RunInfo) {}
}

/// The timeline of a scenario, applied to a copy of it.
pub(crate) struct ScenarioChanges {
    scenario: Scenario,
    timeline: Timeline,
}

impl ScenarioChanges {
    pub(crate) fn new(scenario: Scenario, first_packet: Option<Time>) -> Self {
        let mut timeline = scenario.timeline();
        if let Some(at) = first_packet {
            timeline.first_packet(at);
        }
        Self { scenario, timeline }
    }
}

impl Changes for ScenarioChanges {
    fn peek(&mut self) -> Option<Time> {
        self.timeline.peek()
    }

    fn take(&mut self) -> Result<Vec<EngineChange>, SimError> {
        let Some(event) = self.timeline.next() else { return Ok(Vec::new()) };
        Ok(self.scenario.change_at(event.at, &event.changes)?)
    }

    fn update(&self, info: &mut RunInfo) {
        info.update(&self.scenario);
    }
}
