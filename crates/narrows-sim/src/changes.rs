//! Changes during a run.

use narrows_core::{Change, Engine, LinkId, Time};
use narrows_report::RunInfo;
use narrows_scenario::{Scenario, Timeline};

use crate::error::SimError;

/// Changes of links, in order of time.
pub(crate) trait Changes {
    /// The instant of the next changes.
    fn peek(&mut self) -> Option<Time>;

    /// The changes at that instant.
    fn take(&mut self) -> Result<Vec<(LinkId, Change)>, SimError>;

    /// Updates the report's information on classes with the changes taken so far.
    fn update(&self, _info: &mut RunInfo) {}
}

/// The timeline of a scenario, applied to a copy of it.
pub(crate) struct ScenarioChanges {
    scenario: Scenario,
    timeline: Timeline,
    links: Links,
}

impl ScenarioChanges {
    pub(crate) fn new<B>(scenario: Scenario, engine: &Engine<B>, first_packet: Option<Time>) -> Self {
        let mut timeline = scenario.timeline();
        if let Some(at) = first_packet {
            timeline.first_packet(at);
        }
        Self { scenario, timeline, links: Links::new(engine) }
    }
}

impl Changes for ScenarioChanges {
    fn peek(&mut self) -> Option<Time> {
        self.timeline.peek()
    }

    fn take(&mut self) -> Result<Vec<(LinkId, Change)>, SimError> {
        let Some(event) = self.timeline.next() else { return Ok(Vec::new()) };
        let changes = self.scenario.assign_at(event.at, &event.set)?;
        Ok(self.links.changes(changes))
    }

    fn update(&self, info: &mut RunInfo) {
        info.update(&self.scenario);
    }
}

/// Link numbers by name.
pub(crate) struct Links(Vec<(String, LinkId)>);

impl Links {
    pub(crate) fn new<B>(engine: &Engine<B>) -> Self {
        let mut all: Vec<_> =
            engine.links().map(|link| (engine.view(link).name().to_owned(), link)).collect();
        // Links added later come last.
        all.sort();
        Self(all)
    }

    /// Converts changes by link name into changes by link number. The names are those of the scenario that built the
    /// network.
    pub(crate) fn changes(&self, changes: Vec<(String, Change)>) -> Vec<(LinkId, Change)> {
        let number = |name: &str| {
            let at = self.0.binary_search_by(|(link, _)| link.as_str().cmp(name));
            self.0[at.expect("a scenario names the links of its own network")].1
        };
        changes.into_iter().map(|(name, change)| (number(&name), change)).collect()
    }
}
