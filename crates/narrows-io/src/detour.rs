//! Redirects an interface's frames through us, without changing the interface.
//!
//! ```text
//! programs ── stack ── IF ── the outside          in the interface's namespace
//!               │ ↖  ↗ │
//!            inside  outside                      two cables; their other ends are ours
//! ```
//!
//! A classifier at the egress of IF redirects outgoing frames into the cable `inside`, whose other end we read.
//! Frames that we write to the other end of `outside` arrive in the interface's namespace, where a classifier sends
//! them out through IF. Frames received by IF take the opposite path. Two things identify returning frames: the
//! kernel remembers that a packet arrived through the cable `outside`, and frames from `inside` carry a mark, which
//! is removed before anything else sees it.
//!
//! Classifiers are links ([`crate::bpf::Link`]) and our ends are in an anonymous namespace, so everything is removed
//! with this value or the process, however that ends; frames then take the direct path again. Our classifiers are the
//! first on the interface: others there see each frame once, when it returns.

mod code;

use std::time::Duration;

pub(crate) use self::code::redirect;
use self::code::{back_in, back_out, divert_in, divert_out, only_back_out, unmark, verdict};
use crate::bpf::{BpfError, Direction, Instruction, Link, Pins, Program, ProgramKind, TCX_DROP, TCX_NEXT};
use crate::clock::clock_monotonic;
use crate::link::{Interface, InterfaceIndex, VethEnd, create_numbered_veth};
use crate::namespace::{Namespace, NamespaceError};
use crate::offload::{self, OffloadError};
use crate::route_socket::{NetlinkError, RouteSocket};
use crate::stack::{self, StackError};

/// The names of the cables' ends in the interface's namespace, followed by the interface's number: at most 15 bytes.
const INSIDE: &str = "nrw-i";
const OUTSIDE: &str = "nrw-o";
/// The names of our ends, and the first of their numbers: the two ends of a cable must differ.
const NEAR: [&str; 2] = ["inside", "outside"];
const FIRST_NEAR: u32 = 1 << 20;
/// The names of pins that redirect frames begin so.
pub const DIVERTING: &str = "divert";
/// The name of a pin at the interface that is there as long as the interface.
pub const AT_INTERFACE: &str = "unmark0";
/// Room in the cables for a VLAN tag, which an interface's MTU does not include.
const TAG: u32 = 4;
/// How long a cable may take to have carrier; normally microseconds.
const CARRIER: Duration = Duration::from_secs(5);
/// How long the kernel may take to remove the cables of a killed process.
const REMOVAL: Duration = Duration::from_secs(10);

/// Whether an interface of this name is a cable's end of ours.
pub fn is_cable(name: &str) -> bool {
    let number = name.strip_prefix(INSIDE).or_else(|| name.strip_prefix(OUTSIDE));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A program for a barrier that lets nothing pass, before there is a detour.
///
/// # Errors
/// If BPF is not allowed.
pub fn full_barrier() -> Result<Program, BpfError> {
    Program::load(ProgramKind::Classifier, "narrows_closed", &verdict(TCX_DROP))
}

/// Which frames are redirected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diverted {
    /// Frames that the namespace's programs send.
    Out,
    /// Frames that they receive.
    In,
    /// All frames.
    Both,
}

impl Diverted {
    /// The hooks at which frames are redirected.
    pub fn hooks(self) -> &'static [Direction] {
        match self {
            Self::Out => &[Direction::Egress],
            Self::In => &[Direction::Ingress],
            Self::Both => &[Direction::Egress, Direction::Ingress],
        }
    }
}

