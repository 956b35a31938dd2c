//! The tree of a device: qdiscs, classes and filters, and the effect of commands on it.

mod classes;
mod filters;

use std::collections::BTreeMap;
use std::ops::Range;

use classes::Classes;

use super::command::{Body, Command, Parent};
use super::filters::Filters;
use super::netfilter::Marked;
use super::stab::Stab;
use super::unit::size_of;
use super::{Handle, class, qdisc};
use crate::netem::{self, Verb};
use crate::node::Table;
use crate::problem::{Problem, one_of};

/// The whole tree of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    pub(super) qdiscs: Vec<Qdisc>,
    pub(super) classes: Classes,
    pub(super) filters: Filters,
    /// Names in the scenario of classes that have one.
    pub(super) names: BTreeMap<Handle, String>,
    /// The span of the qdisc for filters of arriving packets.
    pub(super) ingress: Option<Range<usize>>,
    /// Those filters: policers and redirections.
    pub(super) arriving: Filters,
    /// Filters of `clsact` for packets that leave.
    pub(super) leaving: Filters,
    /// The marks that the firewall gives to packets before they come here: the first condition that holds
    /// counts.
    pub(super) marks: Vec<Marked>,
    /// The marks of the connections of packets that arrive, as far as an action asks for them.
    pub(super) connections: Vec<Marked>,
    /// The classes that it puts packets into, likewise.
    pub(super) classified: Vec<Marked>,
    /// The packets that the firewall drops before they come here, and when they have arrived: those with 1.
    pub(super) dropped_leaving: Vec<Marked>,
    pub(super) dropped_arriving: Vec<Marked>,
    /// Filters that write what the firewall writes into headers, likewise.
    pub(super) written_leaving: Vec<Table>,
    pub(super) written_arriving: Vec<Table>,
    /// How many packets a queue of the device holds unless its discipline says another number, if the script says so.
    pub(super) length: Option<u32>,
    /// Whether the device is an intermediate one (ifb), whose queues hold 32 packets otherwise.
    pub(super) is_intermediate: bool,
    /// Whether it is the tree of a run, which stores no filter of a class that is missing, and whose disciplines are not
    /// replaced by accident.
    pub(super) is_run: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Qdisc {
    pub(super) handle: Handle,
    /// The class that contains it; `None` for the root.
    pub(super) parent: Option<Handle>,
    pub(super) kind: qdisc::Kind,
    /// What a packet counts, for a root.
    pub(super) stab: Option<Stab>,
    pub(super) span: Range<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) id: Handle,
    /// The parent class or qdisc.
    pub(super) parent: Handle,
    pub(super) kind: class::Kind,
    pub(super) span: Range<usize>,
}

impl Class {
    /// The number, for HPD.
    fn num(&self) -> u16 {
        self.kind.num.unwrap_or(self.id.minor)
    }

    /// Its name in a scenario: for HPD its `num`, under which it is also shown.
    pub(super) fn name(&self) -> Handle {
        match self.kind.num {
            Some(num) => Handle { minor: num, ..self.id },
            None => self.id,
        }
    }
}

/// Maximum nesting of qdiscs, including the one at the root.
const MOST_NESTED: usize = 16;

impl Tree {
    /// The name of a class in the scenario: its handle, unless it has a name.
    pub(super) fn called(&self, class: Handle) -> String {
        self.names.get(&class).cloned().unwrap_or_else(|| class.to_string())
    }

