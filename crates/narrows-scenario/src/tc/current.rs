//! Converts a direction's scheduler back to tc objects, for `tc qdisc show` and `tc class show`.
//!
//! As in [`netem`](crate::netem), the output is computed from the current settings, whatever made them, and
//! parsing it gives the same meaning.

mod options;
mod points;

use narrows_core::queue::{Bound, DropAt};
use narrows_core::sched::Weight;
use narrows_core::service::Overhead;
use narrows_core::{Bytes, Order, Rate};
use serde::{Deserialize, Serialize};

use super::qdisc::USUAL_LIMIT;
use super::translate::{DIRECT, UNCLASSIFIED};
use super::unit::FRAME;
use super::written;
use super::{Handle, cbs, hfsc, managed};
use crate::direction::Direction;
use crate::netem::{FedDelay, Kind as NetemKind};
use crate::node::Node;
use crate::value::{
    Child, Class, DROP, DelaySource, Delayed, Division, FeedUse, Hpd, Match, Policy, Queue, Scheduler,
    SchedulerKind, ShapedBy, Tbf, Tree,
};

/// The current qdiscs, classes and filters of a direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentConfig {
    /// The qdiscs, each before those in its classes.
    pub qdiscs: Vec<CurrentQdisc>,
    /// The classes of all qdiscs.
    pub classes: Vec<CurrentClass>,
    /// The filters; those of one qdisc in the order in which they are tried.
    #[serde(default)]
    pub filters: Vec<CurrentFilter>,
    /// What tc cannot express, or `show` does not show.
    pub unrepresentable: Vec<String>,
}

/// A filter that sends packets to a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentFilter {
    /// Its qdisc.
    pub parent: String,
    /// Its position among the filters of the qdisc, from 1: tc's preference.
    pub pref: u32,
    /// The class.
    pub class: String,
    /// tc's `protocol`: `ip`, `ipv6`, or `all` for packets of both.
    pub protocol: String,
    /// The kind and the condition in tc's syntax: `flower ip_proto tcp`; `None` if tc cannot express it, as for a list.
    pub words: Option<String>,
    /// The condition as written in a scenario.
    pub condition: String,
    #[serde(skip)]
    pub(super) matches: Match,
}

/// A qdisc.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentQdisc {
    /// Its kind in tc.
    pub kind: String,
    /// Its handle: `1:`.
    pub handle: String,
    /// The class that contains it; `None` for the root.
    pub parent: Option<String>,
    /// Its options.
    pub options: String,
    /// For `hpd`, the class number of each of the 64 code points; empty for other kinds, and if classes
    /// depend on more than the code point.
    pub points: Vec<Option<u16>>,
}

impl CurrentConfig {
    /// The tc commands that make it on a device, one a line. What is [unrepresentable](Self::unrepresentable) and
    /// filters without words are left out.
    pub fn commands(&self, device: &str) -> String {
        let mut script = String::new();
        // Classes stand between their qdisc and what is in them.
        for CurrentQdisc { kind, handle, parent, options, .. } in &self.qdiscs {
            let place = parent.as_ref().map_or("root".to_owned(), |parent| format!("parent {parent}"));
            script += &format!("tc qdisc add dev {device} {place} handle {handle} {kind} {options}\n");
            for class in self.classes.iter().filter(|class| class.handle.starts_with(handle)) {
                // These qdiscs make their classes themselves.
                if matches!(class.kind.as_str(), "prio" | "ets" | "taprio" | "tbf" | "cbs") {
                    continue;
                }
                let CurrentClass { kind, handle: id, parent, options, .. } = class;
                let parent = parent.as_ref().unwrap_or(handle);
                script +=
                    &format!("tc class add dev {device} parent {parent} classid {id} {kind} {options}\n");
            }
            let mut pref = 0;
            for filter in self.filters.iter().filter(|filter| filter.parent == *handle) {
                let CurrentFilter { class, matches, .. } = filter;
                for protocol in written::protocols(matches) {
                    let Some(words) = written::words(matches, protocol) else { continue };
                    pref += 1;
                    script += &format!(
                        "tc filter add dev {device} parent {handle} protocol {protocol} pref {pref} {words} classid {class}\n"
                    );
                }
            }
        }
        script
    }
}

impl CurrentClass {
    /// Whether it is a class of this qdisc.
    pub fn is_of(&self, qdisc: &CurrentQdisc) -> bool {
        let major = |handle: &str| handle.split(':').next().map(str::to_owned);
        major(&self.handle) == major(&qdisc.handle)
    }
}

