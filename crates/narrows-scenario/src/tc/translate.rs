//! Converts the tree of a device to keys of a link's direction.

mod classful;
mod matching;

use std::borrow::Cow;

use narrows_core::Duration;
use narrows_core::queue::Bound;

use super::cbs::Shaper;
use super::etf::LAUNCHED;
use super::filters::Filters;
use super::managed::Managed;
use super::qdisc::{OF_INTERMEDIATE, USUAL_LIMIT};
use super::taprio::Taprio;
use super::tree::{Qdisc, Tree};
use super::{Handle, bucket, qdisc};
use crate::dialect::text_of;
use crate::keys::kind::text;
use crate::netem;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;

/// Keys of a direction, with values as written in a file, and remarks about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// The keys.
    pub keys: Vec<(&'static str, String)>,
    /// Remarks for people.
    pub notes: Vec<String>,
    /// A remark for the case that nothing else sets the rate of the link.
    pub without_rate: Option<String>,
}

impl Keys {
    /// Whether a queue holds as many packets.
    pub(super) fn has_queue_of(&self, packets: u32) -> bool {
        let bound = format!("\"{packets} packets\"");
        self.keys.iter().any(|(_, value)| value.contains(&bound))
    }
}

/// Same, under construction.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) keys: Vec<(&'static str, Value)>,
    pub(super) notes: Vec<String>,
    without_rate: Option<String>,
}

/// The class for packets that `htb` would send unshaped.
pub(super) const DIRECT: &str = "direct";
/// The class of a qdisc without classes, which no packet reaches.
pub(super) const NO_CLASS: &str = "none";
/// The class for packets that `cbq` would keep at its root.
pub(super) const UNCLASSIFIED: &str = "unclassified";

impl Tree {
    /// The keys for packets that leave by the device.
    pub(super) fn egress(&self, exact: bool) -> Result<Keys, Problem> {
        if self.qdiscs.iter().any(|qdisc| matches!(qdisc.kind, qdisc::Kind::Gred(_))) {
            let mut own = self.clone();
            for qdisc in &mut own.qdiscs {
                if let qdisc::Kind::Gred(gred) = &qdisc.kind {
                    qdisc.kind = qdisc::Kind::Managed(gred.in_use());
                }
            }
            return own.egress(exact);
        }
        self.check_code_points()?;
        let mut draft = Draft::default();
        let classified = self.leaving_hook(&mut draft)?;
        let marks = self.leaving_marks()?;
        if !classified.is_empty() || !marks.is_empty() {
            // They come before the firewall's, which a filter at the hook overwrites.
            let mut own = self.clone();
            own.leaving = Filters::default();
            own.classified.splice(0..0, classified);
            own.marks.splice(0..0, marks);
            let mut keys = own.egress(exact)?;
            let hook = draft.finish();
            keys.keys.splice(0..0, hook.keys);
            keys.notes.extend(hook.notes);
            return Ok(keys);
        }
        if let Some(root) = self.root() {
            self.put(root, exact, &mut draft).map_err(|problem| problem.at(&root.span))?;
            draft.notes.extend(self.buckets().filter_map(bucket::dropped));
            let first = self.only_child(root.handle).filter(|_| root.kind.is_by_queue());
            if let Some(stab) = first.unwrap_or(root).stab.as_ref() {
                self.count_by(stab, root, exact, &mut draft).map_err(|problem| problem.at(&stab.span))?;
            }
        }
        if let Some(policer) = self.leaving_policer()? {
            if draft.keys.iter().any(|(key, _)| *key == "policer") {
                return Err(Problem::new("a policer at the egress of clsact, and another at the root")
                    .help("a link has one in a direction: keep one of them"));
            }
            draft.keys.push(("policer", Value::Table(policer)));
        }
        let actions = self.root_actions()?;
        if !actions.is_empty() {
            if draft.keys.iter().any(|(key, _)| matches!(*key, "ingress" | "policer")) {
                return Err(Problem::new("filters that change or gate packets at the root, and a policer or filters at the egress of clsact")
                    .help("keep them in one place"));
            }
            let list = actions.into_iter().map(|table| Node::new(Value::Table(table))).collect();
            draft.keys.push(("ingress", Value::Array(list)));
        }
        draft.notes.extend(self.marks_of_nobody());
        draft.notes.extend(self.missing_classes());
        self.check_priorities()?;
        self.check_marks()?;
        Ok(draft.finish())
    }

