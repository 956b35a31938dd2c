//! A modelled network on an existing interface: attached while connections cross it, and removed again.
//!
//! ```text
//! the namespace's programs ── inside │ engine │ outside ── what is behind the interface
//!                                  up →   ← down
//! ```
//!
//! "Up" is what the host's programs send, "down" what they receive. A [`Detour`] redirects frames of the selected
//! directions through two cables whose far ends this process holds; all other frames take the direct path. The
//! interface itself is not changed. When this process ends, in whatever way, all frames take the direct path again,
//! or are blocked if that was requested: then a barrier stays until `narrows clean`, or the next run on this
//! interface, removes it.
//!
//! At the end, frames are first switched to the direct path, then packets inside are released, for at most a second.

mod kernel_way;
mod persistent;

use std::time::Duration;

use narrows_core::Engine;
use narrows_io::bpf::Direction;
use narrows_io::cable_end::Backend;
use narrows_io::detour::{Detour, DetourError, Diverted};
use narrows_io::link::Interface;
use narrows_io::namespace::Namespace;
use narrows_io::packet_socket::PacketSocketOptions;
use narrows_io::route_socket::RouteSocket;
use narrows_io::saved_interface::SavedInterface;
use narrows_io::wait::{EndSignals, wake_on_time};
use narrows_io::watch::{Change, Watch};
use narrows_report::{Kind, RunInfo};
use narrows_scenario::Scenario;

use self::kernel_way::KernelWay;
pub use self::persistent::{Staying, Stays, attach_to_stay, remove_orphans, staying, take_off};
use crate::block::shut;
use crate::bridge;
use crate::cabling::{Cabling, FarEnd};
use crate::container;
use crate::in_kernel::Agreement;
use crate::inline::{
    Ground, Heed, INTERFACES, Inline, InlineError, InlineOptions, InlineOutcome, check_scenario, control,
    find, has_filters, namespace, settle_me,
};
use crate::run::{RunError, choose_backend, fits_into_kernel, system};
use crate::testbed::{Cable, Plug};

/// How long draining the packets inside may take at the end.
const DRAIN: Duration = Duration::from_secs(1);

/// The location of the interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// In the caller's namespace.
    Here,
    /// In a namespace, given by name, path or `pid:N`.
    Namespace(String),
    /// In the namespace of a process; the run ends with the process.
    Process(u32),
    /// In the namespace of a container's first process; the run ends with the process.
    Container(String),
}

/// What to attach the network to.
#[derive(Debug)]
pub struct AttachOptions {
    /// The interface.
    pub interface: String,
    /// Its location.
    pub whereabouts: Whereabouts,
    /// Which frames cross the network.
    pub diverted: Diverted,
    /// Whether to block all frames if this process ends abnormally.
    pub fails_closed: bool,
    /// What the run is shown as, instead of the scenario's file.
    pub title: Option<String>,
    /// Options shared with the bridge.
    pub inline: InlineOptions,
}

