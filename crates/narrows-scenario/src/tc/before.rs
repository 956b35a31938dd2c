//! What packets meet before the disciplines of a device: policers, redirections, and marks.

use super::action::Verdict;
use super::both::both;
use super::filter::Which;
use super::filters::Placed;
use super::translate::{Draft, Keys, add};
use super::tree::Tree;
use crate::keys::kind::text;
use crate::node::{Table, Value};
use crate::problem::Problem;
use crate::value::Match;

impl Tree {
    /// The policer of a filter at the root: packets meet it before the queue.
    pub(super) fn leaving_policer(&self) -> Result<Option<Table>, Problem> {
        let mut all = self.filters.iter().filter_map(|placed| Some((placed, placed.filter.police.as_ref()?)));
        let Some((placed, police)) = all.next() else { return Ok(None) };
        let wrong = |title: &str, at: &Placed| Err(Problem::new(title).put_at(&at.span));
        if let Some((second, _)) = all.next() {
            return wrong("a second policer of outgoing packets: a link has one in a direction", second);
        }
        if self.root().is_none_or(|root| root.handle != placed.parent) {
            return wrong("a policer within a class: limit the class with tbf or htb", placed);
        }
        let Which::Match(which) = &placed.filter.which else {
            return wrong("a policer by tables of u32 or by marks: match the packets themselves", placed);
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
        self.filters.iter().filter_map(|placed| {
            let Which::Mark { mask, value } = placed.filter.which else { return None };
            let is_given = self.marks.iter().any(|marked| marked.value & mask == value);
            (!is_given).then(|| {
                format!(
                    "No line of the script gives the mark {value} to packets that leave here: a filter `fw` matches none. (Lines of iptables in the script count: -t mangle -A POSTROUTING … -j MARK --set-mark {value}.)"
                )
            })
        })
    }

    /// The keys for packets that arrive there. `other` finds the tree of a device that they may be
    /// redirected to.
    pub(super) fn arriving<'a>(
        &self,
        exact: bool,
        other: impl Fn(&str) -> Option<&'a Self>,
    ) -> Result<Keys, Problem> {
        let mut draft = Draft::default();
        let mut all: Vec<_> = self.arriving.iter().collect();
        all.sort_by_key(|placed| placed.filter.prio);
        let Some(first) = all.first() else { return Ok(Keys::default()) };
        let Which::Match(which) = &first.filter.which else {
            return Err(Problem::new("arriving packets by tables of u32 or by marks")
                .put_at(&first.span)
                .help("match the packets themselves: arriving packets have no marks yet"));
        };
        if first.filter.verdict != Verdict::Class {
            return Err(Problem::new("a filter of arriving packets that neither polices nor redirects")
                .put_at(&first.span)
                .help("drop packets by a filter with `action drop` at a class of the sender"));
        }
        if first.filter.redirect.is_some() && first.filter.police.is_some() {
            return Err(Problem::new("arriving packets are both policed and redirected")
                .put_at(&first.span)
                .help("police them, or limit them by the disciplines of the device they are redirected to"));
        }
        let one_family = which
            .as_ref()
            .is_some_and(|which| Match { families: which.families.clone(), ..Match::default() } == **which);
        if first.filter.redirect.is_some() && which.is_some() && !one_family {
            return Err(Problem::new("a redirection of some arriving packets").put_at(&first.span).help(
                "here it applies to all packets of a direction: match all, as in: u32 match u32 0 0 …",
            ));
        }
        let redirects = |placed: &&&Placed| placed.filter.redirect == first.filter.redirect;
        let others = all.len() - all.iter().filter(redirects).count();
        if first.filter.redirect.is_some() && one_family && all.len() == 1 {
            draft.notes.push(
                "The kernel redirects packets of the filter's `protocol` alone; here the disciplines are for all packets of this direction (`protocol all` means them all)."
                    .into(),
            );
        }
        if which.is_some() && (others > 0 || first.filter.police.is_some() && all.len() > 1) {
            return Err(Problem::new("a second filter of arriving packets")
                .put_at(&all[1].span)
                .help("a link has one policer in a direction"));
        }
        if which.is_none() && all.len() > 1 {
            draft.notes.push("The first filter takes every packet; later filters see none.".into());
        }
        if let Some(device) = &first.filter.redirect {
            let Some(tree) = other(device) else {
                draft.notes.push(format!("{device} has no discipline: packets pass through it."));
                return Ok(draft.finish());
            };
            let mut keys = tree.egress(exact)?;
            draft.notes.push(format!(
                "Packets that arrive pass {device} first: its disciplines are those of that direction of the link, so packets wait before their propagation delay, not after it."
            ));
            keys.notes.splice(0..0, draft.notes);
            return Ok(keys);
        }
        let Some(police) = &first.filter.police else {
            return Err(
                Problem::new("a filter at `ingress` without a policer or a redirection").put_at(&first.span)
            );
        };
        let mut policer = Table::default();
        if let Some(which) = which {
            policer.put("match", which.value());
        }
        add(police, &mut policer);
        draft.keys.push(("policer", Value::Table(policer)));
        draft.notes.push(
            "It polices packets that arrive at the device, before the queue and delay of that direction."
                .into(),
        );
        Ok(draft.finish())
    }
}
