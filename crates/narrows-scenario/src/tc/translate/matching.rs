//! Rules as the conditions of classes, or as a list of filters.

use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::tc::rules::{Rule, Rules};
use crate::tc::verdict::To;
use crate::value::Match;

/// The condition of each class, if conditions can replace the rules: the classes are in the order of their
/// rules, and the default is last.
pub(in crate::tc) fn by_classes(
    rules: &Rules,
    called: &impl Fn(To) -> String,
    names: &[String],
    default: Option<&str>,
) -> Option<Vec<(String, Value)>> {
    let mut grouped: Vec<(String, Vec<&Match>)> = Vec::new();
    for rule in &rules.rules {
        let name = called(rule.to);
        let matches = rule.matches.as_ref()?;
        match grouped.iter().position(|(other, _)| *other == name) {
            Some(at) if at + 1 == grouped.len() => grouped[at].1.push(matches),
            Some(_) => return None,
            None => grouped.push((name, vec![matches])),
        }
    }
    if !grouped.iter().map(|(name, _)| name.as_str()).chain(default).eq(names) || shadows(&rules.rules) {
        return None;
    }
    let value = |all: Vec<&Match>| match &all[..] {
        [one] => one.value(),
        _ => Value::Array(all.iter().map(|one| Node::new(one.value())).collect()),
    };
    Some(grouped.into_iter().map(|(name, all)| (name, value(all))).collect())
}

/// Whether a rule takes all packets of a later one. Looks at the first rules of long lists only.
fn shadows(rules: &[Rule]) -> bool {
    const MOST: usize = 200;
    let all: Vec<_> =
        rules.iter().take(MOST).filter_map(|rule| Some(rule.matches.as_ref()?.symbolic(&[]))).collect();
    all.iter().enumerate().any(|(at, one)| all[..at].iter().any(|earlier| earlier.covers(one)))
}

pub(in crate::tc) fn filters(rules: &Rules, called: &impl Fn(To) -> String) -> impl Iterator<Item = Table> {
    rules.rules.iter().filter_map(|rule| {
        let mut table = Table::default();
        table.put("match", rule.matches.as_ref()?.value());
        table.put("class", text(called(rule.to)));
        Some(table)
    })
}