/// Why frames cannot be redirected.
#[derive(Debug, thiserror::Error)]
pub enum DetourError {
    /// A namespace failed.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A cable failed.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The kernel's stack on a cable could not be configured.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The offloads of a cable could not be changed.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// A classifier failed.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// The kernel does not support TCX links.
    #[error(
        "this kernel ({kernel}) cannot put a program onto an interface by a link of kind TCX, which came with Linux 6.6: use a \
         newer kernel, or `narrows bridge` between two interfaces"
    )]
    NoTcx {
        /// Its release.
        kernel: String,
    },
    /// Another detour exists.
    #[error(
        "the interface `{interface}` is attached to already: `{cable}` is there, which belongs to another run of narrows, or to a \
         network that stays: end that run, or take the network off by `narrows attach … --remove`"
    )]
    Taken {
        /// The interface.
        interface: String,
        /// The conflicting cable.
        cable: String,
    },
}

/// A detour, for as long as this value lives.
#[derive(Debug)]
pub struct Detour {
    /// At the interface's hooks: redirect frames. First, so that they are dropped before the rest.
    diverting: Vec<Link>,
    /// At the cables' ends: forward what we send.
    returning: Vec<Link>,
    /// At the interface's ingress, after those: removes the mark.
    unmarking: Option<Link>,
    namespace: Namespace,
    interface: Interface,
    /// The cables' ends there.
    ends: [String; 2],
    numbers: [InterfaceIndex; 2],
    wire: Namespace,
    mark: i32,
    /// Whether it stays.
    stays: bool,
}

impl Detour {
    /// Lays the cables without redirecting anything yet. Frames from them are as on a wire, except for `trains` of
    /// segments and their checksums, if requested.
    ///
    /// # Errors
    /// If a privilege is missing, another detour exists, or the kernel is too old.
    pub fn lay(namespace: &Namespace, interface: &Interface, trains: bool) -> Result<Self, DetourError> {
        let wire = Namespace::create()?.labelled("the namespace of narrows");
        let ends = [INSIDE, OUTSIDE].map(|name| format!("{name}{}", interface.index.0));
        let mut detour = Self {
            diverting: Vec::new(),
            returning: Vec::new(),
            unmarking: None,
            namespace: namespace.try_clone()?,
            interface: interface.clone(),
            ends,
            numbers: [InterfaceIndex(0); 2],
            wire,
            mark: mark(),
            stays: false,
        };
        for which in 0..2 {
            detour.lay_cable(which, trains)?;
        }
        let [inside, outside] = detour.numbers;
        detour.returning = detour.namespace.run(|| -> Result<_, DetourError> {
            let (number, mark) = (detour.interface.index, detour.mark);
            Ok(vec![
                tcx("narrows_back_in", &back_in(number, mark), inside, Direction::Ingress)?,
                tcx("narrows_back_out", &back_out(number), outside, Direction::Ingress)?,
            ])
        })??;
        detour.bring_up()?;
        Ok(detour)
    }

    fn lay_cable(&mut self, which: usize, trains: bool) -> Result<(), DetourError> {
        let (near, far) = (NEAR[which], self.ends[which].as_str());
        let number = InterfaceIndex(FIRST_NEAR + which as u32);
        let ours = VethEnd { namespace: &self.wire, name: near, mac: None };
        let theirs = VethEnd { namespace: &self.namespace, name: far, mac: None };
        let begin = clock_monotonic().as_nanos();
        while let Err(error) = create_numbered_veth(&ours, number, &theirs, Self::room(self.interface.mtu)) {
            let waited = clock_monotonic().as_nanos() - begin;
            match error {
                // From a killed run: the kernel will remove it.
                NetlinkError::Exists { .. } if u128::from(waited) < REMOVAL.as_nanos() => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                NetlinkError::Exists { .. } => {
                    let (interface, cable) = (self.interface.name.clone(), far.to_owned());
                    return Err(DetourError::Taken { interface, cable });
                }
                error => return Err(error.into()),
            }
        }
        for (namespace, name) in [(&self.wire, near), (&self.namespace, far)] {
            let switch = if trains { offload::trains } else { offload::plain_packets };
            switch(namespace, name)?;
            stack::silence(namespace, name)?;
        }
        self.numbers[which] = RouteSocket::open(&self.namespace)?.interface_index(far)?;
        Ok(())
    }

