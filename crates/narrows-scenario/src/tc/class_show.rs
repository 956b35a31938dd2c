//! `tc -s class show dev X`.

use super::command::{Body, Command};
use crate::ScenarioError;
use crate::dialect::Words;
use crate::netem::Verb;
use crate::netem::command::{flags, skip_prompt};
use crate::problem::Problem;

/// A command about the classes of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassShow {
    /// `-s`: with the counters.
    pub statistics: bool,
    /// `dev`: at which device; nothing for all of them.
    pub device: Option<String>,
}

impl ClassShow {
    /// Reads a command about classes; nothing where it is about something else.
    ///
    /// # Errors
    /// When it is not understood, or is to change classes.
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
    let command = Command::read(&mut words, object.span())?;
    match (command.verb, command.body) {
        (Verb::Show, Body::Class { .. }) => Ok(Some(ClassShow { statistics, device: command.device })),
        _ => Err(object
            .problem("the classes of a run are shown here, and not changed")
            .help("`narrows set link.up.scheduler.CLASS.KEY=VALUE` changes one, by its name and keys in the scenario")),
    }
}
