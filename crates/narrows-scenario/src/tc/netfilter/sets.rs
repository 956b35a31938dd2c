//! Sets of addresses and ports (`ipset`), in which rules of iptables look packets up.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use super::values::{networks, range};
use crate::dialect::{Word, Words};
use crate::node::{Node, Value};
use crate::problem::{Found, Problem, one_of};
use crate::tc::both::both;
use crate::value::{Match, Party, protocol};

/// The sets of a host, by name.
pub(super) type Sets = BTreeMap<String, Set>;

/// What a part of an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Addresses,
    /// With a protocol, TCP if none is given.
    Ports,
    /// Of TCP or UDP.
    AnyPorts,
}

use Part::{Addresses, AnyPorts, Ports};

/// Types of sets, and what their entries have.
const TYPES: &[(&str, &[Part])] = &[
    ("hash:ip", &[Addresses]),
    ("hash:net", &[Addresses]),
    ("bitmap:ip", &[Addresses]),
    ("hash:ip,port", &[Addresses, Ports]),
    ("hash:net,port", &[Addresses, Ports]),
    ("hash:net,net", &[Addresses, Addresses]),
    ("hash:ip,port,ip", &[Addresses, Ports, Addresses]),
    ("hash:ip,port,net", &[Addresses, Ports, Addresses]),
    ("hash:net,port,net", &[Addresses, Ports, Addresses]),
    ("bitmap:port", &[AnyPorts]),
    // As versions before 5 have them.
    ("iphash", &[Addresses]),
    ("nethash", &[Addresses]),
    ("ipmap", &[Addresses]),
    ("iptree", &[Addresses]),
    ("ipporthash", &[Addresses, Ports]),
    ("ipportiphash", &[Addresses, Ports, Addresses]),
    ("ipportnethash", &[Addresses, Ports, Addresses]),
    ("portmap", &[AnyPorts]),
];

/// Options of `create`, and whether a value follows. What they say is of no effect here.
const OF_CREATE: &[(&str, bool)] = &[
    ("family", true),
    ("hashsize", true),
    ("maxelem", true),
    ("bucketsize", true),
    ("initval", true),
    ("range", true),
    ("--hashsize", true),
    ("--probes", true),
    ("--resize", true),
    ("--from", true),
    ("--to", true),
    ("counters", false),
    ("comment", false),
    ("skbinfo", false),
    ("forceadd", false),
];

/// The most entries of a set: conditions are compared with one another, network by network.
const MOST: usize = 4096;

/// A set.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Set {
    parts: &'static [Part],
    /// By what is the same for all ways to write one.
    entries: BTreeMap<String, Entry>,
}

type Entry = Vec<Item>;

/// A part of an entry.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    Networks(Vec<Party>),
    Ports {
        protocols: Vec<u8>,
        ports: RangeInclusive<u16>,
    },
    /// Of a protocol without ports.
    Protocol(u8),
}

/// Which end of a packet is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Source,
    Destination,
}

/// A condition: a packet is in a set, or not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Looked {
    set: String,
    ends: Vec<End>,
    pub(super) not: bool,
}

/// A command of `ipset`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    Create { name: String, parts: &'static [Part], exist: bool },
    Add { name: String, text: String, exist: bool },
    Delete { name: String, text: String, exist: bool },
    Flush(Option<String>),
    Destroy(Option<String>),
    Swap(String, String),
    Rename(String, String),
    Nothing,
}

/// Commands, by their long and short names.
const COMMANDS: &[(&str, &[&str])] = &[
    ("create", &["create", "n", "-N", "--create"]),
    ("add", &["add", "-A", "--add"]),
    ("del", &["del", "-D", "--del"]),
    ("flush", &["flush", "-F", "--flush"]),
    ("destroy", &["destroy", "x", "-X", "--destroy"]),
    ("swap", &["swap", "-W", "--swap"]),
    ("rename", &["rename", "e", "-E", "--rename"]),
    (
        "list",
        &["list", "-L", "--list", "-l", "save", "-S", "--save", "test", "-T", "--test", "version", "help"],
    ),
];