    fn bring_up(&self) -> Result<(), NetlinkError> {
        let [mut ours, mut theirs] = [RouteSocket::open(&self.wire)?, RouteSocket::open(&self.namespace)?];
        for (near, far) in NEAR.iter().zip(&self.ends) {
            ours.set_up(near)?;
            theirs.set_up(far)?;
            ours.wait_for_carrier(near, CARRIER)?;
            theirs.wait_for_carrier(far, CARRIER)?;
        }
        Ok(())
    }

    /// The MTU of the cables at an interface with this MTU.
    pub fn room(mtu: u32) -> u32 {
        mtu.saturating_add(TAG)
    }

    /// The namespace of our ends of the cables.
    pub fn wire(&self) -> &Namespace {
        &self.wire
    }

    /// The names of our ends: towards the namespace's programs, and towards the outside.
    pub fn ends(&self) -> [&'static str; 2] {
        NEAR
    }

    /// The names of their other ends, in the interface's namespace.
    pub fn far_ends(&self) -> [&str; 2] {
        self.ends.each_ref().map(String::as_str)
    }

    /// Waits until the kernel has removed the cables at an interface of a namespace, which it does on its own time; at most ten seconds.
    ///
    /// # Errors
    /// If the interfaces cannot be listed.
    pub fn await_removal(namespace: &Namespace, interface: InterfaceIndex) -> Result<(), NetlinkError> {
        let mut sockets = RouteSocket::open(namespace)?;
        let ends = [INSIDE, OUTSIDE].map(|name| format!("{name}{}", interface.0));
        let begin = clock_monotonic().as_nanos();
        let mut is_left = || sockets.interfaces().map(|all| all.iter().any(|one| ends.contains(&one.name)));
        while is_left()? && u128::from(clock_monotonic().as_nanos() - begin) < REMOVAL.as_nanos() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Removes the mark from frames that return inbound. Call it before redirecting, unless a
    /// [barrier](Self::barrier) at the ingress does so.
    ///
    /// # Errors
    /// Those of [`Detour::lay`].
    pub fn unmark(&mut self) -> Result<(), DetourError> {
        if self.unmarking.is_none() {
            let (code, number) = (unmark(self.mark, TCX_NEXT), self.interface.index);
            let link = self.namespace.run(|| tcx("narrows_unmark", &code, number, Direction::Ingress))??;
            self.unmarking = Some(link);
        }
        Ok(())
    }

    /// Starts redirecting frames.
    ///
    /// # Errors
    /// Those of [`Detour::lay`]; then all frames take the direct path.
    pub fn divert(&mut self, which: Diverted) -> Result<(), DetourError> {
        let [inside, outside] = self.numbers;
        let number = self.interface.index;
        let diverting = self.namespace.run(|| {
            let divert = |hook: &Direction| match hook {
                Direction::Egress => tcx("narrows_out", &divert_out(inside, outside), number, *hook),
                Direction::Ingress => tcx("narrows_in", &divert_in(outside, self.mark), number, *hook),
            };
            which.hooks().iter().map(divert).collect::<Result<Vec<_>, _>>()
        })??;
        self.diverting = diverting;
        Ok(())
    }

    /// Stops redirecting. Frames inside still return.
    pub fn straighten(&mut self) {
        self.diverting.clear();
    }

    /// Starts redirecting frames, and leaves all in place when this value and the process end, by pins. Everything else must stay
    /// already: [`Detour::wire`], and what is there.
    ///
    /// # Errors
    /// If something cannot be pinned; drop this then, for frames to take the direct path.
    pub fn stay(&mut self, which: Diverted, pins: &Pins) -> Result<(), DetourError> {
        let keep = |links: &[Link], kind: &str| {
            links
                .iter()
                .enumerate()
                .try_for_each(|(number, link)| pins.keep(link, &format!("{kind}{number}")))
        };
        keep(&self.returning, "return")?;
        self.unmark()?;
        keep(self.unmarking.as_slice(), "unmark")?;
        self.divert(which)?;
        keep(&self.diverting, DIVERTING)?;
        self.stays = true;
        Ok(())
    }

    /// The programs of barriers that only pass frames returning from here, and nothing at all when we are gone.
    ///
    /// # Errors
    /// If BPF is not allowed.
    pub fn barrier(&self, hook: Direction) -> Result<Program, BpfError> {
        let code = match hook {
            Direction::Egress => only_back_out(self.numbers[1]),
            Direction::Ingress => unmark(self.mark, TCX_DROP),
        };
        Program::load(ProgramKind::Classifier, "narrows_closed", &code)
    }

    /// The program of a barrier at the ingress that passes everything and removes the mark: used before the barrier
    /// is removed.
    ///
    /// # Errors
    /// If BPF is not allowed.
    pub fn open_barrier(&self) -> Result<Program, BpfError> {
        Program::load(ProgramKind::Classifier, "narrows_open", &unmark(self.mark, TCX_NEXT))
    }

    /// Frames that the kernel has dropped on arrival at the cables' other ends.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn dropped(&self) -> Result<u64, NetlinkError> {
        RouteSocket::open(&self.namespace)?.dropped_on_arrival(&self.numbers)
    }

