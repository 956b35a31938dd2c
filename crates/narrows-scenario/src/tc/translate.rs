//! What stands at a device as keys of a link's direction.

use narrows_core::Duration;

use super::police::Police;
use super::qdisc::USUAL_LIMIT;
use super::rules::Rules;
use super::tree::{Class, Qdisc, Tree};
use super::{Handle, class, qdisc};
use crate::netem;
use crate::node::toml_string;
use crate::problem::Problem;
use crate::value::Match;
use crate::value::inline::Inline;

/// Keys of a direction, each with its value as it stands in a file, and what is to be said about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// The keys.
    pub keys: Vec<(&'static str, String)>,
    /// Sentences for a person.
    pub notes: Vec<String>,
    /// One for where nothing else says the rate of the link.
    pub without_rate: Option<String>,
}

/// The class for packets that `htb` would let go unshaped.
pub(super) const DIRECT: &str = "direct";
/// The class for packets that `cbq` would keep at its root.
pub(super) const UNCLASSIFIED: &str = "unclassified";

impl Tree {
    /// The keys for packets that leave at the device.
    pub(super) fn egress(&self, exact: bool) -> Result<Keys, Problem> {
        let mut keys = Keys::default();
        if let Some(root) = self.root() {
            self.put(root, exact, &mut keys).map_err(|problem| problem.put_at(&root.span))?;
        }
        Ok(keys)
    }

    /// The keys for packets that arrive there.
    pub(super) fn policed(&self) -> Result<Keys, Problem> {
        let mut keys = Keys::default();
        let mut all = self.police.clone();
        all.sort_by_key(|placed| placed.filter.prio);
        let Some(first) = all.first() else { return Ok(keys) };
        let Some(police) = first.filter.police else {
            return Err(Problem::new("a filter at `ingress` that polices nothing").put_at(&first.span));
        };
        if first.filter.matches.is_some() {
            return Err(Problem::new("a policer of some of the packets that arrive")
                .put_at(&first.span)
                .help("a link polices all packets or none: match all, as in: u32 match ip src 0.0.0.0/0 police …"));
        }
        if all.len() > 1 {
            keys.notes.push("The first filter polices every packet; those after it have none left.".into());
        }
        keys.keys.push(("policer", police_text(police)));
        keys.notes.push(
            "It polices what arrives at the device, at the entrance of the way there: before that way's queue and delay."
                .into(),
        );
        Ok(keys)
    }

    fn put(&self, qdisc: &Qdisc, exact: bool, keys: &mut Keys) -> Result<(), Problem> {
        match &qdisc.kind {
            qdisc::Kind::Netem(netem) => {
                let child = self.only_child(qdisc.handle);
                if exact && let netem::Kind::Netem(options) = &netem.kind {
                    if let Some(child) = child {
                        return Err(Problem::new("NetEm's single queue with another discipline in it")
                            .put_at(&child.span)
                            .help("the other way round there is one: tbf at the root, and netem in it"));
                    }
                    keys.keys.push(("exact-netem", toml_string(&options.text())));
                    return Ok(());
                }
                keys.keys.extend(netem.assignments().map_err(|error| error.into_problem())?);
                let Some(child) = child else { return Ok(()) };
                keys.notes.push(double_queue(&child.kind, qdisc.handle, child.handle));
                self.put(child, exact, keys)
            }
            qdisc::Kind::Tbf(_) => {
                let child = self.only_child(qdisc.handle);
                if let Some(qdisc::Kind::Netem(netem)) = child.map(|child| &child.kind)
                    && !exact
                {
                    keys.keys.extend(netem.assignments().map_err(|error| error.into_problem())?);
                    let inside = child.map_or(Handle::ROOT, |child| child.handle);
                    keys.notes.push(double_queue(&qdisc.kind, qdisc.handle, inside));
                    let scheduler = self.tbf(qdisc, None, &mut keys.notes)?;
                    keys.put("overhead", "\"frame\"".into());
                    keys.put("scheduler", scheduler);
                    return Ok(());
                }
                let scheduler = self.tbf(qdisc, child, &mut keys.notes)?;
                keys.put("overhead", "\"frame\"".into());
                keys.put("scheduler", scheduler);
                Ok(())
            }
            qdisc::Kind::Fifo(fifo) => {
                if let Some(text) = queue_of(fifo) {
                    keys.put("queue", text);
                }
                keys.nothing_waits(fifo.name);
                Ok(())
            }
            qdisc::Kind::Whole(whole) => {
                keys.put(whole.key, whole.value.clone());
                keys.nothing_waits(whole.name);
                Ok(())
            }
            qdisc::Kind::Htb(_) | qdisc::Kind::Cbq(_) | qdisc::Kind::Prio(_) | qdisc::Kind::Hpd(_) => {
                let scheduler = self.classful(qdisc, &mut keys.notes, true)?;
                keys.put("overhead", "\"frame\"".into());
                if !keys.keys.iter().any(|(key, _)| *key == "queue") {
                    keys.keys.push(("queue", format!("\"{USUAL_LIMIT}\"")));
                }
                keys.put("scheduler", scheduler);
                if matches!(qdisc.kind, qdisc::Kind::Prio(_) | qdisc::Kind::Hpd(_)) {
                    keys.nothing_waits(kind_name(&qdisc.kind));
                }
                Ok(())
            }
            qdisc::Kind::Ingress => Ok(()),
        }
    }

