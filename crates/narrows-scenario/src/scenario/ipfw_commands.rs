//! Parses commands for a run in the context of its scenario.

use std::io;
use std::net::IpAddr;
use std::ops::Range;

use super::Scenario;
use crate::ipfw::{Command, Context, read_all};
use crate::link::Link;
use crate::problem::ScenarioError;

/// Commands, and the link with rules that they apply to.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandsAt {
    /// The link.
    pub link: String,
    /// The commands in order, each with its text on one line.
    pub commands: Vec<(Command, String)>,
    file: String,
    text: String,
    /// Span of each command in the text.
    spans: Vec<Range<usize>>,
}

impl CommandsAt {
    /// The error for a command that cannot be executed, with its line. `number` counts commands from 0.
    pub fn refused(&self, number: usize, error: ScenarioError) -> ScenarioError {
        match self.spans.get(number) {
            Some(span) => error.within(&self.file, &self.text, span),
            None => error,
        }
    }
}

impl Scenario {
    /// Parses ipfw commands, one per line, for the named link, or for the only one with rules. Host names
    /// are those of the scenario: a run cannot wait for a name lookup.
    ///
    /// # Errors
    /// If there is no such link, and for every line that does not parse. Errors use `file` as the name of
    /// the text.
    pub fn ipfw_commands(
        &self,
        link: Option<&str>,
        file: &str,
        text: &str,
    ) -> Result<CommandsAt, ScenarioError> {
        let wrong = |problem| ScenarioError::new(file, "", vec![problem]);
        let (index, rules) = self.rules_link(link).map_err(wrong)?;
        let name = &self.links[index].name;
        let interface = rules.interface.as_deref().unwrap_or(name);
        let hosts: Vec<(String, Vec<IpAddr>)> =
            self.host_names().into_iter().map(|host| (host.clone(), self.addresses(&host))).collect();
        let interface_tables = rules.interface_tables();
        let flow_tables = rules.flow_tables();
        let context = Context {
            interfaces: &[interface],
            hosts: &hosts,
            resolve: refuse,
            interface_tables: &interface_tables,
            flow_tables: &flow_tables,
            no_router: self.is_between_hosts(&self.links[index]),
            ..Context::default()
        };
        let read = read_all(text, &context).map_err(|problems| problems.into_error(file, text))?;
        let (commands, spans) =
            read.into_iter().map(|(command, words, span)| ((command, words), span)).unzip();
        Ok(CommandsAt { link: name.clone(), commands, file: file.into(), text: text.into(), spans })
    }
}

impl Scenario {
    /// Whether both ends of a link are hosts.
    fn is_between_hosts(&self, link: &Link) -> bool {
        link.between.iter().all(|end| self.hosts.iter().any(|host| host.name == *end))
    }
}

fn refuse(_: &str) -> io::Result<Vec<IpAddr>> {
    Err(io::Error::other("a run only knows its own hosts by name: write the address"))
}