    /// Sets the MTU of the cables to the interface's new MTU.
    ///
    /// # Errors
    /// If the kernel refuses; longer frames are then lost.
    pub fn widen(&mut self, mtu: u32) -> Result<(), NetlinkError> {
        let [mut ours, mut theirs] = [RouteSocket::open(&self.wire)?, RouteSocket::open(&self.namespace)?];
        for (near, far) in NEAR.iter().zip(&self.ends) {
            ours.set_mtu(near, Self::room(mtu))?;
            theirs.set_mtu(far, Self::room(mtu))?;
        }
        Ok(())
    }
}

impl Drop for Detour {
    /// Frames take the direct path before the cables are removed. The kernel would remove the cables with our
    /// namespace, some time later; a following run may need the names at once.
    fn drop(&mut self) {
        if self.stays {
            return;
        }
        self.diverting.clear();
        let Ok(mut sockets) = RouteSocket::open(&self.wire) else { return };
        for near in NEAR {
            // Only fails for a cable that is already gone.
            let _ = sockets.delete_interface(near);
        }
    }
}

/// Whether a program can be attached to an interface of the calling thread's namespace: attaches one that passes
/// everything and detaches it at once.
pub(crate) fn try_hook(interface: InterfaceIndex) -> Result<(), DetourError> {
    tcx("narrows_try", &unmark(mark(), TCX_NEXT), interface, Direction::Ingress).map(drop)
}

/// A mark that nobody else is likely to use: positive, because immediate operands are signed.
fn mark() -> i32 {
    let mixed = (clock_monotonic().as_nanos() ^ u64::from(std::process::id()) << 32)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 34) as i32) | 0x4000_0000
}

pub(crate) fn tcx(
    name: &str,
    code: &[Instruction],
    interface: InterfaceIndex,
    hook: Direction,
) -> Result<Link, DetourError> {
    let program = Program::load(ProgramKind::Classifier, name, code)?;
    Link::tcx(&program, interface, hook).map_err(|error| match error {
        BpfError::Refused { cause, .. } if cause.raw_os_error() == Some(libc::EINVAL) => {
            DetourError::NoTcx { kernel: crate::host::kernel_release().unwrap_or_default() }
        }
        error => error.into(),
    })
}

/// Whether a program can be attached to an interface by a TCX link, as a detour does. Tried on the loopback interface
/// of a temporary namespace.
///
/// # Errors
/// The kernel's error: BPF is not allowed, or TCX links are not supported (before Linux 6.6).
pub fn has_tcx() -> Result<(), DetourError> {
    let namespace = Namespace::create()?;
    let interface = RouteSocket::open(&namespace)?.interface_index("lo")?;
    namespace.run(|| try_hook(interface))?
}
