//! A scenario from flags: two hosts, `client` and `server`, and one link called `link` between them.

use std::collections::BTreeMap;
use std::ops::Range;

use narrows_core::{Duration, Time};

use crate::files::Files;
use crate::host::{Host, Place};
use crate::link::{Link, Medium, Way};
use crate::netem;
use crate::node::{Node, Value};
use crate::problem::{Problem, Problems, ScenarioError};
use crate::scenario::{self, Scenario};
use crate::{units, value};

/// What the user typed after each flag: one value for both directions, or `DOWN/UP`. Down is from the server to the
/// client. Values are written as in a file, without quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkFlags {
    /// `--rate 1.5mbit/0.5mbit`
    pub rate: Option<String>,
    /// `--delay 10ms`, one way.
    pub delay: Option<String>,
    /// `--jitter 2ms`
    pub jitter: Option<String>,
    /// `--order keep`
    pub order: Option<String>,
    /// `--loss 1%`, on the wire.
    pub loss: Option<String>,
    /// `--queue "13 packets"`
    pub queue: Option<String>,
    /// `--scheduler fq_codel`
    pub scheduler: Option<String>,
    /// `--overhead ethernet`
    pub overhead: Option<String>,
    /// `--duplicate 0.1%`
    pub duplicate: Option<String>,
    /// `--corrupt 0.1%`
    pub corrupt: Option<String>,
    /// `--reorder "25% gap 5"`
    pub reorder: Option<String>,
    /// `--slots '{ gap = "10ms", packets = 8 }'`
    pub slots: Option<String>,
    /// `--trace cell.down/cell.up`, or one file for both ways.
    pub trace: Option<String>,
    /// `--profile 802.11b.profile`
    pub profile: Option<String>,
    /// `--burst 10kB`
    pub burst: Option<String>,
    /// `--netem "delay 100ms loss 1%"`: NetEm's words, for each direction alike.
    pub netem: Option<String>,
    /// `--netem-up "delay 100ms"`: for the direction from the client to the server.
    pub netem_up: Option<String>,
    /// `--netem-down "delay 100ms"`: for the direction from the server to the client.
    pub netem_down: Option<String>,
    /// `--exact-netem "delay 100ms"`: NetEm's single queue, for each direction alike.
    pub exact_netem: Option<String>,
    /// `--mtu 1400`
    pub mtu: Option<String>,
    /// `--line-limit "1000 packets"`
    pub line_limit: Option<String>,
    /// `--seed 7`
    pub seed: Option<String>,
    /// `--duration 31s`
    pub duration: Option<String>,
}

/// The names of the hosts.
const HOSTS: [&str; 2] = ["client", "server"];
/// The name of the link.
const LINK: &str = "link";

impl Scenario {
    /// A scenario of two hosts, `client` and `server`, and one link called `link`.
    ///
    /// # Errors
    /// Name the flag, what was found and what is allowed.
    pub fn from_flags(flags: &LinkFlags) -> Result<Self, ScenarioError> {
        let mut problems = Problems::default();
        let mut line = CommandLine::default();
        let files = Files::beside("");
        let host = |name: &str| Host { name: name.into(), place: Place::New, addresses: Vec::new() };
        let mut link = Link {
            name: LINK.into(),
            between: HOSTS.map(Into::into),
            cost: 1,
            medium: Medium::Duplex { up: Box::default(), down: Box::default() },
        };
        let mut places: BTreeMap<&str, Range<usize>> = BTreeMap::new();
        for (key, value) in flags.link_keys() {
            let Some(value) = value else { continue };
            let start = line.add(key, value);
            let place = start..start + value.len();
            problems.catch(set(&mut link, key, value, start, &files).map_err(|p| p.at(&place)));
            places.insert(key, place);
        }
        problems.extend(flags.said_twice(&places));
        if problems.is_empty()
            && let Some((_, key, problem)) = link.conflict()
        {
            let place = places.get(key).cloned().unwrap_or_default();
            problems.extend(vec![problem.at(&place).inside(&format!("--{key}"))]);
        }
        let mut alone = |key: &str, value: &Option<String>| {
            value
                .as_ref()
                .map(|value| Node { span: line.span(key, value), value: Value::String(value.clone()) })
        };
        let (seed, duration) = (alone("seed", &flags.seed), alone("duration", &flags.duration));
        let seed =
            seed.and_then(|node| problems.catch(scenario::seed(&node).map_err(|p| p.inside("--seed"))));
        let duration = duration
            .and_then(|node| problems.catch(units::positive_time(&node).map_err(|p| p.inside("--duration"))));
        let mut scenario = Self {
            file: if line.0.is_empty() { "a plain wire".into() } else { line.0.clone() },
            seed: seed.or(flags.netem_seed()).unwrap_or(scenario::DEFAULT_SEED),
            duration,
            hosts: HOSTS.map(host).into(),
            junctions: Vec::new(),
            routers: Vec::new(),
            links: vec![link],
            traffic: Vec::new(),
            timeline: Vec::new(),
            topology: Default::default(),
            files,
        };
        if problems.is_empty() && scenario.wire().is_ok() {
            return Ok(scenario);
        }
        Err(problems.into_error(COMMAND_LINE, &line.0))
    }
}

