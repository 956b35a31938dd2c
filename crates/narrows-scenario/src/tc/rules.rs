//! Flattens filters, including those of inner classes, into one list of rules for the leaf classes.

use super::bands::Bands;
use super::both::both;
use super::tree::{Placed, Tree};
use super::{Handle, qdisc};
use crate::value::Match;

/// Sends packets to a class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    /// The condition; `None` for all packets.
    pub(super) matches: Option<Match>,
    pub(super) class: Handle,
}

/// The rules of a qdisc in order, and the class of packets that match none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    pub(super) default: Option<Handle>,
}

/// Maximum nesting depth of filters of inner classes.
const DEEPEST: usize = 16;

impl Rules {
    pub(super) fn of(tree: &Tree, root: &super::tree::Qdisc) -> Self {
        let mut rules = Self::default();
        if let qdisc::Kind::Hpd(hpd) = &root.kind {
            for (point, number) in &hpd.dscps {
                let class = tree.numbered(root.handle, *number);
                rules.rules.extend(class.map(|class| Rule {
                    matches: Some(Match { dscps: vec![*point], ..Match::default() }),
                    class: class.id,
                }));
            }
        }
        collect(tree, root.handle, None, 0, &mut rules.rules);
        rules.default = match &root.kind {
            qdisc::Kind::Htb(qdisc::Htb { default, .. }) | qdisc::Kind::Hfsc(default) if *default > 0 => {
                Some(Handle { minor: *default, ..root.handle }).filter(|class| {
                    tree.classes.iter().any(|known| known.id == *class) && tree.below(*class).next().is_none()
                })
            }
            qdisc::Kind::Hpd(_) => tree
                .classes
                .iter()
                .find(|known| known.id.qdisc() == root.handle && known.kind.is_default)
                .map(|known| known.id),
            kind => kind.bands().map(|bands| rules.by_priority(root.handle, &bands)),
        };
        let name =
            |id: Handle| tree.classes.iter().find(|class| class.id == id).map_or(id, |class| class.name());
        rules.rules.iter_mut().for_each(|rule| rule.class = name(rule.class));
        rules.default = rules.default.map(name);
        // A rule that matches all packets is the default; later rules never apply.
        if let Some(all) = rules.rules.iter().position(|rule| rule.matches.is_none()) {
            rules.default = Some(rules.rules[all].class);
            rules.rules.truncate(all);
        }
        rules.joined()
    }

    /// Adds rules for the priority map and the TOS byte; returns the class of all other packets.
    fn by_priority(&mut self, handle: Handle, bands: &Bands) -> Handle {
        let band = |priority: usize| Handle { minor: u16::from(bands.map[priority]) + 1, ..handle };
        let rest = band(0);
        for (bits, priority) in Bands::OF_POINTS {
            let class = band(priority);
            if class != rest {
                let dscps = Bands::points(bits).collect();
                self.rules.push(Rule { matches: Some(Match { dscps, ..Match::default() }), class });
            }
        }
        rest
    }

    /// Merges consecutive code points of one class into one rule.
    fn joined(mut self) -> Self {
        let only_dscps = |rule: &Rule| {
            rule.matches.as_ref().is_some_and(|one| {
                !one.dscps.is_empty() && Match { dscps: Vec::new(), ..one.clone() } == Match::default()
            })
        };
        let mut joined: Vec<Rule> = Vec::new();
        for rule in self.rules {
            match joined.last_mut() {
                Some(last) if last.class == rule.class && only_dscps(last) && only_dscps(&rule) => {
                    if let (Some(all), Some(more)) = (&mut last.matches, rule.matches) {
                        all.dscps.extend(more.dscps);
                        all.dscps.sort_unstable();
                        all.dscps.dedup();
                    }
                }
                _ => joined.push(rule),
            }
        }
        self.rules = joined;
        self
    }
}

/// Collects the filters at a qdisc or class, combined with the conditions that lead there.
fn collect(tree: &Tree, at: Handle, before: Option<&Match>, depth: usize, rules: &mut Vec<Rule>) {
    if depth > DEEPEST {
        return;
    }
    let mut here: Vec<&Placed> = tree.filters.iter().filter(|placed| placed.parent == at).collect();
    here.sort_by_key(|placed| placed.filter.prio);
    for placed in here {
        let Some(class) = placed.filter.class else { continue };
        let matches = match (before, &placed.filter.matches) {
            (None, own) => own.clone(),
            (Some(before), None) => Some(before.clone()),
            (Some(before), Some(own)) => match both(before, own) {
                Some(both) => Some(both),
                None => continue,
            },
        };
        if tree.below(class).next().is_some() && class != at {
            collect(tree, class, matches.as_ref(), depth + 1, rules);
        } else {
            rules.push(Rule { matches, class });
        }
    }
}
