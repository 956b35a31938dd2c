//! What links do to packets by chance: how long they take, and which are hit by what. Both are open seams.

mod delay;
mod normal;
pub mod selector;

pub use delay::{Constant, DelayModel, Normal, Propagation, Uniform};
pub use normal::{cumulative, quantile};
pub use selector::{Independent, Selector};
