//! Live changes as text: `access.down.rate=2mbit`.
//!
//! ```text
//! LINK[.up|.down].KEY[.PART]=VALUE
//! LINK.NUMBER.KEY[.PART]=VALUE
//! LINK.queue-NUMBER.KEY[.PART]=VALUE
//! ```
//!
//! The second and the third form are for pipes and queues of a link with rules.
//! KEY is a key of a link's table; without a direction it counts both ways. PART is a key of the table that the value is or
//! could be (`delay.correlation`, `loss.wire`, `loss.gilbert-elliott.p`, `queue.bound`, `scheduler.quantum`), or of a class
//! of a scheduler (`scheduler.voip.weight`), which leaves the other parts as they are; a table is a whole value and leaves
//! nothing. VALUE is what stands in a file, with or without quotes. The same text at the same instant means the same change
//! of the same scenario and its files, always: it is what the input log keeps.

use std::collections::BTreeMap;
use std::ops::Range;

use narrows_core::{Change, Seed, Time};

use crate::direction::{KEYS, PARTS, Site};
use crate::keys;
use crate::link::{Link, Medium, Way};
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem, ScenarioError, one_of};
use crate::rules_link::{Pipe, PipeQueue};
use crate::scenario::Scenario;
use crate::value;

/// One change of one key. Assignments are equal wherever they stand.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    link: String,
    of: Of,
    key: String,
    /// Where the path stands.
    place: Range<usize>,
    node: Node,
}

/// Which part of a link changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// Both directions, or the shared medium.
    Whole,
    Way(Way),
    /// The pipe of this number.
    Pipe(u32),
    /// The queue of this number.
    Queue(u32),
}

impl Of {
    /// What this part of a path names.
    fn read(part: &str) -> Option<Self> {
        match part {
            "up" => Some(Self::Way(Way::Up)),
            "down" => Some(Self::Way(Way::Down)),
            _ => match part.strip_prefix("queue-") {
                Some(number) => Pipe::number(number).map(Self::Queue),
                None => Pipe::number(part).map(Self::Pipe),
            },
        }
    }

    /// With the point before it.
    fn text(self) -> String {
        match self {
            Self::Whole => String::new(),
            Self::Way(way) => format!(".{}", way.name()),
            Self::Pipe(number) => format!(".{number}"),
            Self::Queue(number) => format!(".queue-{number}"),
        }
    }

    /// Whether there is such a key, as far as that can be told without the link.
    fn has(self, key: &str) -> bool {
        let of_direction = || KEYS.contains(&key) || PARTS.contains(&key) || value::is_part(key);
        match self {
            Self::Whole | Self::Way(_) => of_direction(),
            Self::Pipe(_) => of_direction() || keys::named::<Pipe>(key).is_some(),
            Self::Queue(_) => {
                keys::named::<PipeQueue>(key).is_some() || key.starts_with("queue.") && value::is_part(key)
            }
        }
    }

    fn known(self, key: &str) -> Vec<String> {
        let of_direction = KEYS.iter().chain(PARTS).map(ToString::to_string);
        match self {
            Self::Queue(_) => keys::names::<PipeQueue>().into_iter().map(Into::into).collect(),
            _ => match (value::allowed_parts(key), self) {
                (Some(parts), _) => parts,
                (None, Self::Pipe(_)) => {
                    of_direction.chain(keys::names::<Pipe>().into_iter().map(Into::into)).collect()
                }
                (None, _) => of_direction.collect(),
            },
        }
    }
}

impl PartialEq for Assignment {
    fn eq(&self, other: &Self) -> bool {
        (&self.link, self.of, &self.key, &self.node) == (&other.link, other.of, &other.key, &other.node)
    }
}

impl Assignment {
    /// Reads the text form; it stands at `start` in a larger text.
    fn parse(text: &str, start: usize) -> Result<Self, Problem> {
        let Some((path, value)) = text.split_once('=') else {
            return Err(Problem::new(format!("{} has no `=`", Found(text)))
                .at(&(start..start + text.len()))
                .help("write LINK.KEY=VALUE or LINK.down.KEY=VALUE, such as access.down.rate=2mbit"));
        };
        let place = start..start + path.trim_end().len();
        let blank = value.len() - value.trim_start().len();
        let node = Node::typed(value.trim(), start + path.len() + 1 + blank);
        Self::new(path.trim(), place, node)
    }

