//! Packet I/O: which backend each cable end uses.

use narrows_io::cable_end::{Backend, CableEnd, CableEndError};
use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::host::time_is_virtual;
use narrows_io::namespace::Namespace;
use narrows_io::offload::leaves_work_to_the_other_end;
use narrows_io::packet_socket::{Offloads, PacketSocket, PacketSocketError, PacketSocketOptions};
use narrows_io::route_socket::{NetlinkError, RouteSocket};
use narrows_io::tap::TapError;
use narrows_io::xdp::{Group, PortOptions, XdpError};

/// The requested packet I/O.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cabling {
    /// The backend; by default the best available.
    pub backend: Option<Backend>,
    /// Whether links are inside the kernel if it offers that and everything fits.
    pub kernel_if_possible: bool,
    /// Whether to busy-poll, which runs the driver's receive work in our thread; AF_XDP only.
    pub busy_poll: bool,
    /// Whether to take trains of segments from the kernel unsplit, and hand packets that leave together back as
    /// trains.
    pub trains: bool,
    /// Whether the cables of hosts share a packet socket; by default if there are many.
    pub one_socket: Option<bool>,
}

/// With more cables than this, they share a packet socket. With one each, every packet costs two system calls and the
/// caches' content; AF_XDP has no memory for more.
const MANY: usize = PortOptions::MOST_SHARING;
/// What its receive buffer has for all cables, in bytes (the kernel doubles it): some 170,000 small frames.
const SHARED_BUFFER: usize = 64 << 20;
/// With a smaller buffer, as a user without root may have, they share one only if told to.
const SUFFICIENT_BUFFER: usize = 4 << 20;

impl Cabling {
    /// A note for the report about the requested backend.
    pub fn remark(self) -> Option<String> {
        let tap = "TAP devices have no receive timestamps: packets count as arriving when read";
        (self.backend == Some(Backend::Tap)).then(|| tap.into())
    }

    /// The same, with this backend as default.
    pub fn or(self, usual: Backend) -> Self {
        Self { backend: self.backend.or(Some(usual)), ..self }
    }

    /// Whether this many cables of hosts share packet sockets, if these have room for as many.
    pub(crate) fn may_share(self, cables: usize) -> bool {
        let fits =
            matches!(self.backend, None | Some(Backend::AfPacket)) && !self.trains && !time_is_virtual();
        fits && self.one_socket.unwrap_or(cables > MANY)
    }

    /// A socket for all cables in each of these namespaces; `None` if each cable is to have its own.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn shared_sockets(
        self,
        namespaces: &[Namespace],
    ) -> Result<Option<Vec<PacketSocket>>, PacketSocketError> {
        let open = |namespace| PacketSocket::open_on_all(namespace, SHARED_BUFFER);
        let sockets = namespaces.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let suffices = |socket: &PacketSocket| socket.receive_buffer() >= SUFFICIENT_BUFFER;
        let are_taken = self.one_socket.is_some() || sockets.iter().all(suffices);
        Ok((are_taken && !sockets.is_empty()).then_some(sockets))
    }

    /// Begins to lay the cables of one run: this many, to interfaces with at most this MTU.
    pub fn lay(self, cables: usize, mtu: u32) -> Laying {
        Laying { cabling: self, began: clock_monotonic(), cables, mtu, group: None, obstacle: None }
    }
}

/// The cables of a run being laid. AF_XDP cables share their memory.
#[derive(Debug)]
pub struct Laying {
    cabling: Cabling,
    began: MonotonicTime,
    cables: usize,
    mtu: u32,
    group: Option<Group>,
    /// Why the best backend failed, if none was requested.
    obstacle: Option<XdpError>,
}

impl Laying {
    /// The requested packet I/O.
    pub fn cabling(&self) -> Cabling {
        self.cabling
    }

    /// When it began.
    pub fn began(&self) -> MonotonicTime {
        self.began
    }

    /// Opens the end of a cable whose interface already exists.
    ///
    /// # Errors
    /// If the interface is gone, or the kernel rejects the requested backend.
    pub fn open(
        &mut self,
        namespace: &Namespace,
        interface: &str,
        mut options: PacketSocketOptions,
    ) -> Result<CableEnd, CableEndError> {
        if self.cabling.trains {
            // If the queueing discipline is bypassed, the kernel does not segment trains for an interface that
            // cannot.
            options.through_qdisc |= options.offloads == Offloads::Finished;
            options.offloads = Offloads::Carried;
        }
        match self.cabling.backend {
            Some(Backend::AfXdp) => return Ok(self.open_xdp(namespace, interface, options)?),
            Some(Backend::Tap) => return Err(TapError::NotNew { interface: interface.to_owned() }.into()),
            Some(Backend::Kernel) => return Err(CableEndError::NotForKernel(interface.to_owned())),
            // A tunnel ends at a socket of its own and at no interface.
            Some(Backend::AfPacket | Backend::Tunnel) => {}
            // A backend that failed once would fail again.
            None if self.obstacle.is_some() => {}
            None => match self.open_xdp(namespace, interface, options) {
                Ok(end) => return Ok(end),
                Err(error) => self.obstacle = Some(error),
            },
        }
        Ok(CableEnd::PacketSocket(PacketSocket::open_with(namespace, interface, options)?))
    }

    /// Why AF_XDP is not used although no backend was requested, if that may surprise the user.
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

/// The other end of a veth pair with an XDP program on our end. Its driver queues at most 256 frames for us and drops
/// further ones there, where none of our sockets counts them (`veth_xmit` in `drivers/net/veth.c`).
#[derive(Debug)]
pub struct FarEnd {
    sockets: RouteSocket,
    interface: String,
    before: u64,
}

impl FarEnd {
    /// The interface at the far end, if it may drop; counting starts here.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn of(end: &CableEnd, namespace: &Namespace, interface: &str) -> Result<Option<Self>, NetlinkError> {
        if end.backend() != Backend::AfXdp {
            return Ok(None);
        }
        let mut sockets = RouteSocket::open(namespace)?;
        let before = sockets.interface(interface)?.statistics.send_dropped;
        Ok(Some(Self { sockets, interface: interface.to_owned(), before }))
    }

    /// The same, whatever the backend: to compare what was sent with what came.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn sending(namespace: &Namespace, interface: &str) -> Result<Self, NetlinkError> {
        let mut sockets = RouteSocket::open(namespace)?;
        let before = sockets.interface(interface)?.statistics.sent_packets;
        Ok(Self { sockets, interface: interface.to_owned(), before })
    }

    /// Frames sent to us, of one made by [`FarEnd::sending`]. Unknown once the interface is gone.
    pub fn sent(&mut self) -> u64 {
        let found = self.sockets.interface(&self.interface);
        found.map_or(0, |found| found.statistics.sent_packets.saturating_sub(self.before))
    }

    /// Frames dropped on their way to us. Unknown once the interface is gone.
    pub fn dropped(&mut self) -> u64 {
        let found = self.sockets.interface(&self.interface);
        found.map_or(0, |found| found.statistics.send_dropped.saturating_sub(self.before))
    }
}
