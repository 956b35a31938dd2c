//! Hybrid proportional delay against a plain model in floating point, its bounds, and what changes keep.

mod bounds;
mod changes;
mod drive;
mod exact;
mod model;
