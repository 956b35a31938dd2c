//! Parameters specific to one algorithm: a struct with rows, listed in the registry.

use std::any::Any;
use std::fmt;

use crate::keys::{Keyed, Parameters};
use crate::problem::Problem;

/// The specific parameters of one algorithm.
pub(crate) trait OwnParameters: Keyed + Clone + PartialEq + fmt::Debug + Send + Sync {
    /// Text that `check` appends to the description of the algorithm. It starts with the separator, such as
    /// ", ".
    fn effective(&self) -> String;

    /// The problem if required parameters are missing; then these parameters are incomplete.
    fn missing(&self) -> Option<Problem> {
        None
    }
}

/// Type-erased parameters of any algorithm.
trait Erased: Parameters + Any + fmt::Debug + Send + Sync {
    fn boxed(&self) -> Box<dyn Erased>;
    fn equals(&self, other: &dyn Erased) -> bool;
    fn effective(&self) -> String;
    fn missing(&self) -> Option<Problem>;
}

impl<T: OwnParameters> Erased for T {
    fn boxed(&self) -> Box<dyn Erased> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn Erased) -> bool {
        (other as &dyn Any).downcast_ref::<T>() == Some(self)
    }

    fn effective(&self) -> String {
        OwnParameters::effective(self)
    }

    fn missing(&self) -> Option<Problem> {
        OwnParameters::missing(self)
    }
}

/// The specific parameters of a scheduler's algorithm, if it has any.
#[derive(Debug, Default)]
pub struct SchedulerParameters(Option<Box<dyn Erased>>);

impl SchedulerParameters {
    /// The parameters of an algorithm, with all defaults.
    pub(super) fn plain<T: OwnParameters>() -> Self {
        Self(Some(Box::new(T::default())))
    }

    /// Whether it has any.
    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// The parameters as type `T`, if they have that type.
    pub(crate) fn get<T: OwnParameters>(&self) -> Option<&T> {
        let own: &dyn Any = self.0.as_deref()?;
        own.downcast_ref()
    }

    /// Same, mutable.
    pub(super) fn get_mut<T: OwnParameters>(&mut self) -> Option<&mut T> {
        let own: &mut dyn Any = self.0.as_deref_mut()?;
        own.downcast_mut()
    }

    /// For writing; `None` if required parameters are missing.
    pub(super) fn parameters(&self) -> Option<&dyn Parameters> {
        let own = self.0.as_deref().filter(|own| own.missing().is_none())?;
        Some(own)
    }

    /// For reading.
    pub(super) fn parameters_mut(&mut self) -> Option<&mut dyn Parameters> {
        let own = self.0.as_deref_mut()?;
        Some(own)
    }

    /// See [`OwnParameters::effective`].
    pub(crate) fn effective(&self) -> String {
        self.0.as_ref().map_or(String::new(), |own| own.effective())
    }

    /// See [`OwnParameters::missing`].
    pub(super) fn missing(&self) -> Option<Problem> {
        self.0.as_ref()?.missing()
    }
}

impl Clone for SchedulerParameters {
    fn clone(&self) -> Self {
        Self(self.0.as_ref().map(|own| own.boxed()))
    }
}

impl PartialEq for SchedulerParameters {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(own), Some(other)) => own.equals(&**other),
            (None, None) => true,
            _ => false,
        }
    }
}