/// Reads the words behind `ipset`.
pub(super) fn read(name: Word<'_>, words: &mut Words<'_>) -> Result<Change, Problem> {
    let mut all: Vec<Word<'_>> = std::iter::from_fn(|| words.take()).collect();
    let count = all.len();
    all.retain(|word| !matches!(word.text, "-!" | "-exist" | "--exist"));
    let exist = all.len() < count;
    all.retain(|word| !matches!(word.text, "-q" | "-quiet" | "--quiet"));
    let end = all.last().map_or(name.span().end, |word| word.span().end);
    let mut words = Words::of_words(all, end);
    let command = words.expect(name, "a command")?;
    let Some((kind, _)) = COMMANDS.iter().find(|(_, names)| names.contains(&command.text)) else {
        let known: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
        let problem = command.problem(format!("unsupported {} of ipset", Found(command.text)));
        return Err(problem.help(format!("understood: {}", one_of(&known))));
    };
    if *kind == "list" {
        return Ok(Change::Nothing);
    }
    let optional = words.peek().is_none() && matches!(*kind, "flush" | "destroy");
    let set = if optional { None } else { Some(words.expect(command, "the name of a set")?) };
    let named = set.map(|set| set.text.to_owned());
    let after = set.unwrap_or(command);
    let text = named.clone().unwrap_or_default();
    let change = match *kind {
        "create" => Change::Create { name: text, parts: create(after, &mut words)?, exist },
        "add" | "del" => {
            let entry = words.expect(after, "an entry")?;
            options_of_entry(&mut words)?;
            // Read where the set's type is known; what can be nowhere is an error already here.
            if !TYPES.iter().any(|(_, parts)| self::entry(entry, parts).is_ok()) {
                return Err(entry
                    .problem(format!("{} is not an entry of a set", Found(entry.text)))
                    .help("as in 10.0.0.1, 10.0.0.0/24, 10.0.0.1-10.0.0.9 or 10.0.0.1,udp:53"));
            }
            let entry = entry.text.to_owned();
            match *kind {
                "add" => Change::Add { name: text, text: entry, exist },
                _ => Change::Delete { name: text, text: entry, exist },
            }
        }
        "flush" => Change::Flush(named),
        "destroy" => Change::Destroy(named),
        kind => {
            let other = words.expect(after, "the name of another set")?.text.to_owned();
            if kind == "swap" { Change::Swap(text, other) } else { Change::Rename(text, other) }
        }
    };
    match words.take() {
        None => Ok(change),
        Some(word) => Err(word.problem(format!("unsupported {} of ipset", Found(word.text)))),
    }
}

fn create(after: Word<'_>, words: &mut Words<'_>) -> Result<&'static [Part], Problem> {
    let kind = words.expect(after, "a type, such as hash:ip")?;
    let Some((_, parts)) = TYPES.iter().find(|(name, _)| *name == kind.text) else {
        let known: Vec<&str> =
            TYPES.iter().map(|(name, _)| *name).filter(|name| name.contains(':')).collect();
        return Err(kind
            .problem(format!("unsupported type {} of a set", Found(kind.text)))
            .help(format!("understood: {}", one_of(&known))));
    };
    while let Some(word) = words.take() {
        match OF_CREATE.iter().find(|(name, _)| *name == word.text) {
            Some((_, true)) => drop(words.expect(word, "a value")?),
            Some((_, false)) => {}
            None if word.text == "timeout" => no_timeout(word, words)?,
            None => return Err(word.problem(format!("unsupported {} of a set", Found(word.text)))),
        }
    }
    Ok(parts)
}

fn options_of_entry(words: &mut Words<'_>) -> Result<(), Problem> {
    while let Some(word) = words.take() {
        match word.text {
            "comment" | "packets" | "bytes" => drop(words.expect(word, "a value")?),
            "timeout" => no_timeout(word, words)?,
            "nomatch" => {
                return Err(word
                    .problem("an exception in a set")
                    .help("write the networks that are left, or a rule before that returns"));
            }
            _ => return Err(word.problem(format!("unsupported {} of an entry", Found(word.text)))),
        }
    }
    Ok(())
}

/// Entries stay; so those that would go after a time are refused.
fn no_timeout(word: Word<'_>, words: &mut Words<'_>) -> Result<(), Problem> {
    let time = words.expect(word, "a time in seconds")?;
    match time.text {
        "0" => Ok(()),
        _ => Err(time.problem("entries of sets do not expire here").help("leave `timeout` out, or write 0")),
    }
}

/// Reads an entry with these parts.
fn entry(word: Word<'_>, parts: &[Part]) -> Result<Entry, Problem> {
    let texts: Vec<&str> = word.text.split(',').collect();
    if texts.len() != parts.len() {
        return Err(word.problem(format!("{} is an entry of another type of set", Found(word.text))));
    }
    parts.iter().zip(texts).map(|(part, text)| item(word.part(text), *part)).collect()
}

