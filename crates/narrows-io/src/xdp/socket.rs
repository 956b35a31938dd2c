//! One AF_XDP socket: one queue of an interface, and its four rings.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;

use super::ring::{Consumer, Parts, Producer};
use super::{Umem, XdpError};
use crate::link::InterfaceIndex;
use crate::socket_option::{option, set_option};
use crate::umem::HEADROOM;

/// How often and how long binding is retried while the queue is still being freed.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// A descriptor of a frame: `struct xdp_desc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Descriptor {
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) options: u32,
}

impl Descriptor {
    /// Whether the frame continues in the next descriptor.
    pub(super) fn is_continued(self) -> bool {
        self.options & libc::XDP_PKT_CONTD != 0
    }
}

/// The sizes of a socket's rings, in entries; powers of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingSizes {
    pub(super) receive: u32,
    pub(super) send: u32,
}

/// How a socket shares its memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sharing<'a> {
    /// It is the first.
    First,
    /// With this bound socket.
    With(BorrowedFd<'a>),
}

/// The socket and its rings.
#[derive(Debug)]
pub(super) struct Socket {
    // The rings are in the regions, which are therefore dropped last.
    pub(super) fill: Producer<u64>,
    pub(super) completion: Consumer<u64>,
    pub(super) receive: Consumer<Descriptor>,
    pub(super) send: Producer<Descriptor>,
    descriptor: OwnedFd,
    _regions: [Region; 4],
}

impl Socket {
    /// Opens a socket in the namespace of the calling thread and sets up its rings.
    pub(super) fn open(
        umem: &Arc<Umem>,
        sharing: Sharing<'_>,
        sizes: RingSizes,
        interface: &str,
    ) -> Result<Self, XdpError> {
        let refused =
            |step| move |cause: io::Error| XdpError::Refused { step, interface: interface.into(), cause };
        let descriptor = unbound_socket().map_err(|cause| match cause.raw_os_error() {
            Some(libc::EAFNOSUPPORT | libc::EINVAL) => XdpError::Unsupported,
            _ => refused("open")(cause),
        })?;
        if let Sharing::First = sharing {
            register(&descriptor, umem).map_err(|cause| match cause.raw_os_error() {
                Some(libc::ENOBUFS | libc::ENOMEM) => {
                    XdpError::LockedMemory { mebibytes: umem.region().1 >> 20 }
                }
                _ => refused("share memory with")(cause),
            })?;
        }
        for (ring, size) in [
            (libc::XDP_UMEM_FILL_RING, sizes.receive),
            (libc::XDP_UMEM_COMPLETION_RING, sizes.send),
            (libc::XDP_RX_RING, sizes.receive),
            (libc::XDP_TX_RING, sizes.send),
        ] {
            set_option(&descriptor, libc::SOL_XDP, ring, &size).map_err(refused("make the rings of"))?;
        }
        let offsets: libc::xdp_mmap_offsets = option(&descriptor, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)
            .map_err(refused("read the rings of"))?;
        let map = |at, offsets: &libc::xdp_ring_offset, size: u32, entry: usize| {
            Region::of_socket(&descriptor, at, offsets.desc as usize + size as usize * entry)
                .map_err(refused("map the rings of"))
        };
        let regions = [
            map(libc::XDP_UMEM_PGOFF_FILL_RING as _, &offsets.fr, sizes.receive, 8)?,
            map(libc::XDP_UMEM_PGOFF_COMPLETION_RING as _, &offsets.cr, sizes.send, 8)?,
            map(libc::XDP_PGOFF_RX_RING as _, &offsets.rx, sizes.receive, size_of::<Descriptor>())?,
            map(libc::XDP_PGOFF_TX_RING as _, &offsets.tx, sizes.send, size_of::<Descriptor>())?,
        ];
        Ok(Self::with_rings(descriptor, regions, &offsets, sizes))
    }

    #[expect(unsafe_code, reason = "rings lie in shared memory")]
    fn with_rings(
        descriptor: OwnedFd,
        regions: [Region; 4],
        offsets: &libc::xdp_mmap_offsets,
        sizes: RingSizes,
    ) -> Self {
        let [fill, completion, receive, send] = &regions;
        // SAFETY: each region was mapped for its ring, with room for so many entries, and lives as long as the rings do;
        // the kernel's descriptors are plain integers; we are the only ones on our side of each.
        let (fill, completion, receive, send) = unsafe {
            (
                Producer::new(fill.ring(&offsets.fr, sizes.receive)),
                Consumer::new(completion.ring(&offsets.cr, sizes.send)),
                Consumer::new(receive.ring(&offsets.rx, sizes.receive)),
                Producer::new(send.ring(&offsets.tx, sizes.send)),
            )
        };
        Self { fill, completion, receive, send, descriptor, _regions: regions }
    }

    /// Binds it to a queue; frames arrive once it is in the program's map. Returns whether frames may be longer than
    /// a chunk.
    pub(super) fn bind(
        &self,
        interface: InterfaceIndex,
        name: &str,
        queue: u32,
        sharing: Sharing<'_>,
    ) -> Result<bool, XdpError> {
        let outcome = match sharing {
            // The rest is as for the socket with which the memory is shared.
            Sharing::With(other) => {
                self.bind_with(libc::XDP_SHARED_UMEM, interface, queue, other.as_raw_fd()).map(|()| true)
            }
            Sharing::First => {
                let flags = libc::XDP_USE_NEED_WAKEUP;
                match self.bind_with(flags | libc::XDP_USE_SG, interface, queue, 0) {
                    // Kernels before 6.6 do not support frames in several chunks.
                    Err(Errno::EINVAL) => self.bind_with(flags, interface, queue, 0).map(|()| false),
                    outcome => outcome.map(|()| true),
                }
            }
        };
        outcome.map_err(|errno| match errno {
            Errno::EBUSY => XdpError::Busy { interface: name.into(), queue },
            Errno::ENETDOWN | Errno::ENODEV => XdpError::Down { interface: name.into() },
            errno => XdpError::Refused { step: "bind", interface: name.into(), cause: errno.into() },
        })
    }

