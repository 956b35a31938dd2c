//! Frames that the network itself sends to a host: it answers address resolution in place of the far end, tells senders
//! why their packets go no further, and its routers answer what is sent to themselves.

mod icmp_error;
mod own_address;
mod resolution;

pub use icmp_error::{IcmpError, icmp_error};
pub use own_address::{echo_reply, tcp_reset};
pub use resolution::{answer_resolution, asked_address, is_address_resolution};
