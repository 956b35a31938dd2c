//! Scripts of commands, one per line.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::command::{Body, Command};
use super::translate::Keys;
use super::tree::Tree;
use crate::ScenarioError;
use crate::dialect::shell::{self, Joined, Piece};
use crate::dialect::{Variables, Word, Words, as_words};
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
    /// Commands of other programs, which have no effect here.
    passed: Vec<Passed>,
    /// Devices for which the direction of outgoing packets is known.
    pub(super) known: Vec<(String, Way)>,
}

/// A command of another program.
#[derive(Clone, Debug)]
struct Passed {
    span: Range<usize>,
    why: &'static str,
}

/// One command of a script.
enum Line {
    Tc(Box<Command>),
    /// `exit`: no later command runs.
    End,
    Other(Passed),
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
        let (mut commands, mut passed) = (Vec::new(), Vec::new());
        let mut variables = Variables::default();
        let pieces = shell::pieces(text).map_err(|problem| ScenarioError::new(name, text, vec![problem]))?;
        for piece in &pieces {
            match line(text, piece, &mut variables) {
                Ok(Some(Line::Tc(command))) => commands.push(*command),
                Ok(Some(Line::Other(other))) => passed.push(other),
                Ok(Some(Line::End)) => break,
                Ok(None) => {}
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
            true => Ok(Self { name: name.into(), text: text.into(), commands, passed, known: Vec::new() }),
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
        let redirected = self.redirected();
        changing
            .filter_map(|command| command.device.as_deref())
            .filter(|name| !redirected.contains(name) && known.insert(*name))
            .collect()
    }

    /// The devices that filters redirect packets to: they stand for a direction of another device.
    fn redirected(&self) -> BTreeSet<&str> {
        let targets = self.commands.iter().filter_map(|command| match &command.body {
            Body::Filter { filter: Some(filter), .. } => filter.redirect.as_deref(),
            _ => None,
        });
        targets.collect()
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
        let redirected = self.redirected();
        let own = trees.all.iter().filter(|(name, _)| !redirected.contains(name.as_str()));
        own.map(|(name, tree)| {
            let device = Device {
                egress: tree.egress(exact).map_err(wrong)?,
                ingress: tree.arriving(exact, |name| trees.get(name)).map_err(wrong)?,
                name: name.clone(),
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
            // Commands are in the order of the text.
            line += self.text[counted..command.span.start].matches('\n').count();
            counted = command.span.start;
            all.push(Explained { line, command: self.on_one_line(&command.span), words });
        }
        all.extend(self.passed_over());
        all.sort_by_key(|explained| explained.line);
        Ok(all)
    }
}

impl Script {
    /// Commands of other programs, and why they have no effect here.
    pub fn passed_over(&self) -> Vec<Explained> {
        let (mut line, mut counted) = (1, 0);
        let explain = |passed: &Passed| {
            line += self.text[counted..passed.span.start].matches('\n').count();
            counted = passed.span.start;
            let words = vec![format!("Not a command of tc: ignored. {}", passed.why)];
            Explained { line, command: self.on_one_line(&passed.span), words }
        };
        self.passed.iter().map(explain).collect()
    }

    fn on_one_line(&self, span: &Range<usize>) -> String {
        let words: Vec<&str> =
            self.text[span.clone()].split_whitespace().filter(|word| *word != "\\").collect();
        words.join(" ")
    }
}

impl Device {
    /// All remarks about it; `says_rate` if something else sets the rate of the link.
    pub fn remarks(&self, says_rate: bool) -> impl Iterator<Item = &str> {
        self.egress.remarks(says_rate).chain(self.ingress.remarks(says_rate))
    }

    /// Checks that a scenario accepts it.
    fn check(&self) -> Result<(), Problem> {
        let egress = || self.egress.keys.iter().map(|(key, value)| (Way::Up, *key, value.as_str()));
        let ingress = || self.ingress.keys.iter().map(|(key, value)| (Way::Down, *key, value.as_str()));
        let keys = || egress().chain(ingress());
        // Distribution tables are in files, which are looked up when a scenario is read.
        if keys().any(|(_, _, value)| value.contains("file = ") || value.contains(".dist")) {
            return Ok(());
        }
        let text = two_hosts::text([], keys());
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
    fn get(&self, device: &str) -> Option<&Tree> {
        self.numbers.get(device).map(|number| &self.all[*number].1)
    }

    fn of(&mut self, device: &str) -> &mut Tree {
        let number = self.numbers.get(device).copied().unwrap_or_else(|| {
            self.numbers.insert(device.into(), self.all.len());
            self.all.push((device.into(), Tree::default()));
            self.all.len() - 1
        });
        &mut self.all[number].1
    }
}

/// Commands that prepare devices or print text: with them a script has the same effect on packets here.
const OTHERS: &[(&str, &str)] = &[
    ("modprobe", "There are no kernel modules here."),
    ("insmod", "There are no kernel modules here."),
    ("rmmod", "There are no kernel modules here."),
    ("ethtool", "Packets are single segments here, as if offloads were off."),
    ("ifconfig", "Devices here exist and are up."),
    ("echo", "It prints text."),
    ("printf", "It prints text."),
    ("set", "It configures the shell."),
    ("true", "It does nothing."),
];

/// Objects of `ip` that prepare devices.
const OBJECTS_OF_IP: &[(&str, &str)] = &[
    ("link", "Devices here exist and are up."),
    ("address", "Hosts here have addresses."),
    ("netns", "Each host here has a network namespace."),
];

/// Reads one command; `None` if it has no effect.
fn line(text: &str, piece: &Piece, variables: &mut Variables) -> Result<Option<Line>, Problem> {
    let span = variables.assign(text, piece.span.clone())?;
    let expanded = match piece.joined {
        Joined::After => variables.words(text, span.clone())?,
        // Most of them are not tc commands, and their expansions do not matter.
        _ => variables.words(text, span.clone()).unwrap_or_default(),
    };
    let mut words = as_words(&expanded, span.end);
    skip_prompt(&mut words);
    let namespace = entered(&mut words);
    let Some(first) = words.peek() else { return Ok(None) };
    let is_tc = is_tc(first);
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
    if first.text == "exit" {
        return Ok(Some(Line::End));
    }
    if is_tc {
        words.take();
    } else if !matches!(first.text, "qdisc" | "class" | "filter") {
        return match passed_over(&mut words) {
            Some(why) => Ok(Some(Line::Other(Passed { span, why }))),
            None => Err(first
                .problem(format!("{} is not a command of tc", Found(first.text)))
                .help("a script has commands of tc, variables, and comments after `#`; loops and conditions are not run")),
        };
    }
    let command = Command::read(&mut words, span)?;
    let command = match namespace {
        Some(namespace) => command.inside(&namespace),
        None => command,
    };
    Ok(Some(Line::Tc(Box::new(command))))
}

fn is_tc(word: Word<'_>) -> bool {
    word.text == "tc" || word.text.ends_with("/tc")
}

/// Takes `ip netns exec NAMESPACE` before a tc command.
fn entered(words: &mut Words<'_>) -> Option<String> {
    let mut ahead = words.clone();
    let enters = ahead.take_if("ip") && ahead.take_if("netns") && ahead.take_if("exec");
    let namespace = ahead.take().filter(|_| enters)?;
    ahead.peek().filter(|word| is_tc(*word))?;
    *words = ahead;
    Some(namespace.text.to_owned())
}

/// Why a command of another program has no effect here, if so.
fn passed_over(words: &mut Words<'_>) -> Option<&'static str> {
    let name = words.take()?.text;
    let name = name.rsplit('/').next().unwrap_or(name);
    // The MTU of a device decides which packets exist, and a device that is down passes none.
    let mut ahead = words.clone();
    let alters = std::iter::from_fn(|| ahead.take()).any(|word| matches!(word.text, "mtu" | "down"));
    if alters && matches!(name, "ip" | "ifconfig") {
        return None;
    }
    if name != "ip" {
        return OTHERS.iter().find(|(known, _)| *known == name).map(|(_, why)| *why);
    }
    while words.peek().is_some_and(|word| word.text.starts_with('-')) {
        words.take();
    }
    let object = words.take()?.text;
    // The program in a namespace could be any.
    if object == "netns" && words.take_if("exec") {
        return None;
    }
    OBJECTS_OF_IP
        .iter()
        .find(|(known, _)| object.len() > 1 && known.starts_with(object) || *known == object)
        .map(|(_, why)| *why)
}
