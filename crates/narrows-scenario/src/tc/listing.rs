//! What `tc qdisc show`, `tc class show` and `tc filter show` print, read as the commands that make it.
//!
//! ```text
//! qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x20 direct_packets_stat 0
//!  Sent 12832 bytes 92 pkts (dropped 0, overlimits 0)
//! class htb 1:10 parent 1:1 leaf 10: prio 1 rate 9Mbit ceil 9Mbit burst 6Kb cburst 13117b
//! ```
//!
//! Source: the functions `print_opt` of iproute2 6.1. What they print differs from what tc reads in a few words, which are
//! written back here, and lines come in the order of handles: a command needs what is above it first.

mod filters;
mod options;

use std::collections::BTreeSet;
use std::ops::Range;

use super::{class, qdisc};
use crate::dialect::{Word, Words};

/// A word that a command gets, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    text: String,
    span: Range<usize>,
}

impl Token {
    fn new(text: impl Into<String>, span: &Range<usize>) -> Self {
        Self { text: text.into(), span: span.clone() }
    }
}

/// A command that makes what a line shows.
pub(super) struct Listed {
    tokens: Vec<Token>,
    pub(super) span: Range<usize>,
}

impl Listed {
    pub(super) fn words(&self) -> Words<'_> {
        let words = self.tokens.iter().map(|token| Word::new(&token.text, &token.span));
        Words::of_words(words.collect(), self.span.end)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Object {
    Qdisc,
    Class,
    Filter,
}

/// A line that shows an object.
#[derive(Debug)]
struct Entry<'a> {
    object: Object,
    kind: Word<'a>,
    /// The handle; of a filter, its parent.
    handle: Word<'a>,
    /// `None` at the root.
    parent: Option<String>,
    /// Whether the line names a place at all; older versions of tc do not.
    is_placed: bool,
    device: String,
    leaf: Option<Word<'a>>,
    options: Vec<Token>,
    /// The class that a filter chooses.
    class: Option<Word<'a>>,
    span: Range<usize>,
}

/// The device of what is shown without one.
const DEVICE: &str = "eth0";

/// What a text shows.
pub(super) struct Listing {
    /// The commands that make it.
    pub(super) commands: Vec<Listed>,
    /// The first line.
    pub(super) first: Range<usize>,
    /// Whether it shows classes, and no filters: which packets are in them is not known.
    pub(super) lacks_filters: bool,
}

/// What a text shows; `None` if that is nothing, or the text gives commands itself.
pub(super) fn read(text: &str) -> Option<Listing> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut device = DEVICE;
    for line in lines(text) {
        match shown(text, &line, device) {
            Some(entry) => entries.push(entry),
            None if gives_a_command(&text[line.clone()]) => return None,
            None => {
                if let Some(named) = asked(&text[line.clone()]) {
                    device = named;
                }
                // What a filter matches stands below it.
                if let Some(last) = entries.last_mut().filter(|last| last.object == Object::Filter) {
                    last.options.extend(filters::below(words(text, &line)));
                }
            }
        }
    }
    let has = |object| entries.iter().any(|entry| entry.object == object);
    let lacks_filters = has(Object::Class) && !has(Object::Filter);
    let first = entries.first()?.span.clone();
    Some(Listing { commands: in_order(entries), first, lacks_filters })
}

/// A text with commands, without the lines in it that show what there is.
pub(super) fn without_listing(text: &str) -> Option<String> {
    let mut left = String::with_capacity(text.len());
    let (mut found, mut is_below) = (false, false);
    for line in text.split_inclusive('\n') {
        let at = left.len();
        let whole = at..at + line.trim_end().len();
        let is_shown = shown(text, &whole, DEVICE).is_some();
        found |= is_shown;
        is_below = is_shown || is_below && (line.starts_with([' ', '\t']) && !gives_a_command(line));
        match is_below {
            true => left.extend(
                line.chars()
                    .flat_map(|c| std::iter::repeat_n(if c == '\n' { '\n' } else { ' ' }, c.len_utf8())),
            ),
            false => left.push_str(line),
        }
    }
    found.then_some(left)
}

fn lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.lines().map(|line| {
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        start..start + line.len()
    })
}

fn words<'a>(text: &'a str, line: &Range<usize>) -> impl Iterator<Item = Word<'a>> {
    let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    text[line.clone()].split_whitespace().map(move |word| {
        let at = start(word);
        Word::new(word, &(at..at + word.len()))
    })
}

/// Whether a line is a command of tc that changes something, also one of `tc -batch`.
fn gives_a_command(line: &str) -> bool {
    const CHANGES: [&str; 6] = ["add", "change", "replace", "delete", "del", "link"];
    const OBJECTS: [&str; 4] = ["qdisc", "class", "filter", "chain"];
    // tc takes their beginnings, too.
    let begins =
        |known: &[&str], word: &str| known.iter().any(|known| !word.is_empty() && known.starts_with(word));
    let changes = |words: &[&str]| match words {
        [object, verb, ..] => begins(&OBJECTS, object) && begins(&CHANGES, verb),
        _ => false,
    };
    let is_tc = |word: &&str| word.rsplit('/').next() == Some("tc");
    let words: Vec<&str> = line.split_whitespace().collect();
    let behind: Vec<&str> = words
        .iter()
        .copied()
        .skip_while(|word| !is_tc(word))
        .skip(1)
        .skip_while(|word| word.starts_with('-'))
        .collect();
    matches!(words[..], [object, ..] if OBJECTS.contains(&object)) && changes(&words)
        || changes(&behind)
        || behind.iter().any(|word| CHANGES.contains(word))
}

