//! Names for numbers, for outputs: an event borrows the engine, so the names must be kept separately.

use std::ops::Deref;

use narrows_core::Engine;
use narrows_frame::ElementNames;

#[derive(Debug)]
pub(crate) struct Names {
    elements: ElementNames,
    pub(crate) feeds: Vec<String>,
}

impl Names {
    pub(crate) fn new<B>(engine: &Engine<B>, feeds: Vec<String>) -> Self {
        Self { elements: ElementNames::of(engine), feeds }
    }

    /// Updates the names: the network may have more links than before.
    pub(crate) fn update<B>(&mut self, engine: &Engine<B>) {
        self.elements = ElementNames::of(engine);
    }
}

impl Deref for Names {
    type Target = ElementNames;

    fn deref(&self) -> &ElementNames {
        &self.elements
    }
}
