//! All queues of one interface, and the memory that ports share.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use super::XdpError;
use super::kernel_clock::KernelClock;
use super::redirect;
use super::socket::{RingSizes, Sharing, Socket};
use crate::bpf::{BpfError, Link, Map, XdpMode};
use crate::link::InterfaceIndex;
use crate::namespace::Namespace;
use crate::offload;
use crate::packet_socket::{Guard, PacketStatistics};
use crate::route_socket::RouteSocket;
use crate::umem::{Lent, Umem};

/// Chunks for frames of up to the usual MTU, and for longer ones, which then take fewer.
const CHUNK: usize = 2048;
const LARGE_CHUNK: usize = 4096;
/// The longest MTU whose frames, with a VLAN tag or two, fit into a small chunk.
const USUAL_MTU: u32 = 1600;
/// Free chunks that a port keeps at hand, so that it needs no lock for most frames.
const AT_HAND: usize = 256;
/// Longest link header: two addresses, a type, a VLAN tag.
const LINK_HEADER: usize = 14;

/// In how many pieces the kernel takes a frame (`MAX_SKB_FRAGS`).
pub(super) const MOST_PIECES: usize = 17;
/// What a VLAN tag adds to a header.
pub(super) const TAG: usize = 4;

/// How ports are to be set up.
#[derive(Clone, Copy, Debug)]
pub struct PortOptions {
    /// Frames that may wait to be received on an interface; a power of two from 64 on.
    pub receive: u32,
    /// Frames that may wait to be sent.
    pub send: u32,
    /// Frames that may be on their way through the network in the memory that is shared with the kernel; more are copied.
    pub held: u32,
    /// Where the program runs; the best that the interface can, if nothing is said.
    pub mode: Option<XdpMode>,
    /// Whether looking for frames does the driver's receive work, instead of its interrupts. Costs a system call each time;
    /// drivers without it, veth for one, take no notice.
    pub busy_poll: bool,
}

impl PortOptions {
    /// The kernel keeps some 200 bytes at each port for each chunk that all of them share: for 32 ports some 200 MiB.
    pub const MOST_SHARING: usize = 32;

    /// For so many ports: the more there are, the less each has, so that all of them together lock some 64 MiB.
    pub fn shared_by(ports: usize) -> Self {
        let usual = Self::default();
        let share = 2 * usual.receive / u32::try_from(ports.max(2)).unwrap_or(u32::MAX);
        let receive = share.max(64).next_power_of_two().min(usual.receive);
        Self { receive, send: (receive / 4).max(64), ..usual }
    }
}

impl Default for PortOptions {
    /// 8192 frames to receive: 45 ms at 180,000 a second.
    fn default() -> Self {
        Self { receive: 8192, send: 1024, held: 8192, mode: None, busy_poll: false }
    }
}

/// Ports that share memory.
#[derive(Debug)]
pub struct Group {
    umem: Arc<Umem>,
    options: PortOptions,
    /// Chunks that are left for frames to be sent from elsewhere.
    reserve: usize,
    /// A socket that has the memory, and whether frames may be longer than a chunk.
    first: Option<(OwnedFd, bool)>,
    /// What frames are stamped by, once there is a port.
    clock: Option<KernelClock>,
}

impl Group {
    /// Memory for so many ports, whose interfaces have at most this MTU. It is taken and locked when the first port is
    /// opened.
    pub fn new(ports: usize, mtu: u32, options: PortOptions) -> Self {
        let chunk = if mtu <= USUAL_MTU { CHUNK } else { LARGE_CHUNK };
        let ports = ports.max(1);
        let reserve = ports * options.send as usize;
        let chunks = ports * (options.receive as usize + AT_HAND) + reserve + options.held as usize;
        let umem = Umem::new(u32::try_from(chunks).unwrap_or(u32::MAX), chunk);
        Self { umem, options, reserve, first: None, clock: None }
    }

    /// The memory.
    pub fn umem(&self) -> &Arc<Umem> {
        &self.umem
    }

