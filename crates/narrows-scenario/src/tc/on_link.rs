//! Applies commands to existing links: converts the current settings to a tree, applies the commands, and
//! converts the tree back to keys of the link.
//!
//! A run stores nothing of a script: the tree is computed from the current settings, as `show` prints them.
//! Filters are numbered in the order in which they are tried; classes keep their names.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use narrows_core::classify::Families;

use super::command::{Body, Command, Parent};
use super::filter::{Filter, Which};
use super::filters::{Placed, UNKNOWN};
use super::qdisc::{Htb, Kind};
use super::stab::Stab;
use super::tree::Tree;
use super::verdict::Verdict;
use super::{CurrentConfig, CurrentQdisc, Handle, Script, managed};
use crate::direction::Direction;
use crate::netem::{self, Verb};
use crate::problem::{Found, Problem};
use crate::value::SchedulerKind;
use crate::{Scenario, ScenarioError};

/// A link that commands change.
struct Link<'a> {
    name: &'a str,
    direction: &'a Direction,
    current: CurrentConfig,
    tree: Tree,
}

impl Script {
    /// The assignments for [`Scenario::set`] that apply the commands to links. `links` has the direction of
    /// a link for each device of the script, as in `access.up`.
    ///
    /// # Errors
    /// The error names the command that cannot be executed, or the current setting that tc cannot express.
    pub fn changes(
        &self,
        scenario: &Scenario,
        links: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, ScenarioError> {
        let wrong = |problem| ScenarioError::new(&self.name, &self.text, vec![problem]);
        if let Some(moment) = self.later.first() {
            return Err(wrong(
                Problem::new("a command after `sleep` among commands for a run")
                    .put_at(&self.commands[moment.before].span)
                    .help("they apply at once: let the shell wait between two calls of `narrows tc`"),
            ));
        }
        let mut there: Vec<Link<'_>> = Vec::new();
        // The current settings are appended to the commands, so that errors can point into both.
        let mut text = self.text.clone();
        for device in self.changed_devices() {
            let Some(name) = links.get(device) else {
                return Err(wrong(Problem::new(format!("there is no device {}", Found(device)))));
            };
            if there.iter().any(|link| link.name == name) {
                continue;
            }
            let link = Link::find(scenario, name).map_err(wrong)?;
            text += "\n";
            text += &link.text();
            there.push(link);
        }
        let whole = Self::parse(&text, &self.name)?;
        let wrong = |problem| ScenarioError::new(&self.name, &text, vec![problem]);
        let (said, present): (Vec<&Command>, Vec<&Command>) =
            whole.commands.iter().partition(|command| command.span.start < self.text.len());
        for command in present {
            let link = there.iter_mut().find(|link| command.device.as_deref() == Some(link.name));
            let Some(link) = link else { continue };
            link.tree.apply(command).map_err(wrong)?;
        }
        for link in &mut there {
            link.add_filters().map_err(wrong)?;
        }
        for command in said {
            let device = command.device.as_ref().and_then(|device| links.get(device));
            let link = device.and_then(|name| there.iter_mut().find(|link| link.name == name));
            let Some(link) = link.filter(|_| command.verb != Verb::Show) else { continue };
            link.tree.is_run = true;
            if matches!(command.parent, Some(Parent::Ingress | Parent::Egress)) {
                return Err(wrong(
                    Problem::new("`tc` cannot set a policer of a run")
                        .put_at(&command.span)
                        .help("use `narrows set LINK.policer=…` for the direction into the device"),
                ));
            }
            let looks_at_marks = match &command.body {
                Body::Filter { filter: Some(filter), .. } => {
                    matches!(filter.which, Which::Mark(_) | Which::AnyMark)
                }
                Body::Qdisc(Some(Kind::Managed(managed))) => managed.marks() > 0,
                _ => false,
            };
            if looks_at_marks {
                return Err(wrong(
                    Problem::new("packets of a run have no marks")
                        .put_at(&command.span)
                        .help("match the packets themselves, with filters of `u32` or `flower`"),
                ));
            }
            if link.tree.apply(command).map_err(wrong)?.is_some() {
                return Err(wrong(
                    Problem::new(format!("there is nothing to delete at {}", link.name))
                        .put_at(&command.span),
                ));
            }
        }
        let mut all = Vec::new();
        for link in &there {
            // What was there before is no text of the user's: the last command left it like that.
            let last = whole.commands.iter().rfind(|command| {
                let device = command.device.as_ref().and_then(|device| links.get(device));
                command.span.start < self.text.len() && device.is_some_and(|name| link.name == name)
            });
            link.check(self.text.len(), last.map_or(0..0, |command| command.span.clone())).map_err(wrong)?;
            all.extend(link.assignments().map_err(wrong)?);
        }
        Ok(all)
    }
}

impl<'a> Link<'a> {
    fn find(scenario: &'a Scenario, name: &'a str) -> Result<Self, Problem> {
        let mut all = scenario.links.iter().flat_map(|link| link.directions()).enumerate();
        let Some((number, (_, direction))) = all.find(|(_, (known, _))| known == name) else {
            return Err(Problem::new(format!("there is no link {}", Found(name))));
        };
        let first = Handle::FIRST.saturating_add(u16::try_from(number).unwrap_or(u16::MAX));
        let current = match direction.tc(first) {
            Some(current) => current,
            None => around(direction, Handle { major: first, minor: 0 }),
        };
        let hidden = |what: &&String| what.contains(" of ") || *what == "scheduler";
        if let Some(what) = current.unrepresentable.iter().find(hidden) {
            return Err(Problem::new(format!("{name} has settings that tc cannot express: {what}"))
                .help(format!("`narrows set {name}.scheduler=…` changes or removes it")));
        }
        Ok(Self { name, direction, current, tree: Tree::default() })
    }

