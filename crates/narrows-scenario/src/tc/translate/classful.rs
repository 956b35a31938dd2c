//! Disciplines with classes: their classes, the rules that lead to them, and where the rest goes.

use narrows_core::Bytes;

use super::matching::{by_classes, filters};
use super::{DIRECT, NO_CLASS, UNCLASSIFIED, add, direct, list, named};
use crate::dialect::{number, text_of};
use crate::keys::kind::text;
use crate::node::{Table, Value};
use crate::problem::Problem;
use crate::tc::bands::Bands;
use crate::tc::rules::{Rule, Rules};
use crate::tc::tree::{Class, Qdisc, Tree};
use crate::tc::unit::{FRAME, rate_of};
use crate::tc::verdict::To;
use crate::tc::{Handle, bucket, class, hfsc, qdisc};
use crate::value::DROP;

/// The classes of a discipline.
#[derive(Default)]
struct Classes {
    tables: Vec<Table>,
    /// The names of those that packets can be in.
    names: Vec<String>,
}

impl Classes {
    fn push(&mut self, name: impl Into<String>, table: Table) {
        self.tables.push(table);
        self.names.push(name.into());
    }
}

/// Where packets go that no rule leads to a class.
enum Rest {
    Class(String),
    Dropped,
}

impl Tree {
    /// The scheduler of a discipline with classes.
    pub(super) fn classful(&self, qdisc: &Qdisc, notes: &mut Vec<String>) -> Result<Value, Problem> {
        self.check_numbers(qdisc)?;
        let mut rules = Rules::of(self, qdisc)?;
        if let qdisc::Kind::Taprio(taprio) = &qdisc.kind {
            self.check_launched(taprio, qdisc)?;
            rules.limit(&taprio.longest);
        }
        let mut table = Table::default();
        table.put("type", text(qdisc.kind.name()));
        let mut classes = match qdisc.kind.bands() {
            Some(bands) => self.bands(qdisc, bands, &mut table, notes)?,
            None => self.classes_of(qdisc, &mut table, notes)?,
        };
        let rest = self.rest(qdisc, &rules, &mut classes, notes);
        let default = match &rest {
            Rest::Class(name) => Some(name.as_str()),
            Rest::Dropped => None,
        };
        let is_direct = |rule: &Rule| rule.to == To::Direct;
        if rules.rules.iter().any(is_direct) && !classes.names.iter().any(|name| name == DIRECT) {
            notes.push(format!(
                "Packets of filters that name {} are not shaped, as in the kernel; here they use the class `{DIRECT}` of 100 Gbit/s.",
                qdisc.handle
            ));
            classes.push(DIRECT, direct());
        }
        // Trailing rules that lead to the default class are redundant.
        if let Some(default) = default {
            let is_default = |rule: &Rule| match rule.to {
                To::Class(class) => self.called(class) == default,
                To::Direct => default == DIRECT,
                To::Rest => true,
                To::Drop | To::Flow(_) | To::Tin(_) => false,
            };
            while rules.rules.last().is_some_and(is_default) {
                rules.rules.pop();
            }
        }
        // Packets of the rest are dropped where there is no default class.
        let called = |to: To| match to {
            To::Class(class) => self.called(class),
            To::Direct => DIRECT.to_owned(),
            To::Rest => default.unwrap_or(DROP).to_owned(),
            // The last two are CAKE's, which has no classes.
            To::Drop | To::Flow(_) | To::Tin(_) => DROP.into(),
        };
        let matches = by_classes(&rules, &called, &classes.names, default);
        for (name, value) in matches.iter().flatten() {
            let of = |class: &&mut Table| text_of(class, "name") == *name;
            if let Some(class) = classes.tables.iter_mut().find(of) {
                class.put("match", value.clone());
            }
        }
        table.put("classes", list(classes.tables));
        if matches.is_none() {
            table.put("filters", list(filters(&rules, &called)));
        }
        match (&matches, &rest) {
            (None, Rest::Class(default)) => table.put("default", text(default)),
            (_, Rest::Dropped) => table.put("default", text("drop")),
            _ => {}
        }
        Ok(Value::Table(table))
    }

