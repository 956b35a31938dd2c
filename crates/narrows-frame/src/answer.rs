//! Frames that the network itself sends to a host: ARP/ND replies on behalf of the far end, ICMP errors that tell
//! senders why their packets were not forwarded, replies of routers to packets addressed to them, and a router's own
//! address resolution.

mod icmp_error;
mod neighbour;
mod notice;
mod own_address;
mod resolution;

pub use icmp_error::{IcmpError, icmp_error};
pub use neighbour::{Neighbour, ask_neighbour, heard_neighbour};
pub use notice::Notice;
pub use own_address::{echo_reply, tcp_reset};
pub use resolution::{answer_resolution, asked_address, is_address_resolution};
