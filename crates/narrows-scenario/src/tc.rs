//! tc's language: queueing disciplines, their classes and filters, as scripts of `tc` commands have them.
//!
//! A script is read ([`Script::parse`]) into commands, which build a tree of disciplines and classes for each device
//! ([`Script::devices`]). What a tree comes to are the keys of a link's direction ([`Device::egress`]), and what its ingress
//! discipline polices are those of the other one ([`Device::ingress`]). NetEm's own words are those of
//! [`netem`](crate::netem). What is the same as in the kernel and what is not: `docs/tc.md`.
//!
//! ```
//! let script = narrows_scenario::tc::Script::parse("tc qdisc add dev eth0 root tbf rate 1mbit burst 5kb latency 70ms", "shape.sh")?;
//! let egress = script.devices(false)?[0].egress.clone();
//! assert_eq!(egress.keys[1].0, "scheduler");
//! # Ok::<(), narrows_scenario::ScenarioError>(())
//! ```

mod both;
mod bucket;
mod class;
mod class_show;
mod command;
mod current;
mod explain;
mod filter;
mod filter_show;
mod handle;
mod managed;
mod on_link;
mod qdisc;
mod rules;
mod scenario;
mod script;
mod shell;
mod translate;
mod tree;
mod u32_match;
mod unit;

pub use class_show::ClassShow;
pub use current::{CurrentClass, CurrentConfig, CurrentFilter, CurrentQdisc};
pub use filter_show::FilterShow;
pub use handle::Handle;
pub use scenario::Placed;
pub use script::{Device, Explained, Script};
pub use translate::Keys;
