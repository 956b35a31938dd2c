//! File names as values of keys.

use serde_json::json;

use crate::files::NamedFile;
use crate::keys::kind::{ByHand, text};
use crate::node::{Node, Value};

/// A file, which is read when its name is parsed.
pub(crate) const FILE: ByHand<Option<NamedFile>> = ByHand {
    words: || "name of a file".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, around| around.files.read(node).map(Some),
    write: |file| file.as_ref().map(|file| text(&file.name)),
};

/// The node with the file name: the value itself, or `file` in a table.
pub(crate) fn place(node: &Node) -> &Node {
    match &node.value {
        Value::Table(table) => table.get("file").unwrap_or(node),
        _ => node,
    }
}
