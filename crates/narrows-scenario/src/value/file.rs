//! The name of a file, as the value of a key.

use serde_json::json;

use crate::files::NamedFile;
use crate::keys::kind::{ByHand, text};
use crate::node::{Node, Value};

/// A file that is read when its name is.
pub(crate) const FILE: ByHand<Option<NamedFile>> = ByHand {
    words: || "name of a file".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, around| around.files.read(node).map(Some),
    write: |file| file.as_ref().map(|file| text(&file.name)),
};

/// Where the name of the file stands in a value: under `file` in a table, or else the value is the name.
pub(crate) fn place(node: &Node) -> &Node {
    match &node.value {
        Value::Table(table) => table.get("file").unwrap_or(node),
        _ => node,
    }
}
