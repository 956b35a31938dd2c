//! Real namespaces and real packets. Each test needs root, or makes itself a user namespace, so they are run where they are
//! asked for (`cargo test -- --include-ignored`).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bpf;
mod exchange;
mod interfaces;
mod lab;
mod ledger;
mod leftovers;
mod offloads;
mod outside;
mod packets;
mod processes;
mod splice;
mod tap;
mod traffic;
mod trains;
mod xdp;
