//! Fair schedulers against plain, slow models of their algorithms in exact arithmetic, and against their bounds.

mod changes;
mod churn;
mod compare;
mod drr;
mod fraction;
mod gfq;
mod kps;
mod qfq;
mod traffic;
mod wf2q;
mod wfi;