    /// What the kernel drops at the loopback device.
    pub(super) fn dropped_at_loopback(&self) -> impl Iterator<Item = String> {
        self.buckets().filter_map(bucket::dropped_at_loopback)
    }

    fn buckets(&self) -> impl Iterator<Item = &Table> {
        self.qdiscs.iter().filter_map(|qdisc| match &qdisc.kind {
            qdisc::Kind::Tbf(bucket) => Some(bucket),
            _ => None,
        })
    }

    fn put(&self, qdisc: &Qdisc, exact: bool, keys: &mut Draft) -> Result<(), Problem> {
        match &qdisc.kind {
            qdisc::Kind::Netem(netem) => {
                let child = self.only_child(qdisc.handle);
                if exact && let netem::Kind::Netem(options) = &netem.kind {
                    keys.add_netem(qdisc, vec![("exact-netem", text(options.text()))])?;
                    return child.map_or(Ok(()), |child| self.put(child, exact, keys));
                }
                let (own, child) = without_idle_limit(netem.keys()?, &netem.kind, child);
                keys.add_netem(qdisc, own)?;
                let Some(child) = child.as_deref() else { return Ok(()) };
                keys.notes.push(double_queue(&child.kind, qdisc.handle, child.handle));
                self.put(child, exact, keys)
            }
            qdisc::Kind::Tbf(bucket) => {
                let child = self.only_child(qdisc.handle);
                if let Some(qdisc::Kind::Netem(netem)) = child.map(|child| &child.kind)
                    && !exact
                {
                    keys.keys.extend(netem.keys()?);
                    let inside = child.map_or(Handle::ROOT, |child| child.handle);
                    keys.notes.push(double_queue(&qdisc.kind, qdisc.handle, inside));
                    if let netem::Kind::Netem(options) = &netem.kind {
                        // In the kernel, packets that wait for the bucket are in netem's queue, bounded by
                        // its limit only.
                        let limit = options.limit.unwrap_or(netem::DEFAULT_LIMIT);
                        keys.keys.retain(|(key, _)| *key != LINE_LIMIT);
                        keys.put("queue", text(Bound::Packets(limit)));
                    }
                    keys.notes.push(no_limit(bucket, inside));
                    let mut scheduler = of_type("tbf");
                    add(&without_limit(bucket), &mut scheduler);
                    keys.put("overhead", bucket::overhead(bucket, "frame"));
                    keys.put("scheduler", Value::Table(scheduler));
                    return Ok(());
                }
                let scheduler = self.tbf(bucket, qdisc.handle, child, &mut keys.notes)?;
                keys.put("overhead", bucket::overhead(bucket, "frame"));
                keys.put("scheduler", scheduler);
                Ok(())
            }
            qdisc::Kind::Cbs(shaper) => {
                keys.put("overhead", text("frame"));
                keys.put("queue", text(self.usual_limit()));
                let scheduler = self.cbs(shaper, qdisc.handle, &mut keys.notes)?;
                keys.put("scheduler", scheduler);
                Ok(())
            }
            // The stand-in of `egress` comes first.
            qdisc::Kind::Gred(_) => Ok(()),
            qdisc::Kind::Mq | qdisc::Kind::Mqprio { .. } | qdisc::Kind::Multiq => {
                match self.only_child(qdisc.handle) {
                    Some(child)
                        if matches!(qdisc.kind, qdisc::Kind::Mqprio { is_several: true, .. })
                            && !matches!(&child.kind, qdisc::Kind::Managed(managed) if !managed.has_a_rate()) =>
                    {
                        Err(Problem::new(format!("`{}` for one of several transmit queues", child.kind.name()))
                            .put_at(&child.span)
                            .help("packets of other priorities would not pass it, and a link has one transmit queue")
                            .help("write `prio` in place of `mqprio`: its classes have disciplines of their own"))
                    }
                    Some(child) => self.put(child, exact, keys),
                    None if qdisc.kind == qdisc::Kind::Multiq => {
                        keys.put("queue", text(self.usual_limit()));
                        keys.nothing_waits("multiq");
                        Ok(())
                    }
                    None => {
                        self.no_priorities()?;
                        keys.notes.push("The only transmit queue has `pfifo_fast`, the kernel's default; many systems have another (net.core.default_qdisc).".into());
                        keys.put("queue", text(self.usual_limit()));
                        keys.put("scheduler", text("pfifo_fast"));
                        keys.nothing_waits(qdisc.kind.name());
                        Ok(())
                    }
                }
            }
            qdisc::Kind::Managed(managed) => {
                if managed.has_bands() {
                    keys.put("queue", text(self.usual_limit()));
                }
                if let Some(value) = self.managed(qdisc, managed)? {
                    keys.put(managed.key(), value);
                }
                if managed.counts_frames() {
                    keys.put("overhead", text("frame"));
                }
                if !managed.has_a_rate() {
                    keys.nothing_waits(managed.of.name);
                }
                Ok(())
            }
            qdisc::Kind::Htb(_)
            | qdisc::Kind::Cbq(_)
            | qdisc::Kind::Hfsc(_)
            | qdisc::Kind::Prio(_)
            | qdisc::Kind::Ets(_)
            | qdisc::Kind::Taprio(_)
            | qdisc::Kind::Hpd(_)
            | qdisc::Kind::Drr
            | qdisc::Kind::Qfq => {
                let scheduler = self.classful(qdisc, &mut keys.notes)?;
                keys.put("overhead", self.overhead(qdisc)?);
                if !keys.keys.iter().any(|(key, _)| *key == "queue") {
                    keys.keys.push(("queue", text(self.usual_limit())));
                }
                keys.put("scheduler", scheduler);
                if let qdisc::Kind::Taprio(taprio) = &qdisc.kind {
                    keys.notes.extend(taprio.notes.iter().cloned());
                    keys.notes.push("The speed of the device is not in the script: while the link has no rate, packets take no time, so any fits before a gate closes.".into());
                }
                let is_limited =
                    matches!(qdisc.kind, qdisc::Kind::Htb(_) | qdisc::Kind::Cbq(_) | qdisc::Kind::Taprio(_))
                        || matches!(qdisc.kind, qdisc::Kind::Hfsc(_)) && self.is_limited(qdisc);
                if !is_limited {
                    keys.nothing_waits(qdisc.kind.name());
                }
                Ok(())
            }
            // What stands for it is in the tree.
            qdisc::Kind::Etf(_) | qdisc::Kind::Ingress => Ok(()),
        }
    }

