//! Where what leaves an element goes.

use alloc::string::String;

/// Where a packet goes next, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Out of the network.
    Port(String),
    /// Into one lane of a link.
    Link {
        /// The link's name.
        name: String,
        /// 0 for a link of one direction.
        lane: u8,
    },
    /// To a set of rules.
    Rules {
        /// Its name.
        name: String,
        /// Which way: what ipfw calls "in", or "out".
        incoming: bool,
    },
    /// Out of a pipe, back to the rules that sent the packet there: to the next rule, or with one pass to where packets go
    /// that have passed.
    FromPipe {
        /// The name of the rules.
        rules: String,
        /// As it was on the way in.
        incoming: bool,
    },
    /// To a router.
    Router(String),
}
