//! A modelled network between two interfaces that exist already, transparent at layer 2.
//!
//! ```text
//! what is behind IF1 ── IF1 │ engine │ IF2 ── what is behind IF2
//!                          up →  ← down
//! ```
//!
//! Every frame that comes out of one interface gets a verdict, whatever its protocol, and leaves by the other one
//! unchanged but for what the link does to it: address resolution, VLAN tags and what is not IP cross like the rest.
//! Nobody has an address here, so the network answers nothing itself, but for packets that are too long for it.
//!
//! Offloads of both interfaces are switched off while the bridge stands, and put back after it ([`Rearranged`]); the
//! promiscuous membership ends with the socket. Frames that the other end of a cable handed over in one piece, or with
//! their checksum left open, are made into those that a wire would have carried ([`narrows_io::packet_socket`]).

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use narrows_core::Engine;
use narrows_io::cable_end::CableEndError;
use narrows_io::ledger::LedgerError;
use narrows_io::link::Interface;
use narrows_io::namespace::{Namespace, NamespaceError};
use narrows_io::offload::OffloadError;
use narrows_io::packet_socket::PacketSocketOptions;
use narrows_io::privileges::Capability;
use narrows_io::rearranged::Rearranged;
use narrows_io::route_socket::{NetlinkError, RouteSocket};
use narrows_io::wait::{EndSignals, wake_on_time};
use narrows_report::{Kind, LatenessBound, Report, RunInfo};
use narrows_scenario::{Place, Scenario};

use crate::cabling::Cabling;
use crate::capture::CapturePlan;
use crate::control::ControlSocket;
use crate::local::Neighbours;
use crate::packet_loop::{End, LoopError, Pace, PacketLoop};
use crate::run::{RunError, by_signal, keep_privileges};
use crate::stage::Cable;

/// The folder, in that of control sockets, where changed interfaces are remembered.
pub const INTERFACES: &str = "interfaces";

/// What is needed from when the bridge stands: to put the interfaces back, in whatever namespace they are, and to write
/// the report where other users' folders are.
const NEEDED: [Capability; 3] = [Capability::DacOverride, Capability::NetAdmin, Capability::SysAdmin];

/// What to put the network between, and how.
#[derive(Debug)]
pub struct BridgeOptions {
    /// The two interfaces; up is from the first to the second.
    pub interfaces: [String; 2],
    /// The namespace that they are in, by name, path or `pid:N`; else that of the caller.
    pub namespace: Option<String>,
    /// How long; without, until a signal.
    pub duration: Option<Duration>,
    /// Whether to say on the standard error that the bridge stands.
    pub greeting: bool,
    /// Where to keep the input log.
    pub record: Option<PathBuf>,
    /// Whether the log keeps whole packets, or their headers.
    pub record_whole: bool,
    /// What to capture, with verdicts.
    pub capture: Option<CapturePlan>,
    /// How frames get from the kernel to the engine and back.
    pub cabling: Cabling,
    /// How the packet loop waits and where it runs.
    pub pace: Pace,
    /// Bounds on lateness that the run is to keep.
    pub bounds: Vec<LatenessBound>,
    /// The folder of control sockets.
    pub run_folder: PathBuf,
}