    /// The packets that a queue of the device holds unless a discipline says another number: its `txqueuelen`.
    fn usual_limit(&self) -> Bound {
        match (self.length, self.is_intermediate) {
            (Some(length), _) => Bound::Packets(length.into()),
            (None, true) => Bound::Packets(OF_INTERMEDIATE.into()),
            (None, false) => USUAL_LIMIT,
        }
    }

    /// Fails if packets get priorities before they come to `pfifo_fast`, which has no filters to look at them here.
    fn no_priorities(&self) -> Result<(), Problem> {
        match self.classified.iter().all(|one| one.value == 0) {
            true => Ok(()),
            false => Err(Problem::new("priorities of packets before `pfifo_fast`")
                .help("write `prio`, which has the same bands")),
        }
    }

    /// A queue or a scheduler as a value.
    fn managed(&self, qdisc: &Qdisc, managed: &Managed) -> Result<Option<Value>, Problem> {
        if managed.has_bands() {
            self.no_priorities()?;
        }
        let value = managed.value();
        match value {
            Some(value) if managed.is_cake() && (self.has_rules(qdisc) || managed.marks() > 0) => {
                self.with_cake_filters(qdisc, value).map(Some)
            }
            Some(value) if self.has_filters(qdisc) => self.with_flow(qdisc, managed, value).map(Some),
            value => Ok(value),
        }
    }

    /// Whether anything may choose among its classes.
    fn has_rules(&self, qdisc: &Qdisc) -> bool {
        !self.classified.is_empty() || self.has_filters(qdisc)
    }

    fn has_filters(&self, qdisc: &Qdisc) -> bool {
        self.filters.iter().any(|placed| placed.parent == qdisc.handle)
    }