/// A class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentClass {
    /// The kind of its qdisc in tc.
    pub kind: String,
    /// Its handle: `1:10`.
    pub handle: String,
    /// Its parent class; `None` if its parent is the qdisc.
    pub parent: Option<String>,
    /// The qdisc in it, if one is shown.
    pub leaf: Option<String>,
    /// Its options.
    pub options: String,
    /// Its name in the scenario and in reports.
    pub name: String,
    /// Whether it is a class of the direction's own scheduler, which reports cover, rather than of a nested
    /// one.
    pub outermost: bool,
}

impl Direction {
    /// The scheduler as tc qdiscs and classes; `None` without a scheduler, or if it has no classes in tc, unless it is
    /// CAKE.
    /// `first` is the first handle for qdiscs that have none.
    pub fn tc(&self, first: u16) -> Option<CurrentConfig> {
        let scheduler = self
            .scheduler
            .as_ref()
            .filter(|scheduler| is_tree(scheduler) || scheduler.kind == SchedulerKind::Cake)?;
        let around = self.around();
        let mut walk = Walk {
            direction: self,
            taken: majors(scheduler),
            free: first,
            netem_within: !around.exact
                && matches!(&around.qdisc, Some(qdisc) if matches!(qdisc.kind, NetemKind::Netem(_))),
            found: CurrentConfig {
                unrepresentable: around.unrepresentable.iter().map(|key| (*key).to_owned()).collect(),
                ..CurrentConfig::default()
            },
        };
        if is_tree(scheduler) && self.rate == Rate::UNLIMITED && self.overhead != Overhead::FRAME {
            walk.found.unrepresentable.push("overhead".into());
        }
        let netem = around.qdisc.map(|qdisc| match &qdisc.kind {
            NetemKind::Netem(netem) => ("netem", netem.text_for_tc()),
            NetemKind::Delay(_) => ("delay", qdisc.text().trim_start_matches("root delay ").to_owned()),
        });
        match netem {
            // Packets that wait for the bucket are in netem's queue.
            Some(("netem", options))
                if !around.exact && scheduler.kind == SchedulerKind::Tbf && !has_room(scheduler) =>
            {
                let bucket = walk.scheduler(scheduler, None, true);
                let limit = match self.bound() {
                    USUAL_LIMIT => String::new(),
                    Bound::Packets(packets) => format!("limit {packets} "),
                    Bound::Bytes(_) => {
                        walk.unrepresentable("queue", bucket);
                        String::new()
                    }
                };
                let inside = Handle { minor: 1, ..bucket };
                let handle = walk.handle();
                walk.qdisc("netem", handle, Some(inside), limit + &options);
                if let Some(class) = walk.found.classes.last_mut() {
                    class.leaf = Some(handle.to_string());
                }
            }
            Some((kind, options)) => {
                let handle = walk.handle();
                walk.qdisc(kind, handle, None, options);
                walk.any(scheduler, Some(Handle { minor: 1, ..handle }), true);
            }
            None => drop(walk.any(scheduler, None, true)),
        }
        Some(walk.found)
    }

    /// The settings around the scheduler as NetEm options, without those that follow from the scheduler.
    fn around(&self) -> crate::netem::CurrentConfig {
        let mut plain = Self { scheduler: None, ..self.clone() };
        if self.rate == Rate::UNLIMITED {
            plain.overhead = Overhead::IP;
            if self.queue.policy == Policy::Fifo {
                plain.queue = Queue::default();
            }
        }
        plain.netem()
    }
}

/// What `tc filter show` says of the packets that a filter sees.
fn protocol(matches: &Match) -> &'static str {
    match written::protocols(matches) {
        [one] => one,
        _ => "all",
    }
}

/// Whether a token bucket has its own limit that tc can express: in bytes, or as a latency.
fn has_room(scheduler: &Scheduler) -> bool {
    matches!(scheduler.bound, Some(Bound::Bytes(_)))
        || scheduler.own.get::<Tbf>().is_some_and(|tbf| tbf.latency.is_some())
}

/// Whether it has classes in tc, or can contain a qdisc.
fn is_tree(scheduler: &Scheduler) -> bool {
    match scheduler.kind {
        SchedulerKind::Drr | SchedulerKind::Qfq => !scheduler.has_flows(),
        kind => matches!(
            kind,
            SchedulerKind::Htb
                | SchedulerKind::Cbq
                | SchedulerKind::Hfsc
                | SchedulerKind::Hpd
                | SchedulerKind::Prio
                | SchedulerKind::Ets
                | SchedulerKind::Taprio
                | SchedulerKind::Tbf
                | SchedulerKind::Cbs
        ),
    }
}