    fn new(path: &str, place: Range<usize>, node: Node) -> Result<Self, Problem> {
        let (link, rest) = path.split_once('.').unwrap_or((path, ""));
        let (first, after) = rest.split_once('.').unwrap_or((rest, ""));
        let (of, key) = Of::read(first).map_or((Of::Whole, rest), |of| (of, after));
        if of.has(key) {
            return Ok(Self { link: link.into(), of, key: key.into(), place, node });
        }
        if let Some((way, key)) = key.split_once('.').filter(|(_, key)| KEYS.contains(key)) {
            return Err(Problem::new(format!("{} is no direction", Found(way)))
                .at(&place)
                .help(format!("write {link}.up.{key}, {link}.down.{key}, or {link}.{key} for both")));
        }
        let known = of.known(key);
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let mut problem = match key {
            "" => Problem::new(format!("{} names no key of a link", Found(path))),
            key => Problem::new(format!("unknown key {}", Found(key))),
        };
        problem = problem.did_you_mean(key, known.iter().copied());
        Err(problem.at(&place).help(format!("allowed: {}", one_of(&known))))
    }

    /// Reads a table of assignments, whose keys may be paths or tables within tables.
    pub(crate) fn read_table(table: &Table) -> Result<Vec<Self>, Problem> {
        let mut all = Vec::new();
        collect(table, "", &mut all)?;
        Ok(all)
    }

    /// The text form.
    pub(crate) fn text(&self) -> String {
        format!("{}={}", self.path(), self.node.typed_text())
    }

    /// What is set: `access.down.rate`.
    pub(crate) fn path(&self) -> String {
        format!("{}{}.{}", self.link, self.of.text(), self.key)
    }

    /// To what.
    pub(crate) fn value(&self) -> &Value {
        &self.node.value
    }

    pub(crate) fn place(&self) -> &Range<usize> {
        &self.node.span
    }
}

fn collect(table: &Table, prefix: &str, all: &mut Vec<Assignment>) -> Result<(), Problem> {
    for (key, node) in table.iter() {
        let path = if prefix.is_empty() { key.name.clone() } else { format!("{prefix}.{}", key.name) };
        // A link, or one of its directions, pipes or queues, holds longer paths; from the key on a table is a value.
        let parts: Vec<&str> = path.split('.').collect();
        let holds_paths = match parts[..] {
            [_] => true,
            [_, part] => Of::read(part).is_some(),
            _ => false,
        };
        match &node.value {
            Value::Table(inner) if holds_paths => collect(inner, &path, all)?,
            _ => all.push(Assignment::new(&path, key.span.clone(), node.clone())?),
        }
    }
    Ok(())
}

impl Scenario {
    /// Changes a value while the network runs; the scenario's own values follow. Gives what to tell the engine: names
    /// of its links, and their changes. Nothing changes where there is an error.
    ///
    /// ```
    /// # use narrows_scenario::{LinkFlags, Scenario};
    /// let flags = LinkFlags::default().with("rate", "1mbit");
    /// let mut scenario = Scenario::from_flags(&flags).unwrap();
    /// let changes = scenario.assign("link.down.rate=2mbit").unwrap();
    /// assert_eq!(changes[0].0, "link.down");
    /// assert_eq!(scenario.links[0].directions()[1].1.rate.to_string(), "2mbit");
    /// ```
    ///
    /// # Errors
    /// When the text names no link or key, or its value is none that a scenario may have.
    pub fn assign(&mut self, text: &str) -> Result<Vec<(String, Change)>, ScenarioError> {
        self.assign_all(&[text])
    }

    /// Several changes at one instant: all, or none where there is an error. A trace begins with the run, as
    /// [`Scenario::assign_at`] does at zero.
    ///
    /// # Errors
    /// As [`Scenario::assign`].
    pub fn assign_all<T: AsRef<str>>(&mut self, texts: &[T]) -> Result<Vec<(String, Change)>, ScenarioError> {
        self.assign_at(Time::ZERO, texts)
    }

    /// Several changes at this instant of the run: all, or none where there is an error. A trace begins then. Files that
    /// the values name are read, those that were read before from memory.
    ///
    /// # Errors
    /// As [`Scenario::assign`].
    pub fn assign_at<T: AsRef<str>>(
        &mut self,
        at: Time,
        texts: &[T],
    ) -> Result<Vec<(String, Change)>, ScenarioError> {
        let (mut all, mut lines) = (Vec::new(), String::new());
        let mut read = || {
            for text in texts {
                all.push(Assignment::parse(text.as_ref(), lines.len())?);
                lines += text.as_ref();
                lines.push('\n');
            }
            Ok(std::mem::take(&mut all))
        };
        let assignments = read();
        let result = assignments.and_then(|assignments| self.apply(&assignments, at));
        result.map_err(|problem| {
            let lines: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
            ScenarioError::new("set", &lines.join("\n"), vec![problem])
        })
    }