fn item(word: Word<'_>, part: Part) -> Result<Item, Problem> {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    const WITH_PORTS: [u8; 4] = [TCP, UDP, 132, 136];
    const WITH_TYPES: [u8; 2] = [1, 58];
    match part {
        Part::Addresses => match word.text.split_once('-') {
            Some((first, last)) => match (first.parse(), last.parse()) {
                (Ok(first), Ok(last)) if first <= last => Ok(Item::Networks(networks_from_to(first, last))),
                _ => Err(word.problem(format!("{} is not a range of addresses", Found(word.text)))),
            },
            None => Ok(Item::Networks(networks(word, false)?.unwrap_or_default())),
        },
        part => {
            let (protocols, text) = match word.text.split_once(':') {
                Some((name, ports)) => {
                    let number = protocol_of(word.part(name))?;
                    if WITH_TYPES.contains(&number) {
                        return Err(word
                            .problem("types of ICMP in an entry")
                            .help("rules match them by themselves: -p icmp --icmp-type echo-request"));
                    }
                    if !WITH_PORTS.contains(&number) {
                        return match (part, ports) {
                            (Part::Ports, "0") => Ok(Item::Protocol(number)),
                            _ => Err(word
                                .problem(format!("{} has no ports", Found(name)))
                                .help(format!("ipset takes {name}:0, in sets with addresses"))),
                        };
                    }
                    (vec![number], ports)
                }
                None => (vec![TCP], word.text),
            };
            // There a protocol only says whose the name of a service is.
            let protocols = if part == Part::AnyPorts { vec![TCP, UDP] } else { protocols };
            let ports = range(word, &text.replace('-', ":"))?;
            Ok(Item::Ports { protocols, ports })
        }
    }
}

/// The number of a protocol, by its name or as it is.
fn protocol_of(name: Word<'_>) -> Result<u8, Problem> {
    protocol(&Node { span: name.span(), value: Value::String(name.text.to_ascii_lowercase()) })
}

/// The networks that together are these addresses.
pub(super) fn networks_from_to(first: Ipv4Addr, last: Ipv4Addr) -> Vec<Party> {
    let (mut next, last) = (u64::from(first.to_bits()), u64::from(last.to_bits()));
    let mut all = Vec::new();
    while next <= last {
        let mut free = if next == 0 { 32 } else { next.trailing_zeros().min(32) };
        while next + (1 << free) - 1 > last {
            free -= 1;
        }
        let ip = IpAddr::V4(Ipv4Addr::from_bits(next as u32));
        all.push(Party::Network { ip, prefix: (32 - free) as u8 });
        next += 1 << free;
    }
    all
}

impl Change {
    /// Executes the command. `is_used` says whether a rule looks packets up in a set.
    pub(super) fn apply(&self, sets: &mut Sets, is_used: &dyn Fn(&str) -> bool) -> Result<(), Problem> {
        let missing = |name: &str| Problem::new(format!("there is no set {}", Found(name)));
        let there = |name: &str| Problem::new(format!("there is a set {} already", Found(name)));
        let free = |name: &str| match is_used(name) {
            true => Err(Problem::new(format!("a rule looks packets up in the set {}", Found(name))).help(
                "as in the kernel, it stays as long as the rule: `swap` or `flush` changes what is in it",
            )),
            false => Ok(()),
        };
        match self {
            Self::Nothing => {}
            Self::Create { name, parts, exist } => {
                if sets.get(name).is_some_and(|set| !exist || set.parts != *parts) {
                    return Err(there(name));
                }
                sets.entry(name.clone()).or_insert(Set { parts, entries: BTreeMap::new() });
            }
            Self::Add { name, text, exist } => {
                let set = sets.get_mut(name).ok_or_else(|| missing(name))?;
                let (key, entry) = set.read(text)?;
                if set.entries.insert(key, entry).is_some() && !exist {
                    return Err(Problem::new(format!("{} is in the set already", Found(text))));
                }
                if set.entries.len() > MOST {
                    return Err(Problem::new(format!("a set of more than {MOST} entries")));
                }
            }
            Self::Delete { name, text, exist } => {
                let set = sets.get_mut(name).ok_or_else(|| missing(name))?;
                if set.entries.remove(&set.read(text)?.0).is_none() && !exist {
                    return Err(Problem::new(format!("{} is not in the set", Found(text)))
                        .help("delete an entry as it was added"));
                }
            }
            Self::Flush(None) => sets.values_mut().for_each(|set| set.entries.clear()),
            // Scripts begin so, and the kernel's error stops none.
            Self::Flush(Some(name)) => sets.get_mut(name).into_iter().for_each(|set| set.entries.clear()),
            Self::Destroy(None) => {
                sets.keys().try_for_each(|name| free(name))?;
                sets.clear();
            }
            Self::Destroy(Some(name)) => {
                free(name)?;
                sets.remove(name);
            }
            Self::Swap(one, other) => {
                let first = sets.get(one).ok_or_else(|| missing(one))?.clone();
                let second = sets.get(other).ok_or_else(|| missing(other))?.clone();
                if first.parts != second.parts {
                    return Err(Problem::new(format!(
                        "{} and {} are of two types",
                        Found(one),
                        Found(other)
                    )));
                }
                sets.extend([(one.clone(), second), (other.clone(), first)]);
            }
            Self::Rename(one, other) => {
                free(one)?;
                if sets.contains_key(other) {
                    return Err(there(other));
                }
                let set = sets.remove(one).ok_or_else(|| missing(one))?;
                sets.insert(other.clone(), set);
            }
        }
        Ok(())
    }
}

