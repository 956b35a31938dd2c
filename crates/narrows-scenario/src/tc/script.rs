//! Scripts of commands, one per line.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use narrows_core::Duration;

use super::action::PRIORITY_COMES_LATE;
use super::cabling::Cabling;
use super::command::{Body, Command, Place};
use super::counted;
use super::hooks::Target;
use super::line::Passed;
use super::netfilter::Firewall;
use super::qdisc::Kind;
use super::translate::Keys;
use super::tree::Tree;
use super::verdict::Verdict;
use crate::ScenarioError;
use crate::dialect::shell::{self, raises_rights};
use crate::link::Way;
use crate::netem::Verb;
use crate::problem::Problem;
use crate::two_hosts;

/// The MTU that devices have if nothing else is said.
const USUAL_MTU: u32 = 1500;
/// The most disciplines, classes and filters that are looked at to find out which network a script needs.
const MOST_LOOKED_AT: usize = 1 << 16;

/// tc commands, as typed or published.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) commands: Vec<Command>,
    /// Commands of other programs, each with the number of commands before it.
    pub(super) passed: Vec<(usize, Passed)>,
    /// Those that wait, also with the number of those of `passed` before it.
    pub(super) sleeps: Vec<(usize, usize, Passed)>,
    /// The rules of iptables of each network namespace.
    pub(super) firewalls: BTreeMap<Option<String>, Firewall>,
    /// The MTUs of devices.
    pub(super) mtus: BTreeMap<String, u32>,
    /// The queue lengths of devices (`txqueuelen`).
    pub(super) lengths: BTreeMap<String, u32>,
    /// How it joins network namespaces.
    pub(super) cabling: Cabling,
    /// What `sleep` puts off.
    pub(super) later: Vec<Moment>,
    /// Which of it happens again and again.
    pub(super) repeats: Option<Repetition>,
    /// Devices for which the direction of outgoing packets is known.
    pub(super) known: Vec<(String, Way)>,
}

/// An instant after the start at which further commands are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// From the start, which is when the first commands are executed.
    pub(super) at: Duration,
    /// How many commands are executed before it.
    pub(super) before: usize,
}

/// What happens after an instant, until another one, and then again and again: a turn of a loop that never ends.
#[derive(Clone, Debug)]
pub(super) struct Repetition {
    pub(super) from: Duration,
    pub(super) to: Duration,
    /// The loop.
    pub(super) span: Range<usize>,
}

/// The settings of a device after the commands before the first `sleep`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Its name in the script.
    pub name: String,
    /// Keys for packets that leave by the device.
    pub egress: Keys,
    /// Keys for packets that arrive at the device.
    pub ingress: Keys,
}

/// Explanation of a command, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Number of its first line.
    pub line: usize,
    /// The command, on one line.
    pub command: String,
    /// Sentences that explain it.
    pub words: Vec<String>,
}

impl Script {
    pub(super) fn error(&self, problem: Problem) -> ScenarioError {
        ScenarioError::new(&self.name, &self.text, vec![problem])
    }

    /// Whether a text has commands rather than only NetEm options.
    pub fn is_meant(text: &str) -> bool {
        shell::commands(text).into_iter().any(|command| {
            let mut words = text[command].split_whitespace();
            let first = words.find(|word| !raises_rights(word) && !matches!(*word, "#" | "$"));
            first.is_some_and(|word| word.ends_with("tc") || matches!(word, "qdisc" | "class" | "filter"))
        })
    }

    /// Whether a text has several tc commands.
    pub fn is_several(text: &str) -> bool {
        let commands = shell::commands(text);
        commands.into_iter().filter(|command| Self::is_meant(&text[command.clone()])).count() > 1
    }

