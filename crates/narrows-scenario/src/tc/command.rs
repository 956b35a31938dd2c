//! Single commands: `tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit`.

use std::ops::Range;

use narrows_core::classify::Families;

use super::action::PRIORITY_COMES_LATE;
use super::action::Shared;
use super::filter::{self, Filter, Head, Name, Which};
use super::stab::Stab;
use super::verdict::chain_number;
use super::{Handle, abbreviation, class, protocol, qdisc, unit};
use crate::dialect::{Word, Words};
use crate::netem::{Verb, units};
use crate::node::suggest;
use crate::problem::{Found, Problem};
use crate::value::Match;

/// A command.
#[derive(Clone, Debug)]
pub(super) struct Command {
    /// Its span in the script.
    pub(super) span: Range<usize>,
    pub(super) verb: Verb,
    pub(super) device: Option<String>,
    pub(super) parent: Option<Parent>,
    pub(super) handle: Option<Handle>,
    /// What a packet counts in a qdisc.
    pub(super) stab: Option<Stab>,
    /// The block that a filter is in, in place of a device.
    pub(super) block: Option<u32>,
    /// The blocks whose filters a discipline uses, and where.
    pub(super) blocks: Vec<(u32, Place)>,
    /// Whether it is about a chain of filters, not about one of them.
    pub(super) is_chain: bool,
    /// Whether the script ends if it fails.
    pub(super) ends_script: bool,
    pub(super) body: Body,
}

/// Where a discipline uses the filters of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Hook(Parent),
    /// `qevent early_drop` of RED: for packets that are dropped early.
    Dropped,
    /// `qevent mark` of RED.
    Marked,
}

/// Takes `qevent early_drop block 10` and `qevent mark block 11` out of the options of RED.
fn events(words: &mut Words<'_>) -> Result<Vec<(u32, Place)>, Problem> {
    let (mut found, mut others, mut end) = (Vec::new(), Vec::new(), 0);
    while let Some(word) = words.take() {
        end = word.span().end;
        if word.text != "qevent" {
            others.push(word);
            continue;
        }
        let event = words.expect(word, "an event")?;
        let place = match event.text {
            "early_drop" => Place::Dropped,
            "mark" => Place::Marked,
            other => {
                return Err(event
                    .problem(format!("{} is not an event of `red`", Found(other)))
                    .help("allowed: early_drop, mark"));
            }
        };
        let name = words.expect(event, "block")?;
        if name.text != "block" {
            return Err(name.problem(format!("found {}, expected `block`", Found(name.text))));
        }
        found.push((block(name, words)?, place));
    }
    *words = Words::of_words(others, end);
    Ok(found)
}

/// Parses the number of a block.
fn block(after: Word<'_>, words: &mut Words<'_>) -> Result<u32, Problem> {
    let word = words.expect(after, "the number of a block")?;
    Ok(units::integer(word, "the number of a block", 1, u32::MAX.into())? as u32)
}

/// Where an object is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parent {
    Root,
    Ingress,
    /// The hook of `clsact` for packets that leave.
    Egress,
    Of(Handle),
}

/// The object of a command.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Qdisc(Option<qdisc::Kind>),
    Class { id: Option<Handle>, kind: Option<class::Kind> },
    Filter { head: Head, filter: Option<Box<Filter>> },
}

const VERBS: &[(&str, Verb)] = &[
    ("add", Verb::Add),
    ("change", Verb::Change),
    ("replace", Verb::Replace),
    ("delete", Verb::Delete),
    ("del", Verb::Delete),
    ("show", Verb::Show),
    ("list", Verb::Show),
    ("lst", Verb::Show),
    ("ls", Verb::Show),
    ("get", Verb::Show),
];

const OBJECTS: &[&str] = &["qdisc", "class", "filter", "chain"];

/// The kernel's handle for the place of ingress policers.
pub(super) const INGRESS: Handle = Handle { major: 0xffff, minor: 0 };

/// Checks the name of a device, as the kernel does. Names of links have a dot, and may be longer.
fn check_device(word: Word<'_>) -> Result<(), Problem> {
    let name = word.text;
    // One that is not in the script may have any length: `$NAME`.
    if name.contains('/') || name.len() > 15 && !name.contains(['.', '$']) {
        return Err(word
            .problem(format!("{} cannot be the name of a device", Found(name)))
            .help("a name has at most 15 characters, none of them a `/`"));
    }
    Ok(())
}

