//! Errors as exceptions, in the program's words.

use std::sync::{Arc, Mutex};

use narrows_scenario::ScenarioError as BadScenario;
use narrows_sim::SimError;
use pyo3::exceptions::PyException;
use pyo3::{PyErr, create_exception};

create_exception!(narrows, NarrowsError, PyException, "Something that narrows could not do.");
create_exception!(
    narrows,
    ScenarioError,
    NarrowsError,
    "A scenario, or a change of one, that says something that cannot be: with the file, the line and the place in it."
);

pub(crate) fn bad_scenario(error: BadScenario) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

pub(crate) fn failed(error: SimError) -> PyErr {
    match error {
        SimError::Scenario(error) => bad_scenario(error),
        error @ (SimError::NoTraffic(_) | SimError::Endless(_) | SimError::Build(_)) => {
            ScenarioError::new_err(error.to_string())
        }
        other => NarrowsError::new_err(other.to_string()),
    }
}

pub(crate) fn other(error: impl std::fmt::Display) -> PyErr {
    NarrowsError::new_err(error.to_string())
}

/// The first error of any element of Python: the run is broken off then.
#[derive(Clone, Default)]
pub(crate) struct FirstError(Arc<Mutex<Option<PyErr>>>);

impl FirstError {
    pub(crate) fn set(&self, error: PyErr) {
        if let Ok(mut first) = self.0.lock() {
            first.get_or_insert(error);
        }
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().ok()?.take()
    }

    pub(crate) fn is_there(&self) -> bool {
        self.0.lock().is_ok_and(|first| first.is_some())
    }
}
