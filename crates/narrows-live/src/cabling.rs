//! How frames get from the kernel to the engine and back: which of the kernel's ways each cable's end is reached by.

use narrows_io::cable_end::{Backend, CableEnd, CableEndError};
use narrows_io::namespace::Namespace;
use narrows_io::offload::leaves_work_to_the_other_end;
use narrows_io::packet_socket::{Offloads, PacketSocket, PacketSocketOptions};
use narrows_io::tap::TapError;
use narrows_io::xdp::{Group, PortOptions, XdpError};

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cabling {
    /// By which of the kernel's ways; packet sockets, if none is named.
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

    /// Begins to lay the cables of one run: so many, to interfaces of at most this MTU.
    pub fn lay(self, cables: usize, mtu: u32) -> Laying {
        Laying { cabling: self, cables, mtu, group: None }
    }
}

/// The cables of one run while they are laid. AF_XDP's share their memory.
#[derive(Debug)]
pub struct Laying {
    cabling: Cabling,
    cables: usize,
    mtu: u32,
    group: Option<Group>,
}

impl Laying {
    /// What was asked for.
    pub fn cabling(&self) -> Cabling {
        self.cabling
    }

    /// Opens the end of a cable whose interface exists already.
    ///
    /// # Errors
    /// When the interface is gone, or the kernel refuses the way that was asked for.
    pub fn open(
        &mut self,
        namespace: &Namespace,
        interface: &str,
        mut options: PacketSocketOptions,
    ) -> Result<CableEnd, CableEndError> {
        if self.cabling.trains {
            // Past the interface's queueing discipline, the kernel cuts no train for an interface that cannot do it.
            options.through_qdisc |= options.offloads == Offloads::Finished;
            options.offloads = Offloads::Carried;
        }
        match self.cabling.backend {
            Some(Backend::AfXdp) => Ok(self.open_xdp(namespace, interface, options)?),
            Some(Backend::Tap) => Err(TapError::NotNew { interface: interface.to_owned() }.into()),
            // Measured to be late less often than AF_XDP between namespaces (`docs/backends.md`).
            Some(Backend::AfPacket) | None => {
                Ok(CableEnd::PacketSocket(PacketSocket::open_with(namespace, interface, options)?))
            }
        }
    }

    fn open_xdp(
        &mut self,
        namespace: &Namespace,
        interface: &str,
        options: PacketSocketOptions,
    ) -> Result<CableEnd, XdpError> {
        if self.cabling.trains {
            return Err(XdpError::Trains);
        }
        let unfinished = options.offloads == Offloads::Finished;
        if unfinished && leaves_work_to_the_other_end(namespace, interface) {
            return Err(XdpError::Unfinished { interface: interface.into() });
        }
        let (cables, mtu) = (self.cables, self.mtu);
        let group = self.group.get_or_insert_with(|| Group::new(cables, mtu, PortOptions::shared_by(cables)));
        let port = group.open(namespace, interface)?;
        Ok(CableEnd::Xdp(Box::new(port)))
    }
}
