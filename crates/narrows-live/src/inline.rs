//! A network on existing interfaces, until it is told to end: shared by [`bridge`](crate::bridge),
//! [`route`](crate::route) and [`attach`](crate::attach).

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use narrows_core::Engine;
use narrows_io::ledger::PutBack;
use narrows_io::link::Interface;
use narrows_io::namespace::Namespace;
use narrows_io::privileges::Capability;
use narrows_io::process::Signal;
use narrows_io::route_socket::RouteSocket;
use narrows_io::saved_interface::SavedInterface;
use narrows_io::wait::{EndSignal, EndSignals};
use narrows_io::watch::{Change, Watch};
use narrows_report::{LatenessBound, Report, RunInfo};
use narrows_scenario::{Address, Place, Scenario, printable};

use crate::cabling::Cabling;
use crate::capture::CapturePlan;
use crate::clock::Clock;
use crate::control::ControlSocket;
use crate::director::{Director, Division, End, LoopError, Pace};
use crate::gateway::Gateway;
use crate::in_kernel::Agreement;
pub use crate::inline_error::InlineError;
use crate::load::Load;
use crate::packet_records::PacketsPlan;
use crate::run::{RunError, by_signal, keep_privileges, system};
use crate::run_name::RunName;
use crate::run_record::{About, Identity};
use crate::series::SeriesPlan;
use crate::stay::Ready;
use crate::testbed::Cable;

/// The folder, inside the folder of control sockets, where changed interfaces are recorded.
pub const INTERFACES: &str = "interfaces";

/// Capabilities needed while the network is up: to restore the interfaces, in whatever namespace they are, and to
/// write the report into other users' folders.
const NEEDED: [Capability; 3] = [Capability::DacOverride, Capability::NetAdmin, Capability::SysAdmin];

/// Options of an inline network.
#[derive(Debug)]
pub struct InlineOptions {
    /// The name of the run.
    pub identity: Identity,
    /// The duration; by default until a signal.
    pub duration: Option<Duration>,
    /// Whether to print a message on standard error when it is up.
    pub greeting: bool,
    /// Who waits for it.
    pub ready: Ready,
    /// The file for the input log.
    pub record: Option<PathBuf>,
    /// Whether the log keeps whole packets or only their headers.
    pub record_whole: bool,
    /// What to capture, with verdicts.
    pub capture: Option<CapturePlan>,
    /// The time series to write.
    pub series: Option<SeriesPlan>,
    /// The packet records to write.
    pub packets: Option<PacketsPlan>,
    /// Packet I/O.
    pub cabling: Cabling,
    /// How the packet loop waits and where it runs.
    pub pace: Pace,
    /// Requested bounds on lateness.
    pub bounds: Vec<LatenessBound>,
    /// The folder of control sockets.
    pub run_folder: PathBuf,
}

/// The outcome.
#[derive(Debug)]
pub struct InlineOutcome {
    /// The report.
    pub report: Report,
    /// 0; or 128 plus the number of the signal that ended it, unless that is Ctrl-C, the normal way to end it; 2 if
    /// something failed.
    pub status: u8,
    /// What ended it early, and what to do about that.
    pub broken: Option<String>,
    /// What could not be restored, and why: usually because the interface is no longer there.
    pub gone: Vec<String>,
}

impl InlineOutcome {
    /// Restores an interface. If that fails, the report is still worth having.
    pub(crate) fn put_back(&mut self, changed: SavedInterface) {
        match changed.restore() {
            Ok(PutBack::Done) => {}
            Ok(PutBack::Moot(why)) => self.gone.push(why),
            Err(error) => {
                self.status = 2;
                self.gone.push(error.to_string());
            }
        }
    }
}

/// Checks that a scenario has two ends, and nothing that is impossible at layer 2.
pub(crate) fn check_scenario(scenario: &Scenario) -> Result<(), InlineError> {
    if let Some(router) = scenario.routers.first() {
        return Err(InlineError::Router(router.name.clone()));
    }
    if let Some(switch) = scenario.switches.first() {
        return Err(InlineError::Switch(switch.name.clone()));
    }
    if let Some(host) = scenario.hosts.iter().find(|host| host.place != Place::New) {
        return Err(InlineError::Host(host.name.clone()));
    }
    let ports = scenario.ports();
    let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
    if ports.len() == 2 { Ok(()) } else { Err(InlineError::Ports(ports.len(), names.join(", "))) }
}

