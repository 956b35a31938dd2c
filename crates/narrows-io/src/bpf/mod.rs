//! BPF programs for the kernel's packet paths. Short ones are written as instructions here: no compiler, no library, no object
//! file.
//!
//! A program consists of [`Instruction`]s ([`Code`] resolves jumps), is loaded ([`Program`]) and attached to an
//! interface by a [`Link`]. A link is a descriptor: the kernel detaches the program when the descriptor is closed, so
//! nothing is left behind however a process ends. The kernel's verifier decides what may run.
//!
//! Operates in the namespace of the calling thread: interfaces are looked up there, so use it inside
//! [`crate::namespace::Namespace::run`].

mod btf;
mod code;
mod instruction;
mod link;
mod map;
mod mapped;
mod pin;
mod program;
mod struct_ops;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

pub use btf::Btf;
pub use code::{Code, Label};
pub use instruction::{Arithmetic, Condition, Helper, Instruction, Operand, Register, Width};
pub use link::{Direction, Link, TCX_DROP, TCX_NEXT, XdpMode};
pub use map::{Map, MapValue};
pub use mapped::MappedMap;
pub use pin::{PinnedAt, Pins};
pub use program::{FunctionTypes, Outcome, Program, ProgramKind, StructOpsMember};
pub use struct_ops::StructOps;

/// Why a program could not be loaded or attached.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// This process may not use BPF.
    #[error(
        "not allowed to {step}: BPF needs the capabilities CAP_BPF and CAP_NET_ADMIN over the host itself, which a user \
         namespace does not give; run it as root"
    )]
    Permission {
        /// What was tried.
        step: String,
    },
    /// The interface already has a program.
    #[error(
        "the interface with the number {0} has an XDP program already; take it off, as in `ip link set dev NAME xdp off`"
    )]
    Occupied(u32),
    /// The verifier rejected a program.
    #[error("the kernel's verifier refused the program `{name}`: {}", reason(log))]
    Verifier {
        /// The program's name.
        name: String,
        /// The end of the verifier's log.
        log: String,
    },
    /// Nothing can be pinned.
    #[error(
        "/sys/fs/bpf is not a BPF file system, in which what stays has a name: mount one with `mount -t bpf bpf /sys/fs/bpf`"
    )]
    NoFileSystem,
    /// The kernel refused for another reason.
    #[error("cannot {step}: {cause}")]
    Refused {
        /// What was tried.
        step: String,
        /// The kernel's error.
        cause: io::Error,
    },
}

impl BpfError {
    fn new(step: impl Into<String>, cause: io::Error) -> Self {
        let step = step.into();
        match cause.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission { step },
            _ => Self::Refused { step, cause },
        }
    }
}

/// The last line of the verifier's log but for statistics: why it refused.
fn reason(log: &str) -> &str {
    let is_statistics =
        |line: &&str| !line.starts_with("processed ") && !line.starts_with("verification time ");
    log.lines().rfind(is_statistics).unwrap_or("no reason")
}

/// The commands of bpf(2) used here.
#[derive(Clone, Copy, Debug)]
enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    ProgramLoad = 5,
    ObjectPin = 6,
    ObjectGet = 7,
    ProgramTestRun = 10,
    InfoByDescriptor = 15,
    ProgramQuery = 16,
    BtfLoad = 18,
    LinkCreate = 28,
}

/// The argument of a command: `union bpf_attr`, of which each command uses its own variant.
///
/// # Safety
/// The type is `repr(C)`, without padding that is not named, and its pointers are live for as long as it is used.
#[expect(unsafe_code, reason = "the kernel reads it as it lies in memory")]
unsafe trait Argument {}

#[expect(unsafe_code, reason = "no crate wraps bpf(2)")]
fn bpf<A: Argument>(command: Command, argument: &mut A) -> io::Result<i32> {
    // SAFETY: the argument is live, of the length given and, by the trait's contract, of the form that the kernel reads.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command as libc::c_int, std::ptr::from_mut(argument), size_of::<A>())
    };
    Ok(nix::errno::Errno::result(result)? as i32)
}

/// The same for a command that returns a descriptor.
#[expect(unsafe_code, reason = "the kernel says that the descriptor is ours")]
fn bpf_descriptor<A: Argument>(command: Command, argument: &mut A) -> io::Result<OwnedFd> {
    let descriptor = bpf(command, argument)?;
    // SAFETY: the descriptor is fresh and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// A name as the kernel accepts it: at most 15 letters, digits, points and underscores, followed by a zero.
fn short_name(name: &str) -> [u8; 16] {
    let mut short = [0; 16];
    for (to, from) in short[..15].iter_mut().zip(name.bytes()) {
        *to = if from.is_ascii_alphanumeric() || from == b'.' { from } else { b'_' };
    }
    short
}

fn address<T: ?Sized>(of: &T) -> u64 {
    std::ptr::from_ref(of).cast::<u8>() as u64
}