/// Why a bridge cannot stand.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The interfaces cannot be listed.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The end of a cable.
    #[error(transparent)]
    CableEnd(#[from] CableEndError),
    /// Offloads.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// Remembering what was changed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// There is no such interface.
    #[error("no interface `{interface}` in {namespace}: there are {}", others.join(", "))]
    Missing {
        /// As asked for.
        interface: String,
        /// Where.
        namespace: String,
        /// Those that could be meant.
        others: Vec<String>,
    },
    /// Both ends are one.
    #[error("both ends of the bridge are `{0}`: it joins two interfaces, such as narrows bridge eth1 eth2")]
    Same(String),
    /// An interface that is switched off.
    #[error("the interface `{0}` is down: bring it up first, as with: ip link set {0} up")]
    Down(String),
    /// The loopback interface.
    #[error("`{0}` is the loopback interface, which leads nowhere: name one with a cable")]
    Loopback(String),
    /// Another bridge or bond has it.
    #[error(
        "the interface `{interface}` belongs to `{master}`, which takes its frames, too: take it out first, as with: ip link \
         set {interface} nomaster"
    )]
    Enslaved {
        /// Which.
        interface: String,
        /// Whose.
        master: String,
    },
    /// A scenario with other than two ends.
    #[error(
        "a bridge joins two interfaces, and this scenario has {0} ports ({1}): it needs two hosts with one link each, the \
         first of which stands for IF1"
    )]
    Ports(usize, String),
    /// A scenario with routers.
    #[error(
        "a bridge is transparent at layer 2, and the router `{0}` of this scenario is not: leave it out, or use a junction"
    )]
    Router(String),
    /// A scenario that names a place for its hosts.
    #[error(
        "host `{0}` of this scenario names a namespace or process, but in a bridge it stands for what is behind an interface: \
         leave that out"
    )]
    Host(String),
}

/// How a bridge ended.
#[derive(Debug)]
pub struct BridgeOutcome {
    /// What happened.
    pub report: Report,
    /// 0, or 128 and the number of the signal that ended it, unless that is Ctrl-C, which is how it is meant to end.
    pub status: u8,
    /// An interface that went down or vanished, which ended it.
    pub broken: Option<LoopError>,
}

/// Puts a scenario's network between two interfaces until the time is over, a signal comes, or an interface goes down.
///
/// # Errors
/// When anything cannot be set up, with everything as it was before.
pub fn bridge(scenario: Scenario, options: &BridgeOptions) -> Result<BridgeOutcome, RunError> {
    check_scenario(&scenario)?;
    let engine = Engine::new(scenario.network())?;
    let namespace = match &options.namespace {
        Some(name) => Namespace::open(name),
        None => Namespace::current().map(|here| here.labelled("this namespace")),
    };
    let namespace = namespace.map_err(BridgeError::from)?;
    let found = interfaces(&namespace, &options.interfaces)?;
    let system = |action| move |cause: io::Error| RunError::System { action, cause };
    wake_on_time().map_err(system("set the timer slack"))?;
    let mut signals = EndSignals::catch().map_err(system("catch signals"))?;
    let control = ControlSocket::open(&options.run_folder)?;
    let mut rearranged = Vec::new();
    for interface in &found {
        let folder = options.run_folder.join(INTERFACES);
        let changed = Rearranged::plain_packets(&namespace, options.namespace.as_deref(), interface, &folder)
            .map_err(BridgeError::from)?;
        rearranged.push(changed);
    }
    let mut info = RunInfo::of(&scenario, Kind::Live);
    info.title = format!("{} between {} and {}", info.title, found[0].name, found[1].name);
    info.notes.extend(notes(&namespace, &found, &rearranged)?);
    let mut cables = Vec::new();
    for (port, interface) in scenario.ports().iter().zip(&found) {
        let sockets = PacketSocketOptions { finish_offloads: true, ..PacketSocketOptions::default() };
        let end = options.cabling.open(&namespace, &interface.name, sockets).map_err(BridgeError::from)?;
        let neighbours = Neighbours::transparent();
        cables.push(Cable { name: port.name.clone(), end, neighbours, stations: None });
    }
    let mut network = PacketLoop::new(engine, scenario, cables);
    network.certify(&options.bounds);
    network.listen(control, info.clone());
    network.open_feeds(&options.run_folder)?;
    if let Some(path) = &options.record {
        network.record(path, options.record_whole).map_err(LoopError::from)?;
    }
    if let Some(plan) = &options.capture {
        network.capture(plan).map_err(LoopError::from)?;
    }
    network.keep_pace(options.pace)?;
    info.notes.extend(keep_privileges(&NEEDED));
    if options.greeting {
        let [first, second] = &options.interfaces;
        let id = std::process::id();
        let until = if options.duration.is_some() { "" } else { "; Ctrl-C ends it" };
        // Whoever closed the standard error does not want to know.
        let _ = io::Write::write_fmt(
            &mut io::stderr(),
            format_args!("narrows run {id}: a bridge between {first} and {second}{until}\n"),
        );
    }
    let ended = match options.duration {
        Some(duration) => network.run_for(duration, None, &mut signals),
        None => network.run(None, &mut signals),
    };
    let (status, broken) = match ended {
        Ok(End::Ready) => (0, None),
        Ok(End::Signal(ended)) if ended.signal == narrows_io::process::Signal::SIGINT => (0, None),
        Ok(End::Signal(ended)) => (by_signal(ended.signal as i32), None),
        Err(LoopError::CableEnd(error)) if error.is_down() => (2, Some(error.into())),
        Err(error) => return Err(error.into()),
    };
    let report = network.finish(&mut info)?;
    for changed in rearranged {
        changed.restore().map_err(BridgeError::from)?;
    }
    Ok(BridgeOutcome { report, status, broken })
}

