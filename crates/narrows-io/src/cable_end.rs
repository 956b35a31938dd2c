//! Our end of a cable: receives and sends frames on one interface, through one of the kernel's packet I/O backends.

use std::os::fd::{AsFd, BorrowedFd};

use crate::frame::{Frame, FramePool};
use crate::kernel_end::KernelEnd;
use crate::link::InterfaceIndex;
use crate::packet_socket::{
    PacketSocket, PacketSocketError, PacketStatistics, ReceiveBatch, Received, Sent, TrainStatistics,
};
use crate::tap::{Tap, TapError};
use crate::tunnel::{Tunnel, TunnelError};
use crate::xdp::{Port, XdpError};

/// A packet I/O backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A packet socket ([`crate::packet_socket`]).
    AfPacket,
    /// An AF_XDP socket ([`crate::xdp`]).
    AfXdp,
    /// The descriptor of a TAP device ([`crate::tap`]).
    Tap,
    /// A tunnel to another machine ([`crate::tunnel`]).
    Tunnel,
    /// A link inside the kernel ([`crate::kernel_end`]).
    Kernel,
}

impl Backend {
    /// Its name in options and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::AfPacket => "af_packet",
            Self::AfXdp => "af_xdp",
            Self::Tap => "tap",
            Self::Tunnel => "tunnel",
            Self::Kernel => "kernel",
        }
    }
}

/// An error at a cable's end.
#[derive(Debug, thiserror::Error)]
pub enum CableEndError {
    /// A packet socket failed.
    #[error(transparent)]
    PacketSocket(#[from] PacketSocketError),
    /// An AF_XDP socket failed.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// A TAP device failed.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// A link inside the kernel joins two new hosts.
    #[error(
        "--backend kernel does not work at `{0}`: it is for run, shell and up, whose hosts it joins by a link of its own, and for attach"
    )]
    NotForKernel(String),
    /// A tunnel failed.
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
}

impl CableEndError {
    /// Whether the interface is down or was removed.
    pub fn is_down(&self) -> bool {
        match self {
            Self::PacketSocket(error) => matches!(error, PacketSocketError::Down { .. }),
            Self::Xdp(error) => matches!(error, XdpError::Down { .. }),
            Self::Tap(error) => matches!(error, TapError::Gone { .. }),
            Self::Tunnel(_) | Self::NotForKernel(_) => false,
        }
    }
}

/// A cable's end, with any backend.
#[derive(Debug)]
pub enum CableEnd {
    /// A packet socket.
    PacketSocket(PacketSocket),
    /// AF_XDP sockets.
    Xdp(Box<Port>),
    /// The descriptor of a TAP device.
    Tap(Box<Tap>),
    /// A tunnel to another machine.
    Tunnel(Box<Tunnel>),
    /// A link inside the kernel: frames are records, and none is sent from here.
    Kernel(Box<KernelEnd>),
}

impl CableEnd {
    /// Its backend.
    pub fn backend(&self) -> Backend {
        match self {
            Self::PacketSocket(_) => Backend::AfPacket,
            Self::Xdp(_) => Backend::AfXdp,
            Self::Tap(_) => Backend::Tap,
            Self::Tunnel(_) => Backend::Tunnel,
            Self::Kernel(_) => Backend::Kernel,
        }
    }

    /// The packet socket, if that is the backend.
    pub fn packet_socket(&self) -> Option<&PacketSocket> {
        match self {
            Self::PacketSocket(socket) => Some(socket),
            Self::Xdp(_) | Self::Tap(_) | Self::Tunnel(_) | Self::Kernel(_) => None,
        }
    }

    /// The link inside the kernel, if that is the backend.
    pub fn kernel_end_mut(&mut self) -> Option<&mut KernelEnd> {
        match self {
            Self::Kernel(end) => Some(end),
            _ => None,
        }
    }

    /// The packet socket, mutable.
    pub fn packet_socket_mut(&mut self) -> Option<&mut PacketSocket> {
        match self {
            Self::PacketSocket(socket) => Some(socket),
            Self::Xdp(_) | Self::Tap(_) | Self::Tunnel(_) | Self::Kernel(_) => None,
        }
    }

