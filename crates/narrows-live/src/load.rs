//! What a packet carries through the engine of a live run.

use narrows_io::frame::Frame;
use narrows_traffic::Body;

/// The frame of a packet that came from a program, or what a generated packet carries, which has none.
#[derive(Debug)]
pub enum Load {
    /// A frame from an interface, or one that a router made.
    Frame(Frame),
    /// A packet of the scenario's own traffic: no interface sees it.
    Generated(Body),
}

impl AsRef<[u8]> for Load {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Frame(frame) => frame,
            Self::Generated(_) => &[],
        }
    }
}