/// Makes `me` in rules stand for the addresses of the interfaces, unless the scenario gives its hosts addresses.
pub(crate) fn settle_me(
    scenario: &mut Scenario,
    namespace: &Namespace,
    interfaces: &[Interface],
) -> Result<(), InlineError> {
    let has_own = scenario.hosts.iter().any(|host| !host.addresses.is_empty());
    let Some(user) = scenario.says_me().filter(|_| !has_own) else { return Ok(()) };
    let all = RouteSocket::open(namespace)?.addresses()?;
    let is_ours = |index| interfaces.iter().any(|interface| interface.index == index);
    let ours: Vec<_> = all
        .into_iter()
        .filter(|address| is_ours(address.interface))
        .map(|address| Address { ip: address.prefix.address, prefix: address.prefix.length })
        .collect();
    // The kernel gives every interface a link-local address.
    let is_of_link = |ip: IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    if ours.iter().all(|address| is_of_link(address.ip)) {
        let names: Vec<_> = interfaces.iter().map(|interface| format!("`{}`", interface.name)).collect();
        return Err(InlineError::NoMe { user, interfaces: names.join(" and ") });
    }
    scenario.let_me_be(&ours);
    Ok(())
}

/// The namespace with this name, or the caller's.
pub(crate) fn namespace(name: Option<&str>) -> Result<Namespace, InlineError> {
    Ok(match name {
        Some(name) => Namespace::open(name)?,
        None => Namespace::current()?.labelled("this namespace"),
    })
}

/// Finds an Ethernet interface that is up.
pub(crate) fn find(all: &[Interface], namespace: &Namespace, name: &str) -> Result<Interface, InlineError> {
    let Some(found) = all.iter().find(|interface| interface.name == *name) else {
        let others = all.iter().filter(|other| !other.loopback).map(|other| format!("`{}`", other.name));
        let (interface, namespace) = (name.to_owned(), namespace.label().to_owned());
        return Err(InlineError::Missing { interface, namespace, others: others.collect() });
    };
    match (found.loopback, found.ethernet, found.up) {
        (true, _, _) => Err(InlineError::Loopback(name.to_owned())),
        (_, false, _) => Err(InlineError::NotEthernet(name.to_owned())),
        (_, _, false) => Err(InlineError::Down(name.to_owned())),
        _ => Ok(found.clone()),
    }
}

/// Whether the interface has filters of others, because they affect what crosses.
pub(crate) fn has_filters(namespace: &Namespace, interface: &Interface) -> Result<bool, InlineError> {
    Ok(RouteSocket::open(namespace)?.has_filters(interface.index)?)
}

/// What a change means for a running network.
pub(crate) enum Heed {
    /// It continues, with a note in the report.
    GoOn(String),
    /// It ends, for this reason.
    End(String),
}

/// The control socket of a network on these interfaces.
pub(crate) fn control(
    options: &InlineOptions,
    scenario: &Scenario,
    title: &str,
) -> Result<ControlSocket, RunError> {
    let about = About::new(&options.identity, scenario, title);
    Ok(ControlSocket::open(&options.run_folder, &about)?)
}

/// A running network.
pub(crate) struct Inline {
    pub(crate) network: Director,
    signals: EndSignals,
    watch: Watch,
    info: RunInfo,
    name: RunName,
    agreement: Option<Arc<Agreement>>,
    ended: Option<(u8, Option<String>)>,
}

/// What a network is built from.
pub(crate) struct Ground {
    pub(crate) signals: EndSignals,
    pub(crate) control: ControlSocket,
    pub(crate) watch: Watch,
    pub(crate) info: RunInfo,
    /// The router between the interfaces, if they are routed.
    pub(crate) gateway: Option<Gateway>,
    /// If the link is inside the kernel, what becomes of the comparison.
    pub(crate) agreement: Option<Arc<Agreement>>,
}

