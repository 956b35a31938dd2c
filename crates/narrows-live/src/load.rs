//! The payload of packets in the engine of a live run.

use narrows_io::frame::Frame;
use narrows_traffic::Body;

/// The frame of a real packet, or the body of a generated packet, which has no frame.
#[derive(Debug)]
pub enum Load {
    /// A frame from an interface, or one created by a router.
    Frame(Frame),
    /// A packet of the scenario's own traffic, which no interface sees.
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