fn check_scenario(scenario: &Scenario) -> Result<(), BridgeError> {
    if let Some(router) = scenario.routers.first() {
        return Err(BridgeError::Router(router.name.clone()));
    }
    if let Some(host) = scenario.hosts.iter().find(|host| host.place != Place::New) {
        return Err(BridgeError::Host(host.name.clone()));
    }
    let ports = scenario.ports();
    let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
    if ports.len() == 2 { Ok(()) } else { Err(BridgeError::Ports(ports.len(), names.join(", "))) }
}

/// Finds both interfaces, and whether they can be used.
fn interfaces(namespace: &Namespace, names: &[String; 2]) -> Result<[Interface; 2], BridgeError> {
    let all = RouteSocket::open(namespace)?.interfaces()?;
    let find = |name: &String| {
        let Some(found) = all.iter().find(|interface| interface.name == *name) else {
            let others = all.iter().filter(|other| !other.loopback).map(|other| format!("`{}`", other.name));
            let (interface, namespace) = (name.clone(), namespace.label().to_owned());
            return Err(BridgeError::Missing { interface, namespace, others: others.collect() });
        };
        let master = found.master.and_then(|master| all.iter().find(|other| other.index == master));
        match (found.loopback, found.up, master) {
            (true, _, _) => Err(BridgeError::Loopback(name.clone())),
            (_, false, _) => Err(BridgeError::Down(name.clone())),
            (_, _, Some(master)) => {
                Err(BridgeError::Enslaved { interface: name.clone(), master: master.name.clone() })
            }
            _ => Ok(found.clone()),
        }
    };
    if names[0] == names[1] {
        return Err(BridgeError::Same(names[0].clone()));
    }
    Ok([find(&names[0])?, find(&names[1])?])
}

/// What a reader of the report should know about the interfaces.
fn notes(
    namespace: &Namespace,
    found: &[Interface; 2],
    rearranged: &[Rearranged],
) -> Result<Vec<String>, BridgeError> {
    let mut notes = Vec::new();
    let [first, second] = found;
    if first.mtu != second.mtu {
        notes.push(format!(
            "the MTU of {} is {}, that of {} is {}: longer packets than the lower one cannot leave there",
            first.name, first.mtu, second.name, second.mtu
        ));
    }
    let addresses = RouteSocket::open(namespace)?.addresses()?;
    for interface in found {
        let own = addresses.iter().filter(|address| address.interface == interface.index);
        if own.clone().any(|address| address.prefix.address.is_ipv4()) {
            notes.push(format!(
                "{} has an address of this host, which goes on answering there beside the bridge",
                interface.name
            ));
        }
    }
    for changed in rearranged.iter().filter(|changed| !changed.stuck().is_empty()) {
        let (name, stuck) = (changed.interface(), changed.stuck().join(", "));
        notes.push(format!(
            "{name} cannot switch off {stuck}: packets may have been joined before they came here"
        ));
    }
    Ok(notes)
}
