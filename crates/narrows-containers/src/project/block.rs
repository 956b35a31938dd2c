//! The block `x-narrows` of a compose file.

use narrows_scenario::{Fault, nearest, span_of_time};

use super::ends::{End, Pair};
use super::{BLOCK, PairLink, Project, Step, Whose};
use crate::labels::OTHERS;
use crate::link_block::{flat, inside, link, map, wish};
use crate::link_keys::{LinkKeys, unknown};
use crate::yaml::{Key, Node, fault};

const KEYS: [&str; 5] = ["seed", "defaults", "services", "links", "timeline"];

pub(super) fn read(project: &mut Project, block: &Node, faults: &mut Vec<Fault>) {
    let Some(all) = map(block, BLOCK, faults) else { return };
    let mut timeline = None;
    for (key, node) in all {
        let path = format!("{BLOCK}.{}", key.name);
        match key.name.as_str() {
            "seed" => match node.text().and_then(|text| text.parse().ok()) {
                Some(seed) => project.seed = Some(seed),
                None => faults.push(inside(
                    fault(format!("{} is not a seed", node.kind()), &node.span, &["write a whole number"]),
                    &path,
                )),
            },
            "defaults" => {
                if let Some(keys) = link(&project.files, node, &path, faults) {
                    project.defaults = keys;
                }
            }
            "services" => services(project, node, &path, faults),
            "links" => links(project, node, &path, faults),
            "timeline" => timeline = Some((node, path)),
            name => faults.push(inside(unknown(name, &KEYS, key.span.clone()), BLOCK)),
        }
    }
    // It names links.
    if let Some((node, path)) = timeline {
        steps(project, node, &path, faults);
    }
}

/// `services:` of the block.
fn services(project: &mut Project, node: &Node, path: &str, faults: &mut Vec<Fault>) {
    for (key, node) in map(node, path, faults).unwrap_or_default() {
        if let Some(error) = not_a_service(project, &key.name, key) {
            faults.push(inside(error, path));
            continue;
        }
        let path = format!("{path}.{}", key.name);
        let Some(wish) = wish(&project.files, node, &path, &OTHERS, faults) else { continue };
        project.wishes.insert(key.name.clone(), wish);
    }
}

fn not_a_service(project: &Project, name: &str, key: &Key) -> Option<Fault> {
    if project.services.contains(name) {
        return None;
    }
    let known = || project.services.iter().map(String::as_str);
    let near = nearest(name, known()).map(|near| format!("did you mean `{near}`?"));
    let all = format!("services of this file: {}", known().collect::<Vec<_>>().join(", "));
    let help: Vec<_> = near.into_iter().chain([all]).collect();
    let help: Vec<&str> = help.iter().map(String::as_str).collect();
    Some(fault(format!("no service `{name}`"), &key.span, &help))
}

/// `web -> db`, or `web <-> db` for both directions.
fn pairs(project: &Project, key: &Key) -> Result<Vec<Pair>, Fault> {
    let (from, to, both) = match (key.name.split_once("<->"), key.name.split_once("->")) {
        (Some((from, to)), _) => (from, to, true),
        (None, Some((from, to))) => (from, to, false),
        (None, None) => {
            return Err(fault(
                format!("`{}` is not a pair of ends", key.name),
                &key.span,
                &["write \"web -> db\", \"web <-> db\", \"* -> db\" or \"web -> 10.0.0.0/8\""],
            ));
        }
    };
    let ends = [from, to].map(|end| End::parse(end.trim()));
    for end in &ends {
        match end {
            End::Service(name) => {
                if let Some(fault) = not_a_service(project, name, key) {
                    return Err(fault);
                }
                // Rules have a table of addresses for each.
                if name.len() > 63 || name == "all" {
                    return Err(fault(
                        format!("the service `{name}` cannot be an end"),
                        &key.span,
                        &["an end has a name of at most 63 characters other than `all`"],
                    ));
                }
            }
            End::Any | End::Network(_) => {}
        }
    }
    let [from, to] = ends;
    if let (End::Network(_), End::Network(_)) = (&from, &to) {
        return Err(fault(
            "neither end is a service",
            &key.span,
            &["a link is at the container that sends, or at the one that receives from outside"],
        ));
    }
    let back = both.then(|| Pair { from: to.clone(), to: from.clone() });
    Ok([Pair { from, to }].into_iter().chain(back.filter(|back| back.from != back.to)).collect())
}