/// Attaches a scenario's network to an interface until the time is over, a signal arrives, or the interface vanishes.
///
/// # Errors
/// If anything cannot be set up; everything is then as before. Or if the loop fails; with `fails_closed` the
/// interface then stays blocked.
pub fn attach(mut scenario: Scenario, options: &AttachOptions) -> Result<InlineOutcome, RunError> {
    let Place { namespace, reference, process, interface } = Place::of(&mut scenario, options)?;
    let engine = Engine::new(scenario.network())?;
    wake_on_time().map_err(system("set the timer slack"))?;
    let signals = EndSignals::catch().map_err(system("catch signals"))?;
    let inline = &options.inline;
    let (cabling, choice) = choose_backend(inline.cabling, &scenario, || {
        let is_whole = inline.record.is_some() && inline.record_whole;
        fits_into_kernel(&scenario, inline.cabling, inline.capture.is_some(), is_whole).map(drop)
    })?;
    let is_in_kernel = cabling.backend == Some(Backend::Kernel);
    let mut info = RunInfo::of(&scenario, Kind::Live);
    info.notes.extend(choice);
    let title = options.title.as_ref().unwrap_or(&info.title);
    info.title = format!("{title} on {}", interface.name);
    let control = control(inline, &scenario, &info.title)?;
    let mut watch = Watch::on(&namespace, std::slice::from_ref(&interface)).map_err(InlineError::from)?;
    if let Some(process) = process {
        watch = watch.and_process(process).map_err(InlineError::from)?;
    }
    let folder = inline.run_folder.join(INTERFACES);
    let claimed = SavedInterface::claim(&namespace, reference.as_deref(), &interface, &folder)
        .map_err(InlineError::from)?;
    let detour = Detour::lay(&namespace, &interface, inline.cabling.trains).map_err(InlineError::from)?;
    let (kernel_way, cables) = match is_in_kernel {
        true => {
            let (way, cables) = KernelWay::lay(&scenario, &detour, &interface)?;
            (Some(way), cables)
        }
        false => (None, open_ends(&scenario, cabling, &detour, &namespace, interface.mtu)?),
    };
    let agreement = is_in_kernel.then(|| Agreement::of(&scenario, &engine));
    info.notes.extend(notes(&namespace, &interface)?);
    let ground = Ground { signals, control, watch, info, gateway: None, agreement };
    let mut network = Inline::new(engine, scenario, cables, ground, inline)?;
    let closed = if options.fails_closed { options.diverted.hooks() } else { &[] };
    let mut attached = Attached { claimed, detour, kernel_way, closed };
    attached.divert(options.diverted)?;
    network.greet(&format!("on {} in {namespace}, {}", interface.name, words(options.diverted)), inline)?;
    network.run(inline.duration, |change| attached.heed(change))?;
    // An interface that was away for a while has lost its barrier.
    let settled = if network.ended_well() { attached.open() } else { attached.close() };
    // Nothing can be opened or closed at one that is gone.
    if !attached.claimed.is_gone().map_err(InlineError::from)? {
        settled?;
    }
    attached.detour.straighten();
    network.drain(DRAIN)?;
    let ended_well = network.ended_well();
    let mut outcome = network.finish()?;
    let Attached { mut claimed, detour, kernel_way, closed } = attached;
    outcome.report.notes.extend(kernel_way.as_ref().and_then(|way| way.note(&detour)));
    drop(detour);
    drop(kernel_way);
    // Otherwise a barrier stays, if the interface is there; it may have come back only now.
    let shut = if ended_well { Ok(()) } else { shut(&mut claimed, closed) };
    if ended_well || claimed.is_gone().map_err(InlineError::from)? {
        outcome.put_back(claimed);
    } else {
        shut?;
    }
    Ok(outcome)
}

/// An interface, checked.
struct Place {
    namespace: Namespace,
    /// What the namespace was opened by.
    reference: Option<String>,
    /// The process that it depends on.
    process: Option<u32>,
    interface: Interface,
}

impl Place {
    /// Where the options say, and fit for the scenario, whose `me` are the addresses there from now on.
    fn of(scenario: &mut Scenario, options: &AttachOptions) -> Result<Self, InlineError> {
        check_scenario(scenario)?;
        let (namespace, reference, process) = options.whereabouts.open()?;
        let all = RouteSocket::open(&namespace)?.interfaces()?;
        let interface = find(&all, &namespace, &options.interface)?;
        if interface.generic_xdp && options.diverted != Diverted::Out {
            return Err(InlineError::GenericXdp(interface.name));
        }
        settle_me(scenario, &namespace, std::slice::from_ref(&interface))?;
        Ok(Self { namespace, reference, process, interface })
    }
}

/// Our ends of the detour's cables.
fn open_ends(
    scenario: &Scenario,
    cabling: Cabling,
    detour: &Detour,
    namespace: &Namespace,
    mtu: u32,
) -> Result<Vec<Cable>, InlineError> {
    let mut cables = Vec::new();
    let mut laying = cabling.or(Backend::AfPacket).lay(scenario.ports().len(), mtu);
    for ((port, end), far) in scenario.ports().iter().zip(detour.ends()).zip(detour.far_ends()) {
        let end = laying.open(detour.wire(), end, PacketSocketOptions::default())?;
        let far = FarEnd::of(&end, namespace, far)?;
        cables.push(Cable::of_one(Plug::transparent(&port.name), end, laying.began(), far));
    }
    Ok(cables)
}

impl Whereabouts {
    /// The flags of `attach` that name it, after a space each.
    pub fn flags(&self) -> String {
        match self {
            Self::Here => String::new(),
            Self::Namespace(name) => format!(" --netns {name}"),
            Self::Process(process) => format!(" --pid {process}"),
            Self::Container(name) => format!(" --container {name}"),
        }
    }