    /// A qdisc as the value of `scheduler`.
    fn scheduler(&self, qdisc: &Qdisc, notes: &mut Vec<String>) -> Result<Value, Problem> {
        match &qdisc.kind {
            qdisc::Kind::Tbf(keys) => {
                if bucket::overhead(keys, "frame") != text("frame") {
                    return Err(Problem::new("`overhead` or `linklayer` of a tbf in a class")
                        .help("the overhead applies to the whole link: set it on a tbf at the root"));
                }
                self.tbf(keys, qdisc.handle, self.only_child(qdisc.handle), notes)
            }
            qdisc::Kind::Cbs(shaper) => self.cbs(shaper, qdisc.handle, notes),
            _ if self.overhead(qdisc)? != text("frame") => Err(Problem::new(
                "`overhead` or `linklayer` of classes inside another discipline",
            )
            .help("the overhead applies to the whole link: set it on classes of the root, or as its `stab`")),
            _ => self.classful(qdisc, notes),
        }
    }

    fn tbf(
        &self,
        keys: &Table,
        handle: Handle,
        child: Option<&Qdisc>,
        notes: &mut Vec<String>,
    ) -> Result<Value, Problem> {
        let mut table = of_type("tbf");
        let Some(child) = child else {
            add(&bucket::scheduler(keys), &mut table);
            return Ok(Value::Table(table));
        };
        add(&without_limit(keys), &mut table);
        notes.push(no_limit(keys, child.handle));
        let mut class = named(self.called(Handle { minor: 1, ..handle }));
        self.body(child, &mut class, notes)?;
        table.put("classes", list([class]));
        Ok(Value::Table(table))
    }

    fn cbs(&self, shaper: &Shaper, handle: Handle, notes: &mut Vec<String>) -> Result<Value, Problem> {
        let mut table = of_type("cbs");
        add(&shaper.keys, &mut table);
        if let Some(child) = self.only_child(handle) {
            let mut class = named(self.called(Handle { minor: 1, ..handle }));
            self.body(child, &mut class, notes)?;
            table.put("classes", list([class]));
        }
        notes.extend(shaper.note.map(Into::into));
        Ok(Value::Table(table))
    }

    /// A scheduler of one class, where only a scheduler may stand: what is in the class decides alone.
    fn only_class(&self, inside: &Qdisc, notes: &mut Vec<String>) -> Result<Value, Problem> {
        let mut class = named(self.called(Handle { minor: 1, ..inside.handle }));
        self.body(inside, &mut class, notes)?;
        let mut table = Table::default();
        table.put("type", text("prio"));
        table.put("classes", list([class]));
        Ok(Value::Table(table))
    }

    /// The key of a class for the qdisc in it: `queue`, `scheduler` or `netem`.
    fn body(&self, child: &Qdisc, class: &mut Table, notes: &mut Vec<String>) -> Result<(), Problem> {
        match &child.kind {
            qdisc::Kind::Managed(managed) => {
                self.managed(child, managed)?.into_iter().for_each(|value| class.put(managed.key(), value));
            }
            qdisc::Kind::Netem(netem) => match &netem.kind {
                netem::Kind::Netem(options) => {
                    class.put("netem", text(options.text()));
                    let Some(inside) = self.only_child(child.handle) else { return Ok(()) };
                    let inner = match &inside.kind {
                        qdisc::Kind::Managed(managed) if managed.key() == "scheduler" => {
                            self.managed(inside, managed)?
                        }
                        qdisc::Kind::Managed(_) | qdisc::Kind::Netem(_) => None,
                        _ => Some(self.scheduler(inside, notes).map_err(|problem| problem.at(&inside.span))?),
                    };
                    let inner = match inner {
                        Some(inner) => inner,
                        None => self.only_class(inside, notes)?,
                    };
                    class.put("scheduler", inner);
                }
                netem::Kind::Delay(fed) => {
                    if let Some(inside) = self.only_child(child.handle) {
                        return Err(Problem::new("a discipline in `delay` in a class")
                            .put_at(&inside.span)
                            .help("put `delay` inside it instead"));
                    }
                    // As the device of each interface, each class has a feed of its own.
                    let of = child.parent.unwrap_or(child.handle).to_string();
                    let feed = format!("delay-{}", of.replace(':', "-"));
                    fed.class_keys(&feed).into_iter().for_each(|(key, value)| class.put(key, value));
                    notes.push(fed_in_class(child.handle, &feed));
                }
            },
            _ => {
                let inner = self.scheduler(child, notes).map_err(|problem| problem.at(&child.span))?;
                class.put("scheduler", inner);
            }
        }
        Ok(())
    }