    pub(super) fn root(&self) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|qdisc| qdisc.parent.is_none())
    }

    pub(super) fn qdisc(&self, handle: Handle) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|qdisc| qdisc.handle == handle.qdisc())
    }

    /// The qdisc in a class. `tbf` and `netem` have one class, whatever its handle.
    pub(super) fn child(&self, class: Handle) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|qdisc| qdisc.parent == Some(class))
    }

    /// The qdisc in the only class of a qdisc.
    pub(super) fn only_child(&self, of: Handle) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|qdisc| qdisc.parent.is_some_and(|parent| parent.qdisc() == of))
    }

    /// Whether what becomes of a packet depends on others: not with a delay and losses for each by itself.
    pub(super) fn is_shared_by_packets(&self) -> bool {
        match &self.qdiscs[..] {
            [] => false,
            [one] => match &one.kind {
                qdisc::Kind::Netem(netem) => netem.has_a_rate() || netem.has_slots(),
                _ => true,
            },
            _ => true,
        }
    }

    /// The HPD class with this `num`, which may differ from the number in its handle. Without a `num`, the
    /// handle's number applies.
    pub(super) fn numbered(&self, qdisc: Handle, num: u16) -> Option<&Class> {
        let of = |class: &&Class| class.id.qdisc() == qdisc && class.num() == num;
        self.classes.iter().find(of)
    }

    /// The direct children of a qdisc or class.
    pub(super) fn below(&self, parent: Handle) -> impl Iterator<Item = &Class> {
        self.classes.below(parent)
    }

    /// Executes a command; returns a remark about it, if any.
    pub(super) fn apply(&mut self, command: &Command) -> Result<Option<String>, Problem> {
        let at = |problem: Problem| problem.put_at(&command.span);
        match &command.body {
            Body::Qdisc(Some(qdisc::Kind::Etf(etf))) if command.verb != Verb::Delete => {
                let around = match command.parent {
                    Some(Parent::Of(class)) => self.qdisc(class).map(|qdisc| &qdisc.kind),
                    _ => None,
                };
                let gets_times = matches!(around, Some(qdisc::Kind::Taprio(taprio)) if taprio.gives_times);
                let queue = qdisc::Kind::Managed(etf.queue(gets_times)?);
                self.apply_qdisc(command, Some(&queue)).map_err(at)
            }
            Body::Qdisc(kind) => self.apply_qdisc(command, kind.as_ref()).map_err(at),
            Body::Class { id, kind } => self.apply_class(command, *id, kind.as_ref()).map_err(at),
            Body::Filter { .. } if command.is_chain && command.verb != Verb::Delete => {
                Ok(Some("A chain is there with its first filter: this has no effect on packets.".into()))
            }
            // A script goes on where tc finds nothing to delete.
            Body::Filter { head, .. } if command.verb == Verb::Delete && !self.is_run => {
                head.handle.as_ref().map(super::filter::Name::number).transpose()?;
                match self.apply_filter(command, head, None) {
                    Err(_) => nothing_there(command).map_err(at),
                    Ok(()) => Ok(None),
                }
            }
            Body::Filter { head, filter } => {
                self.apply_filter(command, head, filter.as_deref()).map_err(at).map(|()| None)
            }
        }
    }

    fn apply_qdisc(
        &mut self,
        command: &Command,
        kind: Option<&qdisc::Kind>,
    ) -> Result<Option<String>, Problem> {
        let by_handle = command.parent.is_none()
            && command.verb == Verb::Delete
            && command.handle.is_some_and(|handle| handle.major == super::command::INGRESS.major);
        let is_ingress =
            command.parent == Some(Parent::Ingress) || kind == Some(&qdisc::Kind::Ingress) || by_handle;
        if let (Some(kind), true) = (kind, command.parent == Some(Parent::Ingress))
            && *kind != qdisc::Kind::Ingress
        {
            return Err(Problem::new(format!("`{}` where packets arrive", kind.name()))
                .help("the kernel has filters there, no queue: redirect packets to an intermediate device (ifb), and put it at its root"));
        }
        if is_ingress {
            match command.verb {
                Verb::Delete if self.ingress.is_none() => return nothing_there(command),
                Verb::Delete => {
                    (self.ingress, self.arriving, self.leaving) =
                        (None, Filters::default(), Filters::default());
                }
                Verb::Add if self.ingress.is_some() => {
                    return Err(Problem::new("the ingress discipline already exists"));
                }
                _ => self.ingress = Some(command.span.clone()),
            }
            return Ok(None);
        }
        if let Some(class) = command.parent.and_then(|parent| self.other_queue(parent)) {
            let first = self.child(Handle { minor: 1, ..class }).map(|first| &first.kind);
            if command.verb == Verb::Delete {
                return Ok(None);
            }
            if kind.is_some() && first == kind {
                return Ok(Some(format!(
                    "A link has one transmit queue: {} stands for all of them, with the same discipline.",
                    Handle { minor: 1, ..class }
                )));
            }
        }
        let parent = match command.parent {
            Some(Parent::Of(class)) => match self.class_for_qdisc(class) {
                Ok(class) => Some(class),
                Err(_) if command.verb == Verb::Delete => return nothing_there(command),
                Err(problem) => return Err(problem),
            },
            _ => None,
        };
        let before = self.qdiscs.iter().position(|qdisc| qdisc.parent == parent);
        if command.verb == Verb::Delete {
            let asked = command.handle.map(Handle::qdisc);
            // Without a place the handle says which; with both, both have to be right.
            let found = match (command.parent, asked) {
                (None, None) => {
                    return nothing_there(command).map(|_| {
                        Some("Nothing is deleted: without `root`, `parent` or `handle`, tc finds no discipline.".into())
                    });
                }
                (None, Some(handle)) => self.qdiscs.iter().position(|qdisc| qdisc.handle == handle),
                (Some(_), None) => before,
                (Some(_), Some(handle)) => before.filter(|index| self.qdiscs[*index].handle == handle),
            };
            return match found {
                Some(index) => {
                    self.remove(self.qdiscs[index].handle);
                    Ok(None)
                }
                None => nothing_there(command),
            };
        }
        let Some(kind) = kind else { return Ok(None) };
        let in_mq = parent.and_then(|class| self.qdisc(class)).is_some_and(|qdisc| qdisc.kind.is_by_queue());
        if let (true, Some(class)) = (kind.is_by_queue(), parent) {
            return Err(Problem::new(format!("`{}` in {class}", kind.name()))
                .help("it is for the root: it stands for the transmit queues of a device"));
        }
        if let (Some(stab), Some(parent), false) = (&command.stab, parent, in_mq) {
            return Err(Problem::new(format!("`stab` of a discipline in {parent}"))
                .at(&stab.span)
                .help("put it on the discipline at the root: the kernel takes it there only, and it counts for all disciplines inside"));
        }
        let handle = command.handle.map(Handle::qdisc).filter(|handle| handle.major > 0);
        let mut note = None;
        if let Some(index) = before {
            let there = &mut self.qdiscs[index];
            let alike = there.kind.name() == kind.name();
            match command.verb {
                // Kernels from 6.7 on replace a discipline of another kind if no handle is given.
                Verb::Add if handle.is_some() || alike || self.is_run => {
                    return Err(Problem::new("a discipline already exists there")
                        .also(&there.span.clone(), "put there")
                        .help("use `replace`, `change` or `del`"));
                }
                Verb::Add => {
                    note = Some(format!(
                        "It replaces the `{}` there, with everything in it, as Linux 6.12 does; older kernels refuse it.",
                        there.kind.name()
                    ));
                    self.remove(self.qdiscs[index].handle);
                }
                Verb::Change if handle.is_some_and(|handle| handle != there.handle) => {
                    return Err(Problem::new(format!("the discipline there is {}", there.handle))
                        .also(&there.span.clone(), "put there")
                        .help("`change` keeps the handle; `replace` gives another"));
                }
                // Linux 6.12.117: `change` of another kind does as `replace`.
                Verb::Change if !alike && handle.is_none() && !self.is_run => {
                    note = Some(format!(
                        "It replaces the `{}` there, with everything in it, as Linux 6.12 does.",
                        there.kind.name()
                    ));
                    self.remove(self.qdiscs[index].handle);
                }
                Verb::Change if !alike => {
                    return Err(Problem::new("a discipline of another kind is there")
                        .also(&there.span.clone(), "put there")
                        .help("use `replace`"));
                }
                // The kernel has no `change` for it, and `replace` would be a `change` here.
                _ if alike
                    && !kind.changes()
                    && (command.verb == Verb::Change
                        || handle.is_none_or(|handle| handle == there.handle)) =>
                {
                    return Err(Problem::new(format!(
                        "`{}` cannot be changed, nor can it in the kernel",
                        kind.name()
                    ))
                    .also(&there.span.clone(), "put there")
                    .help("`del` removes it with everything in it; then `add` another"));
                }
                _ if alike
                    && (command.verb == Verb::Change
                        || handle.is_none_or(|handle| handle == there.handle)) =>
                {
                    there.kind = match (&there.kind, kind) {
                        (qdisc::Kind::Netem(before), qdisc::Kind::Netem(new)) => {
                            qdisc::Kind::Netem(Box::new((**new).clone().changed_from(before)))
                        }
                        (qdisc::Kind::Managed(before), qdisc::Kind::Managed(new)) => {
                            qdisc::Kind::Managed(new.clone().changed_from(before)?)
                        }
                        (qdisc::Kind::Gred(before), qdisc::Kind::Gred(new)) => {
                            qdisc::Kind::Gred(Box::new((**new).clone().changed_from(before)))
                        }
                        (qdisc::Kind::Hpd(before), qdisc::Kind::Hpd(new)) => {
                            qdisc::Kind::Hpd(new.clone().changed_from(before))
                        }
                        _ => kind.clone(),
                    };
                    // The kernel keeps no size table that a change does not name.
                    there.stab = command.stab.clone();
                    let handle = there.handle;
                    self.remove_bands(handle);
                    return Ok(None);
                }
                _ => self.remove(self.qdiscs[index].handle),
            }
        } else if command.verb == Verb::Change {
            return Err(Problem::new("nothing to change there").help("use `add` or `replace`"));
        }
        let handle = match handle {
            Some(handle) if self.qdisc(handle).is_some() => {
                return Err(Problem::new(format!("a discipline {handle} already exists")));
            }
            Some(handle) => handle,
            None => self.free_handle(),
        };
        let around = std::iter::successors(parent, |class| self.qdisc(*class)?.parent).take(MOST_NESTED);
        if around.count() == MOST_NESTED {
            return Err(Problem::new(format!("disciplines nested {} deep", MOST_NESTED + 1))
                .help(format!("at most {MOST_NESTED}")));
        }
        let (kind, stab, span) = (kind.clone(), command.stab.clone(), command.span.clone());
        self.qdiscs.push(Qdisc { handle, parent, kind, stab, span });
        Ok(note)
    }

    /// The class of another transmit queue than the first.
    fn other_queue(&self, parent: Parent) -> Option<Handle> {
        let Parent::Of(class) = parent else { return None };
        let is_by_queue = self.qdisc(class).is_some_and(|qdisc| qdisc.kind.is_by_queue());
        Some(class).filter(|class| is_by_queue && class.minor > 1)
    }

    /// A class that may get a qdisc.
    fn class_for_qdisc(&self, class: Handle) -> Result<Handle, Problem> {
        let Some(qdisc) = self.qdisc(class) else {
            return Err(self.no_qdisc(class));
        };
        match &qdisc.kind {
            // Their only class has several names.
            qdisc::Kind::Tbf(_) | qdisc::Kind::Cbs(_) | qdisc::Kind::Netem(_) => {
                Ok(Handle { minor: 1, ..class })
            }
            kind if kind.is_by_queue() && class.minor == 1 => Ok(class),
            kind if kind.is_by_queue() => {
                Err(Problem::new(format!("there is no class {class}: a link has one transmit queue"))
                    .also(&qdisc.span, "put there")
                    .help(format!("its discipline is that of {}", Handle { minor: 1, ..class })))
            }
            kind if kind.bands().is_some() => no_band(qdisc, class).map_or(Ok(class), Err),
            _ if self.classes.has(class) => {
                if self.below(class).next().is_some() {
                    return Err(Problem::new(format!("the class {class} has child classes"))
                        .help("only leaf classes hold packets"));
                }
                Ok(class)
            }
            kind if kind.has_classes() => Err(self.no_class(class)),
            kind if kind.name() == "red" => Err(Problem::new("a discipline inside `red`")
                .also(&qdisc.span, "put there")
                .help("what waits inside is the queue that `red` measures in the kernel, also while netem delays it")
                .help("put it the other way round: netem first, and `red` inside it")),
            _ => Err(Problem::new(format!("the discipline {} has no classes", class.qdisc()))
                .also(&qdisc.span, "put there")),
        }
    }

    fn no_qdisc(&self, handle: Handle) -> Problem {
        let known: Vec<String> = self.qdiscs.iter().map(|qdisc| qdisc.handle.to_string()).collect();
        let problem = Problem::new(format!("there is no discipline {} at this device", handle.qdisc()));
        match &known[..] {
            [] if self.ingress.is_some() => problem
                .help("the one for packets that arrive is always ffff:, whatever its `handle`: parent ffff:"),
            [] => problem.help("there is none: start with one at the root"),
            _ => problem.help(format!("there is {}", known.join(", "))),
        }
    }

    fn no_class(&self, class: Handle) -> Problem {
        let known: Vec<String> = self
            .classes
            .iter()
            .filter(|known| known.id.major == class.major)
            .map(|known| known.id.to_string())
            .collect();
        let problem = Problem::new(format!("there is no class {class}"));
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        if names.is_empty() { problem } else { problem.help(format!("there is {}", one_of(&names))) }
    }

    /// Removes a qdisc and everything in it, no deeper than [`MOST_NESTED`].
    fn remove(&mut self, handle: Handle) {
        self.qdiscs.retain(|qdisc| qdisc.handle != handle);
        self.classes.remove_of(handle);
        self.filters.retain(|filter| filter.parent.qdisc() != handle);
        let is_inside = |qdisc: &&Qdisc| qdisc.parent.is_some_and(|parent| parent.qdisc() == handle);
        let inside: Vec<Handle> = self.qdiscs.iter().filter(is_inside).map(|qdisc| qdisc.handle).collect();
        inside.into_iter().for_each(|inside| self.remove(inside));
    }

    /// Removes what is in bands that a qdisc with bands no longer has.
    fn remove_bands(&mut self, handle: Handle) {
        let Some(bands) = self.qdisc(handle).and_then(|qdisc| qdisc.kind.bands()) else { return };
        let is_gone = |parent: Handle| parent.qdisc() == handle && parent.minor > bands.bands.into();
        let gone = self.qdiscs.iter().filter(|qdisc| qdisc.parent.is_some_and(is_gone));
        let gone: Vec<Handle> = gone.map(|qdisc| qdisc.handle).collect();
        gone.into_iter().for_each(|handle| self.remove(handle));
    }

    fn free_handle(&self) -> Handle {
        let free = |major: &u16| self.qdisc(Handle { major: *major, minor: 0 }).is_none();
        Handle { major: (Handle::FIRST..0xffff).find(free).unwrap_or(Handle::FIRST), minor: 0 }
    }

    fn apply_class(
        &mut self,
        command: &Command,
        id: Option<Handle>,
        kind: Option<&class::Kind>,
    ) -> Result<Option<String>, Problem> {
        let root = || self.root().map(|qdisc| qdisc.handle);
        let parent = match command.parent {
            Some(Parent::Of(parent)) => Some(parent),
            Some(Parent::Ingress | Parent::Egress) => {
                return Err(Problem::new("the ingress discipline has no classes"));
            }
            // `parent root` means the qdisc there, as in older scripts.
            Some(Parent::Root) => id.map(Handle::qdisc).filter(|qdisc| qdisc.major > 0).or_else(root),
            None => id.map(Handle::qdisc),
        };
        let num = kind.and_then(|kind| kind.num);
        let id = id.or(parent.zip(num).map(|(parent, num)| Handle { minor: num, ..parent }));
        let Some(mut id) = id else {
            return Err(Problem::new("the class is missing").help("as in: classid 1:10"));
        };
        if id.major == 0 {
            let of = parent.filter(|parent| parent.major > 0).or_else(root);
            id.major = of.unwrap_or(Handle::ROOT).major;
        }
        // A number alone is that of a class.
        let parent = parent.map(|parent| match parent.major {
            0 => Handle { major: id.major, ..parent },
            _ => parent,
        });
        let before = self.classes.get(id);
        if command.verb == Verb::Delete {
            let Some(before) = before else {
                return if self.is_run { Err(self.no_class(id)) } else { nothing_there(command) };
            };
            if let Some(child) = self.below(id).next() {
                return Err(Problem::new(format!("the class {id} has child classes, such as {}", child.id))
                    .help("delete those first"));
            }
            if let Some(filter) = self.filters.iter().find(|filter| filter.filter.class == Some(id)) {
                return Err(Problem::new(format!("a filter sends packets to the class {id}"))
                    .also(&filter.span.clone(), "the filter")
                    .help("delete the filter first"));
            }
            if before.kind.is_default {
                return Err(Problem::new(format!("the class {id} is the default of its discipline"))
                    .help("make another class the default first"));
            }
            self.classes.remove(id);
            if let Some(child) = self.child(id).map(|qdisc| qdisc.handle) {
                self.remove(child);
            }
            return Ok(None);
        }
        let Some(kind) = kind else { return Ok(None) };
        let Some(qdisc) = self.qdisc(id) else { return Err(self.no_qdisc(id)) };
        if let (qdisc::Kind::Ets(_), class::Of::Ets) = (&qdisc.kind, kind.of) {
            return self.apply_band(command.verb, id, kind).map(|()| None);
        }
        let fits = matches!(
            (&qdisc.kind, kind.of),
            (qdisc::Kind::Htb(_), class::Of::Htb)
                | (qdisc::Kind::Cbq(_), class::Of::Cbq)
                | (qdisc::Kind::Hfsc(_), class::Of::Hfsc)
                | (qdisc::Kind::Hpd(_), class::Of::Hpd)
                | (qdisc::Kind::Drr, class::Of::Drr)
                | (qdisc::Kind::Qfq, class::Of::Qfq)
        );
        if !fits {
            return Err(Problem::new(format!(
                "the discipline {} does not have classes of this kind",
                qdisc.handle
            ))
            .also(&qdisc.span, "put there"));
        }
        if id.minor == 0 {
            return Err(Problem::new(format!("{id} is the discipline itself, not a class in it"))
                .help(format!("give it a number, as in: classid {}1", id.qdisc())));
        }
        let parent =
            parent.map_or(id.qdisc(), |parent| if parent.minor == 0 { parent.qdisc() } else { parent });
        if parent == id {
            return Err(Problem::new(format!("the class {id} is its own parent")));
        }
        if parent.major != id.major {
            return Err(Problem::new(format!(
                "the class {id} cannot be below {parent}, which is in another discipline"
            )));
        }
        match (command.verb, before) {
            (Verb::Add, Some(before)) => {
                Err(Problem::new(format!("the class {id} already exists")).also(&before.span, "put there"))
            }
            (Verb::Change, None) => Err(self.no_class(id)),
            (_, Some(_)) => {
                self.one_default(id, kind);
                if let Some(Class { kind: there, .. }) = self.classes.get_mut(id) {
                    *there = kind.clone().changed_from(there);
                }
                Ok(None)
            }
            (_, None) => {
                let is_missing = parent.minor > 0 && !self.classes.has(parent);
                if is_missing && (self.is_run || !matches!(qdisc.kind, qdisc::Kind::Htb(_))) {
                    return Err(self.no_class(parent));
                }
                let note = is_missing.then(|| {
                    format!(
                        "There is no class {parent}: the class is below {}, as in the kernel.",
                        qdisc.handle
                    )
                });
                let parent = if is_missing { qdisc.handle } else { parent };
                if parent.minor > 0 && matches!(qdisc.kind, qdisc::Kind::Drr | qdisc::Kind::Qfq) {
                    return Err(Problem::new(format!(
                        "`{}` has no classes within classes",
                        qdisc.kind.name()
                    ))
                    .also(&qdisc.span, "put there")
                    .help(format!("put the class below the discipline, as in: parent {}", qdisc.handle)));
                }
                if let Some(child) = self.child(parent) {
                    return Err(Problem::new(format!("the class {parent} holds a discipline"))
                        .also(&child.span, "put there")
                        .help("only leaf classes hold packets"));
                }
                self.one_default(id, kind);
                self.classes.push(Class { id, parent, kind: kind.clone(), span: command.span.clone() });
                Ok(note)
            }
        }
    }

    /// A change of a band of `ets`, whose classes are part of the qdisc.
    fn apply_band(&mut self, verb: Verb, id: Handle, kind: &class::Kind) -> Result<(), Problem> {
        let Some(qdisc) = self.qdiscs.iter_mut().find(|qdisc| qdisc.handle == id.qdisc()) else {
            return Ok(());
        };
        if let Some(problem) = no_band(qdisc, id) {
            return Err(problem);
        }
        if verb == Verb::Add {
            return Err(Problem::new(format!("the class {id} already exists"))
                .also(&qdisc.span, "the discipline")
                .help("`ets` creates its classes itself: use `change`"));
        }
        let Some(quantum) = size_of(&kind.keys, "quantum") else { return Ok(()) };
        let quantum = quantum.get() as u32; // as it was read
        let is_set = match &mut qdisc.kind {
            qdisc::Kind::Ets(ets) => ets.set_quantum(id.minor, quantum),
            _ => false,
        };
        match is_set {
            true => Ok(()),
            false => Err(Problem::new(format!("the band {id} is strict and has no quantum"))
                .also(&qdisc.span, "the discipline")),
        }
    }

    /// Whether a netem has a rate of its own.
    pub(super) fn has_paced_netem(&self) -> bool {
        self.qdiscs.iter().any(|qdisc| match &qdisc.kind {
            qdisc::Kind::Netem(netem) => {
                matches!(&netem.kind, netem::Kind::Netem(options) if options.rate.is_some())
            }
            _ => false,
        })
    }

    /// When a class becomes the HPD default, the previous default loses that role.
    fn one_default(&mut self, id: Handle, kind: &class::Kind) {
        if kind.is_default {
            let beside = self.classes.iter_mut().filter(|class| class.id.major == id.major);
            beside.for_each(|class| class.kind.is_default = false);
        }
    }
}

/// The error for a class that is no band of this qdisc, which has bands.
fn no_band(qdisc: &Qdisc, class: Handle) -> Option<Problem> {
    let bands = qdisc.kind.bands()?.bands;
    let problem = || {
        Problem::new(format!("there is no class {class}"))
            .also(&qdisc.span, "the discipline")
            .help(format!("its bands are {0:x}:1 to {0:x}:{bands:x}", class.major))
    };
    (!(1..=u16::from(bands)).contains(&class.minor)).then(problem)
}

/// What a deletion of nothing does to a script: it goes on, but not with `set -e`.
fn nothing_there(command: &Command) -> Result<Option<String>, Problem> {
    if command.ends_script {
        return Err(Problem::new(
            "there is nothing to delete: tc fails, and with `set -e` the script ends here",
        )
        .help("a script that goes on has `|| true` behind the command"));
    }
    Ok(Some("There is nothing to delete: tc would report an error, and the script goes on.".into()))
}