    /// Applies assignments: all, or none where there is a problem. They are of one instant, so what is right only after
    /// another of them (a target beyond the old interval, a scheduler for the new rate) comes after it.
    pub(crate) fn apply(
        &mut self,
        assignments: &[Assignment],
        at: Time,
    ) -> Result<Vec<(String, Change)>, Problem> {
        let mut changed: BTreeMap<usize, Link> = BTreeMap::new();
        let mut waiting: Vec<&Assignment> = assignments.iter().collect();
        while !waiting.is_empty() {
            let (mut put_off, mut wrong) = (Vec::new(), None);
            for &assignment in &waiting {
                match self.changed(assignment, at, &changed) {
                    Ok((index, link)) => {
                        changed.insert(index, link);
                    }
                    Err(problem) => {
                        put_off.push(assignment);
                        wrong.get_or_insert(problem);
                    }
                }
            }
            match wrong {
                Some(problem) if put_off.len() == waiting.len() => return Err(problem),
                _ => waiting = put_off,
            }
        }
        let mut changes = Vec::new();
        for (index, link) in changed {
            let before = std::mem::replace(&mut self.links[index], link);
            if let Medium::Rules(then) = &before.medium {
                let site = self.site(&before);
                if let Medium::Rules(now) = &self.links[index].medium {
                    changes.extend(now.changes_since(then, &before.name, &site));
                }
                continue;
            }
            let (seed, addresses) = (Seed(self.seed), |host: &str| self.addresses(host));
            for ((name, now), (_, then)) in
                self.links[index].directions().into_iter().zip(before.directions())
            {
                let site = Site { seed, link: &name, addresses: &addresses };
                changes
                    .extend(now.changes_since(then, site).into_iter().map(|change| (name.clone(), change)));
            }
        }
        Ok(changes)
    }

    /// The number of the link that an assignment is about, and what it makes of it, after what has been changed before.
    fn changed(
        &self,
        assignment: &Assignment,
        at: Time,
        changed: &BTreeMap<usize, Link>,
    ) -> Result<(usize, Link), Problem> {
        let hosts = self.host_names();
        let Assignment { link: name, of, key, place, node } = assignment;
        let index = self.links.iter().position(|link| link.name == *name).ok_or_else(|| {
            let names: Vec<&str> = self.links.iter().map(|link| link.name.as_str()).collect();
            let problem = Problem::new(format!("no link is called {}", Found(name))).at(place);
            problem.did_you_mean(name, names.iter().copied()).help(format!("links: {}", one_of(&names)))
        })?;
        let mut link = changed.get(&index).unwrap_or(&self.links[index]).clone();
        let around = link.surroundings(&hosts, &self.files, at);
        let inside = |problem: Problem| match of {
            Of::Whole => problem.inside(name),
            of => problem.inside(of.text().trim_start_matches('.')).inside(name),
        };
        let way = match (of, &mut link.medium) {
            (Of::Pipe(number), Medium::Rules(rules)) => {
                rules.assign_pipe(*number, key, node, around).map_err(|p| inside(p).at(place))?;
                return Ok((index, link));
            }
            (Of::Queue(number), Medium::Rules(rules)) => {
                rules.assign_queue(*number, key, node, around).map_err(|p| inside(p).at(place))?;
                return Ok((index, link));
            }
            (_, Medium::Rules(rules)) => {
                let problem =
                    Problem::new(format!("`{name}` is a link with rules, and has no `{key}` of its own"));
                let pipe = rules.pipes.keys().next().copied().unwrap_or(1);
                return Err(problem.at(place).help(format!("write {name}.{pipe}.{key} for pipe {pipe}")));
            }
            (Of::Pipe(_) | Of::Queue(_), _) => {
                let problem =
                    Problem::new(format!("`{name}` has no pipes and queues: it is no link with rules"));
                return Err(problem.at(place));
            }
            (Of::Way(way), Medium::Shared(_)) => {
                let way = way.name();
                let problem = Problem::new(format!("the shared medium `{name}` has no `{way}` of its own"));
                return Err(problem.at(place).help(format!("write {name}.{key}, for both directions")));
            }
            (Of::Way(way), _) => Some(*way),
            (Of::Whole, _) => None,
        };
        for direction in link.directions_mut(way) {
            direction.set(key, node, around).map_err(|problem| inside(problem).at(&node.span))?;
        }
        if let Some((_, _, problem)) = link.conflict() {
            return Err(inside(problem.inside(key)).at(&node.span));
        }
        Ok((index, link))
    }
}
