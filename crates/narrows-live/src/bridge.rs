//! A modelled network between two existing interfaces, transparent at layer 2.
//!
//! ```text
//! what is behind IF1 ── IF1 │ engine │ IF2 ── what is behind IF2
//!                          up →  ← down
//! ```
//!
//! Every frame received on one interface gets a verdict, whatever its protocol, and leaves by the other one, changed
//! only by the link: address resolution, VLAN tags and non-IP frames cross like the rest. The bridge has no address,
//! so the network sends no replies of its own, except about packets that exceed its MTU.
//!
//! Offloads of both interfaces are disabled while the bridge runs and restored afterwards ([`SavedInterface`]);
//! promiscuous mode ends with the socket. Frames that the other end of a veth pair handed over unsegmented, or with
//! an incomplete checksum, are converted into frames as on a wire ([`narrows_io::packet_socket`]).

use narrows_core::Engine;
use narrows_io::cable_end::Backend;
use narrows_io::link::Interface;
use narrows_io::namespace::Namespace;
use narrows_io::packet_socket::{Offloads, PacketSocketOptions};
use narrows_io::route_socket::RouteSocket;
use narrows_io::saved_interface::SavedInterface;
use narrows_io::wait::{EndSignals, wake_on_time};
use narrows_io::watch::{Change, Watch};
use narrows_report::{Kind, RunInfo};
use narrows_scenario::Scenario;

use crate::inline::{
    Ground, Heed, INTERFACES, Inline, InlineError, InlineOptions, InlineOutcome, check_scenario, control,
    find, has_filters, namespace, settle_me,
};
use crate::run::{RunError, system};
use crate::testbed::{Cable, Plug};

/// What to bridge.
#[derive(Debug)]
pub struct BridgeOptions {
    /// The two interfaces; "up" is from the first to the second.
    pub interfaces: [String; 2],
    /// Their namespace, by name, path or `pid:N`; by default the caller's.
    pub namespace: Option<String>,
    /// Options shared with `attach`.
    pub inline: InlineOptions,
}

/// Bridges two interfaces with a scenario's network until the time is over, a signal arrives, or an interface goes
/// down.
///
/// # Errors
/// If anything cannot be set up; everything is then as before.
pub fn bridge(mut scenario: Scenario, options: &BridgeOptions) -> Result<InlineOutcome, RunError> {
    check_scenario(&scenario)?;
    let namespace = namespace(options.namespace.as_deref())?;
    let found = interfaces(&namespace, &options.interfaces, "bridge")?;
    settle_me(&mut scenario, &namespace, &found)?;
    let engine = Engine::new(scenario.network())?;
    wake_on_time().map_err(system("set the timer slack"))?;
    let signals = EndSignals::catch().map_err(system("catch signals"))?;
    let inline = &options.inline;
    let mut info = RunInfo::of(&scenario, Kind::Live);
    info.title = format!("{} between {} and {}", info.title, found[0].name, found[1].name);
    let control = control(inline, &scenario, &info.title)?;
    let mut saved = Vec::new();
    for interface in &found {
        let folder = inline.run_folder.join(INTERFACES);
        let changed =
            SavedInterface::plain_packets(&namespace, options.namespace.as_deref(), interface, &folder)
                .map_err(InlineError::from)?;
        saved.push(changed);
    }
    info.notes.extend(notes(&namespace, &found, &saved)?);
    let mut cables = Vec::new();
    let mtu = found.iter().map(|interface| interface.mtu).max().unwrap_or_default();
    let mut laying = inline.cabling.or(Backend::AfPacket).lay(found.len(), mtu);
    for (port, interface) in scenario.ports().iter().zip(&found) {
        let sockets = PacketSocketOptions { offloads: Offloads::Finished, ..PacketSocketOptions::default() };
        let end = laying.open(&namespace, &interface.name, sockets).map_err(InlineError::from)?;
        cables.push(Cable::of_one(Plug::transparent(&port.name), end, laying.began(), None));
    }
    let watch = Watch::on(&namespace, &found).map_err(InlineError::from)?;
    let ground = Ground { signals, control, watch, info, gateway: None, agreement: None };
    let mut network = Inline::new(engine, scenario, cables, ground, inline)?;
    let [first, second] = &options.interfaces;
    network.greet(&format!("a bridge between {first} and {second}"), inline)?;
    network.run(inline.duration, heed)?;
    let mut outcome = network.finish()?;
    saved.into_iter().for_each(|changed| outcome.put_back(changed));
    Ok(outcome)
}

/// How to react to a change of the interfaces.
pub(crate) fn heed(change: Change) -> Heed {
    match change {
        Change::Vanished { interface } | Change::Down { interface } => Heed::End(format!(
            "the interface `{interface}` was switched off, removed, or moved to another namespace"
        )),
        Change::Mtu { interface, before, now } => Heed::GoOn(format!(
            "the MTU of {interface} changed from {before} to {now}: longer packets than that cannot leave there"
        )),
        Change::Renamed { interface, now } => Heed::GoOn(format!("{interface} is called {now} now")),
        Change::LinkAddress { interface } => Heed::GoOn(format!("the link address of {interface} changed")),
        Change::Up { interface } => Heed::GoOn(format!("{interface} is up")),
        Change::Ended { process } => Heed::GoOn(format!("process {process} has ended")),
    }
}

/// Finds both interfaces and checks that they can be used.
pub(crate) fn interfaces(
    namespace: &Namespace,
    names: &[String; 2],
    command: &'static str,
) -> Result<[Interface; 2], InlineError> {
    let all = RouteSocket::open(namespace)?.interfaces()?;
    let find = |name: &String| {
        let found = find(&all, namespace, name)?;
        match found.master.and_then(|master| all.iter().find(|other| other.index == master)) {
            Some(master) => {
                Err(InlineError::Enslaved { interface: name.clone(), master: master.name.clone() })
            }
            None => Ok(found),
        }
    };
    if names[0] == names[1] {
        return Err(InlineError::Same { command, interface: names[0].clone() });
    }
    Ok([find(&names[0])?, find(&names[1])?])
}

/// Notes on the interfaces for the report.
fn notes(
    namespace: &Namespace,
    found: &[Interface; 2],
    saved: &[SavedInterface],
) -> Result<Vec<String>, InlineError> {
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
            notes.push(format!("{} has an address of this host, which still answers there", interface.name));
        }
        if has_filters(namespace, interface)? {
            notes.push(format!(
                "{} has tc filters (clsact), which do not see frames that cross the bridge",
                interface.name
            ));
        }
    }
    for changed in saved.iter().filter(|changed| !changed.stuck().is_empty()) {
        let (name, stuck) = (changed.interface(), changed.stuck().join(", "));
        notes.push(format!(
            "{name} cannot switch off {stuck}: packets may have been merged before they arrive"
        ));
    }
    Ok(notes)
}