/// The handle that is a class's name.
fn named_handle(class: &Class) -> Option<Handle> {
    Handle::from_text(&class.name).filter(|handle| {
        handle.major > 0 && handle.major < 0xffff && handle.minor > 0 && handle.to_string() == class.name
    })
}

/// The major numbers in the names of classes at any depth.
fn majors(scheduler: &Scheduler) -> Vec<u16> {
    let inner = |class: &Class| class.child.as_ref().and_then(Child::scheduler).map(majors);
    let inside = scheduler.named().iter().filter_map(inner);
    let own = scheduler.named().iter().filter_map(named_handle).map(|handle| handle.major);
    own.collect::<Vec<_>>().into_iter().chain(inside.flatten()).collect()
}

/// The class of packets that match no condition.
fn default_of(scheduler: &Scheduler) -> Option<usize> {
    let Division::Classes { classes, default, filters, drops_rest } = &scheduler.serves else { return None };
    if let Some(name) = default {
        return classes.iter().position(|class| class.name == *name);
    }
    if *drops_rest || !filters.is_empty() {
        return None;
    }
    Tree::of(classes).leaves().filter(|&at| classes[at].matches.is_empty()).last()
}

/// Whether a class was added for the rest of a script's packets, which the qdisc implies.
fn is_implied(scheduler: &Scheduler, at: usize) -> bool {
    let class = &scheduler.named()[at];
    let name = match scheduler.kind {
        SchedulerKind::Htb => DIRECT,
        SchedulerKind::Cbq => UNCLASSIFIED,
        _ => return false,
    };
    class.name == name
        && default_of(scheduler) == Some(at)
        && class.queue.is_none()
        && class.child.is_none()
        && class.parent.is_none()
}

struct Walk<'a> {
    direction: &'a Direction,
    /// Major numbers in use, or reserved.
    taken: Vec<u16>,
    /// The next free number.
    free: u16,
    /// Whether the token bucket at the root contains NetEm.
    netem_within: bool,
    found: CurrentConfig,
}

