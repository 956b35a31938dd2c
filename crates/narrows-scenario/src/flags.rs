//! Scenarios from flags: two hosts, `client` and `server`, and a link named `link` between them.

use std::collections::BTreeMap;
use std::ops::Range;

use narrows_core::{Duration, Time};

use crate::direction::Direction;
use crate::files::Files;
use crate::host::Host;
use crate::keys::{self, Key};
use crate::link::{Beside, apply, settle};
use crate::link::{Link, Medium, Way};
use crate::netem;
use crate::node::{Node, Value};
use crate::preset::Preset;
use crate::problem::{Problem, Problems, ScenarioError};
use crate::scenario::{self, Scenario};
use crate::{units, value};

/// The values typed after each flag: one value for both directions, or `DOWN/UP`. Down is from the server
/// to the client. Values are written as in a file, without quotes.
///
/// ```
/// # use narrows_scenario::{LinkFlags, Scenario};
/// let flags = LinkFlags::default().with("rate", "1.5mbit/0.5mbit").with("delay", "10ms").with("seed", "7");
/// assert_eq!(Scenario::from_flags(&flags)?.seed, 7);
/// # Ok::<(), narrows_scenario::ScenarioError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkFlags(BTreeMap<String, String>);

/// A flag that sets a key of the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFlag {
    /// Name without hyphens.
    pub name: &'static str,
    /// Placeholder for its value in the help.
    pub value: &'static str,
    /// Help text.
    pub help: String,
}

impl LinkFlags {
    /// Adds this flag: the name of a key of a link, `netem-up`, `netem-down`, `seed` or `duration`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// Adds this flag if it has a value.
    #[must_use]
    pub fn given(self, name: &str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The value typed after this flag.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All link flags: one for each key, and NetEm options for each direction.
    pub fn known() -> Vec<LinkFlag> {
        let names = format!("Link preset, overridden by other flags: {}", Preset::names().join(", "));
        let mut all = vec![LinkFlag { name: PRESET, value: "NAME", help: names }];
        for key in keys::keys::<Direction>() {
            all.push(LinkFlag { name: key.name(), value: key.flag().value, help: help(key) });
            if key.name() == "netem" {
                let for_way = |name, ends| LinkFlag {
                    name,
                    value: key.flag().value,
                    help: format!("The same, from {ends} only"),
                };
                all.push(for_way("netem-up", "client to server"));
                all.push(for_way("netem-down", "server to client"));
            }
        }
        all
    }
}

/// One line of help for a flag.
fn help(key: &dyn Key) -> String {
    let mut help = plain(key.doc()).trim_end_matches('.').to_string();
    if !key.flag().examples.is_empty() {
        help += &format!(": {}", key.flag().examples);
    }
    let default = key.default().map(|value| Node::new(value).typed_text());
    if let Some(default) = key.default_words().map(String::from).or(default) {
        help += &format!(" [default: {default}]");
    }
    help
}

/// The text of a sentence with its links removed.
fn plain(text: &str) -> String {
    match text.split_once('[').and_then(|(before, rest)| Some((before, rest.split_once("](")?))) {
        Some((before, (shown, rest))) => {
            format!("{before}{shown}{}", rest.split_once(')').map_or("", |(_, after)| after))
        }
        None => text.into(),
    }
}

/// The names of the hosts.
const HOSTS: [&str; 2] = ["client", "server"];
/// The flag for presets.
const PRESET: &str = "preset";
/// The name of the link.
const LINK: &str = "link";

impl Scenario {
    /// Builds a scenario of two hosts, `client` and `server`, and one link named `link`.
    ///
    /// # Errors
    /// The error names the flag, what was found and what is allowed.
    pub fn from_flags(flags: &LinkFlags) -> Result<Self, ScenarioError> {
        Self::from_flags_with(flags, Files::beside(""))
    }

