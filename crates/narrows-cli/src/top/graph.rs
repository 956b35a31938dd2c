//! The graph of a group of runs.

/// The graph of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Graph {
    pub(super) name: String,
    pub(super) nodes: Vec<String>,
    pub(super) edges: Vec<Edge>,
}

/// A link in the graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Edge {
    pub(super) nodes: [String; 2],
    /// The run that is this link.
    pub(super) run: Option<String>,
}