    /// Opens a port on an interface that exists already and is up. All its frames come to us from here on.
    ///
    /// # Errors
    /// When the privilege is missing, a program or socket is there already, the kernel is too old, or memory may not be
    /// locked; then nothing has changed.
    pub fn open(&mut self, namespace: &Namespace, interface: &str) -> Result<Port, XdpError> {
        let found = RouteSocket::open(namespace)?.interface(interface)?;
        let queues = offload::receive_queues(namespace, interface);
        let guard = Guard::open(namespace, interface, found.index)?;
        let on = |cause| XdpError::Program { interface: interface.into(), cause };
        let sockets = Map::of_sockets("narrows", queues).map_err(on)?;
        let program = redirect::load(&sockets).map_err(on)?;
        let clock = match self.clock {
            Some(clock) => clock,
            None => *self.clock.insert(KernelClock::compare().map_err(on)?),
        };
        let is_first = self.first.is_none();
        let opened = namespace.run(|| {
            let mut opened = Vec::new();
            for queue in 0..queues {
                let socket = self.open_queue(interface, found.index, queue, queues)?;
                sockets.set_socket(queue, socket.as_fd()).map_err(on)?;
                opened.push(socket);
            }
            let longest = self.longest_mtu();
            if found.mtu as usize > longest {
                return Err(XdpError::TooLong { interface: interface.into(), mtu: found.mtu, most: longest });
            }
            Ok(opened)
        })?;
        if opened.is_err() && is_first {
            self.first = None;
        }
        let opened = opened?;
        let refused = |step| {
            move |cause: nix::Error| XdpError::Refused {
                step,
                interface: interface.into(),
                cause: cause.into(),
            }
        };
        let ready = ready(&guard, &opened).map_err(refused("wait for"))?;
        let mut port = Port {
            umem: Arc::clone(&self.umem),
            clock,
            zero_copy: opened.iter().all(Socket::is_zero_copy),
            lent: Lent::new(self.umem.chunks()),
            spare: Vec::new(),
            reserve: self.reserve,
            queues: opened,
            link: None,
            _sockets: sockets,
            mode: XdpMode::Native,
            guard,
            ready,
            interface: interface.into(),
            mtu: found.mtu,
            several_chunks: self.first.as_ref().is_some_and(|(_, several)| *several),
            busy_poll: self.options.busy_poll,
            idle: 0,
            received: 0,
            refused: 0,
        };
        port.fill(self.receive_ring(queues));
        // From here on there is room for what comes.
        let (link, mode) = namespace.run(|| attach(&program, found.index, self.options.mode))?.map_err(on)?;
        port.mode = mode;
        port.link = Some(link);
        Ok(port)
    }

    fn receive_ring(&self, queues: u32) -> u32 {
        (self.options.receive / queues.next_power_of_two()).max(64)
    }

    fn longest_mtu(&self) -> usize {
        let several = self.first.as_ref().is_some_and(|(_, several)| *several);
        self.umem.capacity() * if several { MOST_PIECES } else { 1 } - LINK_HEADER - TAG
    }

    /// Opens the socket of one queue, in the namespace of the calling thread.
    fn open_queue(
        &mut self,
        interface: &str,
        index: InterfaceIndex,
        queue: u32,
        queues: u32,
    ) -> Result<Socket, XdpError> {
        let sizes = RingSizes { receive: self.receive_ring(queues), send: self.options.send };
        let sharing = match &self.first {
            None => Sharing::First,
            Some((first, _)) => Sharing::With(first.as_fd()),
        };
        let socket = Socket::open(&self.umem, sharing, sizes, interface)?;
        let several_chunks = socket.bind(index, interface, queue, sharing)?;
        let refused = |step| move |cause| XdpError::Refused { step, interface: interface.into(), cause };
        if self.options.busy_poll {
            socket.prefer_busy_poll().map_err(refused("ask for busy polling on"))?;
        }
        if self.first.is_none() {
            self.first = Some((socket.duplicate().map_err(refused("duplicate"))?, several_chunks));
        }
        Ok(socket)
    }
}

/// Puts the program onto the interface.
fn attach(
    program: &crate::bpf::Program,
    index: InterfaceIndex,
    mode: Option<XdpMode>,
) -> Result<(Link, XdpMode), BpfError> {
    if let Some(mode) = mode {
        return Ok((Link::xdp(program, index, mode)?, mode));
    }
    match Link::xdp(program, index, XdpMode::Native) {
        Ok(link) => Ok((link, XdpMode::Native)),
        // The driver has no XDP, or not with this MTU or so many queues: the kernel does it behind the driver.
        Err(BpfError::Refused { .. }) => Ok((Link::xdp(program, index, XdpMode::Generic)?, XdpMode::Generic)),
        Err(error) => Err(error),
    }
}