    /// A discipline as the value of `scheduler`.
    fn scheduler(&self, qdisc: &Qdisc, notes: &mut Vec<String>) -> Result<String, Problem> {
        match &qdisc.kind {
            qdisc::Kind::Tbf(_) => self.tbf(qdisc, self.only_child(qdisc.handle), notes),
            _ => self.classful(qdisc, notes, false),
        }
    }

    fn tbf(&self, qdisc: &Qdisc, child: Option<&Qdisc>, notes: &mut Vec<String>) -> Result<String, Problem> {
        let qdisc::Kind::Tbf(tbf) = &qdisc.kind else { unreachable!("the caller looked") };
        let mut table = Inline::default();
        table.quoted("type", Some("tbf"));
        table.quoted("rate", Some(tbf.rate));
        table.quoted("burst", Some(tbf.burst));
        match tbf.room {
            qdisc::Room::Limit(limit) => table.quoted("bound", Some(limit)),
            qdisc::Room::Latency(latency) => table.quoted("latency", Some(latency)),
        }
        table.quoted("peakrate", tbf.peakrate);
        table.quoted("mtu", tbf.mtu);
        table.quoted("mpu", tbf.mpu);
        if let Some(child) = child {
            let mut class = Inline::default();
            class.quoted("name", Some(Handle { minor: 1, ..qdisc.handle }));
            self.body(child, &mut class, notes)?;
            table.plain("classes", Some(format!("[{}]", class.finish())));
        }
        Ok(table.finish())
    }

    /// What a discipline in a class is there: `queue`, `scheduler` or `netem`.
    fn body(&self, child: &Qdisc, class: &mut Inline, notes: &mut Vec<String>) -> Result<(), Problem> {
        match &child.kind {
            qdisc::Kind::Fifo(fifo) => class.plain("queue", queue_of(fifo)),
            qdisc::Kind::Whole(whole) => class.plain(whole.key, Some(&whole.value)),
            qdisc::Kind::Netem(netem) => match &netem.kind {
                netem::Kind::Netem(options) => {
                    if let Some(inside) = self.only_child(child.handle) {
                        return Err(Problem::new("a discipline in netem in a class")
                            .put_at(&inside.span)
                            .help("let netem stand in it, the other way round"));
                    }
                    class.plain("netem", Some(toml_string(&options.text())));
                }
                netem::Kind::Delay(_) => {
                    return Err(Problem::new("`delay` in a class of another discipline")
                        .put_at(&child.span)
                        .help("what a program feeds are delays of a link: put it at the root"));
                }
            },
            _ => {
                let inner = self.scheduler(child, notes).map_err(|problem| problem.put_at(&child.span))?;
                class.plain("scheduler", Some(inner));
            }
        }
        Ok(())
    }

