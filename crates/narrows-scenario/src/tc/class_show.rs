//! `tc -s class show dev X`.

use super::action::Shared;
use super::command::{Body, Command};
use crate::ScenarioError;
use crate::dialect::Words;
use crate::netem::Verb;
use crate::netem::command::{flags, skip_prompt};
use crate::problem::Problem;

/// A command that shows the classes of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassShow {
    /// `-s`: show statistics.
    pub statistics: bool,
    /// `dev`: the device; `None` for all.
    pub device: Option<String>,
}

impl ClassShow {
    /// Parses a command that shows classes; `None` for any other command.
    ///
    /// # Errors
    /// If the command is invalid.
    pub fn parse(text: &str) -> Result<Option<Self>, ScenarioError> {
        read(text).map_err(|problem| ScenarioError::new("tc", text, vec![problem]))
    }
}

fn read(text: &str) -> Result<Option<ClassShow>, Problem> {
    let mut words = Words::new(text);
    skip_prompt(&mut words);
    words.take_if("tc");
    let statistics = flags(&mut words)?;
    let Some(object) = words.peek().filter(|word| word.text.len() > 1 && "class".starts_with(word.text))
    else {
        return Ok(None);
    };
    let command = Command::read(&mut words, object.span(), &mut Shared::default())?;
    let shows = command.verb == Verb::Show && matches!(command.body, Body::Class { .. });
    Ok(shows.then_some(ClassShow { statistics, device: command.device }))
}
