//! Links made on first use, routers, switches and rules as parts of a network; a network divided among engines.

mod common;
mod conservation;
mod divided;
mod fragments;
mod instances;
mod parts;
mod passed;
mod routers;
mod rules;
mod switches;
