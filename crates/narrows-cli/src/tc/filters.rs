//! `filter show`, in tc's layout.

use std::fmt::Write;

use narrows_live::control::{CurrentLink, CurrentScenario};

/// One line for each filter of a link, or of all links. A condition that tc cannot express follows `#` in
/// scenario syntax.
pub(super) fn show(current: &CurrentScenario, only: Option<&CurrentLink>) -> String {
    let mut text = String::new();
    for link in current.links.iter().filter(|link| only.is_none_or(|only| only.link == link.link)) {
        let device = if only.is_none() { format!("dev {} ", link.link) } else { String::new() };
        for filter in link.tree.iter().flat_map(|tree| &tree.filters) {
            let (parent, protocol, pref) = (&filter.parent, &filter.protocol, filter.pref);
            let _ = write!(text, "filter {device}parent {parent} protocol {protocol} pref {pref}");
            let _ = match &filter.words {
                Some(words) => writeln!(text, " {words} classid {}", filter.class),
                None => writeln!(text, " flower classid {}  # match = {}", filter.class, filter.condition),
            };
        }
    }
    text
}
