//! Filters that assign packets to classes, separate from the classes and in their own order: `filters = [{
//! match = { destination-port = 22 }, class = "low" }, …], default = "rest"`.

use super::Class;
use super::matches::MATCHES;
use super::tree::Tree;
use crate::keys::kind::Text;
use crate::keys::{self, Keyed, Parameters, Row, row};
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem, one_of};
use crate::value::condition::{Match, Surroundings};

/// In place of a class: drops the packets.
pub(crate) const DROP: &str = "drop";

/// Sends matching packets to a class, or drops them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Conditions, of which one must match.
    pub matches: Vec<Match>,
    /// The class, or `drop`.
    pub class: String,
}

impl Keyed for Filter {
    const ROWS: &'static [Row<Self>] = &[
        row!("match", matches, MATCHES, "Packets it matches.").required(),
        row!("class", class, Text("the name of a class"), "Class it assigns; `\"drop\"` drops the packets.")
            .required(),
    ];
}

impl Filter {
    fn read(
        node: &Node,
        classes: &[Class],
        tree: &Tree<'_>,
        surroundings: Surroundings<'_>,
    ) -> Result<Self, Problem> {
        let table = node.table("a filter: { match = { dscp = \"ef\" }, class = \"voip\" }")?;
        let filter = keys::read_table(node, table, surroundings)?;
        table.required("class", &node.span, |node| match node.text("")?.trim() {
            DROP => Ok(DROP.to_owned()),
            _ => leaf(node, classes, tree),
        })?;
        Ok(filter)
    }

    /// Reads the filters of a scheduler.
    pub(super) fn read_all(
        list: &Node,
        classes: &[Class],
        nodes: &[Node],
        surroundings: Surroundings<'_>,
    ) -> Result<Vec<Self>, Problem> {
        let with_match = nodes.iter().filter_map(|node| node.table("").ok()?.key("match")).next();
        if let Some(key) = with_match {
            return Err(Problem::new("both `filters` and a class with a `match`")
                .at(&list.span)
                .also(&key.span, "a `match`")
                .help("filters define the packets of all classes: move the condition there"));
        }
        let items = list.list("a list of filters: [{ match = { dscp = \"ef\" }, class = \"voip\" }]")?;
        let tree = Tree::of(classes);
        items.iter().map(|node| Self::read(node, classes, &tree, surroundings)).collect()
    }

    /// As written in a file.
    pub(super) fn value(&self) -> Value {
        let mut table = Table::default();
        self.write(&mut table);
        Value::Table(table)
    }
}

/// Reads the name of a leaf class.
pub(super) fn leaf(node: &Node, classes: &[Class], tree: &Tree<'_>) -> Result<String, Problem> {
    let name = node.text("the name of a class")?;
    let number = tree.number(name);
    if number.is_some_and(|index| tree.is_leaf(index)) {
        return Ok(name.into());
    }
    let leaves: Vec<&str> = tree.leaves().map(|index| classes[index].name.as_str()).collect();
    let problem = match number.is_some() {
        true => Problem::new(format!("the class `{name}` has child classes, and no packets of its own")),
        false => Problem::new(format!("there is no class {}", Found(name))),
    };
    Err(problem
        .at(&node.span)
        .did_you_mean(name, leaves.iter().copied())
        .help(format!("classes: {}", one_of(&leaves))))
}

/// The node of the filters in a scheduler's table.
pub(super) fn key(table: &Table) -> Option<&Node> {
    table.get("filters")
}
