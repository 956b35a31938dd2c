//! The settings of a link, as a map of a YAML file: keys of a link, and `up` and `down` with keys of one direction.

use narrows_scenario::{Fault, Files};

use crate::labels::Wish;
use crate::link_keys::LinkKeys;
use crate::yaml::{Key, Node, Value, fault};

/// Puts the place of a fault before its key.
pub(crate) fn inside(fault: Fault, path: &str) -> Fault {
    Fault { key: if fault.key.is_empty() { path.into() } else { format!("{path}.{}", fault.key) }, ..fault }
}

/// The keys of a map; a fault if it is something else.
pub(crate) fn map<'a>(node: &'a Node, path: &str, faults: &mut Vec<Fault>) -> Option<&'a [(Key, Node)]> {
    match &node.value {
        Value::Map(all) => Some(all),
        Value::Null => Some(&[]),
        _ => {
            faults.push(inside(fault(format!("{} instead of a map", node.kind()), &node.span, &[]), path));
            None
        }
    }
}

/// The keys of a link, with those of `up` and `down` in it.
pub(crate) fn flat(all: &[(Key, Node)]) -> impl Iterator<Item = (String, &Key, &Node)> {
    all.iter().flat_map(|(key, node)| {
        let inner = node.map().filter(|_| ["up", "down"].contains(&key.name.as_str()));
        match inner {
            Some(inner) => inner
                .iter()
                .map(|(of_way, node)| (format!("{}.{}", key.name, of_way.name), of_way, node))
                .collect::<Vec<_>>(),
            None => vec![(key.name.clone(), key, node)],
        }
    })
}

/// The keys of a link; `None` if any is wrong.
pub(crate) fn link(files: &Files, node: &Node, path: &str, faults: &mut Vec<Fault>) -> Option<LinkKeys> {
    wish(files, node, path, &[], faults).map(|wish| wish.keys)
}

/// The keys of a link and, of the names that are no keys, these; `None` if any is wrong.
pub(crate) fn wish(
    files: &Files,
    node: &Node,
    path: &str,
    others: &[&str],
    faults: &mut Vec<Fault>,
) -> Option<Wish> {
    let before = faults.len();
    let mut wish = Wish::default();
    for (name, key, node) in flat(map(node, path, faults)?) {
        if let Err(error) = wish.set_one_of(&name, &node.typed(), node.span.clone(), others) {
            let span = if error.title.starts_with("unknown") { &key.span } else { &node.span };
            faults.push(inside(Fault { span: Some(span.clone()), key: String::new(), ..error }, path));
        }
    }
    faults.extend(wish.keys.faults(files, &node.span).into_iter().map(|fault| inside(fault, path)));
    (faults.len() == before).then_some(wish)
}