/// The device that a command asks about: `$ tc -s qdisc show dev eth1`.
fn asked(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| !matches!(word.rsplit('/').next(), Some("tc")));
    words.find(|word| *word == "dev")?;
    words.next().map(|device| device.trim_end_matches(';'))
}

fn is_handle(text: &str) -> bool {
    let digits = |part: &str| part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.split_once(':').is_some_and(|(major, minor)| digits(major) && digits(minor))
}

/// Reads a line that shows an object; `None` if it does not.
fn shown<'a>(text: &'a str, line: &Range<usize>, device: &str) -> Option<Entry<'a>> {
    let mut all = words(text, line).peekable();
    let object = match all.next()?.text {
        "qdisc" => Object::Qdisc,
        "class" => Object::Class,
        "filter" => return filters::shown(text, line, device),
        _ => return None,
    };
    let kind = all.next()?;
    let is_known = match object {
        Object::Qdisc => qdisc::names().contains(&kind.text) || is_usual(kind.text),
        _ => class::NAMES.contains(&kind.text),
    };
    let handle = all.next().filter(|handle| is_known && is_handle(handle.text))?;
    let mut entry = Entry {
        object,
        kind,
        handle,
        parent: None,
        is_placed: false,
        device: device.to_owned(),
        leaf: None,
        options: Vec::new(),
        class: None,
        span: line.clone(),
    };
    while let Some(word) = all.peek().copied() {
        match word.text {
            "root" => entry.is_placed = true,
            "offloaded" => {}
            "dev" | "parent" | "refcnt" | "leaf" => {
                all.next();
                let value = all.peek().copied()?;
                match word.text {
                    "dev" => value.text.clone_into(&mut entry.device),
                    "parent" => {
                        entry.is_placed = true;
                        entry.parent = Some(value.text.to_owned());
                    }
                    "leaf" => entry.leaf = Some(value),
                    _ => {}
                }
            }
            _ => break,
        }
        all.next();
    }
    entry.options = options::as_typed(kind.text, object, all);
    Some(entry)
}

/// Whether a device has it before anybody configures one.
fn is_usual(kind: &str) -> bool {
    matches!(kind, "noqueue" | "pfifo_fast")
}

/// How many objects may be inside one another: more than a link may have.
const DEEPEST: usize = 64;

/// The commands for all entries: each one behind those for what it needs.
fn in_order(mut entries: Vec<Entry<'_>>) -> Vec<Listed> {
    let mut commands = Vec::new();
    place_old(&mut entries);
    number(&mut entries);
    join_queues(&mut entries);
    // What is shown again, by another command.
    let mut seen = BTreeSet::new();
    entries.retain(|entry| {
        let (device, parent) = (entry.device.clone(), entry.parent.clone());
        let is_new = seen.insert((device, entry.object == Object::Class, entry.handle.text, parent));
        match entry.object {
            Object::Qdisc => is_new && !is_usual(entry.kind.text),
            Object::Class => is_new,
            // Without a class it is the head of a table, or of a kind.
            Object::Filter => entry.class.is_some(),
        }
    });
    // Where only classes are shown, their discipline is as it is without options.
    let disciplines = entries.iter().filter(|entry| entry.object == Object::Qdisc);
    let shown: BTreeSet<(String, String)> = disciplines.map(|entry| entry.named(entry.handle.text)).collect();
    let mut known = BTreeSet::new();
    for class in entries.iter().filter(|entry| entry.object == Object::Class) {
        let discipline = class.named(major(class.handle.text));
        if !shown.contains(&discipline) && known.insert(discipline) {
            commands.push(class.discipline());
        }
    }
    // Each pass finds what is one deeper.
    for _ in 0..DEEPEST {
        entries.retain(|entry| {
            let is_ready = entry.is_ready(&known);
            if is_ready {
                known.insert(entry.named(entry.handle.text));
                commands.push(entry.command());
            }
            !is_ready
        });
    }
    // What cannot be put anywhere is wrong, and said to be.
    commands.extend(entries.iter().map(Entry::command));
    commands
}

/// `1:` of `1:10`.
fn major(handle: &str) -> &str {
    handle.find(':').map_or(handle, |at| &handle[..=at])
}

