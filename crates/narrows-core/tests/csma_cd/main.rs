//! CSMA/CD against hand-made timelines, against published efficiency and capture, and in an engine.

mod engine;
mod published;
mod timing;
mod wire;
