//! Scripts of commands, one to a line.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::command::Command;
use super::translate::Keys;
use super::tree::Tree;
use crate::ScenarioError;
use crate::dialect::Words;
use crate::link::Way;
use crate::netem::{Verb, skip_prompt};
use crate::problem::{Found, Problem};
use crate::two_hosts;

/// Commands of tc, as they are typed or published.
#[derive(Clone, Debug)]
pub struct Script {
    name: String,
    text: String,
    commands: Vec<Command>,
    /// Devices of which it is known which way what leaves there goes.
    pub(super) known: Vec<(String, Way)>,
}

/// What commands made of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name in the script.
    pub name: String,
    /// What packets meet that leave there.
    pub egress: Keys,
    /// What packets meet that arrive there.
    pub ingress: Keys,
}

/// What a command does, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The number of its first line.
    pub line: usize,
    /// The command, on one line.
    pub command: String,
    /// Sentences about it.
    pub words: Vec<String>,
}

impl Script {
    /// Reads a script. `name` is that of its file, for errors.
    ///
    /// # Errors
    /// Say which word is not understood, at which line and column, and what is allowed there.
    pub fn parse(text: &str, name: &str) -> Result<Self, ScenarioError> {
        let mut problems = Vec::new();
        let mut commands = Vec::new();
        for span in lines(text) {
            match command(text, span) {
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

    /// Whether a text is more than options of NetEm: commands.
    pub fn is_meant(text: &str) -> bool {
        lines(text).into_iter().any(|span| {
            let mut words = Words::within(text, span);
            skip_prompt(&mut words);
            words.peek().is_some_and(|word| {
                word.text.ends_with("tc") || matches!(word.text, "qdisc" | "class" | "filter")
            })
        })
    }

    /// Where the script is for a network that stands at interfaces of the host: which way what leaves at each of these goes.
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

    /// What each device is like once all commands have been given, in the order in which they are named. With `exact`, NetEm
    /// is its single queue.
    ///
    /// # Errors
    /// Name the command that cannot be carried out, or that a link cannot do.
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
                // What a scenario would refuse is said here, at the command that stands for the whole.
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

    /// What each command does, in words.
    ///
    /// # Errors
    /// As of [`Script::devices`].
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
    /// All sentences about it; `says_rate` when something else says the rate of the link.
    pub fn remarks(&self, says_rate: bool) -> impl Iterator<Item = &str> {
        self.egress.remarks(says_rate).chain(self.ingress.remarks(says_rate))
    }

    /// That a scenario takes it.
    fn check(&self) -> Result<(), Problem> {
        let keys = || self.egress.keys.iter().chain(&self.ingress.keys);
        // Tables of distributions lie in files, which are looked for when a scenario is read.
        if keys().any(|(_, value)| value.contains("file = ") || value.contains(".dist")) {
            return Ok(());
        }
        let text = two_hosts::text([], keys().map(|(key, value)| (Way::Up, *key, value.as_str())));
        crate::Scenario::parse(&text, "what it comes to").map(|_| ()).map_err(ScenarioError::into_problem)
    }
}

/// What stands at each device, in the order in which they are named.
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

/// The commands of a text: lines, those that end in a backslash with the next, without comments.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut open: Option<usize> = None;
    let mut at = 0;
    let is_one_line = text.trim().lines().nth(1).is_none();
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let content = line.trim_end();
        let from = match open {
            Some(from) => from,
            None => {
                let blank = content.len() - content.trim_start().len();
                if content.trim().is_empty() || content.trim_start().starts_with('#') {
                    // A line by itself after the prompt of a root shell is no comment.
                    let prompt = content.trim_start().trim_start_matches('#').trim_start();
                    let alone = is_one_line && prompt.starts_with("tc ");
                    if !alone {
                        continue;
                    }
                }
                start + blank
            }
        };
        let end = start + comment(content).unwrap_or(content.len());
        if content.ends_with('\\') {
            open = Some(from);
            continue;
        }
        open = None;
        all.push(from..end.max(from));
    }
    all.extend(open.map(|from| from..text.trim_end().len().max(from)));
    all
}

/// Where a comment begins behind a command.
fn comment(line: &str) -> Option<usize> {
    line.match_indices('#')
        .map(|(at, _)| at)
        .find(|at| *at > 0 && line[..*at].ends_with(char::is_whitespace) && !line[..*at].trim().is_empty())
}

/// Reads one command; nothing where a line has none that matters.
fn command(text: &str, span: Range<usize>) -> Result<Option<Command>, Problem> {
    let mut whole = Words::within(text, span.clone());
    let mut end = span.end;
    while let Some(word) = whole.take() {
        // What a shell does with the output, or after a failure.
        if matches!(word.text, "||" | "&&" | ";" | "|" | "&") || word.text.contains('>') {
            end = word.span().start;
            break;
        }
    }
    let mut words = Words::within(text, span.start..end);
    skip_prompt(&mut words);
    let Some(first) = words.peek() else { return Ok(None) };
    if let Some(variable) = text[span.start..end].find('$') {
        let rest = &text[span.start + variable..end];
        let name = rest.split_whitespace().next().unwrap_or("$");
        return Err(Problem::new(format!("{} is a variable of a shell", Found(name)))
            .at(&(span.start + variable..span.start + variable + name.len()))
            .help("scripts are read and not run: write the value itself"));
    }
    let is_tc = first.text == "tc" || first.text.ends_with("/tc");
    if is_tc {
        words.take();
    } else if !matches!(first.text, "qdisc" | "class" | "filter") {
        return Err(first
            .problem(format!("{} is no command of tc", Found(first.text)))
            .help("a script has commands of tc alone, one to a line, and comments after `#`"));
    }
    Command::read(&mut words, span.start..text[..end].trim_end().len()).map(Some)
}
