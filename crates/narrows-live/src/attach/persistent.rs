//! A network on an interface that stays when this process ends: a link inside the kernel, by pins.
//!
//! The cables' namespace has a name in `/run/netns`, the programs have pins in a folder of the same name in `/sys/fs/bpf/narrows`.
//! Without the pins that redirect, which are made last and removed first, frames take the direct path. Nobody watches the link, so there
//! is no report, and nothing is compared with the engine.

use std::thread::sleep;

use narrows_io::bpf::{BpfError, Pins};
use narrows_io::detour::{DIVERTING, Detour, DetourError, Diverted};
use narrows_io::namespace::{Namespace, NamespaceError};
use narrows_io::namespace_identity::NamespaceIdentity;
use narrows_io::route_socket::RouteSocket;
use narrows_scenario::Scenario;

use super::kernel_way::KernelWay;
use super::{AttachOptions, DRAIN, Whereabouts};
use crate::inline::{InlineError, check_scenario, find, settle_me};
use crate::run::{RunError, fits_into_kernel};

/// Attaches a scenario's network to an interface, and leaves it there. Returns the name of the namespace in which the link is.
///
/// # Errors
/// If the scenario does not fit into the kernel or needs a process, or anything cannot be set up; everything is then as before.
pub fn attach_to_stay(mut scenario: Scenario, options: &AttachOptions) -> Result<String, RunError> {
    check_scenario(&scenario)?;
    let (namespace, _, _) = options.whereabouts.open()?;
    let all = RouteSocket::open(&namespace).and_then(|mut sockets| sockets.interfaces());
    let interface = find(&all.map_err(InlineError::from)?, &namespace, &options.interface)?;
    if interface.generic_xdp && options.diverted != Diverted::Out {
        return Err(InlineError::GenericXdp(interface.name).into());
    }
    settle_me(&mut scenario, &namespace, std::slice::from_ref(&interface))?;
    fits_into_kernel(&scenario, options.inline.cabling, false, false)?;
    if narrows_kernel::fit(&scenario)?.directions.iter().any(narrows_kernel::Parameters::is_fed) {
        return Err(RunError::NeedsProcess("a feed"));
    }
    let name = name(&namespace, interface.index.0)?;
    let mut detour = Detour::lay(&namespace, &interface, false).map_err(InlineError::from)?;
    let (way, _ends) = KernelWay::lay(&scenario, &detour, &interface)?;
    detour.unmark().and_then(|()| detour.divert(options.diverted)).map_err(InlineError::from)?;
    // Of an interface or a namespace that is gone.
    forget(&name)?;
    let kept = keep(&name, &way, &mut detour);
    if kept.is_err() {
        forget(&name)?;
    }
    kept.map(|()| name)
}

fn keep(name: &str, way: &KernelWay, detour: &mut Detour) -> Result<(), RunError> {
    detour.wire().keep(name).map_err(InlineError::from)?;
    let pins = Pins::create(name).map_err(of_bpf)?;
    way.keep(&pins).map_err(of_bpf)?;
    Ok(detour.keep(&pins).map_err(of_bpf)?)
}

/// Takes a network off an interface that was attached to stay. Frames take the direct path at once; packets inside have a second to
/// leave.
///
/// # Errors
/// If there is none, or something cannot be removed.
pub fn take_off(whereabouts: &Whereabouts, interface: &str) -> Result<(), RunError> {
    let (namespace, _, _) = whereabouts.open()?;
    let index = RouteSocket::open(&namespace).and_then(|mut sockets| sockets.interface_index(interface));
    let found = index.map_err(InlineError::from)?;
    let name = name(&namespace, found.0)?;
    let Some(pins) = Pins::find(&name) else {
        // Of one that was being attached when its process was killed.
        return if forget(&name)? { Ok(()) } else { Err(RunError::NothingStays(interface.to_owned())) };
    };
    pins.let_go(DIVERTING).map_err(of_bpf)?;
    sleep(DRAIN);
    forget(&name)?;
    Ok(Detour::await_removal(&namespace, found).map_err(InlineError::from)?)
}

/// Removes what is left of networks whose interface is gone with its namespace. How many there were.
///
/// # Errors
/// If something cannot be removed.
pub fn remove_orphans() -> Result<usize, RunError> {
    let mut removed = 0;
    for name in Pins::all() {
        let is_cut = match Namespace::open(&name) {
            Ok(wire) => Detour::is_cut(&wire).map_err(InlineError::from)?,
            Err(NamespaceError::NotFound { .. }) => true,
            Err(error) => return Err(InlineError::from(error).into()),
        };
        removed += usize::from(is_cut && forget(&name)?);
    }
    Ok(removed)
}

/// Removes pins and the namespace's name. Whether there were any.
fn forget(name: &str) -> Result<bool, RunError> {
    let pins = Pins::find(name);
    let was_pinned = pins.is_some();
    pins.map_or(Ok(()), Pins::remove).map_err(of_bpf)?;
    let was_named = Namespace::let_go(name).map_err(InlineError::from)?;
    Ok(was_pinned || was_named)
}

/// Names the network at the interface with this number, among all namespaces.
fn name(namespace: &Namespace, interface: u32) -> Result<String, RunError> {
    let identity = NamespaceIdentity::of(namespace).map_err(InlineError::from)?;
    Ok(format!("narrows-{}-{interface}", identity.inode))
}

fn of_bpf(error: BpfError) -> InlineError {
    DetourError::from(error).into()
}
