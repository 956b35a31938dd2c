//! Links made on first use, routers, switches and rules as parts of a network.

mod common;
mod conservation;
mod fragments;
mod instances;
mod parts;
mod passed;
mod routers;
mod rules;
mod switches;
