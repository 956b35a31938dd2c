//! Our end of a cable: frames in and out of one interface, by one of the ways that the kernel offers.

use std::os::fd::{AsFd, BorrowedFd};

use crate::frame::{Frame, FramePool};
use crate::packet_socket::{PacketSocket, PacketSocketError, PacketStatistics, ReceiveBatch, Received, Sent};

/// A way of the kernel's to take frames from an interface and put frames into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A packet socket ([`crate::packet_socket`]).
    AfPacket,
}

impl Backend {
    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::AfPacket => "af_packet",
        }
    }
}

/// What went wrong at a cable's end.
#[derive(Debug, thiserror::Error)]
pub enum CableEndError {
    /// Of a packet socket.
    #[error(transparent)]
    PacketSocket(#[from] PacketSocketError),
}

impl CableEndError {
    /// Whether the interface was switched off or removed.
    pub fn is_down(&self) -> bool {
        match self {
            Self::PacketSocket(error) => matches!(error, PacketSocketError::Down { .. }),
        }
    }
}

/// One end, however it is reached.
#[derive(Debug)]
pub enum CableEnd {
    /// By a packet socket.
    PacketSocket(PacketSocket),
}

impl CableEnd {
    /// How it is reached.
    pub fn backend(&self) -> Backend {
        match self {
            Self::PacketSocket(_) => Backend::AfPacket,
        }
    }

    /// Receives what has come, at most [`ReceiveBatch::FRAMES`] frames of the kernel's, and appends it to `into`; how many
    /// there were. Fewer than that means that nothing is waiting.
    ///
    /// # Errors
    /// When the interface is down, or the kernel refuses.
    pub fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        pool: &mut FramePool,
        into: &mut Vec<Received>,
    ) -> Result<usize, CableEndError> {
        match self {
            Self::PacketSocket(socket) => Ok(socket.receive(batch, pool, into)?),
        }
    }

    /// Sends frames in order until all are sent or one is not taken. Never blocks. A frame that was sent may have been taken
    /// out of its place.
    pub fn send<F: AsRef<[u8]> + AsMut<Frame>>(&mut self, frames: &mut [F]) -> Sent {
        match self {
            Self::PacketSocket(socket) => socket.send(frames),
        }
    }

    /// What came and what was dropped since the end was opened.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn statistics(&mut self) -> Result<PacketStatistics, CableEndError> {
        match self {
            Self::PacketSocket(socket) => Ok(socket.statistics()?),
        }
    }
}

impl AsFd for CableEnd {
    /// Readable when frames have come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::PacketSocket(socket) => socket.as_fd(),
        }
    }
}