/// `links:` of the block.
fn links(project: &mut Project, node: &Node, path: &str, faults: &mut Vec<Fault>) {
    for (key, node) in map(node, path, faults).unwrap_or_default() {
        let pairs = match pairs(project, key) {
            Ok(pairs) => pairs,
            Err(error) => {
                faults.push(inside(error, path));
                continue;
            }
        };
        let path = format!("{path}.\"{}\"", key.name);
        let Some(keys) = link(&project.files, node, &path, faults) else { continue };
        let Ok([there, back]) = keys.pipes(&project.files) else { continue };
        // A preset has two directions in any case.
        if !key.name.contains("<->") && there != back && !keys.has("preset") {
            faults.push(inside(
                fault(
                    format!("values for two directions, but `{}` is one", key.name),
                    &node.span,
                    &["write one value, or a `<->` between the ends: up is then from left to right"],
                ),
                &path,
            ));
            continue;
        }
        for (pair, pipe) in pairs.into_iter().zip([there, back]) {
            if project.pairs.iter().any(|other| other.pair == pair) {
                faults
                    .push(inside(fault(format!("`{pair}` is given twice"), &key.span, &["keep one"]), &path));
                continue;
            }
            project.pairs.push(PairLink { pair, pipe });
        }
    }
}

/// `timeline:` of the block.
fn steps(project: &mut Project, node: &Node, path: &str, faults: &mut Vec<Fault>) {
    let Some(all) = node.list() else {
        faults.push(inside(
            fault(
                format!("{} instead of a list", node.kind()),
                &node.span,
                &["write: - { at: 10s, set: { \"web -> db\": { delay: 200ms } } }"],
            ),
            path,
        ));
        return;
    };
    for (number, node) in (1..).zip(all) {
        let path = format!("{path}.{number}");
        let mut step = Step { at_ns: 0, set: Vec::new() };
        for (key, node) in map(node, &path, faults).unwrap_or_default() {
            match key.name.as_str() {
                "at" => match span_of_time("at", node.text().unwrap_or_default()) {
                    Ok(at) => step.at_ns = at.nanos(),
                    Err(error) => {
                        let wrong = error.faults().into_iter();
                        faults.extend(wrong.map(|fault| {
                            inside(Fault { span: Some(node.span.clone()), ..fault }, &format!("{path}.at"))
                        }));
                    }
                },
                "set" => set(project, &mut step, node, &path, faults),
                name => faults.push(inside(unknown(name, &["at", "set"], key.span.clone()), &path)),
            }
        }
        for needed in ["at", "set"] {
            if node.get(needed).is_none() {
                faults.push(inside(fault(format!("`{needed}` is missing"), &node.span, &[]), &path));
            }
        }
        project.timeline.push(step);
    }
}

fn set(project: &Project, step: &mut Step, node: &Node, path: &str, faults: &mut Vec<Fault>) {
    for (key, node) in map(node, path, faults).unwrap_or_default() {
        let path = format!("{path}.set.\"{}\"", key.name);
        let whose = match whose(project, key) {
            Ok(whose) => whose,
            Err(error) => {
                faults.push(inside(error, &path));
                continue;
            }
        };
        for (name, key, node) in flat(map(node, &path, faults).unwrap_or_default()) {
            let of_way = name.starts_with("up.") || name.starts_with("down.");
            let is_of_pair = whose.iter().any(|whose| matches!(whose, Whose::Pair(_)));
            if name == "preset" || name.starts_with("netem-") || of_way && is_of_pair {
                faults.push(inside(
                    fault(
                        format!("`{name}` cannot change at a time"),
                        &key.span,
                        &["set the keys of the link, such as delay, rate, loss or outage"],
                    ),
                    &path,
                ));
                continue;
            }
            let mut alone = LinkKeys::default();
            let added = alone.add(&name, node.typed(), node.span.clone());
            let wrong = match added {
                Err(error) => vec![Fault { span: Some(key.span.clone()), ..error }],
                // A part may belong to a value that the link has.
                Ok(()) if name.trim_start_matches("up.").trim_start_matches("down.").contains('.') => {
                    Vec::new()
                }
                Ok(()) => alone.faults(&project.files, &node.span),
            };
            faults.extend(wrong.into_iter().map(|fault| inside(fault, &path)));
            let value = node.typed();
            step.set.extend(whose.iter().map(|whose| (whose.clone(), name.clone(), value.clone())));
        }
    }
}

/// The links that a key of `set` names.
fn whose(project: &Project, key: &Key) -> Result<Vec<Whose>, Fault> {
    if !key.name.contains("->") {
        return match not_a_service(project, &key.name, key) {
            Some(fault) => Err(fault),
            None => Ok(vec![Whose::Service(key.name.clone())]),
        };
    }
    let all = pairs(project, key)?;
    for pair in &all {
        if project.pairs.iter().all(|link| link.pair != *pair) {
            let known: Vec<_> = project.pairs.iter().map(|link| format!("\"{}\"", link.pair)).collect();
            let help = format!("links: {}", known.join(", "));
            return Err(fault(format!("no link `{pair}` in `links`"), &key.span, &[&help]));
        }
    }
    Ok(all.into_iter().map(Whose::Pair).collect())
}
