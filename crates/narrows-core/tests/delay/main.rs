//! Delay models and the distributions that they draw from: against scipy's numbers, closed forms, and through a link.

mod atoms;
mod cell;
mod composed;
mod correlation;
mod order;
mod reference;
mod refusals;
mod samplers;
mod statistics;