/// The device of an address with a label: `eth0:1` is `eth0`, as the kernel finds it (`SIOCGIFINDEX`).
fn without_label(device: &str) -> &str {
    let label = device.split_once(':').filter(|(_, label)| label.chars().all(|c| c.is_ascii_digit()));
    label.map_or(device, |(device, _)| device)
}

/// Words of a filter that tc lets one shorten, in its order: `prio`, `pref`, `prot`.
const SHORT: [&str; 5] = ["preference", "priority", "protocol", "chain", "estimator"];

impl Command {
    /// Parses the words of a command, with or without `tc`.
    pub(super) fn read(
        words: &mut Words<'_>,
        span: Range<usize>,
        shared: &mut Shared,
    ) -> Result<Self, Problem> {
        let wrong = |problem: Problem| problem.put_at(&span);
        let mut namespace = None;
        while let Some(flag) = words.peek().filter(|word| word.text.starts_with('-')) {
            words.take();
            if "-netns".starts_with(flag.text) {
                namespace = Some(words.expect(flag, "the name of a network namespace")?.text);
            }
        }
        if namespace.is_some() {
            shared.enter(namespace);
        }
        let object = words.take().ok_or_else(|| wrong(Problem::new("the command is missing")))?;
        if !OBJECTS.iter().any(|known| known.starts_with(object.text)) || object.text.is_empty() {
            let problem = object.problem(format!("{} is not understood", Found(object.text)));
            if object.text.len() > 1 && "actions".starts_with(object.text) {
                return Err(
                    problem.help("actions that filters share are known in a script, before its filters")
                );
            }
            return Err(suggest(problem, object.text, OBJECTS));
        }
        let verb = match words.take() {
            None => Verb::Show,
            Some(word) => match VERBS.iter().find(|(name, _)| name.starts_with(word.text)) {
                Some((_, verb)) => *verb,
                None => {
                    let names: Vec<&str> = VERBS.iter().map(|(name, _)| *name).collect();
                    let problem = word.problem(format!("{} is not a command of tc", Found(word.text)));
                    return Err(suggest(problem, word.text, &names));
                }
            },
        };
        let is_chain = object.text.starts_with("ch");
        let body = match object.text.as_bytes()[0] {
            b'q' => Body::Qdisc(None),
            b'c' if !is_chain => Body::Class { id: None, kind: None },
            _ => Body::Filter { head: Head::default(), filter: None },
        };
        let span = span.clone();
        let mut command = Self {
            span,
            verb,
            device: None,
            parent: None,
            handle: None,
            stab: None,
            block: None,
            blocks: Vec::new(),
            is_chain,
            ends_script: false,
            body,
        };
        command.place(object, words, shared)?;
        if command.device.is_none() && command.block.is_none() && verb != Verb::Show {
            return Err(object.problem("`dev` is missing").help("name the device, as in: dev eth0"));
        }
        command.check(object)?;
        Ok(match namespace {
            Some(namespace) => command.inside(namespace),
            None => command,
        })
    }

    /// Whether it puts something somewhere, or changes it.
    pub(super) fn configures(&self) -> bool {
        !matches!(self.verb, Verb::Show | Verb::Delete)
    }

    /// Whether it takes everything away where packets leave by its device.
    pub(super) fn is_root_deleted(&self) -> bool {
        self.verb == Verb::Delete && self.parent == Some(Parent::Root) && matches!(self.body, Body::Qdisc(_))
    }

    /// Whether it is about a device, or leads packets there.
    pub(super) fn names(&self, device: &str) -> bool {
        let leads = match &self.body {
            Body::Filter { filter: Some(filter), .. } => filter.redirect.as_deref() == Some(device),
            _ => false,
        };
        leads || self.device.as_deref() == Some(device)
    }

    /// Whether it is a filter that looks at addresses or ports.
    pub(super) fn looks_at_addresses(&self) -> bool {
        let Body::Filter { filter: Some(filter), .. } = &self.body else { return false };
        // What arrives comes to tc first.
        if self.parent == Some(Parent::Ingress) {
            return false;
        }
        let looks = |matches: &Match| {
            !(matches.sources.is_empty()
                && matches.destinations.is_empty()
                && matches.source_ports.is_empty()
                && matches.destination_ports.is_empty()
                && matches.ports.is_empty())
        };
        match &filter.which {
            // `nat` does.
            _ if filter.only.is_some() => true,
            Which::Match(matches) => matches.as_deref().is_some_and(looks),
            Which::Any(all) => all.iter().any(looks),
            Which::Tables(_) | Which::Flow(_) => true,
            Which::Mark(mark) => mark.also.as_deref().is_some_and(looks),
            Which::AnyMark | Which::Nothing => false,
        }
    }

