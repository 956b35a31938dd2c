//! A network on an interface that stays when this process ends: a link inside the kernel, by pins.
//!
//! The cables' namespace has a name in `/run/netns`, the programs have pins in a folder of the same name in `/sys/fs/bpf/narrows`, which
//! is made first and removed last and tells of all the rest. Without the pins that redirect, which are made last and removed first,
//! frames take the direct path. Nobody watches the link, so there is no report, and nothing is compared with the engine.

use std::fs::read_link;
use std::thread::sleep;

use narrows_io::bpf::{BpfError, Direction, Link, Pins};
use narrows_io::detour::{AT_INTERFACE, DIVERTING, Detour, DetourError};
use narrows_io::link::InterfaceIndex;
use narrows_io::namespace::Namespace;
use narrows_io::namespace_identity::NamespaceIdentity;
use narrows_io::route_socket::RouteSocket;
use narrows_io::saved_interface::SavedInterface;
use narrows_scenario::Scenario;

use super::kernel_way::KernelWay;
use super::{AttachOptions, DRAIN, Place, Whereabouts, notes};
use crate::inline::{INTERFACES, InlineError};
use crate::run::{RunError, fits_into_kernel};

/// A network that stays.
#[derive(Debug)]
pub struct Stays {
    /// The name of the namespace in which the link is.
    pub namespace: String,
    /// Notes on the interface.
    pub notes: Vec<String>,
}

/// Attaches a scenario's network to an interface, and leaves it there.
///
/// # Errors
/// If the scenario does not fit into the kernel or needs a process, or anything cannot be set up; everything is then as before.
pub fn attach_to_stay(mut scenario: Scenario, options: &AttachOptions) -> Result<Stays, RunError> {
    let Place { namespace, reference, interface, .. } = Place::of(&mut scenario, options)?;
    if fits_into_kernel(&scenario, options.inline.cabling, false, false)?.is_fed() {
        return Err(RunError::NeedsProcess("a feed"));
    }
    // Names that are made in a mount namespace of its own vanish with it. Some containers do not show the first process's.
    let mounts = |process| read_link(format!("/proc/{process}/ns/mnt")).ok();
    if let (Some(own), Some(first)) = (mounts("self"), mounts("1"))
        && own != first
    {
        return Err(RunError::NeedsHostMounts);
    }
    let folder = options.inline.run_folder.join(INTERFACES);
    let mut claimed = SavedInterface::claim(&namespace, reference.as_deref(), &interface, &folder)
        .map_err(InlineError::from)?;
    let name = name(&namespace, interface.index)?;
    if let Some(old) = Pins::find(&name, false).map_err(of_bpf)? {
        if old.place(AT_INTERFACE).map_err(of_bpf)?.is_some_and(|place| place.interface != 0) {
            return Err(RunError::Stays(old.about()));
        }
        // Of an interface that is gone, or of a process that was killed.
        forget(old, &name)?;
    }
    let notes = notes(&namespace, &interface)?;
    let pins = Pins::create(&name, &interface.name).map_err(of_bpf)?;
    let lay = || -> Result<(), RunError> {
        let mut detour = Detour::lay(&namespace, &interface, false).map_err(InlineError::from)?;
        let (way, _ends) = KernelWay::lay(&scenario, &detour, &interface)?;
        let kept = detour.wire().keep(&name).map_err(InlineError::from).and_then(|()| {
            way.keep(&pins).map_err(of_bpf)?;
            Ok(detour.stay(options.diverted, &pins)?)
        });
        // Frames take the direct path before the link goes.
        drop(detour);
        Ok(kept?)
    };
    if let Err(error) = lay() {
        let _ = forget(pins, &name);
        return Err(error);
    }
    // Of a run that was killed.
    if let Err(error) = claimed.close_only(&[]) {
        let _ = forget(pins, &name);
        return Err(InlineError::from(error).into());
    }
    Ok(Stays { namespace: name, notes })
}

