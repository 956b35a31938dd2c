//! Fair schedulers against plain, slow models of their algorithms in exact arithmetic, and against their bounds.

mod compare;
mod fraction;
mod qfq;
mod traffic;
mod wfi;
