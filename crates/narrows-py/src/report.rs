//! Reports: of runs here, and of the program's.

use narrows_report as inner;
use narrows_report::Look;
use pyo3::prelude::*;

use crate::error::other;

/// What a run says at its end.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct Report {
    report: inner::Report,
}

#[pymethods]
impl Report {
    /// From the JSON that the program writes.
    #[staticmethod]
    fn parse(json: &str) -> PyResult<Self> {
        serde_json::from_str::<inner::Report>(json).map_err(other).map(Self::from)
    }

    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| serde_json::to_string(&self.report)).map_err(other)
    }

    /// In full.
    fn text(&self) -> String {
        self.report.text().to_string()
    }

    /// What the program prints at the end of a run.
    fn summary(&self, width: usize) -> String {
        self.report.summary(Look { width, colour: false }).to_string()
    }

    /// How far its figures can be trusted: `exact`, `accurate`, `mostly accurate` or `not accurate`.
    #[getter]
    fn trust(&self) -> &'static str {
        self.report.trust_word()
    }

    /// The same in a line, with what speaks against it.
    #[getter]
    fn trust_line(&self) -> String {
        self.report.trust_line()
    }
}

impl From<inner::Report> for Report {
    fn from(report: inner::Report) -> Self {
        Self { report }
    }
}
