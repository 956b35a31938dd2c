//! Packets in and out of the system.
