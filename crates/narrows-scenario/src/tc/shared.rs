//! Actions that filters name by a kind and a number: `tc actions add action police rate 1mbit burst 10k index 5`, and `action
//! police index 5` in a filter.
//!
//! Source: `act_api.c` of Linux and `m_action.c` of iproute2. An action of a filter that says a number is one of these, too. If
//! there is one with that number, the filter has it, whatever else it says. A policer is one bucket for all its filters, so
//! here it has one filter.

use std::collections::BTreeMap;
use std::ops::Range;

use super::unit;
use crate::dialect::{Word, Words};
use crate::problem::{Found, Problem, one_of};

/// What a filter does with a packet, as far as it matters where filters share it.
pub(super) trait Shareable: Clone {
    /// Parses a single action that is in no filter. Returns its kind and its number, too.
    fn alone<'a>(action: Word<'a>, words: &mut Words<'a>) -> Result<(String, Option<u32>, Self), Problem>;

    /// Whether there is a policer in it.
    fn polices(&self) -> bool;
}

/// The actions of a script so far, in each network namespace.
#[derive(Debug, Default)]
pub(super) struct Shared<A> {
    /// The namespace of the command that is read.
    namespace: Option<String>,
    all: BTreeMap<(Option<String>, String, u32), Action<A>>,
}

#[derive(Debug)]
struct Action<A> {
    does: A,
    /// The command of the filter that has it.
    used: Option<Range<usize>>,
}

/// The kind of an action that is a control: `drop`, `pass`.
pub(super) const CONTROL: &str = "gact";

const VERBS: &[&str] = &["change", "replace", "delete", "get", "add", "list", "ls", "show", "flush"];

impl<A: Shareable> Shared<A> {
    /// The commands that follow are of this namespace.
    pub(super) fn enter(&mut self, namespace: Option<&str>) {
        self.namespace = namespace.map(str::to_owned);
    }

    fn key(&self, kind: &str, index: u32) -> (Option<String>, String, u32) {
        (self.namespace.clone(), kind.to_owned(), index)
    }

    /// The action of this kind and number, for another filter.
    pub(super) fn take(&mut self, kind: &str, index: u32, at: Word<'_>) -> Result<Option<A>, Problem> {
        let Some(action) = self.all.get_mut(&self.key(kind, index)) else { return Ok(None) };
        if let Some(other) = action.used.as_ref().filter(|_| action.does.polices()) {
            return Err(at
                .problem(format!("the policer {index} in a second filter: it is one bucket for both"))
                .also(other, "the other filter")
                .help("let one filter match the packets of both, or give each a policer of its own"));
        }
        action.used = Some(at.span());
        Ok(Some(action.does.clone()))
    }

    /// Keeps an action of a filter.
    pub(super) fn keep(&mut self, kind: &str, index: u32, does: A, at: Word<'_>) {
        self.all.insert(self.key(kind, index), Action { does, used: Some(at.span()) });
    }

    /// Whether a command is about such actions. Skips what is before its verb.
    pub(super) fn begins(&mut self, words: &mut Words<'_>) -> bool {
        let mut ahead = words.clone();
        let mut namespace = None;
        while let Some(flag) = ahead.peek().filter(|word| word.text.starts_with('-')) {
            ahead.take();
            if "-netns".starts_with(flag.text) {
                namespace = ahead.take().map(|word| word.text.to_owned());
            }
        }
        let is_one = ahead.take().is_some_and(|word| word.text.len() > 1 && "actions".starts_with(word.text));
        if is_one {
            self.namespace = namespace.or(self.namespace.take());
            *words = ahead;
        }
        is_one
    }

    /// Executes a command about them, from its verb on. Returns what it comes to, in words.
    pub(super) fn command(&mut self, words: &mut Words<'_>) -> Result<String, Problem> {
        const SHOWS: &str = "Shows actions; changes nothing.";
        let Some(verb) = words.take() else { return Ok(SHOWS.into()) };
        match VERBS.iter().find(|known| known.starts_with(verb.text)) {
            Some(&"add") => self.add(false, verb, words),
            Some(&("change" | "replace")) => self.add(true, verb, words),
            Some(&"delete") => self.delete(words),
            Some(&"flush") => {
                words.take_if("action");
                let kind = words.take().map(|word| word.text.to_owned());
                let own = self.namespace.clone();
                self.all.retain(|(namespace, of, _), action| {
                    *namespace != own || kind.as_ref().is_some_and(|kind| kind != of) || action.used.is_some()
                });
                Ok("Deletes the actions that no filter has.".into())
            }
            Some(_) => Ok(SHOWS.into()),
            None => Err(verb
                .problem(format!("{} is not a command of `tc actions`", Found(verb.text)))
                .help(format!("understood: {}", one_of(VERBS)))),
        }
    }

    fn add(&mut self, replaces: bool, verb: Word<'_>, words: &mut Words<'_>) -> Result<String, Problem> {
        let mut said = Vec::new();
        while words.peek().is_some() {
            words.take_if("action");
            let name = words.expect(verb, "an action")?;
            let (kind, index, does) = A::alone(name, words)?;
            let Some(index) = index else {
                said.push(format!("`{kind}` gets a number of the kernel's choice: no filter here names it."));
                continue;
            };
            let key = self.key(&kind, index);
            let before = self.all.get(&key);
            if before.is_some() && !replaces {
                return Err(
                    name.problem(format!("there is an action `{kind}` with the index {index} already"))
                );
            }
            if let Some(other) = before.and_then(|before| before.used.as_ref()) {
                return Err(name
                    .problem(format!("a change of the action {index}, which a filter has"))
                    .also(other, "the filter")
                    .help("write the new action before the filter"));
            }
            self.all.insert(key, Action { does, used: None });
            said.push(format!("`{kind}` with the index {index}, for filters that name it."));
        }
        match said.is_empty() {
            true => Err(words.missing(verb, "an action")),
            false => Ok(said.join(" ")),
        }
    }

    fn delete(&mut self, words: &mut Words<'_>) -> Result<String, Problem> {
        let mut said = Vec::new();
        while words.peek().is_some() {
            words.take_if("action");
            let Some(kind) = words.take() else { break };
            words.take_if("index");
            let index = unit::index(kind, words)?;
            let key = self.key(kind.text, index);
            said.push(match self.all.get(&key) {
                None => "There is nothing to delete: tc would report an error, and a script without `set -e` goes on.",
                Some(Action { used: Some(_), .. }) => {
                    "A filter has the action, which stays: tc would report an error, and a script without `set -e` goes on."
                }
                Some(_) => "Deletes an action that no filter has.",
            });
            self.all.retain(|known, action| *known != key || action.used.is_some());
        }
        Ok(said.join(" "))
    }
}
