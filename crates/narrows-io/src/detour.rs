//! Frames of an interface led round by us, while the interface stays where and as it is.
//!
//! ```text
//! programs ── stack ── IF ── the outside          in the interface's namespace
//!               │ ↖  ↗ │
//!            inside  outside                      two cables; their other ends are ours
//! ```
//!
//! A classifier at IF's egress sends what leaves into the cable `inside`, whose other end we read; what we put into the
//! other end of `outside` comes out of that in the interface's namespace, where a classifier sends it on through IF. What
//! IF receives goes the other way round. Two things tell what is on its way back: a packet that came in by the cable
//! `outside`, which the kernel remembers, and a mark on what `inside` brings, removed before anybody else sees it.
//!
//! Classifiers are links ([`crate::bpf::Link`]) and our ends are in a namespace without a name, so all of it goes when this
//! value or the process does, however that ends; frames then take the direct way again. They are the first classifiers on
//! the interface: others there see each frame once, when it is back.

mod code;

use std::time::Duration;

use self::code::{back_in, back_out, divert_in, divert_out, only_back_out, unmark};
use crate::bpf::{BpfError, Direction, Instruction, Link, Program, ProgramKind, TCX_DROP, TCX_NEXT};
use crate::clock::clock_monotonic;
use crate::link::{Interface, InterfaceIndex, VethEnd, create_numbered_veth};
use crate::namespace::{Namespace, NamespaceError};
use crate::offload::{self, OffloadError};
use crate::route_socket::{NetlinkError, RouteSocket};
use crate::stack::{self, StackError};

/// What the cables' ends are called in the interface's namespace, with the interface's number behind it: at most 15 bytes.
const INSIDE: &str = "nrw-i";
const OUTSIDE: &str = "nrw-o";
/// What our ends are called, and where their numbers begin: the two ends of a cable must differ.
const NEAR: [&str; 2] = ["inside", "outside"];
const FIRST_NEAR: u32 = 1 << 20;
/// Room in the cables for a VLAN tag that an interface's MTU does not count.
const TAG: u32 = 4;
/// How long a cable may take until it carries; the kernel says so within microseconds.
const CARRIER: Duration = Duration::from_secs(5);
/// How long the kernel may take to remove the cables of a process that was killed.
const REMOVAL: Duration = Duration::from_secs(10);

/// Which frames make the detour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diverted {
    /// What the namespace's programs send.
    Out,
    /// What they receive.
    In,
    /// All.
    Both,
}

impl Diverted {
    /// The hooks at which frames are led away.
    pub fn hooks(self) -> &'static [Direction] {
        match self {
            Self::Out => &[Direction::Egress],
            Self::In => &[Direction::Ingress],
            Self::Both => &[Direction::Egress, Direction::Ingress],
        }
    }
}

/// Why frames cannot be led round.
#[derive(Debug, thiserror::Error)]
pub enum DetourError {
    /// A namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A cable.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// What the kernel's stack does on a cable.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// Offloads of a cable.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// A classifier.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// The kernel has no such links.
    #[error(
        "this kernel ({kernel}) cannot put a program onto an interface by a link of kind TCX, which came with Linux 6.6: use a \
         newer kernel, or `narrows bridge` between two interfaces"
    )]
    NoTcx {
        /// Its release.
        kernel: String,
    },
    /// Somebody else's detour is there.
    #[error(
        "the interface `{interface}` is attached to already: `{cable}` is there, which belongs to another run of narrows; \
         end that first"
    )]
    Taken {
        /// The interface.
        interface: String,
        /// The cable that is in the way.
        cable: String,
    },
}

/// A detour, for as long as this value lives.
#[derive(Debug)]
pub struct Detour {
    /// At the interface's own hooks: those that lead frames away. First, so that they go before all else.
    diverting: Vec<Link>,
    /// At the cables' ends: they send on what we put in.
    returning: Vec<Link>,
    /// At the interface's ingress, behind those: takes the mark off.
    unmarking: Option<Link>,
    namespace: Namespace,
    interface: Interface,
    /// The cables' ends there.
    ends: [String; 2],
    numbers: [InterfaceIndex; 2],
    wire: Namespace,
    mark: i32,
}

