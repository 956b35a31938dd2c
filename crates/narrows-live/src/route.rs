//! narrows as the router between two existing interfaces that are in different networks, with the modelled network
//! inside the router.
//!
//! ```text
//! hosts behind IF1 ── IF1 │ router in ─ engine ─ router out │ IF2 ── hosts behind IF2
//!                               up →   ← down
//! ```
//!
//! The interfaces keep their addresses, and hosts behind them use these as their gateway. Packets between the two sides
//! are routed here (`gateway`); all others are the kernel's. It must not forward the same packets as well: where
//! forwarding is off, it drops them. Where it is on, a [`ForwardBarrier`] drops them before that; on kernels without
//! nf_tables forwarding of IPv4 is disabled on both interfaces meanwhile, and IPv6 must not be forwarded.
//!
//! The host's addresses and routes are read once, at the start.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::path::PathBuf;

use narrows_core::Engine;
use narrows_frame::nat;
use narrows_io::address::{InterfaceAddress, IpPrefix};
use narrows_io::cable_end::Backend;
use narrows_io::ledger::RaisedSetting;
use narrows_io::link::Interface;
use narrows_io::namespace::Namespace;
use narrows_io::nat::{Barred, BarrierError, ForwardBarrier, Passage};
use narrows_io::packet_socket::{Offloads, PacketSocketOptions};
use narrows_io::route_socket::RouteSocket;
use narrows_io::saved_interface::SavedInterface;
use narrows_io::sysctl::read_sysctl;
use narrows_io::wait::{EndSignals, wake_on_time};
use narrows_io::watch::{Change, Watch};
use narrows_report::{Kind, RunInfo};
use narrows_scenario::{Scenario, Way as Direction};

use crate::bridge::{heed, interfaces};
use crate::gateway::table::{Route, Side, Table};
use crate::gateway::translation::Translation;
use crate::gateway::{Gateway, Leg, OUTSIDE, PortIndex};
use crate::inline::{
    Ground, Heed, INTERFACES, Inline, InlineError, InlineOptions, InlineOutcome, check_scenario, control,
    namespace, settle_me,
};
use crate::load::Load;
use crate::run::{RunError, SETTINGS, system};
use crate::sniffer::Sniffer;
use crate::testbed::{Cable, Plug};

pub use crate::gateway::translation::Rebinding;
pub use narrows_frame::nat::Rebind;

/// What to route between.
#[derive(Debug)]
pub struct RouteOptions {
    /// The two interfaces; "up" is from the first to the second.
    pub interfaces: [String; 2],
    /// Their namespace, by name, path or `pid:N`; by default the caller's.
    pub namespace: Option<String>,
    /// Address translation.
    pub translation: Option<TranslationOptions>,
    /// TCP port that listens as long as packets are forwarded, for programs that wait for that; nothing is accepted.
    pub ready: Option<u16>,
    /// Files for captures of the two interfaces by tcpdump.
    pub sniffed: Option<[PathBuf; 2]>,
    /// Options shared with the bridge and `attach`.
    pub inline: InlineOptions,
}

/// Address translation: packets that leave by the second interface come from addresses of this host.
#[derive(Clone, Debug, Default)]
pub struct TranslationOptions {
    /// The outer addresses; by default those of the second interface.
    pub pool: Vec<IpAddr>,
    /// The rebindings.
    pub rebindings: Vec<Rebinding>,
}

