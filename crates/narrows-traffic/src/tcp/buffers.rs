//! Memory for the buffers of sockets.
//!
//! A connection takes four buffers of the size of its window, of which a short one uses a little. The system makes zeroed
//! memory without touching it, but only once: memory that was given back is zeroed whole, which for a short transaction is
//! most of the work. So buffers go from one connection to another. What is in them does not matter: payloads are zeros.

use std::collections::BTreeMap;

use self_cell::{MutBorrow, self_cell};
use smoltcp::iface::SocketSet;
use smoltcp::socket::tcp::{Socket, SocketBuffer};

/// Buffers that no socket uses at present.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// By size.
    free: BTreeMap<usize, Vec<Vec<u8>>>,
}

/// Of what has arrived and of what is sent.
type Pair = [Vec<u8>; 2];

self_cell!(
    /// A set of one socket, and its buffers.
    pub(super) struct Buffered {
        owner: MutBorrow<Pair>,
        #[not_covariant]
        dependent: SocketSet,
    }
);

impl Buffers {
    fn take(&mut self, size: usize) -> Vec<u8> {
        let free = self.free.get_mut(&size).and_then(Vec::pop);
        free.unwrap_or_else(|| vec![0; size])
    }

    /// A socket with buffers of this size.
    pub(super) fn socket(&mut self, size: usize) -> Buffered {
        let pair = MutBorrow::new([self.take(size), self.take(size)]);
        Buffered::new(pair, |pair| {
            let [arrived, sent] = pair.borrow_mut();
            let [arrived, sent] = [arrived, sent].map(|bytes| SocketBuffer::new(&mut bytes[..]));
            let mut all = SocketSet::new(Vec::with_capacity(1));
            all.add(Socket::new(arrived, sent));
            all
        })
    }

    /// Takes the buffers of a socket.
    pub(super) fn reclaim(&mut self, socket: Buffered) {
        for bytes in socket.into_owner().into_inner() {
            self.free.entry(bytes.len()).or_default().push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_serve_again() {
        let mut buffers = Buffers::default();
        let (one, two) = (buffers.socket(1000), buffers.socket(2000));
        let places = |buffers: &Buffers| -> Vec<*const u8> {
            buffers.free.values().flatten().map(|bytes| bytes.as_ptr()).collect()
        };
        buffers.reclaim(one);
        buffers.reclaim(two);
        let before = places(&buffers);
        assert_eq!(before.len(), 4);
        let again = [buffers.socket(2000), buffers.socket(1000)];
        assert!(places(&buffers).is_empty());
        again.into_iter().for_each(|socket| buffers.reclaim(socket));
        let mut all = [before, places(&buffers)];
        all.iter_mut().for_each(|places| places.sort());
        assert_eq!(all[0], all[1]);
    }
}