impl Detour {
    /// Lays the cables, with nothing led away yet. What comes by them is as on a wire, but for `trains` of segments and
    /// their checksums, where these are asked for.
    ///
    /// # Errors
    /// When a privilege is missing, another detour is there, or the kernel is too old.
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
        while let Err(error) =
            create_numbered_veth(&ours, number, &theirs, self.interface.mtu.saturating_add(TAG))
        {
            let waited = clock_monotonic().as_nanos() - begin;
            match error {
                // Of a run that was killed: the kernel removes it in its own time.
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

    /// Where our ends of the cables are.
    pub fn wire(&self) -> &Namespace {
        &self.wire
    }

    /// What our ends are called: that towards the namespace's programs, and that towards the outside.
    pub fn ends(&self) -> [&'static str; 2] {
        NEAR
    }

    /// What the other ends of these are called, in the interface's namespace.
    pub fn far_ends(&self) -> [&str; 2] {
        self.ends.each_ref().map(String::as_str)
    }

    /// Takes the mark off what comes back in. To be called before frames are led away, unless a [barrier](Self::barrier)
    /// at the ingress does that.
    ///
    /// # Errors
    /// As of [`Detour::lay`].
    pub fn unmark(&mut self) -> Result<(), DetourError> {
        if self.unmarking.is_none() {
            let (code, number) = (unmark(self.mark, TCX_NEXT), self.interface.index);
            let link = self.namespace.run(|| tcx("narrows_unmark", &code, number, Direction::Ingress))??;
            self.unmarking = Some(link);
        }
        Ok(())
    }

    /// Leads frames away, from now on.
    ///
    /// # Errors
    /// As of [`Detour::lay`]; then all frames take the direct way.
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

    /// Lets frames take the direct way again. What is inside still comes back.
    pub fn straighten(&mut self) {
        self.diverting.clear();
    }

    /// The programs of barriers that let nothing pass but what comes back from here, and nothing at all when we are gone.
    ///
    /// # Errors
    /// When BPF is not allowed.
    pub fn barrier(&self, hook: Direction) -> Result<Program, BpfError> {
        let code = match hook {
            Direction::Egress => only_back_out(self.numbers[1]),
            Direction::Ingress => unmark(self.mark, TCX_DROP),
        };
        Program::load(ProgramKind::Classifier, "narrows_closed", &code)
    }

    /// The program of a barrier at the ingress that lets everything pass, and takes the mark off: before it is taken away.
    ///
    /// # Errors
    /// When BPF is not allowed.
    pub fn open_barrier(&self) -> Result<Program, BpfError> {
        Program::load(ProgramKind::Classifier, "narrows_open", &unmark(self.mark, TCX_NEXT))
    }

    /// Makes the cables as wide as the interface's MTU is by now.
    ///
    /// # Errors
    /// When the kernel refuses; longer frames are then lost.
    pub fn widen(&mut self, mtu: u32) -> Result<(), NetlinkError> {
        let [mut ours, mut theirs] = [RouteSocket::open(&self.wire)?, RouteSocket::open(&self.namespace)?];
        for (near, far) in NEAR.iter().zip(&self.ends) {
            ours.set_mtu(near, mtu.saturating_add(TAG))?;
            theirs.set_mtu(far, mtu.saturating_add(TAG))?;
        }
        Ok(())
    }
}

impl Drop for Detour {
    /// Frames take the direct way before the cables go. The kernel would remove those with our namespace, some time later;
    /// a next run may want the names at once.
    fn drop(&mut self) {
        self.diverting.clear();
        let Ok(mut sockets) = RouteSocket::open(&self.wire) else { return };
        for near in NEAR {
            // Fails only for a cable that is gone already.
            let _ = sockets.delete_interface(near);
        }
    }
}

/// Whether a program can be put onto an interface of the calling thread's namespace: one that lets everything pass, at once
/// taken off again.
pub(crate) fn try_hook(interface: InterfaceIndex) -> Result<(), DetourError> {
    tcx("narrows_try", &unmark(mark(), TCX_NEXT), interface, Direction::Ingress).map(drop)
}

/// A mark that nobody else is likely to use: positive, as immediate operands have a sign.
fn mark() -> i32 {
    let mixed = (clock_monotonic().as_nanos() ^ u64::from(std::process::id()) << 32)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 34) as i32) | 0x4000_0000
}

fn tcx(
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

/// Whether a program can be put onto an interface by a link of kind TCX, as a detour does. Tried on the loopback
/// interface of a namespace that is then gone.
///
/// # Errors
/// What the kernel says: that BPF is not allowed, or that it does not know such links (before Linux 6.6).
pub fn has_tcx() -> Result<(), DetourError> {
    let namespace = Namespace::create()?;
    let interface = RouteSocket::open(&namespace)?.interface_index("lo")?;
    namespace.run(|| try_hook(interface))?
}
