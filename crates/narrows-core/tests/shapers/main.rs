//! Shapers: against closed forms, against slow models of their own arithmetic, and the examples of the references.

mod cbq;
mod cbs;
mod hfsc;
mod htb;
mod tbf;
mod wire;