impl Walk<'_> {
    /// A new handle for a qdisc that has none.
    fn handle(&mut self) -> Handle {
        while self.taken.contains(&self.free) {
            self.free = self.free.wrapping_add(1).max(1);
        }
        self.taken.push(self.free);
        Handle { major: self.free, minor: 0 }
    }

    fn qdisc(&mut self, kind: &str, handle: Handle, parent: Option<Handle>, options: String) {
        self.found.qdiscs.push(CurrentQdisc {
            kind: kind.into(),
            handle: handle.to_string(),
            parent: parent.map(|parent| parent.to_string()),
            options,
            points: Vec::new(),
        });
    }

    fn unrepresentable(&mut self, what: &str, of: Handle) {
        self.found.unrepresentable.push(format!("{what} of {of}"));
    }

    /// The filters of a scheduler, in order.
    fn filters(&mut self, scheduler: &Scheduler, handle: Handle, ids: &[Handle], most: usize) {
        if let Division::Classes { filters, .. } = &scheduler.serves
            && filters.iter().any(|filter| filter.class == DROP)
        {
            self.unrepresentable("filters that drop packets", handle);
        }
        for (pref, (class, matches)) in (1..).zip(points::rules(scheduler).take(most)) {
            self.found.filters.push(CurrentFilter {
                parent: handle.to_string(),
                pref,
                class: ids[class].to_string(),
                protocol: protocol(matches).into(),
                words: written::words(matches, protocol(matches)),
                condition: Node::new(matches.value()).toml(),
                matches: matches.clone(),
            });
        }
    }

    /// A filter for the packets that no other filter takes, where the qdisc itself would drop them.
    fn rest(&mut self, handle: Handle, class: Handle) {
        let parent = handle.to_string();
        let before = self.found.filters.iter().filter(|filter| filter.parent == parent).count();
        self.found.filters.push(CurrentFilter {
            parent,
            pref: before as u32 + 1, // as many as a scenario has
            class: class.to_string(),
            protocol: "all".into(),
            words: written::words(&Match::default(), "all"),
            condition: "every other packet".into(),
            matches: Match::default(),
        });
    }

    /// A scheduler with what it contains, or one that contains nothing.
    fn any(&mut self, scheduler: &Scheduler, parent: Option<Handle>, outermost: bool) -> Handle {
        if is_tree(scheduler) {
            return self.scheduler(scheduler, parent, outermost);
        }
        let handle = self.handle();
        let options = managed::shown(&scheduler.value());
        if options.is_none() {
            self.unrepresentable("options", handle);
        }
        self.qdisc(scheduler.kind.name(), handle, parent, options.unwrap_or_default());
        handle
    }

    /// A scheduler, its classes and what they contain.
    fn scheduler(&mut self, scheduler: &Scheduler, parent: Option<Handle>, outermost: bool) -> Handle {
        let classes = scheduler.named();
        let own = classes.iter().find_map(named_handle).map(|handle| Handle { minor: 0, ..handle });
        let used = |handle: &Handle| self.found.qdiscs.iter().any(|qdisc| qdisc.handle == handle.to_string());
        let handle = own.filter(|handle| !used(handle)).unwrap_or_else(|| self.handle());
        let ids = handles(scheduler, handle);
        self.head(scheduler, handle, parent, &ids);
        if scheduler.kind.has_one_class() {
            let (id, place) = (Handle { minor: 1, ..handle }, self.found.classes.len());
            let all = Class::all();
            let class = classes.first().unwrap_or(&all);
            self.found.classes.push(CurrentClass {
                kind: scheduler.kind.name().into(),
                handle: id.to_string(),
                parent: Some(handle.to_string()),
                name: class.name.clone(),
                outermost,
                ..CurrentClass::default()
            });
            let inside = self.leaf(scheduler, class, id, outermost);
            self.found.classes[place].leaf = inside.map(|inside| inside.to_string());
            return handle;
        }
        let tree = Tree::of(classes);
        for (at, class) in classes.iter().enumerate().filter(|(at, _)| !is_implied(scheduler, *at)) {
            let (is_leaf, above) = (tree.is_leaf(at), tree.parent(at));
            let place = self.found.classes.len();
            let options = self.options(scheduler, at, ids[at], is_leaf);
            // The parent of the bands of `prio` is the qdisc, not a root class.
            let bands = (scheduler.kind == SchedulerKind::Prio).then_some(handle);
            self.found.classes.push(CurrentClass {
                kind: scheduler.kind.name().into(),
                handle: ids[at].to_string(),
                parent: above.map(|above| ids[above]).or(bands).map(|above| above.to_string()),
                options,
                name: class.name.clone(),
                outermost,
                leaf: None,
            });
            if is_leaf {
                let inside = self.leaf(scheduler, class, ids[at], outermost);
                self.found.classes[place].leaf = inside.map(|inside| inside.to_string());
            }
        }
        handle
    }

    /// The scheduler's own line.
    fn head(&mut self, scheduler: &Scheduler, handle: Handle, parent: Option<Handle>, ids: &[Handle]) {
        let default = default_of(scheduler);
        let by_points = points::of(scheduler);
        let named_default = default.filter(|at| !is_implied(scheduler, *at));
        let mut options = match scheduler.kind {
            SchedulerKind::Htb => {
                format!("r2q 10 default {:#x}", named_default.map_or(0, |at| ids[at].minor))
            }
            SchedulerKind::Hfsc => default.map_or(String::new(), |at| format!("default {:x}", ids[at].minor)),
            SchedulerKind::Cbq => scheduler.own.get().map(options::cbq).unwrap_or_default(),
            SchedulerKind::Prio => format!("bands {}", ids.len()),
            SchedulerKind::Ets => options::ets(scheduler),
            SchedulerKind::Taprio => options::taprio(scheduler),
            SchedulerKind::Cbs => {
                scheduler.own.get().map(|own| cbs::options(own, self.direction.rate)).unwrap_or_default()
            }
            SchedulerKind::Tbf => {
                let tbf = scheduler.own.get();
                // Its own limit has no effect if it contains another qdisc, but tc requires one.
                let bound = scheduler.bound.filter(|_| has_room(scheduler));
                let within = || match self
                    .bound(scheduler, scheduler.named().first().unwrap_or(&Class::all()))
                {
                    Bound::Packets(packets) => Bound::Bytes(Bytes::new(packets.saturating_mul(FRAME.get()))),
                    bytes => bytes,
                };
                let bound = if has_room(scheduler) { bound } else { Some(within()) };
                tbf.map(|tbf| options::tbf(tbf, bound)).unwrap_or_default()
            }
            _ => String::new(),
        };
        match scheduler.kind {
            SchedulerKind::Hfsc => self.filters(scheduler, handle, ids, usize::MAX),
            SchedulerKind::Htb | SchedulerKind::Cbq => {
                self.filters(scheduler, handle, ids, usize::MAX);
                if default.is_none() || scheduler.kind == SchedulerKind::Cbq && named_default.is_some() {
                    self.unrepresentable("default", handle);
                }
            }
            SchedulerKind::Prio | SchedulerKind::Ets | SchedulerKind::Taprio => {
                if ids.len() > 16 {
                    self.unrepresentable("classes", handle);
                }
                let found = points::priorities(scheduler, default);
                self.filters(scheduler, handle, ids, found.map_or(usize::MAX, |(before, _)| before));
                if found.is_none() && default.is_none() {
                    self.unrepresentable("default", handle);
                }
                if let Some(map) = found.map(|(_, map)| map).or_else(|| default.map(|band| [band; 16])) {
                    let word = if scheduler.kind == SchedulerKind::Taprio { "map" } else { "priomap" };
                    let bands = map.map(|band| (ids[band].minor - 1).to_string());
                    options += &format!(" {word} {}", bands.join(" "));
                }
                if scheduler.kind == SchedulerKind::Taprio {
                    options += &options::schedule(scheduler);
                    if !scheduler.starts_at_once() {
                        self.unrepresentable("start", handle);
                    }
                }
            }
            SchedulerKind::Hpd => match &by_points {
                Some(points) => {
                    let said: Vec<String> = (0..64)
                        .filter_map(|point| Some(format!("dscp {point} class {}", ids[points[point]?].minor)))
                        .collect();
                    options = said.join(" ");
                }
                None => self.filters(scheduler, handle, ids, usize::MAX),
            },
            SchedulerKind::Drr | SchedulerKind::Qfq => {
                self.filters(scheduler, handle, ids, usize::MAX);
                if let Some(class) = default {
                    self.rest(handle, ids[class]);
                }
            }
            // Those with one class only.
            _ => {}
        }
        if scheduler.kind != SchedulerKind::Tbf && scheduler.bound.is_some() {
            self.unrepresentable("bound", handle);
        }
        if let Some(hpd) = scheduler.own.get::<Hpd>() {
            if hpd.bound_order != Default::default() {
                self.unrepresentable("bound-order", handle);
            }
            if hpd.bound_reading != Default::default() {
                self.unrepresentable("bound-reading", handle);
            }
        }
        self.qdisc(scheduler.kind.name(), handle, parent, options);
        if let (SchedulerKind::Hpd, Some(points), Some(qdisc)) =
            (scheduler.kind, by_points, self.found.qdiscs.last_mut())
        {
            qdisc.points =
                points.iter().map(|class| class.or(default).map(|class| ids[class].minor)).collect();
        }
    }

    /// The options of a class.
    fn options(&mut self, scheduler: &Scheduler, at: usize, id: Handle, is_leaf: bool) -> String {
        let class = &scheduler.named()[at];
        match (&class.shape, scheduler.kind) {
            (Some(shape), _) => match shape {
                ShapedBy::Htb(class) => options::htb_class(class, is_leaf),
                ShapedBy::Cbq(class) => options::cbq_class(class),
                ShapedBy::Hfsc(class) => hfsc::shown(class),
            },
            (None, SchedulerKind::Hpd) => {
                let bound = match self.bound(scheduler, class) {
                    Bound::Packets(packets) if class.child.is_none() => Some(packets),
                    _ => None,
                };
                let (text, said) =
                    options::hpd_class(&class.hpd, id.minor, default_of(scheduler) == Some(at), bound);
                if !said {
                    self.unrepresentable("estimator", id);
                }
                text
            }
            (None, SchedulerKind::Drr) => {
                let weight = class.weight.unwrap_or(Weight::ONE).get();
                let base = scheduler.quantum().unwrap_or_default().get();
                let turn = class.quantum.unwrap_or(Bytes::new(base * u64::from(weight))); // below 2⁵³
                if turn.get() > u32::MAX.into() {
                    self.unrepresentable("weight", id);
                }
                options::drr_class(turn)
            }
            (None, SchedulerKind::Ets) => {
                scheduler.turns()(class).map_or(String::new(), |turn| format!("quantum {turn}"))
            }
            (None, SchedulerKind::Qfq) => {
                let weight = class.weight.unwrap_or(Weight::ONE);
                if weight.get() > 1024 {
                    self.unrepresentable("weight", id);
                }
                if class.longest().get() < 512 {
                    self.unrepresentable("longest", id);
                }
                options::qfq_class(weight, class.longest())
            }
            _ => String::new(),
        }
    }

    fn bound(&self, scheduler: &Scheduler, class: &Class) -> Bound {
        scheduler.class_bound(class, self.direction.queue, self.direction.default_bound.bound())
    }

    /// The content of a class, if it is another qdisc or not tc's default queue.
    fn leaf(&mut self, scheduler: &Scheduler, class: &Class, id: Handle, outermost: bool) -> Option<Handle> {
        match &class.child {
            Some(Child::Scheduler(inner)) => return Some(self.any(inner, Some(id), false)),
            Some(Child::Netem(netem)) => {
                let handle = self.handle();
                self.qdisc("netem", handle, Some(id), netem.options.text_for_tc());
                return Some(handle);
            }
            Some(Child::Around(around)) => {
                let handle = self.handle();
                self.qdisc("netem", handle, Some(id), around.netem.options.text_for_tc());
                self.any(&around.inner, Some(Handle { minor: 1, ..handle }), false);
                return Some(handle);
            }
            Some(Child::Delayed(delayed)) => {
                let handle = self.handle();
                match fed(delayed) {
                    Some(options) => self.qdisc("delay", handle, Some(id), options),
                    None => self.unrepresentable("delay", id),
                }
                return Some(handle);
            }
            None => {}
        }
        let queue = class.queue.unwrap_or(self.direction.queue);
        if queue.policy != Policy::Fifo {
            if class.queue.is_none() && outermost {
                return None;
            }
            let value = queue.value();
            let (Some(kind), Some(options)) = (managed::name_of(&value), managed::shown(&value)) else {
                self.unrepresentable("queue", id);
                return None;
            };
            let handle = self.handle();
            self.qdisc(kind, handle, Some(id), options);
            return Some(handle);
        }
        let bound = self.bound(scheduler, class);
        let implied = match scheduler.kind {
            // It contains netem, which is around everything.
            SchedulerKind::Tbf => has_room(scheduler) || outermost && self.netem_within,
            SchedulerKind::Hpd => matches!(bound, Bound::Packets(_)),
            _ => bound == USUAL_LIMIT,
        };
        let kind = match (bound, queue.drop) {
            (_, DropAt::Tail) if implied => return None,
            (Bound::Packets(_), DropAt::Tail) => "pfifo",
            (Bound::Packets(_), _) => "pfifo_head_drop",
            (Bound::Bytes(_), DropAt::Tail) => "bfifo",
            (Bound::Bytes(_), _) => {
                self.unrepresentable("queue", id);
                return None;
            }
        };
        let options = managed::fifo_limit(kind, bound);
        let handle = self.handle();
        self.qdisc(kind, handle, Some(id), options);
        Some(handle)
    }
}