    /// The same, with its files taken from `files`.
    ///
    /// # Errors
    /// As [`Scenario::from_flags`].
    pub fn from_flags_with(flags: &LinkFlags, files: Files) -> Result<Self, ScenarioError> {
        let mut problems = Problems::default();
        let mut line = CommandLine::default();
        let host = |name: &str| Host { name: name.into(), ..Host::default() };
        let mut link = Link {
            name: LINK.into(),
            between: HOSTS.map(Into::into),
            cost: 1,
            medium: Medium::Duplex { up: Box::default(), down: Box::default() },
            stations: Vec::new(),
        };
        let mut places: BTreeMap<&str, Range<usize>> = BTreeMap::new();
        for (key, value) in flags.link_keys() {
            let start = line.add(key, value);
            let place = start..start + value.len();
            let set = match key {
                PRESET => flags.apply_preset(&mut link, value, start, &files),
                _ => set(&mut link, key, value, start, &files),
            };
            problems.catch(set.map_err(|problem| problem.at(&place)));
            places.insert(key, place);
        }
        for way in [Way::Up, Way::Down].into_iter().filter(|_| flags.get(PRESET).is_some()) {
            let beside = flags.beside(way);
            link.directions_mut(Some(way)).into_iter().for_each(|direction| settle(direction, &beside));
        }
        problems.extend(flags.said_twice(&places));
        if problems.is_empty()
            && let Some((_, key, problem)) = link.conflict()
        {
            let place = places.get(key).cloned().unwrap_or_default();
            problems.extend(vec![problem.at(&place).inside(&format!("--{key}"))]);
        }
        let mut alone = |key: &str| {
            let value = flags.get(key)?;
            Some(Node { span: line.span(key, value), value: Value::String(value.into()) })
        };
        let (seed, duration) = (alone("seed"), alone("duration"));
        let seed =
            seed.and_then(|node| problems.catch(scenario::seed(&node).map_err(|p| p.inside("--seed"))));
        let duration = duration
            .and_then(|node| problems.catch(units::positive_time(&node).map_err(|p| p.inside("--duration"))));
        let mut scenario = Self {
            file: if line.0.is_empty() { "a plain wire".into() } else { line.0.clone() },
            seed: seed.or(flags.netem_seed()).unwrap_or(scenario::DEFAULT_SEED),
            duration,
            hosts: HOSTS.map(host).into(),
            links: vec![link],
            files,
            ..Self::default()
        };
        if problems.is_empty() && scenario.wire().is_ok() {
            return Ok(scenario);
        }
        Err(problems.into_error(COMMAND_LINE, &line.0))
    }
}

const COMMAND_LINE: &str = "command line";

impl LinkFlags {
    /// Applies a preset. All other flags override it.
    fn apply_preset(&self, link: &mut Link, name: &str, start: usize, files: &Files) -> Result<(), Problem> {
        // TOML would read some names as numbers.
        let span = start..start + name.len();
        let node = Node { span, value: Value::String(name.into()) };
        let hosts = HOSTS.map(String::from);
        let around = link.surroundings(&hosts, &[], files, Time::ZERO);
        apply(link, &node, |way| self.beside(way), around)
            .map_err(|problem| problem.inside(&format!("--{PRESET}")))
    }

    /// The keys that flags other than the preset set for one direction.
    fn beside(&self, way: Way) -> Beside {
        let mut beside = Beside::default();
        for (flag, text) in self.link_keys().into_iter().filter(|(flag, _)| *flag != PRESET) {
            let (key, only) =
                NETEM.iter().find(|(name, _)| *name == flag).map_or((flag, None), |(_, way)| ("netem", *way));
            if only.is_none_or(|only| only == way) {
                beside.add(key, &Node::new(Value::String(text.into())));
            }
        }
        beside
    }

    /// The link flags that are given, in the order of the keys.
    fn link_keys(&self) -> Vec<(&str, &str)> {
        let known = Self::known();
        let place = |name: &str| known.iter().position(|flag| flag.name == name).unwrap_or(known.len());
        let given = self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut all: Vec<_> = given.filter(|(name, _)| !["seed", "duration"].contains(name)).collect();
        all.sort_by_key(|(name, _)| place(name));
        all
    }
}

/// The flags for NetEm options, each with its direction.
const NETEM: [(&str, Option<Way>); 3] =
    [("netem", None), ("netem-up", Some(Way::Up)), ("netem-down", Some(Way::Down))];

impl LinkFlags {
    /// The flags for NetEm options that are given and valid: name, direction and meaning.
    fn netem_flags(&self) -> Vec<(&'static str, Option<Way>, netem::Qdisc)> {
        let given = NETEM.into_iter().filter_map(|flag| Some((flag, self.get(flag.0)?)));
        given.filter_map(|((flag, way), text)| Some((flag, way, netem::parse(text).ok()?))).collect()
    }

    /// The seed in the NetEm options.
    fn netem_seed(&self) -> Option<u64> {
        let exact = self.get("exact-netem").and_then(|text| netem::parse(text).ok());
        let all = self.netem_flags().into_iter().map(|(_, _, qdisc)| qdisc).chain(exact);
        all.filter_map(|qdisc| qdisc.seed()).next()
    }

