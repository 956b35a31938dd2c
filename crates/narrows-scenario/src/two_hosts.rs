//! Writes scenario files of a client, a server and the link between them, the result of translating NetEm
//! options and tc scripts.

use crate::link::Way;

/// Name of the link, also in scenarios from flags.
pub(crate) const LINK: &str = "link";

/// A scenario file: the keys of both directions, then those of each one, with values as written in a file.
pub(crate) fn text<'a>(
    both: impl IntoIterator<Item = (&'static str, &'a str)>,
    one: impl IntoIterator<Item = (Way, &'static str, &'a str)>,
) -> String {
    let mut text =
        format!("[hosts.client]\n[hosts.server]\n\n[links.{LINK}]\nbetween = [\"client\", \"server\"]\n");
    for (key, value) in both {
        text += &format!("{key} = {value}\n");
    }
    put_keys(&mut text, LINK, one);
    text
}

/// Adds tables with the keys of each direction of a link.
pub(crate) fn put_keys<'a>(
    text: &mut String,
    link: &str,
    keys: impl IntoIterator<Item = (Way, &'static str, &'a str)>,
) {
    let all: Vec<_> = keys.into_iter().collect();
    for way in [Way::Up, Way::Down] {
        let mut keys = all.iter().filter(|(of, _, _)| *of == way).peekable();
        if keys.peek().is_some() {
            *text += &format!("\n[links.{link}.{}]\n", way.name());
        }
        for (_, key, value) in keys {
            *text += &format!("{key} = {value}\n");
        }
    }
}
