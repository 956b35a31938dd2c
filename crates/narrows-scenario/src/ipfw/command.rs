//! Commands: the meaning of one line.

use std::ops::{Range, RangeInclusive};

use narrows_core::rules::Rule;

use super::address::Context;
use super::config::{self, Config, Object};
use super::lexer::{self, Line, Word, Words};
use super::numbers;
use super::reader::{LAST, set_number, unknown};
use super::rule;
use super::sets::{self, SetCommand};
use super::table::{self, TableCommand};
use crate::problem::{Found, Problem, Problems};

/// A command.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `add`: adds a rule; number 0 means the next one.
    Add(Rule),
    /// `delete N …`, optionally limited to a set.
    Delete(Rules),
    /// `delete set N …`: deletes all rules of these sets.
    DeleteSets(Vec<u8>),
    /// `list`, `show` or `print`.
    List(Listing),
    /// `zero`: resets counters.
    Zero(Rules),
    /// `resetlog`: resets the counts of logged packets.
    ResetLog(Rules),
    /// `flush`: deletes all rules, or those of a set; rules of set 31 stay unless it is named.
    Flush(Option<u8>),
    /// `set enable`, `disable`, `move`, `swap` or `show`.
    Sets(SetCommand),
    /// `pipe | queue | sched N config …`
    Configure(Box<Config>),
    /// `pipe | queue | sched delete N …`
    DeleteObjects(Object, Vec<RangeInclusive<u32>>),
    /// `pipe | queue | sched list | show [N …]`; empty for all.
    ListObjects(Object, Vec<RangeInclusive<u32>>),
    /// `pipe flush`: deletes all pipes, queues and schedulers.
    FlushObjects,
    /// `table …`
    Table(TableCommand),
    /// `enable one_pass`, `disable one_pass`, or the sysctl: whether a packet that leaves a pipe is
    /// accepted, or continues at the next rule.
    OnePass(bool),
    /// `sysctl NAME`: prints the settings with this name, or below it.
    Settings(Vec<&'static str>),
    /// A harmless command that has no effect in narrows.
    Nothing,
}

impl Command {
    /// Whether it only prints.
    pub const fn prints(&self) -> bool {
        matches!(
            self,
            Self::List(_)
                | Self::Sets(SetCommand::Show)
                | Self::ListObjects(..)
                | Self::Settings(_)
                | Self::Table(TableCommand::List(_) | TableCommand::Info(_))
        )
    }
}

/// A selection of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Rule numbers; empty for all.
    pub numbers: Vec<RangeInclusive<u16>>,
    /// The set, if the selection is limited to one.
    pub set: Option<u8>,
}

impl Rules {
    /// Whether a rule is selected.
    pub fn include(&self, rule: &Rule) -> bool {
        self.set.is_none_or(|set| set == rule.set)
            && (self.numbers.is_empty() || self.numbers.iter().any(|range| range.contains(&rule.number)))
    }
}

/// What to list, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The rules to list.
    pub rules: Rules,
    /// `show`, or `-a`: include counters.
    pub counters: bool,
    /// `-t`: include the time of the last match; `-T` in seconds.
    pub times: Option<Times>,
    /// `-d`: include dynamic rules.
    pub dynamic: bool,
    /// `-S`: include the set of each rule, and rules of disabled sets.
    pub sets: bool,
}

/// Format of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Date and time.
    Text,
    /// A number of seconds.
    Seconds,
}

/// First words of commands.
const VERBS: &[&str] = &[
    "add", "delete", "list", "show", "print", "zero", "resetlog", "flush", "set", "pipe", "queue", "sched",
    "table", "enable", "disable", "sysctl", "link", "flowset",
];

/// ipfw commands that narrows rejects, and why.
const REFUSED: &[(&str, &str)] = &[
    ("nat", "narrows does not change addresses"),
    ("nat64lsn", "narrows does not change addresses"),
    ("nat64stl", "narrows does not change addresses"),
    ("nptv6", "narrows does not change addresses"),
    ("internal", "narrows has no equivalent"),
    ("kldload", "narrows needs no kernel modules"),
    ("modprobe", "narrows needs no kernel modules"),
    ("insmod", "narrows needs no kernel modules"),
];

/// Whether the words of an indented line are a command of their own, rather than a continuation.
pub(super) fn is_command(words: &[Word]) -> bool {
    let is =
        |at: usize, texts: &[&str]| words.get(at).is_some_and(|word| texts.contains(&word.text.as_str()));
    let number =
        |at: usize| words.get(at).is_some_and(|word| word.text.starts_with(|c: char| c.is_ascii_digit()));
    match words.first().map(|word| word.text.as_str()) {
        // `queue 20` and `pipe 5` may continue a configuration line.
        Some("pipe" | "queue" | "sched" | "link" | "flowset") => {
            let verbs = ["config", "delete", "list", "show", "flush"];
            is(1, &verbs) || number(1) && is(2, &verbs)
        }
        Some("set") => is(1, &["enable", "disable", "move", "swap", "show"]) || number(1) && is(2, VERBS),
        // ipfw's old syntax has a number before `add`.
        Some(_) if number(0) => is(1, &["add", "delete"]),
        Some(text) => VERBS.contains(&text) || is_program(text) || matches!(text, "sudo"),
        None => false,
    }
}

