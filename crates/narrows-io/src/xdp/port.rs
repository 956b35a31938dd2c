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

/// The chunk size for frames of up to the usual MTU; larger chunks, of which there are fewer, are for longer frames.
const CHUNK: usize = 2048;
const LARGE_CHUNK: usize = 4096;
/// The maximum MTU whose frames, with one or two VLAN tags, fit into a small chunk.
const USUAL_MTU: u32 = 1600;
/// Free chunks that a port keeps locally, so that most frames need no lock.
const AT_HAND: usize = 256;
/// The length of the link header: two addresses and a type.
const LINK_HEADER: usize = 14;

/// The maximum number of pieces of a frame in the kernel (`MAX_SKB_FRAGS`).
pub(super) const MOST_PIECES: usize = 17;
/// The additional length of a VLAN tag.
pub(super) const TAG: usize = 4;

/// Options of ports.
#[derive(Clone, Copy, Debug)]
pub struct PortOptions {
    /// The size of an interface's receive ring, in frames; a power of two of at least 64.
    pub receive: u32,
    /// The size of the send ring, in frames.
    pub send: u32,
    /// How many frames in the network may be in the memory shared with the kernel; further ones are copied.
    pub held: u32,
    /// Where the program runs; by default the best mode of the interface.
    pub mode: Option<XdpMode>,
    /// Whether to busy-poll, doing the driver's receive work instead of its interrupts. Costs a system call each
    /// time; drivers without support, such as veth, ignore it.
    pub busy_poll: bool,
}

impl PortOptions {
    /// For each chunk that all ports share, the kernel keeps some 200 bytes at each port: for 32 ports some 200 MiB.
    pub const MOST_SHARING: usize = 32;

    /// Options for this many ports: the more there are, the less memory each has, so that all of them together lock
    /// some 64 MiB.
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
    /// Chunks reserved for sending frames from other memory.
    reserve: usize,
    /// The socket that owns the memory, and whether frames may be longer than a chunk.
    first: Option<(OwnedFd, bool)>,
    /// The clock of the frames' timestamps, once there is a port.
    clock: Option<KernelClock>,
}

impl Group {
    /// Memory for this many ports, whose interfaces have at most this MTU. It is allocated and locked when the first
    /// port is opened.
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

    /// Opens a port on an interface that already exists and is up. All its frames go to us from now on.
    ///
    /// # Errors
    /// If the privilege is missing, a program or socket already exists there, the kernel is too old, or memory may
    /// not be locked; then nothing has changed.
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
        // From now on there is room for arriving frames.
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

/// Attaches the program to the interface.
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
        // The driver has no XDP, or not with this MTU or this many queues: use generic mode.
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
    // Errors are always reported.
    ready.add(guard, EpollEvent::new(EpollFlags::empty(), 1))?;
    Ok(ready)
}

/// Receives an interface's frames from its driver, and sends frames to it.
#[derive(Debug)]
pub struct Port {
    pub(super) umem: Arc<Umem>,
    /// Converts the timestamps of its frames.
    pub(super) clock: KernelClock,
    /// The chunks that this port has lent to the kernel.
    pub(super) lent: Lent,
    /// Local free chunks.
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
    /// Frames that the interface dropped after accepting them.
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

    /// Whether the driver uses the shared memory directly; otherwise the kernel copies each frame into and out of it.
    pub fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Chunks of the shared memory that this port has: lent to the kernel, or free locally.
    pub fn chunks(&self) -> usize {
        self.lent.count() + self.spare.len()
    }

    /// Whether accepted frames are waiting for a busy interface: [`Port::receive`] and [`Port::send`] retry.
    pub fn has_unsent(&mut self) -> bool {
        self.queues.first_mut().is_some_and(|socket| socket.send.pending() > 0 && socket.send.needs_wakeup())
    }

    /// Frames that arrived and frames dropped since the port was opened.
    ///
    /// # Errors
    /// If the interface is down or gone, or the kernel refuses.
    pub fn statistics(&mut self) -> Result<PacketStatistics, XdpError> {
        self.guard.follow_name();
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

    /// Checks that the interface is still there, and updates its limits.
    pub(super) fn check(&mut self) -> Result<(), XdpError> {
        self.refresh_mtu();
        if self.guard.is_down() {
            return Err(XdpError::Down { interface: self.interface.clone() });
        }
        Ok(())
    }

    pub(super) fn refresh_mtu(&mut self) {
        if let Some(mtu) = self.guard.mtu() {
            self.mtu = mtu;
        }
    }

    /// Gives the kernel chunks to receive into.
    fn fill(&mut self, of_each: u32) {
        for queue in 0..self.queues.len() {
            self.umem.take(of_each as usize, self.reserve, &mut self.spare);
            for index in self.spare.drain(..) {
                self.lent.lend(index);
                // There are as many as there are entries.
                self.queues[queue].fill.push(self.umem.frame_address(index));
            }
            self.queues[queue].fill.submit();
            let _ = self.queues[queue].wake_receiver();
        }
    }

    /// Takes back the chunks of sent frames.
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
        // The program first, then the sockets: after that the kernel writes into no chunk any more.
        self.link = None;
        self.queues.clear();
        self.umem.give(self.lent.drain());
        self.umem.give(self.spare.drain(..));
    }
}

impl AsFd for Port {
    /// Readable when frames have arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.0.as_fd()
    }
}