    /// The schedule of gates.
    fn put_schedule(&self, taprio: &Taprio, handle: Handle, table: &mut Table) {
        let entry = |(lasts, gates): &(Duration, u32)| {
            let open = (0..u16::from(taprio.bands.bands)).filter(|class| gates >> class & 1 == 1);
            let names = open.map(|class| text(self.called(Handle { minor: class + 1, ..handle })));
            let mut entry = Table::default();
            entry.put("lasts", text(lasts));
            entry.put("open", Value::Array(names.map(Node::new).collect()));
            entry
        };
        table.put("schedule", list(taprio.entries.iter().map(entry)));
        taprio.cycle.into_iter().for_each(|cycle| table.put("cycle", text(cycle)));
    }

    /// Where packets get times at which they may leave, something must hold them until then.
    fn check_launched(&self, taprio: &Taprio, qdisc: &Qdisc) -> Result<(), Problem> {
        if !taprio.gives_times {
            return Ok(());
        }
        let classes = if taprio.has_one_queue { 1 } else { u16::from(taprio.bands.bands) };
        for minor in 1..=classes {
            let class = Handle { minor, ..qdisc.handle };
            let holds = self.child(class).is_some_and(|child| match &child.kind {
                qdisc::Kind::Managed(managed) => managed.remarks.iter().any(|remark| remark == LAUNCHED),
                _ => false,
            });
            if !holds {
                return Err(Problem::new(format!(
                    "`taprio` with `flags 0x1` and without `etf` in {class}: packets get times to leave, and nothing holds them until then"
                ))
                .at(&qdisc.span)
                .help(format!("as in: tc qdisc replace dev X parent {class} etf skip_sock_check offload delta 200000 clockid CLOCK_TAI"))
                .help("or leave `flags` out"));
            }
        }
        Ok(())
    }
}