/// Routes between two interfaces, with a scenario's network in between, until the time is over, a signal arrives, or an
/// interface goes down.
///
/// # Errors
/// If anything cannot be set up; everything is then as before.
pub fn route(mut scenario: Scenario, options: &RouteOptions) -> Result<InlineOutcome, RunError> {
    check_scenario(&scenario)?;
    let inline = &options.inline;
    if !matches!(inline.cabling.backend, None | Some(Backend::AfPacket)) {
        return Err(InlineError::RouterBackend.into());
    }
    let namespace = namespace(options.namespace.as_deref())?;
    let found = interfaces(&namespace, &options.interfaces, "route")?;
    settle_me(&mut scenario, &namespace, &found)?;
    limit_to_interfaces(&mut scenario, &found)?;
    let mut host = HostNetwork::read(&namespace, &found, options.translation.as_ref())?;
    let engine = Engine::new(scenario.network())?;
    wake_on_time().map_err(system("set the timer slack"))?;
    let signals = EndSignals::catch().map_err(system("catch signals"))?;
    let mut info = RunInfo::of(&scenario, Kind::Live);
    let [first, second] = &options.interfaces;
    info.title = format!("{} from {first} to {second}", info.title);
    let control = control(inline, &scenario, &info.title)?;
    let (barrier, note) = host.bar_kernel(&namespace, inline)?;
    info.notes.extend(note);
    let mut saved = Vec::new();
    for interface in &found {
        let folder = inline.run_folder.join(INTERFACES);
        let changed =
            SavedInterface::plain_packets(&namespace, options.namespace.as_deref(), interface, &folder)
                .map_err(InlineError::from)?;
        saved.push(changed);
    }
    let gateway = host.gateway(&scenario, &engine)?;
    let cables = cables(&namespace, &scenario, &found, inline)?;
    let watch = Watch::on(&namespace, &found).map_err(InlineError::from)?;
    let ground = Ground { signals, control, watch, info, gateway: Some(gateway), agreement: None };
    let mut network = Inline::new(engine, scenario, cables, ground, inline)?;
    let mut sniffers = Vec::new();
    for (file, interface) in options.sniffed.iter().flatten().zip(&found) {
        let sniffer = Sniffer::start(&namespace, &interface.name, file).map_err(InlineError::from)?;
        sniffers.push(sniffer);
    }
    let listener = options.ready.map(|port| listen(&namespace, port)).transpose()?;
    network.greet(&format!("a router between {first} and {second}"), inline)?;
    network.run(inline.duration, heed_as_router)?;
    drop(listener);
    let mut outcome = network.finish()?;
    drop(barrier);
    saved.into_iter().for_each(|changed| outcome.put_back(changed));
    for sniffer in sniffers {
        sniffer.end().map_err(InlineError::from)?;
    }
    Ok(outcome)
}

/// As a bridge does; but a router is found by its link address.
fn heed_as_router(change: Change) -> Heed {
    match change {
        Change::LinkAddress { interface } => Heed::End(format!("the link address of `{interface}` changed")),
        change => heed(change),
    }
}

/// Listens on all addresses, of both versions where the kernel has IPv6.
fn listen(namespace: &Namespace, port: u16) -> Result<TcpListener, RunError> {
    let bind = || {
        TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))
    };
    let bound = namespace.run(bind).map_err(InlineError::from)?;
    bound.map_err(system("listen on the port that tells that the router is ready"))
}

fn cables(
    namespace: &Namespace,
    scenario: &Scenario,
    found: &[Interface; 2],
    inline: &InlineOptions,
) -> Result<Vec<Cable>, InlineError> {
    let mtu = found.iter().map(|interface| interface.mtu).max().unwrap_or_default();
    let mut laying = inline.cabling.or(Backend::AfPacket).lay(found.len(), mtu);
    let mut cables = Vec::new();
    for (port, interface) in scenario.ports().iter().zip(found) {
        // As those of the kernel's own router, packets pass the interface's queueing discipline, and sniffers see them.
        let sockets = PacketSocketOptions {
            offloads: Offloads::Finished,
            through_qdisc: true,
            ..PacketSocketOptions::default()
        };
        let end = laying.open(namespace, &interface.name, sockets)?;
        cables.push(Cable::of_one(Plug::transparent(&port.name), end, laying.began(), None));
    }
    Ok(cables)
}

/// Packets longer than the MTU of the interface that they leave by are handled as the link's MTU says: the last link
/// on the way gets that MTU, if none is set there and longer packets can arrive.
fn limit_to_interfaces(scenario: &mut Scenario, found: &[Interface; 2]) -> Result<(), RunError> {
    let [first, second] = found;
    let limit = match first.mtu.cmp(&second.mtu) {
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Greater => (Direction::Up, second.mtu),
        std::cmp::Ordering::Less => (Direction::Down, first.mtu),
    };
    let (way, mtu) = limit;
    let from = match way {
        Direction::Up => 0,
        Direction::Down => 1,
    };
    let last = scenario.ports().get(from).and_then(|port| port.path.last().cloned());
    let Some(narrows_core::Target::Link { name, .. }) = last else { return Ok(()) };
    let has_own = scenario
        .links
        .iter()
        .flat_map(|link| link.directions())
        .any(|(link, direction)| link == name && direction.settings.mtu.is_some());
    if !has_own {
        scenario.set(&[format!("{name}.mtu={mtu}")]).map_err(InlineError::from)?;
    }
    Ok(())
}