/// Ready when one of the sockets is, or the interface is down.
fn ready(guard: &Guard, sockets: &[Socket]) -> Result<Epoll, nix::Error> {
    let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    for socket in sockets {
        ready.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
    }
    // What went wrong is always told.
    ready.add(guard, EpollEvent::new(EpollFlags::empty(), 1))?;
    Ok(ready)
}

/// An interface's frames, taken from its driver and given to it.
#[derive(Debug)]
pub struct Port {
    pub(super) umem: Arc<Umem>,
    /// What its frames are stamped by.
    pub(super) clock: KernelClock,
    /// What the kernel has of it through this port.
    pub(super) lent: Lent,
    /// Free chunks at hand.
    pub(super) spare: Vec<u32>,
    pub(super) reserve: usize,
    /// The first one sends.
    pub(super) queues: Vec<Socket>,
    link: Option<Link>,
    /// The program's map.
    _sockets: Map,
    mode: XdpMode,
    zero_copy: bool,
    guard: Guard,
    ready: Epoll,
    pub(super) interface: String,
    pub(super) mtu: u32,
    pub(super) several_chunks: bool,
    pub(super) busy_poll: bool,
    pub(super) idle: u32,
    pub(super) received: u64,
    /// Frames that the interface refused after it had taken them.
    pub(super) refused: u64,
}

impl Port {
    /// The interface's name when the port was opened.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Where the program runs.
    pub fn mode(&self) -> XdpMode {
        self.mode
    }

    /// Whether the driver works on the shared memory itself; else the kernel copies each frame into and out of it.
    pub fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Chunks of the shared memory that this port has: lent to the kernel, or free at hand.
    pub fn chunks(&self) -> usize {
        self.lent.count() + self.spare.len()
    }

    /// Whether frames that were taken for sending wait for a busy interface: [`Port::receive`] and [`Port::send`] try again.
    pub fn has_unsent(&mut self) -> bool {
        self.queues.first_mut().is_some_and(|socket| socket.send.pending() > 0 && socket.send.needs_wakeup())
    }

    /// What came and what was dropped since the port was opened.
    ///
    /// # Errors
    /// When the interface is down or gone, or the kernel refuses.
    pub fn statistics(&mut self) -> Result<PacketStatistics, XdpError> {
        self.refresh_mtu();
        let mut dropped = 0;
        for socket in &self.queues {
            dropped += socket.dropped().map_err(|cause| XdpError::Refused {
                step: "read the statistics of",
                interface: self.interface.clone(),
                cause,
            })?;
        }
        Ok(PacketStatistics { arrived: self.received + dropped, dropped, refused: self.refused })
    }

    /// Whether the interface is still there, and what it takes.
    pub(super) fn check(&mut self) -> Result<(), XdpError> {
        self.refresh_mtu();
        if self.guard.is_down() {
            return Err(XdpError::Down { interface: self.interface.clone() });
        }
        Ok(())
    }

    pub(super) fn refresh_mtu(&mut self) {
        if let Some(mtu) = self.guard.mtu(&self.interface) {
            self.mtu = mtu;
        }
    }

    /// Gives the kernel chunks to receive into.
    fn fill(&mut self, of_each: u32) {
        for queue in 0..self.queues.len() {
            self.umem.take(of_each as usize, self.reserve, &mut self.spare);
            for index in self.spare.drain(..) {
                self.lent.lend(index);
                // As many as there are places.
                self.queues[queue].fill.push(self.umem.frame_address(index));
            }
            self.queues[queue].fill.submit();
            let _ = self.queues[queue].wake_receiver();
        }
    }

    /// Takes back the chunks of what was sent.
    pub(super) fn reap(&mut self) {
        for socket in &mut self.queues {
            let done = socket.completion.available(1);
            for address in (0..done).filter_map(|ahead| socket.completion.peek(ahead)) {
                if let Some(index) = self.umem.index(address)
                    && self.lent.take_back(index)
                {
                    self.spare.push(index);
                }
            }
            if done > 0 {
                socket.completion.release(done);
            }
        }
        if self.spare.len() > AT_HAND {
            self.umem.give(self.spare.drain(AT_HAND / 2..));
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // The program first, then the sockets: then the kernel writes into no chunk any more.
        self.link = None;
        self.queues.clear();
        self.umem.give(self.lent.drain());
        self.umem.give(self.spare.drain(..));
    }
}

impl AsFd for Port {
    /// Readable when frames have come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.0.as_fd()
    }
}
