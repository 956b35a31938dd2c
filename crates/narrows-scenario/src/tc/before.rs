//! What packets meet before the disciplines of a device: policers, redirections, and marks.

use super::bands::Bands;
use super::both::both;
use super::filter::Which;
use super::filters::Placed;
use super::qdisc::Kind;
use super::translate::add;
use super::tree::{Qdisc, Tree};
use super::verdict::To;
use super::verdict::Verdict;
use crate::keys::kind::text;
use crate::node::{Table, Value};
use crate::problem::{Found, Problem};

impl Tree {
    /// The policer of a filter at the root: packets meet it before the queue.
    pub(super) fn leaving_policer(&self) -> Result<Option<Table>, Problem> {
        let mut all = self.filters.iter().filter_map(|placed| Some((placed, placed.filter.police.as_ref()?)));
        let Some((placed, police)) = all.next() else { return Ok(None) };
        let wrong = |title: &str, at: &Placed| Err(Problem::new(title).put_at(&at.span));
        if let Some((second, _)) = all.next() {
            return wrong("a second policer of outgoing packets: a link has one in a direction", second);
        }
        if police.get("exceed").is_some_and(|node| node.value == text("next")) {
            return wrong("a policer that leaves packets above its rate to the next filters", placed);
        }
        if self.root().is_none_or(|root| root.handle != placed.parent) {
            return wrong("a policer within a class: limit the class with tbf or htb", placed);
        }
        let Which::Match(which) = &placed.filter.which else {
            return wrong(
                "a policer by tables of u32, by several conditions or by marks: match the packets themselves",
                placed,
            );
        };
        let beside = self.filters.iter().filter(|other| {
            other.parent == placed.parent
                && other.filter.police.is_none()
                && other.filter.verdict != Verdict::Next
        });
        for other in beside.filter(|other| other.filter.prio <= placed.filter.prio) {
            let apart = match (&other.filter.which, which) {
                (Which::Match(Some(one)), Some(own)) => both(one, own).is_none(),
                _ => false,
            };
            if !apart {
                return wrong(
                    "a policer behind a filter that may take its packets: give it a lower `prio`",
                    placed,
                );
            }
        }
        let mut policer = Table::default();
        if let Some(which) = which {
            policer.put("match", which.value());
        }
        let mut bucket = police.clone();
        bucket.remove("overhead");
        add(&bucket, &mut policer);
        // Packets that leave have their link header.
        let overhead = match police.get("overhead").map(|node| &node.value) {
            Some(Value::Table(parts)) => {
                let mut parts = parts.clone();
                parts.remove("base");
                parts.put("base", text("frame"));
                Value::Table(parts)
            }
            _ => text("frame"),
        };
        policer.put("overhead", overhead);
        Ok(Some(policer))
    }

    /// Filters of marks that no packet has.
    pub(super) fn marks_of_nobody(&self) -> impl Iterator<Item = String> {
        let fwmark = self.qdiscs.iter().filter(|qdisc| {
            let looks = matches!(&qdisc.kind, Kind::Managed(managed) if managed.marks() > 0);
            looks && self.marks_of_tins(qdisc).is_empty()
        });
        let fwmark = fwmark.map(|_| {
            "No line of the script gives packets a mark that `fwmark` of `cake` takes for a tin: the code points choose. (Lines of iptables in the script count: -t mangle -A POSTROUTING … -j MARK --set-mark 1.)".to_owned()
        });
        let by_filters = || self.leaving.iter().filter_map(|placed| placed.filter.marks);
        let filters = self.filters.iter().chain(self.leaving.iter()).filter_map(move |placed| {
            let Which::Mark(mark) = &placed.filter.which else { return None };
            let value = mark.value;
            let mut given = self.marks.iter().map(|marked| marked.value).chain(by_filters());
            // Without a line, packets have the mark 0.
            let is_given = mark.is(0) || given.any(|given| mark.is(given));
            (!is_given).then(|| {
                format!(
                    "No line of the script gives the mark {value} to packets that leave here: a filter `fw` matches none. (Lines of iptables in the script count: -t mangle -A POSTROUTING … -j MARK --set-mark {value}.)"
                )
            })
        });
        filters.chain(fwmark)
    }

