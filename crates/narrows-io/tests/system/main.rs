//! Real namespaces and real packets. Each test needs root, or makes itself a user namespace; where neither is
//! possible it says so and is left out, or fails if `CI=true`.

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
mod tap;
mod traffic;
mod trains;
mod xdp;
