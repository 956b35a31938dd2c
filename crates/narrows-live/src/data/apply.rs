//! Applies the changes that are due.

use narrows_core::Time;
use narrows_scenario::EngineChange;

use super::changes::Step;
use super::orders::Answer;
use super::{DataLoop, LoopError};

impl DataLoop {
    /// A timeline that counts from the first packet may begin with it: it then applies to that packet.
    pub(super) fn first_packet(&mut self, at: Time) {
        if self.changes.first_packet(at) {
            self.inbox.answer(Answer::FirstPacket(at));
        }
    }

    /// Applies the changes due by `until`. Returns whether those are all of them: the turn's limit of generated
    /// packets may stop it earlier.
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
        // Later only if an input preceded it that the engine learned of too late.
        let at = step.at.max(self.engine.now());
        if let Some(recorder) = &mut self.recorder {
            for file in &step.logged.files {
                recorder.file(file);
            }
            recorder.commanded(at, &step.logged.texts);
        }
        let mut has_new_links = false;
        for change in step.changes {
            has_new_links |= !matches!(change, EngineChange::Link { .. });
            match change.make(&mut self.engine, at) {
                Ok(None) => {}
                // The director has more time to drop them.
                Ok(Some(rules)) => self.inbox.answer(Answer::Spent(Box::new(rules))),
                // The scenario agrees with the engine, which accepts what the scenario accepts.
                Err(error) => self.inbox.answer(Answer::LeftOut(at, error)),
            }
        }
        if has_new_links {
            self.share.update(&self.engine);
            if let Some(capture) = &mut self.capture {
                capture.renamed(&self.engine);
            }
            if let Some(packets) = &mut self.packets {
                packets.renamed(&self.engine);
            }
        }
        Ok(())
    }
}
