//! Shapers: against closed forms, against slow models of their own arithmetic, and the examples of the references.

mod cbq;
mod hfsc;
mod htb;
mod tbf;
mod wire;
