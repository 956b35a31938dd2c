//! Links: a program on an interface, for as long as a descriptor is open.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{Argument, BpfError, Command, Program, bpf_descriptor};
use crate::link::InterfaceIndex;

/// `BPF_XDP`, `BPF_TCX_INGRESS`, `BPF_TCX_EGRESS`.
const XDP: u32 = 37;
const TCX_INGRESS: u32 = 46;
const TCX_EGRESS: u32 = 47;
/// `BPF_F_BEFORE`, with no program that it would be relative to.
const BEFORE_ALL: u32 = 1 << 3;

/// A classifier's verdict: the next one looks at the packet.
pub const TCX_NEXT: i32 = -1;
/// A classifier's verdict: the packet is dropped.
pub const TCX_DROP: i32 = 2;

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, on its own buffers.
    Native = 4,
    /// Behind the driver, on the kernel's packets: on any interface, and slower.
    Generic = 2,
}

impl XdpMode {
    /// As users read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }
}

/// Which packets of an interface a classifier sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// What the interface receives, before the stack.
    Ingress,
    /// What the stack sends, before the interface.
    Egress,
}

/// A program on an interface. The kernel takes it off when this is dropped, and when the process ends in whatever way.
#[derive(Debug)]
pub struct Link {
    descriptor: OwnedFd,
}

/// What `BPF_LINK_CREATE` reads.
#[derive(Debug)]
#[repr(C)]
struct Create {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
    relative: u32,
    zero: u32,
    revision: u64,
}

#[expect(unsafe_code, reason = "the kernel reads it as it lies in memory")]
// SAFETY: it is repr(C), without padding, and has no pointers.
unsafe impl Argument for Create {}

impl Link {
    /// Puts an XDP program onto an interface of the calling thread's namespace.
    ///
    /// # Errors
    /// When there is one already ([`BpfError::Occupied`]), the driver has no such mode or not with this MTU (`EOPNOTSUPP`,
    /// `ERANGE`, `EINVAL`), the interface is gone (`ENODEV`), or the privilege is missing.
    pub fn xdp(program: &Program, interface: InterfaceIndex, mode: XdpMode) -> Result<Self, BpfError> {
        let step = || {
            format!(
                "put the program `{}` onto the interface with the number {} in {} mode",
                program.name(),
                interface.0,
                mode.name()
            )
        };
        create(program, interface, XDP, mode as u32).map_err(|cause| match cause.raw_os_error() {
            Some(libc::EBUSY | libc::EEXIST) => BpfError::Occupied(interface.0),
            _ => BpfError::new(step(), cause),
        })
    }

    /// Puts a classifier onto an interface of the calling thread's namespace, before the others that are there. From Linux
    /// 6.6 on. What it returns: [`TCX_NEXT`] for the next one to look, or a verdict.
    ///
    /// # Errors
    /// When the kernel is older (`EINVAL`), the interface is gone (`ENODEV`), or the privilege is missing.
    pub fn tcx(program: &Program, interface: InterfaceIndex, direction: Direction) -> Result<Self, BpfError> {
        let attach_type = match direction {
            Direction::Ingress => TCX_INGRESS,
            Direction::Egress => TCX_EGRESS,
        };
        create(program, interface, attach_type, BEFORE_ALL).map_err(|cause| {
            let step = format!(
                "put the classifier `{}` onto the interface with the number {}",
                program.name(),
                interface.0
            );
            BpfError::new(step, cause)
        })
    }
}

fn create(program: &Program, interface: InterfaceIndex, attach_type: u32, flags: u32) -> io::Result<Link> {
    let mut create = Create {
        program: program.as_fd().as_raw_fd() as u32,
        interface: interface.0,
        attach_type,
        flags,
        relative: 0,
        zero: 0,
        revision: 0,
    };
    Ok(Link { descriptor: bpf_descriptor(Command::LinkCreate, &mut create)? })
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