    /// The namespace, what it was opened by, and the process that it depends on.
    fn open(&self) -> Result<(Namespace, Option<String>, Option<u32>), InlineError> {
        let (reference, process, label) = match self {
            Self::Here => (None, None, None),
            Self::Namespace(name) => (Some(name.clone()), None, None),
            Self::Process(process) => {
                (Some(format!("pid:{process}")), Some(*process), Some(format!("process {process}")))
            }
            Self::Container(name) => {
                let process = container::process_of(name)?;
                (Some(format!("pid:{process}")), Some(process), Some(format!("the container {name}")))
            }
        };
        let namespace = namespace(reference.as_deref())?;
        let namespace = match label {
            Some(label) => namespace.labelled(label),
            None => namespace,
        };
        Ok((namespace, reference, process))
    }
}

/// A network attached to its interface.
struct Attached {
    claimed: SavedInterface,
    // Before the link, so that no frame is redirected any more when that goes.
    detour: Detour,
    /// The link, if it is inside the kernel.
    kernel_way: Option<KernelWay>,
    /// The directions in which frames may only pass through us.
    closed: &'static [Direction],
}

impl Attached {
    /// Redirects frames through us, and only then opens what a killed run had blocked.
    fn divert(&mut self, diverted: Diverted) -> Result<(), InlineError> {
        let was_closed = self.claimed.is_closed();
        let diverting = self.close().and_then(|()| Ok(self.detour.divert(diverted)?));
        match diverting {
            Ok(()) => Ok(self.claimed.close_only(self.closed)?),
            // A barrier of our own that no run had left behind.
            Err(error) if !was_closed => {
                self.claimed.close_only(&[])?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    fn close(&mut self) -> Result<(), InlineError> {
        for &direction in self.closed {
            let program = self.detour.barrier(direction).map_err(DetourError::from)?;
            self.claimed.close(direction, &program)?;
        }
        // Otherwise the barrier does it.
        if !self.closed.contains(&Direction::Ingress) {
            self.detour.unmark()?;
        }
        Ok(())
    }

    /// Removes our barriers while frames still pass through us.
    fn open(&mut self) -> Result<(), InlineError> {
        if self.closed.contains(&Direction::Ingress) {
            let program = self.detour.open_barrier().map_err(DetourError::from)?;
            self.claimed.close(Direction::Ingress, &program)?;
            self.detour.unmark()?;
        }
        Ok(self.claimed.close_only(&[])?)
    }

    /// How to react to a change of the interface, or of its process.
    fn heed(&mut self, change: Change) -> Heed {
        match change {
            Change::Vanished { interface } => {
                Heed::End(format!("the interface `{interface}` was removed, or moved to another namespace"))
            }
            Change::Ended { process } => {
                Heed::End(format!("process {process}, which held the interface's namespace, has ended"))
            }
            Change::Down { interface } => {
                Heed::GoOn(format!("{interface} went down; nothing crosses until it is up again"))
            }
            Change::Up { .. } | Change::Renamed { .. } | Change::LinkAddress { .. } => bridge::heed(change),
            Change::Mtu { interface, before, now } => {
                let note = format!("the MTU of {interface} changed from {before} to {now}");
                let widened = self
                    .detour
                    .widen(now)
                    .and_then(|()| self.kernel_way.as_mut().map_or(Ok(()), |way| way.widen(now)));
                match widened.err().filter(|_| now > before) {
                    None => Heed::GoOn(note),
                    Some(error) => Heed::GoOn(format!(
                        "{note}, and packets longer than {before} bytes are lost until the network is taken off and put on \
                         again: {error}"
                    )),
                }
            }
        }
    }
}

fn words(diverted: Diverted) -> &'static str {
    match diverted {
        Diverted::Both => "both ways",
        Diverted::Out => "what is sent",
        Diverted::In => "what is received",
    }
}

/// Notes on the interface for the report.
fn notes(namespace: &Namespace, interface: &Interface) -> Result<Vec<String>, InlineError> {
    let mut notes = Vec::new();
    if has_filters(namespace, interface)? {
        notes.push(format!(
            "{} has tc filters (clsact): they see each frame once, after it has crossed the network",
            interface.name
        ));
    }
    Ok(notes)
}
