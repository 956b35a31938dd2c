//! Makes the changes that are due.

use narrows_core::Time;
use narrows_scenario::EngineChange;

use super::changes::Step;
use super::orders::Answer;
use super::{DataLoop, LoopError};

impl DataLoop {
    /// What counts from the first packet may begin with it: then it is in force for that packet.
    pub(super) fn first_packet(&mut self, at: Time) {
        if self.changes.first_packet(at) {
            self.inbox.answer(Answer::FirstPacket(at));
        }
    }

    /// Makes the changes that are due by then. Whether that is all of them: a turn may have generated enough before.
    pub(super) fn apply_changes(&mut self, until: Time) -> Result<bool, LoopError> {
        while let Some(at) = self.changes.next().filter(|&at| at <= until) {
            if !self.generate_before(at)? {
                return Ok(false);
            }
            let Some(step) = self.changes.take(until) else { break };
            self.catch_up(step.at)?;
            self.make(step)?;
        }
        Ok(true)
    }

    fn make(&mut self, step: Step) -> Result<(), LoopError> {
        // Later only where an input came first that the engine knew of too late.
        let at = step.at.max(self.engine.now());
        if let Some(recorder) = &mut self.recorder {
            for file in &step.logged.files {
                recorder.file(file)?;
            }
            recorder.commanded(at, &step.logged.texts)?;
        }
        let mut has_new_links = false;
        for change in step.changes {
            has_new_links |= !matches!(change, EngineChange::Link { .. });
            match change.make(&mut self.engine, at) {
                Ok(None) => {}
                // There is more time elsewhere to drop them.
                Ok(Some(rules)) => self.inbox.answer(Answer::Spent(Box::new(rules))),
                // The scenario is in step with the engine, which takes what the scenario takes.
                Err(error) => self.inbox.answer(Answer::LeftOut(at, error)),
            }
        }
        if has_new_links {
            self.share.update(&self.engine);
            if let Some(capture) = &mut self.capture {
                capture.renamed(&self.engine);
            }
        }
        Ok(())
    }
}
