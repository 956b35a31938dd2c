//! The cable of a link inside the kernel: a veth pair between two hosts, with the link's qdiscs at its ends.

use narrows_io::cable_end::CableEnd;
use narrows_io::clock::clock_monotonic;
use narrows_io::link::{InterfaceIndex, VethEnd, create_numbered_veth};
use narrows_io::route_socket::RouteSocket;
use narrows_io::{offload, stack};
use narrows_kernel::{KernelLink, qdisc_name};
use narrows_scenario::Scenario;

use super::cable::{CARRIER, give_addresses};
use super::{Cable, FIRST_END, Host, Interface, Testbed, TestbedError, interface_at, of_host};
use crate::neighbor_proxy::NeighborProxy;

impl Testbed {
    /// Joins the two hosts of a scenario that fits by a link inside the kernel.
    pub(super) fn lay_kernel_cable(&mut self, scenario: &Scenario) -> Result<(), TestbedError> {
        let parameters = narrows_kernel::fit(scenario)?;
        let mut link = KernelLink::load(&qdisc_name(), &parameters)?;
        let laid = clock_monotonic();
        let at_hosts = scenario.ports().iter().filter_map(|port| {
            let place = self.hosts.iter().position(|host| host.name == port.host)?;
            Some((place, interface_at(scenario, port)))
        });
        let at_hosts: Vec<(usize, Interface)> = at_hosts.collect();
        let [(near, near_end), (far, far_end)] = &at_hosts[..] else { return Ok(()) };
        let end = |host: usize, interface: &Interface| (&self.hosts[host].namespace, interface.mac);
        let ((near_space, near_mac), (far_space, far_mac)) = (end(*near, near_end), end(*far, far_end));
        create_numbered_veth(
            &VethEnd { namespace: near_space, name: &near_end.name, mac: Some(near_mac) },
            InterfaceIndex(FIRST_END),
            &VethEnd { namespace: far_space, name: &far_end.name, mac: Some(far_mac) },
            near_end.mtu,
        )?;
        for (direction, (host, interface)) in at_hosts.iter().enumerate() {
            let host = &self.hosts[*host];
            let prepared = prepare(host, interface, &link, direction);
            prepared.map_err(|cause| of_host(&host.name, cause))?;
        }
        for ((place, interface), end) in at_hosts.into_iter().zip(link.take_ends()) {
            let host = &mut self.hosts[place];
            let dressed = RouteSocket::open(&host.namespace)
                .and_then(|mut sockets| sockets.wait_for_carrier(&interface.name, CARRIER))
                .map_err(TestbedError::from)
                .and_then(|()| give_addresses(host, &interface).map(drop));
            dressed.map_err(|cause| of_host(&host.name, cause))?;
            self.cables.push(Cable {
                name: interface.port.clone(),
                end: CableEnd::Kernel(Box::new(end)),
                laid,
                // What concerns the link itself has no records.
                neighbours: NeighborProxy::transparent(),
                far: None,
                stations: None,
            });
            host.interfaces.push(interface);
        }
        self._kernel_link = Some(link);
        Ok(())
    }
}

/// Puts the link's direction at the interface of the host that sends, before anything is sent there.
fn prepare(
    host: &Host,
    interface: &Interface,
    link: &KernelLink,
    direction: usize,
) -> Result<(), TestbedError> {
    let (namespace, name) = (&host.namespace, interface.name.as_str());
    offload::plain_packets(namespace, name)?;
    namespace.run(|| stack::settle(namespace, name))??;
    let mut sockets = RouteSocket::open(namespace)?;
    sockets.add_root_qdisc_as(name, link.kind(), KernelLink::handle(direction), &[])?;
    sockets.add_egress_classifier(name, "narrows", link.orphan())?;
    sockets.set_up(name)?;
    Ok(())
}
