//! How frames get from the kernel to the engine and back: which of the kernel's ways each cable's end is reached by.

use narrows_io::cable_end::{Backend, CableEnd, CableEndError};
use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::namespace::Namespace;
use narrows_io::offload::leaves_work_to_the_other_end;
use narrows_io::packet_socket::{Offloads, PacketSocket, PacketSocketOptions};
use narrows_io::route_socket::{NetlinkError, RouteSocket};
use narrows_io::tap::TapError;
use narrows_io::xdp::{Group, PortOptions, XdpError};

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cabling {
    /// By which of the kernel's ways; the best that can be had, if none is named.
    pub backend: Option<Backend>,
    /// Whether to look for frames by doing the driver's receive work, by AF_XDP.
    pub busy_poll: bool,
    /// Whether trains of segments are taken whole from the kernel, and given to it joined where packets leave together.
    pub trains: bool,
}

impl Cabling {
    /// What a reader of the report should know about the way that was asked for.
    pub fn remark(self) -> Option<String> {
        let tap = "TAP devices have no receive timestamps: packets count as arriving when read";
        (self.backend == Some(Backend::Tap)).then(|| tap.into())
    }

    /// The same, by this way where none is named.
    pub fn or(self, usual: Backend) -> Self {
        Self { backend: self.backend.or(Some(usual)), ..self }
    }

    /// Begins to lay the cables of one run: so many, to interfaces of at most this MTU.
    pub fn lay(self, cables: usize, mtu: u32) -> Laying {
        Laying { cabling: self, began: clock_monotonic(), cables, mtu, group: None, obstacle: None }
    }
}

/// The cables of one run while they are laid. AF_XDP's share their memory.
#[derive(Debug)]
pub struct Laying {
    cabling: Cabling,
    began: MonotonicTime,
    cables: usize,
    mtu: u32,
    group: Option<Group>,
    /// What the best way failed by, where none was named.
    obstacle: Option<XdpError>,
}

impl Laying {
    /// What was asked for.
    pub fn cabling(&self) -> Cabling {
        self.cabling
    }

    /// When it began.
    pub fn began(&self) -> MonotonicTime {
        self.began
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
            Some(Backend::Tap) => return Err(TapError::NotNew { interface: interface.to_owned() }.into()),
            Some(Backend::AfPacket) => {}
            // What failed once would fail again.
            None if self.obstacle.is_some() => {}
            None => match self.open_xdp(namespace, interface, options) {
                Ok(end) => return Ok(end),
                Err(error) => self.obstacle = Some(error),
            },
        }
        Ok(CableEnd::PacketSocket(PacketSocket::open_with(namespace, interface, options)?))
    }

    /// Why frames do not come by AF_XDP where no way was named, and whoever runs it might wonder.
    pub fn note(&self) -> Option<String> {
        let is_expected = |error: &&XdpError| matches!(error, XdpError::Trains) || error.is_of_privileges();
        let obstacle = self.obstacle.as_ref().filter(|error| !is_expected(error))?;
        Some(format!("af_packet instead of af_xdp: {obstacle}"))
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
        if self.cables > PortOptions::MOST_SHARING {
            return Err(XdpError::TooMany { ports: self.cables, most: PortOptions::MOST_SHARING });
        }
        let unfinished = options.offloads == Offloads::Finished;
        if unfinished && leaves_work_to_the_other_end(namespace, interface) {
            return Err(XdpError::Unfinished { interface: interface.into() });
        }
        let (cables, mtu) = (self.cables, self.mtu);
        let options = PortOptions { busy_poll: self.cabling.busy_poll, ..PortOptions::shared_by(cables) };
        let group = self.group.get_or_insert_with(|| Group::new(cables, mtu, options));
        let port = group.open(namespace, interface)?;
        Ok(CableEnd::Xdp(Box::new(port)))
    }
}

/// The other end of a veth pair with an XDP program on ours. Its driver holds 256 frames for us, and what finds that full is
/// dropped there, where none of our sockets counts it (`veth_xmit` in `drivers/net/veth.c`).
#[derive(Debug)]
pub struct FarEnd {
    sockets: RouteSocket,
    interface: String,
    before: u64,
}

impl FarEnd {
    /// The interface at the far end of ours, where it may drop; it counts from here on.
    ///
    /// # Errors
    /// When it is not there.
    pub fn of(end: &CableEnd, namespace: &Namespace, interface: &str) -> Result<Option<Self>, NetlinkError> {
        if end.backend() != Backend::AfXdp {
            return Ok(None);
        }
        let mut sockets = RouteSocket::open(namespace)?;
        let before = sockets.interface(interface)?.statistics.send_dropped;
        Ok(Some(Self { sockets, interface: interface.to_owned(), before }))
    }

    /// Frames dropped on their way to us. Of an interface that is gone none is known.
    pub fn dropped(&mut self) -> u64 {
        let found = self.sockets.interface(&self.interface);
        found.map_or(0, |found| found.statistics.send_dropped.saturating_sub(self.before))
    }
}