impl Inline {
    pub(crate) fn new(
        engine: Engine<Load>,
        scenario: Scenario,
        cables: Vec<Cable>,
        ground: Ground,
        options: &InlineOptions,
    ) -> Result<Self, RunError> {
        let Ground { signals, control, watch, mut info, gateway, agreement } = ground;
        let mut network = Director::new(engine, scenario, cables, (Division::default(), &[]))?;
        if let Some(gateway) = gateway {
            network.route(gateway);
        }
        network.certify(&options.bounds);
        agreement.iter().for_each(|agreement| network.compare_with_kernel(agreement));
        let name = control.name().clone();
        network.listen(control, info.clone());
        network.open_feeds(&options.run_folder)?;
        if let Some(path) = &options.record {
            network.record(path, options.record_whole).map_err(LoopError::from)?;
        }
        if let Some(plan) = &options.capture {
            network.capture(plan).map_err(LoopError::from)?;
        }
        if let Some(plan) = &options.series {
            network.keep_series(plan).map_err(LoopError::from)?;
        }
        if let Some(plan) = &options.packets {
            network.keep_packets(plan).map_err(LoopError::from)?;
        }
        network.keep_pace(options.pace);
        network.start()?;
        info.notes.extend(keep_privileges(&NEEDED));
        Ok(Self { network, signals, watch, info, name, agreement, ended: None })
    }

    /// Prints on standard error what is running where, and tells who waits for it.
    pub(crate) fn greet(&self, what: &str, options: &InlineOptions) -> Result<(), RunError> {
        if options.greeting {
            let name = &self.name;
            let until = if options.duration.is_some() { "" } else { "; Ctrl-C ends it" };
            // If standard error is closed, nobody wants to know.
            let _ = writeln!(io::stderr(), "narrows run {name}: {}{until}", printable(what));
        }
        options.ready.tell(&self.name).map_err(system("tell who waits that the network is up"))
    }

    /// Runs until the time is over, a signal arrives, or a change ends it.
    pub(crate) fn run(
        &mut self,
        duration: Option<Duration>,
        mut heed: impl FnMut(Change) -> Heed,
    ) -> Result<(), RunError> {
        let clock = Clock::start();
        loop {
            let ready = Some(std::os::fd::AsFd::as_fd(&self.watch));
            let left = duration.map(|all| all.saturating_sub(Duration::from_nanos(clock.now().nanos())));
            let ended = match left {
                Some(left) => self.network.run_for(left, ready, &mut self.signals),
                None => self.network.run(ready, &mut self.signals),
            };
            match ended {
                Ok(End::Ready) => {}
                Ok(End::Signal(ended)) => {
                    self.ended = Some((status(ended, duration.is_some()), None));
                    return Ok(());
                }
                Err(LoopError::CableEnd(error)) if error.is_down() => {
                    self.ended = Some((2, Some(error.to_string())));
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
            for change in self.watch.changes().map_err(InlineError::from)? {
                match heed(change) {
                    Heed::GoOn(note) => self.network.note_now(&note),
                    Heed::End(why) => self.ended = Some((2, Some(why))),
                }
            }
            let is_over = left
                .is_some_and(|_| duration.is_some_and(|all| clock.now().nanos() >= all.as_nanos() as u64));
            if self.ended.is_some() || is_over {
                return Ok(());
            }
        }
    }

    /// Whether it ended as requested.
    pub(crate) fn ended_well(&self) -> bool {
        !matches!(self.ended, Some((_, Some(_))))
    }

    /// Runs until nothing is inside, for at most this long, or until the next signal.
    pub(crate) fn drain(&mut self, patience: Duration) -> Result<(), RunError> {
        /// The interval between checks.
        const LOOK: Duration = Duration::from_millis(5);
        let clock = Clock::start();
        while self.network.holds_packets()?.0 && u128::from(clock.now().nanos()) < patience.as_nanos() {
            match self.network.run_for(LOOK, None, &mut self.signals) {
                Ok(End::Ready) => {}
                Ok(End::Signal(_)) => return Ok(()),
                // No interface to deliver to any more.
                Err(LoopError::CableEnd(error)) if error.is_down() => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reports.
    pub(crate) fn finish(mut self) -> Result<InlineOutcome, RunError> {
        Ready::tell_end();
        let mut report = self.network.finish(&mut self.info)?;
        self.agreement.iter().for_each(|agreement| agreement.conclude(&mut report));
        let (status, broken) = self.ended.unwrap_or((0, None));
        Ok(InlineOutcome { report, status, broken, gone: Vec::new() })
    }
}

/// Ctrl-C is the normal way to end it, unless it has a duration.
fn status(ended: EndSignal, has_duration: bool) -> u8 {
    let as_meant = ended.signal == Signal::SIGINT && !has_duration;
    if as_meant { 0 } else { by_signal(ended.signal as i32) }
}
