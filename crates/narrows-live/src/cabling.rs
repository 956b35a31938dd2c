//! How frames get from the kernel to the engine and back: which of the kernel's ways each cable's end is reached by.

use narrows_io::cable_end::{Backend, CableEnd, CableEndError};
use narrows_io::namespace::Namespace;
use narrows_io::packet_socket::{PacketSocket, PacketSocketOptions};

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cabling {
    /// By which of the kernel's ways; the best that there is, if none is named.
    pub backend: Option<Backend>,
}

impl Cabling {
    /// Opens the end of a cable whose interface exists already.
    ///
    /// # Errors
    /// When the interface is gone, or the kernel refuses the way that was asked for.
    pub fn open(
        self,
        namespace: &Namespace,
        interface: &str,
        options: PacketSocketOptions,
    ) -> Result<CableEnd, CableEndError> {
        match self.backend {
            None | Some(Backend::AfPacket | Backend::AfXdp) => {
                Ok(CableEnd::PacketSocket(PacketSocket::open_with(namespace, interface, options)?))
            }
        }
    }
}