/// A network that stays somewhere on this host.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Staying {
    /// The interface, by the name that it had.
    pub interface: String,
    /// The name of the namespace in which the link is.
    pub namespace: String,
}

/// The networks that stay; none where this user may not look.
pub fn staying() -> Vec<Staying> {
    let names = Pins::all().unwrap_or_default();
    let of = |namespace: String| {
        let pins = Pins::find(&namespace, true).ok()??;
        Some(Staying { interface: pins.about(), namespace })
    };
    names.into_iter().filter_map(of).collect()
}

/// Takes a network off an interface that was attached to stay. Frames take the direct path at once; packets inside have a second to
/// leave. The interface may be gone, or in another namespace than it was then.
///
/// # Errors
/// If there is none, or something cannot be removed.
pub fn take_off(whereabouts: &Whereabouts, interface: &str) -> Result<(), RunError> {
    let (namespace, _, _) = whereabouts.open()?;
    let all = RouteSocket::open(&namespace).and_then(|mut sockets| sockets.interfaces());
    let index = all.map_err(InlineError::from)?.iter().find(|one| one.name == interface).map(|one| one.index);
    let (expected, links) = match index {
        Some(index) => {
            let links =
                namespace.run(|| Link::numbers_at(index, Direction::Ingress)).map_err(InlineError::from)?;
            (Some(name(&namespace, index)?), links.map_err(of_bpf)?)
        }
        None => (None, Vec::new()),
    };
    // The one of this name first: others are in nobody's way.
    let others = Pins::all().map_err(of_bpf)?.into_iter().filter(|name| expected.as_ref() != Some(name));
    for name in expected.iter().cloned().chain(others) {
        let is_expected = expected.as_ref() == Some(&name);
        let Some(pins) = Pins::find(&name, !is_expected).map_err(of_bpf)? else { continue };
        let is_meant = match (pins.place(AT_INTERFACE).map_err(of_bpf)?, index) {
            // Of a process that was killed before it was complete.
            (None, _) => is_expected,
            (Some(place), Some(_)) => links.contains(&place.link),
            (Some(place), None) => place.interface == 0 && pins.about() == interface,
        };
        if is_meant {
            pins.let_go(DIVERTING).map_err(of_bpf)?;
            sleep(DRAIN);
            forget(pins, &name)?;
            return index
                .map_or(Ok(()), |index| Detour::await_removal(&namespace, index))
                .map_err(|error| InlineError::from(error).into());
        }
    }
    Err(RunError::NothingStays(interface.to_owned()))
}

/// Removes what is left of networks whose interface is gone, or whose process was killed before they were complete. Returns the names
/// of the interfaces.
///
/// # Errors
/// If something cannot be removed.
pub fn remove_orphans() -> Result<Vec<String>, RunError> {
    let mut removed = Vec::new();
    for name in Pins::all().map_err(of_bpf)? {
        // One that is being made or removed is not ours.
        let Some(pins) = Pins::find(&name, true).map_err(of_bpf)? else { continue };
        if pins.place(AT_INTERFACE).map_err(of_bpf)?.is_none_or(|place| place.interface == 0) {
            removed.push(pins.about());
            forget(pins, &name)?;
        }
    }
    Ok(removed)
}

/// Removes the namespace's name, and the pins.
fn forget(pins: Pins, name: &str) -> Result<(), RunError> {
    pins.let_go(DIVERTING).map_err(of_bpf)?;
    Namespace::let_go(name).map_err(InlineError::from)?;
    Ok(pins.remove().map_err(of_bpf)?)
}

/// Names the network at the interface with this number, among all namespaces.
fn name(namespace: &Namespace, interface: InterfaceIndex) -> Result<String, RunError> {
    let identity = NamespaceIdentity::of(namespace).map_err(InlineError::from)?;
    // Unlike inodes, cookies do not come again; kernels with BPF qdiscs have them.
    Ok(format!("narrows-{}-{}", identity.cookie.unwrap_or(identity.inode), interface.0))
}

fn of_bpf(error: BpfError) -> InlineError {
    DetourError::from(error).into()
}