const COMMAND_LINE: &str = "command line";

impl LinkFlags {
    fn link_keys(&self) -> [(&'static str, Option<&str>); 21] {
        [
            ("rate", self.rate.as_deref()),
            ("delay", self.delay.as_deref()),
            ("jitter", self.jitter.as_deref()),
            ("order", self.order.as_deref()),
            ("loss", self.loss.as_deref()),
            ("queue", self.queue.as_deref()),
            ("scheduler", self.scheduler.as_deref()),
            ("overhead", self.overhead.as_deref()),
            ("duplicate", self.duplicate.as_deref()),
            ("corrupt", self.corrupt.as_deref()),
            ("reorder", self.reorder.as_deref()),
            ("slots", self.slots.as_deref()),
            ("trace", self.trace.as_deref()),
            ("profile", self.profile.as_deref()),
            ("burst", self.burst.as_deref()),
            ("netem", self.netem.as_deref()),
            ("netem-up", self.netem_up.as_deref()),
            ("netem-down", self.netem_down.as_deref()),
            ("exact-netem", self.exact_netem.as_deref()),
            ("mtu", self.mtu.as_deref()),
            ("line-limit", self.line_limit.as_deref()),
        ]
    }
}

/// The flags of NetEm's words, and the direction of each.
const NETEM: [(&str, Option<Way>); 3] =
    [("netem", None), ("netem-up", Some(Way::Up)), ("netem-down", Some(Way::Down))];

impl LinkFlags {
    /// The flags of NetEm's words that are given and understood: name, direction and meaning.
    fn netem_flags(&self) -> Vec<(&'static str, Option<Way>, netem::Qdisc)> {
        let texts = [&self.netem, &self.netem_up, &self.netem_down];
        let given = NETEM.into_iter().zip(texts).filter_map(|(flag, text)| Some((flag, text.as_ref()?)));
        given.filter_map(|((flag, way), text)| Some((flag, way, netem::parse(text).ok()?))).collect()
    }

    /// The seed that NetEm's words give.
    fn netem_seed(&self) -> Option<u64> {
        let exact = self.exact_netem.as_ref().and_then(|text| netem::parse(text).ok());
        let all = self.netem_flags().into_iter().map(|(_, _, qdisc)| qdisc).chain(exact);
        all.filter_map(|qdisc| qdisc.seed()).next()
    }

