//! The engine for Python: the extension module `narrows._narrows`, of which the package `narrows` makes its interface.
//!
//! Here are conversions of types and errors, and nothing else: what a scenario means and what a run does is said in the crates
//! below. Calls that take time let other threads of Python run, and hear Ctrl-C.

mod columns;
mod elements;
mod error;
mod queue;
mod report;
mod scenario;
mod session;
mod simulation;

use pyo3::prelude::*;

/// The module.
#[pymodule]
mod _narrows {
    #[pymodule_export]
    use crate::columns::Table;
    #[pymodule_export]
    use crate::error::{NarrowsError, ScenarioError};
    #[pymodule_export]
    use crate::queue::QueuedPacket;
    #[pymodule_export]
    use crate::report::Report;
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::session::{Interval, Session};
    #[pymodule_export]
    use crate::simulation::{Packets, Simulation};
    use pyo3::prelude::*;

    /// A file of TOML as JSON.
    #[pyfunction]
    fn toml_to_json(text: &str) -> PyResult<String> {
        let value: serde_json::Value = toml::from_str(text).map_err(crate::error::other)?;
        serde_json::to_string(&value).map_err(crate::error::other)
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