    /// The command for the device of that name in a network namespace.
    pub(super) fn inside(mut self, namespace: &str) -> Self {
        let put = |name: &mut String| *name = format!("{namespace}/{name}");
        self.device.iter_mut().for_each(put);
        if let Body::Filter { filter: Some(filter), .. } = &mut self.body {
            filter.devices().for_each(put);
        }
        self
    }

    /// Parses `dev X`, `root`, `parent X` and so on, followed by the kind and its options.
    fn place(&mut self, object: Word<'_>, words: &mut Words<'_>, shared: &mut Shared) -> Result<(), Problem> {
        while let Some(word) = words.peek() {
            if self.printed(words)? {
                continue;
            }
            // Exact words come first: `egress` is none of these.
            let is_filter = matches!(self.body, Body::Filter { .. });
            let short: &[&str] = if is_filter { &SHORT } else { &["estimator"] };
            let word = abbreviation::in_full(word, short);
            let parent = match word.text {
                "root" => Some(Parent::Root),
                "ingress" if self.parent.is_none() => Some(Parent::Ingress),
                "egress" if is_filter => Some(Parent::Egress),
                _ => None,
            };
            if let Some(parent) = parent {
                words.take();
                if self.parent.replace(parent).is_some_and(|before| before != parent) {
                    return Err(word.problem("a second place"));
                }
                continue;
            }
            match word.text {
                "dev" => {
                    words.take();
                    let device = words.expect(word, "the name of a device")?;
                    check_device(device)?;
                    if self.device.replace(without_label(device.text).into()).is_some() {
                        return Err(device.problem("a second device"));
                    }
                }
                "parent" => {
                    words.take();
                    let class = words.expect(word, "the handle of a discipline or class")?;
                    let parent = match class.text {
                        "root" => Parent::Root,
                        "ffff:fff1" | "ffff:fff2" => Parent::Ingress,
                        "ffff:fff3" => Parent::Egress,
                        _ => match Handle::class(class)? {
                            handle if handle.major == INGRESS.major => Parent::Ingress,
                            handle => Parent::Of(handle),
                        },
                    };
                    if self.parent.replace(parent).is_some() {
                        return Err(class.problem("a second place"));
                    }
                }
                "handle" if !is_filter => {
                    words.take();
                    self.handle = Some(Handle::read(words.expect(word, "a handle")?)?);
                }
                "handle" => {
                    words.take();
                    let name = Name::new(words.expect(word, "a handle")?);
                    if let Body::Filter { head, .. } = &mut self.body {
                        head.handle = Some(name);
                    }
                }
                "classid" | "leaf" if matches!(self.body, Body::Class { .. }) => {
                    words.take();
                    let handle = Handle::class(words.expect(word, "the handle of a class")?)?;
                    if let (Body::Class { id, .. }, "classid") = (&mut self.body, word.text) {
                        *id = Some(handle);
                    }
                }
                "preference" | "priority" if is_filter => {
                    words.take();
                    let number = unit::number(word, words, 0, 0xffff)? as u32;
                    if let Body::Filter { head, .. } = &mut self.body {
                        head.prio = Some(number).filter(|prio| *prio > 0);
                    }
                }
                "chain" if is_filter => {
                    words.take();
                    let number = chain_number(word, words)?;
                    if let Body::Filter { head, .. } = &mut self.body {
                        head.chain = number;
                    }
                }
                "stab" if matches!(self.body, Body::Qdisc(_)) => {
                    words.take();
                    self.stab = Some(Stab::read(word, words)?);
                }
                "refcnt" => {
                    words.take();
                    words.expect(word, "a number")?;
                }
                // It measures rates for `tc -s`.
                "estimator" => {
                    words.take();
                    let interval = words.expect(word, "an interval")?;
                    words.expect(interval, "the time of an average")?;
                }
                "block" if is_filter => {
                    words.take();
                    self.block = Some(block(word, words)?);
                }
                "ingress_block" | "egress_block" if matches!(self.body, Body::Qdisc(_)) => {
                    words.take();
                    let hook = if word.text == "ingress_block" { Parent::Ingress } else { Parent::Egress };
                    self.blocks.push((block(word, words)?, Place::Hook(hook)));
                }
                "protocol" if is_filter => {
                    words.take();
                    let name = words.expect(word, "a protocol")?;
                    let tagged = protocol::is_tag(name);
                    let families = if tagged { Families::ALL } else { protocol::read(name)? };
                    if let Body::Filter { head, .. } = &mut self.body {
                        (head.families, head.tagged) = (Some(families), tagged);
                    }
                }
                _ => return self.kind(object, words, shared),
            }
        }
        Ok(())
    }