    /// A priority that a filter sets matters to disciplines inside.
    pub(super) fn check_priorities(&self) -> Result<(), Problem> {
        let mut all = self.filters.iter().chain(self.arriving.iter());
        let inside = self.qdiscs.iter().any(|qdisc| {
            qdisc.parent.is_some() && (qdisc.kind.has_classes() || qdisc.kind.bands().is_some())
        });
        let is_arriving = |placed: &Placed| placed.parent.major == 0xffff;
        let is_late = |placed: &&Placed| {
            let matters = is_arriving(placed) || inside && !self.is_cake(placed.parent);
            placed.filter.prioritizes.is_some() && matters
        };
        match all.find(is_late) {
            Some(placed) => {
                Err(Problem::new("`skbedit priority` before disciplines that look at the priority")
                    .put_at(&placed.span)
                    .help(
                        "packets have no priorities here: name their class by a filter, as in `flowid 1:10`",
                    ))
            }
            None => Ok(()),
        }
    }

    /// Refuses disciplines by the priorities of packets, which the kernel takes from their code points before the firewall
    /// writes others; here they are those that packets have when they leave.
    pub(super) fn check_code_points(&self) -> Result<(), Problem> {
        let writes_points = |filter: &Table| matches!(filter.get("set").map(|node| &node.value), Some(Value::Table(set)) if set.get("dscp").is_some());
        if !self.written_leaving.iter().any(writes_points) {
            return Ok(());
        }
        let is_by_priority = |qdisc: &&Qdisc| match qdisc.kind.bands() {
            Some(bands) => Bands::OF_POINTS.iter().any(|(_, priority)| bands.map[*priority] != bands.map[0]),
            None => matches!(qdisc.kind.name(), "pfifo_fast" | "mqprio"),
        };
        match self.qdiscs.iter().find(is_by_priority) {
            Some(qdisc) => Err(Problem::new(format!(
                "{} by the priorities of packets, which Linux takes from the code points that they have before iptables writes others",
                Found(qdisc.kind.name())
            ))
            .at(&qdisc.span)
            .help("map all priorities to one band (priomap 0 0 0 …), and sort packets by filters")),
            None => Ok(()),
        }
    }

    /// A mark that a filter of a discipline gives matters to filters inside.
    pub(super) fn check_marks(&self) -> Result<(), Problem> {
        let looks = |placed: &Placed| matches!(placed.filter.which, Which::Mark(_) | Which::AnyMark);
        match self.filters.iter().find(|placed| placed.filter.marks.is_some()) {
            Some(placed) if self.filters.iter().any(looks) => {
                Err(Problem::new("`skbedit mark` at a discipline with filters of marks")
                    .put_at(&placed.span)
                    .help("give marks where packets come in, or at the egress of clsact"))
            }
            _ => Ok(()),
        }
    }

    /// Filters whose class is missing, and what happens to their packets.
    pub(super) fn missing_classes(&self) -> impl Iterator<Item = String> {
        self.filters.iter().filter_map(|placed| {
            let class = placed.filter.class.filter(|_| placed.filter.verdict == Verdict::Class)?;
            let goes = match self.target(placed.parent.qdisc(), class) {
                To::Flow(_) | To::Tin(_) | To::Direct => return None,
                To::Class(other) if other == class => return None,
                To::Class(other) => format!("go to {other}"),
                To::Drop => "are dropped".into(),
                To::Rest => "go where those go that no filter matches".into(),
            };
            Some(format!(
                "A filter names the class {class}, which is not there: its packets {goes}, as in the kernel."
            ))
        })
    }
}