/// The addresses and routes of this host, as far as the two interfaces are concerned.
struct HostNetwork {
    found: [Interface; 2],
    addresses: [Vec<IpPrefix>; 2],
    forwards: [bool; 2],
    table: Table,
    /// The outer addresses of translation, and its rebindings.
    outer: Option<TranslationOptions>,
}

impl HostNetwork {
    fn read(
        namespace: &Namespace,
        found: &[Interface; 2],
        translation: Option<&TranslationOptions>,
    ) -> Result<Self, InlineError> {
        let mut sockets = RouteSocket::open(namespace)?;
        let all = sockets.addresses()?;
        let side_of = |index| found.iter().position(|interface| Some(interface.index) == index);
        let of = |side: Side| {
            let own = |address: &&InterfaceAddress| side_of(Some(address.interface)) == Some(side);
            all.iter().filter(own).map(|address| address.prefix).collect::<Vec<_>>()
        };
        let addresses = [of(0), of(1)];
        for (interface, own) in found.iter().zip(&addresses) {
            if own.iter().all(is_link_local) {
                return Err(InlineError::NoAddress(interface.name.clone()));
            }
        }
        let routes = sockets.routes()?.into_iter().map(|route| Route {
            destination: route.destination,
            gateway: route.gateway,
            side: side_of(route.interface),
        });
        let own: Vec<_> = all.iter().map(|address| address.prefix).collect();
        let table = Table::new(&own, routes.collect());
        let forwards = [&found[0], &found[1]].map(|interface| forwards(namespace, &interface.name));
        let outer = translation.map(|options| options.settle(&addresses[OUTSIDE])).transpose()?;
        Ok(Self { found: found.clone(), addresses, forwards, table, outer })
    }

    /// The router, with the ports of the engine.
    fn gateway(self, scenario: &Scenario, engine: &Engine<Load>) -> Result<Gateway, InlineError> {
        let port = |side: Side| -> Option<PortIndex> {
            Some(engine.port(&scenario.ports().get(side)?.name)?.index().into())
        };
        let name = format!("{}-{}", self.found[0].name, self.found[1].name);
        let Self { found, addresses, forwards, table, outer } = self;
        let translation = outer.map(|outer| Translation::new(&outer.pool, &outer.rebindings));
        let leg = |side: Side, addresses| {
            let interface = &found[side];
            let (Some(port), Some(mac)) = (port(side), interface.mac) else {
                return Err(InlineError::NotEthernet(interface.name.clone()));
            };
            let mac = narrows_frame::MacAddress(mac.0);
            Ok(Leg { port, mac, addresses, kernel_forwards: forwards[side] })
        };
        let [left, right] = addresses;
        Ok(Gateway::new(&name, [leg(0, left)?, leg(1, right)?], table, translation))
    }

