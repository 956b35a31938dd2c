//! Reports: of runs in this process, and of the program's runs.

use narrows_report as inner;
use narrows_report::Look;
use pyo3::prelude::*;

use crate::error::other;

/// The report of a run.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct Report {
    report: inner::Report,
}

#[pymethods]
impl Report {
    /// Parses the JSON that the program writes.
    #[staticmethod]
    fn parse(json: &str) -> PyResult<Self> {
        serde_json::from_str::<inner::Report>(json).map_err(other).map(Self::from)
    }

    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| serde_json::to_string(&self.report)).map_err(other)
    }

    /// The full text.
    fn text(&self) -> String {
        self.report.text().to_string()
    }

    /// The summary that the program prints at the end of a run.
    fn summary(&self, width: usize) -> String {
        self.report.summary(Look { width, colour: false }).to_string()
    }

    /// How accurate the figures are: `exact`, `accurate`, `mostly accurate` or `not accurate`.
    #[getter]
    fn trust(&self) -> &'static str {
        self.report.trust_word()
    }

    /// The same as a line, with the findings that reduce the accuracy.
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