/// Gives disciplines a place that old versions of tc do not show: the class that names them as its leaf, or the root.
fn place_old(entries: &mut [Entry<'_>]) {
    let leaves: Vec<(String, &str, &str)> = entries
        .iter()
        .filter_map(|entry| Some((entry.device.clone(), entry.leaf?.text, entry.handle.text)))
        .collect();
    for entry in entries.iter_mut().filter(|entry| entry.object == Object::Qdisc && !entry.is_placed) {
        let class =
            leaves.iter().find(|(device, leaf, _)| *device == entry.device && *leaf == entry.handle.text);
        entry.parent = class.map(|(_, _, class)| (*class).to_owned());
    }
}

/// The handle of a discipline that has none.
const FREE: &str = "7fff:";

/// Leaves one of the transmit queues of `mq`, if all have the same: a link has one queue.
fn join_queues(entries: &mut Vec<Entry<'_>>) {
    let is_mq = |entry: &&Entry<'_>| entry.object == Object::Qdisc && entry.kind.text == "mq";
    let all: Vec<(String, String)> = entries
        .iter()
        .filter(is_mq)
        .map(|entry| (entry.device.clone(), entry.handle.text.trim_end_matches(':').to_owned()))
        .collect();
    for (device, mq) in all {
        let is_queue = |entry: &Entry<'_>| {
            let parent = entry.parent.as_deref().and_then(|parent| parent.split_once(':'));
            entry.device == device && parent.is_some_and(|(major, _)| major == mq)
        };
        let said = |entry: &Entry<'_>| {
            let options: Vec<&str> = entry.options.iter().map(|token| token.text.as_str()).collect();
            (entry.kind.text.to_owned(), options.join(" "))
        };
        let kinds: BTreeSet<(String, String)> =
            entries.iter().filter(|entry| is_queue(entry)).map(said).collect();
        if kinds.len() == 1 {
            entries.retain(|entry| {
                !is_queue(entry) || entry.parent.as_deref().is_some_and(|parent| parent.ends_with(":1"))
            });
        }
    }
}

/// Gives disciplines without a handle one, if others are inside: `qdisc mq 0: root` and `qdisc fq_codel 0: parent :1`.
fn number(entries: &mut [Entry<'_>]) {
    for entry in entries.iter_mut() {
        if let Some(parent) = entry.parent.as_mut().filter(|parent| parent.starts_with(':')) {
            parent.insert_str(0, FREE.trim_end_matches(':'));
        }
        if entry.object == Object::Qdisc && entry.handle.text == "0:" && entry.kind.text.starts_with("mq") {
            entry.handle = Word::new(FREE, &entry.handle.span());
        }
    }
}

impl Entry<'_> {
    /// Words of a command.
    fn tokens(&self, words: &[&str]) -> Vec<Token> {
        words.iter().map(|word| Token::new(*word, &self.handle.span())).collect()
    }

    /// The object with this handle at its device.
    fn named(&self, handle: &str) -> (String, String) {
        (self.device.clone(), handle.to_owned())
    }

    /// Whether what it is in is among these objects of devices.
    fn is_ready(&self, known: &BTreeSet<(String, String)>) -> bool {
        let is_known = |handle: &str| known.contains(&self.named(handle));
        // The places of ingress and clsact.
        let above = self.parent.as_deref().filter(|parent| !parent.starts_with("ffff:"));
        // A class of mq is a queue of the device.
        let is_there = |parent| {
            is_known(parent) || self.object == Object::Qdisc && is_known(FREE) && major(parent) == FREE
        };
        above.is_none_or(is_there) && (self.object != Object::Class || is_known(major(self.handle.text)))
    }

    /// The command that makes it.
    fn command(&self) -> Listed {
        let mut tokens = match self.object {
            Object::Qdisc => self.tokens(&["qdisc", "add", "dev", &self.device]),
            Object::Class => self.tokens(&["class", "add", "dev", &self.device]),
            Object::Filter => self.tokens(&["filter", "add", "dev", &self.device]),
        };
        match (&self.parent, self.object) {
            (Some(parent), _) => tokens.extend(self.tokens(&["parent", parent])),
            (None, Object::Class) => tokens.extend(self.tokens(&["parent", major(self.handle.text)])),
            (None, _) if matches!(self.kind.text, "ingress" | "clsact") => {}
            (None, _) => tokens.extend(self.tokens(&["root"])),
        }
        match self.object {
            Object::Qdisc if self.handle.text == "0:" => {}
            Object::Qdisc => tokens.extend(self.tokens(&["handle", self.handle.text])),
            Object::Class => tokens.extend(self.tokens(&["classid", self.handle.text])),
            Object::Filter => {}
        }
        if self.object != Object::Filter {
            tokens.push(Token::new(self.kind.text, &self.kind.span()));
        }
        tokens.extend(self.options.iter().cloned());
        if let Some(class) = self.class {
            tokens.extend([Token::new("flowid", &class.span()), Token::new(class.text, &class.span())]);
        }
        Listed { tokens, span: self.span.clone() }
    }

    /// The discipline of a class, if only classes are shown.
    fn discipline(&self) -> Listed {
        let handle = major(self.handle.text);
        let mut tokens = self.tokens(&["qdisc", "add", "dev", &self.device, "root", "handle", handle]);
        tokens.push(Token::new(self.kind.text, &self.kind.span()));
        Listed { tokens, span: self.span.clone() }
    }
}
