//! What all proxies of a server share, and what all connections of a proxy share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use narrows_core::Seed;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::stream::Way;
use crate::toxic::ToxicInUse;
use crate::toxics::Around;

/// Bytes inside the toxics of all connections together. Beyond this a connection is read only while it holds nothing
/// itself, so every connection still makes progress.
const MOST_HELD: usize = 256 << 20;

/// Tells the user what no client is told.
pub(crate) type Note = fn(&str);

/// What all proxies share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) seed: Seed,
    pub(crate) clock: Clock,
    pub(crate) memory: Arc<Memory>,
    pub(crate) note: Note,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// The toxics of one stream, in order.
pub(crate) type Toxics = Arc<[Arc<ToxicInUse>]>;

/// What the connections of a proxy share.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) shared: Shared,
    pub(crate) proxy: Arc<str>,
    /// `HOST:PORT`, looked up for each connection.
    pub(crate) upstream: Arc<str>,
    /// The toxics of each stream, as they change.
    pub(crate) toxics: [watch::Receiver<Toxics>; 2],
    pub(crate) counts: Arc<Counts>,
}

impl Served {
    /// The next connection.
    pub(crate) fn next(&self) -> Around {
        let connection = self.counts.connections.fetch_add(1, Ordering::Relaxed);
        Around { seed: self.shared.seed, proxy: self.proxy.clone(), connection, datagrams: None }
    }

    pub(crate) fn note(&self, text: &str) {
        (self.shared.note)(&format!("proxy {}: {text}", self.proxy));
    }
}

/// Counters of a proxy.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    connections: AtomicU64,
    received: [AtomicU64; 2],
    sent: [AtomicU64; 2],
}

impl Counts {
    pub(crate) fn receive(&self, way: Way, bytes: usize) {
        self.received[way.index()].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn send(&self, way: Way, bytes: usize) {
        self.sent[way.index()].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes received and sent.
    pub(crate) fn read(&self, way: Way) -> [u64; 2] {
        [&self.received, &self.sent].map(|counts| counts[way.index()].load(Ordering::Relaxed))
    }
}

/// The bytes inside the toxics of all connections.
#[derive(Debug, Default)]
pub(crate) struct Memory(AtomicUsize);

impl Memory {
    pub(crate) fn has_room(&self) -> bool {
        self.0.load(Ordering::Relaxed) < MOST_HELD
    }
}

/// What one connection holds of it.
#[derive(Debug)]
pub(crate) struct Held {
    memory: Arc<Memory>,
    bytes: usize,
}

impl Held {
    pub(crate) fn none(memory: &Arc<Memory>) -> Self {
        Self { memory: memory.clone(), bytes: 0 }
    }

    pub(crate) fn set(&mut self, bytes: usize) {
        self.memory.0.fetch_add(bytes, Ordering::Relaxed);
        self.memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}