    /// The commands that would create the current settings, without filters.
    fn text(&self) -> String {
        let mut text = String::new();
        let CurrentConfig { qdiscs, classes, .. } = &self.current;
        for qdisc in qdiscs {
            let (name, kind) = (self.name, &qdisc.kind);
            let place = match &qdisc.parent {
                None => format!("root {}", self.stab().unwrap_or_default()),
                Some(parent) => format!("parent {parent}"),
            };
            let _ = writeln!(
                text,
                "qdisc add dev {name} {place} handle {} {kind} {}",
                qdisc.handle, qdisc.options
            );
            // Bands, and the class of a bucket, exist by themselves.
            let own = classes.iter().filter(|class| class.is_of(qdisc));
            for class in
                own.filter(|class| !matches!(class.kind.as_str(), "prio" | "ets" | "taprio" | "tbf" | "cbs"))
            {
                let parent = class.parent.as_ref().unwrap_or(&qdisc.handle);
                let (handle, options) = (&class.handle, &class.options);
                let _ =
                    writeln!(text, "class add dev {name} parent {parent} classid {handle} {kind} {options}");
            }
        }
        text
    }

    /// The size table that counts packets as the link does, where buckets do so.
    fn stab(&self) -> Option<String> {
        let is =
            |kinds: &[&str]| self.current.qdiscs.iter().any(|qdisc| kinds.contains(&qdisc.kind.as_str()));
        let counts = is(&["tbf", "cbs", "htb", "cbq", "hfsc"]) && !is(&["netem", "cake"]);
        Stab::shown(self.direction.overhead).filter(|_| counts)
    }