    /// Checks that the numbers of classes are there which HPD gives code points to.
    fn check_numbers(&self, qdisc: &Qdisc) -> Result<(), Problem> {
        let qdisc::Kind::Hpd(hpd) = &qdisc.kind else { return Ok(()) };
        let lost = hpd.dscps.iter().find(|(_, num)| self.numbered(qdisc.handle, *num).is_none());
        let Some((point, num)) = lost else { return Ok(()) };
        let known: Vec<String> =
            self.in_order(qdisc).iter().map(|class| class.name().minor.to_string()).collect();
        Err(Problem::new(format!("`dscp {point} class {num}`: no class has the number {num}")).help(
            match known.is_empty() {
                true => "there is no class at all".into(),
                false => format!("there is {}: `num` of a class says its number", known.join(", ")),
            },
        ))
    }

    /// The classes of a discipline that has bands, and the keys of the discipline.
    fn bands(
        &self,
        qdisc: &Qdisc,
        bands: Bands,
        table: &mut Table,
        notes: &mut Vec<String>,
    ) -> Result<Classes, Problem> {
        let mut classes = Classes::default();
        let ets = match &qdisc.kind {
            qdisc::Kind::Ets(ets) => Some(ets),
            _ => None,
        };
        ets.iter().for_each(|ets| table.put("strict", number(ets.strict)));
        let mut order: Vec<u16> = (1..=u16::from(bands.bands)).collect();
        if let qdisc::Kind::Taprio(taprio) = &qdisc.kind {
            // The last traffic class goes first.
            order.reverse();
            self.put_schedule(taprio, qdisc.handle, table);
        }
        for band in order {
            let id = Handle { minor: band, ..qdisc.handle };
            let mut class = named(self.called(id));
            if let Some(quantum) = ets.and_then(|ets| ets.quantum(band)) {
                class.put("quantum", text(Bytes::new(quantum.into())));
            }
            if let Some(child) = self.child(id) {
                self.body(child, &mut class, notes)?;
            }
            classes.push(self.called(id), class);
        }
        Ok(classes)
    }

    /// The classes of a discipline that commands have made, and the keys of the discipline.
    fn classes_of(
        &self,
        qdisc: &Qdisc,
        table: &mut Table,
        notes: &mut Vec<String>,
    ) -> Result<Classes, Problem> {
        let mut classes = Classes::default();
        let kind = &qdisc.kind;
        if let qdisc::Kind::Cbq(cbq) = kind {
            add(cbq, table);
        }
        let by_class = self.counts_by_class(qdisc);
        for one in self.in_order(qdisc) {
            let mut class = named(self.called(one.name()));
            if one.parent.minor > 0 {
                class.put("parent", text(self.called(one.parent)));
            }
            self.options(one, qdisc, &mut class);
            let counted = bucket::overhead(&one.kind.keys, "frame");
            if by_class && counted != text("frame") {
                class.put("overhead", counted);
            }
            if let Some(child) = self.child(one.id) {
                self.body(child, &mut class, notes)?;
            }
            classes.tables.push(class);
            if self.below(one.id).next().is_none() {
                classes.names.push(self.called(one.name()));
            }
        }
        if !classes.tables.is_empty() {
            return Ok(classes);
        }
        match kind {
            qdisc::Kind::Hpd(_) => Err(Problem::new(format!("`{}` without a class", kind.name()))
                .help("give it some, as in: tc class add dev X parent 1: classid 1:10 …")),
            qdisc::Kind::Hfsc(_) | qdisc::Kind::Drr | qdisc::Kind::Qfq => {
                notes
                    .push(format!("`{}` has no class: it drops all packets, as in the kernel.", kind.name()));
                let mut class = named(NO_CLASS);
                if matches!(kind, qdisc::Kind::Hfsc(_)) {
                    class.put("ls", text("1mbit"));
                }
                classes.push(NO_CLASS, class);
                Ok(classes)
            }
            _ => Ok(classes),
        }
    }

