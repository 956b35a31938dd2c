//! How frames get from the kernel to the engine and back: which of the kernel's ways each cable's end is reached by.

use narrows_io::cable_end::{Backend, CableEnd, CableEndError};
use narrows_io::namespace::Namespace;
use narrows_io::offload::leaves_work_to_the_other_end;
use narrows_io::packet_socket::{Offloads, PacketSocket, PacketSocketOptions};
use narrows_io::tap::TapError;
use narrows_io::xdp::{Group, PortOptions, XdpError};

/// Up to so many cables, AF_XDP is taken where nothing is named: with more, each would have little of the shared memory.
const MOST_SHARING: usize = 32;

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

    /// Begins to lay the cables of one run: so many, to interfaces of at most this MTU.
    pub fn lay(self, cables: usize, mtu: u32) -> Laying {
        Laying { cabling: self, cables, mtu, is_elsewhere: false, group: None, note: None }
    }

    /// The same where interfaces of the host take part, on which AF_XDP is taken only where it is named.
    pub fn lay_to_interfaces(self, cables: usize, mtu: u32) -> Laying {
        Laying { is_elsewhere: true, ..self.lay(cables, mtu) }
    }
}

/// The cables of one run while they are laid. AF_XDP's share their memory.
#[derive(Debug)]
pub struct Laying {
    cabling: Cabling,
    cables: usize,
    mtu: u32,
    /// Whether interfaces of the host take part.
    is_elsewhere: bool,
    group: Option<Group>,
    note: Option<String>,
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
            Some(Backend::AfXdp) => return Ok(self.open_xdp(namespace, interface, options)?),
            Some(Backend::AfPacket) => {}
            Some(Backend::Tap) => return Err(TapError::NotNew { interface: interface.to_owned() }.into()),
            // Only packet sockets carry trains between interfaces.
            None if self.cabling.trains => {}
            // What failed once would fail again.
            None if self.note.is_some() => {}
            None => match self.obstacle() {
                Some(obstacle) => self.note = Some(obstacle),
                // Measured to be the better one between namespaces, which is where most runs are (`docs/backends.md`).
                None => match self.open_xdp(namespace, interface, options) {
                    Ok(end) => return Ok(end),
                    Err(error) => self.note = Some(format!("af_packet instead of af_xdp: {error}")),
                },
            },
        }
        Ok(CableEnd::PacketSocket(PacketSocket::open_with(namespace, interface, options)?))
    }

    /// Why AF_XDP is not even tried, where nothing is named.
    fn obstacle(&self) -> Option<String> {
        if self.is_elsewhere {
            return Some(
                "af_packet: on interfaces that exist already, --backend af_xdp must be named".into(),
            );
        }
        let cables = self.cables;
        (cables > MOST_SHARING).then(|| {
            format!("af_packet: {cables} cables would have little each of the memory that af_xdp shares")
        })
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

    /// Why the usual way was not taken, if it was not.
    pub fn note(self) -> Option<String> {
        self.note
    }
}
