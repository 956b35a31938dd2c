//! Parameters that one algorithm has and no other: a struct with rows, which the registry names.

use std::any::Any;
use std::fmt;

use crate::keys::{Keyed, Parameters};
use crate::problem::Problem;

/// The parameters of one algorithm.
pub(crate) trait OwnParameters: Keyed + Clone + PartialEq + fmt::Debug + Send + Sync {
    /// How `check` explains them, right after what the algorithm does: it begins with what parts the two, as in ", ".
    fn effective(&self) -> String;

    /// What a scenario must say, where it has not: then these are no parameters yet.
    fn missing(&self) -> Option<Problem> {
        None
    }
}

/// The same of any algorithm.
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

/// The parameters of a scheduler's algorithm, if it has any.
#[derive(Debug, Default)]
pub struct SchedulerParameters(Option<Box<dyn Erased>>);

impl SchedulerParameters {
    /// Those of an algorithm, with every default.
    pub(super) fn plain<T: OwnParameters>() -> Self {
        Self(Some(Box::new(T::default())))
    }

    /// Whether it has any.
    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Those of type `T`, if they are.
    pub(crate) fn get<T: OwnParameters>(&self) -> Option<&T> {
        let own: &dyn Any = self.0.as_deref()?;
        own.downcast_ref()
    }

    /// The same, to be changed.
    pub(super) fn get_mut<T: OwnParameters>(&mut self) -> Option<&mut T> {
        let own: &mut dyn Any = self.0.as_deref_mut()?;
        own.downcast_mut()
    }

    /// To be written; nothing where a scenario has not said what it must.
    pub(super) fn parameters(&self) -> Option<&dyn Parameters> {
        let own = self.0.as_deref().filter(|own| own.missing().is_none())?;
        Some(own)
    }

    /// To be read.
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
