//! The cable of a host's interface: a veth pair, of which one end is ours, or a TAP device.

use std::time::Duration;

use narrows_io::cable_end::{Backend, CableEnd};
use narrows_io::link::{InterfaceIndex, MacAddress, VethEnd, create_numbered_veth};
use narrows_io::namespace::Namespace;
use narrows_io::offload::{self, OffloadError};
use narrows_io::packet_socket::PacketSocketOptions;
use narrows_io::route_socket::RouteSocket;
use narrows_io::stack;
use narrows_io::tap::Tap;

use super::{Cable, Host, Interface, Lane, Peer, Plug, TestbedError};
use crate::cabling::{Cabling, FarEnd, Laying};
use crate::neighbor_proxy::NeighborProxy;

/// The maximum number of frames queued at a host's end while the ring to ours is full: the kernel's default queue
/// length.
const HELD_BACK: u32 = 1000;
/// How long a cable may take to have carrier; normally microseconds.
pub(super) const CARRIER: Duration = Duration::from_secs(5);

/// How long the kernel may take until packets to a new address are received; normally less than a millisecond.
const ADDRESS: Duration = Duration::from_secs(20);

/// Our end of a cable to be laid, in our namespace.
pub(super) struct End {
    pub(super) name: String,
    pub(super) number: InterfaceIndex,
}

/// Lays the cable of one interface and gives the host its addresses. Call it inside our namespace.
pub(super) fn lay_cable(
    wire: &Namespace,
    host: &Host,
    interface: &Interface,
    end: &End,
    laying: &mut Laying,
) -> Result<Cable, TestbedError> {
    let cabling = laying.cabling();
    let end = match cabling.backend {
        Some(Backend::Tap) => tap(host, interface, cabling)?,
        _ => {
            lay_veth(wire, host, interface, end, cabling)?;
            let opened = laying.open(wire, &end.name, PacketSocketOptions::default())?;
            if opened.backend() == Backend::AfXdp && host.is_ours {
                RouteSocket::open(&host.namespace)?.hold_back(&interface.name, HELD_BACK)?;
            }
            opened
        }
    };
    let neighbours = give_addresses(host, interface)?;
    let far = FarEnd::of(&end, &host.namespace, &interface.name)?;
    let plug = Plug { port: interface.port.clone(), neighbours, stations: stations(interface), lane: None };
    Ok(Cable::of_one(plug, end, laying.began(), far))
}

/// The link addresses of frames from a router to an interface.
fn stations(interface: &Interface) -> Option<(narrows_frame::MacAddress, narrows_frame::MacAddress)> {
    let station = |mac: MacAddress| narrows_frame::MacAddress(mac.0);
    // On a switch the engine knows the link addresses.
    let router = interface.neighbours.iter().find(|peer| peer.is_router && !interface.is_switched);
    router.map(|router| (station(router.mac), station(interface.mac)))
}

/// Gives a host the addresses of an interface, and those of its neighbours there. Returns who answers for these.
pub(super) fn give_addresses(host: &Host, interface: &Interface) -> Result<NeighborProxy, TestbedError> {
    let mut sockets = RouteSocket::open(&host.namespace)?;
    for address in &interface.addresses {
        sockets.add_address(&interface.name, *address)?;
    }
    let mut neighbours =
        if interface.is_switched { NeighborProxy::transparent() } else { NeighborProxy::default() };
    // Hosts on a switch resolve each other's addresses over the network. Routers do not answer there.
    let is_resolved_here = |peer: &&Peer| peer.is_router || !interface.is_switched;
    for peer in interface.neighbours.iter().filter(is_resolved_here) {
        for address in &peer.addresses {
            neighbours.add(address.address, narrows_frame::MacAddress(peer.mac.0));
            // While waiting for a reply, the kernel keeps some 90 packets of a first burst and drops the rest.
            sockets.add_neighbour(&interface.name, address.address, peer.mac)?;
        }
    }
    for address in &interface.addresses {
        sockets.wait_for_address(address.address, ADDRESS)?;
    }
    Ok(neighbours)
}

/// The same for a cable that shares a socket with others: that of all interfaces of our namespace.
pub(super) fn lay_lane(
    wire: &Namespace,
    host: &Host,
    interface: &Interface,
    end: &End,
    cabling: Cabling,
) -> Result<Plug, TestbedError> {
    lay_veth(wire, host, interface, end, cabling)?;
    let neighbours = give_addresses(host, interface)?;
    let far = FarEnd::sending(&host.namespace, &interface.name)?;
    let lane = Some(Lane { interface: end.number, far });
    Ok(Plug { port: interface.port.clone(), neighbours, stations: stations(interface), lane })
}

/// A veth pair, its near end in our namespace.
fn lay_veth(
    wire: &Namespace,
    host: &Host,
    interface: &Interface,
    end: &End,
    cabling: Cabling,
) -> Result<(), TestbedError> {
    let near = end.name.as_str();
    let far = VethEnd { namespace: &host.namespace, name: &interface.name, mac: Some(interface.mac) };
    create_numbered_veth(
        &VethEnd { namespace: wire, name: near, mac: None },
        end.number,
        &far,
        interface.mtu,
    )?;
    switch_offloads(wire, near, cabling)?;
    stack::silence(wire, near)?;
    let mut sockets = RouteSocket::open(wire)?;
    sockets.set_up(near)?;
    // All in one visit, because each visit to another namespace takes a thread.
    host.namespace.run(|| bring_up(host, interface, cabling))??;
    // A socket on an interface that is down would report that first.
    Ok(sockets.wait_for_carrier(near, CARRIER)?)
}

/// A TAP device in the host's namespace.
fn tap(host: &Host, interface: &Interface, cabling: Cabling) -> Result<CableEnd, TestbedError> {
    let Host { namespace, .. } = host;
    let tap = Tap::create(namespace, &interface.name, interface.mac, interface.mtu, cabling.trains);
    let tap = tap.map_err(narrows_io::cable_end::CableEndError::from)?;
    namespace.run(|| bring_up(host, interface, cabling))??;
    Ok(CableEnd::Tap(Box::new(tap)))
}

/// Makes a host's interface usable at once. Call it inside its namespace.
fn bring_up(host: &Host, interface: &Interface, cabling: Cabling) -> Result<(), TestbedError> {
    let namespace = &host.namespace;
    switch_offloads(namespace, &interface.name, cabling)?;
    stack::settle(namespace, &interface.name)?;
    let mut sockets = RouteSocket::open(namespace)?;
    sockets.set_up(&interface.name)?;
    Ok(sockets.wait_for_carrier(&interface.name, CARRIER)?)
}

/// Disables offloads to non-existent hardware, except those that trains use.
fn switch_offloads(namespace: &Namespace, interface: &str, cabling: Cabling) -> Result<(), OffloadError> {
    let switched = if cabling.trains {
        offload::trains(namespace, interface)
    } else {
        offload::plain_packets(namespace, interface)
    };
    switched.map(drop)
}
