//! The program as a user meets it: commands in; packets, reports, files, errors and exit statuses out.
//!
//! Nothing here depends on how fast the machine is: delays are compared by the engine's own instants, which a late
//! loop does not change, and what was measured by wall clock has lower bounds only.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod activation;
mod attach;
mod backend;
mod bad_input;
mod book;
mod bridge;
mod calibrate;
mod captured;
mod certified;
mod cni;
mod common;
mod compare;
mod containers;
mod control;
mod cross_traffic;
mod dist;
mod engine;
mod feed;
mod filters;
mod habit;
mod hops;
mod in_virtual_time;
mod internet;
mod interop;
mod ipfw;
mod kernel;
mod leftovers;
mod machines;
mod machines_agents;
mod machines_underlay;
mod main_job;
mod malformed;
mod names;
mod netem;
mod ordinary_user;
mod overload;
mod pace;
mod packets;
mod parquet;
mod plugin;
mod preset;
mod privileges;
mod probes;
mod profile;
mod record;
mod rejected;
mod reports;
mod roles;
mod route;
mod sched_bench;
mod sched_lab;
mod schedulers;
mod series;
mod services;
mod shards;
mod simulation;
mod sweep;
mod switches;
mod tc;
mod time_namespace;
mod together;
mod top;
mod topology;
mod toxi;
mod trace;
mod traffic;
mod trains;
mod untrusted_sizes;
mod untrusted_text;
mod up;
mod web;
