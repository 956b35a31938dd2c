//! Scripts of commands, one per line.

use std::collections::{BTreeMap, BTreeSet};

use super::command::Command;
use super::shell::{self, Joined, Piece};
use super::translate::Keys;
use super::tree::Tree;
use crate::ScenarioError;
use crate::dialect::Words;
use crate::link::Way;
use crate::netem::{Verb, skip_prompt};
use crate::problem::{Found, Problem};
use crate::two_hosts;

/// tc commands, as typed or published.
#[derive(Clone, Debug)]
pub struct Script {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) commands: Vec<Command>,
    /// Devices for which the direction of outgoing packets is known.
    pub(super) known: Vec<(String, Way)>,
}

/// The settings of a device after the commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name in the script.
    pub name: String,
    /// Keys for packets that leave by the device.
    pub egress: Keys,
    /// Keys for packets that arrive at the device.
    pub ingress: Keys,
}

/// Explanation of a command, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Number of its first line.
    pub line: usize,
    /// The command, on one line.
    pub command: String,
    /// Sentences that explain it.
    pub words: Vec<String>,
}

impl Script {
    /// Parses a script. `name` is that of its file, for errors.
    ///
    /// # Errors
    /// The error says which word is invalid, at which line and column, and what is allowed there.
    pub fn parse(text: &str, name: &str) -> Result<Self, ScenarioError> {
        let mut problems = Vec::new();
        let mut commands = Vec::new();
        let pieces = shell::pieces(text).map_err(|problem| ScenarioError::new(name, text, vec![problem]))?;
        for piece in &pieces {
            match command(text, piece) {
                Ok(command) => commands.extend(command),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() && commands.is_empty() {
            problems.push(
                Problem::new("there is no command of tc")
                    .help("as in: tc qdisc add dev eth0 root tbf rate 1mbit burst 5kb latency 70ms"),
            );
        }
        match problems.is_empty() {
            true => Ok(Self { name: name.into(), text: text.into(), commands, known: Vec::new() }),
            false => Err(ScenarioError::new(name, text, problems)),
        }
    }

    pub(super) fn error(&self, problem: Problem) -> ScenarioError {
        ScenarioError::new(&self.name, &self.text, vec![problem])
    }

    /// Whether a text has commands rather than only NetEm options.
    pub fn is_meant(text: &str) -> bool {
        shell::pieces(text).unwrap_or_default().into_iter().any(|piece| {
            let mut words = text[piece.span].split_whitespace();
            let first = words.find(|word| !matches!(*word, "#" | "$" | "sudo"));
            first.is_some_and(|word| word.ends_with("tc") || matches!(word, "qdisc" | "class" | "filter"))
        })
    }

    /// Whether a text has several tc commands.
    pub fn is_several(text: &str) -> bool {
        let pieces = shell::pieces(text).unwrap_or_default();
        pieces.into_iter().filter(|piece| Self::is_meant(&text[piece.span.clone()])).count() > 1
    }

    /// For a network between interfaces of the host: sets the direction of outgoing packets for each of
    /// these devices.
    #[must_use]
    pub fn with_devices<'a>(mut self, known: impl IntoIterator<Item = (&'a str, Way)>) -> Self {
        self.known = known.into_iter().map(|(name, way)| (name.to_owned(), way)).collect();
        self
    }