    /// Flags that set what the NetEm options also set. These are errors, as the result would depend on the
    /// order.
    fn said_twice(&self, places: &BTreeMap<&str, Range<usize>>) -> Vec<Problem> {
        let given = self.netem_flags();
        let mut problems = Vec::new();
        for (index, (flag, way, qdisc)) in given.iter().enumerate() {
            let place = |flag: &str| places.get(flag).cloned().unwrap_or_default();
            if places.contains_key("exact-netem") {
                problems.push(
                    Problem::new(format!("`--{flag}` with `--exact-netem`, which replaces all other flags of the link"))
                        .at(&place(flag))
                        .also(&place("exact-netem"), "here")
                        .help("use one of them: --netem for two queues, --exact-netem for the kernel's single queue"),
                );
                continue;
            }
            for (other, other_way, _) in &given[..index] {
                if way.is_none() || other_way.is_none() || way == other_way {
                    problems.push(
                        Problem::new(format!("`--{flag}` and `--{other}` set the same direction"))
                            .at(&place(flag))
                            .also(&place(other), "here")
                            .help("use --netem for both ways, or --netem-up and --netem-down"),
                    );
                }
            }
            for (key, value) in qdisc.assignments().unwrap_or_default() {
                if places.contains_key(key) {
                    problems.push(
                        Problem::new(format!("`--{key}` with `--{flag}`, which sets {key} = {value}"))
                            .at(&place(key))
                            .also(&place(flag), "here")
                            .help("keep one of the two"),
                    );
                }
            }
        }
        problems
    }
}

/// Parses a code point (DSCP) by name or number, as the value of the flag `--FLAG`. Accepts what a file
/// accepts for `dscp`.
///
/// # Errors
/// If there is no such code point. The error names the flag and what is allowed.
pub fn code_point(flag: &str, text: &str) -> Result<u8, ScenarioError> {
    let mut line = CommandLine::default();
    let start = line.add(flag, text);
    value::code_point(&Node::typed(text.trim(), start)).map_err(|problem| {
        ScenarioError::new(COMMAND_LINE, &line.0, vec![problem.inside(&format!("--{flag}"))])
    })
}

/// Parses a duration such as `50us`, as the value of the flag `--FLAG`.
///
/// # Errors
/// If it is not a duration. The error names the flag and what is allowed.
pub fn span_of_time(flag: &str, text: &str) -> Result<Duration, ScenarioError> {
    let mut line = CommandLine::default();
    let start = line.add(flag, text);
    units::time(&Node::typed(text.trim(), start)).map_err(|problem| {
        ScenarioError::new(COMMAND_LINE, &line.0, vec![problem.inside(&format!("--{flag}"))])
    })
}

/// The flags joined into one line, which errors point into.
#[derive(Default)]
struct CommandLine(String);

impl CommandLine {
    /// Adds a flag; returns the offset of its value.
    fn add(&mut self, key: &str, value: &str) -> usize {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0 += &format!("--{key} ");
        // As a shell takes it for one word.
        let quote = match value.contains([' ', '"']) {
            true if value.contains('"') => "'",
            true => "\"",
            false => "",
        };
        self.0 += quote;
        let start = self.0.len();
        self.0 += value;
        self.0 += quote;
        start
    }

    fn span(&mut self, key: &str, value: &str) -> Range<usize> {
        let start = self.add(key, value);
        start..start + value.len()
    }
}

/// Splits file names for one or both directions. A `/` separates them, but also occurs within paths.
fn of_files<'a>(text: &'a str, files: &Files) -> Vec<&'a str> {
    let is_there = |name: &str| files.has(name.trim());
    let pair = |(at, _)| [&text[..at], &text[at + 1..]];
    match text.match_indices('/').map(pair).find(|pair| pair.iter().all(|name| is_there(name))) {
        Some([down, up]) if !is_there(text) => vec![down, up],
        _ => vec![text],
    }
}

/// Sets one key from `VALUE` or `DOWN/UP`.
fn set(link: &mut Link, key: &str, text: &str, start: usize, files: &Files) -> Result<(), Problem> {
    let flag = format!("--{key}");
    // NetEm options have a flag for each direction, and may name files.
    let (key, only) =
        NETEM.iter().find(|(name, _)| *name == key).map_or((key, None), |(_, way)| ("netem", *way));
    let parts: Vec<&str> = match key {
        "netem" | "exact-netem" => vec![text],
        _ if text.contains('{') => vec![text],
        "trace" | "profile" => of_files(text, files),
        _ => text.split('/').collect(),
    };
    let hosts = HOSTS.map(String::from);
    let around = link.surroundings(&hosts, &[], files, Time::ZERO);
    let mut set = |way: Option<Way>, part: &str, offset: usize| {
        let blank = part.len() - part.trim_start().len();
        let node = Node::typed(part.trim(), start + offset + blank);
        link.directions_mut(way).into_iter().try_for_each(|direction| direction.set_flag(key, &node, around))
    };
    let result = match parts[..] {
        [both] => set(only, both, 0),
        // `10mbit/s` is not a pair.
        [_, "s"] => Err(Problem::new("`/` separates the value for down from the value for up")
            .help("rates are per second: remove `/s`")),
        [down, up] => set(Some(Way::Down), down, 0).and_then(|()| set(Some(Way::Up), up, down.len() + 1)),
        _ => Err(Problem::new(format!("{} values for two directions", parts.len()))
            .help("write one value for both directions, or DOWN/UP")),
    };
    result.map_err(|problem| problem.inside(&flag))
}
