//! Complete commands: `tc qdisc add dev eth0 root netem delay 100ms`.

use super::{NAME, Qdisc};
use crate::dialect::shell::raises_rights;
use crate::dialect::{Word, Words, keyword};
use crate::problem::{Found, Problem, ScenarioError};

/// A `tc qdisc` command.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The action.
    pub verb: Verb,
    /// `-s`: show statistics.
    pub statistics: bool,
    /// `dev`: the device; `None` for all.
    pub device: Option<String>,
    /// `parent`: the parent class; `None` for the root.
    pub parent: Option<String>,
    /// `handle`: the qdisc's own handle.
    pub handle: Option<String>,
    /// The qdisc, if given.
    pub qdisc: Option<Qdisc>,
}

/// The action of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Adds a qdisc; fails if there is one.
    Add,
    /// Changes the existing qdisc.
    Change,
    /// Changes the existing qdisc, or adds one.
    Replace,
    /// Deletes the qdisc.
    Delete,
    /// Shows the qdisc.
    Show,
}

const VERBS: &[(&str, Verb)] = &[
    ("add", Verb::Add),
    ("change", Verb::Change),
    ("replace", Verb::Replace),
    ("delete", Verb::Delete),
    ("show", Verb::Show),
    ("list", Verb::Show),
    ("lst", Verb::Show),
    ("ls", Verb::Show),
];

impl Command {
    /// Parses a command, with or without `tc`, as typed or published: ignores a leading `#`, `$` or `sudo`.
    ///
    /// # Errors
    /// The error points at the word, and says what is allowed there.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        read(text).map_err(|problem| ScenarioError::new("tc", text, vec![problem]))
    }

    /// Whether a text is a command rather than just options.
    pub fn is_meant(text: &str) -> bool {
        let mut words = Words::new(text);
        skip_prompt(&mut words);
        words.peek().is_some_and(|word| matches!(word.text, "tc" | "qdisc"))
    }
}

pub(crate) fn skip_prompt(words: &mut Words<'_>) {
    loop {
        if words.take_if("#") || words.take_if("$") {
            continue;
        }
        if !words.peek().is_some_and(|word| raises_rights(word.text)) {
            return;
        }
        words.take();
        while let Some(flag) = words.peek().filter(|word| word.text.starts_with('-')) {
            words.take();
            if matches!(flag.text, "-u" | "-g" | "-U" | "-h" | "-p" | "--user" | "--group") {
                words.take();
            }
        }
    }
}

fn read(text: &str) -> Result<Command, Problem> {
    let mut words = Words::new(text);
    skip_prompt(&mut words);
    words.take_if("tc");
    let statistics = flags(&mut words)?;
    let object = words.take().ok_or_else(|| {
        Problem::new("the command is missing").help("as in: qdisc add dev access.down root netem delay 10ms")
    })?;
    if !(object.text.len() > 1 && "qdisc".starts_with(object.text)) {
        return Err(object
            .problem(format!("{} is not understood", Found(object.text)))
            .help("on a run: `qdisc`, and `class show`; load a script of `qdisc`, `class` and `filter` with `run --tc FILE`"));
    }
    let verb = match words.take() {
        None => Verb::Show,
        Some(word) => {
            // tc accepts abbreviations such as `del` and `d`.
            let word_is_beginning = VERBS.iter().find(|(name, _)| name.starts_with(word.text));
            match word_is_beginning {
                Some((_, verb)) => *verb,
                None => keyword(word, "command about a qdisc", VERBS)?,
            }
        }
    };
    let mut command = Command { verb, statistics, device: None, parent: None, handle: None, qdisc: None };
    place(&mut command, &mut words)?;
    let needs_device = !matches!(verb, Verb::Show);
    if needs_device && command.device.is_none() {
        return Err(Problem::new("`dev` is missing")
            .at(&object.span())
            .help("name a port or link, as in: dev client, or dev access.down"));
    }
    if matches!(verb, Verb::Add | Verb::Change | Verb::Replace) && command.qdisc.is_none() {
        return Err(Problem::new("the queueing discipline is missing")
            .at(&object.span())
            .help("as in: root netem delay 10ms"));
    }
    Ok(command)
}

/// Parses flags before the object; returns whether `-s` is among them.
pub(crate) fn flags(words: &mut Words<'_>) -> Result<bool, Problem> {
    let mut statistics = false;
    while let Some(word) = words.peek().filter(|word| word.text.starts_with('-')) {
        match word.text {
            "-s" | "-stat" | "-stats" | "-statistics" => statistics = true,
            // These flags control tc's output and have no effect here.
            "-d" | "-details" | "-p" | "-pretty" | "-n" => {}
            other => {
                return Err(word
                    .problem(format!("unknown flag {}", Found(other)))
                    .help("understood: `-s`, for counters"));
            }
        }
        words.take();
    }
    Ok(statistics)
}

/// Parses `dev X`, `root`, `parent X`, `handle X`, followed by the qdisc.
fn place(command: &mut Command, words: &mut Words<'_>) -> Result<(), Problem> {
    let mut at_root = None;
    while let Some(word) = words.peek() {
        match word.text {
            "dev" => {
                words.take();
                let device = words.expect(word, "the name of a device")?;
                if command.device.replace(device.text.into()).is_some() {
                    return Err(device.problem("a second device"));
                }
            }
            "root" => {
                words.take();
                at_root = Some(word);
            }
            "parent" => {
                words.take();
                command.parent = Some(words.expect(word, "the handle of a class")?.text.into());
            }
            "handle" => {
                words.take();
                command.handle = Some(words.expect(word, "a handle")?.text.into());
            }
            "refcnt" => {
                // As in tc's output.
                words.take();
                words.expect(word, "a number")?;
            }
            "ingress" | "clsact" => {
                return Err(word.problem(format!("{} is not understood", Found(word.text))).help(
                    "a link has two directions: name the other one, as in: dev access.down root netem …",
                ));
            }
            "estimator" | "stab" | "ingress_block" | "egress_block" | "invisible" => {
                return Err(word.problem(format!("{} is not understood", Found(word.text))).help(match word.text {
                    "stab" => "the key `overhead` of a link says what a packet costs; netem's `rate` has an overhead, too",
                    _ => "understood before the discipline: `dev`, `root`, `parent` and `handle`",
                }));
            }
            _ => return discipline(command, words, at_root),
        }
    }
    Ok(())
}

fn discipline(command: &mut Command, words: &mut Words<'_>, root: Option<Word<'_>>) -> Result<(), Problem> {
    let word = words.peek().expect("there is one: the caller looked");
    if matches!(command.verb, Verb::Show) {
        return Err(word
            .problem(format!("unexpected {} after `show`", Found(word.text)))
            .help("understood: `dev`"));
    }
    if word.text == NAME && command.parent.is_none() && root.is_none() && command.verb != Verb::Delete {
        return Err(word
            .problem("`root` is missing before `netem`")
            .help("as in: dev access.down root netem delay 10ms"));
    }
    // `tc qdisc del dev X root netem` may repeat the options.
    command.qdisc = Some(super::kind(words)?);
    Ok(())
}