    /// Classes and the rules that send packets to them.
    fn classful(&self, qdisc: &Qdisc, notes: &mut Vec<String>, outermost: bool) -> Result<String, Problem> {
        let mut rules = Rules::of(self, qdisc);
        let mut classes: Vec<(String, Inline, bool)> = Vec::new();
        let mut table = vec![format!("type = \"{}\"", kind_name(&qdisc.kind))];
        match &qdisc.kind {
            qdisc::Kind::Prio(prio) => {
                for band in 1..=u16::from(prio.bands) {
                    let id = Handle { minor: band, ..qdisc.handle };
                    let mut class = Inline::default();
                    class.quoted("name", Some(id));
                    if let Some(child) = self.child(id) {
                        self.body(child, &mut class, notes)?;
                    }
                    classes.push((id.to_string(), class, true));
                }
            }
            kind => {
                if let qdisc::Kind::Cbq(cbq) = kind {
                    table.push(format!("bandwidth = \"{}\"", cbq.bandwidth));
                    table.push(format!("avpkt = \"{}\"", cbq.average_packet));
                }
                for one in self.in_order(qdisc) {
                    let is_leaf = self.below(one.id).next().is_none();
                    let mut class = Inline::default();
                    class.quoted("name", Some(one.id));
                    class.quoted("parent", Some(one.parent).filter(|parent| parent.minor > 0));
                    self.options(one, qdisc, &mut class);
                    if let Some(child) = self.child(one.id) {
                        self.body(child, &mut class, notes)?;
                    }
                    classes.push((one.id.to_string(), class, is_leaf));
                }
                if classes.is_empty() {
                    return Err(Problem::new(format!("`{}` without a class", kind_name(kind)))
                        .help("give it some, as in: tc class add dev X parent 1: classid 1:10 …"));
                }
            }
        }
        let mut default = rules.default.map(|class| class.to_string());
        let mut drops = false;
        if default.is_none() {
            let mut class = Inline::default();
            match &qdisc.kind {
                qdisc::Kind::Htb(_) => {
                    class.quoted("name", Some(DIRECT));
                    class.quoted("rate", Some("100gbit"));
                    class.quoted("burst", Some("1MB"));
                    class.quoted("cburst", Some("1MB"));
                    classes.push((DIRECT.into(), class, true));
                    default = Some(DIRECT.into());
                    notes.push(format!(
                        "No filter and no `default` takes all packets: what is left goes unshaped, as in the kernel, here by the class `{DIRECT}` of 100 Gbit/s."
                    ));
                }
                qdisc::Kind::Cbq(cbq) => {
                    class.quoted("name", Some(UNCLASSIFIED));
                    class.quoted("rate", Some(cbq.bandwidth));
                    class.plain("priority", Some(8));
                    classes.push((UNCLASSIFIED.into(), class, true));
                    default = Some(UNCLASSIFIED.into());
                    notes.push(format!(
                        "What no filter takes goes at the lowest priority, by the class `{UNCLASSIFIED}`, as by cbq's own root."
                    ));
                }
                _ => {
                    drops = true;
                    notes.push("No class is the default: packets that belong to none are dropped.".into());
                }
            }
        }
        // Of the default the rules before all others' say nothing.
        if let Some(default) = &default {
            while rules.rules.last().is_some_and(|rule| rule.class.to_string() == *default) {
                rules.rules.pop();
            }
        }
        let names: Vec<&str> =
            classes.iter().filter(|(_, _, leaf)| *leaf).map(|(name, _, _)| name.as_str()).collect();
        let matches = by_classes(&rules, &names, default.as_deref());
        let filters = matches.is_none().then(|| filters_text(&rules));
        let classes: Vec<String> = classes
            .into_iter()
            .map(|(name, mut class, _)| {
                let own = matches.iter().flatten().find(|(of, _)| *of == name);
                class.plain("match", own.map(|(_, text)| text));
                class.finish()
            })
            .collect();
        let (break_, end) = if outermost { ("\n    ", "\n") } else { (" ", "") };
        let lines = classes.join(&format!(",{break_}"));
        table.push(format!("classes = [{}{lines}{end}]", if outermost { break_ } else { "" }));
        if let Some(filters) = filters.filter(|filters| !filters.is_empty()) {
            let lines = filters.join(&format!(",{break_}"));
            table.push(format!("filters = [{}{lines}{end}]", if outermost { break_ } else { "" }));
        } else if matches.is_none() {
            table.push("filters = []".into());
        }
        match (&matches, &default) {
            (None, Some(default)) => table.push(format!("default = \"{default}\"")),
            _ if drops => table.push("default = \"drop\"".into()),
            _ => {}
        }
        Ok(format!("{{ {} }}", table.join(", ")))
    }

