//! Our end of a cable: frames in and out of one interface, by one of the ways that the kernel offers.

use std::os::fd::{AsFd, BorrowedFd};

use crate::frame::{Frame, FramePool};
use crate::packet_socket::{
    PacketSocket, PacketSocketError, PacketStatistics, ReceiveBatch, Received, Sent, TrainStatistics,
};
use crate::tap::{Tap, TapError};
use crate::xdp::{Port, XdpError};

/// A way of the kernel's to take frames from an interface and put frames into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A packet socket ([`crate::packet_socket`]).
    AfPacket,
    /// An AF_XDP socket ([`crate::xdp`]).
    AfXdp,
    /// The descriptor of a TAP device ([`crate::tap`]).
    Tap,
}

impl Backend {
    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::AfPacket => "af_packet",
            Self::AfXdp => "af_xdp",
            Self::Tap => "tap",
        }
    }
}

/// What went wrong at a cable's end.
#[derive(Debug, thiserror::Error)]
pub enum CableEndError {
    /// Of a packet socket.
    #[error(transparent)]
    PacketSocket(#[from] PacketSocketError),
    /// Of an AF_XDP socket.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// Of a TAP device.
    #[error(transparent)]
    Tap(#[from] TapError),
}

impl CableEndError {
    /// Whether the interface was switched off or removed.
    pub fn is_down(&self) -> bool {
        match self {
            Self::PacketSocket(error) => matches!(error, PacketSocketError::Down { .. }),
            Self::Xdp(error) => matches!(error, XdpError::Down { .. }),
            Self::Tap(error) => matches!(error, TapError::Gone { .. }),
        }
    }
}

/// One end, however it is reached.
#[derive(Debug)]
pub enum CableEnd {
    /// By a packet socket.
    PacketSocket(PacketSocket),
    /// By AF_XDP sockets.
    Xdp(Box<Port>),
    /// By the descriptor of a TAP device.
    Tap(Box<Tap>),
}

impl CableEnd {
    /// How it is reached.
    pub fn backend(&self) -> Backend {
        match self {
            Self::PacketSocket(_) => Backend::AfPacket,
            Self::Xdp(_) => Backend::AfXdp,
            Self::Tap(_) => Backend::Tap,
        }
    }

    /// The packet socket, where it is reached by one.
    pub fn packet_socket(&self) -> Option<&PacketSocket> {
        match self {
            Self::PacketSocket(socket) => Some(socket),
            Self::Xdp(_) | Self::Tap(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn packet_socket_mut(&mut self) -> Option<&mut PacketSocket> {
        match self {
            Self::PacketSocket(socket) => Some(socket),
            Self::Xdp(_) | Self::Tap(_) => None,
        }
    }

    /// How it is reached, with what the interface's driver does of it, for a reader.
    pub fn description(&self) -> String {
        match self {
            Self::PacketSocket(_) | Self::Tap(_) => self.backend().name().into(),
            Self::Xdp(port) => {
                let copies = if port.is_zero_copy() { "without a copy" } else { "copied by the kernel" };
                format!("{} ({} mode, {copies})", self.backend().name(), port.mode().name())
            }
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
            Self::Xdp(port) => Ok(port.receive(pool, into)?),
            Self::Tap(tap) => Ok(tap.receive(batch, pool, into)?),
        }
    }

    /// Where trains are carried, says how many of the first frames the next call to [`CableEnd::send`] should be given, and
    /// marks those of them that leave as one with the frame before ([`Frame::was_joined`]).
    pub fn join<F: AsMut<Frame>>(&self, frames: &mut [F]) -> Option<usize> {
        match self {
            Self::PacketSocket(socket) => socket.join(frames),
            Self::Xdp(_) => None,
            Self::Tap(tap) => tap.join(frames),
        }
    }

    /// The trains of segments that came; nothing where none are carried.
    pub fn trains(&self) -> Option<TrainStatistics> {
        match self {
            Self::PacketSocket(socket) => socket.trains(),
            Self::Xdp(_) => None,
            Self::Tap(tap) => tap.trains(),
        }
    }

    /// Sends frames in order until all are sent or one is not taken. Never blocks. A frame that was sent may have been taken
    /// out of its place.
    pub fn send<F: AsRef<[u8]> + AsMut<Frame>>(&mut self, frames: &mut [F]) -> Sent {
        match self {
            Self::PacketSocket(socket) => socket.send_joined(frames),
            Self::Xdp(port) => port.send(frames),
            Self::Tap(tap) => tap.send(frames),
        }
    }

    /// Whether frames that were taken for sending wait for a busy interface; they are tried again at each call to
    /// [`CableEnd::receive`].
    pub fn has_unsent(&mut self) -> bool {
        match self {
            Self::PacketSocket(_) | Self::Tap(_) => false,
            Self::Xdp(port) => port.has_unsent(),
        }
    }

    /// What came and what was dropped since the end was opened.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn statistics(&mut self) -> Result<PacketStatistics, CableEndError> {
        match self {
            Self::PacketSocket(socket) => Ok(socket.statistics()?),
            Self::Xdp(port) => Ok(port.statistics()?),
            Self::Tap(tap) => Ok(tap.statistics()?),
        }
    }
}

impl AsFd for CableEnd {
    /// Readable when frames have come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::PacketSocket(socket) => socket.as_fd(),
            Self::Xdp(port) => port.as_fd(),
            Self::Tap(tap) => tap.as_fd(),
        }
    }
}
