//! What links do to packets by chance: how long they take, and which are lost. Both are open seams.

mod delay;
mod loss;
mod normal;

pub use delay::{Constant, DelayModel, Normal, Uniform};
pub use loss::{Independent, LossModel};
pub use normal::{cumulative, quantile};
