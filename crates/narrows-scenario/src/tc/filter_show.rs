//! `tc filter show dev X`.

use super::action::Shared;
use super::command::{Body, Command};
use crate::ScenarioError;
use crate::dialect::Words;
use crate::netem::Verb;
use crate::netem::command::{flags, skip_prompt};

/// A command that shows the filters of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterShow {
    /// `dev`: the device; `None` for all.
    pub device: Option<String>,
}

impl FilterShow {
    /// Parses a command that shows filters; `None` for any other command.
    ///
    /// # Errors
    /// If the command is invalid.
    pub fn parse(text: &str) -> Result<Option<Self>, ScenarioError> {
        let mut words = Words::new(text);
        skip_prompt(&mut words);
        words.take_if("tc");
        let wrong = |problem| ScenarioError::new("tc", text, vec![problem]);
        flags(&mut words).map_err(wrong)?;
        let Some(object) = words.peek().filter(|word| word.text.len() > 1 && "filter".starts_with(word.text))
        else {
            return Ok(None);
        };
        let command = Command::read(&mut words, object.span(), &mut Shared::default()).map_err(wrong)?;
        let shows = command.verb == Verb::Show && matches!(command.body, Body::Filter { .. });
        Ok(shows.then_some(Self { device: command.device }))
    }
}
