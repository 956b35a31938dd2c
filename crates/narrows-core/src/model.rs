//! What links do to packets by chance: how long they take, and which are hit by what. Both are open seams.

mod autoregressive;
mod delay;
mod delay_pattern;
mod distribution;
mod feed;
mod normal;
mod propagation;
pub mod selector;
mod steps;

pub use delay::{
    ByClass, Constant, Correlated, DelayModel, Fed, LostWithDelay, Normal, PerByte, Sampled, Uniform,
};
pub use delay_pattern::DelayPattern;
pub use distribution::{BelowZero, Distribution, DistributionError, Sampler, builtin_table};
pub(crate) use feed::Answer;
pub use feed::{Feed, FeedConfig, FeedCounters, OnEmpty};
pub use normal::{cumulative, density, quantile};
pub use propagation::Propagation;
pub use selector::{Independent, Selector};
pub use steps::{DelaySteps, LossSteps};