/// The keys of a `netem`, and what is in it. Where that is `netem`, too, only one of the two may hold packets back: the limit of
/// the other one, through which packets pass at once, has no effect.
fn without_idle_limit<'a>(
    mut keys: Vec<(&'static str, Value)>,
    outer: &netem::Kind,
    child: Option<&'a Qdisc>,
) -> (Vec<(&'static str, Value)>, Option<Cow<'a, Qdisc>>) {
    let holds = |kind: &netem::Kind| match kind {
        netem::Kind::Netem(options) => {
            options.delay > Duration::ZERO
                || options.jitter > Duration::ZERO
                || options.rate.is_some()
                || options.slot.is_some()
        }
        netem::Kind::Delay(_) => true,
    };
    let Some(qdisc::Kind::Netem(inner)) = child.map(|child| &child.kind) else {
        return (keys, child.map(Cow::Borrowed));
    };
    match (holds(outer), holds(&inner.kind)) {
        (false, _) => keys.retain(|(key, _)| *key != LINE_LIMIT),
        (true, false) => {
            let mut inside = child.cloned();
            if let Some(Qdisc { kind: qdisc::Kind::Netem(inner), .. }) = &mut inside
                && let netem::Kind::Netem(options) = &mut inner.kind
            {
                options.limit = None;
            }
            return (keys, inside.map(Cow::Owned));
        }
        (true, true) => {}
    }
    (keys, child.map(Cow::Borrowed))
}

/// The key for the limit of packets in flight.
const LINE_LIMIT: &str = "line-limit";

fn of_type(name: &str) -> Table {
    let mut table = Table::default();
    table.put("type", text(name));
    table
}

/// The keys of a bucket whose queue, and thus its limit, is replaced by another qdisc.
fn without_limit(bucket: &Table) -> Table {
    let mut keys = bucket.clone();
    ["bound", "latency"].iter().for_each(|key| keys.remove(key));
    bucket::scheduler(&keys)
}

fn no_limit(bucket: &Table, inside: Handle) -> String {
    let said = if bucket.get("latency").is_some() { "latency" } else { "limit" };
    format!("`{said}` of tbf has no effect, as in the kernel: its inner {inside} bounds the backlog.")
}

/// The class of HTB for packets past all classes.
fn direct() -> Table {
    let mut class = named(DIRECT);
    for (key, value) in [("rate", "100gbit"), ("burst", "1MB"), ("cburst", "1MB")] {
        class.put(key, text(value));
    }
    class
}

/// A table with a name, such as a class.
fn named(name: impl std::fmt::Display) -> Table {
    let mut table = Table::default();
    table.put("name", text(name));
    table
}

/// Adds all keys of one table to another.
pub(super) fn add(keys: &Table, to: &mut Table) {
    keys.iter().for_each(|(key, node)| to.put(&key.name, node.value.clone()));
}

fn list(tables: impl IntoIterator<Item = Table>) -> Value {
    Value::Array(tables.into_iter().map(|table| Node::new(Value::Table(table))).collect())
}

impl Draft {
    pub(super) fn finish(self) -> Keys {
        let keys = self.keys.into_iter().map(|(key, value)| (key, in_lines(value))).collect();
        Keys { keys, notes: self.notes, without_rate: self.without_rate }
    }

    /// Adds the keys of a `netem` or `delay`, which may be in another qdisc.
    fn add_netem(&mut self, qdisc: &Qdisc, keys: Vec<(&'static str, Value)>) -> Result<(), Problem> {
        let both = keys.iter().find(|(key, _)| self.keys.iter().any(|(known, _)| known == key));
        if let Some((key, _)) = both {
            let name = qdisc.kind.name();
            return Err(Problem::new(format!(
                "`{name}` in another `netem` or `delay`: both mean the link's `{key}`"
            ))
            .at(&qdisc.span)
            .help("a link has each key once: set it in one of the two"));
        }
        self.keys.extend(keys);
        Ok(())
    }

    /// Sets a key, which may exist.
    fn put(&mut self, key: &'static str, value: Value) {
        match self.keys.iter_mut().find(|(known, _)| *known == key) {
            // The overhead of netem's rate takes precedence.
            Some(_) if key == "overhead" => {}
            Some((_, old)) => *old = value,
            None => self.keys.push((key, value)),
        }
    }

    fn nothing_waits(&mut self, name: &str) {
        if !self.keys.iter().any(|(key, _)| *key == "rate") {
            self.without_rate = Some(format!(
                "The device's speed is not given, and without a rate there is no backlog: set the link's rate (--rate, or `rate = …`) for `{name}` to take effect."
            ));
        }
    }
}

/// A value as written in a file, with one line for each class and filter; the only class of a bucket gets
/// none.
fn in_lines(value: Value) -> String {
    let Value::Table(table) = &value else { return Node::new(value).toml() };
    let is_table = |node: &Node| matches!(node.value, Value::Table(_));
    let item = |node: &Node| match &node.value {
        Value::Array(items) if items.iter().any(is_table) && text_of(table, "type") != "tbf" => {
            let lines: Vec<String> = items.iter().map(Node::toml).collect();
            format!("[\n    {}\n]", lines.join(",\n    "))
        }
        _ => node.toml(),
    };
    let entries: Vec<String> =
        table.iter().map(|(key, node)| format!("{} = {}", key.name, item(node))).collect();
    format!("{{ {} }}", entries.join(", "))
}

impl Keys {
    /// All remarks, depending on whether something else sets the rate of the link.
    pub fn remarks(&self, says_rate: bool) -> impl Iterator<Item = &str> {
        let rest = self.without_rate.as_deref().filter(|_| !says_rate);
        self.notes.iter().map(String::as_str).chain(rest)
    }
}

fn fed_in_class(handle: Handle, feed: &str) -> String {
    format!(
        "Each packet of {handle} takes the next delay from another program (`narrows feed`); without one it has no delay, as with sch_delay. Values come through a socket, the feed `{feed}`, not a device."
    )
}

fn double_queue(kind: &qdisc::Kind, outer: Handle, inner: Handle) -> String {
    format!(
        "`{}` and netem, {outer} and {inner}, become one link with two queues: packets wait for the rate in one, and packets in flight do not count there (--exact-netem keeps the single queue).",
        kind.name()
    )
}
