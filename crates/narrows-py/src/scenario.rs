//! Scenarios.

use std::path::PathBuf;

use narrows_scenario as inner;
use narrows_scenario::{Files, LinkFlags};
use narrows_sim::SimOptions;
use pyo3::prelude::*;

use crate::elements::Elements;
use crate::error::{bad_scenario, other};
use crate::simulation::{self, Packets, Simulation};

/// A network, with its traffic and its timeline. It does not change: what changes it gives another one.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct Scenario {
    scenario: inner::Scenario,
}

#[pymethods]
impl Scenario {
    /// Reads a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| inner::Scenario::load(&path)).map_err(bad_scenario).map(Self::from)
    }

    /// Reads text; `file` is what errors call it, and files that it names are beside that.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str, file: &str) -> PyResult<Self> {
        py.detach(|| inner::Scenario::parse_with(text, file, Files::beside(file)))
            .map_err(bad_scenario)
            .map(Self::from)
    }

    /// Two hosts and a link, by the flags of the program.
    #[staticmethod]
    fn from_flags(py: Python<'_>, flags: Vec<(String, String)>) -> PyResult<Self> {
        let flags = flags.into_iter().fold(LinkFlags::default(), |all, (name, value)| all.with(&name, value));
        py.detach(|| inner::Scenario::from_flags(&flags)).map_err(bad_scenario).map(Self::from)
    }

    /// The names of those flags.
    #[staticmethod]
    fn flags() -> Vec<&'static str> {
        LinkFlags::known().into_iter().map(|flag| flag.name).collect()
    }

    /// Another one in which these assignments hold.
    fn set(&self, py: Python<'_>, assignments: Vec<String>) -> PyResult<Self> {
        let mut changed = self.scenario.clone();
        py.detach(|| changed.set(&assignments).map(|()| changed)).map_err(bad_scenario).map(Self::from)
    }

    /// Another one with this traffic instead of its own.
    fn offer(&self, py: Python<'_>, texts: Vec<String>) -> PyResult<Self> {
        let mut changed = self.scenario.clone();
        py.detach(|| changed.offer(&texts).map(|()| changed)).map_err(bad_scenario).map(Self::from)
    }

    /// Another one with this seed.
    fn with_seed(&self, seed: u64) -> Self {
        let mut changed = self.scenario.clone();
        changed.seed = seed;
        changed.into()
    }

    /// Another one with as much traffic as it can carry, and what that is in words.
    fn offer_most(&self) -> PyResult<(Self, String)> {
        let mut changed = self.scenario.clone();
        let words = changed.offer_most().map_err(bad_scenario)?;
        Ok((changed.into(), words))
    }

    /// What it is called: the file, or the flags.
    #[getter]
    fn file(&self) -> &str {
        &self.scenario.file
    }

    /// The names of its links.
    #[getter]
    fn links(&self) -> Vec<&str> {
        self.scenario.links.iter().map(|link| link.name.as_str()).collect()
    }

    /// The names of its hosts.
    #[getter]
    fn hosts(&self) -> Vec<&str> {
        self.scenario.hosts.iter().map(|host| host.name.as_str()).collect()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.scenario.seed
    }

    /// In nanoseconds.
    #[getter]
    fn duration_ns(&self) -> Option<u64> {
        self.scenario.duration.map(|duration| duration.nanos())
    }

    #[getter]
    fn has_traffic(&self) -> bool {
        !self.scenario.traffic.is_empty()
    }

    /// The files that it has read, with which its text goes elsewhere.
    #[getter]
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        self.scenario
            .files()
            .into_iter()
            .map(|file| (file.name.to_string(), file.contents.to_vec()))
            .collect()
    }

    /// The same from text and the files that it names.
    #[staticmethod]
    fn parse_with_files(text: &str, file: &str, files: Vec<(String, Vec<u8>)>) -> PyResult<Self> {
        inner::Scenario::parse_with(text, file, Files::given(files)).map_err(bad_scenario).map(Self::from)
    }

    /// As a file.
    fn to_toml(&self) -> String {
        self.scenario.to_toml()
    }

    /// What `narrows check` says.
    fn explain(&self, py: Python<'_>) -> String {
        py.detach(|| self.scenario.explain().to_string())
    }

    /// The same as JSON.
    fn explain_json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| serde_json::to_string(&self.scenario.explain())).map_err(other)
    }

    /// Runs it in virtual time, to the end.
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    #[pyo3(signature = (seed=None, duration=None, packets=false, interval=None, capture=None, progress=None, elements=Vec::new(), threads=1))]
    fn simulate(
        &self,
        py: Python<'_>,
        seed: Option<u64>,
        duration: Option<&str>,
        packets: bool,
        interval: Option<&str>,
        capture: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
        elements: Vec<(String, Py<PyAny>)>,
        threads: usize,
    ) -> PyResult<Simulation> {
        let options = SimOptions { capture: capture.map(Into::into), threads, ..options(seed, duration)? };
        let interval = interval.map(|text| span("interval", text)).transpose()?;
        let elements = Elements::new(elements, &self.scenario)?;
        simulation::run(py, &self.scenario, &options, packets, interval, progress, elements)
    }

    /// Runs it in virtual time in a thread beside, packet by packet: tables of so many rows.
    #[pyo3(signature = (seed=None, duration=None))]
    fn packets(&self, seed: Option<u64>, duration: Option<&str>) -> PyResult<Packets> {
        Packets::start(self.scenario.clone(), options(seed, duration)?)
    }
}

impl Scenario {
    pub(crate) fn inner(&self) -> &inner::Scenario {
        &self.scenario
    }
}

impl From<inner::Scenario> for Scenario {
    fn from(scenario: inner::Scenario) -> Self {
        Self { scenario }
    }
}

fn options(seed: Option<u64>, duration: Option<&str>) -> PyResult<SimOptions> {
    let duration = duration.map(|text| span("duration", text)).transpose()?;
    Ok(SimOptions { seed: seed.map(narrows_core::Seed), duration, ..SimOptions::default() })
}

/// A time, in the words of files.
fn span(what: &str, text: &str) -> PyResult<narrows_core::Duration> {
    inner::span_of_time(what, text).map_err(bad_scenario)
}