    /// tc prints the handle after the kind, and the place before the options: `qdisc htb 1: dev eth0 root
    /// refcnt 2 default 0x10`, `class htb 1:10 parent 1:1 leaf 20: rate 1Mbit`. Reorders such words into
    /// the order of a typed command.
    fn printed(&mut self, words: &mut Words<'_>) -> Result<bool, Problem> {
        let kinds = match self.body {
            Body::Qdisc(_) => qdisc::names(),
            Body::Class { .. } => class::NAMES.to_vec(),
            Body::Filter { .. } => return Ok(false),
        };
        let mut ahead = words.clone();
        let is_kind = ahead.take().is_some_and(|word| kinds.contains(&word.text));
        let name = ahead.take().filter(|word| is_kind && word.text.contains(':'));
        let Some(name) = name else { return Ok(false) };
        let handle = Handle::read(name)?;
        while let Some(word) = ahead.peek() {
            match word.text {
                "root" => {}
                "dev" | "parent" | "refcnt" | "leaf" => {
                    ahead.take();
                }
                _ => break,
            }
            ahead.take();
        }
        words.put_behind(ahead.position() - words.position() - 1);
        words.take();
        match &mut self.body {
            Body::Class { id, .. } => *id = Some(handle),
            _ => self.handle = Some(handle),
        }
        Ok(true)
    }

    fn kind(&mut self, object: Word<'_>, words: &mut Words<'_>, shared: &mut Shared) -> Result<(), Problem> {
        // Behind a chain stands what its filters may match, which the kernel checks.
        if self.verb == Verb::Show || self.is_chain {
            while words.take().is_some() {}
            return Ok(());
        }
        match &mut self.body {
            Body::Qdisc(kind) => {
                if words.peek().is_some_and(|word| word.text == "red") {
                    self.blocks.extend(events(words)?);
                }
                *kind = Some(qdisc::read(words)?);
            }
            Body::Class { kind, .. } => {
                if self.verb != Verb::Delete || words.peek().is_some() {
                    *kind = Some(class::read(words)?);
                }
            }
            Body::Filter { head, filter } => {
                if words.peek().is_some_and(|word| word.text == "basic") {
                    head.handle = head.handle.take().and_then(Name::of_basic);
                }
                if self.verb == Verb::Delete {
                    while words.take().is_some() {}
                    return Ok(());
                }
                let mut read =
                    filter::read(object, words, head, self.parent == Some(Parent::Ingress), shared)?;
                if self.parent == Some(Parent::Egress) {
                    read.notices.retain(|notice| notice != PRIORITY_COMES_LATE);
                }
                *filter = Some(Box::new(read));
            }
        }
        Ok(())
    }

    /// Checks for required words.
    fn check(&self, object: Word<'_>) -> Result<(), Problem> {
        if self.is_chain || matches!(self.verb, Verb::Delete | Verb::Show) {
            return Ok(());
        }
        match &self.body {
            Body::Qdisc(None) if self.parent != Some(Parent::Ingress) => Err(object
                .problem("the queueing discipline is missing")
                .help("as in: root handle 1: htb default 10")),
            Body::Qdisc(Some(kind)) if self.parent.is_none() && *kind != qdisc::Kind::Ingress => Err(object
                .problem("the discipline's place is missing")
                .help("`root`, or its class, as in: parent 1:10")),
            Body::Class { kind: None, .. } => Err(object
                .problem("the kind of the class is missing")
                .help("as in: classid 1:10 htb rate 1mbit")),
            Body::Class { id: None, kind: Some(kind) } if kind.of != class::Of::Hpd => Err(object
                .problem("`classid` is missing")
                .help("as in: parent 1: classid 1:10 htb rate 1mbit")),
            Body::Filter { filter: None, .. } => Err(object.problem("the kind of the filter is missing")),
            _ => Ok(()),
        }
    }
}