    /// The classes of a discipline, each behind the one above it; those of hybrid proportional delay by number.
    fn in_order(&self, qdisc: &Qdisc) -> Vec<&Class> {
        let mut all: Vec<&Class> =
            self.classes.iter().filter(|class| class.id.qdisc() == qdisc.handle).collect();
        if let qdisc::Kind::Hpd(_) = qdisc.kind {
            all.sort_by_key(|class| class.id.minor);
        }
        all
    }

    fn options(&self, class: &Class, qdisc: &Qdisc, table: &mut Inline) {
        match &class.kind {
            class::Kind::Htb(htb) => {
                table.quoted("rate", Some(htb.rate));
                table.quoted("ceil", htb.ceil);
                table.quoted("burst", htb.burst);
                table.quoted("cburst", htb.cburst);
                table.plain("priority", Some(htb.prio).filter(|prio| *prio > 0));
                let by = match &qdisc.kind {
                    qdisc::Kind::Htb(qdisc::Htb { rate_to_quantum, .. }) if *rate_to_quantum != 10 => {
                        let quantum = htb.rate.bits_per_second() / 8 / rate_to_quantum;
                        Some(narrows_core::Bytes::new(quantum.clamp(1000, 200_000)))
                    }
                    _ => None,
                };
                table.quoted("quantum", htb.quantum.or(by));
                table.quoted("mpu", htb.mpu);
            }
            class::Kind::Cbq(cbq) => {
                let bandwidth = match &qdisc.kind {
                    qdisc::Kind::Cbq(cbq) => Some(cbq.bandwidth),
                    _ => None,
                };
                table.quoted("rate", cbq.rate.or(bandwidth));
                table.plain("priority", cbq.prio);
                table.quoted("allot", cbq.allot);
                table.quoted("avpkt", cbq.average_packet);
                table.plain("weight", cbq.weight);
                table.plain("bounded", cbq.bounded.then_some(true));
                table.plain("isolated", cbq.isolated.then_some(true));
                table.plain("exempt", cbq.exempt.then_some(true));
                table.plain("maxburst", cbq.maxburst);
                table.plain("minburst", cbq.minburst);
                table.quoted("minidle", cbq.minidle);
                table.plain("ewma", cbq.ewma);
                table.quoted("mpu", cbq.mpu);
            }
            class::Kind::Hpd(hpd) => {
                table.plain("ddp", Some(hpd.ddp));
                table.plain("gamma", Some(hpd.gamma.map_or("\"auto\"".into(), |gamma| gamma.to_string())));
                table.plain("g", Some(hpd.weight));
                table.quoted("limit", Some(hpd.limit).filter(|limit| *limit > Duration::ZERO));
                table.plain(
                    "estimator",
                    match hpd.ewma {
                        class::Ewma::Plain => None,
                        class::Ewma::Restart => Some(format!(
                            "{{ type = \"ewma-r\", threshold = {}, cycle = \"{}\" }}",
                            hpd.restart, hpd.cycle
                        )),
                        class::Ewma::ProportionalError => Some(format!(
                            "{{ type = \"ewma-pe\", steps = {}, width = \"12.5%\" }}",
                            hpd.properr
                        )),
                    },
                );
                if self.child(class.id).is_none() {
                    table.quoted("queue", hpd.queue.map(narrows_core::queue::Bound::Packets));
                }
            }
        }
    }
}

impl Keys {
    /// All sentences about them, where something else says the rate of the link or nothing does.
    pub fn remarks(&self, says_rate: bool) -> impl Iterator<Item = &str> {
        let rest = self.without_rate.as_deref().filter(|_| !says_rate);
        self.notes.iter().map(String::as_str).chain(rest)
    }

