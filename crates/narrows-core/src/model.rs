//! Models of random effects on packets: propagation delays, and selection of packets (for loss, duplication
//! and others). Both are extension points.

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
    ByClass, Cell, CellConfig, Constant, Correlated, CorrelatedPlan, DelayModel, Fed, LightTrace,
    LostWithDelay, Normal, PerByte, Sampled, Train, Uniform,
};
pub use delay_pattern::DelayPattern;
pub use distribution::{BelowZero, Distribution, DistributionError, Sampler, builtin_table};
pub(crate) use feed::Answer;
pub use feed::{Feed, FeedConfig, FeedCounters, OnEmpty};
pub use normal::{cumulative, density, quantile};
pub use propagation::Propagation;
pub use selector::{Independent, Selector};
pub use steps::{DelaySteps, LossSteps};
