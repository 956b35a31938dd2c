//! Parses single numbers with units, as typed on a command line.
//!
//! ```
//! use narrows_core::Duration;
//! use narrows_scenario::typed;
//!
//! assert_eq!(typed::time("100ms")?, Duration::from_millis(100));
//! assert!(typed::time("100").unwrap_err().to_string().contains("no unit"));
//! # Ok::<(), narrows_scenario::ScenarioError>(())
//! ```

use narrows_core::{Duration, Rate};

use crate::node::{Node, Value};
use crate::problem::{Problem, ScenarioError};
use crate::units::{self, Share};

/// A duration, such as `100ms`.
///
/// # Errors
/// If the text is not a duration.
pub fn time(text: &str) -> Result<Duration, ScenarioError> {
    read(text, units::time)
}

/// A rate, such as `1.5mbit`, `unlimited` or `down`.
///
/// # Errors
/// If the text is not a rate.
pub fn rate(text: &str) -> Result<Rate, ScenarioError> {
    read(text, units::rate)
}

/// A share, such as `1%` or `0.01`.
///
/// # Errors
/// If the text is not a share.
pub fn share(text: &str) -> Result<Share, ScenarioError> {
    read(text, Share::read)
}

fn read<T>(text: &str, read: impl Fn(&Node) -> Result<T, Problem>) -> Result<T, ScenarioError> {
    let node = Node { span: 0..text.len(), value: Value::String(text.into()) };
    read(&node).map_err(|problem| ScenarioError::new("the command line", text, vec![problem]))
}
