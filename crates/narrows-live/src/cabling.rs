//! How frames get from the kernel to the engine and back: which of the kernel's ways each cable's end is reached by.

use narrows_io::cable_end::{Backend, CableEnd, CableEndError};
use narrows_io::namespace::Namespace;
use narrows_io::packet_socket::{Offloads, PacketSocket, PacketSocketOptions};
use narrows_io::tap::TapError;

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cabling {
    /// By which of the kernel's ways; the best that there is, if none is named.
    pub backend: Option<Backend>,
    /// Whether trains of segments are taken whole from the kernel, and given to it joined where packets leave together.
    pub trains: bool,
}

impl Cabling {
    /// What a reader of the report should know about the way that was asked for.
    pub fn remark(self) -> Option<String> {
        let tap = "hosts are at TAP devices, which have no stamps: a packet has arrived when it was read";
        (self.backend == Some(Backend::Tap)).then(|| tap.into())
    }

    /// Opens the end of a cable whose interface exists already.
    ///
    /// # Errors
    /// When the interface is gone, or the kernel refuses the way that was asked for.
    pub fn open(
        self,
        namespace: &Namespace,
        interface: &str,
        mut options: PacketSocketOptions,
    ) -> Result<CableEnd, CableEndError> {
        if self.trains {
            // Past the interface's queueing discipline, the kernel cuts no train for an interface that cannot do it.
            options.through_qdisc |= options.offloads == Offloads::Finished;
            options.offloads = Offloads::Carried;
        }
        match self.backend {
            None | Some(Backend::AfPacket | Backend::AfXdp) => {
                Ok(CableEnd::PacketSocket(PacketSocket::open_with(namespace, interface, options)?))
            }
            Some(Backend::Tap) => Err(TapError::NotNew { interface: interface.to_owned() }.into()),
        }
    }
}
