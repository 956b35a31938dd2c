//! tc scripts: queueing disciplines (qdiscs), their classes and filters, as written in `tc` commands.
//!
//! [`Script::parse`] reads a script into commands, which build a tree of qdiscs and classes for each device
//! ([`Script::devices`]). A tree converts to the keys of one direction of a link ([`Device::egress`]), and
//! the policers of its ingress qdisc to keys of the other direction ([`Device::ingress`]). The options of
//! NetEm are in [`netem`](crate::netem). `docs/tc.md` lists what matches the kernel and what differs.
//!
//! ```
//! let script = narrows_scenario::tc::Script::parse("tc qdisc add dev eth0 root tbf rate 1mbit burst 5kb latency 70ms", "shape.sh")?;
//! let egress = script.devices(false)?[0].egress.clone();
//! assert_eq!(egress.keys[1].0, "scheduler");
//! # Ok::<(), narrows_scenario::ScenarioError>(())
//! ```

mod abbreviation;
mod action;
mod bands;
mod before;
mod both;
mod bucket;
mod cabling;
mod cake_filters;
mod cbs;
mod class;
mod class_show;
mod command;
mod counted;
mod current;
mod edit;
mod ematch;
mod etf;
mod ets;
mod explain;
mod filter;
mod filter_show;
mod filters;
mod flow;
mod flow_filters;
mod flower;
mod gate;
mod gred;
mod handle;
mod hfsc;
mod hooks;
mod icmp;
mod later;
mod line;
mod listing;
mod managed;
mod netfilter;
mod network;
mod on_link;
mod outgoing;
mod place;
mod programs;
mod protocol;
mod qdisc;
mod reading;
mod root_actions;
mod rules;
mod scenario;
mod script;
mod shared;
mod stab;
mod taprio;
mod translate;
mod tree;
mod u32;
mod unit;
mod verdict;
mod written;

pub use class_show::ClassShow;
pub use current::{CurrentClass, CurrentConfig, CurrentFilter, CurrentQdisc};
pub use filter_show::FilterShow;
pub use handle::Handle;
pub use later::Step;
pub use network::Placed;
pub use place::Place;
pub use script::{Device, Explained, Script};
pub use translate::Keys;
