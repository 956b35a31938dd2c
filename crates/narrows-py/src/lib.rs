//! The engine for Python: the extension module `narrows._narrows`, on which the package `narrows` is built.
//!
//! It only converts types and errors; the crates below define what a scenario means and what a run does. Calls that
//! take time release the interpreter's lock and react to Ctrl-C.

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

    /// Converts a TOML file to JSON.
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