    /// Keeps the kernel from forwarding what is routed here.
    fn bar_kernel(
        &mut self,
        namespace: &Namespace,
        inline: &InlineOptions,
    ) -> Result<(Barrier, Option<String>), InlineError> {
        if self.forwards == [false; 2] && self.outer.is_none() {
            return Ok((Barrier::default(), None));
        }
        let table = format!("narrows-route-{}", std::process::id());
        let barred = [0, 1].map(|side| self.barred(side));
        match ForwardBarrier::raise(namespace, &table, &barred) {
            Ok(table) => Ok((Barrier { _table: Some(table), ..Barrier::default() }, None)),
            // Forwarding of IPv6 cannot be disabled for single interfaces.
            Err(BarrierError::Missing { .. })
                if self.outer.is_none()
                    && !self.found.iter().any(|interface| forwards_ipv6(namespace, &interface.name)) =>
            {
                let note = "the kernel has no nf_tables: forwarding of IPv4 was disabled on both interfaces during the run";
                let barrier = self.disable_forwarding(namespace, inline)?;
                self.forwards = [false; 2];
                Ok((barrier, Some(note.to_owned())))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What the kernel does not get of the packets that arrive on one side: those that leave by the other.
    fn barred(&self, side: Side) -> Barred {
        let host = |address: &IpAddr| {
            (IpPrefix::new(*address, if address.is_ipv4() { 32 } else { 128 }), Passage::Open)
        };
        let own = self.table.own().iter().map(host);
        let routes = self.table.routes().iter().map(|route| {
            let is_ours = route.side == Some(1 - side);
            (route.destination, if is_ours { Passage::Closed } else { Passage::Open })
        });
        // Groups and link-local addresses have no route of their own, or one for each interface.
        let stays = ["224.0.0.0/4", "255.255.255.255/32", "ff00::/8", "fe80::/10"];
        let stays = stays.iter().filter_map(|text| prefix(text)).map(|prefix| (prefix, Passage::Open));
        let translated = self.outer.as_ref().filter(|_| side == OUTSIDE);
        let pool = translated.into_iter().flat_map(|outer| &outer.pool);
        let pool = pool.filter(|address| !self.table.own().contains(address));
        let pool = pool.map(|address| (host(address).0, Passage::Closed));
        Barred {
            interface: self.found[side].index,
            ports: translated.map(|_| nat::PORTS),
            networks: pool.chain(own).chain(stays).chain(routes).collect(),
        }
    }

    fn disable_forwarding(
        &self,
        namespace: &Namespace,
        inline: &InlineOptions,
    ) -> Result<Barrier, InlineError> {
        let ledger = inline.run_folder.join(SETTINGS);
        let mut barrier = Barrier::default();
        for interface in &self.found {
            let key = forwarding_of_ipv4(&interface.name);
            barrier._settings.extend(RaisedSetting::raise(namespace, &key, "0", &ledger)?);
        }
        Ok(barrier)
    }
}

impl TranslationOptions {
    /// With the addresses of the interface if none are given.
    fn settle(&self, interface: &[IpPrefix]) -> Result<Self, InlineError> {
        let mut pool = self.pool.clone();
        if pool.is_empty() {
            let wide = interface.iter().filter(|prefix| !is_link_local(prefix));
            pool.extend(wide.map(|prefix| prefix.address));
        }
        let changes_address = self.rebindings.iter().any(|rebinding| rebinding.what == Rebind::Address);
        if changes_address && !nat::Nat::new(&pool).has_choice() {
            return Err(InlineError::OneAddress);
        }
        Ok(Self { pool, rebindings: self.rebindings.clone() })
    }
}

/// What keeps the kernel from forwarding, as long as this value lives.
#[derive(Default)]
struct Barrier {
    _table: Option<ForwardBarrier>,
    _settings: Vec<RaisedSetting>,
}

/// Whether the kernel forwards packets that arrive at an interface. Settings that cannot be read are off: a kernel
/// without IPv6 has none of these.
fn forwards(namespace: &Namespace, interface: &str) -> bool {
    is_on(namespace, &forwarding_of_ipv4(interface)) || forwards_ipv6(namespace, interface)
}

/// IPv6 has one switch for all interfaces, and since Linux 6.17 another one to switch single ones on.
fn forwards_ipv6(namespace: &Namespace, interface: &str) -> bool {
    is_on(namespace, "net/ipv6/conf/all/forwarding")
        || is_on(namespace, &format!("net/ipv6/conf/{interface}/force_forwarding"))
}

fn forwarding_of_ipv4(interface: &str) -> String {
    format!("net/ipv4/conf/{interface}/forwarding")
}

fn is_on(namespace: &Namespace, key: &str) -> bool {
    read_sysctl(namespace, key).is_ok_and(|value| value != "0")
}

fn is_link_local(prefix: &IpPrefix) -> bool {
    matches!(prefix.address, IpAddr::V6(address) if address.is_unicast_link_local())
}

fn prefix(text: &str) -> Option<IpPrefix> {
    let (address, length) = text.split_once('/')?;
    Some(IpPrefix::new(address.parse::<IpAddr>().ok()?, length.parse().ok()?))
}