    /// A queue that was just in use is freed some time later: EBUSY is worth a few retries.
    fn bind_with(
        &self,
        flags: u16,
        interface: InterfaceIndex,
        queue: u32,
        shared_with: i32,
    ) -> Result<(), Errno> {
        for _ in 0..TRIES {
            match self.bind_once(flags, interface, queue, shared_with) {
                Err(Errno::EBUSY) => std::thread::sleep(PAUSE),
                outcome => return outcome,
            }
        }
        Err(Errno::EBUSY)
    }

    #[expect(unsafe_code, reason = "nix has no such address")]
    fn bind_once(
        &self,
        flags: u16,
        interface: InterfaceIndex,
        queue: u32,
        shared_with: i32,
    ) -> Result<(), Errno> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: interface.0,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: shared_with as u32,
        };
        // SAFETY: the address is live and of the length given.
        let result = unsafe {
            libc::bind(
                self.descriptor.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
            )
        };
        Errno::result(result).map(drop)
    }

    /// Makes the kernel process the transmit ring.
    #[expect(unsafe_code, reason = "a system call without any data")]
    pub(super) fn wake_sender(&self) -> Result<(), Errno> {
        // SAFETY: no pointers are passed.
        let result = unsafe {
            libc::sendto(
                self.descriptor.as_raw_fd(),
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null(),
                0,
            )
        };
        Errno::result(result).map(drop)
    }

    /// Makes the kernel process the fill ring, or do the driver's receive work.
    #[expect(unsafe_code, reason = "a system call without any data")]
    pub(super) fn wake_receiver(&self) -> Result<(), Errno> {
        // SAFETY: no pointers are passed.
        let result = unsafe {
            libc::recvfrom(
                self.descriptor.as_raw_fd(),
                std::ptr::null_mut(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        Errno::result(result).map(drop)
    }

    /// Frames dropped by the kernel for lack of room.
    pub(super) fn dropped(&self) -> io::Result<u64> {
        let statistics: libc::xdp_statistics = option(&self.descriptor, libc::SOL_XDP, libc::XDP_STATISTICS)?;
        Ok(statistics.rx_dropped + statistics.rx_ring_full)
    }

    /// Whether the driver uses our memory directly, without a copy.
    pub(super) fn is_zero_copy(&self) -> bool {
        let options: io::Result<u32> = option(&self.descriptor, libc::SOL_XDP, libc::XDP_OPTIONS);
        options.is_ok_and(|options| options & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// Lets us do the driver's receive work when we poll for frames, instead of interrupts.
    pub(super) fn prefer_busy_poll(&self) -> io::Result<()> {
        /// Of `asm-generic/socket.h`.
        const SO_BUSY_POLL: i32 = 46;
        const SO_PREFER_BUSY_POLL: i32 = 69;
        const SO_BUSY_POLL_BUDGET: i32 = 70;
        set_option(&self.descriptor, libc::SOL_SOCKET, SO_PREFER_BUSY_POLL, &1i32)?;
        set_option(&self.descriptor, libc::SOL_SOCKET, SO_BUSY_POLL, &20i32)?;
        set_option(&self.descriptor, libc::SOL_SOCKET, SO_BUSY_POLL_BUDGET, &64i32)
    }

    /// A duplicate of its descriptor.
    pub(super) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.descriptor.try_clone()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[expect(unsafe_code, reason = "nix has no AF_XDP")]
fn unbound_socket() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let descriptor = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    let descriptor = Errno::result(descriptor)?;
    // SAFETY: the descriptor is fresh and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn register(socket: &OwnedFd, umem: &Umem) -> io::Result<()> {
    let (addr, len) = umem.region();
    let memory =
        libc::xdp_umem_reg_v1 { addr, len, chunk_size: umem.chunk_size() as u32, headroom: HEADROOM as u32 };
    set_option(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &memory)
}

/// Kernel memory mapped into our address space.
#[derive(Debug)]
struct Region {
    memory: NonNull<u8>,
    length: usize,
}

#[expect(unsafe_code, reason = "the memory is reached by a pointer")]
// SAFETY: it is shared memory; who reaches it is the rings' business.
unsafe impl Send for Region {}

impl Region {
    #[expect(unsafe_code, reason = "a system call that makes memory")]
    fn of_socket(socket: &OwnedFd, at: libc::off_t, length: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at no given address touches no other memory.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.as_raw_fd(),
                at,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { memory, length })
    }

    #[expect(unsafe_code, reason = "parts of a ring")]
    fn ring<T>(&self, offsets: &libc::xdp_ring_offset, size: u32) -> Parts<T> {
        // SAFETY: the kernel said that its ring's parts lie at these places of the mapping.
        unsafe {
            Parts {
                producer: self.memory.add(offsets.producer as usize).cast(),
                consumer: self.memory.add(offsets.consumer as usize).cast(),
                flags: self.memory.add(offsets.flags as usize).cast(),
                entries: self.memory.add(offsets.desc as usize).cast(),
                size,
            }
        }
    }
}

impl Drop for Region {
    #[expect(unsafe_code, reason = "memory that was mapped by hand")]
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and nobody points into it any more: the rings go before it.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.length) };
    }
}