    /// Sets a key, which may be there already.
    fn put(&mut self, key: &'static str, value: String) {
        match self.keys.iter_mut().find(|(known, _)| *known == key) {
            // What netem's rate counts is what it says.
            Some(_) if key == "overhead" => {}
            Some((_, old)) => *old = value,
            None => self.keys.push((key, value)),
        }
    }

    fn nothing_waits(&mut self, name: &str) {
        if !self.keys.iter().any(|(key, _)| *key == "rate") {
            self.without_rate = Some(format!(
                "The device's own speed is not said, and without a rate nothing waits: give the link one (--rate, or `rate = …`) for `{name}` to have something to do."
            ));
        }
    }
}

fn double_queue(kind: &qdisc::Kind, outer: Handle, inner: Handle) -> String {
    format!(
        "`{}` and netem, {outer} and {inner}, become one link of two queues: packets wait for the rate in a queue of their own, and what is in flight behind it does not count there (--exact-netem keeps the one queue).",
        kind_name(kind)
    )
}

pub(super) fn kind_name(kind: &qdisc::Kind) -> &'static str {
    match kind {
        qdisc::Kind::Tbf(_) => "tbf",
        qdisc::Kind::Htb(_) => "htb",
        qdisc::Kind::Cbq(_) => "cbq",
        qdisc::Kind::Prio(_) => "prio",
        qdisc::Kind::Hpd(_) => "hpd",
        qdisc::Kind::Fifo(fifo) => fifo.name,
        qdisc::Kind::Whole(whole) => whole.name,
        qdisc::Kind::Netem(netem) => match netem.kind {
            netem::Kind::Netem(_) => "netem",
            netem::Kind::Delay(_) => "delay",
        },
        qdisc::Kind::Ingress => "ingress",
    }
}

fn queue_of(fifo: &qdisc::Fifo) -> Option<String> {
    match (fifo.head, fifo.limit) {
        (false, limit) => limit.map(|limit| format!("\"{limit}\"")),
        (true, limit) => Some(format!("{{ bound = \"{}\", drop = \"head\" }}", limit.unwrap_or(USUAL_LIMIT))),
    }
}

fn police_text(police: Police) -> String {
    let mut table = Inline::default();
    table.quoted("rate", Some(police.rate));
    table.quoted("burst", Some(police.burst));
    table.quoted("peakrate", police.peakrate);
    table.quoted("mtu", police.mtu);
    table.quoted("mpu", police.mpu);
    // What has arrived has left its link header behind when the kernel counts it.
    table.quoted("overhead", Some("ip"));
    table.quoted("exceed", police.passes.then_some("pass"));
    table.finish()
}

/// What each class matches, where that says the same as the rules: the classes stand in the order of their rules, and the
/// default last.
fn by_classes(rules: &Rules, names: &[&str], default: Option<&str>) -> Option<Vec<(String, String)>> {
    let mut grouped: Vec<(String, Vec<&Match>)> = Vec::new();
    for rule in &rules.rules {
        let name = rule.class.to_string();
        let matches = rule.matches.as_ref()?;
        match grouped.iter().position(|(other, _)| *other == name) {
            Some(at) if at + 1 == grouped.len() => grouped[at].1.push(matches),
            Some(_) => return None,
            None => grouped.push((name, vec![matches])),
        }
    }
    let order: Vec<&str> = grouped.iter().map(|(name, _)| name.as_str()).chain(default).collect();
    if order != names {
        return None;
    }
    let text = |all: Vec<&Match>| match &all[..] {
        [one] => one.text(),
        _ => format!("[{}]", all.iter().map(|one| one.text()).collect::<Vec<_>>().join(", ")),
    };
    Some(grouped.into_iter().map(|(name, all)| (name, text(all))).collect())
}

fn filters_text(rules: &Rules) -> Vec<String> {
    rules
        .rules
        .iter()
        .filter_map(|rule| {
            let matches = rule.matches.as_ref()?;
            Some(format!("{{ match = {}, class = \"{}\" }}", matches.text(), rule.class))
        })
        .collect()
}
