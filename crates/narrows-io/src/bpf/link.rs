//! Links: a program attached to an interface for as long as a descriptor is open.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{Argument, BpfError, Command, Program, bpf, bpf_descriptor};
use crate::link::InterfaceIndex;

/// `BPF_XDP`, `BPF_TCX_INGRESS`, `BPF_TCX_EGRESS`.
const XDP: u32 = 37;
const TCX_INGRESS: u32 = 46;
const TCX_EGRESS: u32 = 47;
/// `BPF_STRUCT_OPS`.
const STRUCT_OPS: u32 = 44;
/// `BPF_F_BEFORE` without a reference program: before all others.
const BEFORE_ALL: u32 = 1 << 3;

/// A classifier's verdict: continue with the next classifier.
pub const TCX_NEXT: i32 = -1;
/// A classifier's verdict: drop the packet.
pub const TCX_DROP: i32 = 2;

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, on its own buffers.
    Native = 4,
    /// Behind the driver, on the kernel's packet buffers: on any interface, but slower.
    Generic = 2,
}

impl XdpMode {
    /// Its name in output.
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

impl Direction {
    const fn attach_type(self) -> u32 {
        match self {
            Self::Ingress => TCX_INGRESS,
            Self::Egress => TCX_EGRESS,
        }
    }
}

/// The argument of `BPF_PROG_QUERY`.
#[derive(Debug)]
#[repr(C)]
struct Query {
    interface: u32,
    attach_type: u32,
    flags: u32,
    attach_flags: u32,
    programs: u64,
    count: u32,
    unused: u32,
    program_flags: u64,
    links: u64,
    link_flags: u64,
    revision: u64,
}

#[expect(unsafe_code, reason = "the kernel reads it as it lies in memory")]
// SAFETY: it is repr(C), without padding, and what it points to lives as long as it is used.
unsafe impl Argument for Query {}

/// A program attached to an interface. The kernel detaches it when this is dropped, and when the process ends in
/// whatever way.
#[derive(Debug)]
pub struct Link {
    descriptor: OwnedFd,
}

/// The argument of `BPF_LINK_CREATE`.
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
    /// Attaches an XDP program to an interface of the calling thread's namespace.
    ///
    /// # Errors
    /// If there is one already ([`BpfError::Occupied`]), the driver does not support the mode or not with this MTU
    /// (`EOPNOTSUPP`, `ERANGE`, `EINVAL`), the interface is gone (`ENODEV`), or the privilege is missing.
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

    /// Makes a table of operations known to the kernel. What uses it then keeps it, but nothing new can.
    pub(super) fn struct_ops(table: &super::Map, name: &str) -> Result<Self, BpfError> {
        let mut create = Create {
            program: table.as_fd().as_raw_fd() as u32,
            interface: 0,
            attach_type: STRUCT_OPS,
            flags: 0,
            relative: 0,
            zero: 0,
            revision: 0,
        };
        bpf_descriptor(Command::LinkCreate, &mut create)
            .map(|descriptor| Self { descriptor })
            .map_err(|cause| BpfError::new(format!("register the operations `{name}`"), cause))
    }

    /// The numbers of the classifiers' links at an interface of the calling thread's namespace, of which there may be 64.
    ///
    /// # Errors
    /// If the interface is gone, or the privilege is missing.
    pub fn numbers_at(interface: InterfaceIndex, direction: Direction) -> Result<Vec<u32>, BpfError> {
        let mut numbers = [0_u32; 64];
        // Without room for these the kernel gives none of the others.
        let mut programs = numbers;
        let mut query = Query {
            interface: interface.0,
            attach_type: direction.attach_type(),
            flags: 0,
            attach_flags: 0,
            programs: programs.as_mut_ptr() as u64,
            count: numbers.len() as u32,
            unused: 0,
            program_flags: 0,
            links: numbers.as_mut_ptr() as u64,
            link_flags: 0,
            revision: 0,
        };
        match bpf(Command::ProgramQuery, &mut query) {
            // Nothing was ever there.
            Err(cause) if cause.raw_os_error() == Some(libc::ENOENT) => Ok(Vec::new()),
            Err(cause) => Err(BpfError::new(
                format!("list the classifiers of the interface with the number {}", interface.0),
                cause,
            )),
            Ok(_) => Ok(numbers.into_iter().take(query.count as usize).collect()),
        }
    }

    /// Attaches a classifier to an interface of the calling thread's namespace, before existing ones. Since Linux
    /// 6.6. It returns [`TCX_NEXT`] to continue with the next one, or a verdict.
    ///
    /// # Errors
    /// If the kernel is older (`EINVAL`), the interface is gone (`ENODEV`), or the privilege is missing.
    pub fn tcx(program: &Program, interface: InterfaceIndex, direction: Direction) -> Result<Self, BpfError> {
        create(program, interface, direction.attach_type(), BEFORE_ALL).map_err(|cause| {
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
