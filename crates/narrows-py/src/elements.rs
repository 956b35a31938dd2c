//! Delay and loss models of Python: called for many packets at once, as a call for each would cost more than all the rest.

use std::fmt;

use narrows_core::model::{DelayModel, Propagation, Selector};
use narrows_core::{Draw, Duration, LinkConfig, Loss, PacketState, Time};
use narrows_scenario::Scenario;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::error::{FirstError, ScenarioError};
use crate::queue::PythonQueue;

/// Packets for which a model is asked at once.
const AT_ONCE: usize = 1024;
/// What a model or a queue may stand for.
const PARTS: [&str; 3] = ["delay", "loss", "queue"];
/// A longer delay is an error: a hundred years.
const LONGEST_S: f64 = 3.2e9;

/// A function of Python that gives as many values as it is asked for.
struct Model<T> {
    function: Py<PyAny>,
    name: String,
    values: std::vec::IntoIter<T>,
    error: FirstError,
}

impl<T: for<'a, 'py> FromPyObject<'a, 'py> + Copy + Default> Model<T> {
    fn next(&mut self) -> T {
        if let Some(value) = self.values.next() {
            return value;
        }
        if !self.error.is_there() {
            match Python::attach(|py| self.ask(py)) {
                Ok(values) => self.values = values.into_iter(),
                Err(error) => self.error.set(error),
            }
        }
        self.values.next().unwrap_or_default()
    }

    fn ask(&self, py: Python<'_>) -> PyResult<Vec<T>> {
        let values = self.function.call1(py, (AT_ONCE,))?;
        let mut taken = Vec::with_capacity(AT_ONCE);
        for value in values.bind(py).try_iter()? {
            let wrong =
                |_| PyTypeError::new_err(format!("the model of {} gave a value of a wrong type", self.name));
            taken.push(value?.extract::<T>().map_err(wrong)?);
        }
        if taken.len() == AT_ONCE {
            return Ok(taken);
        }
        Err(PyValueError::new_err(format!(
            "the model of {} gave {} values when asked for {AT_ONCE}",
            self.name,
            taken.len()
        )))
    }
}

impl<T> fmt::Debug for Model<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Model({})", self.name)
    }
}

impl DelayModel for Model<f64> {
    fn delay(&mut self, _: Time, _: &PacketState, _: &mut Draw) -> Propagation {
        let seconds = self.next();
        if !(0.0..=LONGEST_S).contains(&seconds) {
            let words = format!("the model of {} gave a delay of {seconds} s: it is from 0 on", self.name);
            self.error.set(PyValueError::new_err(words));
            return Propagation::After(Duration::ZERO);
        }
        // Within bounds: below 2^62 nanoseconds.
        Propagation::After(Duration::from_nanos((seconds * 1e9).round() as u64))
    }

    fn mean(&self) -> Option<Duration> {
        None
    }
}

impl Selector for Model<bool> {
    fn selects(&mut self, _: Time, _: &PacketState, _: &mut Draw) -> bool {
        self.next()
    }

    fn mean(&self) -> f64 {
        // Nobody knows.
        0.0
    }
}

/// Models for directions of links, by keys as in `access.down.delay`.
pub(crate) struct Elements {
    models: Vec<(String, Py<PyAny>)>,
    error: FirstError,
}

impl Elements {
    /// Fails where a key is of no direction of the scenario.
    pub(crate) fn new(models: Vec<(String, Py<PyAny>)>, scenario: &Scenario) -> PyResult<Self> {
        if !models.is_empty() {
            let links = scenario.network().links;
            let is_known = |key: &str| {
                let is_of =
                    |(name, part)| PARTS.contains(&part) && links.iter().any(|link| link.name == name);
                key.rsplit_once('.').is_some_and(is_of)
            };
            if let Some((key, _)) = models.iter().find(|(key, _)| !is_known(key)) {
                return Err(ScenarioError::new_err(format!(
                    "`{key}` is no element: it is the delay, the loss or the queue of a direction, as in `access.down.delay`"
                )));
            }
        }
        Ok(Self { models, error: FirstError::default() })
    }

    pub(crate) fn error(&self) -> FirstError {
        self.error.clone()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    /// Puts the models of a link in place.
    pub(crate) fn place(&self, link: &mut LinkConfig) {
        for (key, function) in &self.models {
            let Some((name, part)) = key.rsplit_once('.') else { continue };
            if name != link.name {
                continue;
            }
            let function = Python::attach(|py| function.clone_ref(py));
            let error = self.error.clone();
            let name = key.clone();
            match part {
                "delay" => {
                    link.delay =
                        Box::new(Model::<f64> { function, name, values: Vec::new().into_iter(), error })
                }
                "loss" => {
                    let model = Model::<bool> { function, name, values: Vec::new().into_iter(), error };
                    link.wire_loss = Some(Loss::of(model));
                }
                "queue" => link.queue = Box::new(PythonQueue::new(function, name, error)),
                _ => {}
            }
        }
    }
}