fn is_program(text: &str) -> bool {
    matches!(text.rsplit('/').next(), Some("ipfw" | "dnctl")) && !text.ends_with('/')
}

/// Flags before a command.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    counters: bool,
    times: Option<Times>,
    dynamic: bool,
    sets: bool,
}

/// Parses commands, one per line: each with its text on one line, and its span.
pub(crate) fn read_all(
    text: &str,
    context: &Context<'_>,
) -> Result<Vec<(Command, String, Range<usize>)>, Problems> {
    let (mut commands, mut problems) = (Vec::new(), Problems::default());
    for line in lexer::lines(text, is_command).into_iter().filter(|line| !line.words.is_empty()) {
        let read = read(&line, context, &mut Vec::new());
        if let Some(command) = problems.catch(read.map_err(|problem| problem.at(&line.span))) {
            let words = text.get(line.span.clone()).unwrap_or_default().split_whitespace();
            let words: Vec<&str> = words.filter(|word| *word != "\\").collect();
            commands.push((command, words.join(" "), line.span));
        }
    }
    if problems.is_empty() { Ok(commands) } else { Err(problems) }
}

/// Parses a line.
pub(super) fn read(
    line: &Line,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<Command, Problem> {
    let mut words = Words::new(&line.words);
    while words.take_if(&["sudo", "$", "exec"]).is_some() {}
    let mut program = None;
    if words.peek().is_some_and(|word| is_program(&word.text)) {
        program = words.take();
    }
    let flags = flags(&mut words)?;
    // ipfw's old syntax: `100 add …`.
    let number = words
        .peek()
        .filter(|word| word.text.starts_with(|c: char| c.is_ascii_digit()))
        .and_then(|_| words.peek_second().filter(|second| matches!(second.text.as_str(), "add" | "delete")));
    let swapped: Vec<Word>;
    if number.is_some() {
        let mut rest = words.rest().to_vec();
        rest.swap(0, 1);
        swapped = rest;
        words = Words::new(&swapped);
    }
    let verb = words.expect("a command")?;
    let command = match full(verb, VERBS) {
        "add" => {
            return rule::read(words, line.comment.as_deref(), context, remarks).map(Command::Add);
        }
        "flush" if program.is_some_and(|program| program.text.ends_with("dnctl")) => Command::FlushObjects,
        "sysctl" => sysctl(&mut words, remarks)?,
        "table" => Command::Table(table::read(&mut words, context, remarks)?),
        "enable" => switch(&mut words, true, remarks)?,
        "disable" => switch(&mut words, false, remarks)?,
        "pipe" | "link" => object(Object::Pipe, &mut words, remarks)?,
        "queue" | "flowset" => object(Object::Queue, &mut words, remarks)?,
        "sched" => object(Object::Scheduler, &mut words, remarks)?,
        "set" => match words.peek().filter(|word| word.text.starts_with(|c: char| c.is_ascii_digit())) {
            Some(number) => {
                words.take();
                let set = set_number(number)?;
                let verb = words.expect("a command for the set")?;
                about_rules(verb, &mut words, Some(set), flags)?
            }
            None => Command::Sets(sets::read(&mut words)?),
        },
        _ => about_rules(verb, &mut words, None, flags)?,
    };
    words.end()?;
    Ok(command)
}

/// Expands a verb abbreviated to at least three letters.
fn full<'a>(word: &'a Word, known: &[&'a str]) -> &'a str {
    let text = word.text.as_str();
    if known.contains(&text) || text.len() < 3 {
        return text;
    }
    known.iter().copied().find(|verb| verb.starts_with(text)).unwrap_or(text)
}

fn flags(words: &mut Words<'_>) -> Result<Flags, Problem> {
    let mut flags = Flags::default();
    while let Some(word) = words.peek().filter(|word| word.text.len() > 1 && word.text.starts_with('-')) {
        words.take();
        for letter in word.text[1..].chars() {
            match letter {
                'a' => flags.counters = true,
                't' => flags.times = Some(Times::Text),
                'T' => flags.times = Some(Times::Seconds),
                'd' => flags.dynamic = true,
                'S' => flags.sets = true,
                // Quiet, force, compact, verbose, expired rules, names: no effect here.
                'q' | 'f' | 'c' | 'v' | 'e' | 'N' | 'i' => {}
                _ => {
                    return Err(word.problem(format!("unknown flag {}", Found(&word.text))).help(
                        "understood: -q, -f and -c, and before `list` and `show` also -a, -d, -S, -t and -T",
                    ));
                }
            }
        }
    }
    Ok(flags)
}

/// Parses commands about rules, optionally of one set.
fn about_rules(
    verb: &Word,
    words: &mut Words<'_>,
    set: Option<u8>,
    flags: Flags,
) -> Result<Command, Problem> {
    let known = ["delete", "list", "show", "print", "zero", "resetlog", "flush"];
    Ok(match full(verb, &known) {
        "delete" => {
            if set.is_none() && words.take_if(&["set"]).is_some() {
                let mut sets = vec![set_number(words.expect("the number of a set")?)?];
                while let Some(word) = words.take() {
                    sets.push(set_number(word)?);
                }
                return Ok(Command::DeleteSets(sets));
            }
            let numbers = rule_numbers(words)?;
            if numbers.is_empty() {
                return Err(words.missing("the number of a rule").help("`flush` deletes all rules"));
            }
            Command::Delete(Rules { numbers, set })
        }
        name @ ("list" | "show" | "print") => Command::List(Listing {
            rules: Rules { numbers: rule_numbers(words)?, set },
            counters: flags.counters || name == "show",
            times: flags.times,
            dynamic: flags.dynamic,
            sets: flags.sets,
        }),
        "zero" => Command::Zero(Rules { numbers: rule_numbers(words)?, set }),
        "resetlog" => Command::ResetLog(Rules { numbers: rule_numbers(words)?, set }),
        "flush" => Command::Flush(set),
        other => return Err(unknown(verb, other, "command", VERBS, REFUSED)),
    })
}

/// Parses rule numbers and ranges up to the end of the line.
fn rule_numbers(words: &mut Words<'_>) -> Result<Vec<RangeInclusive<u16>>, Problem> {
    let mut numbers = Vec::new();
    while let Some(word) = words.take() {
        for range in ranges(word, "the number of a rule", 65_535)? {
            numbers.push(*range.start() as u16..=*range.end() as u16); // at most 65,535
        }
    }
    Ok(numbers)
}

/// `a-b,c`.
fn ranges(word: &Word, what: &str, most: u32) -> Result<Vec<RangeInclusive<u32>>, Problem> {
    let range = |item: &str| {
        let item = word.part(item);
        let (low, high) = item.text.split_once('-').unwrap_or((&item.text, &item.text));
        let read = |text: &str| numbers::decimal(&item.part(text), what, 1..=most);
        match (read(low)?, read(high)?) {
            (low, high) if low <= high => Ok(low..=high),
            _ => Err(item.problem(format!("{} is a descending range", Found(&item.text)))),
        }
    };
    word.text.split(',').map(range).collect()
}

/// Parses commands about pipes, queues and schedulers. The number may precede or follow the verb.
fn object(object: Object, words: &mut Words<'_>, remarks: &mut Vec<String>) -> Result<Command, Problem> {
    const KNOWN: &[&str] = &["config", "delete", "list", "show", "flush"];
    let what = format!("the number of a {}", object.word());
    let is_number = |word: &&Word| word.text.starts_with(|c: char| c.is_ascii_digit());
    let mut numbers = Vec::new();
    if let Some(word) = words.peek().filter(is_number) {
        words.take();
        numbers.push(word);
    }
    let verb = words.expect(&format!("a command for the {}", object.word()))?;
    match full(verb, KNOWN) {
        "config" => {
            let number = match numbers.first() {
                Some(number) => number,
                None => words.expect(&what)?,
            };
            let number = config::object_number(number, object)?;
            config::read(object, number, words, remarks).map(|config| Command::Configure(Box::new(config)))
        }
        "flush" if numbers.is_empty() => Ok(Command::FlushObjects),
        name @ ("delete" | "list" | "show") => {
            while let Some(word) = words.take() {
                numbers.push(word);
            }
            let mut all = Vec::new();
            for word in numbers {
                all.extend(ranges(word, &what, LAST)?);
            }
            match name {
                "delete" if all.is_empty() => {
                    Err(words.missing(&what).help("`pipe flush` deletes everything"))
                }
                "delete" => Ok(Command::DeleteObjects(object, all)),
                _ => Ok(Command::ListObjects(object, all)),
            }
        }
        other => Err(unknown(verb, other, &format!("command for a {}", object.word()), KNOWN, &[])),
    }
}

/// `enable` and `disable`.
fn switch(words: &mut Words<'_>, on: bool, remarks: &mut Vec<String>) -> Result<Command, Problem> {
    let word = words.expect("what to switch")?;
    match word.text.as_str() {
        "one_pass" => Ok(Command::OnePass(on)),
        "firewall" if !on => Err(word
            .problem("`disable firewall` exists in ipfw but not in narrows")
            .help("`set disable 0` takes the rules of set 0 out of use")),
        "firewall" | "debug" | "verbose" | "dyn_keepalive" => {
            remarks.push(format!("`{}` changes nothing here", word.text));
            Ok(Command::Nothing)
        }
        other => {
            Err(unknown(word, other, "setting", &["one_pass"], &[("altq", "narrows has no queues of ALTQ")]))
        }
    }
}

/// FreeBSD settings that are accepted without effect, each with the reason.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("net.inet.ip.fw.enable", "rules are always active: `flush` removes them"),
    ("net.inet.ip.fw.verbose", "narrows writes no log"),
    ("net.inet.ip.fw.verbose_limit", "narrows writes no log"),
    ("net.inet.ip.fw.debug", "narrows writes no log"),
    ("net.inet.ip.fw.autoinc_step", "the step is 100"),
    ("net.inet.ip.fw.dyn_buckets", "dynamic rules are found by a tree"),
    ("net.inet.ip.fw.dyn_keepalive", "nothing is sent to keep flows alive"),
    ("net.inet.ip.dummynet.io_fast", "every packet goes through its pipe"),
    ("net.inet.ip.dummynet.hash_size", "the flows of a mask are not in a table of a fixed size"),
    ("net.inet.ip.dummynet.max_chain_len", "the flows of a mask are not in a table of a fixed size"),
    ("net.inet.ip.dummynet.expire", "flows of a mask expire after 1 s idle"),
    ("net.inet.ip.dummynet.expire_cycle", "flows of a mask expire after 1 s idle"),
    ("net.inet.ip.dummynet.pipe_slot_limit", "queues may have any number of slots"),
    ("net.inet.ip.dummynet.pipe_byte_limit", "queues may have any number of bytes"),
    ("net.inet.ip.dummynet.red_lookup_depth", "RED's average of an idle queue is computed, not looked up"),
    ("net.inet.ip.dummynet.red_avg_pkt_size", "RED's average of an idle queue follows the queue's own keys"),
    ("net.inet.ip.dummynet.red_max_pkt_size", "RED's probability follows the queue's own keys"),
    ("net.inet.ip.dummynet.debug", "narrows writes no log"),
];

const ONE_PASS: &str = "net.inet.ip.fw.one_pass";

/// Every setting that is known.
fn settings() -> impl Iterator<Item = &'static str> {
    [ONE_PASS].into_iter().chain(WITHOUT_EFFECT.iter().map(|(name, _)| *name))
}

