//! What links do to packets by chance: how long they take, and which are hit by what. Both are open seams.

mod delay;
mod feed;
mod normal;
pub mod selector;
mod steps;

pub use delay::{Constant, DelayModel, Normal, Propagation, Uniform};
pub(crate) use feed::Answer;
pub use feed::{Fed, Feed, FeedConfig, FeedCounters, OnEmpty};
pub use normal::{cumulative, quantile};
pub use selector::{Independent, Selector};
pub use steps::{DelaySteps, LossSteps};
