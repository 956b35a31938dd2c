//! Networks for containers, where they are: of Docker and Podman, declared by labels, in a compose file,
//! or in the topology file of a containerlab lab; and of Kubernetes, by a plugin of CNI.
//!
//! An [`engine`] says which [containers](container) run and what happens to them ([`event`]). [`labels`] and the
//! block of a compose file ([`project`]) or a topology file ([`lab`]) say which network each of them gets; [`plan`] writes it as a scenario.
//! [`watch`](watch::watch) starts one `narrows attach` for each interface and ends it with the container. [`cni`] reads what
//! container runtimes tell a plugin.
//!
//! Not included: anything about packets or interfaces, which `narrows attach` does.
#![forbid(unsafe_code)]

pub mod cni;
pub mod container;
pub mod engine;
pub mod event;
pub mod lab;
pub mod labels;
mod link_block;
pub mod link_keys;
pub mod plan;
pub mod project;
mod run_names;
pub mod watch;
mod yaml;