/// The handles of the classes: their names if these are handles of this qdisc, else the next free numbers.
fn handles(scheduler: &Scheduler, of: Handle) -> Vec<Handle> {
    let classes = scheduler.named();
    let own = |class: &Class| named_handle(class).filter(|handle| handle.major == of.major);
    if scheduler.kind == SchedulerKind::Taprio {
        // The last traffic class goes first.
        return (1..=classes.len() as u16).rev().map(|minor| Handle { minor, ..of }).collect();
    }
    let bands = matches!(scheduler.kind, SchedulerKind::Prio | SchedulerKind::Ets);
    let used: Vec<Handle> = classes.iter().filter_map(own).collect();
    let mut free =
        (1..=u16::MAX).map(|minor| Handle { minor, ..of }).filter(|handle| bands || !used.contains(handle));
    let mut next = || free.next().unwrap_or(of);
    classes.iter().map(|class| own(class).filter(|_| !bands).unwrap_or_else(&mut next)).collect()
}

/// The options of the qdisc `delay` for the delay line of a class, if it can express them.
fn fed(line: &Delayed) -> Option<String> {
    let DelaySource::Feed(feed) = &line.delay.source else { return None };
    let plain = FeedUse { name: feed.name.clone(), ..FeedUse::default() };
    let own = FedDelay { limit: line.limit, reorder: line.order == Order::Allow };
    (*feed == plain && line.delay.per_byte == 0).then(|| own.options())
}
