//! TAP devices: an interface in a namespace whose other end is a descriptor of ours.
//!
//! Frames that the namespace sends by the interface are read from the descriptor, one per call; frames written to it
//! arrive at the interface. There is a single interface, where a veth pair has two, and no packet socket; it needs
//! nothing but a namespace of one's own.
//!
//! The kernel provides no timestamps: a frame's arrival time is when it is read. Until then it waits in a queue of
//! 8,192 frames; when that is full, frames are dropped, and counted by the interface and in [`Tap::statistics`].
//!
//! The device is not persistent: it vanishes when its descriptor is closed in any way.

mod device;
mod transfer;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::frame::Frame;
use crate::link::MacAddress;
use crate::namespace::{Namespace, NamespaceError};
use crate::offloaded::join::{self, Headers};
use crate::packet_socket::{PacketStatistics, TrainStatistics};
use crate::route_socket::{NetlinkError, RouteSocket};

/// The device file that creates TAP devices.
const DEVICE: &str = "/dev/net/tun";
/// The maximum number of frames waiting to be read: 8 ms at a million a second.
const QUEUE: u32 = 8192;
/// The maximum length of a frame beyond the MTU: its Ethernet header and a VLAN tag.
const LINK_HEADERS: usize = 18;

/// Why a TAP device could not be created, or failed.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The interface could not be set up.
    #[error(transparent)]
    Interface(#[from] NetlinkError),
    /// The kernel has no TAP devices, or they are not visible in this container.
    #[error(
        "cannot make the TAP device `{interface}`: {DEVICE} is not there ({cause}); load the kernel's module with `modprobe \
         tun`, give the container that device, or use --backend af_packet"
    )]
    NotThere {
        /// The interface's name.
        interface: String,
        /// The kernel's error.
        cause: io::Error,
    },
    /// This process may not create one.
    #[error(
        "not allowed to make the TAP device `{interface}`: this needs write access to {DEVICE}, which most hosts \
         give to all (mode 0666), and the capability CAP_NET_ADMIN in the namespace; run it as root, or use --backend \
         af_packet"
    )]
    Permission {
        /// The interface's name.
        interface: String,
    },
    /// An interface of this name exists.
    #[error(
        "cannot make the TAP device `{interface}` in {namespace}: an interface of that name exists there already"
    )]
    Exists {
        /// The interface's name.
        interface: String,
        /// Its namespace.
        namespace: String,
    },
    /// TAP was requested for an existing interface.
    #[error(
        "`{interface}` exists already, and a TAP device is always a new interface: use --backend af_packet or af_xdp for it, \
         or `narrows run`, which makes the interfaces of its hosts"
    )]
    NotNew {
        /// The interface's name.
        interface: String,
    },
    /// The kernel refused a step.
    #[error("cannot {step} the TAP device `{interface}`: {cause}")]
    Refused {
        /// The step.
        step: &'static str,
        /// The interface's name.
        interface: String,
        /// The kernel's error.
        cause: io::Error,
    },
    /// The interface was removed.
    #[error("the interface `{interface}` was removed")]
    Gone {
        /// The interface's name.
        interface: String,
    },
}

/// A TAP device.
#[derive(Debug)]
pub struct Tap {
    descriptor: OwnedFd,
    interface: String,
    mtu: usize,
    /// In its namespace, to read how many frames were dropped.
    sockets: RouteSocket,
    statistics: PacketStatistics,
    /// If trains are carried: their counters, and a buffer for the headers of an outgoing one.
    trains: Option<(TrainStatistics, Box<Headers>)>,
}

impl Tap {
    /// Creates a TAP device in `namespace`, down, with this address and MTU. With `trains`, trains of segments are
    /// split into packets with incomplete checksums, as with
    /// [`Offloads::Carried`](crate::packet_socket::Offloads::Carried); without, the kernel splits them and completes
    /// the checksums beforehand.
    ///
    /// # Errors
    /// If the host has no TAP devices, a privilege is missing, or the name is taken or invalid.
    pub fn create(
        namespace: &Namespace,
        name: &str,
        mac: MacAddress,
        mtu: u32,
        trains: bool,
    ) -> Result<Self, TapError> {
        let mut sockets = RouteSocket::open(namespace)?;
        sockets.check_new(name, "make the TAP device")?;
        let made = namespace.run(|| device::make(name, trains))?;
        let descriptor = made.map_err(|(step, cause)| refusal(step, name, namespace, cause))?;
        sockets.prepare(name, mac, mtu, QUEUE)?;
        Ok(Self {
            descriptor,
            interface: name.into(),
            mtu: mtu as usize,
            sockets,
            statistics: PacketStatistics::default(),
            trains: trains.then(|| (TrainStatistics::default(), Box::new(Headers::EMPTY))),
        })
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Frames that arrived, and frames dropped because 8,192 were waiting.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn statistics(&mut self) -> Result<PacketStatistics, TapError> {
        let dropped = match self.sockets.interface(&self.interface) {
            Ok(interface) => interface.statistics.send_dropped,
            // It cannot have dropped any since it was removed.
            Err(NetlinkError::NotFound { .. }) => self.statistics.dropped,
            Err(error) => return Err(error.into()),
        };
        self.statistics.dropped = dropped;
        Ok(PacketStatistics { arrived: self.statistics.arrived + dropped, ..self.statistics })
    }

    /// Counters of received trains, if they are carried.
    pub fn trains(&self) -> Option<TrainStatistics> {
        self.trains.as_ref().map(|(statistics, _)| *statistics)
    }

    /// With trains, returns how many of the first frames to pass to one call of [`Tap::send`], and marks those that
    /// are joined to the frame before.
    pub fn join<F: AsMut<Frame>>(&self, frames: &mut [F]) -> Option<usize> {
        self.trains.as_ref().map(|_| join::join(frames))
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Whether TAP devices can be created here, as far as the device file tells; otherwise the reason.
///
/// # Errors
/// If it does not exist, or may not be opened.
pub fn available() -> io::Result<()> {
    device::open().map(drop)
}

fn refusal(step: &'static str, interface: &str, namespace: &Namespace, cause: io::Error) -> TapError {
    let interface = interface.to_owned();
    match cause.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => TapError::NotThere { interface, cause },
        Some(libc::EPERM | libc::EACCES) => TapError::Permission { interface },
        Some(libc::EBUSY | libc::EEXIST) => {
            TapError::Exists { interface, namespace: namespace.label().to_owned() }
        }
        _ => TapError::Refused { step, interface, cause },
    }
}
