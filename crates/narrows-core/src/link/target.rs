//! Where packets go when they leave an element.

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
    /// To a rule set.
    Rules {
        /// The name of the rule set.
        name: String,
        /// The direction: ipfw's "in" if true, otherwise "out".
        incoming: bool,
    },
    /// Out of a pipe, back to the rules that sent the packet there: to the next rule or, with one-pass, to
    /// where passed packets go.
    FromPipe {
        /// The name of the rule set.
        rules: String,
        /// The direction, as on the way in.
        incoming: bool,
    },
    /// To a router.
    Router(String),
    /// Into a port of a switch.
    Switch {
        /// The switch's name.
        name: String,
        /// The port, from 0.
        port: u16,
    },
}
