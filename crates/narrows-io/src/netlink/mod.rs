//! Netlink: requests to the kernel's network configuration and their answers.
//!
//! A blocking socket, one request at a time. The few messages needed here (route netlink and nf_tables) are encoded
//! by hand on [`message`]: crates for route netlink bring an async runtime or thousands of types, and nf_tables would
//! still have to be encoded by hand.

mod message;
mod socket;

pub(crate) use message::{Attributes, Message, Request, messages, u16_at, u32_at};
pub(crate) use socket::{Answer, KernelRefusal, Netlink};
