//! The places of problems in texts that are strings of a file.

use crate::node::Node;
use crate::problem::Problem;

/// Places a problem of a text that is a string in a file.
pub(super) fn placed(problem: Problem, node: &Node, text: &str) -> Problem {
    // Quoted, and without escapes.
    let is_plain = node.span.len() == text.len() + 2;
    if is_plain { problem.moved(node.span.start + 1) } else { problem.put_at(&node.span) }
}