    /// Where packets go that no rule leads to a class; adds the class for them, if the discipline has none.
    fn rest(&self, qdisc: &Qdisc, rules: &Rules, classes: &mut Classes, notes: &mut Vec<String>) -> Rest {
        if let Some(class) = rules.default {
            return Rest::Class(self.called(class));
        }
        if rules.drops {
            return Rest::Dropped;
        }
        let (name, class) = match &qdisc.kind {
            qdisc::Kind::Htb(htb) => {
                let why = match htb.default {
                    0 => "Without a catch-all filter or `default`,".to_owned(),
                    class => match self.in_order(qdisc).iter().any(|one| one.id.minor == class) {
                        true => format!("The default class {class:x} has classes below it:"),
                        false => format!("The default class {class:x} is not there:"),
                    },
                };
                notes.push(format!(
                    "{why} unclassified packets are not shaped, as in the kernel; here they use the class `{DIRECT}` of 100 Gbit/s."
                ));
                (DIRECT, direct())
            }
            qdisc::Kind::Cbq(cbq) => {
                let mut class = named(UNCLASSIFIED);
                cbq.get("bandwidth").into_iter().for_each(|rate| class.put("rate", rate.value.clone()));
                class.put("priority", number(8));
                notes.push(format!(
                    "Unclassified packets go at the lowest priority through the class `{UNCLASSIFIED}`, as through cbq's root."
                ));
                (UNCLASSIFIED, class)
            }
            _ => {
                notes.push("There is no default class: unclassified packets are dropped.".into());
                return Rest::Dropped;
            }
        };
        classes.push(name, class);
        Rest::Class(name.into())
    }

    /// The classes of a qdisc, each after its parent; those of HPD by number.
    pub(in crate::tc) fn in_order(&self, qdisc: &Qdisc) -> Vec<&Class> {
        let mut all: Vec<&Class> =
            self.classes.iter().filter(|class| class.id.qdisc() == qdisc.handle).collect();
        if let qdisc::Kind::Hpd(_) = qdisc.kind {
            all.sort_by_key(|class| class.name().minor);
        }
        all
    }

    /// Whether a class of an HFSC tree has an upper limit, or a guarantee and no share: only then does it delay packets
    /// on a link without a rate.
    pub(super) fn is_limited(&self, qdisc: &Qdisc) -> bool {
        let has = |class: &Class, key: &str| class.kind.keys.get(key).is_some();
        self.in_order(qdisc).into_iter().any(|class| has(class, "ul") || !has(class, "ls"))
    }

    fn options(&self, class: &Class, qdisc: &Qdisc, table: &mut Table) {
        let keys = &class.kind.keys;
        let rate = rate_of(keys, "rate");
        match (class.kind.of, &qdisc.kind) {
            (class::Of::Cbq, qdisc::Kind::Cbq(cbq)) if rate.is_none() => {
                cbq.get("bandwidth").into_iter().for_each(|rate| table.put("rate", rate.value.clone()));
            }
            (class::Of::Drr, _) if keys.get("quantum").is_none() => table.put("quantum", text(FRAME)),
            _ => {}
        }
        match class.kind.of {
            class::Of::Hfsc => add(&hfsc::as_written(keys), table),
            _ => add(&bucket::without_overhead(keys), table),
        }
        match (rate, &qdisc.kind) {
            (Some(rate), qdisc::Kind::Htb(qdisc::Htb { rate_to_quantum, .. }))
                if *rate_to_quantum != 10 && keys.get("quantum").is_none() =>
            {
                let quantum = rate.bits_per_second() / 8 / rate_to_quantum;
                table.put("quantum", text(Bytes::new(quantum.clamp(1000, 200_000))));
            }
            // Only a leaf has turns.
            (_, qdisc::Kind::Htb(_)) if self.below(class.id).next().is_some() => table.remove("quantum"),
            (_, qdisc::Kind::Hpd(_)) if self.child(class.id).is_some() => table.remove("queue"),
            _ => {}
        }
    }
}