    fn add_filters(&mut self) -> Result<(), Problem> {
        for class in &self.current.classes {
            let handle = Handle::from_text(&class.handle).unwrap_or(Handle::ROOT);
            if class.name != class.handle {
                self.tree.names.insert(handle, class.name.clone());
            }
        }
        for filter in &self.current.filters {
            let all = &filter.matches;
            self.tree.filters.add(
                Verb::Add,
                Placed {
                    parent: Handle::from_text(&filter.parent).unwrap_or(Handle::ROOT),
                    filter: Filter {
                        kind: UNKNOWN,
                        prio: filter.pref,
                        chain: 0,
                        families: Families::ALL,
                        handle: 0,
                        which: Which::of(all.clone()),
                        class: Handle::from_text(&filter.class),
                        verdict: Verdict::Class,
                        police: None,
                        redirect: None,
                        exceeding: None,
                        prioritizes: None,
                        came_by: None,
                        marks: None,
                        restores: false,
                        only: None,
                        too_long: None,
                        runs: Default::default(),
                        edits: false,
                        set: None,
                        gate: None,
                        copies: Vec::new(),
                        notices: Vec::new(),
                    },
                    span: 0..0,
                },
            )?;
        }
        Ok(())
    }

    /// Checks settings that a scenario stores in class names only: the handle of a qdisc, and the default
    /// class. An error is at the qdisc's command or, if that is not among the first `said` bytes, at `last`.
    fn check(&self, said: usize, last: Range<usize>) -> Result<(), Problem> {
        for qdisc in &self.tree.qdiscs {
            let own = || self.tree.classes.iter().filter(|class| class.id.qdisc() == qdisc.handle);
            let problem = match &qdisc.kind {
                kind if kind.has_classes() && own().next().is_none() => {
                    Problem::new(format!("`{}` without a class, at {}", qdisc.kind.name(), self.name))
                }
                Kind::Htb(Htb { default, .. }) | Kind::Hfsc(default)
                    if *default > 0 && !own().any(|class| class.id.minor == *default) =>
                {
                    let default = Handle { minor: *default, ..qdisc.handle };
                    Problem::new(format!("the default class of {}, {default}, does not exist", qdisc.handle))
                }
                _ => continue,
            };
            return Err(problem
                .put_at(if qdisc.span.start < said { &qdisc.span } else { &last })
                .help("add the discipline together with its classes: narrows tc --batch FILE"));
        }
        Ok(())
    }

    fn assignments(&self) -> Result<Vec<String>, Problem> {
        let before = self.direction.netem();
        let is_netem = |kind: &Kind| matches!(kind, Kind::Netem(_));
        let exact = before.exact && self.tree.qdiscs.iter().any(|qdisc| is_netem(&qdisc.kind));
        let new = self.tree.egress(exact)?.keys;
        let all = netem::reset(&before.keys, &new, false).into_iter().chain(new);
        Ok(all.map(|(key, value)| format!("{}.{key}={}", self.name, value.replace('\n', " "))).collect())
    }
}

/// The current settings if no qdisc has classes.
fn around(direction: &Direction, handle: Handle) -> CurrentConfig {
    let mut found = CurrentConfig::default();
    let mut put = |kind: &str, options: String| {
        let mut root = CurrentQdisc { kind: kind.into(), handle: handle.to_string(), ..Default::default() };
        root.options = options;
        found.qdiscs.push(root);
    };
    let netem = direction.netem();
    match &netem.qdisc {
        Some(qdisc) => match qdisc.text().strip_prefix("root delay") {
            Some(options) => put("delay", options.trim().to_owned()),
            None => put("netem", qdisc.text()),
        },
        None if direction.scheduler.is_none() && !netem.keys.is_empty() => {
            let value = direction.queue.value();
            if let (Some(kind), Some(options)) = (managed::name_of(&value), managed::shown(&value)) {
                put(kind, options);
            }
        }
        None => {}
    }
    if let Some(scheduler) = &direction.scheduler {
        let known = scheduler.kind != SchedulerKind::Fifo && netem.qdisc.is_none();
        match managed::shown(&scheduler.value()).filter(|_| known) {
            Some(options) => {
                found.qdiscs.clear();
                let root = CurrentQdisc {
                    kind: scheduler.kind.name().into(),
                    handle: handle.to_string(),
                    options,
                    ..Default::default()
                };
                found.qdiscs.push(root);
            }
            None => found.unrepresentable.push("scheduler".into()),
        }
    }
    found
}
