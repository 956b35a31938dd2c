//! Flow identification by hash, as in the fair queueing schedulers.

use crate::packet::FlowKey;
use crate::random::Seed;

/// Which header fields identify a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// Addresses, ports and protocol.
    #[default]
    FiveTuple,
    /// The source address.
    Source,
    /// The destination address.
    Destination,
    /// Both addresses.
    Addresses,
}

/// Hashes flows to classes.
#[derive(Clone, Copy, Debug)]
pub struct FlowHash {
    key: u64,
    classes: u32,
    identity: Identity,
}

impl FlowHash {
    /// Hashes to `classes` classes, at least one. Two hashes with the same seed and name are identical.
    pub fn new(seed: Seed, name: &str, classes: u32, identity: Identity) -> Self {
        Self { key: crate::random::key(seed, name, "flow hash"), classes: classes.max(1), identity }
    }

    /// The number of classes.
    pub const fn classes(&self) -> u32 {
        self.classes
    }

    /// The class of a flow.
    pub fn class(&self, key: &FlowKey) -> u32 {
        let (source, destination) = (fold(key.source), fold(key.destination));
        let ports = u64::from(key.source_port) << 32
            | u64::from(key.destination_port) << 8
            | u64::from(key.transport);
        let parts = match self.identity {
            Identity::FiveTuple => [source, destination, ports],
            Identity::Source => [source, 0, 0],
            Identity::Destination => [0, destination, 0],
            Identity::Addresses => [source, destination, 0],
        };
        let hash = parts.iter().fold(self.key, |hash, part| crate::random::mix(hash ^ part));
        ((u128::from(hash) * u128::from(self.classes)) >> 64) as u32
    }
}

/// A hash of addresses, ports and protocol.
pub(crate) fn five_tuple(key: &FlowKey, hash_key: u64) -> u64 {
    let ports =
        u64::from(key.source_port) << 32 | u64::from(key.destination_port) << 8 | u64::from(key.transport);
    let parts = [fold(key.source), fold(key.destination), ports];
    parts.into_iter().fold(hash_key, |hash, part| crate::random::mix(hash ^ part))
}

/// Folds an address into 64 bits.
fn fold(address: [u8; 16]) -> u64 {
    let address = u128::from_be_bytes(address);
    crate::random::mix((address >> 64) as u64) ^ address as u64
}

#[cfg(test)]
mod tests;
