//! What the sender of a packet is told about it.

use narrows_core::Bytes;
use narrows_core::rules::Answer;

use super::{IcmpError, icmp_error, tcp_reset};
use crate::LinkLayer;

/// What the sender of a packet is told about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An ICMP error.
    Error(IcmpError),
    /// A TCP reset, as from its destination.
    Reset,
}

impl Notice {
    /// Writes to `out` the frame that tells it to the sender of `frame`, see [`icmp_error`] and [`tcp_reset`]. `source` is
    /// the address that an ICMP error comes from; there is none without it. Returns whether there is a frame.
    pub fn write(
        self,
        layer: LinkLayer,
        frame: &[u8],
        source: Option<std::net::IpAddr>,
        out: &mut Vec<u8>,
    ) -> bool {
        match self {
            Self::Error(error) => source.is_some_and(|source| icmp_error(layer, frame, error, source, out)),
            Self::Reset => tcp_reset(layer, frame, out),
        }
    }
}

impl From<Answer> for Notice {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Reset | Answer::Reset6 => Self::Reset,
            Answer::Unreachable(code) | Answer::Unreachable6(code) => {
                Self::Error(IcmpError::Unreachable(code))
            }
            Answer::FragmentationNeeded(mtu) => Self::Error(IcmpError::TooBig(Bytes::new(mtu.into()))),
        }
    }
}