/// What `sysctl NAME` prints: a line for each setting. One without effect has no value; the line says why.
pub fn setting_lines(names: &[&str], one_pass: bool) -> String {
    let line = |name: &&str| match WITHOUT_EFFECT.iter().find(|(known, _)| known == name) {
        Some((_, why)) => format!("{name}: no effect in narrows: {why}\n"),
        None => format!("{name}: {}\n", u8::from(one_pass)),
    };
    names.iter().map(line).collect()
}

/// `sysctl [-w] name=value`, or `sysctl name`
fn sysctl(words: &mut Words<'_>, remarks: &mut Vec<String>) -> Result<Command, Problem> {
    while words.take_if(&["-w", "-q"]).is_some() {}
    let word = words.expect("a setting, as in net.inet.ip.fw.one_pass=0")?;
    let (name, value) = match word.text.split_once('=') {
        Some((name, "")) => (name, words.expect("the value of the setting")?.clone()),
        Some((name, value)) => (name, word.part(value)),
        None => {
            let is_below = |known: &&str| {
                known
                    .strip_prefix(word.text.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let names: Vec<_> = settings().filter(is_below).collect();
            if names.is_empty() {
                return Err(word
                    .problem(format!("unknown setting {}", Found(&word.text)))
                    .did_you_mean(&word.text, settings())
                    .help(format!("set one as in {ONE_PASS}=0, or print one as in {ONE_PASS}")));
            }
            return Ok(Command::Settings(names));
        }
    };
    match name {
        ONE_PASS => match value.text.as_str() {
            "0" => Ok(Command::OnePass(false)),
            "1" => Ok(Command::OnePass(true)),
            _ => Err(value.expected("0 or 1")),
        },
        _ => {
            if let Some((_, why)) = WITHOUT_EFFECT.iter().find(|(known, _)| *known == name) {
                numbers::decimal(&value, "the value of a setting", 0..=u32::MAX)?;
                remarks.push(format!("`{name}` changes nothing here: {why}"));
                return Ok(Command::Nothing);
            }
            Err(word
                .part(name)
                .problem(format!("unknown setting {}", Found(name)))
                .did_you_mean(name, settings())
                .help(format!("understood: {ONE_PASS}")))
        }
    }
}