impl Set {
    /// An entry, and what it is known by.
    fn read(&self, text: &str) -> Result<(String, Entry), Problem> {
        let mut words = Words::new(text);
        let word = words.take().expect("an entry is not empty");
        let other = |_| Problem::new(format!("{} is an entry of another type of set", Found(text)));
        let entry = entry(word, self.parts).map_err(other)?;
        Ok((format!("{entry:?}"), entry))
    }
}

impl Looked {
    /// Reads `NAME src,dst`.
    pub(super) fn read(after: Word<'_>, words: &mut Words<'_>, not: bool) -> Result<Self, Problem> {
        let set = words.expect(after, "the name of a set")?;
        let ends = words.expect(set, "src or dst")?;
        let read = |text: &str| match text {
            "src" => Ok(End::Source),
            "dst" => Ok(End::Destination),
            _ => Err(ends.problem(format!("found {}, expected src or dst", Found(text)))),
        };
        Ok(Self {
            set: set.text.to_owned(),
            ends: ends.text.split(',').map(read).collect::<Result<_, _>>()?,
            not,
        })
    }

    /// Whether there is such a set, with as many parts.
    pub(super) fn check(&self, sets: &Sets) -> Result<(), Problem> {
        let Some(set) = sets.get(&self.set) else {
            return Err(Problem::new(format!("there is no set {}", Found(&self.set)))
                .help("`ipset create` makes one, in a line before"));
        };
        // What is more than a set has parts does not count.
        match self.ends.len() >= set.parts.len() {
            true => Ok(()),
            false => Err(Problem::new(format!(
                "the set {} has {} parts, and {} of a packet are given",
                Found(&self.set),
                set.parts.len(),
                self.ends.len()
            ))),
        }
    }

    /// Whether it is about this set.
    pub(super) fn is_of(&self, set: &str) -> bool {
        self.set == set
    }

    /// The conditions of which one holds for packets in the set.
    pub(super) fn conditions(&self, sets: &Sets) -> Vec<Match> {
        let Some(set) = sets.get(&self.set) else { return Vec::new() };
        let of = |entry: &Entry| {
            let mut parts = entry.iter().zip(&self.ends).map(|(item, end)| item.condition(*end));
            parts.try_fold(Match::default(), |all, part| both(&all, &part))
        };
        // Addresses alone are one condition.
        if let (&[Part::Addresses], &[end, ..]) = (set.parts, &self.ends[..]) {
            let items = || set.entries.values().flatten();
            let all = items().map(|item| if let Item::Networks(all) = item { &all[..] } else { &[] });
            return match items().any(Item::is_all) {
                true => vec![Match::default()],
                false if set.entries.is_empty() => Vec::new(),
                false => vec![Item::Networks(all.flatten().cloned().collect()).condition(end)],
            };
        }
        set.entries.values().filter_map(of).collect()
    }
}

impl Item {
    /// Whether it is all addresses.
    fn is_all(&self) -> bool {
        matches!(self, Self::Networks(all) if all.is_empty())
    }

    fn condition(&self, end: End) -> Match {
        match (self.clone(), end) {
            (Self::Protocol(number), _) => Match { protocols: vec![number], ..Match::default() },
            (Self::Networks(sources), End::Source) => Match { sources, ..Match::default() },
            (Self::Networks(destinations), End::Destination) => Match { destinations, ..Match::default() },
            (Self::Ports { protocols, ports }, End::Source) => {
                Match { protocols, source_ports: vec![ports], ..Match::default() }
            }
            (Self::Ports { protocols, ports }, End::Destination) => {
                Match { protocols, destination_ports: vec![ports], ..Match::default() }
            }
        }
    }
}