    /// The backend, with details of the interface's driver, for people.
    pub fn description(&self) -> String {
        match self {
            Self::PacketSocket(_) | Self::Tap(_) | Self::Tunnel(_) | Self::Kernel(_) => {
                self.backend().name().into()
            }
            Self::Xdp(port) => {
                let copies = if port.is_zero_copy() { "without a copy" } else { "copied by the kernel" };
                format!("{} ({} mode, {copies})", self.backend().name(), port.mode().name())
            }
        }
    }

    /// Receives pending frames, at most [`ReceiveBatch::FRAMES`] frames of the kernel's, and appends them to `into`;
    /// returns how many there were. Fewer than that means that nothing is left.
    ///
    /// # Errors
    /// If the interface is down, or the kernel refuses.
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
            Self::Tunnel(tunnel) => Ok(tunnel.receive(batch, pool, into)?),
            Self::Kernel(end) => Ok(end.receive(pool, into)),
        }
    }

    /// With trains, returns how many of the first frames to pass to the next call of [`CableEnd::send`], and marks
    /// those that are joined to the frame before ([`Frame::was_joined`]).
    pub fn join<F: AsMut<Frame>>(&self, frames: &mut [F]) -> Option<usize> {
        match self {
            Self::PacketSocket(socket) => socket.join(frames),
            Self::Xdp(_) | Self::Tunnel(_) | Self::Kernel(_) => None,
            Self::Tap(tap) => tap.join(frames),
        }
    }

    /// Counters of received trains; `None` if they are not carried.
    pub fn trains(&self) -> Option<TrainStatistics> {
        match self {
            Self::PacketSocket(socket) => socket.trains(),
            Self::Xdp(_) | Self::Tunnel(_) | Self::Kernel(_) => None,
            Self::Tap(tap) => tap.trains(),
        }
    }

    /// Sends frames in order until all are sent or one is not accepted. Never blocks. The memory of a sent frame may
    /// have been moved out.
    pub fn send<F: AsRef<[u8]> + AsMut<Frame>>(&mut self, frames: &mut [F]) -> Sent {
        match self {
            Self::PacketSocket(socket) => socket.send_joined(frames),
            Self::Xdp(port) => port.send(frames),
            Self::Tap(tap) => tap.send(frames),
            Self::Tunnel(tunnel) => tunnel.send(frames),
            // The kernel has delivered them.
            Self::Kernel(_) => Sent { count: frames.len(), stopped: None },
        }
    }

    /// The same at a packet socket of all interfaces: each frame leaves by its own.
    pub fn send_each<F: AsRef<[u8]> + AsMut<Frame>>(
        &mut self,
        frames: &mut [F],
        interface: impl Fn(&F) -> InterfaceIndex,
    ) -> Sent {
        match self {
            Self::PacketSocket(socket) => socket.send_each(frames, interface),
            _ => self.send(frames),
        }
    }

    /// Whether accepted frames are waiting for a busy interface; each call of [`CableEnd::receive`] retries them.
    pub fn has_unsent(&mut self) -> bool {
        match self {
            Self::PacketSocket(_) | Self::Tap(_) | Self::Tunnel(_) | Self::Kernel(_) => false,
            Self::Xdp(port) => port.has_unsent(),
        }
    }

    /// Frames that arrived and frames dropped since the end was opened.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn statistics(&mut self) -> Result<PacketStatistics, CableEndError> {
        match self {
            Self::PacketSocket(socket) => Ok(socket.statistics()?),
            Self::Xdp(port) => Ok(port.statistics()?),
            Self::Tap(tap) => Ok(tap.statistics()?),
            Self::Tunnel(tunnel) => Ok(tunnel.statistics()),
            Self::Kernel(end) => Ok(end.statistics()),
        }
    }
}

impl AsFd for CableEnd {
    /// Readable when frames have arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::PacketSocket(socket) => socket.as_fd(),
            Self::Xdp(port) => port.as_fd(),
            Self::Tap(tap) => tap.as_fd(),
            Self::Tunnel(tunnel) => tunnel.as_fd(),
            Self::Kernel(end) => end.as_fd(),
        }
    }
}
