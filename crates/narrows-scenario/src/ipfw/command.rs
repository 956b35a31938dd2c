//! Commands: the meaning of one line.

mod settings;

pub(crate) use settings::disabled;
pub use settings::setting_lines;
use settings::{switch, sysctl};

use std::ops::{Range, RangeInclusive};

use narrows_core::Duration;
use narrows_core::rules::Rule;

use super::address::Context;
use super::config::{self, Config, Object};
use super::flows;
use super::interfaces;
use super::lexer::{Line, Word, Words, full};
use super::nat::{self, NatCommand};
use super::numbers;
use super::reader::{LAST, set_number, unknown};
use super::rule;
use super::sets::{self, SetCommand};
use super::table::{self, TableCommand};
use super::verbs::{VERBS, is_program};
use super::{programs, source};
use crate::dialect::shell::raises_rights;
use crate::dialect::sleep;
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
    /// `nat …`
    Nat(NatCommand),
    /// `enable one_pass`, `disable one_pass`, or the sysctl: whether a packet that leaves a pipe or a translator is
    /// accepted, or continues at the next rule.
    OnePass(bool),
    /// `enable firewall`, `disable firewall`, or the sysctl: whether packets meet the rules.
    Firewall(bool),
    /// `sysctl NAME`: prints the settings with this name, or below it.
    Settings(Vec<&'static str>),
    /// `sleep`: what follows happens later.
    Sleep(Duration),
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
                | Self::Nat(NatCommand::Show(_) | NatCommand::ShowFlows(_))
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

/// ipfw commands that narrows rejects, and why.
const REFUSED: &[(&str, &str)] = &[
    ("nat64lsn", "narrows translates IPv4 only: see `nat`"),
    ("nat64stl", "narrows translates IPv4 only: see `nat`"),
    ("nptv6", "narrows translates IPv4 only: see `nat`"),
    ("internal", "narrows has no equivalent"),
];

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
    let lines = source::commands(text, context.start);
    let mut interface_tables = interfaces::tables(lines.iter().flatten());
    interface_tables.extend_from_slice(context.interface_tables);
    let mut flow_tables = context.flow_tables.to_vec();
    flow_tables.extend(flows::tables(lines.iter().flatten()));
    let context = Context { interface_tables: &interface_tables, flow_tables: &flow_tables, ..*context };
    for line in lines {
        let Some(line) = problems.catch(line).filter(|line| !line.words.is_empty()) else { continue };
        let read = read(&line, &context, &mut Vec::new());
        match problems.catch(read.map_err(|problem| source::of_line(problem, &line))) {
            None | Some(Command::Nothing) => {}
            Some(command) => commands.push((command, line.text(), line.span)),
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
    while words.peek().is_some_and(|word| raises_rights(&word.text) || word.text == "exec") {
        words.take();
        while words.peek().is_some_and(|word| word.text.starts_with('-')) {
            words.take();
        }
    }
    let mut program = None;
    if words.peek().is_some_and(|word| is_program(&word.text)) {
        program = words.take();
    }
    if let Some(other) = words.peek().filter(|_| program.is_none()) {
        let is_own = other.text == "set"
            && !words.peek_second().is_some_and(|next| programs::is_set_of_shell(&next.text));
        // An interface with another MTU, or one that is down, passes other packets.
        let changes = other.text.ends_with("ifconfig")
            && line.words.iter().any(|word| matches!(word.text.as_str(), "mtu" | "down"));
        if changes {
            return Err(other
                .problem("`ifconfig` with `mtu` or `down`")
                .help("a link of a scenario has `mtu` and `outage`"));
        }
        if let Some(why) = programs::ignored(&other.text).filter(|_| !is_own) {
            remarks.push(format!("`{}` is not a command of ipfw: {why}", other.text));
            return Ok(Command::Nothing);
        }
        if !is_own && programs::is_unknown(&line.words) {
            let name = Found(&other.text);
            remarks
                .push(format!("{name} is not a command of ipfw: what it does to packets is not known here"));
            return Ok(Command::Nothing);
        }
        if let Some(help) = programs::refused(&other.text) {
            return Err(other.problem(format!("{} is not a command of ipfw", Found(&other.text))).help(help));
        }
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
        "sysctl" => sysctl(&mut words, context.is_script, remarks)?,
        sleep::SLEEP => Command::Sleep(sleep::time(words.expect("a time in seconds")?.into())?),
        "table" => Command::Table(table::read(&mut words, context, remarks)?),
        // As in ipfw, where this is `flush`.
        "nat" if words.peek().is_some_and(|word| word.text == "flush") => {
            words.take();
            remarks.push("ipfw itself takes it for `flush`: all rules go, and the translators stay".into());
            Command::Flush(None)
        }
        "nat" => Command::Nat(nat::read(&mut words, context, remarks)?),
        "enable" => switch(&mut words, true, context.is_script, remarks)?,
        "disable" => switch(&mut words, false, context.is_script, remarks)?,
        "pipe" | "link" => object(Object::Pipe, &mut words, remarks)?,
        "queue" | "flowset" => object(Object::Queue, &mut words, remarks)?,
        "sched" => object(Object::Scheduler, &mut words, remarks)?,
        "set" => {
            match words.peek().filter(|word| word.text.starts_with(|c: char| c.is_ascii_digit())) {
                Some(number) => {
                    words.take();
                    let set = set_number(number)?;
                    let verb = words.expect("a command for the set")?;
                    if verb.text == "table" {
                        remarks.push(format!("the table belongs to no set, as with net.inet.ip.fw.tables_sets=0, not to set {set}"));
                        Command::Table(table::read(&mut words, context, remarks)?)
                    } else {
                        about_rules(verb, &mut words, Some(set), flags)?
                    }
                }
                None => Command::Sets(sets::read(&mut words)?),
            }
        }
        _ => {
            if context.is_script
                && full(verb, &["delete"]) == "delete"
                && let Some(count) = read_by_delete(&words)
            {
                let (read, others) = words.rest().split_at(count);
                remarks.push(format!(
                    "ipfw itself deletes nothing from {} on, which is no number of a rule; a pipe is deleted as in: pipe 1 delete",
                    Found(&others[0].text)
                ));
                if read.is_empty() {
                    return Ok(Command::Nothing);
                }
                words = Words::new(read);
            }
            about_rules(verb, &mut words, None, flags)?
        }
    };
    words.end()?;
    Ok(command)
}

/// The number of those words of `delete` that ipfw reads, if others follow: it says nothing about the first that is no number
/// of a rule, and stops there.
fn read_by_delete(words: &Words<'_>) -> Option<usize> {
    let is_number = |word: &Word| word.text.starts_with(|c: char| c.is_ascii_digit());
    words.rest().iter().position(|word| !is_number(word)).filter(|_| !words.next_is(&["set"]))
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
        // `dnctl show queue`
        "list" | "show" | "print"
            if words.take_if(&["pipe", "queue", "sched", "link", "flowset", "all"]).is_some() =>
        {
            Command::Nothing
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
        "flush" => {
            self::flags(words)?;
            Command::Flush(set)
        }
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
        "flush" if numbers.is_empty() => flags(words).map(|_| Command::FlushObjects),
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