    /// For a network between interfaces of the host: sets the direction of outgoing packets for each of
    /// these devices.
    #[must_use]
    pub fn with_devices<'a>(mut self, known: impl IntoIterator<Item = (&'a str, Way)>) -> Self {
        self.known = known.into_iter().map(|(name, way)| (name.to_owned(), way)).collect();
        self
    }

    /// The devices that commands change and packets pass, in the order in which they are named.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut all = self.changed_devices();
        let intermediate = self.intermediate(&all);
        if intermediate.len() < all.len() {
            all.retain(|name| !intermediate.contains(name));
        }
        // One from which things are only removed has nothing that packets meet: it is no end of the link if another is.
        let configuring = self.commands.iter().filter(|command| command.configures());
        let configured: BTreeSet<&str> =
            configuring.filter_map(|command| command.device.as_deref()).collect();
        if all.iter().any(|name| configured.contains(name)) {
            all.retain(|name| configured.contains(name));
        }
        all
    }

    /// The devices that commands change, in the order in which they are named.
    pub fn changed_devices(&self) -> Vec<&str> {
        let mut known = BTreeSet::new();
        let changing = self.commands.iter().filter(|command| command.verb != Verb::Show);
        let redirected = self.redirected();
        changing
            .filter_map(|command| command.device.as_deref())
            .filter(|name| !redirected.contains(name) && known.insert(*name))
            .collect()
    }

    /// Those of these devices that no packet between hosts passes: intermediate ones, unless a filter redirects packets there, or
    /// they are interfaces that a link joins; and the loopback device.
    fn intermediate<'a>(&self, names: &[&'a str]) -> BTreeSet<&'a str> {
        let made = self.made_intermediate();
        let is_known = |name: &str| self.known.iter().any(|(known, _)| known == name);
        let is_one = |name: &&str| {
            (says_intermediate(name) || made.contains(*name) || is_loopback(name)) && !is_known(name)
        };
        names.iter().copied().filter(is_one).collect()
    }

    /// The devices that filters redirect packets to: they stand for a direction of another device.
    fn redirected(&self) -> BTreeSet<&str> {
        let targets = self.commands.iter().filter_map(|command| match &command.body {
            Body::Filter { filter: Some(filter), .. } => filter.redirect.as_deref(),
            _ => None,
        });
        targets.collect()
    }

    /// The settings of each device after the commands before the first `sleep`, in the order in which the devices are named.
    /// With `exact`, NetEm is its single queue.
    ///
    /// # Errors
    /// The error names the command that cannot be executed, or that a link cannot express.
    pub fn devices(&self, exact: bool) -> Result<Vec<Device>, ScenarioError> {
        let mut trees = Trees::default();
        let first = self.later.first().map_or(self.commands.len(), |moment| moment.before);
        self.execute(0..first, &mut trees)?;
        self.check_copies().map_err(|problem| self.error(problem))?;
        self.settings(&mut trees, exact)
    }

    /// Whether this holds of the devices at some moment, as far as that many settings are looked at.
    pub(super) fn at_some_moment(&self, holds: impl Fn(&[Device]) -> bool) -> bool {
        let mut trees = Trees::default();
        let (mut begin, mut left) = (0, MOST_LOOKED_AT);
        for end in self.later.iter().map(|moment| moment.before).chain([self.commands.len()]) {
            if self.execute(begin..end, &mut trees).is_err() {
                return false;
            }
            begin = end;
            match self.settings(&mut trees, false) {
                Ok(devices) if holds(&devices) => return true,
                _ => left = left.saturating_sub(trees.size() + 1),
            }
            if left == 0 {
                return false;
            }
        }
        false
    }

    /// Whether its commands configure something, and nothing of that is left in the end.
    ///
    /// # Errors
    /// As [`Script::devices`].
    pub fn leaves_nothing(&self, exact: bool) -> Result<bool, ScenarioError> {
        let deletes = |command: &Command| command.verb == Verb::Delete;
        let is_plain = |device: &Device| device.egress.keys.is_empty() && device.ingress.keys.is_empty();
        Ok(self.later.is_empty()
            && self.commands.iter().any(Command::configures)
            && self.commands.iter().any(deletes)
            && self.devices(exact)?.iter().all(is_plain))
    }

    /// Executes these commands.
    pub(super) fn execute(&self, commands: Range<usize>, trees: &mut Trees) -> Result<(), ScenarioError> {
        for command in self.commands[commands].iter().filter(|command| command.verb != Verb::Show) {
            trees.apply(command).map_err(|problem| self.error(problem))?;
        }
        Ok(())
    }

    /// The settings of each device that has been configured.
    pub(super) fn settings(&self, trees: &mut Trees, exact: bool) -> Result<Vec<Device>, ScenarioError> {
        let wrong = |problem| self.error(problem);
        let redirected = self.redirected();
        for (name, tree) in &mut trees.all {
            if let Some(length) = self.lengths.get(name).copied().or(counted::queue_length(name)) {
                tree.set_queue_length(length);
            }
            // Arriving packets are redirected before they get marks.
            if redirected.contains(name.as_str()) {
                continue;
            }
            let (namespace, device) = match name.split_once('/') {
                Some((namespace, device)) => (Some(namespace.to_owned()), device),
                None => (None, name.as_str()),
            };
            if let Some(firewall) = self.firewalls.get(&namespace) {
                tree.marks = firewall.marks(device).map_err(wrong)?;
                if tree.arriving.iter().any(|placed| placed.filter.restores) {
                    tree.connections = firewall.connections(device).map_err(wrong)?;
                }
                tree.classified = firewall.classes(device).map_err(wrong)?;
                tree.dropped_leaving = firewall.dropped_leaving(device).map_err(wrong)?;
                tree.dropped_arriving = firewall.dropped_arriving(device).map_err(wrong)?;
                tree.written_leaving = firewall.written(device, false).map_err(wrong)?;
                tree.written_arriving = firewall.written(device, true).map_err(wrong)?;
            }
        }
        self.check_redirections(trees, &redirected).map_err(wrong)?;
        let mut own: Vec<&(String, Tree)> =
            trees.all.iter().filter(|(name, _)| !redirected.contains(name.as_str())).collect();
        let names: Vec<&str> = own.iter().map(|(name, _)| name.as_str()).collect();
        let mut unused = self.intermediate(&names);
        if unused.len() == own.len() {
            unused.clear();
        }
        own.retain(|(name, _)| !unused.contains(name.as_str()));
        let notes = unused.iter().map(|name| match is_loopback(name) {
            true => format!("No packet between hosts passes {name}: its disciplines have no effect."),
            false => format!("No packet passes {name}: no filter redirects any there."),
        });
        let devices: Result<Vec<Device>, ScenarioError> = own
            .into_iter()
            .map(|(name, tree)| {
                let (leaving, notes) =
                    tree.outgoing(|name| self.target_of_leaving(name, trees)).map_err(wrong)?;
                self.check_elsewhere(tree).map_err(wrong)?;
                let leaving = if self.is_intermediate(name) { leaving.intermediate() } else { leaving };
                let mut egress = leaving.egress(exact).map_err(wrong)?;
                egress.notes.splice(0..0, notes);
                // As hosts have by themselves.
                if let Some(bytes) = self.mtus.get(name).filter(|bytes| **bytes != USUAL_MTU) {
                    egress.keys.push(("mtu", bytes.to_string()));
                }
                let mut ingress = tree.arriving(exact, |name| self.target(name, trees)).map_err(wrong)?;
                if is_loopback(name) && !self.mtus.contains_key(name) {
                    egress.notes.extend(tree.dropped_at_loopback());
                }
                // Said where a queue has it.
                let length = counted::queue_length(name).filter(|_| !self.lengths.contains_key(name));
                if let Some(length) = length.filter(|length| egress.has_queue_of(*length)) {
                    egress.notes.push(format!(
                        "A queue of {name} without a limit holds {length} packets, as many as Linux gives such a device (txqueuelen)."
                    ));
                }
                [&mut egress, &mut ingress]
                    .into_iter()
                    .for_each(|keys| counted::without_link_header(name, keys));
                let device = Device { egress, ingress, name: name.clone() };
                // What a scenario would reject is reported here, at the command that stands for the whole.
                device.check().map_err(|problem| {
                    wrong(match tree.root() {
                        Some(root) => problem.put_at(&root.span),
                        None => problem,
                    })
                })?;
                Ok(device)
            })
            .collect();
        let mut devices = devices?;
        if let Some(first) = devices.first_mut() {
            first.egress.notes.extend(notes);
        }
        Ok(devices)
    }

    /// A device that packets are redirected to has one set of disciplines for all of them, which a link for each device that
    /// they come from cannot share; and it stands for a direction of that device alone.
    fn check_redirections(&self, trees: &Trees, redirected: &BTreeSet<&str>) -> Result<(), Problem> {
        let mut users: BTreeMap<&str, (&str, bool)> = BTreeMap::new();
        for (name, tree) in &trees.all {
            if redirected.contains(name.as_str()) {
                if let Some(placed) = tree.arriving.iter().next().filter(|_| !self.is_intermediate(name)) {
                    return Err(Problem::new(format!(
                        "filters of packets that arrive at {name}, to which others are redirected"
                    ))
                    .put_at(&placed.span)
                    .help(
                        "a device to which packets are redirected stands for a direction of the other device",
                    ));
                }
                continue;
            }
            for (arrive, filters) in [(true, &tree.arriving), (false, &tree.leaving), (false, &tree.filters)]
            {
                for placed in filters.iter() {
                    let Some(target) = &placed.filter.redirect else { continue };
                    if !trees.get(target).is_some_and(Tree::is_shared_by_packets) {
                        continue;
                    }
                    let own = (name.as_str(), arrive);
                    if let Some(other) = users.insert(target, own).filter(|other| *other != own) {
                        let both = match other.0 == own.0 {
                            true => format!("packets that arrive at {name} and those that leave there"),
                            false => format!("packets of {} and of {name}", other.0),
                        };
                        return Err(Problem::new(format!(
                            "{target} has one queue for {both}, which are on different links or directions"
                        ))
                        .put_at(&placed.span)
                        .help("give each its own intermediate device, as in: ifb1"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Copies may leave by a device that is no end of the link.
    fn check_copies(&self) -> Result<(), Problem> {
        let known: BTreeSet<&str> =
            self.commands.iter().filter_map(|command| command.device.as_deref()).collect();
        for command in &self.commands {
            let Body::Filter { filter: Some(filter), .. } = &command.body else { continue };
            if let Some(device) = filter.copies.iter().find(|device| known.contains(device.as_str())) {
                return Err(Problem::new(format!("copies of packets leave by {device}, which this script configures"))
                    .put_at(&command.span)
                    .help("a link has no copies for its other end: leave the `mirror` out, or the commands of that device"));
            }
        }
        Ok(())
    }

    /// The same, for packets that leave: those that leave by a device that is not an intermediate one do not come back.
    fn target_of_leaving<'a>(&self, device: &str, trees: &'a Trees) -> Target<'a> {
        match trees.get(device) {
            Some(tree) if self.is_intermediate(device) => Target::Disciplines(tree),
            Some(_) => Target::Elsewhere,
            None => self.target(device, trees),
        }
    }

    /// Packets may leave by another device that is no end of the link.
    fn check_elsewhere(&self, tree: &Tree) -> Result<(), Problem> {
        for placed in tree.filters.iter().chain(tree.leaving.iter()) {
            let filter = &placed.filter;
            let devices = [&filter.redirect, &filter.exceeding].into_iter().flatten();
            let is_configured =
                |device: &str| self.commands.iter().any(|command| command.device.as_deref() == Some(device));
            if let Some(device) =
                devices.into_iter().find(|device| !self.is_intermediate(device) && is_configured(device))
            {
                return Err(Problem::new(format!("outgoing packets leave by {device}, which this script configures"))
                    .put_at(&placed.span)
                    .help("a link stands for one device: put the disciplines at the device itself, or name an intermediate one (ifb)"));
            }
        }
        Ok(())
    }

    /// The device that a device of a VLAN sends by, if its name (`eth0.10`) or the script says that it is one.
    pub(super) fn below_vlan(&self, device: &str) -> Option<String> {
        let made = self.passed.iter().find_map(|(_, passed)| {
            let line = self.on_one_line(&passed.span);
            let words: Vec<&str> = line.split(' ').collect();
            let behind = |word: &str| {
                words.iter().position(|one| *one == word).and_then(|at| words.get(at + 1)).copied()
            };
            let is_vlan = words.windows(2).any(|pair| pair == ["type", "vlan"]);
            let below =
                words.iter().rposition(|one| *one == "link").and_then(|at| words.get(at + 1)).copied();
            (is_vlan && behind("name") == Some(device)).then_some(below)?.map(str::to_owned)
        });
        made.or_else(|| {
            let (below, vlan) = device.rsplit_once('.')?;
            vlan.parse::<u16>().is_ok().then(|| below.to_owned())
        })
    }

    /// Whether its name or the script says that packets come back from it.
    fn is_intermediate(&self, device: &str) -> bool {
        says_intermediate(device) || self.made_intermediate().contains(device)
    }

    /// The words of commands that make an intermediate device (`ip link add NAME type ifb`), its name among them.
    fn made_intermediate(&self) -> BTreeSet<&str> {
        let lines = self.passed.iter().map(|(_, passed)| &self.text[passed.span.clone()]);
        let makes = lines.filter(|line| {
            let mut words = line.split_whitespace();
            words.any(|word| word == "type") && words.next() == Some("ifb")
        });
        makes.flat_map(str::split_whitespace).collect()
    }

    /// What a device is to packets that are redirected to it. It is an intermediate one if its name or the script says so.
    fn target<'a>(&self, device: &str, trees: &'a Trees) -> Target<'a> {
        if let Some(tree) = trees.get(device) {
            return Target::Disciplines(tree);
        }
        match self.is_intermediate(device) {
            true => Target::Through,
            false => Target::Elsewhere,
        }
    }

    /// Explains each command in words, in the order in which they are executed.
    ///
    /// # Errors
    /// As [`Script::devices`].
    pub fn explain(&self) -> Result<Vec<Explained>, ScenarioError> {
        let mut trees = Trees::default();
        let lines = self.lines();
        let mut all = Vec::new();
        // In the order in which the script runs them.
        let passed = self.passed.iter().enumerate();
        let passed = passed.map(|(number, (before, passed))| ((*before, number, 1), passed));
        let sleeps = self.sleeps.iter().map(|(before, number, passed)| ((*before, *number, 0), passed));
        let mut others: Vec<((usize, usize, u8), &Passed)> = passed.chain(sleeps).collect();
        others.sort_by_key(|(at, _)| *at);
        let mut others = others.into_iter().map(|((before, ..), passed)| (before, passed)).peekable();
        let is_cake = |command: &Command| matches!(&command.body, Body::Qdisc(Some(Kind::Managed(managed))) if managed.is_cake());
        let has_cake = self.commands.iter().any(is_cake);
        for (number, command) in self.commands.iter().enumerate() {
            while let Some((_, passed)) = others.next_if(|(before, _)| *before <= number) {
                all.push(self.in_words(passed, &lines));
            }
            let mut words = super::explain::command(command);
            // Filters of CAKE come before it has chosen a tin.
            if has_cake {
                words.retain(|words| words != PRIORITY_COMES_LATE);
            }
            if command.verb != Verb::Show {
                let said = trees
                    .apply(command)
                    .map_err(|problem| ScenarioError::new(&self.name, &self.text, vec![problem]))?;
                words.extend(said);
            }
            let line = lines.partition_point(|start| *start <= command.span.start);
            all.push(Explained { line, command: self.on_one_line(&command.span), words });
        }
        all.extend(others.map(|(_, passed)| self.in_words(passed, &lines)));
        Ok(all)
    }
}

impl Script {
    /// Commands of other programs, and what effect they have here, if any. Not those that wait.
    pub fn passed_over(&self) -> Vec<Explained> {
        let lines = self.lines();
        self.passed.iter().map(|(_, passed)| self.in_words(passed, &lines)).collect()
    }

    fn in_words(&self, passed: &Passed, lines: &[usize]) -> Explained {
        let line = lines.partition_point(|start| *start <= passed.span.start);
        Explained { line, command: self.on_one_line(&passed.span), words: vec![passed.words.clone()] }
    }

    /// Where each line begins.
    fn lines(&self) -> Vec<usize> {
        [0].into_iter().chain(self.text.match_indices('\n').map(|(at, _)| at + 1)).collect()
    }

    fn on_one_line(&self, span: &Range<usize>) -> String {
        let words: Vec<&str> =
            self.text[span.clone()].split_whitespace().filter(|word| *word != "\\").collect();
        words.join(" ")
    }
}

impl Device {
    /// All remarks about it; `says_rate` if something else sets the rate of the link.
    pub fn remarks(&self, says_rate: bool) -> impl Iterator<Item = &str> {
        self.egress.remarks(says_rate).chain(self.ingress.remarks(says_rate))
    }

    /// Checks that a scenario accepts it.
    fn check(&self) -> Result<(), Problem> {
        let egress = || self.egress.keys.iter().map(|(key, value)| (Way::Up, *key, value.as_str()));
        let ingress = || self.ingress.keys.iter().map(|(key, value)| (Way::Down, *key, value.as_str()));
        let keys = || egress().chain(ingress());
        // Distribution tables are in files, which are looked up when a scenario is read.
        if keys().any(|(_, _, value)| value.contains("file = ") || value.contains(".dist")) {
            return Ok(());
        }
        let text = two_hosts::text([], keys());
        crate::Scenario::parse(&text, "").map(|_| ()).map_err(ScenarioError::without_place)
    }
}

/// Whether packets of a device come back to the host itself.
pub(super) fn is_loopback(device: &str) -> bool {
    device.rsplit('/').next() == Some("lo")
}

/// Whether the name is that of an intermediate device, as scripts call them.
fn says_intermediate(device: &str) -> bool {
    device.contains("ifb") || device.contains("imq")
}

/// The tree of each device, in the order in which the devices are named.
#[derive(Default)]
pub(super) struct Trees {
    all: Vec<(String, Tree)>,
    numbers: BTreeMap<String, usize>,
    blocks: BTreeMap<u32, Block>,
}

/// Filters that several places share.
#[derive(Clone, Default)]
struct Block {
    /// The devices that use them, and where.
    places: Vec<(String, Place)>,
    /// The commands about its filters so far.
    commands: Vec<Command>,
}

impl Block {
    /// A policer in it is one for all places, which are on different links or directions.
    fn check(&self, number: u32) -> Result<(), Problem> {
        let [(first, _), .., (last, _)] = &self.places[..] else { return Ok(()) };
        let polices = |command: &&Command| matches!(&command.body, Body::Filter { filter: Some(filter), .. } if filter.police.is_some());
        match self.commands.iter().find(polices) {
            Some(command) => Err(Problem::new(format!(
                "a policer in block {number}, which is shared: its rate is for {first} and {last} together"
            ))
            .put_at(&command.span)
            .help("give each device a filter of its own")),
            None => Ok(()),
        }
    }
}

impl Trees {
    /// Whether a netem with a rate keeps packets in order when its delay changes.
    pub(super) fn keep_order(&self) -> bool {
        self.all.iter().any(|(_, tree)| tree.has_paced_netem())
    }

    /// How many disciplines, classes and filters there are.
    pub(super) fn size(&self) -> usize {
        self.all
            .iter()
            .map(|(_, tree)| tree.qdiscs.len() + tree.classes.iter().count() + tree.filters.iter().count())
            .sum()
    }

    fn get(&self, device: &str) -> Option<&Tree> {
        self.numbers.get(device).map(|number| &self.all[*number].1)
    }

    /// Executes a command; returns a remark about it, if any.
    fn apply(&mut self, command: &Command) -> Result<Option<String>, Problem> {
        if let Some(number) = command.block {
            let Some(block) = self.blocks.get_mut(&number) else {
                return Err(Problem::new(format!("there is no block {number}"))
                    .put_at(&command.span)
                    .help("a discipline begins it, as in: tc qdisc add dev X ingress_block 1 ingress"));
            };
            block.commands.push(command.clone());
            block.check(number)?;
            let places = block.places.clone();
            let notes: Result<Vec<_>, _> =
                places.iter().map(|(device, place)| self.at_place(command, device, *place)).collect();
            return Ok(notes?.into_iter().flatten().next());
        }
        let Some(device) = &command.device else { return Ok(None) };
        let note = self.of(device).apply(command)?;
        for (number, place) in &command.blocks {
            let block = self.blocks.entry(*number).or_default();
            block.places.push((device.clone(), *place));
            block.check(*number)?;
            for before in block.commands.clone() {
                self.at_place(&before, device, *place)?;
            }
        }
        Ok(note)
    }

    /// Executes a command about the filters of a block at one of its places.
    fn at_place(&mut self, command: &Command, device: &str, place: Place) -> Result<Option<String>, Problem> {
        let decides = match &command.body {
            Body::Filter { filter: Some(filter), .. } => {
                filter.verdict == Verdict::Drop
                    || filter.redirect.is_some()
                    || filter.police.is_some()
                    || filter.set.is_some()
            }
            _ => false,
        };
        match place {
            Place::Hook(parent) => {
                let own = Command { device: Some(device.into()), parent: Some(parent), ..command.clone() };
                self.of(device).apply(&own)
            }
            Place::Marked if decides => Err(Problem::new("a filter that drops, redirects, polices or changes packets that `red` marks")
                .put_at(&command.span)
                .help("without `ecn`, `red` drops them itself")),
            Place::Dropped | Place::Marked => Ok(Some(
                "Filters of such an event see packets that `red` has chosen; what it does to them stays the same, as in the kernel."
                    .into(),
            )),
        }
    }

    fn of(&mut self, device: &str) -> &mut Tree {
        let number = self.numbers.get(device).copied().unwrap_or_else(|| {
            self.numbers.insert(device.into(), self.all.len());
            self.all.push((device.into(), Tree::default()));
            self.all.len() - 1
        });
        &mut self.all[number].1
    }
}