    /// Flags that say what NetEm's words say, too: which of them counts would be up to their order.
    fn said_twice(&self, places: &BTreeMap<&str, Range<usize>>) -> Vec<Problem> {
        let given = self.netem_flags();
        let mut problems = Vec::new();
        for (index, (flag, way, qdisc)) in given.iter().enumerate() {
            let place = |flag: &str| places.get(flag).cloned().unwrap_or_default();
            if places.contains_key("exact-netem") {
                problems.push(
                    Problem::new(format!("`--{flag}` beside `--exact-netem`, which is all that the link does"))
                        .at(&place(flag))
                        .also(&place("exact-netem"), "here")
                        .help("keep one of the two: --netem for the double queue, --exact-netem for the kernel's single one"),
                );
                continue;
            }
            for (other, other_way, _) in &given[..index] {
                if way.is_none() || other_way.is_none() || way == other_way {
                    problems.push(
                        Problem::new(format!(
                            "`--{flag}` beside `--{other}`, which is for the same direction"
                        ))
                        .at(&place(flag))
                        .also(&place(other), "here")
                        .help("keep --netem for both ways, or --netem-up and --netem-down"),
                    );
                }
            }
            for (key, value) in qdisc.assignments().unwrap_or_default() {
                if places.contains_key(key) {
                    problems.push(
                        Problem::new(format!("`--{key}` beside `--{flag}`, which means {key} = {value}"))
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

/// A code point (DSCP) by its name or number, as the value of the flag `--FLAG`: what a file takes for `dscp`.
///
/// # Errors
/// When there is no such code point: names the flag and what is allowed.
pub fn code_point(flag: &str, text: &str) -> Result<u8, ScenarioError> {
    let mut line = CommandLine::default();
    let start = line.add(flag, text);
    value::code_point(&Node::typed(text.trim(), start)).map_err(|problem| {
        ScenarioError::new(COMMAND_LINE, &line.0, vec![problem.inside(&format!("--{flag}"))])
    })
}

/// A span of time such as `50us`, as the value of the flag `--FLAG`.
///
/// # Errors
/// When it is none: names the flag and what is allowed.
pub fn span_of_time(flag: &str, text: &str) -> Result<Duration, ScenarioError> {
    let mut line = CommandLine::default();
    let start = line.add(flag, text);
    units::time(&Node::typed(text.trim(), start)).map_err(|problem| {
        ScenarioError::new(COMMAND_LINE, &line.0, vec![problem.inside(&format!("--{flag}"))])
    })
}

/// The flags in a row, for errors to point at.
#[derive(Default)]
struct CommandLine(String);

impl CommandLine {
    /// Adds a flag; gives where its value begins.
    fn add(&mut self, key: &str, value: &str) -> usize {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0 += &format!("--{key} ");
        let quote = if value.contains(' ') { "\"" } else { "" };
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

/// A file for both ways, or one for each: a `/` stands between them, and within paths.
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
    // NetEm's words have a flag for each direction, and may name files.
    let (key, only) =
        NETEM.iter().find(|(name, _)| *name == key).map_or((key, None), |(_, way)| ("netem", *way));
    let parts: Vec<&str> = match key {
        "netem" | "exact-netem" => vec![text],
        _ if text.contains('{') => vec![text],
        "trace" | "profile" => of_files(text, files),
        _ => text.split('/').collect(),
    };
    let hosts = HOSTS.map(String::from);
    let around = link.surroundings(&hosts, files, Time::ZERO);
    let mut set = |way: Option<Way>, part: &str, offset: usize| {
        let blank = part.len() - part.trim_start().len();
        let node = Node::typed(part.trim(), start + offset + blank);
        link.directions_mut(way).into_iter().try_for_each(|direction| direction.set_flag(key, &node, around))
    };
    let result = match parts[..] {
        [both] => set(only, both, 0),
        // `10mbit/s` is not a pair.
        [_, "s"] => Err(Problem::new("`/` stands between the value for down and that for up")
            .help("a rate is always for a second: leave out `/s`")),
        [down, up] => set(Some(Way::Down), down, 0).and_then(|()| set(Some(Way::Up), up, down.len() + 1)),
        _ => Err(Problem::new(format!("{} values for two directions", parts.len()))
            .help("write one value for both directions, or DOWN/UP")),
    };
    result.map_err(|problem| problem.inside(&flag))
}