    /// The devices that commands change, in the order in which they are named.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut known = BTreeSet::new();
        let changing = self.commands.iter().filter(|command| command.verb != Verb::Show);
        changing.filter_map(|command| command.device.as_deref()).filter(|name| known.insert(*name)).collect()
    }

    /// The settings of each device after all commands, in the order in which the devices are named. With
    /// `exact`, NetEm is its single queue.
    ///
    /// # Errors
    /// The error names the command that cannot be executed, or that a link cannot express.
    pub fn devices(&self, exact: bool) -> Result<Vec<Device>, ScenarioError> {
        let mut trees = Trees::default();
        let wrong = |problem| ScenarioError::new(&self.name, &self.text, vec![problem]);
        for command in self.commands.iter().filter(|command| command.verb != Verb::Show) {
            let Some(device) = &command.device else { continue };
            trees.of(device).apply(command).map_err(wrong)?;
        }
        trees
            .all
            .into_iter()
            .map(|(name, tree)| {
                let device = Device {
                    egress: tree.egress(exact).map_err(wrong)?,
                    ingress: tree.policed().map_err(wrong)?,
                    name,
                };
                // What a scenario would reject is reported here, at the command that stands for the whole.
                device.check().map_err(|problem| {
                    wrong(match tree.root() {
                        Some(root) => problem.put_at(&root.span),
                        None => problem,
                    })
                })?;
                Ok(device)
            })
            .collect()
    }

    /// Explains each command in words.
    ///
    /// # Errors
    /// As [`Script::devices`].
    pub fn explain(&self) -> Result<Vec<Explained>, ScenarioError> {
        let mut trees = Trees::default();
        let (mut line, mut counted) = (1, 0);
        let mut all = Vec::new();
        for command in &self.commands {
            let mut words = super::explain::command(command);
            if let (Some(device), true) = (&command.device, command.verb != Verb::Show) {
                let said = trees
                    .of(device)
                    .apply(command)
                    .map_err(|problem| ScenarioError::new(&self.name, &self.text, vec![problem]))?;
                words.extend(said);
            }
            let text = &self.text[command.span.clone()];
            let text: Vec<&str> = text.split_whitespace().filter(|word| *word != "\\").collect();
            // Commands are in the order of the text.
            line += self.text[counted..command.span.start].matches('\n').count();
            counted = command.span.start;
            all.push(Explained { line, command: text.join(" "), words });
        }
        Ok(all)
    }
}

impl Device {
    /// All remarks about it; `says_rate` if something else sets the rate of the link.
    pub fn remarks(&self, says_rate: bool) -> impl Iterator<Item = &str> {
        self.egress.remarks(says_rate).chain(self.ingress.remarks(says_rate))
    }

    /// Checks that a scenario accepts it.
    fn check(&self) -> Result<(), Problem> {
        let keys = || self.egress.keys.iter().chain(&self.ingress.keys);
        // Distribution tables are in files, which are looked up when a scenario is read.
        if keys().any(|(_, value)| value.contains("file = ") || value.contains(".dist")) {
            return Ok(());
        }
        let text = two_hosts::text([], keys().map(|(key, value)| (Way::Up, *key, value.as_str())));
        crate::Scenario::parse(&text, "").map(|_| ()).map_err(ScenarioError::without_place)
    }
}

/// The tree of each device, in the order in which the devices are named.
#[derive(Default)]
struct Trees {
    all: Vec<(String, Tree)>,
    numbers: BTreeMap<String, usize>,
}

impl Trees {
    fn of(&mut self, device: &str) -> &mut Tree {
        let number = self.numbers.get(device).copied().unwrap_or_else(|| {
            self.numbers.insert(device.into(), self.all.len());
            self.all.push((device.into(), Tree::default()));
            self.all.len() - 1
        });
        &mut self.all[number].1
    }
}

/// Parses one command; `None` if it has no effect on the network.
fn command(text: &str, piece: &Piece) -> Result<Option<Command>, Problem> {
    let span = piece.span.clone();
    let parts = shell::words(text, span.clone())?;
    let mut words = Words::of_parts(text, &parts, span.end);
    skip_prompt(&mut words);
    let Some(first) = words.peek() else { return Ok(None) };
    let is_tc = first.text == "tc" || first.text.ends_with("/tc");
    match piece.joined {
        Joined::After => {}
        // Commands that process output, or handle a failure, do not affect the network.
        Joined::OnFailure | Joined::Piped if !is_tc => return Ok(None),
        Joined::OnFailure => {
            return Err(first
                .problem("a command that depends on the failure of another")
                .help("scripts are read, not run: keep the command that applies"));
        }
        Joined::Piped => {
            return Err(first
                .problem("a tc command that reads another command's output")
                .help("write the commands themselves, one per line"));
        }
    }
    if let Some(variable) = text[span.clone()].find('$') {
        let rest = &text[span.start + variable..span.end];
        let name = rest.split([' ', '\t', '\n', '"']).next().unwrap_or("$");
        return Err(Problem::new(format!("{} is a variable of a shell", Found(name)))
            .at(&(span.start + variable..span.start + variable + name.len()))
            .help("scripts are read and not run: write the value itself"));
    }
    if is_tc {
        words.take();
    } else if !matches!(first.text, "qdisc" | "class" | "filter") {
        return Err(first
            .problem(format!("{} is not a command of tc", Found(first.text)))
            .help("a script has commands of tc alone, and comments after `#`"));
    }
    Command::read(&mut words, span).map(Some)
}
